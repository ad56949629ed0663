"""The verbs that lowering rules speak: one per StableHLO operation, and calls of nested jaxprs.

Each verb appends a line and returns the name of its result; types come from avals. Verbs that move data
(broadcast, slice, gather, ...) add the trailing dimensions of extended dtypes themselves.
"""

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from minijax.base import dtypes
from minijax.hlo import spell
from minijax.hlo.shardy import Meshes
from minijax.hlo.spell import attribute, int_array, int_list, physical, results_of, suffix_of, type_of, types_of
from minijax.hlo.writer import Avals, Build, Names, Region, Writer
from minijax.ir.context import EMPTY, EqnContext
from minijax.ir.effects import ordered_effects
from minijax.ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn
from minijax.ir.types import ShapedArray, token_type

_BOOL = np.dtype(bool)
_INT32 = np.dtype(np.int32)
_TWO_BITS = frozenset((dtypes.int2, dtypes.uint2))
MAX_CALL_DEPTH = 64  # XLA crashes near 200 nested calls
constant_writers: dict[type, Callable[[Any, Any, ShapedArray], str]] = {}  # of users' types


class Emitter(Writer):
    """Writes one module."""

    def __init__(self, platform: str = "cpu", *, locate: Callable | None = None):
        super().__init__(platform, locate=locate)
        self.num_partitions = 1
        self.callbacks: list[Any] = []  # host functions that the executable needs
        self.tokens: dict[Any, str] = {}  # ordered effect -> its current token
        self.meshes = Meshes(self.preamble, self.unique_symbol)
        self.manual: Any = None  # inside `manual_computation`: its mesh, and the axes that are manual so far
        self._called: dict[Any, tuple[str, int]] = {}  # (jaxpr, name) -> symbol, height of calls below
        self._depth = self._height = 0

    physical = staticmethod(physical)

    # ---- filled arrays ----------------------------------------------------------------------------

    def full(self, value: Any, aval: ShapedArray) -> str:
        """An array with one value everywhere."""
        aval = physical(aval)
        if not aval.shape:
            return self.constant(value, aval)
        single = ShapedArray((), aval.dtype)
        return self.broadcast_in_dim(self.constant(value, single), single, aval, ())

    def zeros(self, aval: ShapedArray) -> str:
        return self.full(0, aval)

    def iota(self, dim: int, aval: ShapedArray) -> str:
        n = self._n = self._n + 1
        self.lines.append(f"{self._in}%{n} = stablehlo.iota dim = {dim} : {type_of(aval)}")
        return f"%{n}"

    # ---- elementwise with other types -------------------------------------------------------------

    def convert(self, x: str, aval: ShapedArray, out: ShapedArray) -> str:
        return self.map_to("convert", x, aval, out)

    def bitcast_convert(self, x: str, aval: ShapedArray, out: ShapedArray) -> str:
        return self.map_to("bitcast_convert", x, aval, out)

    def reduce_precision(self, x: str, aval: ShapedArray, exponent_bits: int, mantissa_bits: int) -> str:
        return self.unary("reduce_precision", x, aval, f", format = e{exponent_bits}m{mantissa_bits}")

    def compare(self, direction: str, x: str, y: str, aval: ShapedArray, kind: str | None = None) -> str:
        """`direction` is EQ, NE, LT, ...; `kind` FLOAT, TOTALORDER, SIGNED, UNSIGNED, or by dtype."""
        real = physical(aval)
        out = ShapedArray(real.shape, _BOOL)
        kind = kind or spell.comparison_of(real.dtype)
        text = real._hlo or type_of(real)
        n = self._n = self._n + 1
        self.lines.append(
            f"{self._in}%{n} = stablehlo.compare {direction}, {x}, {y}, {kind} : "
            f"({text}, {text}) -> {out._hlo or type_of(out)}"
        )
        if real is aval:
            return f"%{n}"
        both, axes = direction == "EQ", range(aval.ndim, real.ndim)
        unit, whole = ShapedArray((), _BOOL), ShapedArray(aval.shape, _BOOL)
        start = self.constant(both, unit)
        return self.reduce([f"%{n}"], [start], [out], [whole], tuple(axes), "and" if both else "or")[0]

    def select(self, pred: str, on_true: str, on_false: str, pred_aval: ShapedArray, aval: ShapedArray) -> str:
        """`pred` has the shape of the cases, or none."""
        if suffix_of(aval):
            wide = ShapedArray(physical(aval).shape, _BOOL)
            pred = self.broadcast_in_dim(pred, pred_aval, wide, tuple(range(pred_aval.ndim)))
            pred_aval = wide
        n = self._n = self._n + 1
        self.lines.append(
            f"{self._in}%{n} = stablehlo.select {pred}, {on_true}, {on_false} : "
            f"{pred_aval._hlo or type_of(pred_aval)}, {aval._hlo or type_of(aval)}"
        )
        return f"%{n}"

    def clamp(self, low: str, x: str, high: str, aval: ShapedArray) -> str:
        n = self._n = self._n + 1
        self.lines.append(f"{self._in}%{n} = stablehlo.clamp {low}, {x}, {high} : {type_of(aval)}")
        return f"%{n}"

    # ---- shape ------------------------------------------------------------------------------------

    def broadcast_in_dim(self, x: str, aval: ShapedArray, out: ShapedArray, dims: Sequence[int]) -> str:
        """Axis i of `x` becomes axis `dims[i]` of the result."""
        if suffix := suffix_of(aval):
            dims = (*dims, *range(out.ndim, out.ndim + len(suffix)))
        n = self._n = self._n + 1
        self.lines.append(
            f"{self._in}%{n} = stablehlo.broadcast_in_dim {x}, dims = {int_list(tuple(dims))} : "
            f"({aval._hlo or type_of(aval)}) -> {out._hlo or type_of(out)}"
        )
        return f"%{n}"

    def broadcast_to(self, x: str, aval: ShapedArray, shape: tuple[int, ...]) -> str:
        """As NumPy broadcasts: the axes of `x` are the last ones, those of size 1 grow."""
        out = ShapedArray(shape, aval.dtype)
        return self.broadcast_in_dim(x, aval, out, range(len(shape) - aval.ndim, len(shape)))

    def reshape(self, x: str, aval: ShapedArray, out: ShapedArray) -> str:
        return self.map_to("reshape", x, aval, out)

    def transpose(self, x: str, aval: ShapedArray, out: ShapedArray, permutation: Sequence[int]) -> str:
        if suffix := suffix_of(aval):
            permutation = (*permutation, *range(aval.ndim, aval.ndim + len(suffix)))
        return self.map_to("transpose", x, aval, out, f", dims = {int_list(tuple(permutation))}")

    def slice(self, x: str, aval: ShapedArray, out: ShapedArray, start: Sequence[int], limit: Sequence[int],
              strides: Sequence[int] | None = None) -> str:  # fmt: skip
        strides = strides or (1,) * aval.ndim
        parts = [f"{a}:{b}" if s == 1 else f"{a}:{b}:{s}" for a, b, s in zip(start, limit, strides, strict=True)]
        parts += [f"0:{d}" for d in suffix_of(aval)]
        return self.map_to("slice", x, aval, out, f" [{', '.join(parts)}]")

    def pad(self, x: str, value: str, aval: ShapedArray, out: ShapedArray, low: Sequence[int],
            high: Sequence[int], interior: Sequence[int]) -> str:  # fmt: skip
        """Pads with the scalar `value`."""
        if suffix_of(aval):
            return self._pad_extended(x, value, aval, out, low, high, interior)
        single = ShapedArray((), aval.dtype)
        edges = [int_list(tuple(e)) for e in (low, high, interior)]
        text = f"stablehlo.pad {x}, {value}, low = {edges[0]}, high = {edges[1]}, interior = {edges[2]}"
        return self.result(text, (aval, single), out)

    def _pad_extended(self, x, value, aval, out, low, high, interior):
        """The padding value is an array in memory: pads with zeros, then fills in where a mask says."""
        nothing = (0,) * len(suffix_of(aval))
        edges = [(*e, *nothing) for e in (low, high, interior)]
        real, real_out = physical(aval), physical(out)
        zero, unit = ShapedArray((), real.dtype), ShapedArray((), _BOOL)
        inside = self.full(True, ShapedArray(aval.shape, _BOOL))
        mask_out = ShapedArray(out.shape, _BOOL)
        mask = self.pad(
            inside, self.constant(False, unit), ShapedArray(aval.shape, _BOOL), mask_out, low, high, interior
        )
        padded = self.pad(x, self.constant(0, zero), real, real_out, *edges)
        filler = self.broadcast_in_dim(value, ShapedArray((), aval.dtype), out, ())
        return self.select(mask, padded, filler, mask_out, out)

    def concatenate(self, operands: Names, ins: Avals, out: ShapedArray, dim: int) -> str:
        if out.dtype in _TWO_BITS and self.platform == "cpu":  # which XLA crashes on
            wide = [ShapedArray(a.shape, dtypes.int8) for a in (*ins, out)]
            operands = [self.convert(x, a, w) for x, a, w in zip(operands, ins, wide, strict=False)]
            return self.convert(self.concatenate(operands, wide[:-1], wide[-1], dim), wide[-1], out)
        return self.result(f"stablehlo.concatenate {', '.join(operands)}, dim = {dim}", ins, out)

    def reverse(self, x: str, aval: ShapedArray, dims: Sequence[int]) -> str:
        return self.unary("reverse", x, aval, f", dims = {int_list(tuple(dims))}")

    # ---- indexing ---------------------------------------------------------------------------------

    def _with_suffix_starts(self, starts, index_avals, aval):
        suffix = suffix_of(aval)
        if not suffix:
            return starts, index_avals
        index = index_avals[0] if index_avals else ShapedArray((), _INT32)
        zeros = [self.constant(0, index) for _ in suffix]
        return (*starts, *zeros), (*index_avals, *([index] * len(suffix)))

    def dynamic_slice(self, x: str, starts: Names, aval: ShapedArray, index_avals: Avals, out: ShapedArray) -> str:
        starts, index_avals = self._with_suffix_starts(starts, index_avals, aval)
        sizes = int_list(physical(out).shape)
        return self.result(
            f"stablehlo.dynamic_slice {', '.join((x, *starts))}, sizes = {sizes}", (aval, *index_avals), out
        )

    def dynamic_update_slice(
        self, x: str, update: str, starts: Names, aval: ShapedArray, update_aval: ShapedArray, index_avals: Avals
    ) -> str:
        starts, index_avals = self._with_suffix_starts(starts, index_avals, aval)
        return self.result(
            f"stablehlo.dynamic_update_slice {', '.join((x, update, *starts))}", (aval, update_aval, *index_avals), aval
        )

    def gather(self, x: str, indices: str, aval: ShapedArray, indices_aval: ShapedArray, out: ShapedArray, *,
               offset_dims: Sequence[int], collapsed_slice_dims: Sequence[int],
               start_index_map: Sequence[int], slice_sizes: Sequence[int],
               operand_batching_dims: Sequence[int] = (), start_indices_batching_dims: Sequence[int] = (),
               indices_are_sorted: bool = False) -> str:  # fmt: skip
        """The last axis of `indices` holds the index vectors."""
        if suffix := suffix_of(aval):
            offset_dims = (*offset_dims, *range(out.ndim, out.ndim + len(suffix)))
            slice_sizes = (*slice_sizes, *suffix)
        numbers = _numbers(
            offset_dims=offset_dims,
            collapsed_slice_dims=collapsed_slice_dims,
            operand_batching_dims=operand_batching_dims,
            start_indices_batching_dims=start_indices_batching_dims,
            start_index_map=start_index_map,
            index_vector_dim=indices_aval.ndim - 1,
        )
        attrs = (
            f"dimension_numbers = #stablehlo.gather<{numbers}>, "
            f"indices_are_sorted = {attribute(indices_are_sorted)}, slice_sizes = {int_array(slice_sizes)}"
        )
        return self.op("gather", (x, indices), (aval, indices_aval), (out,), attrs)[0]

    def scatter(self, operands: Names, indices: str, updates: Names, avals: Avals, indices_aval: ShapedArray,
                update_avals: Avals, reducer: Build | str | None, *, update_window_dims: Sequence[int],
                inserted_window_dims: Sequence[int], scatter_dims_to_operand_dims: Sequence[int],
                input_batching_dims: Sequence[int] = (), scatter_indices_batching_dims: Sequence[int] = (),
                indices_are_sorted: bool = False, unique_indices: bool = False) -> list[str]:  # fmt: skip
        """`reducer(*old, *updates)` names the new elements; None keeps the updates."""
        if suffix := suffix_of(avals[0]):
            rank = update_avals[0].ndim
            update_window_dims = (*update_window_dims, *range(rank, rank + len(suffix)))
        numbers = _numbers(
            update_window_dims=update_window_dims,
            inserted_window_dims=inserted_window_dims,
            input_batching_dims=input_batching_dims,
            scatter_indices_batching_dims=scatter_indices_batching_dims,
            scatter_dims_to_operand_dims=scatter_dims_to_operand_dims,
            index_vector_dim=indices_aval.ndim - 1,
        )
        attrs = (
            f"indices_are_sorted = {attribute(indices_are_sorted)}, scatter_dimension_numbers = "
            f"#stablehlo.scatter<{numbers}>, unique_indices = {attribute(unique_indices)}"
        )
        if reducer is None:
            reducer = lambda *names: names[len(avals) :]  # noqa: E731
        ins = (*avals, indices_aval, *update_avals)
        regions = (self._reducer(reducer, avals),)
        return self.op("scatter", (*operands, indices, *updates), ins, avals, attrs, regions)

    # ---- reductions, windows, sort ----------------------------------------------------------------

    def _reducer(self, reducer: Build | str, avals: Avals) -> Region:
        """A region over two scalars of each type; a string names a binary operation."""
        units = [ShapedArray((), physical(a).dtype) for a in avals]
        if isinstance(reducer, str):
            name = reducer
            reducer = lambda x, y: self.binary(name, x, y, units[0])  # noqa: E731
        return Region((*units, *units), units, reducer)

    def reduce(
        self, operands: Names, inits: Names, avals: Avals, outs: Avals, axes: Sequence[int], reducer: Build | str
    ) -> list[str]:
        """`reducer` names a binary operation, or is called with (*accumulated, *values)."""
        units = [ShapedArray((), a.dtype) for a in avals]
        if isinstance(reducer, str) and len(operands) == 1:
            text = (
                f"stablehlo.reduce({operands[0]} init: {inits[0]}) applies stablehlo.{reducer} "
                f"across dimensions = {int_list(tuple(axes))}"
            )
            return [self.result(text, (avals[0], units[0]), outs[0])]
        return self.op(
            "reduce",
            (*operands, *inits),
            (*avals, *units),
            outs,
            f"dimensions = {int_array(axes)}",
            (self._reducer(reducer, avals),),
        )

    def reduce_window(self, operands: Names, inits: Names, avals: Avals, outs: Avals, reducer: Build | str, *,
                      window_dimensions: Sequence[int], window_strides: Sequence[int],
                      padding: Sequence[tuple[int, int]], base_dilation: Sequence[int],
                      window_dilation: Sequence[int]) -> list[str]:  # fmt: skip
        units = [ShapedArray((), a.dtype) for a in avals]
        attrs = (
            f"base_dilations = {int_array(base_dilation)}, padding = {_pairs(padding)}, window_dilations = "
            f"{int_array(window_dilation)}, window_dimensions = {int_array(window_dimensions)}, "
            f"window_strides = {int_array(window_strides)}"
        )
        return self.op(
            "reduce_window", (*operands, *inits), (*avals, *units), outs, attrs, (self._reducer(reducer, avals),)
        )

    def select_and_scatter(self, x: str, source: str, init: str, aval: ShapedArray, source_aval: ShapedArray,
                           select: Build, scatter: Build | str, *, window_dimensions: Sequence[int],
                           window_strides: Sequence[int],
                           padding: Sequence[tuple[int, int]]) -> str:  # fmt: skip
        unit, flag = ShapedArray((), aval.dtype), ShapedArray((), _BOOL)
        attrs = (
            f"padding = {_pairs(padding)}, window_dimensions = {int_array(window_dimensions)}, "
            f"window_strides = {int_array(window_strides)}"
        )
        regions = (Region((unit, unit), (flag,), select), self._reducer(scatter, (aval,)))
        ins = (aval, source_aval, unit)
        return self.op("select_and_scatter", (x, source, init), ins, (aval,), attrs, regions)[0]

    def sort(self, operands: Names, avals: Avals, dim: int, comparator: Build, stable: bool = True) -> list[str]:
        """`comparator(x0, y0, x1, y1, ...)` names whether element x goes before y."""
        pairs = [ShapedArray((), a.dtype) for a in avals for _ in range(2)]
        attrs = f"dimension = {dim} : i64, is_stable = {attribute(stable)}"
        regions = (Region(pairs, (ShapedArray((), _BOOL),), comparator),)
        return self.op("sort", operands, avals, avals, attrs, regions)

    def top_k(self, x: str, aval: ShapedArray, outs: Avals, k: int) -> list[str]:
        left, right = self._stemmed("values"), self._stemmed("indices")
        self.line(f"{left}, {right} = chlo.top_k({x}, k = {k}) : {type_of(aval)} -> {results_of(outs)}")
        return [left, right]

    # ---- linear algebra ---------------------------------------------------------------------------

    def dot_general(
        self,
        x: str,
        y: str,
        lhs: ShapedArray,
        rhs: ShapedArray,
        out: ShapedArray,
        contracting: tuple[Sequence[int], Sequence[int]],
        batching: tuple[Sequence[int], Sequence[int]] = ((), ()),
        precision: tuple[str, str] | None = ("DEFAULT", "DEFAULT"),
        algorithm: tuple | None = None,
    ) -> str:
        """`algorithm`: dtypes of lhs, rhs and accumulation, component counts, operations, imprecise."""
        text = f", contracting_dims = {_by(contracting)}"
        if batching[0]:
            text = f", batching_dims = {_by(batching)}{text}"
        if precision is not None:
            text += f", precision = [{precision[0]}, {precision[1]}]"
        if algorithm is not None:
            text += f", algorithm = <{_algorithm(*algorithm)}>"
        return self.result(f"stablehlo.dot_general {x}, {y}{text}", (lhs, rhs), out)

    def ragged_dot(
        self,
        operands: Names,
        ins: Avals,
        out: ShapedArray,
        axes: Mapping[str, Sequence[int]],
        precision: tuple[str, str],
    ) -> str:
        """`axes` are those of the attribute `chlo.ragged_dot`, by name; of lhs, rhs and group sizes."""
        named = ", ".join([f"{name} = {int_list(tuple(found))}" for name, found in axes.items() if found])
        how = ", ".join([f"#chlo<precision {p}>" for p in precision])
        attrs = f"precision_config = [{how}], ragged_dot_dimension_numbers = #chlo.ragged_dot<{named}>"
        return self.op("chlo.ragged_dot", operands, ins, (out,), attrs)[0]

    def convolution(self, x: str, kernel: str, lhs: ShapedArray, rhs: ShapedArray, out: ShapedArray, *,
                    lhs_spec: Sequence[int], rhs_spec: Sequence[int], out_spec: Sequence[int],
                    strides: Sequence[int], padding: Sequence[tuple[int, int]], lhs_dilation: Sequence[int],
                    rhs_dilation: Sequence[int], feature_group_count: int = 1, batch_group_count: int = 1,
                    reverse: Sequence[bool] | None = None,
                    precision: tuple[str, str] | None = ("DEFAULT", "DEFAULT")) -> str:  # fmt: skip
        """Specs are those of `ConvDimensionNumbers`: axes of (batch or out, feature or in, *spatial)."""
        flags = ", ".join(map(attribute, reverse or [False] * len(strides)))
        pads = ", ".join([f"[{a}, {b}]" for a, b in padding])
        window = (
            f"stride = {int_list(tuple(strides))}, pad = [{pads}], "
            f"lhs_dilate = {int_list(tuple(lhs_dilation))}, "
            f"rhs_dilate = {int_list(tuple(rhs_dilation))}, reverse = [{flags}]"
        )
        groups = ("batch", batch_group_count), ("feature", feature_group_count)
        attrs = ", ".join([f"{name}_group_count = {count} : i64" for name, count in groups])
        if precision is not None:
            names = ", ".join([f"#stablehlo<precision {p}>" for p in precision])
            attrs += f", precision_config = [{names}]"
        numbers = f"{_axes('bf', lhs_spec)}x{_axes('oi', rhs_spec)}->{_axes('bf', out_spec)}"
        text = (
            f"stablehlo.convolution({x}, {kernel}) dim_numbers = {numbers}, "
            f"window = {{{window if strides else ''}}} {{{attrs}}}"
        )
        return self.result(text, (lhs, rhs), out)

    def fft(self, x: str, aval: ShapedArray, out: ShapedArray, kind: str, lengths: Sequence[int]) -> str:
        """`kind` is FFT, IFFT, RFFT or IRFFT."""
        return self.map_to("fft", x, aval, out, f", type = {kind}, length = {int_list(tuple(lengths))}")

    def cholesky(self, x: str, aval: ShapedArray, lower: bool = True) -> str:
        return self.unary("cholesky", x, aval, f", lower = {attribute(lower)}")

    def triangular_solve(self, a: str, b: str, a_aval: ShapedArray, b_aval: ShapedArray, *, left_side: bool,
                         lower: bool, transpose: str = "NO_TRANSPOSE",
                         unit_diagonal: bool = False) -> str:  # fmt: skip
        """`transpose` is NO_TRANSPOSE, TRANSPOSE or ADJOINT."""
        attrs = (
            f"left_side = {attribute(left_side)}, lower = {attribute(lower)}, "
            f"transpose_a = #stablehlo<transpose {transpose}>, unit_diagonal = {attribute(unit_diagonal)}"
        )
        return self.op("triangular_solve", (a, b), (a_aval, b_aval), (b_aval,), attrs)[0]

    def rng_bit_generator(
        self, key: str, key_aval: ShapedArray, out: ShapedArray, algorithm: str = "DEFAULT"
    ) -> list[str]:
        """The new key and the bits; `algorithm` is DEFAULT, THREE_FRY or PHILOX."""
        left, right = self._stemmed("output_state"), self._stemmed("output")
        self.line(
            f"{left}, {right} = stablehlo.rng_bit_generator {key}, algorithm = {algorithm} : "
            f"({type_of(key_aval)}) -> {results_of((key_aval, out))}"
        )
        return [left, right]

    # ---- control flow and calls -------------------------------------------------------------------

    def while_(self, inits: Names, avals: Avals, cond: Build, body: Build) -> list[str]:
        """Repeats `body(*state) -> state` while `cond(*state) -> flag`."""
        names = [self._stemmed("iterArg") for _ in inits]
        state = ", ".join([f"{n} = {x}" for n, x in zip(names, inits, strict=True)])
        left, results = self.fresh(len(inits))
        equals = f"{left} = " if inits else ""
        types = f" : {types_of(avals)}" if inits else ""
        self.lines.append(f"{self._in}{equals}stablehlo.while({state}){types} cond {{")
        self._inside(cond, names, (ShapedArray((), _BOOL),))
        self.lines.append(f"{self._in}}} do {{")
        self._inside(body, names, avals)
        self.lines.append(f"{self._in}}}")
        return results if inits else []

    def case_(self, index: str, branches: Sequence[Build], outs: Avals) -> list[str]:
        """Runs the branch that an int32 index names; branches take no arguments and may capture."""
        regions = [Region((), outs, branch) for branch in branches]
        return self.op("case", (index,), (ShapedArray((), _INT32),), outs, "", regions)

    def call(self, callee: str, operands: Names, ins: Avals, outs: Avals) -> list[str]:
        """Calls the function with symbol `callee`."""
        call = "call" if self._in == "    " else "func.call"
        return self.results(f"{call} {callee}({', '.join(operands)})", ins, outs)

    def composite(self, name: str, decomposition: str, operands: Names, ins: Avals, outs: Avals,
                  attributes: Mapping[str, Any], version: int = 0) -> list[str]:  # fmt: skip
        """A named operation with a function, the symbol `decomposition`, that says what it means."""
        attrs = {"decomposition": decomposition}
        if attributes:
            attrs["composite_attributes"] = attribute(attributes)
        if version:
            attrs["version"] = f"{version} : i32"
        text = f"stablehlo.composite {spell.string(name)} {', '.join(operands)} {spell.dictionary(attrs)}"
        return self.results(text, ins, outs)

    def composite_jaxpr(
        self, closed: ClosedJaxpr, name: str, operands: Names, attributes: Mapping[str, Any]
    ) -> list[str]:
        """A named operation with a private function that holds `closed`, written at the first one."""
        key = closed, name, self.manual, ((), ())
        found = self._called.get(key)
        if found is None:
            found = self._called[key] = self._write_private(closed, name, ((), ()))
        self._height = max(self._height, found[1])
        return self.composite(name, found[0], operands, closed.in_avals, closed.out_avals, attributes)

    def custom_call(self, target: str, operands: Names, ins: Avals, outs: Avals, *, api_version: int = 4,
                    backend_config: Mapping[str, Any] | str | None = None, has_side_effect: bool = False,
                    operand_layouts: Sequence[Sequence[int]] | None = None,
                    result_layouts: Sequence[Sequence[int]] | None = None,
                    aliases: Mapping[int, int] | None = None, called: Sequence[str] = (),
                    extra: Mapping[str, str] | None = None) -> list[str]:  # fmt: skip
        """Calls what is registered with XLA as `target`.

        `aliases` maps operands to results; `called` are symbols; `extra` are attribute texts by name.
        """
        attrs = dict(extra or {})
        if api_version == 4:
            attrs["backend_config"] = '""'
            attrs["mhlo.backend_config"] = attribute(backend_config or {})
        else:
            attrs["backend_config"] = spell.string(backend_config or "")
            if api_version != 1:
                attrs["api_version"] = f"{api_version} : i32"
        if has_side_effect:
            attrs["has_side_effect"] = "true"
        if operand_layouts is not None and result_layouts is not None:
            attrs["operand_layouts"] = f"[{', '.join(map(spell.layout, operand_layouts))}]"
            attrs["result_layouts"] = f"[{', '.join(map(spell.layout, result_layouts))}]"
        if aliases:
            pairs = [_alias(i, out, len(outs)) for i, out in aliases.items()]
            attrs["output_operand_aliases"] = f"[{', '.join(pairs)}]"
        if called:
            attrs["called_computations"] = f"[{', '.join(called)}]"
        text = f"stablehlo.custom_call {spell.symbol(target)}({', '.join(operands)}) {spell.dictionary(attrs)}"
        return self.results(text, ins, outs)

    def annotate_placement(self, x: str, aval: ShapedArray, memory_kind: str) -> str:
        """The value, in a memory of that kind."""
        extra = {"mhlo.frontend_attributes": f"{{_xla_buffer_placement = {spell.string(memory_kind)}}}"}
        return self.custom_call(
            "annotate_device_placement", [x], [aval], [aval], api_version=1, has_side_effect=True, extra=extra
        )[0]

    def optimization_barrier(self, operands: Names, avals: Avals) -> list[str]:
        if not operands:
            return []
        left, results = self.fresh(len(operands))
        self.line(f"{left} = stablehlo.optimization_barrier {', '.join(operands)} : {types_of(avals)}")
        return results

    def create_token(self) -> str:
        left, _ = self.fresh()
        self.line(f"{left} = stablehlo.create_token : !stablehlo.token")
        return left

    # ---- collectives ------------------------------------------------------------------------------

    def all_reduce(self, x: str, aval: ShapedArray, groups: Any, reducer: Build | str, **how: Any) -> str:
        attrs = f"{_collective(groups, **how)}, use_global_device_ids"
        return self.op("all_reduce", (x,), (aval,), (aval,), attrs, (self._reducer(reducer, (aval,)),))[0]

    def all_gather(self, x: str, aval: ShapedArray, out: ShapedArray, dim: int, groups: Any, **how: Any) -> str:
        attrs = f"all_gather_dim = {dim} : i64, {_collective(groups, **how)}, use_global_device_ids"
        return self.op("all_gather", (x,), (aval,), (out,), attrs)[0]

    def reduce_scatter(
        self, x: str, aval: ShapedArray, out: ShapedArray, dim: int, groups: Any, reducer: Build | str, **how: Any
    ) -> str:
        attrs = f"{_collective(groups, **how)}, scatter_dimension = {dim} : i64, use_global_device_ids"
        return self.op("reduce_scatter", (x,), (aval,), (out,), attrs, (self._reducer(reducer, (aval,)),))[0]

    def all_to_all(self, x: str, aval: ShapedArray, out: ShapedArray, split_dim: int, concat_dim: int,
                   split_count: int, groups: Any, **how: Any) -> str:  # fmt: skip
        attrs = (
            f"concat_dimension = {concat_dim} : i64, {_collective(groups, **how)}, "
            f"split_count = {split_count} : i64, split_dimension = {split_dim} : i64"
        )
        return self.op("all_to_all", (x,), (aval,), (out,), attrs)[0]

    def collective_permute(self, x: str, aval: ShapedArray, pairs: Sequence[tuple[int, int]], channel: int = 1) -> str:
        attrs = f"{_channel(channel)}, source_target_pairs = {_pairs(pairs)}"
        return self.op("collective_permute", (x,), (aval,), (aval,), attrs)[0]

    def partition_id(self) -> str:
        left, _ = self.fresh()
        self.line(f"{left} = stablehlo.partition_id : tensor<ui32>")
        return left

    # ---- shardings --------------------------------------------------------------------------------

    def sharding_constraint(self, x: str, aval: ShapedArray, sharding: Any) -> str:
        n = self._n = self._n + 1
        place = self.meshes.placed(sharding, aval)
        self.line(f"%{n} = sdy.sharding_constraint {x} <{place}> : {type_of(aval)}")
        return f"%{n}"

    def manual_computation(self, operands: Names, ins: Avals, outs: Avals, in_shardings: Sequence,
                           out_shardings: Sequence, mesh: Any, axes: Sequence,
                           body: Region) -> list[str]:  # fmt: skip
        """Runs `body` on each device's part of the operands, along the mesh axes `axes`."""
        outer = self.manual
        inner = frozenset(axes) | (outer[1] if outer is not None else frozenset())
        if mesh.size == 1:  # one device has all of it, and its programs are not partitioned
            self.manual = mesh, inner
            results = list(body.build(*operands))
            self.manual = outer
            return results
        places = [
            ", ".join([f"<{self.meshes.placed(s, a)}>" for s, a in zip(shardings, avals, strict=True)])
            for shardings, avals in ((in_shardings, ins), (out_shardings, outs))
        ]
        names = self.block_args(len(operands))
        left, results = self.fresh(len(outs)) if outs else ("", [])
        quoted = ", ".join([spell.string(str(a)) for a in axes])
        self.line(
            f"{left}{' = ' if outs else ''}sdy.manual_computation({', '.join(operands)}) "
            f"in_shardings=[{places[0]}] out_shardings=[{places[1]}] manual_axes={{{quoted}}} "
            f"({self._typed(names, body.args)}) {{"
        )
        self.manual = mesh, inner
        self._inside(body.build, names, body.outs, "sdy.return")
        self.manual = outer
        self.line(f"}} : ({types_of(ins)}) -> {results_of(outs)}")
        return results

    # ---- nested jaxprs ----------------------------------------------------------------------------

    def call_jaxpr(
        self, closed: ClosedJaxpr, name: str, operands: Names, in_shardings: tuple = (), out_shardings: tuple = ()
    ) -> list[str]:
        """Calls a private function that holds `closed`, written at the first call; beyond 64 calls, in place.

        Shardings (None: any) constrain its arguments and results. Recurses once per nested jaxpr: who lowers
        a program has raised Python's recursion limit.
        """
        shardings = in_shardings, out_shardings
        key = closed, name, self.manual, shardings
        found = self._called.get(key)
        if found is None or self._depth + found[1] > MAX_CALL_DEPTH:
            if self._depth >= MAX_CALL_DEPTH:
                return self._body(closed, operands, shardings)
            found = self._called[key] = self._write_private(closed, name, shardings)
        callee, height = found
        self._height = max(self._height, height)
        ordered = ordered_in(closed.jaxpr)
        tokens = [token_type] * len(ordered)
        results = self.call(
            callee,
            [*map(self.tokens.__getitem__, ordered), *operands],
            [*tokens, *closed.in_avals],
            [*tokens, *closed.out_avals],
        )
        self.tokens.update(zip(ordered, results, strict=False))
        return results[len(ordered) :]

    def private(self, closed: ClosedJaxpr, name: str) -> str:
        """The symbol of a private function that holds `closed`, which is not called here."""
        key = closed, name, self.manual, ((), ())
        if key not in self._called:
            self._called[key] = self._write_private(closed, name, ((), ()))
        return self._called[key][0]

    def call_shared(self, name: str, key: Any, operands: Names, ins: Avals, outs: Avals, build: Build) -> list[str]:
        """Calls a private function, written by `build` at the first call with `key` and such types."""
        self._height = max(self._height, 1)
        return self.call(self.shared(name, key, ins, outs, build), operands, ins, outs)

    def shared(self, name: str, key: Any, ins: Avals, outs: Avals, build: Build, visibility: str = "private ") -> str:
        """The symbol of a function, written by `build` the first time with `key` and such types."""
        key = (key, *ins, *outs), name, self.manual
        if key not in self._called:
            callee = self.unique_symbol(name)
            scope, self.scope = self.scope, ""

            def head(args):
                return f"  func.func {visibility}{callee}({self._typed(args, ins)}) -> {results_of(outs)} {{"

            self.function(head, len(ins), lambda args: build(*args), outs)
            self.scope = scope
            self._called[key] = callee, 1
        return self._called[key][0]

    def constants(self, closed: ClosedJaxpr) -> list[str]:
        """Writes the constants of a jaxpr into the program."""
        return [self.constant_of(c, v.aval) for c, v in zip(closed.consts, closed.constvars, strict=True)]

    def constant_of(self, value: Any, aval: ShapedArray) -> str:
        """Writes a value of the program; of a key array, its physical value."""
        if write := constant_writers.get(type(value)):
            return write(self, value, aval)
        return self.constant(getattr(value, "_base_array", value), aval)

    def _body(self, closed, operands, shardings):
        jaxpr, (before, after) = closed.jaxpr, shardings
        operands = self._constrained(operands, jaxpr.in_avals, before)
        results = jaxpr_body(self, jaxpr, self.constants(closed), operands)
        return self._constrained(results, jaxpr.out_avals, after)

    def _constrained(self, names, avals, shardings):
        if not shardings:
            return names
        return [
            x if s is None else self.sharding_constraint(x, a, s)
            for x, a, s in zip(names, avals, shardings, strict=True)
        ]

    def _write_private(self, closed, name, shardings):
        ordered, callee = ordered_in(closed.jaxpr), self.unique_symbol(name)
        tokens = [token_type] * len(ordered)
        ins, outs = [*tokens, *closed.in_avals], [*tokens, *closed.out_avals]
        outer = self.tokens, self.scope, self._height
        self.scope, self._height = "", 0
        self._depth += 1

        def body(args):
            self.tokens = dict(zip(ordered, args, strict=False))
            results = self._body(closed, args[len(ordered) :], shardings)
            return [*self.tokens.values(), *results]

        def head(args):
            return f"  func.func private {callee}({self._typed(args, ins)}) -> {results_of(outs)} {{"

        self.function(head, len(ins), body, outs)
        self._depth -= 1
        height = self._height + 1
        self.tokens, self.scope, self._height = outer
        return callee, height


