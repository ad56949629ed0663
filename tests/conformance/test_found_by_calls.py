"""Calls of public functions that differed from jax by the kind of an argument: types, values, errors and warnings."""

import warnings

import numpy as np
import pytest
from compare import same

from minijax import numpy as jnp
from minijax.base import config

pytestmark = pytest.mark.oracle


def forms(table: str) -> list[str]:
    return [text.strip() for text in table.replace("\n", "|").split("|") if text.strip()]


def ended(text: str, names: dict) -> str:
    """The types and values that an expression ends with, or the class of its error."""
    jax = names["jax"]
    try:
        result = eval(text, dict(names))
    except Exception as error:
        return f"{text}: {type(error).__name__}"
    leaves = [(str(getattr(x, "dtype", "")), getattr(x, "weak_type", None), str(x)) for x in jax.tree.leaves(result)]
    return f"{text}: {leaves}"


# Requests of 64 bits, D, without the option `jax_enable_x64`.
WIDE = """
    jnp.asarray(1, D) | jnp.array(1.5, D) | jnp.full(2, 3, D) | jnp.zeros(2, D)
    jnp.linspace(0, 1, 3, dtype=D) | jnp.logspace(0, 1, 3, dtype=D) | jnp.arange(0, 3.5, 0.5, dtype=D) | jnp.arange(1, 4, 1, dtype=D)
    lax.full((2,), 3, D) | lax.full_like(x, 3, D) | jnp.ones(3, D).sum() | jnp.prod(jnp.ones(3, D)) | x.sum(dtype=D) | jnp.ones(3, D).mean()
    init.zeros(k, (2,), D) | init.ones(k, (2,), D) | init.constant(3)(k, (2,), D) | jnp.asarray(np.ones(2)) | jnp.asarray(1, D) + 1
    x + jnp.asarray(1, D)
"""


@pytest.mark.parametrize("dtype", ["int64", "uint64", "float64", "complex128"])
def test_requests_of_64_bits_are_granted_if_they_are_allowed(dtype):
    def program(jax, jnp, lax, nn):
        jax.config.update("jax_explicit_x64_dtypes", "allow")
        try:
            names = dict(jax=jax, jnp=jnp, lax=lax, np=np, init=nn.initializers, x=jnp.arange(3.0), D=dtype)
            names["k"] = jax.random.key(0)
            # Not run: XLA refuses some of jax's, whose modules take all for 32 bits.
            return "\n".join(ended(f"jax.make_jaxpr(lambda: {text})()", names) for text in forms(WIDE))
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


CALLS = """
    jnp.isdtype(x, x) | jnp.isdtype(x, i) | jnp.isdtype('float32', x) | jnp.isdtype(x, (x, i)) | jnp.isdtype(x, None) | jnp.isdtype(x, 1.0)
    jnp.isdtype(x, np.ones(2)) | jnp.isdtype(x, [np.float32]) | jnp.isdtype(x, np.float32(1)) | jnp.isdtype(x, k) | jnp.isdtype(x, {})
    jnp.setdiff1d(i, i[:2], size=0) | jnp.setdiff1d(i, i[:0], size=0, fill_value=1) | jnp.setdiff1d(i[:0], i, size=0)
    jnp.setdiff1d(i, i[:2], size=0, assume_unique=True) | fft.dct(x, n=0) | fft.dct(x[:0]) | fft.dct(jnp.ones((0, 3)))
    fft.dct(jnp.ones((3, 0))) | fft.dct(jnp.ones((3, 0)), axis=0) | fft.dctn(jnp.ones((3, 3)), s=(2, 0)) | fft.idct(jnp.ones((3, 0)), axis=0)
"""


@pytest.mark.filterwarnings("ignore")
def test_calls():
    def program(jax, jnp, lax, scipy):
        names = dict(
            jax=jax, jnp=jnp, lax=lax, np=np, fft=scipy.fft, x=jnp.arange(3.0), i=jnp.arange(3), k=jax.random.key(0)
        )
        return "\n".join(ended(text, names) for text in forms(CALLS))

    assert "TypeError" in same(program)
