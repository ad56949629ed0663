"""jax.experimental.xla_metadata: frontend attributes of operations in XLA."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(__name__, "minijax.api.metadata: set_xla_metadata")
