"""jax.experimental.pallas.ops.tpu.ragged_paged_attention: attention of sequences of any lengths, with keys in pages."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    """
minijax.kernels.ops.tpu_ragged: dynamic_validate_inputs get_tuned_block_sizes ragged_paged_attention
    ref_ragged_paged_attention static_validate_inputs
""",
    ("kernel", "tuned_block_sizes"),
)
