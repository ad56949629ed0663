"""MLIR contexts for those who build modules of their own."""

from typing import Any

from minijax.interop.lowering import LoweringRuleContext
from minijax.ir.types import ShapedArray
from minijax.run.bindings import extension, ir


class JaxIrContext(ir.Context):
    """An MLIR context, which code may ask for by its class."""


upstream_dialects = ir.DialectRegistry()
extension.register_dialects(upstream_dialects)


def lower_with_sharding_in_types(ctx: LoweringRuleContext, op: Any, aval: ShapedArray) -> Any:
    """The value, in a rule, constrained to lie as its type says.

    Raises NotImplementedError for a type that is split over Explicit axes: results of rules are constrained anyhow.
    """
    if getattr(aval, "_sharding", None) is not None:
        raise NotImplementedError(f"lower_with_sharding_in_types: constraints on a value of type {aval.str_short()}")
    return op
