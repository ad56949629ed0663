"""jax.extend.ifrt_programs: programs of the runtime below XLA's."""

from minijax.base.faces import Face

_FACE = Face(__name__, (), {"jaxlib._jax": "ifrt_programs"})
__getattr__, __dir__ = _FACE.attribute, _FACE.names
