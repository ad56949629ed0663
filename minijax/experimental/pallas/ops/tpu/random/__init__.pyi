# The names of this module's table, written by tests/write_stubs.py.

from minijax.experimental.pallas.ops.tpu.random import philox as philox
from minijax.experimental.pallas.ops.tpu.random import prng_utils as prng_utils
from minijax.experimental.pallas.ops.tpu.random import threefry as threefry

__all__ = [
    "philox", "prng_utils", "threefry"
]
