"""jax.scipy.linalg: the calls of `linalg.txt`, against jax."""

from pathlib import Path

import pytest
from scipy_calls import TRANSFORMS, agree, calls, under

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore:.*batched 1D solves:FutureWarning")]

# Calls whose jaxprs differ: how their names begin.
OTHER_JAXPRS = ()
CALLS = calls(Path(__file__).parent / "linalg.txt", "jax.scipy.linalg")


def test_calls_agree(tier):
    agree(CALLS, tier, OTHER_JAXPRS)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_calls_agree_under_transforms(name, tier):
    agree(under(name, CALLS, tier, 4), tier, OTHER_JAXPRS)
