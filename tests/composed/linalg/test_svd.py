"""Singular values with every option, against jax."""

import numpy as np
import pytest
from compare import sweep
from linalg_cases import case, matrix, same_on_platforms, same_refusals, with_doubles

pytestmark = pytest.mark.oracle

ALGORITHMS = [f"SvdAlgorithm.{name}" for name in ("DEFAULT", "QR", "DIVIDE_AND_CONQUER", "JACOBI", "POLAR")]
WANTED = [dict(compute_uv=uv, full_matrices=full) for uv in (True, False) for full in (True, False)]


@pytest.mark.parametrize("algorithm", ALGORITHMS[:3])
def test_algorithms_equal_jax_s(algorithm):
    shapes = [((2, 3, 2), np.complex64), ((2, 3), np.float32), ((1, 1), np.float32)]
    sweep([case("svd", matrix(*s, dtype=d), algorithm=algorithm, **w) for s, d in shapes for w in WANTED])


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0), (2, 0, 3), (0, 2, 3)], ids=str)
def test_empty_matrices_equal_jax_s(shape):
    sweep([case("svd", matrix(*shape), **w) for w in WANTED])


def test_all_values_may_be_requested_by_index():
    sweep([case("svd", matrix(3, 2), full_matrices=full, subset_by_index=(0, 2)) for full in (True, False)])


def test_double_precision_equals_jax_s():
    with_doubles([case("svd", matrix(3, 2, dtype=d)) for d in (np.float64, np.complex128)])


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_texts_for_other_platforms_equal_jax_s(algorithm):
    shapes = [((2, 3, 2), np.complex64), ((2, 3), np.float32), ((34, 40), np.float32)]
    same_on_platforms(
        [case("svd", matrix(*s, dtype=d), algorithm=algorithm, **w) for s, d in shapes for w in WANTED],
        ("cuda", "rocm"),
    )


def test_large_matrices_have_another_default_algorithm():
    same_on_platforms(
        [case("svd", np.zeros(s, np.float32), full_matrices=False) for s in ((1025, 2), (2, 1025))], ("cuda",)
    )


def test_arguments_that_do_not_fit_are_refused():
    x = matrix(3, 3)
    same_refusals([case("svd", np.zeros(3, np.float32)), case("svd", np.zeros((2, 2), np.int32))])
    same_refusals([case("svd", x, subset_by_index=(0, 2)), case("svd", x, full_matrices=False, subset_by_index=(0, 2))])
    same_refusals([case("svd", x, algorithm=a) for a in ALGORITHMS[3:]])
