"""Families of operations: base classes that derive all rules of an op from a line or two."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.base import dtypes, errors
from minijax.base.errors import ShardingTypeError
from minijax.base.source import hide_frames
from minijax.base.symbolic.dimension import is_int
from minijax.base.util import named
from minijax.hlo.spell import accuracy_attribute
from minijax.ir import state
from minijax.ir.jaxpr import ClosedJaxpr, DebugInfo
from minijax.ir.primitive import FirstOrder, Primitive, is_undefined_primal, linear_operand
from minijax.ir.result_types import state_of_elements, state_of_terms
from minijax.ir.trace import trace_to_jaxpr
from minijax.ir.types import NOT_MANUAL, ShapedArray, Zero, scalar, typeof
from minijax.partition.explicit import merged_entries
from minijax.primitives import moving
from minijax.primitives.convert import convert_element_type
from minijax.primitives.sharding import cotangent_sharding, replicated_over_mesh, reshard_like
from minijax.primitives.varying import match_varying
from minijax.primitives.zeros import add_tangents, instantiate
from minijax.run.arrays.array import Array, ArrayLike

Rule = Callable[..., Any]


class Kinds(tuple):
    """The kinds of dtypes that an operation accepts."""

    def __or__(self, other: Kinds) -> Kinds:
        return Kinds((*self, *(k for k in other if k not in self)))

    def accepts(self, dtype: Any) -> bool:
        return any(dtypes.issubdtype(dtype, kind) for kind in self)

    def __str__(self):
        return ", ".join(k.__name__.removesuffix("_") for k in self)


FLOAT = Kinds((np.floating,))
COMPLEX = Kinds((np.complexfloating,))
INT = Kinds((np.integer,))
BOOL = Kinds((np.bool_,))
NUMBER = Kinds((np.number,))
INEXACT = FLOAT | COMPLEX
ANY = Kinds((np.number, np.bool_))
INT_BOOL = INT | BOOL
REAL = INT | FLOAT


def scalar_like(x: Any, value: Any) -> Any:
    """A scalar of the dtype of `x`."""
    dtype = typeof(x).dtype
    return scalar(value, dtype) if is_int(value) else convert_element_type(value, dtype)


def const_like(x: Any, value: Any) -> Any:
    """A scalar of the dtype of `x`; a Python scalar if `x` is a weak scalar, which keeps results weak."""
    aval = typeof(x)
    return scalar(value, aval.dtype, aval.weak_type and not aval.shape)


def zero_like(x: Any) -> Any:
    """The scalar 0 of the dtype, the weak type and the mesh of `x`."""
    return _scalar_on_mesh(0, typeof(x))


def one_like(x: Any) -> Any:
    """The scalar 1 of the dtype, the weak type and the mesh of `x`."""
    return _scalar_on_mesh(1, typeof(x))


def _scalar_on_mesh(value: int, aval: ShapedArray) -> Any:
    return replicated_over_mesh(scalar(value, aval.dtype, aval.weak_type), aval.own_sharding)


def full_of(x: Any, value: Any = 0) -> Any:
    """An array filled with one value, of the type of `x`, including its weak type."""
    aval = typeof(x)
    filled = moving.filled(aval.shape, scalar_like(x, value), weak_type=aval.weak_type, sharding=aval.own_sharding)
    return match_varying(filled, x)


def is_complex(x: Any) -> bool:
    """Returns whether `x` is complex."""
    return dtypes.is_complex(typeof(x).dtype)


def check_kinds(name: str, kinds: Kinds, *avals: ShapedArray) -> None:
    """Raises TypeError unless the dtype of every operand is of one of the kinds."""
    for i, a in enumerate(avals):
        if not kinds.accepts(a.dtype):
            at = f" at position {i}" if len(avals) > 1 else ""
            if a.dtype == dtypes.float0:
                raise TypeError(errors.no_float0(name, at))
            other = "Take `x.real` or `abs(x)`" if dtypes.is_complex(a.dtype) else "Convert it with `x.astype`"
            advice = errors.NUMBERS_OF_KEYS if dtypes.is_extended(a.dtype) else f"{other} first."
            raise TypeError(
                f"{name} does not accept dtype {a.dtype.name}{at}. Accepted dtypes{at} are subtypes of {kinds}. "
                f"{advice}"
            )


def check_count(name: str, count: int, operands: Sequence, error: type[Exception] = TypeError) -> None:
    """Raises `error` unless there are `count` operands."""
    if len(operands) != count:
        given = ", ".join(map(str, operands)) or "none"
        raise error(f"{name} takes {count} operand{'s' * (count != 1)}, but {len(operands)} were given: {given}")


def check_same_dtypes(name: str, *avals: ShapedArray) -> None:
    """Raises TypeError unless all dtypes are equal."""
    if any(a.dtype != avals[0].dtype for a in avals[1:]):
        names = ", ".join(a.dtype.name for a in avals)
        similar = _SIMILAR.get(name)
        tip = f"(Tip: jnp.{similar} is a similar function that does automatic type promotion on inputs)."
        advice = tip if similar else "Convert them to one dtype with `astype`."
        raise TypeError(f"lax.{name} requires arguments to have the same dtypes, got {names}. {advice}")


# The functions of jax.numpy for operations, which promote dtypes.
_SIMILAR = {
    "add": "add", "and": "bitwise_and", "atan2": "arctan2", "div": "divide", "eq": "equal", "ge": "greater_equal",
    "gt": "greater", "le": "less_equal", "lt": "less", "max": "maximum", "min": "minimum", "mul": "multiply",
    "ne": "not_equal", "nextafter": "nextafter", "or": "bitwise_or", "pow": "power", "rem": "fmod",
    "shift_left": "left_shift", "shift_right_arithmetic": "right_shift", "shift_right_logical": "right_shift",
    "sub": "subtract", "xor": "bitwise_xor", "concatenate": "concatenate",
}  # fmt: skip


def broadcast_shapes_of_op(name: str, *shapes: tuple) -> tuple:
    """The common shape of operands: ranks must be equal or 0, sizes equal or 1."""
    first = shapes[0]
    if all(s == first for s in shapes[1:]):
        return first
    ranked = [s for s in shapes if s]
    ranks = {len(s) for s in ranked}
    if len(ranks) > 1:
        raise TypeError(
            f"{name}: arrays must have the same number of dimensions, got {ranks}. The operators and functions of "
            "jax.numpy broadcast ranks; `jnp.expand_dims` adds axes."
        )
    out = []
    for i, sizes in enumerate(zip(*ranked, strict=True)):
        larger = {d for d in sizes if d != 1}
        if len(larger) > 1:
            raise TypeError(
                f"{name} got incompatible shapes for broadcasting: {', '.join(map(str, shapes))}. Along axis "
                f"{i - len(ranked[0])} the sizes must be equal or 1, they are {', '.join(map(str, sizes))}. Slice "
                "or transpose an operand, or insert an axis of size 1 (`x[:, None]`)."
            )
        out.append(larger.pop() if larger else 1)
    return tuple(out)


def reduce_scalars_like(operands: Sequence) -> list | None:
    """Makes scalars reduced over the Explicit axes over which another operand is. None if that changes nothing."""
    avals = list(map(typeof, operands))
    like = next((a for a in avals if a.has_mesh and a.reduction_state[1]), None)
    scalars = [not a.shape and not a.is_sharded for a in avals]
    if like is None or not any(scalars):
        return None
    types = [a.sharded_over(like.own_sharding.mesh, (), *like.reduction_state) for a in avals]
    rows = zip(operands, types, scalars, strict=True)
    return [reshard_like(x, t) if is_scalar else x for x, t, is_scalar in rows]


class SameShape(FirstOrder):
    """An operation whose operands are broadcast together, with results of their common shape."""

    defaults_to_context_mesh = True
    arity = 1

    def gets_context_mesh(self, avals):
        return len(avals) != 1

    def __init__(self, name: str, accepts: Kinds):
        self.name = name
        self.accepts = accepts

    def __call__(self, *operands: Any) -> Any:
        return self.bind(*operands)

    def bind(self, *operands: Any, **params: Any) -> Any:
        if params:
            # Users who bind jax's primitives directly pass these parameters as None.
            params = {k: v for k, v in params.items() if v is not None or k not in ("accuracy", "out_dtype")}
        thread = state.thread
        try:
            if thread.manual:
                operands = thread.manual.unite(operands)
            try:  # as in `Binding.bind`, without its call
                results = (thread.trace or state.eval_trace[0]).process(self, operands, params)
                return results if self.multiple_results else results[0]
            except TypeError:
                self._refuse(operands)
                raise
            except ShardingTypeError:
                ready = reduce_scalars_like(operands)
                if ready is None:
                    raise
            return Primitive.bind(self, *ready, **params)
        except Exception as error:
            hide_frames(error)
            raise

    def result_dtype(self, *avals: ShapedArray, **params: Any) -> Any:
        check_kinds(self.name, self.accepts, *avals)
        check_same_dtypes(self.name, *avals)
        return avals[0].dtype

    def infer(self, *avals, **params):
        check_count(self.name, self.arity, avals, TypeError if self.arity == 1 else AssertionError)
        dtype = self.result_dtype(*avals, **params)
        shape = broadcast_shapes_of_op(self.name, *(a.shape for a in avals))
        weak = all(a.weak_type for a in avals)
        return [ShapedArray(shape, dtype, weak)]

    def sharding_rule(self, mesh, avals, outs, **params):
        ranked = [a.entries for a in avals if a.shape]
        return [merged_entries(self.name, ranked) if ranked else ()] * len(outs)

    reduction_state: Any = state_of_elements

    def broadcast(self, e: Any, ins: Sequence, out: ShapedArray, operands: Sequence[str]) -> list[str]:
        """The names of the operands, broadcast to the result's shape."""
        if e.explicit is None or not e.constrains_type(out):
            pairs = zip(operands, ins, strict=True)
            return [x if a.shape == out.shape else e.broadcast_to(x, a, out.shape) for x, a in pairs]
        wide = []
        for x, a in zip(operands, ins, strict=True):
            x = x if a.shape == out.shape else e.broadcast_to(x, a, out.shape)
            if a.shape != out.shape or a.own_sharding != out.own_sharding:
                constrained = out.update(dtype=a.dtype).sharded_over(e.explicit, out.entries, *a.reduction_state)
                (x,) = e.constrained_by_type([x], [constrained])
            wide.append(x)
        return wide

    def batch(self, axis, operands, dims, **params):
        if len(operands) == 1:
            return self.bind_all(operands, params), [dims[0]]
        ranked = [(typeof(x), d) for x, d in zip(operands, dims, strict=True) if typeof(x).ndim]
        shape, dim = next((a.shape, d) for a, d in ranked if d is not None)
        if all(a.shape == shape and d == dim for a, d in ranked):
            return self.bind_all(operands, params), [dim]
        fronted = [moving.axis_to_front(x, d, 1) if typeof(x).ndim else x for x, d in zip(operands, dims, strict=True)]
        ndim = max(typeof(x).ndim for x in fronted)
        ready = [
            x if d is None or typeof(x).ndim == ndim else moving.append_axes(x, ndim - typeof(x).ndim)
            for x, d in zip(fronted, dims, strict=True)
        ]
        return self.bind_all(ready, params), [0]


