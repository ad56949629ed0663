"""Reductions by a user-defined function: along axes, and over sliding windows."""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from minijax.base import source, tree
from minijax.calls.bodied import fixpoint, split_tangents
from minijax.hlo.emitter import jaxpr_body
from minijax.ir.body import as_inputs_if_live, trace_body
from minijax.ir.jaxpr import ClosedJaxpr
from minijax.ir.primitive import Axis, Primitive
from minijax.ir.trace import Tracer, eval_jaxpr
from minijax.ir.types import ShapedArray, Zero, typeof
from minijax.partition.explicit import check_divides, common_sharding, entries_of
from minijax.primitives import elementwise as ops, reduce as reductions, window as windows
from minijax.primitives.families import INT_BOOL, const_like
from minijax.primitives.moving import axis_to_front, broadcast_to_shape, other_axes
from minijax.primitives.reduce import merge_axes_to_front, strong_reduced_aval
from minijax.primitives.structural import pad, slice_in_dim, squeeze
from minijax.primitives.zeros import instantiate, nonzero_mask, zeros_like_aval
from minijax.run.arrays.array import ShardingLike
from minijax.transforms.batch import batch_flat
from minijax.transforms.jvp import jvp_flat, jvp_jaxpr
from minijax.transforms.partial_eval import permute_jaxpr

# ---- shared by both ---------------------------------------------------------------------------------


