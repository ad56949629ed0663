"""Gather and the scatters, in one file because each is transposed to the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from minijax.base import cache, dims, dtypes
from minijax.base.documentation import filled
from minijax.base.errors import ShardingTypeError
from minijax.base.symbolic.dimension import is_int, min_dim
from minijax.base.util import named
from minijax.hlo.emitter import jaxpr_body
from minijax.ir.jaxpr import DebugInfo, Jaxpr
from minijax.ir.primitive import Folding, fold_as, is_undefined_primal
from minijax.ir.result_types import state_of_terms
from minijax.ir.trace import Tracer, trace_to_jaxpr
from minijax.ir.types import ShapedArray, Zero, typeof
from minijax.partition.explicit import entries_of
from minijax.primitives import elementwise, gather_dims, moving
from minijax.primitives.counting import iota
from minijax.primitives.elementwise import add, div, eq, mul, neg, select
from minijax.primitives.families import check_same_dtypes, full_of, scalar_like
from minijax.primitives.structural import JointlyLinear, full, operand_type, shifted
from minijax.primitives.zeros import add_tangents, instantiate, zeros_like_aval
from minijax.run.arrays.array import Array, ArrayLike

_INT32, _BOOL = np.dtype(np.int32), np.dtype(bool)
_Mode = str | gather_dims.GatherScatterMode | None

# ---- gather -----------------------------------------------------------------------------------------


def _batch_entries(x: ShapedArray, indices: ShapedArray, batched: Sequence, of_indices: Sequence) -> list | None:
    """The spec entries of the axes of the indices, merged on batching axes with the operand's; None if those differ."""
    entries = list(indices.entries[:-1])
    for i, d in zip(batched, of_indices, strict=True):
        if None not in (x.entries[i], entries[d]) and x.entries[i] != entries[d]:
            return None
        entries[d] = x.entries[i] if entries[d] is None else entries[d]
    return entries


