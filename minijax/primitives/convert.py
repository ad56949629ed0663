"""Conversion between dtypes, bit casts, copies, and stop_gradient."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from minijax.base import cache, dtypes, errors, tree
from minijax.base.dtypes import DTypeLike
from minijax.base.errors import ShardingTypeError
from minijax.base.symbolic.dimension import is_int
from minijax.ir import state
from minijax.ir.primitive import FirstOrder, Folding, Linear1, fold_as
from minijax.ir.result_types import sharded_equally
from minijax.ir.trace import Tracer, as_literal, with_literal
from minijax.ir.types import ShapedArray, TypedNumber, Zero, scalar, typed_value, typeof, unwrapped, value_kinds
from minijax.partition.explicit import sharding_in_type
from minijax.partition.shardings import NamedSharding
from minijax.primitives.moving import as_array_or_constant, move_axis
from minijax.run.arrays import transfer
from minijax.run.arrays.array import Array, ArrayLike

_COMPLEX = frozenset((dtypes.complex64, dtypes.complex128))


def _check_convertible(have: Any, dtype: Any) -> None:
    to, back = dtypes.is_extended(dtype), dtypes.is_extended(have)
    if to and back and have != dtype:
        raise ValueError(
            f"convert_element_type: cannot directly convert between extended dtypes, from {have} to {dtype}; convert "
            "to and from the dtypes that represent their elements."
        )
    rules = getattr(dtype if to else have, "_rules", None)
    if to != back and not (rules and (rules.convert_to(have, dtype) if to else rules.convert_from(have, dtype))):
        raise ValueError(f"Cannot convert_element_type from {have} to {dtype}")


class ConvertElementType(FirstOrder, Linear1):
    """Converts to another dtype, or to another weak type."""

    name = "convert_element_type"

    def infer(self, x, *, new_dtype, weak_type, sharding):
        _check_convertible(x.dtype, new_dtype)
        sharding = sharding_in_type(sharding, x.ndim) if isinstance(sharding, NamedSharding) else None
        return [ShapedArray(x.shape, new_dtype, weak_type, sharding=sharding)]

    def rebind(self, trace, operands, params):
        # The operand's weak type may have changed since the equation was recorded.
        aval, wanted = typeof(operands[0]), (params["new_dtype"], params["weak_type"], None)
        if isinstance(operands[0], Tracer) and (aval.dtype, aval.weak_type, params["sharding"]) == wanted:
            return list(operands)
        return super().rebind(trace, operands, params)

    def sharding_rule(self, mesh, avals, outs, *, sharding, **params):
        return None if isinstance(sharding, NamedSharding) else [avals[0].entries]

    def lower(self, e, ins, outs, x, *, new_dtype, weak_type, sharding):
        (have,), (out,) = ins, outs
        if dtypes.is_complex(have.dtype) and not dtypes.is_complex(out.dtype):
            part = ShapedArray(have.shape, np.finfo(have.dtype).dtype)
            x, have = e.map_to("real", x, have, part), part
        if out.dtype == np.bool_ and have.dtype != np.bool_:
            return [e.compare("NE", x, e.full(0, have), have)]
        return [x if have.dtype == out.dtype else e.convert(x, have, out)]

    def jvp(self, primals, tangents, *, new_dtype, weak_type, sharding):
        params = dict(new_dtype=new_dtype, weak_type=weak_type, sharding=sharding)
        (out,) = self.bind_all(primals, params)
        (t,) = tangents
        tangent_aval = typeof(out).to_tangent_aval()
        if type(t) is Zero or tangent_aval.dtype == dtypes.float0:
            return [out], [Zero(tangent_aval)]
        return [out], self.bind_all(tangents, params)

    def transposed(self, ct, aval, *, new_dtype, weak_type, sharding):
        # A user's cotangent may be a Python number; it must become an array as any other result does.
        return cast(as_array_or_constant(ct) if type(ct) in dtypes.PYTHON_SCALARS else ct, aval.dtype, aval.weak_type)

    def batch(self, axis, operands, dims, **params):
        return self.bind_all(operands, params), dims

    def fold(self, x, *, new_dtype, weak_type, sharding):
        aval = ShapedArray((), new_dtype, weak_type)
        return as_literal(_convert_scalar(x.val, new_dtype, weak_type), aval)

    def show_params(self, eqn):
        return [(n, eqn.params[n]) for n in ("new_dtype", "weak_type")]


class CastExtended(Linear1):
    """Casts between an extended dtype and the dtype that represents its elements; the bytes are the same."""

    def __init__(self, name: str, parameter: str):
        self.name, self.parameter = name, parameter

    def infer(self, x, **params):
        return [x.update(dtype=params[self.parameter])]

    sharding_rule = sharded_equally

    def lower(self, e, ins, outs, x, **params):
        return [x]

    def jvp(self, primals, tangents, **params):
        (out,) = self.bind_all(primals, params)
        (t,), tangent_aval = tangents, typeof(out).to_tangent_aval()
        if type(t) is Zero or tangent_aval.dtype == dtypes.float0:
            return [out], [Zero(tangent_aval)]
        return [out], [cast(t, tangent_aval.dtype, tangent_aval.weak_type)]

    def transposed(self, ct, aval, **params):
        return cast(ct, aval.dtype, aval.weak_type)

    def batch(self, axis, operands, dims, **params):
        return self.bind_all(operands, params), dims


class BitcastConvertType(FirstOrder):
    """Reads the same bits as another dtype; adds or removes the last axis if the widths differ."""

    name = "bitcast_convert_type"

    def infer(self, x, *, new_dtype):
        have, want = dtypes.bit_width(x.dtype), dtypes.bit_width(new_dtype)
        shape = x.shape
        if have > want:
            shape = (*shape, have // want)
        elif have < want:
            if not shape or shape[-1] != want // have:
                raise ValueError(
                    f"bitcast_convert_type: attempting to convert from {x.dtype} to {new_dtype}; for array "
                    f"of shape {x.shape}, last dimension must have size {want // have}."
                )
            shape = shape[:-1]
        if x.dtype != new_dtype and any(d.kind in "bc" for d in (x.dtype, new_dtype)):
            raise TypeError(
                "lax.bitcast_convert_type does not support bool or complex values unless the operand and "
                f"destination types match. Got operand dtype={x.dtype}, new_dtype={new_dtype}."
            )
        return [ShapedArray(shape, new_dtype)]

    def sharding_rule(self, mesh, avals, outs, **params):
        entries = avals[0].entries
        if len(entries) > outs[0].ndim and entries[-1] is not None:
            raise ShardingTypeError(f"{self.name}: the last axis of {avals[0]}, which is removed, must be unsharded.")
        return [(*entries, None)[: outs[0].ndim]]

    def lower(self, e, ins, outs, x, *, new_dtype):
        return [e.bitcast_convert(x, ins[0], outs[0])]

    def jvp(self, primals, tangents, *, new_dtype):
        (out,) = self.bind_all(primals, dict(new_dtype=new_dtype))
        return [out], [Zero.from_primal_value(out)]

    def batch(self, axis, operands, dims, *, new_dtype):
        (x,), (d,) = operands, dims
        # Wider elements absorb the last axis, which must not be the mapped axis.
        if dtypes.bit_width(new_dtype) > dtypes.bit_width(typeof(x).dtype) and d == typeof(x).ndim - 1:
            x, d = move_axis(x, d, 0), 0
        return [self.bind(x, new_dtype=new_dtype)], [d]


class Copy(Linear1):
    """Copies the value into a buffer of its own."""

    moves_data = True
    same_memory_space = False

    def __init__(self, name: str):
        self.name = name

    def infer(self, x):
        return [x]

    def lower(self, e, ins, outs, x):
        return [x]

    def transposed(self, ct, aval):
        return self.bind(ct)

    def batch(self, axis, operands, dims):
        return self.bind_all(operands, {}), dims


class StopGradient(Copy):
    """The identity with a zero derivative."""

    constrain_results = False

    def at_once(self, x):
        x = typed_value(x)
        kept = isinstance(x, Array | TypedNumber | bool) or getattr(x, "dtype", None) == dtypes.float0
        return [x if kept else transfer.to_device(x)]

    def jvp(self, primals, tangents):
        (out,) = self.bind_all(primals, {})
        return [out], [Zero.from_primal_value(out)]


convert_element_type_p = ConvertElementType()
to_edtype_p = CastExtended("to_edtype", "edtype")
from_edtype_p = CastExtended("from_edtype", "dtype")
bitcast_convert_type_p = BitcastConvertType()
copy_p = Copy("copy")
stop_gradient_p = StopGradient("stop_gradient")
fold_as(Folding.MOVE, convert_element_type_p, copy_p, stop_gradient_p)


# (type, number, dtype) -> the NumPy scalar, for small ints, and small floats other than 0 and -0
_scalars = cache.BoundedDict(4096)


def convert(operand: Any, dtype: Any, weak_type: bool = False) -> Any:
    """Converts `operand` to a dtype and weak type; returns it unchanged if it has them.

    Warns with ComplexWarning if an imaginary part is lost.
    """
    kind = type(operand)
    if (kind is float and operand or kind is int) and not weak_type and -100 < operand < 100:
        known = _scalars.get((kind, operand, dtype))
        return _new_scalar(operand, dtype) if known is None else known
    if typeof(operand).dtype in _COMPLEX and dtype not in _COMPLEX:
        message = "Casting complex values to real discards the imaginary part"
        errors.warn(message, np.exceptions.ComplexWarning)
        if type(operand) is complex and dtype != np.bool_:
            return _cast_complex(operand, dtype, weak_type)
        operand = operand.real if isinstance(operand, np.generic) and dtype != np.bool_ else operand
    return cast(operand, dtype, weak_type)


def _new_scalar(operand: Any, dtype: Any) -> Any:
    known = cast(operand, dtype)
    if isinstance(known, np.generic) and (type(operand) is int or not isinstance(known, np.integer)):
        _scalars[type(operand), operand, dtype] = with_literal(known)
    return known


def _cast_complex(x: complex, dtype: Any, weak_type: bool) -> Any:
    if dtypes.issubdtype(dtype, np.integer) and not np.isfinite(x):
        return cast(x.real, dtype, weak_type)
    raise TypeError("float() argument must be a string or a real number, not 'complex'")


def cast(operand: Any, dtype: Any, weak_type: bool = False) -> Any:
    """As `convert`, but without the warning."""
    aval = typeof(operand)
    if aval.dtype == dtype and aval.weak_type == weak_type:
        if isinstance(operand, Tracer) and type(aval) is ShapedArray or isinstance(operand, Array):
            return operand
    if dtypes.is_extended(dtype) or dtypes.is_extended(aval.dtype):
        return _cast_extended(operand, dtype)
    if type(operand) in dtypes.PYTHON_SCALARS or isinstance(operand, np.generic):
        return _convert_scalar(operand, dtype, weak_type)
    return convert_element_type_p.bind(operand, new_dtype=dtype, weak_type=weak_type, sharding=None)


def _cast_extended(operand: Any, dtype: Any) -> Any:
    have = typeof(operand).dtype
    if have == dtype:
        return operand
    _check_convertible(have, dtype)
    if dtypes.is_extended(dtype):
        return to_edtype_p.bind(operand, edtype=dtype)
    return from_edtype_p.bind(operand, dtype=dtype)


def _convert_scalar(operand: Any, dtype: Any, weak_type: bool) -> Any:
    """Converts a host scalar on the host."""
    if weak_type and type(operand) in (int, float, complex) and typeof(operand).dtype == dtype:
        if type(operand) is not int or operand.bit_length() <= 31:
            return operand
    is_float = isinstance(operand, float) or operand != operand  # of NumPy's floats jax asks XLA for NaN only
    if is_float and dtypes.issubdtype(dtype, np.integer) and state.is_eager():
        operand = _within(operand, dtypes.iinfo(dtype))
    return scalar(np.asarray(operand).astype(dtype), dtype, weak_type)


def _within(x: float, limits: Any) -> float | int:
    """The number that XLA converts to an integer dtype with these limits: the nearest one, or 0 for NaN."""
    if x != x:
        return 0
    return x if limits.min <= x <= limits.max else int(limits.max if x > 0 else limits.min)


def as_type(x: Any, dtype: Any, weak_type: bool = False) -> Any:
    """Converts `x` to a dtype and weak type; a NumPy array that has them is returned unchanged."""
    if isinstance(x, np.ndarray):
        aval = typeof(x)
        if aval.dtype == dtype and not weak_type:
            return x
    elif type(x) is int and x.bit_length() > 31:
        dtypes.check_int_fits(x, dtypes.default_int_dtype())
    return convert(x, dtype, weak_type)


def scalar_as(x: Any, dtype: Any) -> Any:
    """Converts a number or a dimension to a scalar of `dtype`; ints that do not fit wrap around, as in NumPy."""
    return scalar(np.asarray(x).astype(dtype), dtype) if is_int(x) else convert(x, dtype)


def convert_element_type(operand: ArrayLike, new_dtype: Any) -> Array:
    """Converts the elements of an array to a dtype. The result does not have a weak type.

    Args:
        operand: An array or a number.
        new_dtype: The dtype. Without `jax_enable_x64`, 64-bit dtypes become those of 32 bits.

    Floats are converted to integers by truncation, complex numbers to real ones by dropping the imaginary part. Raises
    ValueError if `new_dtype` is None.

    Example:
        >>> jax.lax.convert_element_type(jnp.array([1.7, -1.7]), jnp.int32)
        Array([ 1, -1], dtype=int32)
    """
    if new_dtype is None:
        raise ValueError("convert_element_type: new_dtype must be specified.")
    operand = unwrapped(operand)
    aval = typeof(operand)
    dtype = dtypes.requested_dtype(new_dtype, "convert_element_type")
    _check_convertible(aval.dtype, dtype)
    if type(operand) is np.ndarray and aval.dtype == dtype:
        return as_array_or_constant(operand)
    converted = convert(operand, dtype)
    return converted if isinstance(converted, Array | np.ndarray) else as_array_or_constant(converted)  # pyright: ignore


def strong(x: Any) -> Any:
    """`x` without a weak type."""
    aval = typeof(x)
    return convert(x, aval.dtype) if aval.weak_type else x


def bitcast_convert_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array:
    """Reads the bits of an array as another dtype.

    To a narrower dtype the result has one more axis, of the parts of an element; to a wider one the last axis is used
    up. Raises ValueError if the sizes do not fit.

    Example:
        >>> hex(int(jax.lax.bitcast_convert_type(jnp.float32(1.0), jnp.uint32)))
        '0x3f800000'
    """
    if new_dtype is None:
        raise ValueError("bitcast_convert_type: dtype must be specified.")
    new_dtype = dtypes.check_and_canonicalize_user_dtype(new_dtype, "bitcast_convert_type")
    return bitcast_convert_type_p.bind(operand, new_dtype=new_dtype)


T = TypeVar("T")


def stop_gradient(x: T) -> T:
    """Returns its argument, whose derivative is taken as zero.

    Differentiation treats the values as constants. Use it for targets, for baselines, and in estimators that pass
    gradients straight through.

    Args:
        x: An array, a number, or a pytree of these.

    Returns:
        `x`, with the same values.

    Raises:
        TypeError: If a leaf is not an array or a number.

    See also: `jax.custom_jvp`, for other derivatives than zero.

    Example:
        >>> float(jax.grad(lambda x: x * jax.lax.stop_gradient(x))(3.0))
        3.0
        >>> straight_through = lambda x: x + jax.lax.stop_gradient(jnp.round(x) - x)
        >>> float(straight_through(2.6)), float(jax.grad(straight_through)(2.6))
        (3.0, 1.0)
    """
    return stop_gradient_p.bind(x) if type(x) in value_kinds else tree.tree_map(stop_gradient_p.bind, x)


def copy(x: Any) -> Any:
    """Copies `x` into a buffer of its own."""
    return copy_p.bind(x)
