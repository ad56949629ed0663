"""jax.distributed: multi-process programs."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(__name__, {"minijax.api.distributed": "initialize is_initialized shutdown"})
