"""The polar decomposition, against jax."""

import numpy as np
import pytest
from compare import sweep
from linalg_cases import case, matrix, same_refusals, with_doubles

import minijax

pytestmark = pytest.mark.oracle

WAYS = [
    ((5, 3), dict(is_hermitian=True)),
    ((3, 2), dict(eps=1e-3, max_iterations=3)),
    ((3, 2), dict(max_iterations=0)),
    ((3, 2), dict(eps=0.3)),
    ((3, 2), dict(max_iterations=1)),
]


def test_decompositions_equal_jax_s():
    sweep([case("qdwh", matrix(*shape), **how) for shape, how in WAYS])
    sweep([case("qdwh", matrix(4, 3, dtype=np.complex64)), case("qdwh", np.zeros((2, 2), np.float32))])


def test_a_part_of_a_matrix_is_decomposed_as_by_jax():
    # jax writes one function twice that is used at two depths.
    sweep([case("qdwh", matrix(4, 3), dynamic_shape=(3, 2))], jaxpr=False)


def test_double_precision_equals_jax_s():
    with_doubles([case("qdwh", matrix(3, 2, dtype=np.complex128))])


def test_the_factors_are_orthonormal_and_positive():
    x = matrix(6, 4)
    u, h, _, converged = minijax.lax.linalg.qdwh(x)
    np.testing.assert_allclose(u @ h, x, atol=1e-5)
    np.testing.assert_allclose(u.T @ u, np.eye(4), atol=1e-5)
    assert converged and np.linalg.eigvalsh(h).min() > 0


def test_arguments_that_do_not_fit_are_refused():
    same_refusals(
        [case("qdwh", np.zeros(s, d)) for s, d in (((2, 3), np.float32), ((3, 3), np.int32), ((2, 3, 3), np.float32))]
    )