class Gather(JointlyLinear):
    """Reads slices of the operand at the positions that index vectors give."""

    moves_data = True
    name = "gather"

    def infer(
        self, x, indices, *, dimension_numbers, slice_sizes, indices_are_sorted, unique_indices, mode, fill_value
    ):
        numbers, rank = dimension_numbers, x.ndim
        gather_dims.check_indices("gather", indices)
        out_rank = len(numbers.offset_dims) + indices.ndim - 1
        gather_dims.check_offsets(numbers, out_rank)
        gather_dims.check_vector("gather", "start_index_map", numbers.start_index_map, indices, rank)
        gather_dims.check_axes("gather", "collapsed_slice_dims", numbers.collapsed_slice_dims, rank)
        names = ("collapsed_slice_dims", "start_index_map", "start_indices_batching_dims")
        gather_dims.check_batching("gather", names, numbers, x, indices)
        gather_dims.check_slices(numbers, slice_sizes, x, indices)
        dropped = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
        windows = iter(s for i, s in enumerate(slice_sizes) if i not in dropped)
        batches = iter(indices.shape[:-1])
        shape = tuple(next(windows if i in numbers.offset_dims else batches) for i in range(out_rank))
        return [ShapedArray(shape, x.dtype, x.weak_type)]

    def sharding_rule(self, mesh, avals, outs, *, dimension_numbers, slice_sizes, **how):
        x, indices = avals
        pairs = dimension_numbers.operand_batching_dims, dimension_numbers.start_indices_batching_dims
        collapsed, dropped = (
            dimension_numbers.collapsed_slice_dims,
            {*dimension_numbers.collapsed_slice_dims, *pairs[0]},
        )
        whole = [i for i, n in enumerate(slice_sizes) if n == x.shape[i] and i not in collapsed]
        alone = [*entries_of(x.entries, {*range(x.ndim)} - {*whole, *pairs[0]})]
        alone += entries_of(indices.entries, {*range(indices.ndim)} - {*pairs[1]})
        batches = _batch_entries(x, indices, *pairs)
        if batches is None or any(e is not None for e in alone):
            raise ShardingTypeError(
                f"gather: the types of the operand {x!r} and of the indices {indices!r} do not determine the sharding "
                "of the result. Use `.at[...].get(out_sharding=)` to specify it"
            )
        windows = iter([e for i, e in enumerate(x.entries) if i not in dropped])
        rows = iter(batches)
        kinds = [i in dimension_numbers.offset_dims for i in range(outs[0].ndim)]
        return [tuple([next(windows if is_window else rows) for is_window in kinds])]

    def lower(self, e, ins, outs, x, indices, *, mode, fill_value, unique_indices, **how):
        assert mode is not gather_dims.ONE_HOT, mode
        if 0 in outs[0].shape:
            return [e.full(0, outs[0])]
        if mode is not gather_dims.FILL_OR_DROP:
            return [self._emit(e, ins, outs, x, indices, **how)]
        numbers, (out,) = how["dimension_numbers"], outs
        bounds = gather_dims.index_bounds(numbers.start_index_map, how["slice_sizes"], ins[0])
        wide = ShapedArray(ins[1].shape, _index_dtype(bounds))
        if wide.dtype != ins[1].dtype:
            indices = e.convert(indices, ins[1], wide)
        inside = _is_in_bounds(e, indices, wide, bounds)
        windows = self._emit(e, [ins[0], wide], outs, x, indices, **how)
        batch_axes = tuple(i for i in range(out.ndim) if i not in numbers.offset_dims)
        flags = ShapedArray(out.shape, _BOOL)
        inside = e.broadcast_in_dim(inside, ShapedArray(wide.shape[:-1], _BOOL), flags, batch_axes)
        return [e.select(inside, windows, e.full(fill_value, out), flags, out)]

    def _emit(self, e, ins, outs, x, indices, *, dimension_numbers, slice_sizes, indices_are_sorted):
        return e.gather(x, indices, ins, outs[0], dimension_numbers._asdict(), slice_sizes, indices_are_sorted)

    def jvp(self, primals, tangents, **params):
        (out,) = self.bind_all(primals, params)
        t = tangents[0]
        if type(t) is Zero:
            return [out], [Zero.from_primal_value(out)]
        fill = 0 if params["mode"] is gather_dims.FILL_OR_DROP else params["fill_value"]
        return [out], self.bind_all([t, primals[1]], {**params, "fill_value": fill})

    def transposed(self, ct, x, indices, **params):
        flags = {**_flags(params), "dimension_numbers": gather_dims.scatter_numbers(params["dimension_numbers"])}
        # The cotangent may have another dtype if a custom rule returned it. As in jax, the result is strongly typed.
        zeros = zeros_like_aval(x.aval.update(dtype=typeof(ct).dtype, weak_type=False))
        return [scatter_add_p.write(zeros, indices, ct, in_transpose=True, **flags), None]

    def batch(self, axis, operands, dims_in, *, dimension_numbers, slice_sizes, **how):
        (x, indices), (d, indices_dim), numbers = operands, dims_in, dimension_numbers
        params = dict(how, dimension_numbers=numbers, slice_sizes=slice_sizes)
        if d is not None:
            x = moving.move_axis(x, d, 0)
            moved = [*map(shifted, numbers[:4]), numbers.start_indices_batching_dims]
            numbers = gather_dims.GatherDimensionNumbers._make(moved)
        if indices_dim is None:
            params["slice_sizes"] = (axis.size, *slice_sizes)
            params["dimension_numbers"] = numbers._replace(offset_dims=(0, *numbers.offset_dims))
            return self.bind_all([x, indices], params), [0]
        indices = moving.move_axis(indices, indices_dim, 0)
        of_indices = shifted(numbers.start_indices_batching_dims)
        if d is None:
            params.update(indices_are_sorted=False, unique_indices=False)
            numbers = numbers._replace(offset_dims=shifted(numbers.offset_dims), start_indices_batching_dims=of_indices)
        else:
            params["slice_sizes"] = (min_dim(axis.size, 1), *slice_sizes)
            numbers = numbers._replace(
                operand_batching_dims=(0, *numbers.operand_batching_dims), start_indices_batching_dims=(0, *of_indices)
            )
        params["dimension_numbers"] = numbers
        return self.bind_all([x, indices], params), [0]


