"""LOBPCG and the direct solver of sparse systems, against jax and NumPy."""

import importlib
import warnings

import numpy as np
import pytest
from compare import same_printed
from sparse_language import f32, i32, same_function, same_result

import minijax
from minijax.experimental.sparse.linalg import lobpcg_standard, spsolve

oracle = pytest.mark.oracle
N, K = 24, 3


def hermitian(n=N, dtype=np.float32):
    a = np.random.RandomState(0).standard_normal((n, n))
    return (a @ a.T / n).astype(dtype)


def start(n=N, k=K, dtype=np.float32):
    return np.random.RandomState(1).standard_normal((n, k)).astype(dtype)


@oracle
def test_lobpcg_reads_as_jax_s():
    def solve(jax, sparse):
        linalg = importlib.import_module(f"{sparse.__name__}.linalg")
        return lambda A, X, tol: linalg.lobpcg_standard(A, X, 5, tol)

    same_function(solve, hermitian(), start(), f32(1e-4), rtol=1e-4, atol=1e-4, why="rounding grows over iterations")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_lobpcg_has_the_largest_eigenvalues(dtype):
    with minijax.enable_x64(dtype == np.float64):
        a = hermitian(dtype=dtype)
        w, v, iterations = lobpcg_standard(a, start(dtype=dtype), m=200)
        assert w.dtype == dtype and v.shape == (N, K) and 0 < iterations <= 200
        eps = np.finfo(dtype).eps
        np.testing.assert_allclose(w, np.linalg.eigvalsh(a)[::-1][:K], rtol=200 * eps)
        residuals = np.linalg.norm(a @ v - np.asarray(w) * np.asarray(v), axis=0)
        assert (residuals < 20 * N * eps * np.asarray(w)).all()
        np.testing.assert_allclose(np.asarray(v).T @ v, np.eye(K), atol=100 * eps)
        of_function = lobpcg_standard(lambda x: minijax.numpy.dot(a, x, precision="highest"), start(dtype=dtype), m=200)
        np.testing.assert_allclose(of_function[0], w, rtol=100 * eps)


def test_lobpcg_of_a_singular_matrix():
    basis = np.linalg.qr(start(N, 2))[0]
    w, _, _ = lobpcg_standard((basis * f32([3, 2])) @ basis.T, start())
    np.testing.assert_allclose(w, [3, 2, 0], atol=1e-5)


@oracle
@pytest.mark.parametrize(
    "operands",
    [
        (hermitian(), start(N, 5)),
        (hermitian(), start()[:, :0]),
        (hermitian(), start().astype(np.float16)),
        (hermitian()[0], start()),
        (hermitian(), start()[:, 0]),
    ],
)
def test_lobpcg_misuse_raises_as_jax(operands):
    def program(sparse):
        linalg = importlib.import_module(f"{sparse.__name__}.linalg")
        return linalg.lobpcg_standard(*operands)

    same_result(program)


MATRIX = f32([[4, 1, 0], [1, 3, 0], [0, 2, 5]])
DATA, COLUMNS, ROWS = f32([4, 1, 1, 3, 2, 5]), i32([0, 1, 0, 1, 1, 2]), i32([0, 2, 4, 6])


def solver(jax, sparse):
    linalg = importlib.import_module(f"{sparse.__name__}.linalg")
    return linalg.spsolve


@oracle
def test_solutions_and_derivatives_read_as_jax_s():
    b = f32([1, 2, 3])
    operands = DATA, COLUMNS, ROWS, b
    same_function(solver, *operands)
    same_function(lambda jax, sparse: jax.grad(lambda *xs: solver(jax, sparse)(*xs).sum(), (0, 3)), *operands)

    def pushed(jax, sparse):
        return lambda d, i, p, b: jax.jvp(lambda d, b: solver(jax, sparse)(d, i, p, b), (d, b), (d, b))

    same_function(pushed, *operands)

    def text(side):
        f = solver(side, importlib.import_module(f"{side.__name__}.experimental.sparse"))
        return side.jit(f).trace(*operands).lower(lowering_platforms=("cuda",)).as_text()

    same_printed("text", text, operands)


def test_solutions_are_those_of_dense_systems():
    b = f32([1, 2, 3])
    np.testing.assert_allclose(spsolve(DATA, COLUMNS, ROWS, b), np.linalg.solve(MATRIX, b), rtol=1e-6)
    _, column = minijax.jvp(lambda b: spsolve(DATA, COLUMNS, ROWS, b), (b,), (f32([0, 1, 0]),))
    np.testing.assert_allclose(column, np.linalg.inv(MATRIX)[:, 1], rtol=1e-5, atol=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert np.isnan(spsolve(0 * DATA, COLUMNS, ROWS, b)).all()


@oracle
@pytest.mark.parametrize(
    "operands",
    [
        (DATA.astype(np.int32), COLUMNS, ROWS, f32([1, 2, 3])),
        (DATA, COLUMNS, ROWS, f32([[1, 2, 3]])),
        (DATA, COLUMNS, ROWS[:-1], f32([1, 2, 3])),
        (DATA[:-1], COLUMNS, ROWS, f32([1, 2, 3])),
        (DATA, COLUMNS.astype(np.float32), ROWS, f32([1, 2, 3])),
        (DATA, COLUMNS, ROWS, f32([1, 2, 3]), 1e-6, 7),
    ],
)
def test_solver_misuse_raises_as_jax(operands):
    def program(sparse):
        linalg = importlib.import_module(f"{sparse.__name__}.linalg")
        return linalg.spsolve(*operands)

    same_result(program)
