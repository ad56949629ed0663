"""jax.experimental.mosaic.gpu.core."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(__name__, "minijax.kernels.parameters: artificial_shared_memory_limit")
