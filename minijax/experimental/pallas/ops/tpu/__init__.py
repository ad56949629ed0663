"""jax.experimental.pallas.ops.tpu: operations built from TPU kernels."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    {},
    (
        "all_gather",
        "flash_attention",
        "matmul",
        "megablox",
        "paged_attention",
        "ragged_paged_attention",
        "splash_attention",
    ),
)
