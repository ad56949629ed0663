"""Cumulative operations, against jax: programs, texts and values."""

import ml_dtypes
import numpy as np
import pytest
from compare import Case, same_error, sweep
from transform_matrix import transformed

import minijax
from minijax.composed.arrays import cumulative

pytestmark = pytest.mark.oracle

NAMES = ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp")
DTYPES = (np.int8, np.uint32, np.float16, ml_dtypes.bfloat16, np.float32, np.complex64)
WAYS = [
    ((5,), 0, False),
    ((2, 5), 1, True),
    ((3, 4), 0, False),
    ((1,), 0, False),
    ((0, 3), 0, False),
    ((3, 0), 0, True),
    ((6,), 0, True),
    ((2,), 0, False),
]


def array(*sizes, dtype=np.float32):
    return (np.random.RandomState(0).randn(*sizes) * 3).astype(dtype)


def cumulate(name, axis, reverse=False):
    return lambda lax: lambda x: getattr(lax, name)(x, axis, reverse)


@pytest.mark.parametrize("name", NAMES)
def test_every_way_and_transform_equals_jax_s(name):
    cases = [Case(f"{way}", cumulate(name, *way[1:]), (array(*way[0]),)) for way in WAYS]
    sweep([transformed(c, t) for c in cases for t in ("plain", "jvp", "vjp", "vmap")])
    later = ("vmap_of_grad", "grad_of_vmap", "jvp_of_grad")
    sweep([transformed(c, t) for c in cases[1:3] for t in later])


def test_every_dtype_equals_jax_s():
    sweep(
        [
            Case(f"{name}-{np.dtype(d)}", cumulate(name, 1), (array(2, 3, dtype=d),))
            for name in NAMES
            for d in DTYPES
            if name != "cumlogsumexp" or not np.issubdtype(d, np.integer)
        ]
    )


def test_infinities_and_nan_equal_jax_s():
    special = np.array([-np.inf, -np.inf, 1, np.inf, np.nan, 2], np.float32)
    sweep([Case(n, cumulate(n, 0), (special,)) for n in NAMES], tier="full")


def test_equal_calls_in_one_program_share_their_function():
    sweep(
        [Case("thrice", lambda lax: lambda x: [lax.cumsum(x), lax.cumsum(x), lax.cumsum(x, reverse=True)], (array(3),))]
    )


@pytest.mark.parametrize("shape, axis, dtype", [((3,), 1, np.float32), ((3,), -1, np.float32),
                                                ((), 0, np.float32),
                                                ((3,), 0, bool)])  # fmt: skip
def test_axes_and_dtypes_that_do_not_fit_are_rejected(shape, axis, dtype):
    x, jax = np.zeros(shape, dtype), pytest.importorskip("jax")
    same_error(lambda: cumulative.cumsum(x, axis), lambda: jax.lax.cumsum(x, axis))


def test_logaddexp_has_jax_s_values_and_derivative():
    jax = pytest.importorskip("jax")
    x, y = array(4), array(4)[::-1].copy()
    ours = minijax.jvp(cumulative.logaddexp, (x, y), (x, y))
    theirs = jax.jvp(jax.numpy.logaddexp, (x, y), (x, y))
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(np.asarray(mine), np.asarray(other))
