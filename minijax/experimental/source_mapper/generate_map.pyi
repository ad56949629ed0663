# The names of this module's table, written by tests/write_stubs.py.

from minijax.interop.source_maps import SourceMapGeneratorFn as SourceMapGeneratorFn
from minijax.interop.source_maps import generate_sourcemaps as generate_sourcemaps

__all__ = [
    "SourceMapGeneratorFn", "generate_sourcemaps"
]
