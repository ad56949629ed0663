"""Tridiagonal systems, against jax."""

import numpy as np
import pytest
from compare import Case, sweep
from linalg_cases import case, matrix, same_on_platforms, same_refusals, with_doubles
from transform_matrix import transformed

import minijax
from minijax.composed.linalg.triangular import _thomas

pytestmark = pytest.mark.oracle


def system(*batch, n=3, columns=2, dtype=np.float32):
    diagonals = [matrix(*batch, n, dtype=dtype, seed=i) for i in range(3)]
    return *diagonals, matrix(*batch, n, columns, dtype=dtype, seed=3)


@pytest.mark.parametrize("perturb_singular", [False, True])
def test_systems_equal_jax_s(perturb_singular):
    sizes = [dict(n=n) for n in (0, 1, 2, 5)] + [dict(columns=0), dict(dtype=np.complex64)]
    cases = [case("tridiagonal_solve", *system(**size), perturb_singular=perturb_singular) for size in sizes]
    batched = [case("tridiagonal_solve", *system(*b), perturb_singular=perturb_singular) for b in ((2,), (2, 0))]
    sweep([*cases, *batched])


@pytest.mark.parametrize("transform", ["jvp", "vjp", "linearize", "vmap", "vmap_of_grad"])
def test_transforms_equal_jax_s(transform):
    sweep([transformed(case("tridiagonal_solve", *system(*b)), transform) for b in ((), (2,))])
    if transform in ("jvp", "vjp"):
        sweep([transformed(case("tridiagonal_solve", *system(dtype=np.complex64)), transform)])


@pytest.mark.parametrize("at", [(0,), (1,), (2,), (3,), (1, 3)], ids=str)
def test_derivatives_by_some_operands_equal_jax_s(at):
    def program(jax, lax):
        def pushed(*args):
            def f(*chosen):
                given = dict(zip(at, chosen, strict=True))
                return lax.linalg.tridiagonal_solve(*(given.get(i, x) for i, x in enumerate(args)))

            chosen = [args[i] for i in at]
            return jax.jvp(f, chosen, chosen)

        return pushed

    sweep([Case(str(at), program, system())])


@pytest.mark.parametrize("axes", [(None, None, None, 0), (None, None, None, 2), (1, None, None, None),
                                  (None, 0, None, 1)], ids=str)  # fmt: skip
def test_any_operand_can_be_mapped(axes):
    args = [x if d is None else np.stack([x, x * 2], d) for x, d in zip(system(), axes, strict=True)]
    solve = lambda jax, lax: jax.vmap(lax.linalg.tridiagonal_solve, axes)  # noqa: E731
    sweep([Case(str(axes), solve, tuple(args))])


def test_double_precision_equals_jax_s():
    with_doubles([case("tridiagonal_solve", *system(dtype=d)) for d in (np.float64, np.complex128)])


def test_a_singular_system_gives_nan_or_a_large_solution():
    zeros = np.zeros(2, np.float32)
    solve = minijax.lax.linalg.tridiagonal_solve
    assert np.isnan(solve(zeros, zeros, zeros, np.ones((2, 1), np.float32))).all()
    sweep([case("tridiagonal_solve", zeros, zeros, zeros, np.ones((2, 1), np.float32), perturb_singular=True)])


def test_texts_for_other_platforms_equal_jax_s():
    same_on_platforms([case("tridiagonal_solve", *system(2))], ("cpu", "cuda", "rocm"))
    same_on_platforms([case("tridiagonal_solve", *system(2), perturb_singular=True)])


@pytest.mark.parametrize("n", [1, 2, 5, pytest.param(40, marks=pytest.mark.full)])
def test_elimination_solves_systems_where_no_library_does(n):
    dl, d, du, b = system(2, n=n)
    d = d + 4
    (x,) = minijax.jit(_thomas)(dl, d, du, b)
    # LAPACK eliminates in another order; the system is well conditioned.
    np.testing.assert_allclose(x, minijax.lax.linalg.tridiagonal_solve(dl, d, du, b), rtol=1e-5, atol=1e-6)


def test_arguments_that_do_not_fit_are_refused():
    z = lambda *shape, dtype=np.float32: np.zeros(shape, dtype)  # noqa: E731
    same_refusals([case("tridiagonal_solve", *xs) for xs in (
        (z(3), z(3), z(3), z(3)), (z(2), z(3), z(2), z(3, 1)), (z(3), z(3), z(3), z(2, 1)),
        (z(2, 3), z(2, 3), z(2, 3), z(3, 1)), (z(3, dtype=np.int32),) * 3 + (z(3, 1, dtype=np.int32),),
        (z(3), z(3), z(3), z(3, 1, dtype=np.complex64)), (z(), z(), z(), z(3, 1)),
        (z(3, dtype=np.float16),) * 3 + (z(3, 1, dtype=np.float16),))])  # fmt: skip
