"""jax.extend.ifrt_programs: programs of the runtime below XLA's."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(__name__, {"jaxlib._jax": "ifrt_programs"})
