"""Integer divisions by 0 whose operands XLA knows: the process goes on, and the quotient is -1."""

import re
import subprocess
import sys

import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import lax
from minijax.hlo.divisions import with_kept_divisions

PROGRAM = """
import minijax as jax, minijax.numpy as jnp
from minijax import lax

one, zero, x = jnp.int32(1), jnp.int32(0), jnp.int32(5)
array = lambda *numbers, dtype="int32": jnp.array(numbers, dtype)
for f in (
    lambda x: lax.div(one, zero), lambda x: lax.rem(one, zero), lambda x: lax.div(array(4, 2), array(2, 0)),
    lambda x: lax.div(array(1, dtype="uint8"), array(0, dtype="uint8")), lambda x: lax.div(one + one, one - one),
    lambda x: lax.rem(jnp.full((2,), 5), jnp.broadcast_to(zero, (2,))), lambda x: lax.div(one, jnp.argmax(array(3, 1))),
    lambda x: jax.jit(lambda x, y: lax.div(x, y))(one, zero), lambda x: lax.div(one, x - x), lambda x: lax.div(one, x * 0),
    lambda x: lax.scan(lambda c, _: (c, lax.div(one, zero)), 0, None, length=2)[1], lambda x: lax.div(x, zero),
    lambda x: lax.cond(x > 0, lambda: lax.div(one, zero), lambda: one), lambda x: jnp.int32(7) // (x - x),
):
    print(jax.jit(f)(x).tolist(), end=" ")
"""


def test_the_process_survives_what_the_compiler_folds():
    ran = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert ran.stdout.strip() == "-1 1 [2, -1] [255] -1 [5, 5] -1 -1 -1 -1 [-1, -1] -1 -1 -2"


@pytest.mark.parametrize(
    ("f", "hidden"),
    [
        (lambda x: x // 3, 0),
        (lambda x: lax.div(x, x), 0),
        (lambda x: lax.rem(x, jnp.array([10, -3, 70])), 0),
        (lambda x: lax.div(x, jnp.full(3, 8)), 0),
        (lambda x: lax.div(x, jnp.array([10, 0, 70])), 1),
        (lambda x: lax.div(jnp.full(3, 8), x), 1),
        (lambda x: x.astype("float32") / 0, 0),
    ],
)
def test_only_divisors_that_may_be_zero_are_hidden(f, hidden):
    lowered = jax.jit(f).lower(jnp.arange(3))
    for text in lowered.as_text(), lowered.as_text(debug_info=True):
        kept = with_kept_divisions(text)
        barriers = re.findall(r"optimization_barrier (%\w+)", kept)
        assert len(barriers) == hidden and (hidden or kept == text)
        # A constant costs nothing to hide; a value that is computed would be stored.
        assert all("arg" not in name for name in barriers)
