# The names of this module's table, written by tests/write_stubs.py.

from minijax.kernels.ops.tpu_paged import QuantizedTensor as QuantizedTensor
from minijax.kernels.ops.tpu_paged import from_int8 as from_int8
from minijax.kernels.ops.tpu_paged import get_quantization_scales as get_quantization_scales
from minijax.kernels.ops.tpu_paged import quantize_to_int8 as quantize_to_int8
from minijax.kernels.ops.tpu_paged import to_int8 as to_int8
from minijax.kernels.ops.tpu_paged import unquantize_from_int8 as unquantize_from_int8

__all__ = [
    "QuantizedTensor", "from_int8", "get_quantization_scales", "quantize_to_int8", "to_int8", "unquantize_from_int8"
]
