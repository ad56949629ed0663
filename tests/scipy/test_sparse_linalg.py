"""Iterative solvers: jaxprs, solutions, derivatives and errors, against jax, and against direct solutions."""

import numpy as np
import pytest
from compare import Case, same_misuse, sweep

import minijax as jax
import minijax.numpy as jnp
from minijax.scipy.sparse import linalg

A = np.float32([[4, 1, 0], [1, 3, 1], [0, 1, 5]])
G = np.float32([[4, 1, 0.5], [-1, 3, 1], [0.25, -1, 5]])
B = np.float32([1, 2, 3])
CLOSE = {"rtol": 2e-5, "atol": 1e-6, "why": "XLA fuses the sums of a step in another way"}


def solution(name, **options):
    def program(jax):
        return lambda *operands: getattr(jax.scipy.sparse.linalg, name)(*operands, **options)[0]

    return program


def of_trees(name, **options):
    def program(jax):
        solver = getattr(jax.scipy.sparse.linalg, name)
        product = lambda x: {"a": A @ x["a"]}  # noqa: E731
        options.update(M=lambda x: {"a": x["a"] / 4}, tol=1e-3, atol=0.01, maxiter=7)
        return lambda b: solver(product, {"a": b}, x0={"a": b / 2}, **options)[0]

    return program


@pytest.mark.oracle
def test_solutions_are_those_of_jax(tier):
    """jaxprs of solvers that are not symmetric take what they captured in another order."""
    same = [Case("cg", solution("cg"), (A, B), tolerance=CLOSE)]
    sweep(same, tier)
    others = [
        Case("cg of trees", of_trees("cg"), (B,), tolerance=CLOSE),
        Case("cg, complex", solution("cg"), (A + 0j, B * 1j), tolerance=CLOSE),
        Case("bicgstab", solution("bicgstab"), (G, B), tolerance=CLOSE),
        Case("bicgstab of trees", of_trees("bicgstab"), (B,), tolerance=CLOSE),
        Case("gmres", solution("gmres"), (G, B), tolerance=CLOSE),
        Case("gmres, incremental", solution("gmres", solve_method="incremental", restart=2), (G, B), tolerance=CLOSE),
        Case("gmres, complex", solution("gmres", maxiter=2), (G + 0j, B * 1j), tolerance=CLOSE),
        Case("grad", lambda jax: jax.grad(lambda *xs: solution("cg")(jax)(*xs).sum(), (0, 1)), (A, B), tolerance=CLOSE),
        Case("vmap", lambda jax: jax.vmap(solution("bicgstab")(jax), (None, 1)), (G, np.eye(3, 2, dtype=np.float32)),
             tolerance=CLOSE),
        Case("jit of vmap of grad", lambda jax: jax.jit(jax.vmap(jax.grad(
            lambda b, a: solution("gmres", maxiter=2)(jax)(a, b)[0]), (0, None))), (np.stack([B, -B]), G), tolerance=CLOSE),
    ]  # fmt: skip
    sweep(others, tier, jaxpr=False)


@pytest.mark.oracle
def test_weak_right_sides_are_solved_as_by_jax(tier):
    def of_number(name):
        return lambda jax: lambda b: getattr(jax.scipy.sparse.linalg, name)(lambda x: 2 * x, b)[0]

    sweep([Case("cg", of_number("cg"), (3.0,))], tier)
    sweep([Case(name, of_number(name), (3.0,), tolerance=CLOSE) for name in ("gmres", "bicgstab")], tier, jaxpr=False)


def test_any_object_with_matmul_is_an_operator():
    class Doubled:
        shape = (3, 3)

        def __matmul__(self, x):
            return 2 * x

    for solve in (linalg.cg, linalg.bicgstab, linalg.gmres):
        np.testing.assert_allclose(solve(Doubled(), B)[0], B / 2, rtol=1e-5)


MISUSES = {
    "cg(3.0, B)": "must be either a function or ndarray",
    "cg(A[:2], B)": "must be a square matrix",
    "bicgstab(A, B, x0=(B,))": "matching tree structure",
    "cg(A, B, x0=B[:2])": "matching shapes",
    "gmres(A, B, solve_method='x')": "invalid solve_method",
}


@pytest.mark.oracle
@pytest.mark.parametrize("text", MISUSES)
def test_bad_calls_are_refused(text):
    same_misuse(f"__import__('importlib').import_module(jax.__name__ + '.scipy.sparse.linalg').{text}",
                {"A": A, "B": B}, MISUSES[text])  # fmt: skip


@pytest.mark.parametrize("solver", ["cg", "bicgstab", "gmres", "incremental"])
def test_solutions_and_derivatives_are_those_of_a_direct_solver(solver):
    options = {"solve_method": "incremental"} if solver == "incremental" else {}
    function = linalg.gmres if solver == "incremental" else getattr(linalg, solver)
    a = A if solver == "cg" else G

    def solved(a, b):
        return function(a, b, tol=1e-7, **options)[0]

    # Plain arrays too, which several traces capture.
    np.testing.assert_allclose(solved(a, B), np.linalg.solve(a, B), rtol=1e-4)
    mine = jax.grad(lambda a, b: jnp.sin(solved(a, b)).sum(), (0, 1))(a, B)
    direct = jax.grad(lambda a, b: jnp.sin(jnp.linalg.solve(a, b)).sum(), (0, 1))(a, B)
    for x, y in zip(mine, direct, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-3, atol=1e-5)


def test_failures_are_reported():
    assert linalg.gmres(jnp.eye(2), jnp.ones(2), x0=jnp.full(2, jnp.nan))[1] == -1
    assert linalg.gmres(jnp.eye(2), jnp.ones(2))[1] == 0
    assert linalg.cg(jnp.eye(2), jnp.ones(2))[1] is None
