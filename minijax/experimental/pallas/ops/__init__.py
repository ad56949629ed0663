"""jax.experimental.pallas.ops: programs made of kernels."""

from minijax.base.faces import Face

_FACE = Face(__name__, ("tpu",), {})
__getattr__, __dir__ = _FACE.attribute, _FACE.names