_aval_of = attrgetter("aval")


def jaxpr_body(e: Emitter, jaxpr: Jaxpr, const_names: Names, arg_names: Names) -> list[str]:
    """Writes the equations of a jaxpr where the emitter stands; the names of its results."""
    env = dict(zip(jaxpr.constvars, const_names, strict=True))
    env.update(zip(jaxpr.invars, arg_names, strict=True))
    find, located = env.get, e.locate is not None
    for eqn in jaxpr.eqns:
        invars, outvars, start = eqn.invars, eqn.outvars, len(e.lines)
        operands = list(map(find, invars))
        if None in operands:
            operands = _with_literals(e, invars, operands)
        ins, outs, context = list(map(_aval_of, invars)), list(map(_aval_of, outvars)), eqn.ctx
        if context is EMPTY or context[1:] == EMPTY[1:]:
            results = eqn.primitive.lower(e, ins, outs, *operands, **eqn.params)
        else:
            with eqn.context():
                results = eqn.primitive.lower(e, ins, outs, *operands, **eqn.params)
            e.annotate(start, frontend_attributes(context))
        if located:
            e.located(start, location_name(e.scope, eqn), eqn.traceback)
        if len(outvars) == 1:
            (env[outvars[0]],) = results
        else:
            env.update(zip(outvars, results, strict=True))
    return _with_literals(e, jaxpr.outvars, list(map(find, jaxpr.outvars)))


