"""jax.experimental.pallas.ops.tpu.ragged_paged_attention.kernel: the functions of the package."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    """
minijax.kernels.ops.tpu_ragged: dynamic_validate_inputs ragged_paged_attention ref_ragged_paged_attention
    static_validate_inputs
""",
)