def emit_broadcast(e: Any, x: str, aval: ShapedArray, shape: tuple) -> str:
    """The name of `x` broadcast to `shape`; `x` is of rank 0 or has axes of size 1."""
    axes = range(len(shape)) if aval.shape else ()
    return e.broadcast_in_dim(x, aval, ShapedArray(shape, aval.dtype), tuple(axes))


def emit_nary(e: Any, hlo: str, operands: Sequence[str], ins: Sequence, out: ShapedArray) -> str:
    """Emits an elementwise StableHLO (or `chlo.`) operation on operands of the result's shape."""
    if hlo.startswith("chlo."):
        avals = [ShapedArray(out.shape, a.dtype) for a in ins]
        return e.chlo(hlo[5:], operands, avals, out)
    if len(operands) == 2:
        return e.binary(hlo, *operands, out)
    if ins[0].dtype == out.dtype:
        return e.unary(hlo, *operands, out)
    return e.map_to(hlo, *operands, ins[0], out)


def unbroadcast(ct: Any, aval: ShapedArray) -> Any:
    """Sums a cotangent over the axes along which its operand, of type `aval`, was broadcast."""
    have = typeof(ct)
    shape = have.shape
    if shape == aval.shape and have.own_sharding == aval.own_sharding:
        return ct
    sums = any(have.reduction_state) or any(aval.reduction_state)
    if sums and shape == aval.shape:
        return ct
    if not aval.shape:
        return moving.reduce_sum_p.bind(ct, axes=tuple(range(len(shape))), out_sharding=None)
    if shape == aval.shape and not aval.has_mesh:
        return ct
    axes = tuple(i for i, (have, want) in enumerate(zip(shape, aval.shape, strict=True)) if have != want)
    requested = None if sums else cotangent_sharding(aval)
    return moving.reshape_to(moving.sum_axes(ct, axes), aval.shape, requested)


