"""jax.experimental.pallas.ops.tpu.ragged_paged_attention.tuned_block_sizes: sizes of blocks."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(__name__, "minijax.kernels.ops.tpu_ragged: get_tuned_block_sizes")
