"""jax.experimental.compute_on: selects where operations are computed."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(__name__, "minijax.api.metadata: compute_on compute_on2")
