"""Eigenvalues of large matrices as TPUs compute them: the numbers, of the same program on a CPU, and its text."""

import importlib
import re

import numpy as np
import pytest
from compare import canonical, same
from linalg_cases import matrix

import minijax
from minijax import lax
from minijax.composed.linalg.eigen import mirrored
from minijax.composed.linalg.spectral import spectral_eigh
from minijax.higher import mapping

pytestmark = pytest.mark.oracle

N, LEAF = 20, 8


def hermitian(n, seed=0):
    x = matrix(n, n, dtype=np.complex128, seed=seed)
    return (x + x.conj().T) / 2


def with_eigenvalues(values):
    q, _ = np.linalg.qr(matrix(len(values), len(values), dtype=np.complex128))
    return q * values @ q.conj().T


BATCH = {
    "any": hermitian(N),
    "zeros": np.zeros((N, N)),
    "unit": np.eye(N),
    "diagonal": np.diag(np.arange(N)[::-1]),
    "rank 3": with_eigenvalues([0] * (N - 3) + [1, 2, 3]),
    "two values": with_eigenvalues([1] * 12 + [-1] * 8),
    "clusters": with_eigenvalues([1] * 9 + [2] * 6 + [3 + 1e-6 * i for i in range(5)]),
    "graded": with_eigenvalues(np.logspace(0, -15, N)),
    "one far away": with_eigenvalues([1e4] + [1e-3 * i for i in range(N - 1)]),
    "columns in pairs": np.kron(np.diag(range(N // 2)), np.ones((2, 2))),
    # The median of its diagonal is an eigenvalue.
    "a path": np.pad(np.eye(N - 1, k=1) + np.eye(N - 1, k=-1), ((0, 1), (0, 1))),
    "tiny": 1e-30 * hermitian(N, 1),
    "huge": 1e30 * hermitian(N, 2),
}


def run(batch, leaf=LEAF, **how):
    def one(x):
        return spectral_eigh(x, lambda x: lax.linalg.eigh(x, symmetrize_input=False), leaf, **how)

    return minijax.jit(lambda xs: mapping.map(one, xs))(batch)


def require_eigen(a, v, w, expected):
    eps, size = np.finfo(a.dtype).eps, np.linalg.norm(a.astype(np.complex128))
    assert v.dtype == a.dtype and w.dtype == a.real.dtype and v.shape == (len(a), len(w))
    np.testing.assert_allclose(w, expected, rtol=0, atol=8 * eps * size)
    np.testing.assert_allclose(a @ v, v * w, rtol=0, atol=8 * eps * size)
    np.testing.assert_allclose(v.conj().T @ v, np.eye(len(w)), rtol=0, atol=64 * eps)


@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
def test_eigenvectors_are_permuted_with_the_eigenvalues(dtype):
    batch = np.stack([a if np.dtype(dtype).kind == "c" else a.real for a in BATCH.values()]).astype(dtype)
    with minijax.enable_x64(True):
        results = run(batch)
    for a, v, w in zip(batch, *map(np.asarray, results), strict=True):
        require_eigen(a, v, w, np.linalg.eigvalsh(a))


@pytest.mark.parametrize("subset", [(5, 11), (18, 20)])
def test_some_eigenvalues(subset):
    batch = np.stack([BATCH[k].real for k in ("any", "two values", "clusters", "diagonal")]).astype(np.float32)
    for a, v, w in zip(batch, *map(np.asarray, run(batch, subset=subset)), strict=True):
        require_eigen(a, v, w, np.linalg.eigvalsh(a)[slice(*subset)])


def test_many_parts_in_any_order():
    a = hermitian(29).real.astype(np.float32)
    (v,), (w,) = map(np.asarray, run(a[None], 4, sort_eigenvalues=False))
    order = np.argsort(w)
    require_eigen(a, v[:, order], w[order], np.linalg.eigvalsh(a))


def test_values_that_are_not_finite_give_nan():
    batch = np.stack([hermitian(N).real.astype(np.float32)] * 3)
    batch[0, 3, 5] = batch[0, 5, 3] = np.nan
    batch[1, 2, 2] = np.inf
    for x in map(np.asarray, run(batch)):
        assert np.isnan(x[:2]).all() and np.isfinite(x[2]).all()


def test_of_half_a_precision_eigenvalues_are_counted_exactly():
    a = minijax.numpy.asarray(hermitian(N).real[None], "bfloat16")
    v, w = run(a)
    assert v.dtype == w.dtype == a.dtype
    expected = np.linalg.eigvalsh(np.asarray(a, np.float32))
    np.testing.assert_allclose(np.asarray(w, np.float32), expected, rtol=0.01, atol=0.01)


# ---- programs for TPUs -------------------------------------------------------------------------------


def lowered(side, function, *args):
    return side.jit(function).trace(*args).lower(lowering_platforms=("tpu",)).as_text()


def calls(text):
    """The operations of a program's module, and their operands; the text can be parsed again."""
    assert canonical(text)
    found = re.findall(r"custom_call @(\w+)\(.*\) \{.*\} : (.*)", text)
    return sorted(set(found)) + re.findall(r"func.func public @main\(.*\) -> (.*) \{", text)


TEXTS = {
    "300 rows": ((300, 300), "float32", {}),
    "several sizes": ((600, 600), "complex64", {}),
    "a batch": ((2, 2, 300, 300), "float32", {}),
    "some": ((300, 300), "float32", dict(subset_by_index=(1, 3))),
    "upper": ((300, 300), "complex64", dict(lower=False, symmetrize_input=False, sort_eigenvalues=False)),
    "asked for": ((300, 300), "float32", dict(implementation="QDWH")),
    "small, asked for": ((5, 5), "float32", dict(implementation="QDWH")),
    "large, Jacobi": ((300, 300), "float32", dict(implementation="JACOBI")),
    "small, some": ((5, 5), "float32", dict(subset_by_index=(1, 3))),
    "no rows": ((2, 0, 0), "complex64", {}),
}


def eigh(side, **how):
    if "implementation" in how:
        how["implementation"] = side.lax.linalg.EighImplementation[how["implementation"]]
    return lambda x: side.lax.linalg.eigh(x, **how)


@pytest.mark.parametrize("name", TEXTS)
def test_programs_have_the_calls_of_jax_s(name):
    shape, dtype, how = TEXTS[name]
    same(lambda jax: calls(lowered(jax, eigh(jax, **how), jax.ShapeDtypeStruct(shape, dtype))))


def test_one_triangle_is_read():
    x = matrix(2, 3, 3, dtype=np.complex64)
    for lower in (True, False):
        half = np.tril(x, -1) if lower else np.triu(x, 1)
        diagonal = np.einsum("bii->bi", x).real[..., None] * np.eye(3)
        np.testing.assert_array_equal(mirrored(x, lower), half + half.conj().swapaxes(-1, -2) + diagonal)


def test_derivatives_batches_and_singular_values_of_large_matrices_are_lowered():
    x = np.zeros((300, 300), np.float32)
    assert calls(lowered(minijax, minijax.grad(lambda x: lax.linalg.eigh(x)[0].sum()), x))
    assert calls(lowered(minijax, minijax.vmap(lax.linalg.eigh, 2), np.zeros((300, 300, 2), np.float32)))
    assert calls(lowered(minijax, lambda x: lax.linalg.svd(x, full_matrices=False, subset_by_index=(0, 3)), x))


def test_batches_alone_may_be_symbolic():
    jax = pytest.importorskip("jax")
    for shape in ("b, 300, 300", "b, 4, 4", "n, n"):
        for side in (minijax, jax):
            x = side.ShapeDtypeStruct(
                importlib.import_module(f"{side.__name__}.export").symbolic_shape(shape), np.float32
            )
            if shape == "n, n":
                with pytest.raises(NotImplementedError):
                    lowered(side, eigh(side), x)
            else:
                assert "Eigh" in lowered(side, eigh(side), x)


def test_arguments_that_do_not_fit_are_refused():
    jax = pytest.importorskip("jax")
    for how, error in (
        (dict(subset_by_index=(1, 9)), ValueError),
        (dict(subset_by_index=(-1, 3)), ValueError),
        (dict(subset_by_index=(2, 2)), ValueError),
        (dict(implementation="QR"), NotImplementedError),
    ):
        for side in (minijax, jax):
            with pytest.raises(error):
                lowered(side, eigh(side, **how), matrix(4, 4))
