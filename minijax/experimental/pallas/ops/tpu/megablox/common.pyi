# The names of this module's table, written by tests/write_stubs.py.

from minijax.kernels.ops.tpu_kinds import assert_is_supported_dtype as assert_is_supported_dtype
from minijax.kernels.ops.tpu_kinds import is_tpu as is_tpu
from minijax.kernels.ops.tpu_kinds import select_input_dtype as select_input_dtype
from minijax.kernels.ops.tpu_kinds import supports_bfloat16_matmul as supports_bfloat16_matmul
from minijax.kernels.ops.tpu_kinds import tpu_generation as tpu_generation
from minijax.kernels.ops.tpu_kinds import tpu_kind as tpu_kind

__all__ = [
    "assert_is_supported_dtype", "is_tpu", "select_input_dtype", "supports_bfloat16_matmul", "tpu_generation",
    "tpu_kind"
]