class Elementwise(SameShape):
    """An elementwise op named `hlo` in StableHLO (or `chlo.x`).

    `jvp` lists, for each operand, the rule (tangent, result, *operands) -> tangent; all None: not differentiable;
    all ZERO: the derivative is zero.
    """

    def __init__(self, name: str, hlo: str, accepts: Kinds, *jvp: Rule | None):
        super().__init__(name, accepts)
        self.hlo = hlo
        self.rules: tuple[Any, ...] = jvp
        self.arity = len(jvp)
        if not any(jvp) and type(self).jvp is Elementwise.jvp:
            vars(self)["jvp"] = None

    def lower(self, e, ins, outs, *operands, **params):
        return [emit_nary(e, self.hlo, self.broadcast(e, ins, outs[0], operands), ins, outs[0])]

    def jvp(self, primals, tangents, **params):
        (out,) = self.bind_all(primals, params)
        if self.rules[0] is ZERO:
            return [out], [Zero.from_primal_value(out)]
        terms = [
            moving.broadcast_squeezed(rule(t, out, *primals, **params), typeof(out).shape)
            for rule, t in zip(self.rules, tangents, strict=True)
            if type(t) is not Zero
        ]
        if len(terms) > 1 and not typeof(terms[0]).weak_type:
            terms = [convert_element_type(t, typeof(t).dtype) if typeof(t).weak_type else t for t in terms]
        return [out], [add_tangents(terms, out)]