def _index_dtype(bounds: Sequence[int]) -> Any:
    return np.int64 if any(is_int(b) and b > np.iinfo(np.int32).max for b in bounds) else _INT32


def _broadcast_bounds(e: Any, bounds: Sequence[int], aval: ShapedArray) -> str:
    """The bounds, broadcast to all index vectors."""
    row = ShapedArray((len(bounds),), aval.dtype)
    most = e.sizes_as(bounds, row)
    return most if row.shape == aval.shape else e.broadcast_in_dim(most, row, aval, (aval.ndim - 1,))


def _is_in_bounds(e: Any, indices: str, aval: ShapedArray, bounds: Sequence[int]) -> str:
    """Emits a boolean for each index vector: whether it is between 0 and the bounds."""
    flags, zeros = ShapedArray(aval.shape, _BOOL), e.full(0, aval)
    above = e.compare("GE", indices, zeros, aval)
    both = e.binary("and", above, e.compare("LE", indices, _broadcast_bounds(e, bounds, aval), aval), flags)
    start = e.constant(True, ShapedArray((), _BOOL))
    return e.reduce([both], [start], [flags], [ShapedArray(aval.shape[:-1], _BOOL)], (aval.ndim - 1,), "and")[0]


gather_p = Gather()
fold_as(Folding.EXACT, gather_p)


def gather(
    operand: ArrayLike,
    start_indices: ArrayLike,
    dimension_numbers: gather_dims.GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: _Mode = None,
    fill_value: Any = None,
) -> Array:
    """Reads windows of an array at positions that index vectors give: XLA's gather.

    Indexing, `x[i, j]`, and `jax.numpy.take` are easier to use, and are made of it.

    Args:
        operand: The array.
        start_indices: Integers; the last axis is the vector of the start of a window.
        dimension_numbers: A `jax.lax.GatherDimensionNumbers`, which relates the axes.
        slice_sizes: The size of a window along each axis of `operand`.
        unique_indices: A promise that no two windows overlap; gradients are faster with it.
        indices_are_sorted: A promise that the indices are sorted.
        mode: A `jax.lax.GatherScatterMode`, or its name: what happens out of bounds. By default the caller promises
            that all windows are inside.
        fill_value: The value outside for the mode `"fill"`; by default NaN, the lowest signed integer, the highest
            unsigned one, or True.

    Returns:
        An array with the windows.

    Example:
        >>> numbers = jax.lax.GatherDimensionNumbers((1,), (0,), (0,))
        >>> jax.lax.gather(jnp.arange(6).reshape(3, 2), jnp.array([[2], [0]]), numbers, (1, 2))
        Array([[4, 5],
               [0, 1]], dtype=int32)
    """
    mode = gather_dims.PROMISE_IN_BOUNDS if mode is None else gather_dims.GatherScatterMode.from_any(mode)
    fill_value = _fill_value(typeof(operand).dtype, fill_value) if mode is gather_dims.FILL_OR_DROP else None
    numbers = gather_dims.GatherDimensionNumbers(*map(_axes, dimension_numbers))
    promises = dict(unique_indices=bool(unique_indices), indices_are_sorted=bool(indices_are_sorted))
    params = dict(dimension_numbers=numbers, slice_sizes=dims.canonical_shape(slice_sizes), **promises)
    return gather_p.bind(operand, start_indices, mode=mode, fill_value=fill_value, **params)


def _axes(axes: Sequence[int]) -> tuple[int, ...]:
    return tuple(map(int, axes))


