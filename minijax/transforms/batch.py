"""Vectorisation: each operation runs once for a whole axis.

>>> jax.make_jaxpr(jax.vmap(lambda x: x.sum()))(jnp.ones((3, 2)))
{ lambda ; a:f32[3,2]. let
    b:f32[3] = reduce_sum[axes=(1,) out_sharding=None] a
  in (b,) }
"""

import weakref
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

from minijax.base import cache, source, stack
from minijax.base.mask import Mask
from minijax.base.naming import known_as
from minijax.base.thread import called_under
from minijax.ir import context, state
from minijax.ir.jaxpr import ClosedJaxpr
from minijax.ir.primitive import Axis
from minijax.ir.refs import Ref
from minijax.ir.rules import no_rule
from minijax.ir.trace import (
    DynamicJaxprTracer,
    Trace,
    Tracer,
    checked_for_leaks,
    eval_jaxpr,
    made_under,
    referent,
    trace_to_jaxpr,
)
from minijax.ir.types import Aval, Zero, register_value_type, typeof
from minijax.primitives import moving
from minijax.primitives.moving import broadcast_axis, move_axis


@cache.cache
def _without_axis(aval: Aval, dim: int) -> Aval:
    return aval.without_axis(dim)


def with_axis(aval: Aval, dim: int, axis: Axis) -> Aval:
    """The type of batched values: with the axis that `vmap` adds."""
    return aval.with_axis(dim, axis.size, axis.entry, axis.mesh)


@known_as("jax._src.interpreters.batching.BatchTracer")
class BatchTracer(Tracer):
    """A batched value: `val` has a batch axis `dim`, which the function does not see."""

    __slots__ = ("val", "dim", "origin")

    def __init__(self, trace: "BatchTrace", val: Any, dim: int):
        self._trace = trace
        self.aval = _without_axis(val.aval if isinstance(val, Tracer) else typeof(val), dim)
        self.val = val
        self.dim = dim
        # A result of an operation that is recorded was made where its tracer was.
        origin = val.origin if type(val) is DynamicJaxprTracer else None
        self.origin = source.here() if origin is None or type(origin) is str else origin

    batch_dim = property(lambda self: self.dim)

    def get_referent(self):
        return referent(self.val)

    def __repr__(self):
        return f"VmapTracer(aval={self.aval}, batched={typeof(self.val)})"

    def _origin_msg(self):
        inside = self.val._origin_msg() if isinstance(self.val, Tracer) else ""
        return inside or f"\n{made_under(self)}, under vmap."


class BatchTrace(Trace):
    """Runs the batching rules in its parent."""

    __slots__ = ("axis",)

    def __init__(self, parent: Trace, axis: Axis):
        super().__init__(parent)
        self.axis = axis

    def split(self, operands: Sequence) -> tuple[list, list]:
        values, dims = [], []
        for x in operands:
            # Traces of one vmap have one axis object: functions with custom rules may capture their tracers.
            if type(x) is BatchTracer and x._trace.axis is self.axis:
                values.append(x.val)
                dims.append(x.dim)
            else:
                if isinstance(x, Tracer):
                    self.admit(x)
                values.append(x)
                dims.append(None)
        return values, dims

    def join(self, values: Sequence, dims: Sequence) -> list:
        return [v if d is None else BatchTracer(self, v, d) for v, d in zip(values, dims, strict=True)]

    def process(self, primitive, operands, params):
        values, dims = self.split(operands)
        if dims.count(None) == len(dims) and self.axis.name not in primitive.names_axis(params):
            return self.parent.process(primitive, values, params)
        rule = primitive.batch or no_rule(primitive, "batch")
        return self.join(*called_under(self.beneath, rule, self.axis, values, dims, **params))


def batched(fun: Callable, axis: Axis, dims: Sequence) -> tuple[Callable, list]:
    """A flat function over batched values, and the list that receives its results' dims."""
    out_dims: list = []

    def run(*values):
        inner, flags = fun, [x[1] for x in values if type(x) is tuple]
        if flags:  # a forward rule with symbolic zeros: its arguments are pairs (value, perturbed)
            inner, values = lambda *xs: fun(*zip(xs, flags, strict=True)), [x[0] for x in values]
        results, out_dims[:] = batch_flat(inner, axis, values, dims)
        return results

    run.__name__ = getattr(fun, "__name__", "fun")
    return run, out_dims


def _zeros_within(values: Sequence, dims: Sequence) -> tuple[list, list]:
    """The values and their dims, symbolic zeros with the unbatched type that the inner function sees."""
    pairs = list(zip(values, dims, strict=True))
    within = [Zero(_without_axis(x.aval, d)) if type(x) is Zero and d is not None else x for x, d in pairs]
    return within, [None if type(x) is Zero else d for x, d in pairs]


