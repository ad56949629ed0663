"""jax.experimental.pallas.ops: operations built from kernels."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(__name__, {}, ("gpu", "tpu"))
