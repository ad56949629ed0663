"""Calls of public functions that differed from jax by the kind of an argument: types, values, errors and warnings."""

import warnings
from collections.abc import Callable

import numpy as np
import pytest
from compare import same
from given import given

from minijax import numpy as jnp
from minijax.base import config

pytestmark = pytest.mark.oracle


def ended(call: Callable, names: dict) -> str:
    """The types and values that a call ends with, or the class of its error."""
    jax = names["jax"]
    try:
        result = given(call, names)
    except Exception as error:
        return type(error).__name__
    leaves = [(str(getattr(x, "dtype", "")), getattr(x, "weak_type", None), str(x)) for x in jax.tree.leaves(result)]
    return str(leaves)


# Requests of 64 bits, D, without the option `jax_enable_x64`.
WIDE = [
    lambda jnp, D: jnp.asarray(1, D),
    lambda jnp, D: jnp.array(1.5, D),
    lambda jnp, D: jnp.full(2, 3, D),
    lambda jnp, D: jnp.zeros(2, D),
    lambda jnp, D: jnp.linspace(0, 1, 3, dtype=D),
    lambda jnp, D: jnp.logspace(0, 1, 3, dtype=D),
    lambda jnp, D: jnp.arange(0, 3.5, 0.5, dtype=D),
    lambda jnp, D: jnp.arange(1, 4, 1, dtype=D),
    lambda lax, D: lax.full((2,), 3, D),
    lambda lax, x, D: lax.full_like(x, 3, D),
    lambda jnp, D: jnp.ones(3, D).sum(),
    lambda jnp, D: jnp.prod(jnp.ones(3, D)),
    lambda x, D: x.sum(dtype=D),
    lambda jnp, D: jnp.ones(3, D).mean(),
    lambda init, k, D: init.zeros(k, (2,), D),
    lambda init, k, D: init.ones(k, (2,), D),
    lambda init, k, D: init.constant(3)(k, (2,), D),
    lambda jnp: jnp.asarray(np.ones(2)),
    lambda jnp, D: jnp.asarray(1, D) + 1,
    lambda jnp, x, D: x + jnp.asarray(1, D),
]


@pytest.mark.parametrize("dtype", ["int64", "uint64", "float64", "complex128"])
def test_requests_of_64_bits_are_granted_if_they_are_allowed(dtype):
    def program(jax, jnp, lax, nn):
        jax.config.update("jax_explicit_x64_dtypes", "allow")
        try:
            names = dict(jax=jax, jnp=jnp, lax=lax, np=np, init=nn.initializers, x=jnp.arange(3.0), D=dtype)
            names["k"] = jax.random.key(0)
            # Not run: XLA refuses some of jax's, whose modules take all for 32 bits.
            traced = lambda call: lambda jax: jax.make_jaxpr(lambda: given(call, names))()  # noqa: E731
            return "\n".join(ended(traced(call), names) for call in WIDE)
        finally:
            jax.config.update("jax_explicit_x64_dtypes", "warn")

    assert dtype in same(program)


def test_arrays_of_64_bits_that_are_allowed_have_them():
    with config.explicit_x64_dtypes("allow"):
        arrays = (
            jnp.asarray(2, "int64"),
            jnp.zeros(2, "float64"),
            jnp.linspace(0, 1, 3, dtype="float64"),
            jnp.asarray([1, 2], "uint64"),
        )
        assert [x.dtype.itemsize for x in arrays] == [8] * 4
        assert jnp.asarray(2**40, "int64").item() == 2**40 and jnp.full(2, 0.1, "float64")[0].item() == 0.1


@pytest.mark.parametrize("name", ["zeros", "ones", "normal", "orthogonal", "lecun_normal"])
def test_initializers_say_that_64_bits_are_not_available(name):
    def program(jax, nn):
        init = getattr(nn.initializers, name)
        init = init if name in ("zeros", "ones") else init()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            init(jax.random.key(0), (2, 2), "float64")
        return str({str(w.message)[:34] for w in caught})

    assert "Explicitly requested dtype float64" in same(program)


