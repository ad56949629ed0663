"""Sizes that no machine holds and types that XLA lacks: an error of Python's, never the end of the process."""

import pytest
from processes import run_python

# Each of these ends the process in jax, or did here.
CALLS = """
jnp.ones(2**62); jnp.ones(2**63); jnp.ones((2**31, 2**31, 2**31)); jnp.ones((2**62, 0)); jnp.full(2**61, 3.0); jnp.eye(2**31)
jnp.arange(2**62); lax.iota("int32", 2**62); jnp.linspace(0, 1, 2**62); jnp.indices((2**20,) * 4); jnp.tri(2**40)
jnp.broadcast_to(jnp.ones(3), (2**61, 3)); jnp.tile(jnp.ones(3), 2**61); jnp.repeat(jnp.ones(3), 2**61)
jnp.reshape(jnp.ones((0, 3)), (2**62, 0)); lax.pad(jnp.ones(3), 0.0, [(2**61, 2**61, 0)]); jnp.vander(jnp.ones(3), 2**62)
jnp.diag(jnp.ones(3), 2**31); jnp.nonzero(jnp.ones(3), size=2**62); jnp.bincount(jnp.ones(3, int), length=2**62)
jnp.fft.fft(jnp.ones(3), 2**62); jnp.hanning(2**62); jax.random.uniform(jax.random.key(0), (2**62,))
jax.random.bits(jax.random.key(0), (2**60,), "uint8"); jax.random.split(jax.random.key(0), 2**62)
jax.nn.one_hot(jnp.arange(3), 2**62); jax.jit(lambda: jnp.ones(2**62).sum())(); jax.jit(lambda: jnp.ones(2**55).astype(complex))()
lax.reduce_window(jnp.ones(8), 0.0, lax.add, (3,), (1,), "SAME", window_dilation=(2**62,))
lax.conv_general_dilated(jnp.ones((1, 1, 8)), jnp.ones((1, 1, 3)), (1,), [(0, 0)], rhs_dilation=(2**62,))
lax.reshape(jnp.ones(3), (-3, -1)); lax.broadcast_in_dim(jnp.ones(3), (3, -3), (0,)); lax.sort((jnp.ones(3),), dimension=2**40)
jnp.ones(3, "float6_e2m3fn"); jax.jit(lambda x: jnp.sort(x.astype("float6_e3m2fn")).astype(float))(jnp.ones(3))
"""

PROGRAM = """
import sys
import minijax as jax
import minijax.numpy as jnp
from minijax import lax

for call in sys.argv[1].replace("\\n", "; ").split("; "):
    if call:
        try:
            jax.block_until_ready(eval(call))
            print(call, "gives an array")
        except (jax.errors.JaxRuntimeError, TypeError, ValueError, OverflowError) as error:
            print(type(error).__name__)
"""


def test_huge_sizes_raise():
    classes = run_python(PROGRAM, CALLS).split()
    assert len(classes) == len(CALLS.strip().replace("\n", "; ").split("; "))
    assert set(classes) == {"JaxRuntimeError", "TypeError", "ValueError", "OverflowError"}


@pytest.mark.parametrize("size", [2**57, 2**62, 2**70])
def test_types_of_huge_arrays_are_types(size):
    import minijax as jax
    import minijax.numpy as jnp

    assert jax.eval_shape(lambda: jnp.ones(size)).shape == (size,)
    with pytest.raises(jax.errors.JaxRuntimeError, match="RESOURCE_EXHAUSTED: Out of memory"):
        jnp.ones(size)
