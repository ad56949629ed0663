# The names of this module's table, written by tests/write_stubs.py.

from minijax.interop.source_maps import Location as Location
from minijax.interop.source_maps import Redirect as Redirect
from minijax.interop.source_maps import create_mlir_sourcemap as create_mlir_sourcemap
from minijax.interop.source_maps import parse_mlir_locations as parse_mlir_locations
from re import Pattern

__all__ = [
    "CALLSITE_REGEX", "LOC_REGEX", "Location", "Redirect", "SCOPED_REGEX", "SRC_REGEX", "create_mlir_sourcemap",
    "parse_mlir_locations"
]

CALLSITE_REGEX: Pattern
LOC_REGEX: Pattern
SCOPED_REGEX: Pattern
SRC_REGEX: Pattern
