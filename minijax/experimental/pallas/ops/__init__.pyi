# The names of this module's table, written by tests/write_stubs.py.

from minijax.experimental.pallas.ops import gpu as gpu
from minijax.experimental.pallas.ops import tpu as tpu

__all__ = [
    "gpu", "tpu"
]
