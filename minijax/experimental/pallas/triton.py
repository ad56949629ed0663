"""jax.experimental.pallas.triton: kernels for NVIDIA GPUs."""

from minijax.base.faces import Face

_FACE = Face(
    __name__,
    (),
    {},
    missing={
        "jax.experimental.pallas.triton.{0} is not there: minijax has no kernels of its own.": """
        CompilerParams approx_tanh atomic_add atomic_and atomic_cas atomic_max atomic_min atomic_or
        atomic_xchg atomic_xor debug_barrier dot elementwise_inline_asm load max_contiguous store
    """
    },
)
__getattr__, __dir__ = _FACE.attribute, _FACE.names
