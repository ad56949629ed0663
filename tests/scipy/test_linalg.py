"""jax.scipy.linalg: the calls of `linalg.txt`, against jax."""

from pathlib import Path

import pytest
from scipy_calls import TRANSFORMS, agree, calls, under

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore:.*batched 1D solves:FutureWarning")]

NO_DERIVATIVE = (
    "eigh_tridiagonal",
    "funm",
    "hessenberg",
    "polar",
    "qr_multiply",
    "rsf2csf",
    "schur",
    "solve_sylvester",
    "sqrtm",
)
# Of these, linear programs keep scalars otherwise.
OTHER_JAXPRS = ("svd",)
CALLS = calls(Path(__file__).parent / "linalg.txt", "jax.scipy.linalg")


def named(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"jax.scipy.linalg.{name}(" for name in names)


def test_calls_agree(tier):
    agree(CALLS, tier)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_calls_agree_under_transforms(name, tier):
    cases = [c for c in CALLS if name == "vmap" or not c.name.startswith(named(NO_DERIVATIVE))]
    agree(under(name, cases, tier, 4), tier, named(OTHER_JAXPRS))