def batched_jvp(jvp: Callable, axis: Axis, dims: Sequence) -> tuple[Callable, list]:
    """A flat custom_jvp rule over batched values: a result and its tangent share their dim."""
    out_dims: list = []

    def run(*values):
        results, result_dims = batch_flat(jvp, axis, *_zeros_within(values, (*dims, *dims)))
        half = len(results) // 2
        pairs = list(zip(result_dims[:half], result_dims[half:], strict=True))
        out_dims[:] = [p if p is not None else t for p, t in pairs]
        return [
            move_batch_dim(x, d, want, axis)
            for x, d, want in zip(results, result_dims, (*out_dims, *out_dims), strict=True)
        ]

    run.__name__ = getattr(jvp, "__name__", "jvp")
    return run, out_dims


def batched_backward(bwd: Callable, axis: Axis, fwd_dims: list, dims: Sequence) -> Callable:
    """A flat backward rule over batched residuals and cotangents; cotangents of unbatched operands are summed."""

    def run(*residuals_and_cts):
        results, result_dims = batch_flat(bwd, axis, *_zeros_within(residuals_and_cts, fwd_dims))
        return [fit_cotangent(x, d, want, axis) for x, d, want in zip(results, result_dims, dims, strict=True)]

    run.__name__ = getattr(bwd, "__name__", "bwd")
    return run


def fit_cotangent(x: Any, dim: int | None, want: int | None, axis: Axis) -> Any:
    """A cotangent with its batch axis at `want`, that of the operand; summed over it if the operand is unbatched."""
    if x is None or type(x) is Zero:
        return None
    if want is None and dim is not None:
        return moving.sum_axis(x, dim)
    return move_batch_dim(x, dim, want, axis)


def move_batch_dim(x: Any, dim: int | None, want: int | None, axis: Axis) -> Any:
    """`x` with its batch axis moved from `dim` to `want`."""
    if dim == want or want is None:
        return x
    if type(x) is Zero:
        return Zero(with_axis(x.aval, want, axis))
    return broadcast_axis(x, axis, want) if dim is None else move_axis(x, dim, want)


def batch_flat(fun: Callable, axis: Axis, values: Sequence, dims: Sequence) -> tuple[list, list]:
    """Results of a flat function over batched values, and their dims."""
    return checked_for_leaks(*_batch(fun, axis, values, dims))


@stack.deep
def _batch(fun, axis, values, dims):
    trace = BatchTrace(state.current_trace(), axis)

    def run():
        with state.named_axis(*axis[:4]):
            return trace.split(list(fun(*trace.join(values, dims))))

    results, out_dims = context.run_under(trace, run)
    for i, ref in enumerate(results):
        if type(ref) is Ref and ref._trace is trace:
            (value,), (dim,) = trace.split([ref._value])
            results[i], out_dims[i] = Ref(moving.as_array_or_constant(move_batch_dim(value, dim, 0, axis))), 0
    return weakref.ref(trace), (results, out_dims)


@state.traced_cache
def batch_jaxpr(
    closed: ClosedJaxpr, axis: Axis, dims: tuple, instantiate: bool | tuple[bool, ...] = False
) -> tuple[ClosedJaxpr, Mask]:
    """The jaxpr over inputs batched at `dims`, with batched results at axis 0; and a mask of the batched results.

    Results that `instantiate` marks (one flag for all, or one for each) are always batched.
    """

    def destinations(result_dims):
        instantiated = (instantiate,) * len(result_dims) if isinstance(instantiate, bool) else instantiate
        return [None if d is None and not flag else 0 for d, flag in zip(result_dims, instantiated, strict=True)]

    batched, out_dims = _batched(closed, axis, dims, destinations)
    return batched, Mask([d is not None for d in out_dims])


@state.traced_cache
def batch_jaxpr_axes(
    closed: ClosedJaxpr, axis: Axis, dims: tuple, out_dims: tuple | None = None
) -> tuple[ClosedJaxpr, tuple]:
    """The jaxpr over inputs batched at `dims`, and its results' dims.

    `out_dims` gives the dims of results. If it is None, or has a None, the operations determine the dim.
    """

    def destinations(result_dims):
        return [d if to is None else to for d, to in zip(result_dims, out_dims or result_dims, strict=True)]

    return _batched(closed, axis, dims, destinations)


def _batched(closed: ClosedJaxpr, axis: Axis, dims: tuple, destinations: Callable) -> tuple[ClosedJaxpr, tuple]:
    out_dims: list = []

    def run(*args):
        body = lambda *xs: eval_jaxpr(closed.jaxpr, closed.consts, *xs)  # noqa: E731
        results, result_dims = batch_flat(body, axis, args, dims)
        out_dims[:] = destinations(result_dims)
        return [move_batch_dim(x, d, to, axis) for x, d, to in zip(results, result_dims, out_dims, strict=True)]

    avals = [a if d is None else with_axis(a, d, axis) for a, d in zip(closed.in_avals, dims, strict=True)]
    info = closed.debug_info._replace(result_paths=None)
    jaxpr, consts = trace_to_jaxpr(run, avals, info)
    return ClosedJaxpr(jaxpr, consts), tuple(out_dims)


register_value_type(BatchTracer, attrgetter("aval"))
