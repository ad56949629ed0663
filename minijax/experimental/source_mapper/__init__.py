"""jax.experimental.source_mapper: maps lines of jaxprs and modules to source lines."""

from minijax.base.faces import Face

_NAMES = """minijax.interop.source_maps: MappingsGenerator Pass SourceMap SourceMapDump all_passes
    canonicalize_filename create_mlir_sourcemap filter_passes generate_sourcemaps register_pass"""
__getattr__, __dir__ = _FACE = Face(__name__, _NAMES, ("common", "generate_map", "hlo", "jaxpr", "mlir"))
