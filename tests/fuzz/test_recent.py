"""Programs of what people write more rarely, under nested transforms: jaxprs, types, modules, values, or errors."""

import os
import random

import pytest
from fuzz import recent
from fuzz.comparison import Comparison

from tests.fuzz.test_people import BLOCK, KNOWN, SELDOM, blocks, check

pytestmark = pytest.mark.oracle

LEFT_BY_JAX = {
    "jax does not map ragged_dot over other axes than the first": "theirs raised NotImplementedError.'ragged_dot vmap",
    "jax finds functions that change the type when it lowers a scatter": "ours raised ValueError.'scatter_apply: func must",
}
COMPARISON = Comparison(recent.generate, check, KNOWN | LEFT_BY_JAX)


@pytest.mark.parametrize("block", blocks())
def test_programs_of_rarer_forms_are_those_of_jax(block):
    known = COMPARISON.run(range(BLOCK * block, BLOCK * (block + 1)))
    texts = {seed: how for seed, how in known.items() if how != "module"}
    assert len(texts) <= SELDOM, texts


@pytest.mark.full
@pytest.mark.parametrize("block", range(10))
def test_new_programs_of_rarer_forms_are_those_of_jax(block):
    day = random.Random(f"{os.environ['MINIJAX_TEST_SEED']}:recent:{block}")
    COMPARISON.run([day.randrange(10**9) for _ in range(BLOCK)])
