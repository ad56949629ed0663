"""Verbs for reductions, windows and sorting."""

from collections.abc import Mapping, Sequence
from typing import Any

from minijax.hlo.sizes import Sizes, are_known
from minijax.hlo.spell import attribute, int_array, int_list, int_pairs, physical, results_of, type_of
from minijax.hlo.writer import FLAG, Avals, Build, Ints, Names, Region
from minijax.ir.types import Name, ShapedArray


class Reduction(Sizes):
    """Operations with a region that combines two elements, and top-k."""

    custom_call: Any

    def _reducer(self, reducer: Build | str, avals: Avals, operation: str) -> Region:
        """The region of `operation` over two scalars of each type; a string is the name of a binary operation."""
        units = [ShapedArray((), physical(a).dtype) for a in avals]
        if isinstance(reducer, str):
            name = reducer
            return Region((*units, *units), units, lambda x, y: self.binary(name, x, y, units[0]))

        def build(*names):
            outer, self.reduction = self.reduction, operation
            results = reducer(*names)
            self.reduction = outer
            return results

        return Region((*units, *units), units, build)

    def reduce(
        self, operands: Names, inits: Names, avals: Avals, outs: Avals, axes: Ints, reducer: Build | str
    ) -> list[Name]:
        """`reducer` is the name of a binary operation, or is called with (*accumulated, *values)."""
        units = [ShapedArray((), a.dtype) for a in avals]
        if isinstance(reducer, str) and len(operands) == 1:
            text = (
                f"stablehlo.reduce({operands[0]} init: {inits[0]}) applies stablehlo.{reducer} "
                f"across dimensions = {int_list(tuple(axes))}"
            )
            return [self.result(text, (avals[0], units[0]), outs[0])]
        ins, attrs = (*avals, *units), f"dimensions = {int_array(axes)}"
        return self.op("reduce", (*operands, *inits), ins, outs, attrs, (self._reducer(reducer, avals, "reduce"),))

    def reduce_window(self, operands: Names, inits: Names, avals: Avals, outs: Avals, reducer: Build | str, *,
                      window_dimensions: Ints, window_strides: Ints, padding: Sequence[tuple[int, int]],
                      base_dilation: Ints, window_dilation: Ints) -> list[Name]:  # fmt: skip
        units = [ShapedArray((), a.dtype) for a in avals]
        lists = window_dimensions, window_strides, base_dilation, window_dilation
        if not all(map(are_known, (*lists, *padding))):
            return self._sized_window((*operands, *inits), (*avals, *units), outs, reducer, lists, padding)
        attrs = (
            f"base_dilations = {int_array(base_dilation)}, padding = {int_pairs(padding)}, window_dilations = "
            f"{int_array(window_dilation)}, window_dimensions = {int_array(window_dimensions)}, "
            f"window_strides = {int_array(window_strides)}"
        )
        regions = (self._reducer(reducer, avals, "reduce_window"),)
        return self.op("reduce_window", (*operands, *inits), (*avals, *units), outs, attrs, regions)

    def _sized_window(self, operands, ins, outs, reducer, lists, padding):
        region = self._reducer(reducer, outs, "reduce_window")
        name = f"reduce_window_{'_'.join([a.dtype.name for a in outs])}_reducer"
        callee = self.unique_symbol(name)
        joined = (
            (lambda names: [region.build(*names)]) if isinstance(reducer, str) else lambda names: region.build(*names)
        )
        self.typed_function(callee, region.args, region.outs, joined)
        pads, kind = self.size_pairs(padding)
        operands = (*operands, *map(self.size_list, lists), pads)
        ins = (*ins, *[self.list_type(len(s)) for s in lists], kind)
        options = dict(api_version=2, called=[callee], shaped=False)
        return self.custom_call("stablehlo.dynamic_reduce_window", operands, ins, outs, **options)

    def select_and_scatter(self, x: Name, source: Name, init: Name, aval: ShapedArray, source_aval: ShapedArray,
                           select: Build, scatter: Build | str, *, window_dimensions: Ints,
                           window_strides: Ints, padding: Sequence[tuple[int, int]]) -> Name:  # fmt: skip
        unit = ShapedArray((), aval.dtype)
        attrs = (
            f"padding = {int_pairs(padding)}, window_dimensions = {int_array(window_dimensions)}, "
            f"window_strides = {int_array(window_strides)}"
        )
        regions = (Region((unit, unit), (FLAG,), select), self._reducer(scatter, (aval,), "select_and_scatter"))
        ins = (aval, source_aval, unit)
        return self.op("select_and_scatter", (x, source, init), ins, (aval,), attrs, regions)[0]

    def sort(self, operands: Names, avals: Avals, dim: int, comparator: Build, stable: bool = True) -> list[Name]:
        """`comparator(x0, y0, x1, y1, ...)` returns the flag that element x precedes y."""
        both = [ShapedArray((), a.dtype) for a in avals for _ in range(2)]
        attrs = f"dimension = {dim} : i64, is_stable = {attribute(stable)}"
        regions = (Region(both, (FLAG,), comparator),)
        return self.op("sort", operands, avals, avals, attrs, regions)

    def approx_top_k(
        self, operands: Names, ins: Avals, outs: Avals, k: Any, config: Mapping[str, Any], comparator: str
    ) -> list[Name]:
        """The `k` elements that come first by the function `comparator`; `config` configures the search."""
        target, config = "ApproxTopK", dict(config)
        if are_known((k,)):
            config["top_k"] = k
        else:
            operands, ins, target = (*operands, self.size(k)), (*ins, self.size_type), "stablehlo.dynamic_approx_top_k"
        return self.custom_call(target, operands, ins, outs, backend_config=config, called=(comparator,))

    def top_k(self, x: Name, aval: ShapedArray, outs: Avals, k: int) -> list[Name]:
        if not are_known((k,)):
            operands, ins, target = (x, self.size(k)), (aval, self.size_type), "stablehlo.dynamic_top_k"
            return self.custom_call(target, operands, ins, outs, api_version=2, shaped=False)
        left, right = self._stemmed("values"), self._stemmed("indices")
        self.line(f"{left}, {right} = chlo.top_k({x}, k = {k}) : {type_of(aval)} -> {results_of(outs)}")
        return [left, right]