def _fill_value(dtype: Any, value: Any) -> Any:
    if value is not None:
        if isinstance(value, Tracer):
            raise TypeError("gather: fill_value must be a constant, got a traced value")
        return value.item() if hasattr(value, "item") else value
    if dtypes.is_extended(dtype):
        return np.iinfo(np.uint32).max
    if dtypes.is_inexact(dtype):
        return float("nan")
    if np.issubdtype(dtype, np.bool_):
        return True
    bounds = dtypes.iinfo(dtype)
    return int(bounds.min if dtypes.issubdtype(dtype, np.signedinteger) else bounds.max)


# ---- scatter ----------------------------------------------------------------------------------------


class Scatter(JointlyLinear):
    """Writes updates into windows of the operand, at the positions that index vectors give.

    `combine` computes an element from the old and the new one; None: the new one, or the result of `update_jaxpr`.
    """

    same_memory_space = False

    def __init__(self, name: str, combine: Callable | None = None):
        self.name = name
        self.combine = combine

    def infer(
        self,
        x,
        indices,
        updates,
        *,
        dimension_numbers,
        indices_are_sorted,
        unique_indices,
        mode,
        update_jaxpr,
        update_consts,
    ):
        check_same_dtypes("scatter", x, updates)
        gather_dims.check_scatter(x, indices, updates, dimension_numbers)
        return [ShapedArray(x.shape, x.dtype, x.weak_type, memory_space=x.memory_space)]

    def reduction_state(self, avals, params):
        return state_of_terms(self, (avals[0], avals[2]), params)

    def sharding_rule(self, mesh, avals, outs, *, dimension_numbers, **how):
        (x, indices, updates), numbers = avals, dimension_numbers
        batched, of_indices = numbers.operand_batching_dims, numbers.scatter_indices_batching_dims
        windows = [i for i in range(x.ndim) if i not in (*numbers.inserted_window_dims, *batched)]
        places = dict(zip(windows, numbers.update_window_dims, strict=True))
        whole = [*batched, *(i for i, d in places.items() if x.shape[i] == updates.shape[d])]
        of_rows = [d for d in range(updates.ndim) if d not in numbers.update_window_dims]
        rows = _batch_entries(x, indices, batched, of_indices)
        conflicts, rows = rows is None, list(indices.entries[:-1]) if rows is None else rows
        for row in of_indices:
            rows[row] = updates.entries[of_rows[row]] if rows[row] is None else rows[row]
        wanted = dict(zip(of_rows, rows, strict=True)) | {d: x.entries[i] for i, d in places.items()}
        follows = all(e in (None, wanted[d]) for d, e in enumerate(updates.entries))
        alone = [e for i, e in enumerate(indices.entries) if i not in of_indices]
        alone += entries_of(x.entries, {*range(x.ndim)} - {*whole})
        if conflicts or not follows or any(e is not None for e in alone):
            raise ShardingTypeError(
                f"scatter: the types of the operand {x!r}, of the indices {indices!r} and of the updates {updates!r} "
                "do not determine the sharding of the result. Use `.at[...].set/add/mul/...(out_sharding=)` to "
                "specify it"
            )
        merged = dict(zip(batched, entries_of(tuple(rows), of_indices), strict=True))
        return [tuple([merged.get(i, e) for i, e in enumerate(x.entries)])]

    has_bodies = True

    def bodies(self, params):
        return () if params["update_jaxpr"] is None else (params["update_jaxpr"],)

    def lower(self, e, ins, outs, x, indices, updates, *, update_jaxpr, mode, dimension_numbers, **how):
        reducer = None if update_jaxpr is None else lambda *names: jaxpr_body(e, update_jaxpr, (), names)
        indices = _clamped_indices(e, indices, ins, mode, dimension_numbers)
        return [self.emit(e, ins, x, indices, updates, dimension_numbers, reducer, **how)]

    def emit(
        self, e: Any, ins: Sequence, x: str, indices: str, updates: str, numbers: gather_dims.ScatterDimensionNumbers,
        reducer: Any, *, update_consts: tuple, **flags: bool,
    ) -> str:  # fmt: skip
        """Emits the scatter; XLA drops updates whose indices are out of bounds."""
        return e.scatter([x], indices, [updates], ins, reducer, numbers._asdict(), **flags)[0]

    def write(
        self,
        x: Any,
        indices: Any,
        updates: Any,
        dimension_numbers: gather_dims.ScatterDimensionNumbers,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: _Mode = None,
        in_transpose: bool = False,
        jaxpr: Jaxpr | None = None,
    ) -> Any:
        """Binds the primitive; `jaxpr` is the `update_jaxpr` if the primitive has no `combine`."""
        if self.combine is not None:
            jaxpr = _update_jaxpr(self.combine, typeof(x).dtype, in_transpose)
        numbers = gather_dims.ScatterDimensionNumbers(*map(_axes, dimension_numbers))
        promises = dict(indices_are_sorted=bool(indices_are_sorted), unique_indices=bool(unique_indices))
        how = dict(dimension_numbers=numbers, mode=gather_dims.GatherScatterMode.from_any(mode), **promises)
        return self.bind(x, indices, updates, update_jaxpr=jaxpr, update_consts=(), **how)

    def batch(self, axis, operands, dims_in, *, dimension_numbers, **how):
        (x, indices, updates), (d, indices_dim, updates_dim) = operands, dims_in
        x, updates = (moving.axis_to_front(x, d, axis), moving.axis_to_front(updates, updates_dim, axis))
        window, dropped, index_map, of_operand, of_indices = dimension_numbers
        window, dropped, index_map, of_operand = map(shifted, (window, dropped, index_map, of_operand))
        if indices_dim is None:
            numbers = gather_dims.ScatterDimensionNumbers((0, *window), dropped, index_map, of_operand, of_indices)
        else:
            indices = moving.move_axis(indices, indices_dim, 0)
            of_indices = (0, *shifted(of_indices))
            numbers = gather_dims.ScatterDimensionNumbers(window, dropped, index_map, (0, *of_operand), of_indices)
        return self.bind_all([x, indices, updates], dict(how, dimension_numbers=numbers)), [0]

    def transposed(self, ct, x, indices, updates, **params):
        ct_x = self.ct_operand(ct, indices, updates, **params) if is_undefined_primal(x) else None
        ct_updates = self.ct_updates(ct, indices, updates.aval, **params) if is_undefined_primal(updates) else None
        return [ct_x, None, ct_updates]

    def ct_operand(self, ct: Any, indices: Any, updates: Any, **params: Any) -> Any:
        """The operand's cotangent."""
        return ct

    def ct_updates(
        self, ct: Any, indices: Any, aval: ShapedArray, *, dimension_numbers: Any, mode: Any, **how: Any
    ) -> Any:
        """The cotangent of updates of type `aval`: gathered from where the updates were written."""
        return _read_windows(ct, indices, dimension_numbers, aval.shape, mode=mode, fill_value=0)


