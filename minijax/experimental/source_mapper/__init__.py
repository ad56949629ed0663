"""jax.experimental.source_mapper: maps lines of jaxprs and modules to source lines."""

from minijax.base.faces import Face

_NAMES = """minijax.interop.source_maps: MappingsGenerator Pass SourceMap SourceMapDump all_passes
    canonicalize_filename create_mlir_sourcemap filter_passes generate_sourcemaps register_pass"""
_FACE = Face(__name__, ("common", "generate_map", "hlo", "jaxpr", "mlir"), _NAMES)
__getattr__, __dir__ = _FACE.attribute, _FACE.names