CALLS = [
    lambda jnp, x: jnp.isdtype(x, x),
    lambda jnp, x, i: jnp.isdtype(x, i),
    lambda jnp, x: jnp.isdtype("float32", x),
    lambda jnp, x, i: jnp.isdtype(x, (x, i)),
    lambda jnp, x: jnp.isdtype(x, None),
    lambda jnp, x: jnp.isdtype(x, 1.0),
    lambda jnp, x: jnp.isdtype(x, np.ones(2)),
    lambda jnp, x: jnp.isdtype(x, [np.float32]),
    lambda jnp, x: jnp.isdtype(x, np.float32(1)),
    lambda jnp, x, k: jnp.isdtype(x, k),
    lambda jnp, x: jnp.isdtype(x, {}),
    lambda jnp, i: jnp.setdiff1d(i, i[:2], size=0),
    lambda jnp, i: jnp.setdiff1d(i, i[:0], size=0, fill_value=1),
    lambda jnp, i: jnp.setdiff1d(i[:0], i, size=0),
    lambda jnp, i: jnp.setdiff1d(i, i[:2], size=0, assume_unique=True),
    lambda fft, x: fft.dct(x, n=0),
    lambda fft, x: fft.dct(x[:0]),
    lambda jnp, fft: fft.dct(jnp.ones((0, 3))),
    lambda jnp, fft: fft.dct(jnp.ones((3, 0))),
    lambda jnp, fft: fft.dct(jnp.ones((3, 0)), axis=0),
    lambda fft, m: fft.dctn(m, s=(2, 0)),
    lambda jnp, fft: fft.idct(jnp.ones((3, 0)), axis=0),
    lambda jnp: jnp.fft.fft([1, 2], norm=1),
    lambda jnp, m: jnp.fft.fft(m, norm=1),
    lambda jnp: jnp.fft.rfft(len, norm="a"),
    lambda jnp: jnp.fft.rfftfreq(0.5),
    lambda jnp: jnp.fft.rfftfreq(3),
    lambda jnp, m: jnp.fft.fftshift(m, {1}),
    lambda jnp, m: jnp.fft.ifftshift(m, {0, 1}),
    lambda jnp, x, m: jnp.linalg.lstsq(m, x[0]),
    lambda jnp, x: jnp.linalg.lstsq(x[0], x),
    lambda sl: sl.cholesky(len),
    lambda sl: sl.cholesky([1, 2]),
    lambda sl: sl.cholesky(None),
    lambda sl, m: sl.cholesky(m),
    lambda sl: sl.cho_factor("abc"),
    lambda sl: sl.hessenberg(1.0),
    lambda sl, x: sl.hessenberg(x),
    lambda sl: sl.hessenberg(None),
    lambda sl, m: sl.qr_multiply(m, 1.0),
    lambda sl, x: sl.qr_multiply(x, x),
    lambda sl, i: sl.eigh_tridiagonal(True, i),
    lambda sl, x: sl.eigh_tridiagonal(x, 1.0),
    lambda random, k: random.fold_in(k, "abc"),
    lambda random, k: random.fold_in(k, "3"),
    lambda random, k: random.fold_in(k, None),
    lambda jax, random, k: jax.jit(lambda n: random.orthogonal(k, n))(2),
    lambda jax, random, k: jax.jit(lambda n: random.orthogonal(k, 2, m=n))(2),
    lambda lax, x: lax.psum(x, x),
    lambda lax: lax.axis_index({}),
    lambda lax: lax.axis_size({}),
    lambda lax, x: lax.all_gather(x, x),
    lambda lax, x: lax.pmean(x, "i"),
    lambda lax: lax.platform_dependent(1.0),
    lambda lax, c: lax.conv(c, c, (0, 1), "SAME"),
    lambda lax, c: lax.conv(c, c, (1, 0), [(0, 0), (0, 0)]),
    lambda jax, lax, m: jax.jit(lambda n: lax.index_in_dim(m, n))(0),
    lambda jax, lax, m: jax.jit(lambda n: lax.slice_in_dim(m, 0, n))(1),
    lambda lax, m: lax.index_in_dim(m, 0.5),
    lambda lax, m: lax.slice_in_dim(m, 0, 1.5),
]


@pytest.mark.filterwarnings("ignore")
def test_calls():
    def program(jax, jnp, lax, random, scipy):
        names = dict(jax=jax, jnp=jnp, lax=lax, np=np, fft=scipy.fft, sl=scipy.linalg, random=random, k=random.key(0))
        names |= dict(x=jnp.arange(3.0), i=jnp.arange(3), m=jnp.eye(3) * 2, c=jnp.ones((1, 1, 3, 3)))
        return "\n".join(ended(call, names) for call in CALLS)

    assert "TypeError" in same(program)


# Calls with a dtype D.
DTYPES = [
    lambda jnp, D: jnp.zeros(2, D),
    lambda lax, D: lax.iota(D, 2),
    lambda lax, D: lax.full((2,), 2.0, D),
    lambda jnp, D: jnp.array([1, 2], D),
    lambda lax, x, D: lax.convert_element_type(x, D),
    lambda x, D: x.astype(D),
    lambda jnp, x, D: jnp.sum(x, dtype=D),
    lambda random, k, D: random.bits(k, (2,), D),
    lambda jnp, D: jnp.eye(2, dtype=D),
    lambda jnp, D: jnp.arange(2, dtype=D),
    lambda init, k, D: init.zeros(k, (2,), D),
]
GIVEN = [
    lambda: np.float32(0.5),
    lambda: np.int8(1),
    lambda: np.bool_(True),
    lambda: np.zeros(2),
    lambda x: x,
    lambda: 1,
    lambda: np.uint8(3),
    lambda k: k,
    lambda x: x.dtype,
    lambda: len,
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", GIVEN)
def test_objects_as_dtypes(dtype):
    def program(jax, jnp, lax, nn, random):
        names = dict(jax=jax, jnp=jnp, lax=lax, np=np, random=random, x=jnp.ones(2), i=jnp.arange(2), k=random.key(0))
        names |= dict(D=given(dtype, names), init=nn.initializers)
        return "\n".join(ended(call, names) for call in DTYPES)

    assert len(same(program).splitlines()) == len(DTYPES)
