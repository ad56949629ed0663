"""jax.experimental.source_mapper.generate_map: source maps of functions."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__, {"minijax.interop.source_maps": "SourceMapGeneratorFn generate_sourcemaps"}
)
