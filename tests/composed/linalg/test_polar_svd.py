"""Singular values as TPUs compute them: the numbers, of the same program on a CPU, and what it is lowered to."""

import re

import numpy as np
import pytest
from compare import canonical, same
from linalg_cases import matrix

import minijax
from minijax import lax
from minijax.composed.linalg.svd import qdwh_svd

pytestmark = pytest.mark.oracle


def graded(n):
    first, last = (np.linalg.qr(matrix(n, n, dtype=np.float64, seed=i))[0] for i in (0, 1))
    return first * np.logspace(0, -12, n) @ last


def of_rank(r, m, n):
    return matrix(m, r, dtype=np.complex128) @ matrix(r, n, dtype=np.complex128, seed=1)


TALL = [matrix(9, 4, dtype=np.complex128), np.zeros((9, 4)), np.ones((9, 4)), of_rank(2, 9, 4)]
SQUARE = [
    matrix(6, 6, dtype=np.complex128),
    of_rank(3, 6, 6),
    np.eye(6)[::-1],
    np.diag([2, 1, 1, 1 + 1e-6, 1e-3, 0]),
    graded(6),
    1e-20 * matrix(6, 6, dtype=np.float64),
    1e20 * matrix(6, 6, dtype=np.float64),
]
BATCHES = {
    "tall, full": (TALL, np.complex64, True),
    "wide": ([x.T for x in TALL], np.float64, False),
    "wide, full": ([x.T for x in TALL[:1]], np.complex128, True),
    "square": (SQUARE, np.float32, True),
    "square, complex": (SQUARE, np.complex128, False),
    "one element": ([np.full((1, 1), -2.0)], np.float32, True),
}


def decomposed(batch, **how):
    how = dict(full_matrices=False, compute_uv=True, subset_by_index=None) | how
    run = minijax.jit(minijax.vmap(lambda x: tuple(qdwh_svd(x, **how))))
    return [np.asarray(x) for x in run(batch)]


@pytest.mark.parametrize("name", BATCHES)
def test_matrices_are_products_of_their_factors(name):
    batch, dtype, full_matrices = BATCHES[name]
    batch = np.stack([x if np.dtype(dtype).kind == "c" else x.real for x in batch]).astype(dtype)
    with minijax.enable_x64(True):
        results = decomposed(batch, full_matrices=full_matrices)
    for a, s, u, vt in zip(batch, *results, strict=True):
        k, eps = min(a.shape), np.finfo(dtype).eps
        expected = np.linalg.svd(a, compute_uv=False)
        near = dict(rtol=0, atol=16 * eps * expected[0])
        np.testing.assert_allclose(s, expected, **near)
        np.testing.assert_allclose(u[:, :k] * s @ vt[:k], a, **near)
        for x in (u, vt.conj().T):
            assert x.dtype == a.dtype and x.shape == (x.shape[0], x.shape[0] if full_matrices else k)
            np.testing.assert_allclose(x.conj().T @ x, np.eye(x.shape[1]), rtol=0, atol=24 * eps)
        assert s.dtype == a.real.dtype and s.min() >= 0 and (np.diff(s) <= 0).all()


def test_values_alone_are_the_same():
    a = matrix(3, 4, 6)
    np.testing.assert_allclose(decomposed(a, compute_uv=False)[0], np.linalg.svd(a, compute_uv=False), atol=1e-5)


def test_values_that_are_not_finite_give_nan():
    batch = matrix(3, 4, 3)
    batch[0, 1, 1], batch[1, 2, 0] = np.nan, np.inf
    for x in decomposed(batch, full_matrices=True):
        assert np.isnan(x[:2]).all() and np.isfinite(x[2]).all()


# ---- programs for TPUs -------------------------------------------------------------------------------


def lowered(side, function, *args):
    return side.jit(function).trace(*args).lower(lowering_platforms=("tpu",)).as_text()


def calls(text):
    """The operations of a program's module, and their operands; the text can be parsed again."""
    assert canonical(text)
    found = re.findall(r"custom_call @(\w+)\(.*\) \{.*\} : (.*)", text)
    return sorted(found) + re.findall(r"func.func public @main\(.*\) -> (.*) \{", text)


TEXTS = {
    "tall": ((9, 4), dict(full_matrices=False)),
    "tall, full": ((9, 4), dict(full_matrices=True)),
    "wide": ((4, 9), dict(full_matrices=False)),
    "square": ((5, 5), dict(full_matrices=True)),
    "some": ((9, 4), dict(full_matrices=False, subset_by_index=(1, 3))),
    "all by index": ((9, 4), dict(full_matrices=True, subset_by_index=(0, 4))),
    "values of some": ((4, 4), dict(full_matrices=False, compute_uv=False, subset_by_index=(0, 1))),
    "values": ((4, 4), dict(compute_uv=False)),
    "batch": ((2, 3, 9, 4), dict(full_matrices=True)),
    "no elements": ((2, 0, 3), dict(full_matrices=True)),
}


@pytest.mark.parametrize("name", TEXTS)
def test_programs_have_the_calls_of_jax_s(name):
    shape, how = TEXTS[name]
    dtypes = ("float32", "complex64", "bfloat16", "float16")
    dtype = dtypes[list(TEXTS).index(name) % len(dtypes)]
    same(lambda jax: calls(lowered(jax, lambda x: jax.lax.linalg.svd(x, **how), jax.numpy.zeros(shape, dtype))))


def test_derivatives_and_batches_are_lowered():
    def total(x):
        u, s, vt = lax.linalg.svd(x, full_matrices=False)
        return s.sum() + abs(u).sum() + abs(vt).sum()

    assert calls(lowered(minijax, minijax.grad(total), matrix(4, 3)))
    assert calls(lowered(minijax, minijax.vmap(minijax.jacfwd(total), 2), matrix(4, 3, 2)))


def test_there_is_one_algorithm():
    for name in ("QR", "JACOBI", "DIVIDE_AND_CONQUER"):
        with pytest.raises(NotImplementedError, match="Only the POLAR"):
            lowered(minijax, lambda x: lax.linalg.svd(x, algorithm=lax.linalg.SvdAlgorithm[name]), matrix(2, 2))  # noqa: B023