class AccuracyMode(enum.Enum):
    """Says how accurate a function is where no `Tolerance` is given.

    Example:
        >>> print(jax.lax.exp(1.0, accuracy=jax.lax.AccuracyMode.DEFAULT))
        2.718...
    """

    HIGHEST = 1
    DEFAULT = 2


class Tolerance:
    """Describes the allowed error of a function's results: absolute, relative, or in units in the last place (ulps).

    Raises ValueError for negative numbers, and if all are zero.

    Example:
        >>> jax.lax.exp(0.0, accuracy=jax.lax.Tolerance(rtol=1e-3)).item()
        1.0
    """

    def __init__(self, atol: float = 0.0, rtol: float = 0.0, ulps: int = 0):
        if atol < 0 or rtol < 0 or ulps < 0:
            raise ValueError(f"Tolerances must be non-negative, got atol={atol}, rtol={rtol} and ulps={ulps}.")
        if not (atol or rtol or ulps):
            raise ValueError("At least one of atol, rtol, or ulps must be set: Tolerance has only zeros.")
        self.atol, self.rtol, self.ulps = atol, rtol, ulps


class Accurate(Elementwise):
    """A function whose parameter `accuracy` is an `AccuracyMode`, a `Tolerance` or None.

    Its derivative rule takes the accuracy after the operand.
    """

    implied = {"accuracy": None}

    def infer(self, *avals, accuracy=None):
        return super().infer(*avals)

    def lower(self, e, ins, outs, x, *, accuracy=None):
        return [e.unary(self.hlo, x, outs[0], self.exactness(accuracy))]

    def exactness(self, accuracy: Any) -> str:
        """The StableHLO attribute for the accuracy of an operation."""
        if accuracy is None or accuracy is AccuracyMode.DEFAULT:
            return ""
        if accuracy is AccuracyMode.HIGHEST:
            return accuracy_attribute("HIGHEST")
        if isinstance(accuracy, Tolerance):
            return accuracy_attribute("TOLERANCE", atol=accuracy.atol, rtol=accuracy.rtol, ulps=accuracy.ulps)
        raise NotImplementedError(f"{self.name}: Accuracy {accuracy} not supported")

    def jvp(self, primals, tangents, *, accuracy=None):
        out, (x,), (t,) = self.bind(*primals, accuracy=accuracy), primals, tangents
        if type(t) is Zero:
            return [out], [Zero.from_primal_value(out)]
        return [out], [self.rules[0](t, out, x, accuracy)]

    def show_params(self, eqn):
        return [(name, value) for name, value in eqn.params.items() if value is not None]


def ZERO(*_):
    """The rule of an op whose derivative is zero."""


class Defined(Elementwise):
    """An elementwise op on floats that is lowered by tracing `definition`, a function of arrays of one shape."""

    def __init__(self, name: str, definition: Callable, *jvp: Rule | None):
        super().__init__(name, "", FLOAT, *jvp)
        self.define = lambda *xs: [definition(*xs)]

    def lower(self, e, ins, outs, *operands):
        (out,) = outs
        operands = self.broadcast(e, ins, out, operands)
        return emit(e, self.define, (ShapedArray(out.shape, out.dtype),) * len(ins), operands)


