"""The QR decomposition and products of reflectors, against jax."""

import functools

import numpy as np
import pytest
from compare import Case, sweep
from linalg_cases import case, matrix, same_on_platforms, same_refusals, with_doubles
from transform_matrix import transformed

import minijax
from minijax.composed.linalg.lu import _reflected

pytestmark = pytest.mark.oracle

DTYPES = (np.float32, np.complex64)
SHAPES = [(3, 2), (3, 3), (2, 3), (2, 3, 2), (2, 2, 2, 2), (1, 1), (0, 2), (2, 0), (0, 3, 2)]
WAYS = [{}, dict(full_matrices=False), dict(pivoting=True), dict(pivoting=True, full_matrices=False, use_magma=True)]


@pytest.mark.parametrize("how", WAYS, ids=str)
def test_every_shape_equals_jax_s(how):
    sweep([case("qr", matrix(*s), **how) for s in SHAPES])
    sweep([case("qr", matrix(*s, dtype=np.complex64), **how) for s in SHAPES[:4]])


@pytest.mark.parametrize("how", WAYS[:3], ids=str)
def test_derivatives_equal_jax_s(how):
    shapes = [(5, 2), (3, 3), (2, 3)] if "pivoting" in how else [(5, 2), (3, 3), (2, 3), (2, 3, 2)]
    sweep(
        [
            transformed(case("qr", matrix(*s, dtype=d), **how), t)
            for s in shapes
            for d in DTYPES
            for t in ("jvp", "vjp")
            if d is np.float32 or s == (5, 2)
        ]
    )


@pytest.mark.parametrize("transform", ["vmap", "vmap_of_grad", "grad_of_vmap", "linearize"])
def test_nested_transforms_equal_jax_s(transform):
    sweep([transformed(case("qr", matrix(3, 2), full_matrices=False), transform)])


def mapped(d, jax, lax):
    return jax.vmap(lax.linalg.qr, d)


def test_any_axis_can_be_mapped():
    sweep([Case(f"axis {d}", functools.partial(mapped, d), (matrix(4, 3, 2),)) for d in range(3)])


def test_pivots_of_batches_have_derivatives():
    x = matrix(2, 3, 3)
    qr = lambda x: minijax.lax.linalg.qr(x, pivoting=True)[:2]  # noqa: E731
    whole = minijax.jvp(qr, (x,), (x,))[1]
    rows = minijax.vmap(lambda x: minijax.jvp(qr, (x,), (x,))[1])(x)
    for ours, theirs in zip(whole, rows, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def reflectors(*batch, dtype):
    return matrix(*batch, 3, 2, dtype=dtype), matrix(*batch, 2, dtype=dtype, seed=1)


@pytest.mark.parametrize("dtype", DTYPES)
def test_products_of_reflectors_equal_jax_s(dtype):
    cases = []
    for batch in ((), (2,)):
        a, taus = reflectors(*batch, dtype=dtype)
        cases += [case("householder_product", a, taus), case("householder_product", a, taus[..., :1])]
        for left in (True, False):
            c = matrix(*batch, *((3, 4) if left else (4, 3)), dtype=dtype, seed=2)
            cases += [case("ormqr", a, taus, c, left=left, transpose=t) for t in (True, False)]
    sweep([*cases, *(transformed(c, t) for c in cases[:3] for t in ("vmap", "jvp"))])


def test_unmapped_operands_are_repeated():
    a, taus = reflectors(dtype=np.float32)
    several = np.stack([taus, taus, taus], 1)
    sweep(
        [
            Case("taus", lambda jax, lax: jax.vmap(lax.linalg.householder_product, (None, 1)), (a, several)),
            Case(
                "a", lambda jax, lax: jax.vmap(lax.linalg.householder_product, (2, None)), (np.stack([a, a], 2), taus)
            ),
        ]
    )


def test_double_precision_equals_jax_s():
    x, z = matrix(3, 2, dtype=np.float64), matrix(2, 3, dtype=np.complex128)
    with_doubles([case("qr", x), case("qr", z, pivoting=True), transformed(case("qr", x), "vjp")])


def test_texts_for_other_platforms_equal_jax_s():
    a, taus = reflectors(2, dtype=np.float32)
    same_on_platforms([case("qr", matrix(2, 3, 2), **how) for how in WAYS])
    same_on_platforms([case("qr", matrix(0, 2), pivoting=True), case("householder_product", a, taus)])
    same_on_platforms([case("ormqr", a, taus, matrix(2, 3, 4))], ("cuda", "rocm"))


@pytest.mark.parametrize("left, transpose", [(True, False), (True, True), (False, False), (False, True)])
def test_reflectors_are_applied_one_after_another_where_no_library_does(left, transpose):
    a, taus = reflectors(2, dtype=np.complex64)
    c = matrix(2, 3, 3, dtype=np.complex64)
    one_by_one = minijax.jit(_reflected, static_argnums=(3, 4))(a, taus, c, left, transpose)
    at_once = minijax.lax.linalg.ormqr(a, taus, c, left=left, transpose=transpose)
    # LAPACK applies them in blocks, in another order.
    np.testing.assert_allclose(one_by_one[0], at_once, rtol=1e-5, atol=1e-6)


def test_arguments_that_do_not_fit_are_refused():
    f, i = np.float32, np.int32
    z = lambda *shape, dtype=f: np.zeros(shape, dtype)  # noqa: E731
    same_refusals([case("qr", x) for x in (z(3), z(), z(2, 2, dtype=i), z(2, 2, dtype=np.float16))])
    same_refusals([case("householder_product", *xs) for xs in (
        (z(3, 2), z(3)), (z(2, 3), z(2)), (z(3, 2), z(2, 2)), (z(3), z(2)), (z(3, 2), z()),
        (z(3, 2), z(2, dtype=np.complex64)), (z(3, 2, dtype=i), z(2, dtype=i)))])  # fmt: skip
    same_refusals(
        [
            case("ormqr", *xs)
            for xs in (
                (z(3, 2), z(2), z(2, 3)),
                (z(3, 2), z(2), z(3)),
                (z(2, 3, 2), z(2, 2), z(3, 3)),
                (z(3, 2), z(2), z(3, 3, dtype=np.complex64)),
            )
        ]
    )
