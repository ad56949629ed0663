"""QR, pseudo-inverses, ranks, condition numbers and least squares of `jax.numpy.linalg`, against jax."""

import compare
import numpy as np
import pytest
from compare import Case, same, same_error, sweep
from linalg_cases import matrix
from transform_matrix import transformed

import minijax

jax = compare.theirs()

pytestmark = pytest.mark.oracle

TALL, SQUARE, VECTOR, UNIT = matrix(3, 2), matrix(3, 3), matrix(3), np.eye(3, dtype=int)
STACK, COMPLEX = matrix(2, 3, 2), matrix(2, 3, 2, dtype=np.complex64)


def case(name, *args, **how):
    shapes = [f"{x.dtype}{list(x.shape)}" for x in args]
    given = lambda jnp: lambda *args: getattr(jnp.linalg, name)(*args, **how)  # noqa: E731
    return Case(f"{name} {how} {shapes}", given, args)


QR = [case("qr", TALL, mode=mode) for mode in ("reduced", "complete", "r", "raw", "full")] + [case("qr", UNIT)]
HERMITIAN = [case("svd", matrix(2, 3, 3, dtype=d), hermitian=True) for d in (np.float32, np.complex64)] + [
    case("svd", SQUARE, hermitian=True, compute_uv=False)
]
PINV = [case("pinv", x) for x in (TALL, TALL.T, COMPLEX, TALL[:0], UNIT)] + [
    case("pinv", STACK, rtol=0.1),
    case("pinv", TALL, rcond=0.1),
    case("pinv", SQUARE, hermitian=True),
]
RANK = [case("matrix_rank", x) for x in (TALL, VECTOR, COMPLEX, UNIT)] + [
    case("matrix_rank", TALL, tol=0.1),
    case("matrix_rank", STACK, np.array([0.1, 0.2], np.float32)),
    case("matrix_rank", SQUARE, hermitian=True),
]
COND = [case("cond", SQUARE, p=p) for p in (None, 2, -2, 1, -np.inf, "fro", "nuc")] + [
    case("cond", matrix(2, 3, 3), p=1),
    case("cond", UNIT),
]
LSTSQ = [
    case("lstsq", *xs)
    for xs in (
        (TALL, VECTOR),
        (TALL, matrix(3, 4)),
        (COMPLEX[0], COMPLEX[0, :, 0]),
        (TALL.T, VECTOR[:2]),
        (TALL[:0], VECTOR[:0]),
        (TALL[:, :0], VECTOR),
        (UNIT, np.ones(3, int)),
    )
] + [case("lstsq", TALL, VECTOR, rcond=0.1)]


PRODUCTS = [
    case("matrix_transpose", STACK),
    case("diagonal", SQUARE, offset=1),
    case("trace", STACK, offset=-1),
    case("outer", VECTOR, VECTOR),
    case("matmul", SQUARE, TALL),
    case("vecdot", SQUARE, SQUARE),
    case("tensordot", SQUARE, SQUARE, axes=1),
    case("tensorinv", matrix(4, 2, 2), ind=1),
    case("tensorsolve", matrix(2, 2, 4), matrix(2, 2)),
    case("tensorsolve", matrix(4, 2, 2), matrix(2, 2), axes=(0,)),
]


@pytest.mark.parametrize("cases", [QR, HERMITIAN, PINV, RANK, COND, LSTSQ, PRODUCTS], ids=lambda cases: cases[-1].name)
def test_functions_equal_jax_s(cases):
    sweep(cases)


@pytest.mark.parametrize("shapes", [((3, 2), (2, 3), (3, 5)), ((2,), (2, 3), (3,)), ((2, 3), (3, 4)),
                                    ((5,), (5,)), ((2, 9), (9, 2), (2, 9), (9, 1))], ids=str)  # fmt: skip
def test_chains_of_products_equal_jax_s(shapes):
    product = lambda jnp: lambda *xs: jnp.linalg.multi_dot(xs)  # noqa: E731
    sweep([Case(str(shapes), product, tuple(matrix(*s) for s in shapes))])


@pytest.mark.parametrize("transform", ["jvp", "vjp", "vmap"])
def test_derivatives_of_pseudo_inverses_equal_jax_s(transform):
    sweep([transformed(case("pinv", x), transform) for x in (TALL, TALL.T, COMPLEX)])


def test_derivatives_of_least_squares_equal_jax_s():
    sweep([transformed(case("lstsq", TALL, VECTOR), "jvp"), transformed(case("qr", TALL), "vjp")])


@pytest.mark.parametrize("a, b", [(TALL, VECTOR), (TALL.T, VECTOR[:2])], ids=["tall", "wide"])
def test_residuals_are_numpy_arrays_on_request(a, b):
    same(lambda jnp: jnp.linalg.lstsq(a, b, numpy_resid=True))


WRONG = [("qr", (VECTOR,), {}), ("qr", (TALL,), dict(mode="other")), ("qr", ([[1.0]],), {}),
         ("pinv", (VECTOR,), {}), ("pinv", (TALL,), dict(rtol=0.1, rcond=0.1)),
         ("matrix_rank", (TALL,), dict(rtol=0.1, tol=0.1)), ("cond", (VECTOR,), {}),
         ("cond", (TALL[:0],), {}), ("cond", (TALL,), dict(p=1)), ("cond", (SQUARE,), dict(p="other")),
         ("lstsq", (STACK, VECTOR), {}), ("lstsq", (TALL, VECTOR[:2]), {}), ("lstsq", (TALL, STACK), {}),
         ("lstsq", ([[1.0]], [1.0]), {}), ("outer", (TALL, TALL), {}), ("trace", (VECTOR,), {}),
         ("diagonal", (VECTOR,), {}), ("matrix_transpose", (VECTOR,), {}), ("tensorinv", (STACK,), {}),
         ("multi_dot", ([TALL, TALL],), {}), ("multi_dot", ([TALL, VECTOR, TALL],), {}),
         ("tensorinv", (STACK,), dict(ind=0)), ("tensorsolve", (TALL, TALL), {})]  # fmt: skip


@pytest.mark.parametrize("name, args, how", WRONG)
def test_arguments_that_do_not_fit_are_refused_as_by_jax(name, args, how):
    calls = [lambda s=s: getattr(s.numpy.linalg, name)(*args, **how) for s in (minijax, jax)]
    same_error(*calls)
