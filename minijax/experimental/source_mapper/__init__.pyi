# The names of this module's table, written by tests/write_stubs.py.

from minijax.experimental.source_mapper import common as common
from minijax.experimental.source_mapper import generate_map as generate_map
from minijax.experimental.source_mapper import hlo as hlo
from minijax.experimental.source_mapper import jaxpr as jaxpr
from minijax.experimental.source_mapper import mlir as mlir
from minijax.interop.source_maps import MappingsGenerator as MappingsGenerator
from minijax.interop.source_maps import Pass as Pass
from minijax.interop.source_maps import SourceMap as SourceMap
from minijax.interop.source_maps import SourceMapDump as SourceMapDump
from minijax.interop.source_maps import all_passes as all_passes
from minijax.interop.source_maps import canonicalize_filename as canonicalize_filename
from minijax.interop.source_maps import create_mlir_sourcemap as create_mlir_sourcemap
from minijax.interop.source_maps import filter_passes as filter_passes
from minijax.interop.source_maps import generate_sourcemaps as generate_sourcemaps
from minijax.interop.source_maps import register_pass as register_pass

__all__ = [
    "MappingsGenerator", "Pass", "SourceMap", "SourceMapDump", "all_passes", "canonicalize_filename", "common",
    "create_mlir_sourcemap", "filter_passes", "generate_map", "generate_sourcemaps", "hlo", "jaxpr", "mlir",
    "register_pass"
]
