"""jax.experimental.pallas.ops.tpu: programs made of kernels for TPUs."""

from minijax.base.faces import Face

_FACE = Face(__name__, ("splash_attention",), {})
__getattr__, __dir__ = _FACE.attribute, _FACE.names
