"""Arrays of small integers with a factor for each row."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    """
minijax.kernels.ops.tpu_paged: QuantizedTensor from_int8 get_quantization_scales quantize_to_int8 to_int8
    unquantize_from_int8
""",
)
