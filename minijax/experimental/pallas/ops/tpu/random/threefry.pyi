# The names of this module's table, written by tests/write_stubs.py.

from minijax.kernels.ops.tpu_random import BLOCK_SIZE as BLOCK_SIZE
from minijax.kernels.ops.tpu_random import plthreefry_prng_impl as plthreefry_prng_impl
from minijax.kernels.ops.tpu_random import plthreefry_random_bits as plthreefry_random_bits
from minijax.kernels.ops.tpu_random import threefry_2x32_count as threefry_2x32_count

__all__ = [
    "BLOCK_SIZE", "plthreefry_prng_impl", "plthreefry_random_bits", "threefry_2x32_count"
]
