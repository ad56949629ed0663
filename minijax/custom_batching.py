"""jax.custom_batching: functions with custom batching rules."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(__name__, "minijax.api.custom_batching: custom_vmap sequential_vmap")
