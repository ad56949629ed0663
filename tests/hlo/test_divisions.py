"""Integer divisions by 0 whose operands XLA knows: the process goes on, and the quotient is -1."""

import re
import subprocess
import sys

import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import lax
from minijax.hlo.divisions import with_guarded_divisions

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
    ("f", "guarded"),
    [
        (lambda x: x // 3, 0),
        (lambda x: lax.div(x, x), 0),
        (lambda x: lax.rem(x, jnp.array([10, -3, 70])), 0),
        (lambda x: lax.div(x, jnp.full(3, 8)), 0),
        (lambda x: lax.div(x, jnp.array([10, 0, 70])), 0),
        (lambda x: lax.div(jnp.full(3, 8), x), 1),
        (lambda x: x.astype("float32") / 0, 0),
    ],
)
def test_only_constants_are_guarded_whose_divisors_may_be_zero(f, guarded):
    lowered = jax.jit(f).lower(jnp.arange(3))
    for text in lowered.as_text(), lowered.as_text(debug_info=True):
        made = with_guarded_divisions(text)
        assert made.count("%is_zero_") == 3 * guarded and (guarded or made == text)


def test_random_integers_are_compiled_as_without_guards():
    draw = jax.jit(lambda key: jax.random.randint(key, (4,), 0, 10))
    optimized = draw.lower(jax.random.key(0)).compile().as_text()
    assert "is_zero" in with_guarded_divisions(draw.lower(jax.random.key(0)).as_text())
    assert not re.findall(r"= u32\[\]\S* remainder", optimized)  # of the bounds, which are constants