class LinearElementwise(Elementwise):
    """An elementwise op linear in all its operands together; `transposes` are (ct, *operands) -> ct."""

    def __init__(self, name: str, hlo: str, accepts: Kinds, *transposes: Rule):
        super().__init__(name, hlo, accepts)
        self.transposes = transposes
        self.arity = len(transposes)

    def jvp(self, primals, tangents, **params):
        (out,) = self.bind_all(primals, params)
        if all(type(t) is Zero for t in tangents):
            return [out], [Zero.from_primal_value(out)]
        if len(tangents) == 1 or all(type(t) is not Zero for t in tangents):
            return [out], self.bind_all([instantiate(t) for t in tangents], params)
        i = next(i for i, t in enumerate(tangents) if type(t) is not Zero)
        tangent, aval = self.alone(i, tangents[i], primals), typeof(out).to_tangent_aval()
        sharding = None if any(aval.reduction_state) or typeof(tangent).shape == aval.shape else aval.own_sharding
        return [out], [reshard_like(moving.broadcast_squeezed(tangent, aval.shape, sharding), aval)]

    def alone(self, i: int, tangent: Any, primals: Sequence) -> Any:
        """The result's tangent if only operand `i` has a tangent."""
        return tangent

    def transpose(self, cts, *operands, **params):
        (ct,) = cts
        if type(ct) is Zero:
            return [Zero(x.aval) if is_undefined_primal(x) else None for x in operands]
        if len(operands) == 1:
            return [self.transposes[0](ct, *operands, **params)]
        return [
            unbroadcast(rule(ct, *operands, **params), x.aval) if is_undefined_primal(x) else None
            for rule, x in zip(self.transposes, operands, strict=True)
        ]


class OnUnreduced(LinearElementwise):
    """One of the few ops that accept `unreduced` operands (each device holds a partial sum), as in jax."""

    reduction_state = state_of_terms


class Bilinear(Elementwise):
    """An elementwise op linear in each operand: transposed with respect to one while the other is known."""

    def __init__(self, name: str, hlo: str, accepts: Kinds, jvp: Sequence[Rule], transposes: Sequence[Rule | None]):
        super().__init__(name, hlo, accepts, *jvp)
        self.transposes: Sequence[Any] = transposes

    def transpose(self, cts, *operands, **params):
        (ct,) = cts
        results: list[Any] = [None] * len(operands)
        i = linear_operand(self.name, operands)
        aval = operands[i].aval
        results[i] = Zero(aval) if type(ct) is Zero else unbroadcast(self.transposes[i](ct, *operands, **params), aval)
        return results


# ---- ops that are composed of others -----------------------------------------------------------------


@state.traced_cache
def _traced(fun: Callable, ins: tuple, params: tuple) -> ClosedJaxpr:
    with state.set_current_trace(None):
        info = DebugInfo("jit", fun.__name__)
        jaxpr, consts = trace_to_jaxpr(lambda *xs: list(fun(*xs, **dict(params))), ins, info)
    return ClosedJaxpr(jaxpr, consts)


def emit(e: Any, fun: Callable, ins: Sequence[ShapedArray], operands: Sequence[str], **params: Any) -> list[str]:
    """Traces `fun`, which maps arrays to a sequence of arrays, and emits its operations inline."""
    # Loops are traced as if outside shard_map.
    closed = _traced(fun, tuple([a.update(manual_axis_type=NOT_MANUAL) for a in ins]), tuple(params.items()))
    return e.inlined(closed.jaxpr, e.constants(closed), operands)


# ---- functions of jax.lax ---------------------------------------------------------------------------


def unary(primitive: Primitive, name: str = "") -> Callable[[Any], Any]:
    """Makes the function of `jax.lax` that binds a primitive to `x`."""
    bind = primitive.bind

    def function(x: ArrayLike) -> Array:
        """

        The result has the shape of `x`. Raises TypeError for a dtype that the operation does not accept.
        """
        return bind(x)

    return _of_each(function, primitive, name)


