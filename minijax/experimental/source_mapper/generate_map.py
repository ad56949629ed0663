"""jax.experimental.source_mapper.generate_map: functions and the maps of their texts."""

from minijax.base.faces import Face

_FACE = Face(__name__, (), {"minijax.interop.source_maps": "SourceMapGeneratorFn generate_sourcemaps"})
__getattr__, __dir__ = _FACE.attribute, _FACE.names
