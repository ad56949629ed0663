"""Promotion of operands to one dtype and rank, and checks that they are arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.base import cache, config, dtypes, errors
from minijax.base.source import hide_frames
from minijax.base.thread import thread
from minijax.ir.refs import AbstractRef, Ref, passed_ref
from minijax.ir.trace import DynamicJaxprTracer, JaxprTrace, Tracer
from minijax.ir.types import ShapedArray, is_hi_value, is_value, offers_array, typeof, unwrapped, value_kinds
from minijax.primitives.convert import as_type, convert
from minijax.primitives.structural import broadcast_shapes, broadcast_to_rank
from minijax.run.arrays.array import Array, ArrayLike

GUIDE = "https://docs.jax.dev/en/latest/rank_promotion_warning.html"


def check_arraylike(name: str, *args: Any) -> None:
    """Raises TypeError unless every argument is an array, a tracer or a scalar."""
    for i, x in enumerate(args):
        if (type(x) not in value_kinds and not is_value(x) or _is_no_array(x)) and not offers_array(x):
            why = f" {passed_ref(typeof(x), name)}" if isinstance(x, Ref) else ""
            if isinstance(x, list | tuple):
                why = " `jnp.array` makes an array of a list."
            why = why or " Pass an array or a number."
            raise TypeError(f"{name} requires ndarray or scalar arguments, got {type(x)} at position {i}.{why}")


_REFERRING = (Ref, DynamicJaxprTracer)


def _is_no_array(x):
    return type(x) is DynamicJaxprTracer and type(x.aval) is AbstractRef or isinstance(x, Ref) or is_hi_value(x)


def check_out(name: str, out: None) -> None:
    """Raises NotImplementedError if `out` was given: arrays are immutable."""
    if out is not None:
        raise NotImplementedError(f"The 'out' argument to jnp.{name} is not supported.")


def arrays(name: str, *args: Any) -> list:
    """Checks that the arguments are arrays, and calls `__jax_array__` on those that have it."""
    try:
        for x in args:
            kind = type(x)
            if kind not in value_kinds or kind in _REFERRING and _is_no_array(x) or is_hi_value(x):
                check_arraylike(name, *args)
                return [unwrapped(x) for x in args]
        return list(args)
    except Exception as error:
        hide_frames(error)
        raise


def check_no_float0(name: str, *args: Any) -> None:
    """Raises TypeError for float0, the dtype of tangents of integers."""
    if any(typeof(x).dtype == dtypes.float0 for x in args):
        raise TypeError(errors.no_float0(name))


def promote_dtypes(*args: Any) -> list:
    """Converts the arguments to the dtype and weak type to which they promote."""
    if len(args) == 1:
        return list(args)
    dtype, weak = dtypes.promote(*map(dtypes.typed, args))
    return [as_type(x, dtype, weak) for x in args]


def _promote_to(to: Callable[[Any], Any], args: Sequence) -> list:
    dtype, weak = dtypes.promote(*map(dtypes.typed, args))
    target = to(dtype)
    return [as_type(x, target, weak and dtype != np.bool_) for x in args]


def promote_dtypes_numeric(*args: Any) -> list:
    """As `promote_dtypes`, but bool becomes int32."""
    return _promote_to(dtypes.to_numeric_dtype, args)


def promote_dtypes_inexact(*args: ArrayLike) -> list[Array]:
    """As `promote_dtypes`, but integers and bool become floats."""
    return _promote_to(dtypes.to_inexact_dtype, args)


def promote_dtypes_complex(*args: Any) -> list:
    """As `promote_dtypes`, but real numbers become complex."""
    return _promote_to(dtypes.to_complex_dtype, args)


def promote_shapes(name: str, *args: Any) -> list:
    """Gives the arguments one rank, except those of rank 0; the operation itself broadcasts axes of size 1."""
    shapes = [typeof(x).shape for x in args]
    if len({len(s) for s in shapes if s}) < 2:
        return list(args)
    check_ranks(name, shapes)
    rank = len(broadcast_shapes(*shapes))
    return [broadcast_to_rank(x, rank) for x in args]


def check_ranks(name: str, shapes: Sequence, cores: Sequence[int] | None = None) -> None:
    """Warns or raises ValueError for shapes of several ranks above 0, as jax_numpy_rank_promotion specifies.

    `cores`: the numbers of core dimensions, which are not counted.
    """
    mode = config.state().numpy_rank_promotion
    cores = cores or [0] * len(shapes)
    if mode == "allow" or len({len(s) - core for s, core in zip(shapes, cores, strict=True) if s}) < 2:
        return
    listed = " ".join(map(str, shapes))
    if mode == "raise":
        raise ValueError(
            f"Operands could not be broadcast together for {name} on shapes {listed} and with the config "
            f"option jax_numpy_rank_promotion='raise'. Add axes with `jnp.expand_dims`, or set it to 'allow'. For more "
            f"information, see {GUIDE}."
        )
    errors.warn(
        f"Following NumPy automatic rank promotion for {name} on shapes {listed}. Set the "
        f"jax_numpy_rank_promotion config option to 'allow' to disable this warning; for more information, "
        f"see {GUIDE}."
    )


# For operands of these types: () if all are unchanged; or, by position, (dtype, weak type) or None, and a rank or None.
_plans = cache.BoundedDict(16384)


def _plan_key(promote: Callable, args: Sequence) -> tuple | None:
    """The key of the plan for these operands; None if one is not an array, a tracer or a scalar."""
    key = [config.state(), promote]
    for x in args:
        kind = type(x)
        if isinstance(x, Tracer):
            aval = x.aval
            if type(aval) is not ShapedArray:
                return None
            key.append(aval)
        elif kind in dtypes.python_scalar_dtypes:
            if kind is int and x.bit_length() > 31:
                return None
            key.append(kind)
        elif isinstance(x, Array):
            key.append(x.aval)
        else:
            return None
    return tuple(key)


def _promote_cached(name: str, promote: Callable[..., list], args: Sequence) -> list:
    try:
        key = _plan_key(promote, args)
        plan = _plans.get(key)
        if plan is not None:
            if not plan:
                return list(args)
            types, rank = plan
            args = [x if to is None else convert(x, *to) for x, to in zip(args, types, strict=True)]
            return args if rank is None else [broadcast_to_rank(x, rank) for x in args]
        if key is None:
            return _promote(name, promote, args)
        operands = _promote(name, promote, args)
        plan = _plan_of(args, operands)
        is_of_one_rank = not plan or plan[1] is None
        if (is_of_one_rank or key[0].numpy_rank_promotion == "allow") and config.state() is key[0]:
            _plans[key] = plan
        return operands
    except Exception as error:
        hide_frames(error)
        raise


def _plan_of(args: Sequence, operands: Sequence) -> tuple:
    """The plan by which these arguments became operands."""
    avals = [typeof(x) for x in operands]
    types = [None if new is x else (a.dtype, a.weak_type) for x, new, a in zip(args, operands, avals, strict=True)]
    if not any(types):
        return ()
    ranks = {a.ndim for a in avals if a.ndim} | {typeof(x).ndim for x in args if typeof(x).ndim}
    return types, None if len(ranks) < 2 else avals[0].ndim


def _promote(name, promote, args):
    args = arrays(name, *args)
    check_no_float0(name, *args)
    try:
        args = promote(*args)
    except ValueError as error:
        kinds = [typeof(x).dtype for x in args]
        if isinstance(error, dtypes.TypePromotionError) or not any(map(dtypes.is_extended, kinds)):
            raise
        names = ", ".join(map(str, kinds))
        raise TypeError(f"{name} does not accept dtypes {names}. {errors.NUMBERS_OF_KEYS}") from None
    return promote_shapes(name, *args)


def promote_args(name: str, *args: Any) -> list:
    """Promotes arguments to one dtype and rank. Raises TypeError for an argument that is not an array."""
    return _promote_cached(name, promote_dtypes, args)


def promote_args_numeric(name: str, *args: Any) -> list:
    """As `promote_args`, but bool becomes int32."""
    return _promote_cached(name, promote_dtypes_numeric, args)


def promote_args_inexact(name: str, *args: Any) -> list:
    """As `promote_args`, but integers and bool become floats."""
    return _promote_cached(name, promote_dtypes_inexact, args)


def kind_of(x: Any) -> type:
    """The Python scalar type (bool, int, float, complex) of the elements of `x`."""
    return dtypes.scalar_type_of(typeof(x).dtype)


def is_unsigned(x: Any) -> bool:
    return dtypes.issubdtype(typeof(x).dtype, np.unsignedinteger)


def is_derived_twice(x: Any) -> bool:
    """Returns whether derivatives of derivatives by `x` are computed."""
    return isinstance(x, Tracer) and isinstance(getattr(x, "primal", None), Tracer)


def runs_at_once() -> bool:
    """Returns whether each operation runs when it is called, maybe after its derivative or batching rule."""
    trace = thread.trace
    while trace is not None and not isinstance(trace, JaxprTrace):
        trace = trace.beneath
    return trace is None


def is_inexact(x: Any) -> bool:
    return dtypes.is_inexact(typeof(x).dtype)
