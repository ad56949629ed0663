"""jax.experimental: what may change."""

from minijax.base.faces import Face

_FACE = Face(__name__, ("compute_on", "key_reuse", "source_mapper", "xla_metadata"), {})
__getattr__, __dir__ = _FACE.attribute, _FACE.names
