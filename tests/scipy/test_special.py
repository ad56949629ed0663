"""jax.scipy.special: the calls of `special.txt`, against jax."""

from pathlib import Path

import compare
import numpy as np
import pytest
from compare import same_misuse
from listed_differences import idle_entries
from scipy_calls import TRANSFORMS, agree, agree_in_double, calls, has_no_derivative, in_all_transforms, under

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore:jax.scipy.special.lpmn:DeprecationWarning")]

# Calls whose jaxprs differ, by the start of their names.
OTHER_JAXPRS = (
    "jax.scipy.special.exp1",  # equal bodies of calls are not printed as one
    "jax.scipy.special.expn",
    "jax.scipy.special.hyp1f1",
    "jax.scipy.special.hyp2f1",
    "jax.scipy.special.fresnel",  # four empty arrays, which are not read, are not created
    "jax.scipy.special.xlogy(x, r)-",  # a broadcast comes later
    "jax.scipy.special.xlog1py(x, r)-",
)
# The transposes of gathers in it have equal bodies, which are not shown as one.
OTHER_JAXPRS_TRANSFORMED = (*OTHER_JAXPRS, "jax.scipy.special.lpmn")
NO_DERIVATIVE = ("jax.scipy.special.betainc",)  # by some arguments
CALLS = calls(Path(__file__).parent / "special.txt", "jax.scipy.special")


def test_calls_agree(tier):
    agree(CALLS, tier, OTHER_JAXPRS)


def test_calls_agree_in_double_precision(tier):
    agree_in_double(CALLS, tier, 12, OTHER_JAXPRS)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_calls_agree_under_transforms(name, tier):
    cases = [c for c in CALLS if name == "vmap" or not c.name.startswith(NO_DERIVATIVE)]
    agree(under(name, cases, tier, 4), tier, OTHER_JAXPRS_TRANSFORMED)


def test_listed_jaxprs_still_differ():
    assert idle_entries(OTHER_JAXPRS_TRANSFORMED, in_all_transforms(CALLS)) == []


def test_listed_derivatives_still_raise():
    cases = [c for c in CALLS if not c.raises and c.args and all(x.dtype == np.float32 for x in c.args)]
    assert idle_entries(NO_DERIVATIVE, cases, has_no_derivative) == []


def test_sph_harm_was_removed():
    same_misuse("jax.scipy.special.sph_harm", {}, "was deprecated in v0.7.0 and removed in v0.10.0")


@pytest.mark.parametrize("jitted", [False, True])
def test_infinities_of_ndtri_are_seen_where_they_are_results(jitted):
    def program(jax):
        ndtri = jax.jit(jax.scipy.special.ndtri) if jitted else jax.scipy.special.ndtri
        results = []
        with jax.debug_infs(True):
            for p in (0.5, 0.0, 1.0):
                try:
                    results.append(float(ndtri(p)))
                except FloatingPointError:
                    results.append("inf")
        return results

    assert compare.run_on(compare.ours(), program) == compare.run_on(compare.theirs(), program) == [0, "inf", "inf"]
