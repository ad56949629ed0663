"""Rewrites modules that jax exported over meshes: without regions, XLA can refine their shapes.

`mlir` is the module of jaxlib's MLIR bindings.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

REGION_BODY = "xla.sdy.manual_computation_body"  # Shardy recognises the function by this name
_QUOTED = re.compile(r'"([^"]*)"')


def make_refinable(mlir: Any, module: Any, rename: Callable[[str], str]) -> None:
    """Outlines regions with manual axes to functions, since XLA does not refine shapes inside a region.

    Removes sharding constraints on integer scalars, from which sizes are computed: XLA would not see that they are
    constant. `rename` returns unused names.
    """
    regions, scalars, ir = [], [], mlir.ir

    def visit(op):
        name = op.operation.name
        if name == "sdy.manual_computation":
            regions.append(op.operation)
        if name == "sdy.sharding_constraint" and _is_integer(mlir, op.operation.operands[0]):
            scalars.append(op.operation)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    with module.context, ir.Location.unknown():
        for op in scalars:
            op.results[0].replace_all_uses_with(op.operands[0])
            op.erase()
        for op, count in [(op, sum([_is_global(mlir, x) for x in op.operands])) for op in regions]:
            if len(op.operands) > count:
                _Region(mlir, module, op, count).outline(rename(REGION_BODY))


def _is_integer(mlir: Any, value: Any) -> bool:
    kind = mlir.ir.RankedTensorType(value.type)
    return not kind.rank and isinstance(kind.element_type, mlir.ir.IntegerType)


def _is_global(mlir: Any, value: Any) -> bool:
    """Returns whether a value is the platform index or a dimension variable, which all functions take."""
    ir = mlir.ir
    if not isinstance(value.owner, ir.Block):
        return False
    number, owner = ir.BlockArgument(value).arg_number, value.owner.owner.operation
    if owner.name == "sdy.manual_computation":
        return _is_global(mlir, owner.operands[number])
    if owner.name != "func.func" or "arg_attrs" not in owner.attributes:
        return False
    attrs = ir.DictAttr(ir.ArrayAttr(owner.attributes["arg_attrs"])[number])
    return "jax.global_constant" in attrs and bool(ir.StringAttr(attrs["jax.global_constant"]).value)


class _Region:
    """A region, whose first `count` operands are globals."""

    def __init__(self, mlir: Any, module: Any, op: Any, count: int):
        self._mlir, self._module, self._op, self._count = mlir, module, op, count
        self._manual = _QUOTED.findall(str(op.attributes["manual_axes"]))
        self._symbols = mlir.ir.SymbolTable(module.operation)

    def outline(self, name: str) -> None:
        """Replaces the region by a function of this name, which takes shards of the operands and returns shards."""
        ir, func, op, count = self._mlir.ir, self._mlir.func, self._op, self._count
        block = op.regions[0].blocks[0]
        (*_, end) = block.operations
        types, outs = [a.type for a in block.arguments], [x.type for x in end.operands]
        with ir.InsertionPoint(self._module.body):
            function = func.FuncOp(name, (types, outs), visibility="private")
        block.append_to(function.operation.regions[0])
        with ir.InsertionPoint(end):
            func.ReturnOp(list(end.operands))
        end.operation.erase()
        with ir.InsertionPoint(op):
            parts = self._reshaped("GlobalToLocalShape", list(op.operands)[count:], types[count:], "in", count)
            call = func.CallOp(outs, ir.FlatSymbolRefAttr.get(name), [*list(op.operands)[:count], *parts])
            call.operation.attributes["no_inline"] = ir.UnitAttr.get()
            results = [x.type for x in op.results]
            joined = self._reshaped("LocalToGlobalShape", list(call.operation.results), results, "out", 0)
        for old, new in zip(op.results, joined, strict=True):
            old.replace_all_uses_with(new)
        op.erase()

    def _reshaped(self, name: str, values: Sequence, types: Sequence, side: str, skipped: int) -> Sequence:
        """Converts global values to shards, or shards to global values; their new sizes are additional operands."""
        ir, sdy = self._mlir.ir, self._mlir.sdy
        attr = sdy.TensorShardingPerValueAttr(self._op.attributes[f"{side}_shardings"])
        shardings = list(map(sdy.TensorShardingAttr, attr.shardings))[skipped:]
        resize = self._mlir.stablehlo.divide if side == "in" else self._mlir.stablehlo.multiply
        lists = [self._sizes(x, s, resize) for x, s in zip(values, shardings, strict=True)]
        texts = ", ".join([self._with_inline_mesh(s) for s in shardings])
        frontend = {
            f"xla.sdy.{side}_shardings": f"#sdy.sharding_per_value<[{texts}]>",
            "xla.sdy.manual_axes": str(self._op.attributes["manual_axes"]),
        }
        numbers = list(range(len(values), 2 * len(values)))
        attrs = {
            "call_target_name": ir.StringAttr.get(f"xla.sdy.{name}"),
            "has_side_effect": ir.BoolAttr.get(True),
            "indices_of_shape_operands": ir.Attribute.parse(f"dense<{numbers}> : tensor<{len(values)}xi64>"),
            "mhlo.frontend_attributes": ir.DictAttr.get({k: ir.StringAttr.get(v) for k, v in frontend.items()}),
        }
        return ir.Operation.create("stablehlo.custom_call", list(types), [*values, *lists], attrs).results

    def _with_inline_mesh(self, sharding: Any) -> str:
        """A sharding with its mesh inline, because merging modules may rename the mesh symbol."""
        mesh = str(self._mesh(sharding)).removeprefix("#sdy.")
        return str(sharding).removeprefix("#sdy.sharding").replace(str(sharding.mesh_or_ref), mesh, 1)

    def _mesh(self, sharding: Any) -> Any:
        ir, named = self._mlir.ir, sharding.mesh_or_ref
        if isinstance(named, ir.FlatSymbolRefAttr):
            named = self._symbols[ir.FlatSymbolRefAttr(named).value].attributes["mesh"]
        return self._mlir.sdy.MeshAttr(named)

    def _sizes(self, value: Any, sharding: Any, resize: Callable) -> Any:
        """The sizes of a value, divided or multiplied by the number of shards, as an array."""
        sdy, stablehlo = self._mlir.sdy, self._mlir.stablehlo
        counts = {a.name: a.size for a in map(sdy.MeshAxisAttr, self._mesh(sharding).axes)}
        parts = []
        for axis, dim in enumerate(sharding.dimension_shardings):
            size = stablehlo.get_dimension_size(value, axis)
            for ref in map(sdy.AxisRefAttr, sdy.DimensionShardingAttr(dim).axes):
                if ref.name in self._manual:
                    size = resize(size, self._numbers([], counts[ref.name]))
            parts.append(stablehlo.reshape(self._type([1]), size))
        return stablehlo.concatenate(parts, 0) if parts else self._numbers([0], [])

    def _type(self, shape: Sequence[int]) -> Any:
        return self._mlir.ir.RankedTensorType.get(shape, self._mlir.ir.IntegerType.get_signless(32))

    def _numbers(self, shape: Sequence[int], values: Any) -> Any:
        attr = self._mlir.ir.Attribute.parse(f"dense<{values}> : {self._type(shape)}")
        return self._mlir.stablehlo.constant(self._mlir.ir.DenseElementsAttr(attr))
