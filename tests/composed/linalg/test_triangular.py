"""Triangular systems, decompositions and custom_linear_solve, against jax: programs, texts and values."""

import os

import compare
import numpy as np
import pytest
from compare import Mismatch, outcome, placed, same, same_jaxpr, same_text, same_value, sampled, wide_numbers

import minijax
from minijax.higher.custom_solve import custom_linear_solve
from minijax.lax import linalg
from minijax.primitives import dot, elementwise, reduce

jax = compare.theirs()

pytestmark = pytest.mark.oracle

RANDOM = np.random.default_rng(0)
FIRST = RANDOM.bit_generator.state
DTYPES = [np.float32, np.complex64]
DOUBLE = [np.float64, np.complex128]


@pytest.fixture(autouse=True)
def each_test_draws_the_same_numbers():
    RANDOM.bit_generator.state = FIRST


def random(*shape, dtype=np.float32):
    x = RANDOM.normal(size=shape)
    return (x + 1j * RANDOM.normal(size=shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def compared(make, *args, transform=None, values=True, text=True):
    """`make(lax.linalg)` on both sides, transformed: jaxprs, texts and values are equal.

    Transformed functions run outside jit, and where texts are equal inside, in this run's tenth alone.
    """
    eager = transform is None or sampled(os.environ["PYTEST_CURRENT_TEST"])

    def program(jax):
        f = make(jax.lax.linalg)
        return f if transform is None else transform(jax, f)

    same_jaxpr(program, *args)
    if text:
        same_text(program, *args)
    if values and (eager or not text):
        same(lambda jax: jax.jit(program(jax))(*args))
    if values and eager:
        same(lambda jax: program(jax)(*args))


def jvp(side, f):
    return lambda *args: side.jvp(f, args, args)


def vjp(side, f):
    return lambda *args: side.vjp(f, *args)[1](f(*args))


SOLVES = [
    dict(left_side=True, lower=True),
    dict(left_side=True, transpose_a=True, conjugate_a=True, unit_diagonal=True),
    dict(lower=True, conjugate_a=True),
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("how", SOLVES, ids=str)
def test_triangular_systems_agree_with_jax(how, dtype):
    a, b = random(2, 3, 3, dtype=dtype), random(2, 3, 3, dtype=dtype)
    make = lambda lax: lambda a, b: lax.triangular_solve(a, b, **how)  # noqa: E731
    compared(make, a, b)
    compared(make, a[0], b[0, :, 0] if how.get("left_side") else b[0, 0])
    for x, y in ((a[0], b[0, :, :2]), (a[0], b[0, :2])):
        if x.shape[-1] == y.shape[-2 if how.get("left_side") else -1]:
            compared(make, x, y, transform=jvp, values=False)
    compared(make, a, b, transform=vjp)
    for axes in ((None, 1), (0, None), (2, 0)):
        x, y = (v[0] if d is None else v for v, d in zip((a, np.moveaxis(b, 0, axes[1] or 0)), axes, strict=True))
        x = np.moveaxis(x, 0, 2) if axes[0] == 2 else x
        compared(make, x, y, transform=lambda side, f, axes=axes: side.vmap(f, axes), values=False)


def test_the_order_of_parameters_does_not_matter_to_eager_operations():
    a, b = random(3, 3), random(3, 3)
    flags = dict(left_side=True, lower=False, transpose_a=False, conjugate_a=False, unit_diagonal=False)
    turned = dict(transpose_a=False, left_side=True, lower=False, conjugate_a=False, unit_diagonal=False)
    other = dict(transpose_a=True, left_side=False, lower=False, conjugate_a=False, unit_diagonal=False)
    solve = linalg.triangular_solve_p.bind
    x = np.asarray(solve(a, b, **flags))
    assert not np.array_equal(x, np.asarray(solve(a, b, **other)))
    assert np.array_equal(x, np.asarray(solve(a, b, **turned)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_cholesky_agrees_with_jax(dtype):
    a = random(3, 3, dtype=dtype)
    positive = (a @ a.conj().T + np.eye(3)).astype(dtype)
    make = lambda lax: lax.cholesky  # noqa: E731
    for x in (positive, np.stack([positive, -positive]), positive[:0, :0]):
        compared(make, x)
        compared(make, x, transform=jvp, values=False)
    compared(make, positive, transform=vjp)
    compared(lambda lax: lambda x: lax.cholesky(x, symmetrize_input=False), positive)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 3), (2, 3, 3), (3, 2), (2, 3), (0, 3)], ids=str)
def test_lu_agrees_with_jax(shape, dtype):
    # jax's loop over pivots converts its counter to the dtype that it has: texts differ in this alone.
    x = random(*shape, dtype=dtype)
    compared(lambda lax: lax.lu, x, text=False)
    first = lambda lax: lambda x: lax.lu(x)[0]  # noqa: E731
    compared(first, x, transform=jvp, text=False, values=False)
    compared(first, x, transform=vjp, text=False)


@pytest.mark.parametrize("pivots, size", [([2, 1, 2], 3), ([[2, 1], [1, 1]], 4), (np.zeros(0), 2)])
def test_pivots_make_the_permutation_that_jax_finds(pivots, size):
    pivots = np.array(pivots, np.int32)
    compared(lambda lax: lambda p: lax.lu_pivots_to_permutation(p, size), pivots, text=False)


VALUES_ONLY = dict(compute_left_eigenvectors=False, compute_right_eigenvectors=False)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 3), (2, 3, 3), (2, 0, 0)], ids=str)
def test_eig_agrees_with_jax(shape, dtype):
    x = random(*shape, dtype=dtype)
    values = lambda lax: lambda x: lax.eig(x, **VALUES_ONLY)  # noqa: E731
    compared(lambda lax: lax.eig, x)
    compared(values, x)
    if x.size:
        compared(values, x, transform=jvp, text=False)
        everything = lambda lax: lambda x: lax.eig(x, enable_eigvec_derivs=True)  # noqa: E731
        compared(everything, x, transform=jvp, text=False, values=False)


