"""The masks of splash attention."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    """
minijax.kernels.ops.splash_masks: CausalMask ChunkedCausalMask FullMask LocalMask LogicalAnd LogicalOr Mask
    MultiHeadMask NumpyMask make_causal_mask make_chunk_attention_mask make_local_attention_mask make_random_mask
""",
)
