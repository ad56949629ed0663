# The names of this module's table, written by tests/write_stubs.py.

from minijax.experimental.pallas.ops.gpu import attention as attention
from minijax.experimental.pallas.ops.gpu import decode_attention as decode_attention
from minijax.experimental.pallas.ops.gpu import layer_norm as layer_norm
from minijax.experimental.pallas.ops.gpu import paged_attention as paged_attention
from minijax.experimental.pallas.ops.gpu import rms_norm as rms_norm
from minijax.experimental.pallas.ops.gpu import softmax as softmax

__all__ = [
    "attention", "decode_attention", "layer_norm", "paged_attention", "rms_norm", "softmax"
]
