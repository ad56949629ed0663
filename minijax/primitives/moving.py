"""The operations that every rule needs to move axes: broadcast, reshape, transpose, sum."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from minijax.base import config, dims, dtypes, source
from minijax.base.errors import ShardingTypeError
from minijax.ir import state
from minijax.ir.primitive import Axis, FirstOrder, Folding, Linear1, Primitive, fold_as
from minijax.ir.result_types import sharded_without_axes
from minijax.ir.trace import CompileTimeTrace, DynamicJaxprTracer, JaxprTrace
from minijax.ir.types import ShapedArray, Typed, is_hi_value, scalar, typeof
from minijax.partition.explicit import merged_entries, reshaped_entries, typed_sharding
from minijax.partition.meshes import axes_of, explicit_meshes
from minijax.partition.shardings import NamedSharding
from minijax.primitives.sharding import (
    cotangent_sharding,
    replicated_over_mesh,
    requested_sharding,
    reshard_like,
    with_batch_dim,
    with_out_sharding,
)
from minijax.run.arrays import transfer
from minijax.run.arrays.array import Array, ArrayLike, ShardingLike


def check_nonnegative(name: str, values: Sequence[int]) -> None:
    """Raises TypeError if a value is negative."""
    if any(v < 0 for v in values):
        raise TypeError(f"{name} must have every element be nonnegative, got {tuple(values)}. Use sizes from 0.")


def _sums(sharding: Any) -> tuple[frozenset, frozenset]:
    return sharding.spec.unreduced, sharding.spec.reduced


def _batched_sharding(sharding: Any, axis: Any) -> Any:
    return None if sharding is None else with_batch_dim(sharding, 0, axes_of(axis.entry), None)


class BroadcastInDim(FirstOrder, Linear1):
    """Operand axis i becomes axis `broadcast_dimensions[i]` of the result."""

    moves_data = True
    defaults_to_context_mesh = True
    name = "broadcast_in_dim"
    sharding_param = "sharding"
    same_memory_space = False

    def rebind(self, trace, operands, params):
        # No program takes the tangent of an integer.
        if getattr(operands[0], "dtype", None) == dtypes.float0 and recording_trace() is None:
            return [np.zeros(params["shape"], dtypes.float0)]
        return super().rebind(trace, operands, params)

    def infer(self, x, *, shape, broadcast_dimensions, sharding):
        check_nonnegative("broadcast_in_dim shape", shape)
        return [ShapedArray(shape, x.dtype, x.weak_type, memory_space=x.memory_space)]

    def sharding_rule(self, mesh, avals, outs, *, shape, broadcast_dimensions, sharding):
        entries = [None] * len(shape)
        for entry, d in zip(avals[0].entries, broadcast_dimensions, strict=True):
            entries[d] = entry  # of an axis of size 1 that grows, too
        return [tuple(entries)]

    def lower(self, e, ins, outs, x, *, shape, broadcast_dimensions, sharding):
        return [e.broadcast_in_dim(x, ins[0], outs[0], broadcast_dimensions)]

    def transposed(self, ct, aval, *, shape, broadcast_dimensions, sharding):
        grown = [n == 1 != shape[d] for n, d in zip(aval.shape, broadcast_dimensions, strict=True)]
        unit = tuple(
            i
            for i, (n, e, g) in enumerate(zip(aval.shape, aval.entries, grown, strict=True))
            if g or n == 1 and e is None
        )
        preserved = [d for i, d in enumerate(broadcast_dimensions) if i not in unit]
        order = sorted(preserved)
        kept = cotangent_sharding(aval) if not typeof(ct).reduction_state[0] else None
        if kept is not None:
            entries = [kept.spec[broadcast_dimensions.index(d)] for d in order]
            kept = kept.update(spec=kept.spec.update(partitions=entries))
        summed = sum_axes(ct, other_axes(len(shape), preserved), kept)
        if order != preserved:
            summed = transpose(summed, [order.index(d) for d in preserved])
        summed = expand_dims(summed, unit)
        return reshard_like(summed, aval.to_ct_aval()) if any(aval.entries[i] for i in unit) else summed

    def batch(self, axis, operands, dims_in, *, shape, broadcast_dimensions, sharding):
        x = axis_to_front(operands[0], dims_in[0], axis)
        params = dict(
            shape=(axis.size, *shape), broadcast_dimensions=(0, *axes_after_insertion(broadcast_dimensions, 0))
        )
        if sharding is None:
            return [broadcast_in_dim(x, **params)], [0]
        return [self.bind(x, **params, sharding=_batched_sharding(sharding, axis))], [0]

    def show_params(self, eqn):
        axes = eqn.params["broadcast_dimensions"]
        return [("broadcast_dimensions", axes)] if axes else []


class Reshape(FirstOrder, Linear1):
    """Changes the shape in row-major order, after permuting the axes by `dimensions` if given."""

    moves_data = True
    name = "reshape"
    sharding_param = "sharding"

    def infer(self, x, *, new_sizes, dimensions, sharding):
        if dimensions is not None and sorted(dimensions) != list(range(x.ndim)):
            raise TypeError(
                f"reshape dimensions must be a permutation of operand dimensions, got {dimensions} for shape {x.shape}."
            )
        check_nonnegative("reshape new_sizes", new_sizes)
        if prod(new_sizes) != x.size:
            raise TypeError(
                f"reshape total size must be unchanged, got new_sizes {new_sizes} (size {prod(new_sizes)}) "
                f"for shape {x.shape} (size {x.size})."
            )
        return [ShapedArray(new_sizes, x.dtype, x.weak_type)]

    def sharding_rule(self, mesh, avals, outs, *, new_sizes, dimensions, sharding):
        (x,) = avals
        order = range(x.ndim) if dimensions is None else dimensions
        entries = reshaped_entries(mesh, [x.shape[i] for i in order], [x.entries[i] for i in order], new_sizes)
        if entries is None:
            raise ShardingTypeError(
                f"reshape: the sharding of {x.str_short()} does not determine that of {new_sizes}. "
                "This reshape is not supported without `out_sharding`"
            )
        return [entries]

    def check_out_sharding(self, avals, requested, params):
        for which, have, want in zip(("unreduced", "reduced"), avals[0].reduction_state, _sums(requested), strict=True):
            if want and not have:
                raise ValueError(
                    f"reshape: out_sharding cannot contain {which} axes, as the operand has none: {set(want)}"
                )
            if have != want:
                raise ValueError(
                    f"reshape: out_sharding must be {which} over the same mesh axes as operand {avals[0].text}, not as "
                    f"{requested.spec}"
                )

    def lower(self, e, ins, outs, x, *, new_sizes, dimensions, sharding):
        aval = ins[0]
        if dimensions is not None:
            permuted_aval = ShapedArray(tuple(aval.shape[i] for i in dimensions), aval.dtype)
            x, aval = e.transpose(x, aval, permuted_aval, dimensions), permuted_aval
        return [e.reshape(x, aval, outs[0])]

    def transposed(self, ct, aval, *, new_sizes, dimensions, sharding):
        if dimensions is None:
            return reshape_to(ct, aval.shape, aval.own_sharding)
        return transpose(reshape_to(ct, tuple(aval.shape[i] for i in dimensions)), inverse(dimensions))

    def batch(self, axis, operands, dims_in, *, new_sizes, dimensions, sharding):
        x = move_axis(operands[0], dims_in[0], 0)
        wider = None if dimensions is None else (0, *axes_after_insertion(dimensions, 0))
        params: Any = dict(new_sizes=(axis.size, *new_sizes), dimensions=wider)
        if sharding is None:
            return [reshape(x, **params)], [0]
        return [self.bind(x, **params, sharding=_batched_sharding(sharding, axis))], [0]


class Transpose(FirstOrder, Linear1):
    """Result axis i is operand axis `permutation[i]`."""

    moves_data = True
    name = "transpose"

    def infer(self, x, *, permutation):
        if sorted(permutation) != list(range(x.ndim)):
            raise TypeError(
                f"transpose permutation isn't a permutation of operand dimensions, got permutation "
                f"{permutation} for operand shape {x.shape}. Name every axis of the operand once."
            )
        return [ShapedArray(tuple(x.shape[i] for i in permutation), x.dtype, x.weak_type)]

    def sharding_rule(self, mesh, avals, outs, *, permutation):
        return [tuple([avals[0].entries[i] for i in permutation])]

    def lower(self, e, ins, outs, x, *, permutation):
        return [e.transpose(x, ins[0], outs[0], permutation)]

    def transposed(self, ct, aval, *, permutation):
        return transpose(ct, inverse(permutation))

    def batch(self, axis, operands, dims_in, *, permutation):
        (d,) = dims_in
        return [transpose(operands[0], (d, *axes_after_insertion(permutation, d)))], [0]


_HALVES = frozenset((dtypes.BY_NAME["float16"], dtypes.BY_NAME["bfloat16"]))


WHOLE = object()  # in `AxisWise.entries`: the size of the batch axis


class AxisWise(Primitive):
    """An operation whose parameters speak of axes: batched, it treats the new axis as one that they do not name.

    `entries` maps a parameter with an item for each axis to the item of a batch axis. `numbers` lists parameters that
    are the number of an axis, or several; `drops` is the one whose axes the results lack.
    """

    entries: dict[str, Any] = {}
    numbers: tuple[str, ...] = ()
    drops: str | None = None

    def batch(self, axis, operands, dims, /, **params):
        d = next(dim for dim in dims if dim is not None)
        operands = [_with_axis_at(x, dim, d, axis) for x, dim in zip(operands, dims, strict=True)]
        for name, item in self.entries.items():
            if (items := params[name]) is not None:
                params[name] = (*items[:d], axis.size if item is WHOLE else item, *items[d:])
        for name in self.numbers:
            places = params[name]
            is_many = isinstance(places, Sequence)
            params[name] = axes_after_insertion(places, d) if is_many else places + (places >= d)
        dropped = params[self.drops] if self.drops else ()
        results = self.bind_all(operands, params)
        out = d - sum(i < d for i in (dropped if isinstance(dropped, Sequence) else (dropped,)))
        return results, [out] * len(results)


def _with_axis_at(x: Any, dim: int | None, d: int, axis: Any) -> Any:
    return broadcast_axis(x, axis, d) if dim is None else move_axis(x, dim, d)


class ReduceSum(FirstOrder, Linear1):
    """The sum over `axes`."""

    name = "reduce_sum"
    sharding_param = "out_sharding"

    # Not in `infer`, whose results are cached without the options in their key.

    def typed(self, avals, params):
        if avals[0].dtype in _HALVES and not config.allow_f16_reductions.value and self._adds(avals[0], **params):
            raise ValueError(
                f"reduce_sum on operand {avals[0].str_short()} is not allowed when jax_allow_f16_reductions=False."
            )
        return super().typed(avals, params)

    def _adds(self, x, *, axes, out_sharding=None):
        return any(x.shape[a] != 1 for a in axes)

    def infer(self, x, *, axes, out_sharding=None):
        return [reduced_aval(self.name, x, axes)]

    sharding_rule = sharded_without_axes

    def check_out_sharding(self, avals, requested, params):
        (x,), unreduced = avals, requested.spec.unreduced
        summed = {axis for i in params["axes"] for axis in axes_of(x.entries[i])}
        if not unreduced <= summed | x.reduction_state[0]:
            raise ShardingTypeError(
                "reduce_sum: out_sharding's unreduced axes should be in operand's specs that were summed over, as "
                f"{set(unreduced)} are not, the operand is {x.text}, its axes {tuple(params['axes'])}"
            )
        # A request need not specify the reduced axes.
        spec = requested.spec.update(reduced=requested.spec.reduced | x.reduction_state[1])
        return requested.update(spec=spec)

    def lower(self, e, ins, outs, x, *, axes, out_sharding=None):
        zero = e.constant(0, ShapedArray((), ins[0].dtype))
        return e.reduce([x], [zero], ins, outs, axes, self.reducer(e, ins[0].dtype))

    def reducer(self, e: Any, dtype: Any) -> str:
        return "or" if dtype == np.bool_ else "add"

    def transposed(self, ct, aval, *, axes, out_sharding):
        if not axes:
            return ct if not aval.has_mesh or any(typeof(ct).reduction_state) else reshard_like(ct, aval)
        if aval.has_mesh or out_sharding is None or any(typeof(ct).reduction_state):
            return broadcast_as(ct, aval, other_axes(aval.ndim, axes))
        whole = cotangent_sharding(aval)
        return broadcast_in_dim_p.bind(
            ct, shape=aval.shape, broadcast_dimensions=other_axes(aval.ndim, axes), sharding=whole
        )

    def batch(self, axis, operands, dims, *, axes, out_sharding=None):
        axes, d = batched_axes(axes, dims[0])
        if out_sharding is not None:
            out_sharding = with_batch_dim(out_sharding, d, axes_of(axis.entry), None)
        return [self.bind(operands[0], axes=axes, out_sharding=out_sharding)], [d]


def reduced_aval(name: str, x: ShapedArray, axes: Sequence[int]) -> ShapedArray:
    """The type of a reduction over `axes`, which must be distinct and in bounds."""
    if len(set(axes)) != len(axes):
        raise ValueError(f"duplicate value in 'axes' of {name}: {axes}")
    if not all(0 <= a < x.ndim for a in axes):
        raise ValueError(f"reduction axes {axes} contains out-of-bounds indices for {x}.")
    return ShapedArray(tuple(x.shape[i] for i in other_axes(x.ndim, axes)), x.dtype, x.weak_type)


def batched_axes(axes: Sequence[int], d: int) -> tuple[tuple[int, ...], int]:
    """Returns (reduction axes with a batch axis `d` in the operand, the result's batch axis)."""
    wider = axes_after_insertion(axes, d)
    return wider, d - sum(1 for a in wider if a < d)


broadcast_in_dim_p = BroadcastInDim()
reshape_p = Reshape()
transpose_p = Transpose()
reduce_sum_p = ReduceSum()
fold_as(Folding.MOVE, broadcast_in_dim_p, reshape_p, transpose_p)
fold_as(Folding.PLAIN, reduce_sum_p)


def other_axes(ndim: int, *taken: Sequence[int]) -> tuple[int, ...]:
    """The axes that are in none of the sequences."""
    gone = {i for axes in taken for i in axes}
    return tuple(i for i in range(ndim) if i not in gone)


def axes_after_insertion(axes: Sequence[int], d: int) -> tuple[int, ...]:
    """The numbers of axes after an axis `d` is inserted."""
    return tuple(a if a < d else a + 1 for a in axes)


def inverse(permutation: Sequence[int]) -> tuple[int, ...]:
    """The permutation that undoes `permutation`."""
    places = [0] * len(permutation)
    for i, p in enumerate(permutation):
        places[p] = i
    return tuple(places)


def broadcast_in_dim(
    operand: ArrayLike, shape: Sequence[int], broadcast_dimensions: Sequence[int], *, out_sharding: Any = None
) -> Array:
    """Wraps XLA's BroadcastInDim: operand axis i becomes axis `broadcast_dimensions[i]` of `shape`.

    Raises TypeError or ValueError if the sizes do not fit.

    Example:
        >>> jax.lax.broadcast_in_dim(jnp.array([1, 2]), (2, 3), (0,))
        Array([[1, 1, 1],
               [2, 2, 2]], dtype=int32)
    """
    aval = typeof(operand)
    shape, axes = dims.canonical_shape(shape), tuple(broadcast_dimensions)
    out: Any = operand
    if shape or not isinstance(operand, Array):
        _check_broadcast(aval, shape, axes)
        if aval.shape != shape or axes != tuple(range(len(shape))) or not isinstance(operand, Array):
            if aval.shape == shape and axes == tuple(range(len(shape))) and out_sharding is None and recording_trace():
                return as_array_or_constant(operand)
            requested = requested_sharding("broadcast_in_dim", out_sharding, len(shape))
            return broadcast_in_dim_p.bind(operand, shape=shape, broadcast_dimensions=axes, sharding=requested)
    return out if out_sharding is None else with_out_sharding("broadcast_in_dim", out, out_sharding)


def _check_broadcast(aval: ShapedArray, shape: tuple, axes: tuple) -> None:
    if len(axes) != aval.ndim:
        raise TypeError(
            f"broadcast_in_dim broadcast_dimensions must have length equal to operand ndim; got "
            f"broadcast_dimensions {axes} for operand ndim {aval.ndim}."
        )
    if aval.ndim > len(shape):
        raise TypeError(
            "broadcast_in_dim target broadcast shape must have equal or higher rank to the operand shape; got "
            f"operand ndim {aval.ndim} and target broadcast ndim {len(shape)}."
        )
    if any(not 0 <= a < len(shape) for a in axes):
        raise TypeError(
            f"broadcast_in_dim broadcast_dimensions must be a subset of output dimensions, got {axes} for "
            f"operand ndim {aval.ndim} and shape {shape}."
        )
    for size, a in zip(aval.shape, axes, strict=True):
        if size not in (1, shape[a]):
            raise TypeError(
                "broadcast_in_dim operand dimension sizes must either be 1, or be equal to their "
                f"corresponding dimensions in the target broadcast shape; got operand of shape {aval.shape}, "
                f"target broadcast shape {shape}, broadcast_dimensions {axes}. Give each operand axis the number of a "
                "target axis of its size."
            )
    if len(set(axes)) != len(axes):
        raise TypeError(f"broadcast_in_dim broadcast_dimensions must not contain duplicates; got {axes}.")


def broadcast_to_shape(x: Any, shape: tuple[int, ...], sharding: Any = None) -> Any:
    """Broadcasts `x`, of rank 0 or of the rank of `shape`. `sharding`: the result's, over Explicit axes."""
    have = typeof(x).shape
    if have == shape:
        return x
    axes = tuple(range(len(shape) - len(have), len(shape)))
    if sharding is None:
        return broadcast_in_dim(x, shape, axes)
    return broadcast_in_dim_p.bind(x, shape=shape, broadcast_dimensions=axes, sharding=sharding)


def broadcast_all_to(shape: tuple[int, ...], *values: Any) -> Sequence:
    """Broadcasts values to `shape`. If any has another shape, all get the same sharding over Explicit axes."""
    types = list(map(typeof, values))
    if all([t.shape == shape for t in types]):
        return values
    sharding = _joint_sharding(shape, types) if explicit_meshes else None
    return [_broadcast_sharded(x, shape, sharding) for x in values]


def _joint_sharding(shape: tuple[int, ...], types: Sequence[Any]) -> NamedSharding | None:
    """The sharding of values broadcast to a shape; None if none is sharded and the first of full rank has no mesh."""
    known = [t for t in types if t.has_mesh]
    padded = [(*[None] * (len(shape) - t.ndim), *t.entries) for t in known]
    entries = merged_entries("broadcast", padded) if known else ()
    if not any(entries) and next((t.own_sharding for t in types if t.ndim == len(shape)), None) is None:
        return None
    unreduced, reduced = (frozenset().union(*axes) for axes in zip(*[t.reduction_state for t in known], strict=True))
    return typed_sharding(known[0].own_sharding.mesh, entries, unreduced, reduced)


def _broadcast_sharded(x: Any, shape: tuple[int, ...], sharding: NamedSharding | None) -> Any:
    have = typeof(x)
    if have.shape == shape:
        return x if sharding is None or any(have.reduction_state) else reshard_like(x, have.update(sharding=sharding))
    return broadcast_to_shape(x, shape, sharding)


def broadcast_squeezed(x: Any, shape: tuple[int, ...], out_sharding: Any = None) -> Any:
    """As `broadcast_to_shape`, but drops the axes of size 1 first, as for operands of elementwise operations."""
    have = typeof(x).shape
    if have == shape:
        return x
    axes = tuple(i for i, (n, m) in enumerate(zip(have, shape, strict=False)) if n == m)
    return broadcast_in_dim(reshape_to(x, tuple(have[i] for i in axes)), shape, axes, out_sharding=out_sharding)


def recording_trace() -> JaxprTrace | None:
    """The trace that records operations now; None if they run eagerly."""
    trace = state.thread.trace
    while trace is not None and type(trace) is not JaxprTrace:
        trace = None if type(trace) is CompileTimeTrace else trace.parent
    return trace


def as_array_or_constant(x: Any) -> Any:
    """Converts a host value to an array; while a function is traced, to a constant of its jaxpr."""
    is_plain = type(x) is np.ndarray and x.dtype.kind != "V"
    if not is_plain and isinstance(x, Array):
        return x
    if is_hi_value(x):
        return x
    trace = recording_trace()
    if trace is None:
        if getattr(x, "dtype", None) == dtypes.float0:
            return x
        return transfer.from_numpy(x) if is_plain else transfer.to_device(x)
    return DynamicJaxprTracer(trace, trace.atom(x), source.here())


def filled(shape: Sequence[int], value: Any, dtype: Any = None, weak_type: bool = False, sharding: Any = None) -> Any:
    """An array filled with one scalar, or with a number of that dtype. `sharding`: the array's, over Explicit axes."""
    if dtype is not None:
        value = scalar(value, dtype, weak_type)
    elif weak_type:
        value = scalar(np.asarray(value), typeof(value).dtype, True) if isinstance(value, np.generic | Typed) else value
    elif not isinstance(value, np.generic) and type(value) in dtypes.python_scalar_dtypes:
        value = np.asarray(value, dtypes.scalar_dtype(type(value)))[()]
    if not len(shape):
        return replicated_over_mesh(as_array_or_constant(value), sharding)
    return broadcast_in_dim_p.bind(value, shape=tuple(shape), broadcast_dimensions=(), sharding=sharding)


def reshape(
    operand: ArrayLike,
    new_sizes: Sequence[int],
    dimensions: Sequence[int] | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Wraps XLA's Reshape; `dimensions`, if given, permutes the operand's axes first.

    Raises TypeError if the number of elements would change.

    Example:
        >>> jax.lax.reshape(jnp.array([[1, 2, 3], [4, 5, 6]]), (3, 2))
        Array([[1, 2],
               [3, 4],
               [5, 6]], dtype=int32)
        >>> jax.lax.reshape(jnp.array([[1, 2, 3], [4, 5, 6]]), (6,), dimensions=(1, 0))
        Array([1, 4, 2, 5, 3, 6], dtype=int32)
    """
    aval = typeof(operand)
    sizes = dims.shape_of(new_sizes)
    permute = None
    if dimensions is not None:
        permute = tuple(dims.canonical_axis(d, aval.ndim) for d in dimensions)
        if permute == tuple(range(aval.ndim)):
            permute = None
    out: Any = operand
    if permute is not None or aval.shape != sizes or not sizes or not isinstance(operand, Array):
        requested = requested_sharding("reshape", out_sharding, len(sizes))
        return reshape_p.bind(operand, new_sizes=sizes, dimensions=permute, sharding=requested)
    return out if out_sharding is None else with_out_sharding("reshape", out, out_sharding)


def reshape_to(x: Any, shape: tuple[int, ...], sharding: Any = None) -> Any:
    have = typeof(x)
    if have.shape == shape and (sharding is None or have.own_sharding == sharding):
        return x
    return reshape_p.bind(x, new_sizes=shape, dimensions=None, sharding=sharding)


def broadcast_as(x: Any, aval: ShapedArray, axes: Sequence[int]) -> Any:
    """Broadcasts `x` to the shape and sharding of a type; the axes of `x` become `axes`."""
    if not aval.has_mesh:
        return broadcast_in_dim(x, aval.shape, axes)
    return broadcast_in_dim_p.bind(x, shape=aval.shape, broadcast_dimensions=tuple(axes), sharding=aval.own_sharding)


def transpose(operand: ArrayLike, permutation: Sequence[int]) -> Array:
    """Wraps XLA's Transpose: result axis i is operand axis `permutation[i]`.

    Raises TypeError unless `permutation` is one of the axes.

    Example:
        >>> jax.lax.transpose(jnp.array([[1, 2, 3], [4, 5, 6]]), (1, 0))
        Array([[1, 4],
               [2, 5],
               [3, 6]], dtype=int32)
    """
    perm = tuple(int(p) for p in permutation)
    if perm == tuple(range(typeof(operand).ndim)) and isinstance(operand, Array):
        return operand
    return transpose_p.bind(operand, permutation=perm)


def expand_dims(array: ArrayLike, dimensions: Sequence[int]) -> Array:
    """Inserts axes of size 1 at `dimensions` of the result.

    Raises ValueError for a number that is out of bounds or stands twice.

    Example:
        >>> jax.lax.expand_dims(jnp.array([1, 2]), (0, 2))
        Array([[[1],
                [2]]], dtype=int32)
    """
    dimensions = tuple(dimensions)
    if not dimensions:
        return as_array_or_constant(array)
    aval = typeof(array)
    ndim = aval.ndim + len(dimensions)
    at = [dims.canonical_axis(d, ndim) for d in dimensions]
    if len(set(at)) != len(at):
        raise ValueError(f"repeated axis in lax.expand_dims: {dimensions}")
    sizes = iter(aval.shape)
    shape = tuple(1 if i in at else next(sizes) for i in range(ndim))
    return broadcast_in_dim(array, shape, other_axes(ndim, at))


def sum_axes(x: Any, axes: tuple[int, ...], sharding: Any = None) -> Any:
    """The sum over axes. `sharding`: the result's, over Explicit axes."""
    if not axes and sharding is None:
        return x
    return reduce_sum_p.bind(x, axes=axes, out_sharding=sharding)


def sum_axis(x: Any, axis: int) -> Any:
    return sum_axes(x, (axis,))


def move_axis(x: Any, source: int, destination: int) -> Any:
    """Moves one axis of `x`."""
    if source == destination:
        return x
    order = [i for i in range(typeof(x).ndim) if i != source]
    order.insert(destination, source)
    return x.transpose(order) if type(x) is np.ndarray else transpose(x, order)


def divide_axis(x: Any, axis: int, count: int) -> Any:
    """Splits one axis of `x` of size n into two, of sizes (count, n // count)."""
    shape = typeof(x).shape
    return reshape(x, (*shape[:axis], count, shape[axis] // count, *shape[axis + 1 :]))


def swap_axes(x: Any, a: int, b: int) -> Any:
    """Exchanges two different axes of `x`."""
    order = list(range(typeof(x).ndim))
    order[a], order[b] = b, a
    return transpose(x, order)


def broadcast_axis(x: Any, size: int | Axis, at: int) -> Any:
    """Broadcasts `x` along a new axis, of the given size or that of the `vmap` axis."""
    aval = typeof(x)
    if isinstance(size, Axis):
        # As in jax, a value without a mesh in its type is not sharded over the mapped axis.
        if size.entry is not None and aval.has_mesh:
            wide = aval.with_axis(at, size.size, size.entry, size.mesh)
            return broadcast_as(x, wide, other_axes(wide.ndim, (at,)))
        size = size.size
    shape = aval.shape
    out_shape = (*shape[:at], size, *shape[at:])
    if isinstance(x, np.ndarray) and x.dtype == dtypes.float0 and recording_trace() is None:
        return np.zeros(out_shape, dtypes.float0)
    return broadcast_in_dim(x, out_shape, other_axes(len(out_shape), (at,)))


def axis_to_front(x: Any, dim: int | None, size: int | Axis) -> Any:
    """Moves the batch axis of `x` to the front; broadcasts along a new one of `size` if `x` has none."""
    return broadcast_axis(x, size, 0) if dim is None else move_axis(x, dim, 0)


def append_axes(x: Any, count: int) -> Any:
    """Appends `count` axes of size 1 to `x`."""
    ndim = typeof(x).ndim
    return expand_dims(x, tuple(range(ndim, ndim + count)))
