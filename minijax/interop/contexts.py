"""MLIR contexts for code that builds modules."""

from typing import Any

from minijax.interop.lowering import LoweringRuleContext
from minijax.ir.types import ShapedArray
from minijax.run.programs.bindings import extension, ir


class JaxIrContext(ir.Context):
    """An MLIR context of a class that code can import."""


upstream_dialects = ir.DialectRegistry()
extension.register_dialects(upstream_dialects)


def lower_with_sharding_in_types(ctx: LoweringRuleContext, op: Any, aval: ShapedArray) -> Any:
    """Constrains a value in a lowering rule to the sharding of its type.

    Raises NotImplementedError for a type sharded over Explicit axes: results of rules are constrained in any case.
    """
    if aval.has_mesh:
        raise NotImplementedError(f"lower_with_sharding_in_types: constraints on a value of type {aval.str_short()}")
    return op
