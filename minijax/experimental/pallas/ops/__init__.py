"""jax.experimental.pallas.ops: operations built from kernels."""

from minijax.base.faces import Face

_FACE = Face(__name__, ("gpu", "tpu"), {})
__getattr__, __dir__ = _FACE.attribute, _FACE.names
