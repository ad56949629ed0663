"""jax.experimental.pallas.ops.gpu: operations built from kernels for GPUs."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__, {}, ("attention", "decode_attention", "layer_norm", "paged_attention", "rms_norm", "softmax")
)
