"""jax.scipy.linalg: the calls of `linalg.txt`, against jax."""

from pathlib import Path

import numpy as np
import pytest
from compare import ended, same
from given import given
from listed_differences import idle_entries
from scipy_calls import OPERANDS, TRANSFORMS, agree, agree_in_double, calls, has_no_derivative, in_all_transforms, under

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore:.*batched 1D solves:FutureWarning")]

NO_DERIVATIVE = (
    "eigh_tridiagonal",
    "funm",
    "hessenberg",
    "polar",
    "qr_multiply",
    "schur",
    "solve_sylvester",
    "sqrtm",
    "svd(B)",
    "svd(W)",
)
# The derivative of `det` is equal in value only: linear programs keep scalars in another way.
# In one gradient of `rsf2csf` jax leaves a broadcast that nothing reads.
OTHER_JAXPRS = ("det(L)", "rsf2csf(M, A)-grad")
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


def test_listed_jaxprs_still_differ():
    assert idle_entries(named(OTHER_JAXPRS), in_all_transforms(CALLS)) == []


def test_listed_derivatives_still_raise():
    cases = [c for c in CALLS if not c.raises and c.args and all(x.dtype == np.float32 for x in c.args)]
    assert idle_entries(named(NO_DERIVATIVE), cases, has_no_derivative) == []


@pytest.mark.parametrize(
    "call",
    [
        lambda linalg, M, v: linalg.toeplitz(M, v),
        lambda linalg, B, v: linalg.hankel(B, v),
        lambda linalg, B, M: linalg.solve_triangular(M, B),
        lambda linalg, H: linalg.polar(H),
        lambda linalg, c: linalg.eigh_tridiagonal(c, c[:2]),
        lambda linalg, A, M: linalg.solve(M, A),
        lambda linalg, M: linalg.det(M),
    ],
)
def test_without_promotion(call):
    """Where dtypes and ranks are not promoted, the same calls are refused."""

    def program(jax, jnp):
        def run():
            with jax.numpy_dtype_promotion("strict"), jax.numpy_rank_promotion("raise"):
                return jax.eval_shape(lambda: given(call, OPERANDS | {"linalg": jax.scipy.linalg}))

        return ended(run)

    same(program)