def _read_windows(
    x: Any, indices: Any, numbers: gather_dims.ScatterDimensionNumbers, update_shape: tuple, **how: Any
) -> Any:
    """Gathers from `x` the windows that a scatter of updates of this shape writes."""
    sizes = gather_dims.window_sizes(numbers, typeof(x).ndim, update_shape)
    return gather(x, indices, gather_dims.gather_numbers(numbers), sizes, **how)


def _flags(params: dict) -> dict:
    """The parameters of a gather or scatter that a scatter at the same positions keeps."""
    return {k: params[k] for k in ("dimension_numbers", "indices_are_sorted", "unique_indices", "mode")}


def _clamped_indices(
    e: Any,
    indices: str,
    ins: Sequence,
    mode: gather_dims.GatherScatterMode,
    numbers: gather_dims.ScatterDimensionNumbers,
) -> str:
    """The indices, clamped in bounds in the mode CLIP; in the other modes XLA drops updates that are out of bounds."""
    if mode is not gather_dims.CLIP:
        return indices
    x, aval, updates = ins
    highest = int(np.iinfo(aval.dtype).max)
    sizes = gather_dims.window_sizes(numbers, x.ndim, updates.shape)
    bounds = [
        min(b, highest) if is_int(b) else b
        for b in gather_dims.index_bounds(numbers.scatter_dims_to_operand_dims, sizes, x)
    ]
    return e.clamp(e.full(0, aval), indices, _broadcast_bounds(e, bounds, aval), aval)


