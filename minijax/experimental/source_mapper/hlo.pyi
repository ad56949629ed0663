# The names of this module's table, written by tests/write_stubs.py.

from minijax.interop.source_maps import HloPass as HloPass
from minijax.interop.source_maps import map_of_hlo as _parse_hlo_new_format
from minijax.interop.source_maps import optimized_generate_dump as optimized_generate_dump
from minijax.interop.source_maps import original_hlo_generate_dump as original_hlo_generate_dump
from minijax.interop.source_maps import parse_hlo_dump as parse_hlo_dump
from minijax.interop.source_maps import stable_hlo_generate_dump as stable_hlo_generate_dump
from minijax.interop.source_maps import trace_and_lower as trace_and_lower
from re import Pattern

__all__ = [
    "HloPass", "METADATA_REGEX", "optimized_generate_dump", "original_hlo_generate_dump", "parse_hlo_dump",
    "stable_hlo_generate_dump", "trace_and_lower"
]

METADATA_REGEX: Pattern
