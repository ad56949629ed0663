"""Lowering rules that call FFI targets."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from minijax.composed.callbacks.ffi import attribute, minor_to_major
from minijax.hlo import spell
from minijax.interop.lowering import LoweringRule, LoweringRuleContext, aval_to_ir_type, ir_attribute
from minijax.ir.types import ShapedArray
from minijax.partition.layouts import Layout
from minijax.run.programs.bindings import ir, stablehlo

_TYPED_API = 4  # the API version from which on calls have attributes


def _minor_to_major(layout: Any, aval: Any, what: str) -> Any:
    """Returns a layout as axes, the innermost first: a `Layout`, axes in that order, or None for row-major."""
    if layout is not None and not isinstance(layout, Layout):
        layout = tuple(layout)[::-1]
    return np.array(minor_to_major(layout, aval, what), np.int64)


def _layouts(given: Sequence | None, avals: Sequence, what: str) -> Any:
    rows = [None] * len(avals) if given is None else given
    if len(rows) < len(avals):
        raise ValueError(f"{what} has {len(rows)} layouts for {len(avals)} values")
    index = ir.IndexType.get()
    orders = [_minor_to_major(x, a, what) for x, a in zip(rows, avals, strict=False)]
    return ir.ArrayAttr.get([ir.DenseIntElementsAttr.get(order, type=index) for order in orders])


def _alias(operand: int, result: int, results: int) -> Any:
    where = [result] if results > 1 else []
    return stablehlo.OutputOperandAlias.get(output_tuple_indices=where, operand_index=operand, operand_tuple_indices=[])


def _config_attributes(target: str, config: Any, params: Mapping, version: int) -> dict[str, Any]:
    """Returns the attributes of a call for its `backend_config` and parameters."""
    if version < _TYPED_API:
        if params or isinstance(config, Mapping):
            raise ValueError(
                f"{target}: The use of ffi_call attributes requires a custom call API version of at least "
                f"{_TYPED_API}; got api_version={version}."
            )
        return {"backend_config": ir.StringAttr.get(config or "")}
    if not isinstance(config, Mapping | None):
        raise ValueError(f"{target}: backend_config must be a dictionary for api_version {version}, got {config!r}")
    config = {**(config or {}), **{name: ir_attribute(attribute(name, value)) for name, value in params.items()}}
    return {"backend_config": ir.StringAttr.get(""), spell.TYPED_CONFIG: ir.DictAttr.get(config)}


def build_ffi_lowering_function(
    call_target_name: str, *, operand_layouts: Sequence | None = None, result_layouts: Sequence | None = None,
    backend_config: Mapping[str, Any] | str | None = None, skip_ffi_layout_processing: bool = False,
    api_version: int = _TYPED_API, has_side_effect: bool = False, result_types: Sequence | None = None,
    result_shapes: Sequence | None = None, called_computations: Sequence[str] = (),
    operand_output_aliases: Mapping[int, int] | None = None, extra_attributes: Mapping[str, Any] | None = None,
) -> Callable[..., Any]:  # fmt: skip
    """Returns a function of a rule's context and operands that emits a call of the target; keywords are attributes.

    Layouts are axes, the innermost first, a `Layout`, or None for row-major. `backend_config` maps names to MLIR
    attributes, or is a string for a target of an API version below 4. Raises ValueError for layouts that do not fit,
    and for attributes of an older target.
    """

    def build(ctx: LoweringRuleContext, *operands: Any, **params: Any) -> Any:
        types = [aval_to_ir_type(None, a) for a in ctx.avals_out] if result_types is None else list(result_types)
        version = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 1 if api_version >= _TYPED_API else api_version)
        attributes = {
            "call_target_name": ir.StringAttr.get(call_target_name),
            "has_side_effect": ir.BoolAttr.get(has_side_effect),
            "api_version": version,
            "called_computations": ir.ArrayAttr.get([ir.FlatSymbolRefAttr.get(name) for name in called_computations]),
            **_config_attributes(call_target_name, backend_config, params, api_version),
        }
        shapes = list(result_shapes or ())
        if result_shapes is not None:
            places = np.arange(len(operands), len(operands) + len(shapes), dtype=np.int64)
            attributes["indices_of_shape_operands"] = ir.DenseIntElementsAttr.get(places)
        if not skip_ffi_layout_processing:
            of_shapes = [ShapedArray(ir.RankedTensorType(x.type).shape, np.int32) for x in shapes]
            rows = (
                ("operand", operand_layouts, [*ctx.avals_in, *of_shapes]),
                ("result", result_layouts, ctx.avals_out),
            )
            for side, given, avals in rows:
                attributes[f"{side}_layouts"] = _layouts(given, avals, f"{call_target_name}: {side}_layouts")
        if operand_output_aliases:
            pairs = [_alias(i, out, len(types)) for i, out in operand_output_aliases.items()]
            attributes["output_operand_aliases"] = ir.ArrayAttr.get(pairs)
        op = ir.Operation.create(stablehlo.CustomCallOp.OPERATION_NAME, types, [*operands, *shapes], attributes)
        for name, value in (extra_attributes or {}).items():
            op.attributes[name] = value
        return op

    return build


def ffi_lowering(call_target_name: str, **options: Any) -> LoweringRule:
    """Returns a lowering rule that calls a target; the equation's parameters are its attributes.

    The options are those of `build_ffi_lowering_function`.
    """
    build = build_ffi_lowering_function(call_target_name, **options)

    def rule(ctx: LoweringRuleContext, *operands: Any, **params: Any) -> list:
        return list(build(ctx, *operands, **params).results)

    return rule
