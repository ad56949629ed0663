"""jax.scipy.linalg: the calls of `linalg.txt`, against jax."""

from pathlib import Path

import pytest
from compare import both, outcome
from scipy_calls import OPERANDS, TRANSFORMS, agree, agree_in_double, calls, under

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
    "svd(B)",
    "svd(W)",
)
# Of these, derivatives are equal in value alone: linear programs keep scalars otherwise.
OTHER_JAXPRS = ("det(L)", "svd")
CALLS = calls(Path(__file__).parent / "linalg.txt", "jax.scipy.linalg")


def named(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"jax.scipy.linalg.{name}" for name in names)


@pytest.mark.parametrize("part", range(8))
def test_calls_agree(part, tier):
    agree(CALLS[part::8], tier)


def test_calls_agree_in_double_precision(tier):
    cases = [c for c in CALLS if "lu_solve" not in c.name]  # pivots are 32-bit integers
    agree_in_double(cases, tier, 6)


@pytest.mark.parametrize("part", range(2))
@pytest.mark.parametrize("name", TRANSFORMS)
def test_calls_agree_under_transforms(name, part, tier):
    cases = [c for c in CALLS[part::2] if name == "vmap" or not c.name.startswith(named(NO_DERIVATIVE))]
    agree(under(name, cases, tier, 6), tier, named(OTHER_JAXPRS))


@pytest.mark.parametrize("text", (
    "linalg.toeplitz(M, v)", "linalg.hankel(B, v)", "linalg.solve_triangular(M, B)", "linalg.polar(H)", "linalg.eigh_tridiagonal(c, c[:2])",
    "linalg.solve(M, A)", "linalg.det(M)",
))  # fmt: skip
def test_without_promotion(text):
    """Where dtypes and ranks are not promoted, the same calls are refused."""

    def program(jax, jnp):
        def run():
            with jax.numpy_dtype_promotion("strict"), jax.numpy_rank_promotion("raise"):
                return jax.eval_shape(lambda: eval(text, OPERANDS | {"linalg": jax.scipy.linalg}))

        return outcome(run)

    ours, theirs = both(program)
    assert type(ours.error).__name__ == type(theirs.error).__name__
