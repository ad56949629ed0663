"""Programs by transforms: the same jaxprs, texts and values as jax, or the same error."""

import compare
import pytest
import transform_matrix
from listed_differences import idle_entries
from programs import PROGRAMS

CASES = [compare.Case(f.__name__, f, args) for f, args in PROGRAMS]

# In the backward pass of a checkpointed function jax leaves unread operands of loops, and wraps loops of the forward
# pass in `closed_call`; ours are gone. Values agree.
LEFT_IN_BY_JAX = frozenset(
    f"{name}-grad_of_checkpoint" for name in ("scan", "rnn", "fori", "weak_scan", "weak_scan_of_carries", "weak_fori")
)


@pytest.mark.oracle
def test_listed_jaxprs_still_differ():
    cells = [transform_matrix.transformed(case, "grad_of_checkpoint") for case in CASES]
    assert idle_entries(sorted(LEFT_IN_BY_JAX), cells) == []


@pytest.mark.oracle
@pytest.mark.parametrize("case", transform_matrix.matrix(CASES))
def test_a_transformed_program_is_that_of_jax(case, tier):
    compare.check(case, tier, jaxpr=case.name not in LEFT_IN_BY_JAX)