def _with_literals(e, atoms, names):
    """Literals are written where they are read, as jax does."""
    return [e.constant_of(v.val, v.aval) if n is None else n for v, n in zip(atoms, names, strict=True)]


_COMPUTE_TYPES = {"device_host": "host", "tpu_sparsecore": "sparse"}


def frontend_attributes(context: EqnContext) -> dict[str, str]:
    """What the surroundings of an equation tell XLA: its metadata and where it is to be computed."""
    attrs = {name: str(value) for name, value in dict(context.xla_metadata or ()).items()}
    if context.compute_type in _COMPUTE_TYPES:
        attrs["_xla_compute_type"] = _COMPUTE_TYPES[context.compute_type]
    return attrs


def ordered_in(jaxpr: Jaxpr) -> list:
    """The ordered effects of a jaxpr, in the order of their tokens."""
    return sorted(ordered_effects.filter_in(jaxpr.effects), key=str) if jaxpr.effects else []


def location_name(scope: str, eqn: JaxprEqn) -> str:
    """The name of an equation in profiles: the scopes around it and its primitive."""
    name = eqn.primitive.name
    label = f"jit({eqn.params['name']})" if name == "jit" else name
    return "/".join([s for s in (scope, *eqn.ctx.name_stack, label) if s])


def _numbers(index_vector_dim: int, **lists: Sequence[int]) -> str:
    parts = [f"{name} = {int_list(tuple(items))}" for name, items in lists.items() if len(items)]
    return ", ".join([*parts, f"index_vector_dim = {index_vector_dim}"])


