"""jax.experimental.pallas.ops.tpu.megablox.common: the kind of the device, and dtypes of products of groups."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    """
minijax.kernels.ops.tpu_kinds: assert_is_supported_dtype is_tpu select_input_dtype supports_bfloat16_matmul
    tpu_generation tpu_kind
""",
)
