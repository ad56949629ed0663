# The names of this module's table, written by tests/write_stubs.py.

from jaxlib.mlir._mlir_libs._mlir.ir import DialectRegistry
from minijax.interop.lowering import JaxIrContext as JaxIrContext
from minijax.interop.lowering import LoweringRuleContext as LoweringRuleContext

__all__ = [
    "JaxIrContext", "LoweringRuleContext", "upstream_dialects"
]

upstream_dialects: DialectRegistry
