# The names of this module's table, written by tests/write_stubs.py.

from minijax.experimental.pallas.ops.tpu import all_gather as all_gather
from minijax.experimental.pallas.ops.tpu import example_kernel as example_kernel
from minijax.experimental.pallas.ops.tpu import flash_attention as flash_attention
from minijax.experimental.pallas.ops.tpu import matmul as matmul
from minijax.experimental.pallas.ops.tpu import megablox as megablox
from minijax.experimental.pallas.ops.tpu import paged_attention as paged_attention
from minijax.experimental.pallas.ops.tpu import ragged_paged_attention as ragged_paged_attention
from minijax.experimental.pallas.ops.tpu import random as random
from minijax.experimental.pallas.ops.tpu import splash_attention as splash_attention

__all__ = [
    "all_gather", "example_kernel", "flash_attention", "matmul", "megablox", "paged_attention",
    "ragged_paged_attention", "random", "splash_attention"
]
