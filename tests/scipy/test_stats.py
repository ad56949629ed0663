"""jax.scipy.stats: the calls of `stats.txt`, against jax."""

from pathlib import Path

import compare
import numpy as np
import pytest
from listed_differences import idle_entries
from scipy_calls import TRANSFORMS, agree, agree_in_double, calls, has_no_derivative, in_all_transforms, under

pytestmark = pytest.mark.oracle

# Calls whose jaxprs differ, by the start of their names.
OTHER_JAXPRS = ("jax.scipy.stats.rankdata", "jax.scipy.stats.truncnorm")
NO_DERIVATIVE = (
    "jax.scipy.stats.beta.",  # by the parameters of the incomplete beta function
    "jax.scipy.stats.gumbel",  # with a scale, jax multiplies by a float0
)
CALLS = calls(Path(__file__).parent / "stats.txt", "jax.scipy.stats")


def test_calls_agree(tier):
    agree(CALLS, tier, OTHER_JAXPRS)


def test_calls_agree_in_double_precision(tier):
    agree_in_double(CALLS, tier, 12, OTHER_JAXPRS)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_calls_agree_under_transforms(name, tier):
    cases = [c for c in CALLS if name == "vmap" or not c.name.startswith(NO_DERIVATIVE)]
    agree(under(name, cases, tier, 12), tier, OTHER_JAXPRS)


def test_listed_jaxprs_still_differ():
    assert idle_entries(OTHER_JAXPRS, in_all_transforms(CALLS)) == []


def test_listed_derivatives_still_raise():
    cases = [c for c in CALLS if not c.raises and c.args and all(x.dtype == np.float32 for x in c.args)]
    assert idle_entries(NO_DERIVATIVE, cases, has_no_derivative) == []


@pytest.mark.parametrize("method", ["average", "min", "max", "dense", "ordinal"])
def test_ranks_are_floats_under_strict_promotion(method):
    def program(jax):
        rows = [np.float32([2, 1, 2]), np.int32([3, 1, 1]), np.float32([[3, 1, 2], [np.nan, 1, 1]])]
        with jax.numpy_dtype_promotion("strict"):
            return [jax.scipy.stats.rankdata(x, method, axis=axis) for x in rows for axis in (None, 0)]

    compare.same(program)
