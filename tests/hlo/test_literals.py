"""Floating-point constants in programs' texts, against jax's."""

import os
import random
import re

import ml_dtypes
import numpy as np
import pytest
from compare import ours, theirs


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, ml_dtypes.bfloat16])
def test_constants_have_jax_s_digits(dtype):
    rng = random.Random(os.environ.get("MINIJAX_TEST_SEED", "0"))
    values = [0.0, -0.0, 1e-6, 7e-6, 1e23, 1e22, 3788241000.0, 262448496.0, 123456.5, 1e-5, 0.001, 0.00875, 2.0**-149]
    for _ in range(400):
        digits = round(rng.uniform(-10, 10), rng.choice((0, 1, 2, 4, 6, 8, 10, 17)))
        values.append(digits * 10.0 ** rng.choice((rng.randint(-6, 9), rng.randint(-40, 36))))
    with np.errstate(over="ignore"):
        constants = [x for x in np.array(values).astype(dtype) if abs(float(x)) < np.inf]

    def literals(side):
        with side.enable_x64(True):
            text = side.jit(lambda: [side.numpy.asarray(x) for x in constants]).lower().as_text()
        return re.findall(r"constant dense<(.*?)> : tensor<b?f\d+>", text)

    mine, yours = literals(ours()), literals(theirs())
    assert len(mine) > 100 and mine == yours