# As in jax, scatters from transposition do not share an update jaxpr with those that users write.
@cache.cache(maxsize=1024)
def _update_jaxpr(combine: Callable, dtype: Any, in_transpose: bool) -> Jaxpr:
    aval = ShapedArray((), dtype)
    return trace_to_jaxpr(lambda x, y: [combine(x, y)], [aval, aval], DebugInfo("scatter", combine.name))[0]


class ScatterReplace(Scatter):
    """Replaces elements by the updates; if several write to one element, any of them wins."""

    def jvp(self, primals, tangents, **params):
        if params["update_jaxpr"] is not None:
            raise NotImplementedError("scatter_apply JVP not implemented")
        x, indices, updates = primals
        t, _, t_updates = tangents
        if type(t) is Zero and type(t_updates) is Zero:
            (out,) = self.bind_all(primals, params)
            return [out], [Zero.from_primal_value(out)]
        t, t_updates, how = instantiate(t), instantiate(t_updates), _flags(params)
        if params["unique_indices"]:
            (out,) = self.bind_all(primals, params)
            return [out], [self.write(t, indices, t_updates, **how)]
        winner, wins = self._winners(x, indices, updates, how)
        masked = [
            part
            for old, new in ((x, updates), (t, t_updates))
            for part in (select(eq(winner, full_of(winner)), old, full_of(old)), select(wins(), new, full_of(new)))
        ]
        return [scatter_add(masked[0], indices, masked[1], **how)], [scatter_add(masked[2], indices, masked[3], **how)]

    def _winners(self, x, indices, updates, how):
        """Returns (number of the update that each element got (0: none), () -> whether each update was written)."""
        numbers, shape = how["dimension_numbers"], typeof(updates).shape
        counts = tuple(1 if i in numbers.update_window_dims else n for i, n in enumerate(shape))
        many = prod(counts)
        is_small = not is_int(many) or many < np.iinfo(np.uint32).max
        count = iota(np.uint32 if is_small else np.uint64, many)
        one = scalar_like(count, 1)
        ids = add(moving.reshape(count, counts), moving.filled(shape, one))
        written = self.write(moving.filled(typeof(x).shape, scalar_like(count, 0)), indices, ids, **how)
        read = _read_windows(written, indices, numbers, shape)
        return written, lambda: eq(ids, read)

    def ct_operand(self, ct, indices, updates, **params):
        if not params["unique_indices"]:
            raise NotImplementedError("scatter transpose is only implemented where unique_indices=True")
        aval = operand_type(updates)
        zeros = moving.filled(aval.shape, scalar_like(ct, 0), sharding=aval.own_sharding)
        return self.write(ct, indices, zeros, **_flags(params))


class ScatterAdd(Scatter):
    """Adds the updates to the elements."""

    def emit(self, e, ins, x, indices, updates, numbers, reducer, **how):
        scatter = super().emit
        if ins[0].dtype != np.complex128 or e.platform not in ("cuda", "rocm"):
            return scatter(e, ins, x, indices, updates, numbers, reducer, **how)
        # GPUs have no atomic addition of 128 bits: real and imaginary parts are added separately.
        part = [ShapedArray(ins[0].shape, np.float64), ins[1], ShapedArray(ins[2].shape, np.float64)]
        sums = []
        for name in ("real", "imag"):
            x_part, updates_part = e.map_to(name, x, ins[0], part[0]), e.map_to(name, updates, ins[2], part[2])
            sums.append(scatter(e, part, x_part, indices, updates_part, numbers, "add", **how))
        return e.binary("complex", *sums, ins[0])


