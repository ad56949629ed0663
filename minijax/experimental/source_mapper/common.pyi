# The names of this module's table, written by tests/write_stubs.py.

from minijax.interop.source_maps import CompileFn as CompileFn
from minijax.interop.source_maps import GenerateDumpFn as GenerateDumpFn
from minijax.interop.source_maps import Pass as Pass
from minijax.interop.source_maps import SourceMapDump as SourceMapDump
from minijax.interop.source_maps import all_passes as all_passes
from minijax.interop.source_maps import filter_passes as filter_passes
from minijax.interop.source_maps import register_pass as register_pass

__all__ = [
    "CompileFn", "GenerateDumpFn", "Pass", "SourceMapDump", "all_passes", "filter_passes", "register_pass"
]
