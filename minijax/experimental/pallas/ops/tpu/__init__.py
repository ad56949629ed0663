"""jax.experimental.pallas.ops.tpu: operations built from TPU kernels."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__, {}, tuple("all_gather flash_attention matmul megablox paged_attention splash_attention".split())
)
