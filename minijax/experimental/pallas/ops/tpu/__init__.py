"""jax.experimental.pallas.ops.tpu: operations built from TPU kernels."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    {},
    (
        "all_gather",
        "example_kernel",
        "flash_attention",
        "matmul",
        "megablox",
        "paged_attention",
        "ragged_paged_attention",
        "random",
        "splash_attention",
    ),
)
