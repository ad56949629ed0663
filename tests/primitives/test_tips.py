"""What errors of lax for operands of two dtypes advise: a function of jax.numpy that exists."""

import re

import compare
import numpy as np
import pytest

import minijax

NAMES = (
    "add", "atan2", "div", "eq", "max", "min", "mul", "ne", "nextafter", "shift_left", "shift_right_logical",
    "shift_right_arithmetic", "sub",
)  # fmt: skip
OTHERS = ("ge", "gt", "le", "lt", "rem", "bitwise_and", "bitwise_or", "bitwise_xor", "igamma", "zeta")


def advised(jax, name):
    x = np.ones(2, np.int32 if "shift" in name or "bitwise" in name else np.float32)
    y = x.astype(np.int16 if x.dtype.kind == "i" else np.float16)
    error = compare.outcome(lambda: getattr(jax.lax, name)(x, y)).error
    tip = re.search(r"Tip: jnp\.(\w+) is a similar function", str(error))
    return type(error).__name__, tip and tip[1]


@pytest.mark.parametrize("name", NAMES)
def test_the_function_that_is_advised_is_that_of_jax(name):
    compare.same(lambda jax: advised(jax, name))


@pytest.mark.parametrize("name", NAMES + OTHERS)
def test_the_function_that_is_advised_exists(name):
    error, tip = advised(minijax, name)
    assert error == "TypeError" and (tip is None or hasattr(minijax.numpy, tip))
