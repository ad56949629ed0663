# The names of this module's table, written by tests/write_stubs.py.

from minijax.kernels.ops.tpu_random import BLOCK_SIZE as BLOCK_SIZE
from minijax.kernels.ops.tpu_random import mul32_hi_lo as mul32_hi_lo
from minijax.kernels.ops.tpu_random import philox_4x32 as philox_4x32
from minijax.kernels.ops.tpu_random import philox_4x32_count as philox_4x32_count
from minijax.kernels.ops.tpu_random import philox_4x32_kernel as philox_4x32_kernel
from minijax.kernels.ops.tpu_random import philox_fold_in as philox_fold_in
from minijax.kernels.ops.tpu_random import philox_random_bits as philox_random_bits
from minijax.kernels.ops.tpu_random import philox_split as philox_split
from minijax.kernels.ops.tpu_random import plphilox_prng_impl as plphilox_prng_impl

__all__ = [
    "BLOCK_SIZE", "mul32_hi_lo", "philox_4x32", "philox_4x32_count", "philox_4x32_kernel", "philox_fold_in",
    "philox_random_bits", "philox_split", "plphilox_prng_impl"
]