class ScatterSub(Scatter):
    """Subtracts the updates from the elements."""

    def ct_updates(self, ct, indices, aval, **params):
        return neg(super().ct_updates(ct, indices, aval, **params))


class ScatterMul(Scatter):
    """Multiplies the elements by the updates."""

    def jvp(self, primals, tangents, **params):
        x, indices, updates = primals
        t, _, t_updates = tangents
        (out,) = self.bind_all(primals, params)
        terms = [] if type(t) is Zero else self.bind_all([t, indices, updates], params)
        if type(t_updates) is not Zero:
            if not params["unique_indices"]:
                raise NotImplementedError("scatter_mul gradients are only implemented if `unique_indices=True`")
            terms.append(mul(x, scatter_add(full_of(x), indices, t_updates, **_flags(params))))
        return [out], [add_tangents(terms, out)]

    def ct_operand(self, ct, indices, updates, **params):
        if is_undefined_primal(updates):
            raise NotImplementedError("scatter_mul is not linear in operand and updates together")
        return self.write(ct, indices, updates, in_transpose=True, **_flags(params))


class ScatterExtremum(Scatter):
    """Keeps the smaller, or larger, of the element and the updates."""

    def jvp(self, primals, tangents, **params):
        x, indices, updates = primals
        t, _, t_updates = tangents
        (out,) = self.bind_all(primals, params)
        if type(t) is Zero and type(t_updates) is Zero:
            return [out], [Zero.from_primal_value(out)]
        t, t_updates, numbers = instantiate(t), instantiate(t_updates), params["dimension_numbers"]
        read = lambda v: _read_windows(v, indices, numbers, typeof(updates).shape)  # noqa: E731
        of_old, of_new = self._tie_factors(x, indices, updates, read(x), read(out), read, numbers)
        change = add(mul(read(t), of_old), mul(t_updates, of_new))
        return [out], [scatter_add(t, indices, change, **_flags(params))]

    def _tie_factors(self, x, indices, updates, old, new, read, numbers):
        """Returns (factor of the operand's tangent, as a change; factor of the updates'). Ties share equally."""
        count = lambda these: read(scatter_add(full_of(x), indices, these(), numbers))  # noqa: E731
        one = scalar_like(x, 1)
        won, stays = eq(updates, new), eq(old, new)
        winners = count(lambda: select(won, full_of(updates, 1), full_of(updates)))
        updates_here = count(lambda: full_of(updates, 1))
        share = select(stays, div(one, add(winners, one)), div(one, winners))
        share = select(won, share, full_of(updates))
        left = select(stays, div(one, add(winners, one)), full_of(updates))
        return div(add(scalar_like(x, -1), left), updates_here), share


scatter_p = ScatterReplace("scatter")
scatter_add_p = ScatterAdd("scatter-add", elementwise.add_p)
scatter_sub_p = ScatterSub("scatter-sub", elementwise.sub_p)
scatter_mul_p = ScatterMul("scatter-mul", elementwise.mul_p)
scatter_min_p = ScatterExtremum("scatter-min", elementwise.min_p)
scatter_max_p = ScatterExtremum("scatter-max", elementwise.max_p)


