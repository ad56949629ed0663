"""Programs by transforms: the same jaxprs, texts and values as jax, or the same error."""

import compare
import pytest
import transform_matrix
from programs import PROGRAMS

CASES = [compare.Case(f.__name__, f, args) for f, args in PROGRAMS]


@pytest.mark.oracle
@pytest.mark.parametrize("case", transform_matrix.matrix(CASES))
def test_a_transformed_program_is_that_of_jax(case, tier):
    compare.check(case, tier)