def _operands_and_inits(items: Sequence) -> tuple[Sequence, Sequence]:
    """The operands and their initial values."""
    return items[: len(items) // 2], items[len(items) // 2 :]


def _reducer(e: Any, closed: ClosedJaxpr) -> Callable:
    return lambda *names: jaxpr_body(e, closed.jaxpr, e.constants(closed), names)


def _check_results(name: str, avals: Sequence[ShapedArray], closed: ClosedJaxpr) -> None:
    required, computed = (
        ", ".join(a.str_short() for a in part) for part in ([ShapedArray((), a.dtype) for a in avals], closed.out_avals)
    )
    if required != computed:
        raise ValueError(f"{name}: the computation must return {required} like the operands, not {computed}")


class Reducing(Primitive):
    """Combines elements of the operands, the first half, by `jaxpr`, (accumulated, elements) -> combined."""

    multiple_results = True

    def batched(self, axis: Axis, operands: Sequence, dims: Sequence) -> list:
        """The operands with the batch axis in front. Raises NotImplementedError if an initial value is batched."""
        (xs, inits), (x_dims, init_dims) = _operands_and_inits(operands), _operands_and_inits(dims)
        if any(d is not None for d in init_dims):
            raise NotImplementedError(f"{self.name} batching is not implemented for initial values")
        return [*(axis_to_front(x, d, axis) for x, d in zip(xs, x_dims, strict=True)), *inits]


# ---- along axes -------------------------------------------------------------------------------------


class Reduce(Reducing):
    """Combines the elements along `dimensions`."""

    name = "reduce"

    def infer(self, *avals, computation, jaxpr, dimensions):
        xs, inits = _operands_and_inits(avals)
        if any(init.shape for init in inits):
            raise ValueError(f"reduce found non-scalar initial value: {[i.shape for i in inits]}")
        if any(x.dtype != init.dtype for x, init in zip(xs, inits, strict=True)):
            raise TypeError(
                "reduce operand dtypes should match corresponding initial value dtypes, got operands="
                f"{list(xs)} and initial_values={list(inits)}"
            )
        if any(x.shape != xs[0].shape for x in xs):
            raise ValueError(f"reduce: operands must have equal shapes, got {[x.shape for x in xs]}")
        _check_results("reduce", xs, jaxpr)
        return [
            strong_reduced_aval("reduce", x, dimensions).update(weak_type=x.weak_type and init.weak_type)
            for x, init in zip(xs, inits, strict=True)
        ]

    def sharding_rule(self, mesh, avals, outs, *, dimensions, **params):
        return [entries_of(x.entries, other_axes(x.ndim, dimensions)) for x in _operands_and_inits(avals)[0]]

    def lower(self, e, ins, outs, *operands, computation, jaxpr, dimensions):
        xs, inits = _operands_and_inits(operands)
        return e.reduce(xs, inits, _operands_and_inits(ins)[0], outs, dimensions, _reducer(e, jaxpr))

    def jvp(self, primals, tangents, *, computation, jaxpr, dimensions):
        (xs, inits), (ts, init_ts) = _operands_and_inits(primals), _operands_and_inits(tangents)
        if any(nonzero_mask(init_ts)):
            raise NotImplementedError(
                "Gradient of general lax.reduce with non-zero tangents for initial values to reduction not implemented"
            )
        xs = [merge_axes_to_front(x, dimensions) for x in xs]
        ts = [
            Zero.from_primal_value(x) if type(t) is Zero else merge_axes_to_front(t, dimensions)
            for x, t in zip(xs, ts, strict=True)
        ]
        if typeof(xs[0]).shape[0]:
            return jvp_flat(lambda *xs: _reduce_by_halving(jaxpr, xs, inits), xs, ts)
        outs = [broadcast_to_shape(init, typeof(x).shape[1:]) for x, init in zip(xs, inits, strict=True)]
        return outs, [zeros_like_aval(typeof(x).to_tangent_aval()) for x in outs]

    def batch(self, axis, operands, dims, *, dimensions, **params):
        wider = tuple(d + 1 for d in dimensions)
        outs = self.bind(*self.batched(axis, operands, dims), dimensions=wider, **params)
        return outs, [0] * len(outs)


def _reduce_by_halving(closed: ClosedJaxpr, xs: Sequence, inits: Sequence) -> list:
    """Reduces the first axis by combining its halves repeatedly. These elementwise steps are differentiable."""
    while (size := typeof(xs[0]).shape[0]) > 1:
        half = (size + 1) // 2
        first, second = ([slice_in_dim(x, a, b) for x in xs] for a, b in ((0, half), (half, size)))
        if size % 2:
            second = [
                pad(x, init, [(0, 1, 0), *[(0, 0, 0)] * (typeof(x).ndim - 1)])
                for x, init in zip(second, inits, strict=True)
            ]
        xs = _elementwise(closed, [*first, *second])
    return [squeeze(x, (0,)) for x in xs]


def _elementwise(closed: ClosedJaxpr, xs: Sequence) -> list:
    """Applies a jaxpr of scalars to each element of arrays of the same shape."""
    shape = typeof(xs[0]).shape
    run = lambda *xs: eval_jaxpr(closed.jaxpr, closed.consts, *xs)  # noqa: E731
    for size in reversed(shape):
        run = _mapped(run, Axis(None, size))
    return run(*xs)


def _mapped(run: Callable, axis: Axis) -> Callable:
    def mapped(*xs):
        results, dims = batch_flat(run, axis, xs, [0] * len(xs))
        return [axis_to_front(x, d, axis) for x, d in zip(results, dims, strict=True)]

    return mapped


# ---- over windows -----------------------------------------------------------------------------------


class ReduceWindow(Reducing):
    """Combines the elements in each window."""

    name = "reduce_window"

    def infer(self, *avals, jaxpr, consts, **window):
        xs, inits = _operands_and_inits(avals)
        if any(x.dtype != init.dtype for x, init in zip(xs, inits, strict=True)):
            raise TypeError(
                "reduce_window got inconsistent dtypes for operands and init_values: got operand dtypes "
                f"{[x.dtype for x in xs]} and init_value dtypes {[i.dtype for i in inits]}."
            )
        if any(init.shape for init in inits):
            raise TypeError(
                "reduce_window expected init_values to be scalars but init_values have shapes "
                f"{[i.shape for i in inits]}."
            )
        if any(x.shape != xs[0].shape for x in xs):
            raise ValueError(f"reduce_window: operands must have equal shapes, got {[x.shape for x in xs]}")
        shape = windows.window_shape(xs[0].shape, **window)
        _check_results("reduce_window", xs, jaxpr)
        return [ShapedArray(shape, x.dtype) for x in xs]

    def sharding_rule(self, mesh, avals, outs, **params):
        xs = _operands_and_inits(avals)[0]
        return [check_divides("reduce_window", mesh, common_sharding(xs), outs[0].shape)] * len(xs)

    def lower(self, e, ins, outs, *operands, jaxpr, consts, **window):
        xs, inits = _operands_and_inits(operands)
        return e.reduce_window(xs, inits, _operands_and_inits(ins)[0], outs, _reducer(e, jaxpr), **window)

    def jvp(self, primals, tangents, *, jaxpr, **params):
        (xs, inits), (ts, init_ts) = _operands_and_inits(primals), _operands_and_inits(tangents)
        self.check_init_tangents(nonzero_mask(init_ts))
        n = len(xs)
        pushed, nonzeros = fixpoint(lambda nonzeros: jvp_jaxpr(jaxpr, nonzeros * 2, nonzeros), nonzero_mask(ts))
        k = sum(nonzeros)
        # (accumulated, elements, tangents of both) -> (accumulated, their tangents, elements, theirs)
        order = (*range(n), *range(2 * n, 2 * n + k), *range(n, 2 * n), *range(2 * n + k, 2 * n + 2 * k))
        pushing = [*map(instantiate, nonzeros.marked(ts))], [const_like(x, 0) for x in nonzeros.marked(inits)]
        results = self.bind(*xs, *pushing[0], *inits, *pushing[1], jaxpr=permute_jaxpr(pushed, order), **params)
        return split_tangents(results[:n], results[n:], nonzeros)

    def check_init_tangents(self, nonzeros: Iterable[bool]) -> None:
        """Raises TypeError if an initial value has a tangent."""
        if any(nonzeros):
            raise TypeError("reduce_window jvp does not support non-zero init_value_tangent.")

    def linearize(self, nonzeros, primals, **params):
        self.check_init_tangents(_operands_and_inits(nonzeros)[1])
        raise ValueError(
            "Linearization failed to produce known values for all output primals: reduce_window has a "
            "reverse-mode derivative only for lax.add, lax.max and lax.min with their neutral initial values."
        )

    def batch(self, axis, operands, dims, *, jaxpr, consts, **window):
        outs = self.bind(
            *self.batched(axis, operands, dims), jaxpr=jaxpr, consts=consts, **windows.with_axis(window, 0)
        )
        return outs, [0] * len(outs)


reduce_p, reduce_window_p = Reduce(), ReduceWindow()

# ---- the public functions ---------------------------------------------------------------------------


def _integer_zero(dtype: Any) -> int | None:
    return 0 if INT_BOOL.accepts(dtype) else None


_REDUCTIONS = {
    ops.add: (reductions.reduce_sum, 0),
    ops.mul: (reductions.reduce_prod, 1),
    ops.max: (reductions.reduce_max, reductions.reduce_max_p.start),
    ops.min: (reductions.reduce_min, reductions.reduce_min_p.start),
    ops.bitwise_and: (reductions.reduce_and, reductions.reduce_and_p.start),
    ops.bitwise_or: (reductions.reduce_or, _integer_zero),
    ops.bitwise_xor: (reductions.reduce_xor, _integer_zero),
}
_WINDOWS = {
    ops.add: windows.reduce_window_sum_p,
    ops.max: windows.reduce_window_max_p,
    ops.min: windows.reduce_window_min_p,
}


def _has_own_primitive(computation: Any, init: Any) -> bool:
    """True if the function has a reduction primitive and `init` is its neutral element."""
    if not isinstance(computation, Hashable) or computation not in _REDUCTIONS:
        return False
    aval, (_, neutral) = typeof(init), _REDUCTIONS[computation]
    if aval.shape or isinstance(init, Tracer):
        return False
    return bool(np.asarray(init) == (neutral(aval.dtype) if callable(neutral) else neutral))


def _flattened(operands: Any, init_values: Any) -> tuple[list, list, Any]:
    (xs, treedef), (inits, init_tree) = tree.flatten(operands), tree.flatten(init_values)
    if treedef != init_tree:
        raise ValueError(f"Operands must have the same tree structure as init_values: {treedef} vs. {init_tree}")
    return xs, inits, treedef


def _traced(name: str, computation: Callable, inits: Sequence, treedef: Any) -> tuple[ClosedJaxpr, Any]:
    """Traces the computation on scalars. Returns its jaxpr and the structure of its results."""
    units = [typeof(x).update(shape=()) for x in inits]
    trees = tree.treedef_tuple((treedef, treedef))
    body = trace_body(computation, (*units, *units), trees, name, as_inputs_if_live)
    if body.captured:
        raise NotImplementedError(f"{name}: Reduction computations can't close over Tracers")
    return body.closed, body.out_tree


@source.boundary
def reduce(
    operands: Any,
    init_values: Any,
    computation: Callable[[Any, Any], Any],
    dimensions: Sequence[int],
    out_sharding: ShardingLike | None = None,
) -> Any:
    """Combines the elements of arrays, or of trees of them, along `dimensions`, starting from `init_values`.

    `computation` takes two scalars (or trees of them) and must be associative. The initial value must be its neutral
    element. It may close over arrays. Raises NotImplementedError if it closes over tracers.

    Example:
        >>> jax.lax.reduce(jnp.array([[1, 5], [4, 2]]), 0, jax.lax.max, dimensions=(0,))
        Array([4, 5], dtype=int32)
    """
    xs, inits, treedef = _flattened(operands, init_values)
    if not xs:
        raise ValueError("reduce must have at least one operand.")
    if len(xs) == 1 and _has_own_primitive(computation, inits[0]):
        if out_sharding is None:
            return _REDUCTIONS[computation][0](xs[0], tuple(dimensions))
        if computation is not ops.add:
            raise NotImplementedError("reduce: out_sharding is only supported for lax.add.")
        return reductions.reduce_sum(xs[0], tuple(dimensions), out_sharding=out_sharding)
    closed, out_tree = _traced("reduce", computation, inits, treedef)
    results = reduce_p.bind(
        *xs, *inits, computation=computation, jaxpr=closed, dimensions=tuple(map(operator.index, dimensions))
    )
    return out_tree.unflatten(results)


@source.boundary
def reduce_window(
    operand: Any,
    init_value: Any,
    computation: Callable,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: str | Sequence[tuple[int, int]] = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Any:
    """Combines the elements of an array, or of a tree of them, in windows that slide over all axes.

    Dilations put gaps between the elements of the operand and of the window; `padding` is "VALID", "SAME",
    "SAME_LOWER" or pairs, and holds `init_value`. Sums and extrema have derivatives, other computations only in
    forward mode. Raises TypeError for windows that do not fit the shape.

    Example:
        >>> jax.lax.reduce_window(jnp.array([1, 5, 2, 4]), 0, jax.lax.max, (2,), (1,), "VALID")
        Array([5, 5, 4], dtype=int32)
    """
    xs, inits, treedef = _flattened(operand, init_value)
    if not xs:
        raise ValueError("reduce_window must have at least one operand.")
    window = windows.canonical_window(
        typeof(xs[0]).shape, window_dimensions, window_strides, padding, base_dilation, window_dilation
    )
    if treedef == _LEAF and _has_own_primitive(computation, inits[0]) and computation in _WINDOWS:
        return _WINDOWS[computation].bind(*xs, **window)
    closed, out_tree = _traced("reduce_window", computation, inits, treedef)
    if out_tree != treedef:
        raise ValueError(
            f"reduce_window output must have the same tree structure as the operands {treedef} vs. {out_tree}"
        )
    return out_tree.unflatten(reduce_window_p.bind(*xs, *inits, jaxpr=closed, consts=(), **window))


_LEAF = tree.tree_structure(0)