def _scatter_function(primitive: Scatter, name: str, does: str, result: list) -> Callable:
    def scatter(
        operand: ArrayLike,
        scatter_indices: ArrayLike,
        updates: ArrayLike,
        dimension_numbers: gather_dims.ScatterDimensionNumbers,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: _Mode = None,
    ) -> Array:
        """{does} windows of an array at positions that index vectors give.

        This is XLA's operation, with all its freedom; `x.at[...]` is easier to use.

        Args:
            operand: The array. It is not changed.
            scatter_indices: Integers; the last axis is the vector of the start of a window.
            updates: An array with the windows.
            dimension_numbers: A `jax.lax.ScatterDimensionNumbers`, which relates the axes.
            indices_are_sorted: A promise that the indices are sorted.
            unique_indices: A promise that no two windows overlap.
            mode: A `jax.lax.GatherScatterMode`, or its name: what happens to windows that are out of bounds. By
                default they are dropped.

        Returns:
            An array of the shape and dtype of `operand`.

        Example:
            >>> numbers = jax.lax.ScatterDimensionNumbers((), (0,), (0,))  # a window is an element
            >>> x, places = jnp.array([1, 2, 3]), jnp.array([[2], [0]])
            >>> jax.lax.{name}(x, places, jnp.array([5, -1]), numbers).tolist()
            {result}
        """
        flags: Any = dict(indices_are_sorted=indices_are_sorted, unique_indices=unique_indices, mode=mode)
        return primitive.write(operand, scatter_indices, updates, dimension_numbers, **flags)

    return named(scatter, name, filled(scatter, dict(name=name, does=does, result=result)))


scatter = _scatter_function(scatter_p, "scatter", "Replaces", [-1, 2, 5])
scatter_add = _scatter_function(scatter_add_p, "scatter_add", "Adds updates to", [0, 2, 8])
scatter_sub = _scatter_function(scatter_sub_p, "scatter_sub", "Subtracts updates from", [2, 2, -2])
scatter_mul = _scatter_function(scatter_mul_p, "scatter_mul", "Multiplies by updates", [-1, 2, 15])
scatter_min = _scatter_function(scatter_min_p, "scatter_min", "Takes the minimum of updates and", [-1, 2, 3])
scatter_max = _scatter_function(scatter_max_p, "scatter_max", "Takes the maximum of updates and", [1, 2, 5])


def scatter_apply(
    operand: Array,
    scatter_indices: Array,
    func: Callable,
    dimension_numbers: gather_dims.ScatterDimensionNumbers,
    *,
    update_shape: Sequence[int] = (),
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: _Mode = None,
) -> Array:
    """Applies `func`, a function of a scalar, to windows of the operand, at the positions that index vectors give.

    Raises NotImplementedError for a `func` that closes over traced values, TypeError over arrays, and ValueError if
    it does not return a scalar of the operand's dtype.

    Example:
        >>> numbers = jax.lax.ScatterDimensionNumbers((), (0,), (0,))  # a window is an element
        >>> x, places = jnp.array([1.0, 4.0, 9.0]), jnp.array([[1], [2]])
        >>> jax.lax.scatter_apply(x, places, jnp.sqrt, numbers, update_shape=(2,))
        Array([1., 2., 3.], dtype=float32)
    """
    dtype = typeof(operand).dtype
    aval = ShapedArray((), dtype)
    info = DebugInfo("scatter_apply", getattr(func, "__name__", "func"))

    def applied(x: Any, _: Any) -> list:
        out = func(x)
        if out is None or isinstance(out, (tuple, list, dict)):
            raise ValueError(f"scatter_apply: func must return a scalar, got {type(out).__name__}")
        return [out]

    jaxpr, consts = trace_to_jaxpr(applied, [aval, aval], info)
    if any(isinstance(c, Tracer) for c in consts):
        raise NotImplementedError("scatter_apply: func can't close over Tracers")
    if consts:
        raise TypeError("scatter_apply: func must not close over arrays, which are not hashable")
    (out,) = jaxpr.outvars
    if out.aval.dtype != dtype or out.aval.shape:
        raise ValueError(f"scatter_apply: func must map a scalar of {dtype.name} to another, got {out.aval}")
    flags: Any = dict(indices_are_sorted=indices_are_sorted, unique_indices=unique_indices, mode=mode)
    updates = full(update_shape, 0, dtype)
    return scatter_p.write(operand, scatter_indices, updates, dimension_numbers, jaxpr=jaxpr, **flags)
