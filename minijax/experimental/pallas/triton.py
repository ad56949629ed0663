"""jax.experimental.pallas.triton: kernels for GPUs."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    """
minijax.kernels.operations.asm: approx_tanh dot elementwise_inline_asm
minijax.kernels.operations.atomics: atomic_add atomic_and atomic_cas atomic_max atomic_min atomic_or atomic_xchg
    atomic_xor
minijax.kernels.operations.masked: load store
minijax.kernels.operations.tpu: debug_barrier
minijax.kernels.operations.values: max_contiguous
minijax.kernels.parameters: CompilerParams=TritonParams
""",
)
