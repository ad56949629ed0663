"""jax.experimental.source_mapper.generate_map: source maps of functions."""

from minijax.base.faces import Face

_FACE = Face(__name__, (), {"minijax.interop.source_maps": "SourceMapGeneratorFn generate_sourcemaps"})
__getattr__, __dir__ = _FACE.attribute, _FACE.names
