"""`jax.numpy.linalg`, against jax: programs, values, derivatives, errors."""

import functools
import importlib

import ml_dtypes
import numpy as np
import pytest
from compare import Case, check, same, same_jaxpr, same_refusal, wide_numbers

pytestmark = pytest.mark.oracle

RANDOM = np.random.default_rng(0)
FIRST = RANDOM.bit_generator.state
DTYPES = [np.float32, np.complex64]
DOUBLE = [np.float64, np.complex128]


def random(*shape, dtype=np.float32):
    x = RANDOM.normal(size=shape)
    return (x + 1j * RANDOM.normal(size=shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


@pytest.fixture(autouse=True)
def each_test_draws_the_same_numbers():
    RANDOM.bit_generator.state = FIRST


def made(side, make):
    numpy = importlib.import_module(f"{side.__name__}.numpy")
    return make(importlib.import_module(f"{side.__name__}.numpy.linalg"), numpy)


def compared(make, *args, transform=None, values=True, jaxpr=True):
    """`make(linalg, jnp)` on both sides, transformed: jaxprs, texts and values are equal."""

    def program(jax):
        return made(jax, make) if transform is None else transform(jax, made(jax, make))

    if values:
        check(Case("transformed", program, args), jaxpr=jaxpr)
    else:
        same_jaxpr(program, *args)


def jvp(side, f):
    return lambda *args: side.jvp(f, args, args)


def vjp(side, f):
    return lambda *args: side.vjp(f, *args)[1](f(*args))


def radius(linalg, jnp):
    return lambda m: jnp.max(jnp.abs(linalg.eigvals(m)))


TRANSFORMS = {
    "plain": lambda side, f: f,
    "jvp": jvp,
    "grad": lambda side, f: side.grad(f),
    "vmap": lambda side, f: side.vmap(f),
    "vmap-of-grad": lambda side, f: side.vmap(side.grad(f)),
    "vmap-of-grad-of-jit": lambda side, f: side.vmap(side.value_and_grad(side.jit(f)), 1),
    "grad-of-vmap": lambda side, f: side.grad(lambda m: side.vmap(f)(m).sum()),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_the_spectral_radius_agrees_with_jax(transform, dtype):
    m = random(3, 3, 3, dtype=dtype)
    m = m if "vmap" in transform else m[0]
    compared(radius, m, transform=TRANSFORMS[transform])
    same(lambda jax: TRANSFORMS[transform](jax, made(jax, radius))(m))


@pytest.mark.parametrize("dtype", DOUBLE)
def test_the_spectral_radius_agrees_with_jax_in_double_precision(dtype):
    m = random(2, 3, 3, dtype=dtype)
    with wide_numbers():
        compared(radius, m, transform=TRANSFORMS["vmap-of-grad"])
        compared(lambda linalg, jnp: lambda m: [linalg.solve(m, m[0]), linalg.eig(m)], m, jaxpr=False)


def test_eigenvalues_of_a_batch_and_of_nothing_agree_with_jax():
    batch = random(2, 3, 3)
    compared(lambda linalg, jnp: lambda m: jnp.sum(jnp.max(jnp.abs(linalg.eigvals(m)), -1)), batch, transform=vjp)
    compared(lambda linalg, jnp: linalg.eig, batch)
    compared(lambda linalg, jnp: linalg.eigvals, batch[:, :0, :0])


SHAPES = [
    ((3, 3), (3,)),
    ((3, 3), (3, 2)),
    ((2, 3, 3), (3,)),
    ((2, 3, 3), (3, 3)),
    ((3, 3), (2, 3, 3)),
    ((2, 3, 3), (2, 3, 2)),
    ((2, 3, 3), (1, 3, 3)),
    ((1, 3, 3), (3, 3)),
    ((3, 3), (3, 0)),
]


@pytest.mark.parametrize("a, b", SHAPES, ids=str)
def test_solve_agrees_with_jax(a, b):
    for dtype in DTYPES:
        args = random(*a, dtype=dtype), random(*b, dtype=dtype)
        compared(lambda linalg, jnp: linalg.solve, *args)
        compared(lambda linalg, jnp: linalg.solve, *args, transform=vjp, values=len(b) < 3)


def test_solve_and_its_derivatives_are_vectorised_as_by_jax():
    a = random(2, 3, 3)
    compared(lambda linalg, jnp: linalg.solve, a, a, transform=lambda side, f: side.vmap(f))
    compared(lambda linalg, jnp: linalg.solve, a, a[:, 0], transform=lambda side, f: side.vmap(vjp(side, f)))


UNARY = ["inv", "cholesky", "eigh", "eigvalsh", "svd", "svdvals"]


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_matrices_agree_with_jax(name):
    make = lambda linalg, jnp: getattr(linalg, name)  # noqa: E731
    for dtype in DTYPES:
        x = random(2, 3, 3, dtype=dtype)
        compared(make, x)
        compared(make, x, transform=jvp, values=False)
    compared(make, np.array([[2, 1], [1, 3]]))


@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize("name", ["det", "slogdet"])
def test_determinants_agree_with_jax(name, n):
    # The diagonal has a branch for a platform of jax's own in its jaxprs from n = 3 (of slogdet) or 4 on.
    make, known = lambda linalg, jnp: getattr(linalg, name), n < (3 if name == "slogdet" else 4)
    for x in (random(n, n), random(2, n, n, dtype=np.complex64)):
        compared(make, x, jaxpr=known)
        compared(make, x, transform=jvp, jaxpr=known)
    compared(make, random(n, n), transform=vjp, jaxpr=False)


def test_determinants_of_nothing_are_one():
    for name in ("det", "slogdet"):
        compared(lambda linalg, jnp, name=name: getattr(linalg, name), np.zeros((2, 0, 0), np.float32), jaxpr=False)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 5, -2])
def test_powers_of_matrices_agree_with_jax(n):
    compared(lambda linalg, jnp: lambda x: linalg.matrix_power(x, n), random(3, 3))


INF = np.inf
VECTOR_ORDERS = [None, INF, -INF, 0, 1, -1, 2, -2, 3, 0.5]
MATRIX_ORDERS = [None, "fro", "nuc", INF, -INF, 1, -1, 2, -2]
NORMS = [((4,), dict(ord=o)) for o in VECTOR_ORDERS] + [((3, 2), dict(ord=o)) for o in MATRIX_ORDERS]
NORMS += [((2, 3, 4), how) for how in [
    dict(), dict(keepdims=True), dict(axis=(0, -1), keepdims=True), dict(axis=(2, 0), ord=1, keepdims=True),
    dict(axis=(2, 0), ord=-2, keepdims=True), dict(axis=(1,), ord=3, keepdims=True), dict(axis=(0, 2), ord=INF),
    dict(axis=(2, 0), ord=INF), dict(axis=(0, 2), ord=-1), dict(axis=1, ord=INF, keepdims=True),
]]  # fmt: skip
NORMS += [((), {}), ((0,), {}), ((0,), dict(ord=INF))]


@pytest.mark.parametrize("shape, how", NORMS, ids=str)
def test_norms_agree_with_jax(shape, how):
    for dtype in DTYPES:
        compared(lambda linalg, jnp: lambda x: linalg.norm(x, **how), random(*shape, dtype=dtype))


def test_norms_of_other_dtypes_and_other_names_of_norms_agree_with_jax():
    for x in (np.arange(4), np.ones(3, ml_dtypes.bfloat16)):
        compared(lambda linalg, jnp: linalg.norm, x)
    compared(lambda linalg, jnp: linalg.vector_norm, random(3, 2))
    compared(lambda linalg, jnp: lambda x: linalg.vector_norm(x, axis=(0, 1), ord=INF), random(3, 2))
    compared(lambda linalg, jnp: lambda x: linalg.matrix_norm(x, ord=1, keepdims=True), random(2, 3, 2))


@pytest.mark.parametrize("shape, order", [((3,), None), ((3,), 1), ((3,), 3), ((3, 2), "nuc"), ((3, 2), 2)], ids=str)
def test_derivatives_of_norms_agree_with_jax(shape, order):
    make = lambda linalg, jnp: lambda x: linalg.norm(x, ord=order)  # noqa: E731
    compared(make, random(*shape), transform=lambda side, f: side.grad(f))


def refused(make, *args, phrases=()):
    same_refusal(lambda jax: functools.partial(made(jax, make), *args), phrases)


@pytest.mark.parametrize("shape, how", [
    ((3,), dict(ord="fro")), ((3, 2), dict(ord=3)), ((3, 2), dict(ord=0)), ((3, 2), dict(ord="bad")),
    ((2, 3, 2), dict(ord=2)), ((2, 3, 2), dict(axis=(0, 1, 2))), ((2, 3, 2), dict(axis=(0, 0))),
    ((3,), dict(axis=5)), ((0,), dict(ord=-INF)),
], ids=str)  # fmt: skip
def test_norms_that_jax_refuses_are_refused(shape, how):
    refused(lambda linalg, jnp: lambda x: linalg.norm(x, **how), random(*shape))


def test_matrices_of_wrong_shapes_are_refused():
    for shape in ((3,), (2, 3)):
        for name in ("inv", "det", "slogdet"):
            refused(lambda linalg, jnp, name=name: getattr(linalg, name), random(*shape), phrases=["[..., n, n]"])
        refused(lambda linalg, jnp: linalg.eigvals, random(*shape))
    for a, b in (((3,), (3,)), ((2, 3), (3,)), ((3, 3), (2,)), ((2, 3, 3), (2, 3)), ((3, 3), ())):
        refused(lambda linalg, jnp: linalg.solve, random(*a), random(*b))
    refused(lambda linalg, jnp: linalg.norm, [1.0, 2.0], phrases=["requires ndarray or scalar arguments"])
    refused(lambda linalg, jnp: lambda x: linalg.slogdet(x, method="no"), random(2, 2), phrases=["slogdet method"])


@pytest.mark.parametrize("shape", [(2, 2), (3, 2), (1, 1)])
def test_derivatives_of_svd_keep_the_residuals_of_jax(shape):
    def program(jax, jnp):
        def loss(x):
            return sum(part.sum() for part in jnp.linalg.svd(x, full_matrices=False))

        return jax.grad(loss)

    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    for around in (lambda jax, f: f, lambda jax, f: jax.jit(f), lambda jax, f: jax.vmap(f)):
        stacked = np.stack([x, x * 2]) if around.__code__.co_names == ("vmap",) else x
        same_jaxpr(lambda jax, jnp: around(jax, program(jax, jnp)), stacked)  # noqa: B023
