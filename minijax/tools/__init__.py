"""jax.tools: scripts."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(__name__, {}, later=("jax_to_ir", "pgo_nsys_converter"))