def accurate(primitive: Accurate) -> Callable[..., Any]:
    """Makes the function of `jax.lax` that binds a primitive to `x` with an accuracy."""
    bind = primitive.bind

    def function(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
        """

        `x` is an array, or a number, with a floating-point or (but for `cbrt`) complex dtype, which the result has,
        too; for integers use the function of `jax.numpy`. `accuracy` is a `jax.lax.Tolerance` or a
        `jax.lax.AccuracyMode` for the compiler; None is its default. Raises TypeError for another dtype.
        """
        return bind(x) if accuracy is None else bind(x, accuracy=accuracy)

    return _of_each(function, primitive)


def binary(primitive: Primitive, name: str = "") -> Callable[[Any, Any], Any]:
    """Makes the function of `jax.lax` that binds a primitive to `x` and `y`."""
    bind = primitive.bind

    def function(x: ArrayLike, y: ArrayLike) -> Array:
        """

        Both have the same dtype, and the same number of axes unless one is a scalar; axes of size 1 are broadcast.
        The functions of `jax.numpy` promote dtypes and ranks, too. Raises TypeError for other operands.
        """
        return bind(x, y)

    return _of_each(function, primitive, name)


def _of_each(function: Callable, primitive: Primitive, name: str = "") -> Callable:
    """Gives the function of an operation its name, and its sentence and example below in its docstring.

    abs: Computes the absolute value of each element; for a complex number its modulus, which is real.
            >>> jax.lax.abs(jnp.array([-2.0, 3 + 4j]))
            Array([2., 5.], dtype=float32)
    acos: Computes the inverse cosine of each element, in radians.
            >>> jax.lax.acos(jnp.array([1.0, -1.0, 2.0]))
            Array([0. , 3.141..., nan], dtype=float32)
    acosh: Computes the inverse hyperbolic cosine of each element.
            >>> jax.lax.acosh(jnp.array([1.0, 2.0, 0.0]))
            Array([0. , 1.316..., nan], dtype=float32)
    add: Adds two arrays, element by element.
            >>> jax.lax.add(jnp.array([[1], [2]]), jnp.array([[10, 20]]))
            Array([[11, 21],
                   [12, 22]], dtype=int32)
    asin: Computes the inverse sine of each element, in radians.
            >>> jax.lax.asin(jnp.array([0.0, 1.0, 2.0]))
            Array([0. , 1.570..., nan], dtype=float32)
    asinh: Computes the inverse hyperbolic sine of each element.
            >>> jax.lax.asinh(jnp.array([-1.0, 0.0]))
            Array([-0.881..., 0. ], dtype=float32)
    atan: Computes the inverse tangent of each element, in radians.
            >>> jax.lax.atan(jnp.array([0.0, 1.0, jnp.inf]))
            Array([0. , 0.785..., 1.570...], dtype=float32)
    atan2: Computes the angle of each point (y, x) given as `x`, `y` in this order: the inverse tangent of x / y.
            >>> jax.lax.atan2(jnp.array([1.0, 1.0]), jnp.array([1.0, -1.0]))
            Array([0.785..., 2.356...], dtype=float32)
    atanh: Computes the inverse hyperbolic tangent of each element.
            >>> jax.lax.atanh(jnp.array([0.0, 0.5, 1.0]))
            Array([0. , 0.549..., inf], dtype=float32)
    bessel_i0e: Computes the modified Bessel function of order 0 times exp(-abs(x)), for each element.
            >>> jax.lax.bessel_i0e(jnp.array([1.0, 100.0]))
            Array([0.465..., 0.039...], dtype=float32)
    bessel_i1e: Computes the modified Bessel function of order 1 times exp(-abs(x)), for each element.
            >>> jax.lax.bessel_i1e(jnp.array([1.0, 100.0]))
            Array([0.207..., 0.039...], dtype=float32)
    bitwise_and: Computes the bitwise and of two arrays of integers or booleans.
            >>> jax.lax.bitwise_and(jnp.array([0b1100, 0b1010]), 0b0110)
            Array([4, 2], dtype=int32)
    bitwise_not: Inverts the bits of integers, or negates booleans.
            >>> jax.lax.bitwise_not(jnp.array([0, 5])), jax.lax.bitwise_not(jnp.array(True))
            (Array([-1, -6], dtype=int32), Array(False, dtype=bool))
    bitwise_or: Computes the bitwise or of two arrays of integers or booleans.
            >>> jax.lax.bitwise_or(jnp.array([0b1100, 0b1010]), 0b0001)
            Array([13, 11], dtype=int32)
    bitwise_xor: Computes the bitwise exclusive or of two arrays of integers or booleans.
            >>> jax.lax.bitwise_xor(jnp.array([0b1100, 0b1010]), 0b1010)
            Array([6, 0], dtype=int32)
    cbrt: Computes the cube root of each element.
            >>> jax.lax.cbrt(jnp.array([-8.0, 0.0]))
            Array([-2.,  0.], dtype=float32)
    ceil: Rounds each element up to an integer, in the same floating-point dtype.
            >>> jax.lax.ceil(jnp.array([-1.5, 1.5]))
            Array([-1.,  2.], dtype=float32)
    clz: Counts the zeros before the first one in the bits of each integer.
            >>> jax.lax.clz(jnp.array([0, 1, 255], jnp.uint8))
            Array([8, 7, 0], dtype=uint8)
    complex: Makes complex numbers of real and imaginary parts.
            >>> jax.lax.complex(jnp.array([1.0, 2.0]), jnp.array([0.0, -1.0]))
            Array([1.+0.j, 2.-1.j], dtype=complex64)
    cos: Computes the cosine of each element, an angle in radians.
            >>> jax.lax.cos(jnp.array([0.0, jnp.pi]))
            Array([ 1., -1.], dtype=float32)
    cosh: Computes the hyperbolic cosine of each element.
            >>> jax.lax.cosh(jnp.array([0.0, -1.0, 1.0]))
            Array([1. , 1.543..., 1.543...], dtype=float32)
    digamma: Computes the digamma function of each element, the derivative of `lgamma`.
            >>> jax.lax.digamma(jnp.array([1.0, 2.0]))
            Array([-0.577..., 0.422...], dtype=float32)
    div: Divides two arrays, element by element; integers are divided towards zero.
            >>> jax.lax.div(jnp.array([7, -7]), 2)
            Array([ 3, -3], dtype=int32)
    eq: Compares two arrays, element by element: whether x equals y.
            >>> jax.lax.eq(jnp.array([1.0, jnp.nan]), jnp.array([1.0, jnp.nan]))
            Array([ True, False], dtype=bool)
    erf: Computes the error function of each element.
            >>> jax.lax.erf(jnp.array([-jnp.inf, 0.0, 1.0]))
            Array([-1. , 0. , 0.842...], dtype=float32)
    erf_inv: Computes the inverse of the error function of each element.
            >>> jax.lax.erf_inv(jnp.array([0.0, 0.5, 1.0]))
            Array([0. , 0.476..., inf], dtype=float32)
    erfc: Computes 1 - erf(x) of each element, accurately for large x.
            >>> print(jax.lax.erfc(5.0), 1 - jax.lax.erf(5.0))
            1.53...e-12 0.0
    exp: Computes the exponential function of each element.
            >>> jax.lax.exp(jnp.array([0.0, 1.0, -jnp.inf]))
            Array([1. , 2.718..., 0. ], dtype=float32)
    exp2: Computes 2 to the power of each element.
            >>> jax.lax.exp2(jnp.array([-1.0, 0.0, 3.0]))
            Array([0.5, 1. , 8. ], dtype=float32)
    expm1: Computes exp(x) - 1 of each element, accurately near 0.
            >>> print(jax.lax.expm1(1e-10), jax.lax.exp(1e-10) - 1)
            1e-10 0.0
    floor: Rounds each element down to an integer, in the same floating-point dtype.
            >>> jax.lax.floor(jnp.array([-1.5, 1.5]))
            Array([-2.,  1.], dtype=float32)
    ge: Compares two arrays, element by element: whether x is greater than or equal to y.
            >>> jax.lax.ge(jnp.array([1, 2, 3]), 2)
            Array([False,  True,  True], dtype=bool)
    gt: Compares two arrays, element by element: whether x is greater than y.
            >>> jax.lax.gt(jnp.array([1, 2, 3]), 2)
            Array([False, False,  True], dtype=bool)
    imag: Returns the imaginary parts of complex numbers.
            >>> jax.lax.imag(jnp.array([1 + 2j, 3 - 4j]))
            Array([ 2., -4.], dtype=float32)
    is_finite: Tests each float: whether it is neither infinite nor NaN.
            >>> jax.lax.is_finite(jnp.array([0.0, jnp.inf, jnp.nan]))
            Array([ True, False, False], dtype=bool)
    le: Compares two arrays, element by element: whether x is less than or equal to y.
            >>> jax.lax.le(jnp.array([1, 2, 3]), 2)
            Array([ True,  True, False], dtype=bool)
    lgamma: Computes the logarithm of the absolute value of the gamma function of each element.
            >>> jax.lax.lgamma(jnp.array([4.0, 100.0]))
            Array([ 1.791..., 359.134...], dtype=float32)
    log: Computes the natural logarithm of each element.
            >>> jax.lax.log(jnp.array([1.0, 0.0, -1.0]))
            Array([  0., -inf,  nan], dtype=float32)
    log1p: Computes log(1 + x) of each element, accurately near 0.
            >>> print(jax.lax.log1p(1e-10), jax.lax.log(1 + 1e-10))
            1e-10 0.0
    logistic: Computes the logistic function 1 / (1 + exp(-x)) of each element.
            >>> jax.lax.logistic(jnp.array([-jnp.inf, 0.0, jnp.inf]))
            Array([0. , 0.5, 1. ], dtype=float32)
    lt: Compares two arrays, element by element: whether x is less than y.
            >>> jax.lax.lt(jnp.array([1, 2, 3]), 2)
            Array([ True, False, False], dtype=bool)
    max: Computes the larger of two arrays, element by element; NaN if either is NaN.
            >>> jax.lax.max(jnp.array([1.0, 5.0, jnp.nan]), 3.0)
            Array([ 3.,  5., nan], dtype=float32)
    min: Computes the smaller of two arrays, element by element; NaN if either is NaN.
            >>> jax.lax.min(jnp.array([1.0, 5.0, jnp.nan]), 3.0)
            Array([ 1.,  3., nan], dtype=float32)
    ne: Compares two arrays, element by element: whether x differs from y.
            >>> jax.lax.ne(jnp.array([1.0, jnp.nan]), jnp.array([1.0, jnp.nan]))
            Array([False,  True], dtype=bool)
    neg: Negates each element.
            >>> jax.lax.neg(jnp.array([1, -2])), jax.lax.neg(jnp.array([1], jnp.uint8))
            (Array([-1,  2], dtype=int32), Array([255], dtype=uint8))
    population_count: Counts the ones in the bits of each integer.
            >>> jax.lax.population_count(jnp.array([0, 0b1011, 255], jnp.uint8))
            Array([0, 3, 8], dtype=uint8)
    pow: Raises x to the power y, element by element; y may be integers.
            >>> jax.lax.pow(jnp.array([2.0, 4.0]), jnp.array([3.0, 0.5]))
            Array([8., 2.], dtype=float32)
    real: Returns the real parts of complex numbers.
            >>> jax.lax.real(jnp.array([1 + 2j, 3 - 4j]))
            Array([1., 3.], dtype=float32)
    rem: Computes the remainder of x / y, element by element; it has the sign of x.
            >>> jax.lax.rem(jnp.array([7, -7]), 3), jnp.remainder(jnp.array([7, -7]), 3)
            (Array([ 1, -1], dtype=int32), Array([1, 2], dtype=int32))
    shift_left: Shifts the bits of x to the left by y, element by element; 0 from the width of the dtype on.
            >>> jax.lax.shift_left(jnp.array([1, 3]), jnp.array([4, 32]))
            Array([16,  0], dtype=int32)
    shift_right_arithmetic: Shifts the bits of x to the right by y, element by element, and repeats the sign bit.
            >>> jax.lax.shift_right_arithmetic(jnp.array([8, -8]), 1)
            Array([ 4, -4], dtype=int32)
    shift_right_logical: Shifts the bits of x to the right by y, element by element, and fills up with zeros.
            >>> jax.lax.shift_right_logical(jnp.array([8, -8], jnp.int8), jnp.int8(1))
            Array([  4, 124], dtype=int8)
    sign: Computes the sign of each element: -1, 0 or 1; for a complex number x / abs(x), or 0.
            >>> jax.lax.sign(jnp.array([-2, 0, 5])), jax.lax.sign(jnp.array([3 + 4j]))
            (Array([-1,  0,  1], dtype=int32), Array([0.6+0.8j], dtype=complex64))
    sin: Computes the sine of each element, an angle in radians.
            >>> jax.lax.sin(jnp.array([0.0, jnp.pi / 2]))
            Array([0., 1.], dtype=float32)
    sinh: Computes the hyperbolic sine of each element.
            >>> jax.lax.sinh(jnp.array([0.0, -1.0, 1.0]))
            Array([ 0. , -1.175..., 1.175...], dtype=float32)
    sqrt: Computes the square root of each element.
            >>> jax.lax.sqrt(jnp.array([4.0, 0.0, -1.0])), jax.lax.sqrt(jnp.array([-1 + 0j]))
            (Array([ 2.,  0., nan], dtype=float32), Array([0.+1.j], dtype=complex64))
    square: Multiplies each element by itself.
            >>> jax.lax.square(jnp.array([-3, 5]))
            Array([ 9, 25], dtype=int32)
    sub: Subtracts y from x, element by element.
            >>> jax.lax.sub(jnp.array([[1], [2]]), jnp.array([[10, 20]]))
            Array([[ -9, -19],
                   [ -8, -18]], dtype=int32)
    tan: Computes the tangent of each element, an angle in radians.
            >>> jax.lax.tan(jnp.array([0.0, jnp.pi / 4]))
            Array([0., 1.], dtype=float32)
    tanh: Computes the hyperbolic tangent of each element.
            >>> jax.lax.tanh(jnp.array([-jnp.inf, 0.0, 0.5]))
            Array([-1. , 0. , 0.462...], dtype=float32)
    """
    name = name or primitive.name
    sentence, _, example = _SENTENCES.get(name, "").partition("\n")
    return named(function, name, f"{sentence}{function.__doc__}\n        Example:\n{example}" if sentence else "")


_SENTENCES = dict(re.findall(r"^    (\w+): (.*\n(?: {12}.*\n)*)", _of_each.__doc__ or "", re.MULTILINE))
