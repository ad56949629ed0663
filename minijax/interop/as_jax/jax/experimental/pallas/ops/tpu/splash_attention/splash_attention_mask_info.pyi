# The names of this module's table, written by tests/write_stubs.py.

from minijax.experimental.pallas.ops.tpu.splash_attention.splash_attention_mask_info import *
