"""Symmetric products and updates of Cholesky factors, against jax."""

import numpy as np
import pytest
from compare import Case, sweep
from linalg_cases import case, matrix, same_on_platforms, same_refusals, with_doubles
from transform_matrix import transformed

pytestmark = pytest.mark.oracle

WAYS = [{}, dict(alpha=2.0, beta=3), dict(symmetrize_output=True)]


@pytest.mark.parametrize("how", WAYS, ids=str)
def test_symmetric_products_equal_jax_s(how):
    cases = [case("symmetric_product", matrix(*b, 3, 4), matrix(*b, 3, 3, seed=1), **how) for b in ((), (2,))]
    half = case("symmetric_product", matrix(3, 4, dtype=np.float16), matrix(3, 3, dtype=np.float16), **how)
    sweep([*cases, half, *(transformed(c, t) for c in cases for t in ("vmap", "jvp"))])
    axes = None, 2
    mapped = lambda jax, lax: jax.vmap(lambda *xs: lax.linalg.symmetric_product(*xs, **how), axes)  # noqa: E731
    sweep([Case("unmapped", mapped, (matrix(3, 2), matrix(3, 3, 4)))])


def test_updates_of_cholesky_factors_equal_jax_s():
    upper = lambda n: np.triu(matrix(n, n))  # noqa: E731
    cases = [case("cholesky_update", upper(n), matrix(n, seed=1)) for n in (0, 1, 2, 4)]
    idle = case("cholesky_update", upper(3), np.zeros(3, np.float32))
    sweep([*cases, idle, *(transformed(cases[-1], t) for t in ("jvp", "vmap"))])


def test_double_precision_equals_jax_s():
    r, w = matrix(3, 3, dtype=np.float64), matrix(3, dtype=np.float64)
    with_doubles([case("cholesky_update", np.triu(r), w), case("symmetric_product", r, r)])


def test_texts_for_other_platforms_equal_jax_s():
    same_on_platforms([case("symmetric_product", matrix(2, 3, 4), matrix(2, 3, 3), **how) for how in WAYS])
    same_on_platforms([case("cholesky_update", matrix(3, 3), matrix(3))])


def test_arguments_that_do_not_fit_are_refused():
    z = lambda *shape, dtype=np.float32: np.zeros(shape, dtype)  # noqa: E731
    same_refusals([case("symmetric_product", *xs) for xs in (
        (z(3, 2), z(3, 2)), (z(3, 2), z(2, 2)), (z(3, 2), z(3)), (z(2, 3, 2), z(3, 3)),
        (z(3, 2, dtype=np.int32), z(3, 3, dtype=np.int32)), (z(3, 2), z(3, 3, dtype=np.float16)))])  # fmt: skip
    same_refusals([case("cholesky_update", *xs) for xs in (
        (z(3, 3), z(2)), (z(3, 2), z(3)), (z(2, 3, 3), z(2, 3)), (z(3, 3), z(3, 1)), (z(3), z(3)),
        (z(3, 3, dtype=np.complex64), z(3, dtype=np.complex64)))])  # fmt: skip
