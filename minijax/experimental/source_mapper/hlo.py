"""jax.experimental.source_mapper.hlo: source maps of StableHLO and HLO modules."""

from minijax.base.faces import Face

_NAMES = """minijax.interop.source_maps: HloPass METADATA_REGEX optimized_generate_dump original_hlo_generate_dump
    _parse_hlo_new_format=map_of_hlo parse_hlo_dump stable_hlo_generate_dump trace_and_lower"""
__getattr__, __dir__ = _FACE = Face(__name__, _NAMES)
