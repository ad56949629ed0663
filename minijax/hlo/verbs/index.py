"""Verbs that read and write at dynamic indices, and padding."""

from collections.abc import Mapping

from minijax.base import dtypes
from minijax.hlo.sizes import are_known, has_sizes
from minijax.hlo.spell import attribute, int_array, int_list, physical, suffix_of
from minijax.hlo.verbs.elementwise import Elementwise
from minijax.hlo.writer import FLAG, Avals, Build, Ints, Names
from minijax.ir.types import Name, ShapedArray

Numbers = Mapping[str, Ints]


class Index(Elementwise):
    """Dynamic slices, gathers, scatters and padding."""

    def pad(
        self, x: Name, value: Name, aval: ShapedArray, out: ShapedArray, low: Ints, high: Ints, interior: Ints
    ) -> Name:
        """Pads with the scalar `value`."""
        if suffix_of(aval):
            return self._pad_extended(x, value, aval, out, low, high, interior)
        single = ShapedArray((), aval.dtype)
        if not are_known((*low, *high)):
            return self.sized("dynamic_pad", (x, value), (aval, single), (low, high, interior), out)
        edges = [int_list(tuple(e)) for e in (low, high, interior)]
        text = f"stablehlo.pad {x}, {value}, low = {edges[0]}, high = {edges[1]}, interior = {edges[2]}"
        return self.result(text, (aval, single), out)

    def _pad_extended(self, x, value, aval, out, low, high, interior):
        """For an extended dtype, whose padding value is a physical array: pads with zeros, then selects by a mask."""
        nothing = (0,) * len(suffix_of(aval))
        edges = [(*e, *nothing) for e in (low, high, interior)]
        real, real_out = physical(aval), physical(out)
        flags, out_flags = ShapedArray(aval.shape, dtypes.bool_), ShapedArray(out.shape, dtypes.bool_)
        inside = self.full(True, flags)
        mask = self.pad(inside, self.constant(False, FLAG), flags, out_flags, low, high, interior)
        padded = self.pad(x, self.constant(0, ShapedArray((), real.dtype)), real, real_out, *edges)
        filler = self.broadcast_in_dim(value, ShapedArray((), aval.dtype), out, ())
        return self.select(mask, padded, filler, out_flags, out)

    def _with_suffix_starts(self, starts, index_avals, aval):
        suffix = suffix_of(aval)
        if not suffix:
            return starts, index_avals
        index = index_avals[0] if index_avals else ShapedArray((), dtypes.int32)
        zeros = [self.constant(0, index) for _ in suffix]
        return (*starts, *zeros), (*index_avals, *([index] * len(suffix)))

    def dynamic_slice(self, x: Name, starts: Names, aval: ShapedArray, index_avals: Avals, out: ShapedArray) -> Name:
        starts, index_avals = self._with_suffix_starts(starts, index_avals, aval)
        if has_sizes(out):
            return self._sized_dynamic_slice(x, starts, physical(aval), index_avals, physical(out))
        sizes = int_list(physical(out).shape)
        return self.result(
            f"stablehlo.dynamic_slice {', '.join((x, *starts))}, sizes = {sizes}", (aval, *index_avals), out
        )

    def _sized_dynamic_slice(self, x, starts, aval, index_avals, out):
        # XLA infers the result's shape if the limits are an array of starts plus an array of constants.
        rows = zip(starts, index_avals, strict=True)
        names = [s if a.dtype == self.size_type.dtype else self.convert(s, a, self.size_type) for s, a in rows]
        listed, sizes = self.list_type(out.ndim), self.size_list(out.shape)
        last = [n - m for n, m in zip(aval.shape, out.shape, strict=True)]
        first = self.clamp(self.size_list([0] * out.ndim), self.size_list(names), self.size_list(last), listed)
        limits, strides = self.binary("add", first, sizes, listed), self.size_list([1] * out.ndim)
        text = f"stablehlo.real_dynamic_slice {', '.join((x, first, limits, strides))}"
        return self.result(text, (aval, listed, listed, listed), out)

    def dynamic_update_slice(
        self, x: Name, update: Name, starts: Names, aval: ShapedArray, update_aval: ShapedArray, index_avals: Avals
    ) -> Name:
        starts, index_avals = self._with_suffix_starts(starts, index_avals, aval)
        return self.result(
            f"stablehlo.dynamic_update_slice {', '.join((x, update, *starts))}", (aval, update_aval, *index_avals), aval
        )

    def gather(
        self,
        x: Name,
        indices: Name,
        ins: Avals,
        out: ShapedArray,
        numbers: Numbers,
        sizes: Ints,
        is_sorted: bool = False,
    ) -> Name:
        """`numbers` are the fields of `GatherDimensionNumbers`; the index vectors are the last axis of `indices`."""
        if suffix := suffix_of(ins[0]):
            offset_dims = (*numbers["offset_dims"], *range(out.ndim, out.ndim + len(suffix)))
            numbers, sizes = {**numbers, "offset_dims": offset_dims}, (*sizes, *suffix)
        text = _numbers(numbers, ins[1].ndim - 1)
        attrs = f"dimension_numbers = #stablehlo.gather<{text}>, indices_are_sorted = {attribute(is_sorted)}"
        if not are_known(sizes):
            operands = x, indices, self.size_list(sizes)
            return self.op("dynamic_gather", operands, (*ins, self.list_type(len(sizes))), (out,), attrs)[0]
        return self.op("gather", (x, indices), ins, (out,), f"{attrs}, slice_sizes = {int_array(sizes)}")[0]

    def scatter(
        self,
        operands: Names,
        indices: Name,
        updates: Names,
        ins: Avals,
        reducer: Build | str | None,
        numbers: Numbers,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
    ) -> list[Name]:
        """`numbers` are the fields of `ScatterDimensionNumbers`.

        `reducer(*old, *updates)` returns the new elements; None stores the updates.
        """
        avals, indices_aval = ins[: len(operands)], ins[len(operands)]
        if suffix := suffix_of(avals[0]):
            rank = ins[-1].ndim
            window_dims = (*numbers["update_window_dims"], *range(rank, rank + len(suffix)))
            numbers = {**numbers, "update_window_dims": window_dims}
        text = _numbers(numbers, indices_aval.ndim - 1).replace("operand_batching_dims", "input_batching_dims")
        attrs = (
            f"indices_are_sorted = {attribute(indices_are_sorted)}, scatter_dimension_numbers = "
            f"#stablehlo.scatter<{text}>, unique_indices = {attribute(unique_indices)}"
        )
        if reducer is None:
            reducer = lambda *names: names[len(avals) :]  # noqa: E731
        regions = (self._reducer(reducer, avals, "scatter"),)
        return self.op("scatter", (*operands, indices, *updates), ins, avals, attrs, regions)


_INDEX_MAPS = ("start_index_map", "scatter_dims_to_operand_dims")


def _numbers(numbers: Numbers, index_vector_dim: int) -> str:
    # In StableHLO's attributes the map of the index vector comes last.
    rows = sorted(numbers.items(), key=lambda row: row[0] in _INDEX_MAPS)
    parts = [f"{name} = {int_list(tuple(axes))}" for name, axes in rows if len(axes)]
    return ", ".join([*parts, f"index_vector_dim = {index_vector_dim}"])
