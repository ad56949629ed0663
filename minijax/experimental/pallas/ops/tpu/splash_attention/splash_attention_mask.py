"""The masks of splash attention."""

from minijax.base.faces import Face

_FACE = Face(
    __name__,
    (),
    {},
    missing={
        "jax.experimental.pallas.ops.tpu.splash_attention.{0} is not there: minijax has no kernels of its own.": """
        CausalMask FullMask LocalMask Mask MultiHeadMask NumpyMask make_causal_mask
        make_local_attention_mask make_random_mask ChunkedCausalMask LogicalAnd LogicalOr
        make_chunk_attention_mask
    """
    },
)
__getattr__, __dir__ = _FACE.attribute, _FACE.names