def _pairs(pairs: Sequence[tuple[int, int]]) -> str:
    return spell.int_matrix(np.asarray(pairs, np.int64).reshape(-1, 2))


def _by(sides: tuple[Sequence[int], Sequence[int]]) -> str:
    return f"{int_list(tuple(sides[0]))} x {int_list(tuple(sides[1]))}"


def _axes(names: str, spec: Sequence[int]) -> str:
    labels = [""] * len(spec)
    for label, axis in zip([*names, *map(str, range(len(spec) - 2))], spec, strict=True):
        labels[axis] = label
    return f"[{', '.join(labels)}]"


def _algorithm(lhs, rhs, accumulation, lhs_count, rhs_count, operations, imprecise) -> str:
    return (
        f"lhs_precision_type = {spell.element(lhs)}, rhs_precision_type = {spell.element(rhs)}, "
        f"accumulation_type = {spell.element(accumulation)}, lhs_component_count = {lhs_count}, "
        f"rhs_component_count = {rhs_count}, num_primitive_operations = {operations}, "
        f"allow_imprecise_accumulation = {attribute(imprecise)}"
    )


def _alias(operand: int, result: int, results: int) -> str:
    indices = f"[{result}]" if results > 1 else "[]"
    return (
        f"#stablehlo.output_operand_alias<output_tuple_indices = {indices}, operand_index = {operand}, "
        "operand_tuple_indices = []>"
    )


def _channel(channel: int) -> str:
    return f"channel_handle = #stablehlo.channel_handle<handle = {channel}, type = 1>"


def _collective(groups: Any, channel: int = 1) -> str:
    return f"{_channel(channel)}, replica_groups = {spell.int_matrix(groups)}"
