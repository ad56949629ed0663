"""jax.experimental.source_mapper.common: compiler passes and their source maps."""

from minijax.base.faces import Face

_NAMES = """minijax.interop.source_maps: CompileFn GenerateDumpFn Pass SourceMapDump all_passes filter_passes
    register_pass"""
__getattr__, __dir__ = _FACE = Face(__name__, _NAMES)