def test_matrices_without_eigenvalues_give_nan():
    x = random(2, 3, 3)
    x[0, 0, 0] = np.nan
    compared(lambda lax: lax.eig, x)


@pytest.mark.parametrize("dtype", DTYPES)
def test_hermitian_eigenvalues_agree_with_jax(dtype):
    x = random(2, 3, 3, dtype=dtype)
    compared(lambda lax: lax.eigh, x)
    compared(lambda lax: lambda x: lax.eigh(x, lower=False, symmetrize_input=False), x[0])
    compared(lambda lax: lax.eigh, x, transform=jvp)
    compared(lambda lax: lax.eigh, x[0], transform=vjp)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("how", [dict(compute_uv=False), dict(full_matrices=False), dict()], ids=str)
def test_singular_values_agree_with_jax(how, dtype):
    make = lambda lax: lambda x: lax.svd(x, **how)  # noqa: E731
    for shape in ((3, 3), (2, 3, 2), (0, 3)):
        compared(make, random(*shape, dtype=dtype))
    compared(make, random(2, 3, 3, dtype=dtype), transform=jvp)
    compared(make, random(3, 3, dtype=dtype), transform=vjp)


@pytest.mark.parametrize("dtype", DOUBLE)
def test_double_precision_agrees_with_jax(dtype):
    x = random(3, 3, dtype=dtype)
    with wide_numbers():
        everything = lambda lax: lambda x: [lax.eig(x), lax.lu(x), lax.svd(x), lax.eigh(x)]  # noqa: E731
        compared(everything, x, text=False)
        compared(lambda lax: lambda x: lax.eig(x, **VALUES_ONLY), x, transform=vjp_of_values, text=False)


def vjp_of_values(side, f):
    return lambda x: side.vjp(f, x)[1](f(x))


class OurLax:
    mul, custom_linear_solve = elementwise.mul, staticmethod(custom_linear_solve)
    dot_general, reduce_sum = staticmethod(dot.dot_general), staticmethod(reduce.reduce_sum)


def solver(symmetric=False, has_aux=False, transposed=True):
    def make(side):
        lax = OurLax if side is minijax else jax.lax

        def solve_with(a, b):
            def solve(matvec, x):
                found = lax.mul(x, lax.reduce_sum(a, (0,)))
                return (found, {"b": x}) if has_aux else found

            matvec = lambda x: lax.dot_general(a, x, (((1,), (0,)), ((), ())))  # noqa: E731
            return lax.custom_linear_solve(matvec, b, solve, solve if transposed else None, symmetric, has_aux)

        return solve_with

    return make


@pytest.mark.parametrize("how", [{}, dict(symmetric=True), dict(has_aux=True), dict(transposed=False)], ids=str)
def test_custom_linear_solve_agrees_with_jax(how):
    a, b = random(3, 3), random(3)
    make = solver(**how)
    mapped = [(None, 0), (0, None), (2, 1)]
    programs = [(lambda side, f: f, (a, b)), (jvp, (a, b))]
    for axes in mapped:
        args = tuple(x if d is None else np.stack([x, x], d) for x, d in zip((a, b), axes, strict=True))
        programs.append((lambda side, f, axes=axes: side.vmap(f, axes), args))
    if how.get("transposed", True) and not how.get("has_aux"):
        programs.append((vjp, (a, b)))
    for transform, args in programs:
        program = lambda jax, transform=transform: transform(jax, make(jax))  # noqa: E731
        same_jaxpr(program, *args)
        same(lambda jax, program=program, args=args: jax.jit(program(jax))(*placed(jax, args)))


def raised(call):
    """The name of the class of what a call raises."""
    with pytest.raises(Exception) as caught:
        call()
    return type(caught.value).__name__


@pytest.mark.parametrize("a, b", [((2, 3), (3, 3)), ((3,), (3,)), ((3, 3), (2, 3)), ((3, 3), (2, 3, 3))], ids=str)
def test_systems_of_wrong_shapes_are_refused_as_by_jax(a, b):
    x, y = np.ones(a, np.float32), np.ones(b, np.float32)
    same(lambda jax: raised(lambda: jax.lax.linalg.triangular_solve(x, y, left_side=True)))


@pytest.mark.parametrize("name", ["lu", "eig", "svd", "cholesky"])
@pytest.mark.parametrize("shape, dtype", [((3,), np.float32), ((2, 2), np.int32), ((2, 3), np.float32)], ids=str)
def test_wrong_matrices_are_refused_as_by_jax(name, shape, dtype):
    x = np.ones(shape, dtype)

    def program(jax):
        result = outcome(lambda: jax.eval_shape(getattr(jax.lax.linalg, name), x))
        return result.value if result.error is None else type(result.error).__name__

    same(program)


@pytest.mark.parametrize("place", range(3))
def test_functions_that_do_not_fit_the_right_hand_side_are_refused(place):
    functions = [lambda *args: args[-1]] * 3
    functions[place] = lambda *args: (args[-1], args[-1])
    with pytest.raises(ValueError, match="output shapes must match b"):
        custom_linear_solve(functions[0], np.ones(3, np.float32), *functions[1:])


def test_a_wrong_derivative_is_found():
    with pytest.raises(Mismatch):
        same_value(linalg.eig(random(3, 3)), jax.lax.linalg.eig(random(3, 3)))
