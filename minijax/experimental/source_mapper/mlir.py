"""jax.experimental.source_mapper.mlir: locations in StableHLO modules."""

from minijax.base.faces import Face

_NAMES = """minijax.interop.source_maps: CALLSITE_REGEX LOC_REGEX Location Redirect SCOPED_REGEX SRC_REGEX
    create_mlir_sourcemap parse_mlir_locations"""
__getattr__, __dir__ = _FACE = Face(__name__, _NAMES)
