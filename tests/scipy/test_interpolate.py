"""jax.scipy.interpolate: the calls of `interpolate.txt`, against jax."""

from pathlib import Path

import compare
import numpy as np
import pytest
from scipy_calls import agree_in_double, calls

pytestmark = pytest.mark.oracle

OPERANDS = {
    "p": (np.array([0.0, 1, 3], np.float32), np.array([0.0, 2, 3, 4], np.float32)),
    "v": np.arange(12, dtype=np.float32).reshape(3, 4) ** 2,
    "q": np.array([[0.5, 0.25], [1, 2], [2.9, 3.75], [-0.5, 1], [2, 4.5]], np.float32),
}
CALLS = calls(Path(__file__).parent / "interpolate.txt", "jax.scipy.interpolate", OPERANDS)


def test_calls_agree(tier):
    compare.sweep(CALLS, tier)


def test_calls_agree_in_double_precision(tier):
    agree_in_double(CALLS, tier, 1)


@pytest.mark.parametrize("transform", ["jvp", "grad"])
def test_derivatives(transform):
    def program(jax):
        def total(v, q):
            return (jax.scipy.interpolate.RegularGridInterpolator(OPERANDS["p"], v, fill_value=None)(q) ** 2).sum()

        operands = OPERANDS["v"], OPERANDS["q"]
        return jax.grad(total, (0, 1))(*operands) if transform == "grad" else jax.jvp(total, operands, operands)

    compare.same(program, rtol=2e-5, why="sums are made in another order")
