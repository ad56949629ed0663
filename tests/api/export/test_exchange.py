"""Exported programs, between jax and minijax in one process."""

import compare
import pytest
from api.export.exchange import OTHERS, SMOOTH, exchanged, order_of

NOT_ON_TPUS = "jnp.linalg.eigvals(S)"
PORTABLE = [line for line in (*SMOOTH, *OTHERS) if line != NOT_ON_TPUS]
PROGRAMS = [(line, order_of(line)) for line in SMOOTH] + [(line, 0) for line in OTHERS]


def test_there_are_a_hundred_programs():
    assert len(set(PROGRAMS)) == len(PROGRAMS) >= 100


@pytest.mark.oracle
@pytest.mark.parametrize(("line", "order"), [p for p in PROGRAMS if compare.sampled(p[0], of="export", one_in=16)])
def test_each_side_runs_what_the_other_wrote(line, order):
    exchanged(line, order)


@pytest.mark.oracle
@pytest.mark.parametrize("line", [line for line in PORTABLE if compare.sampled(line, of="platforms", one_in=24)])
def test_programs_for_several_platforms_run_on_one_of_them(line):
    exchanged(line, 0, ("tpu", "cuda", "cpu"))
