"""Operators, methods and properties of arrays and tracers; importing this module installs them."""

import functools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax.api.transfer import device_put
from minijax.base import dtypes, errors
from minijax.base.documentation import Documentation
from minijax.base.naming import PACKAGE
from minijax.composed import refs
from minijax.ir.refs import AbstractRef
from minijax.ir.trace import Tracer
from minijax.ir.types import ShapedArray, is_value, offers_array, unwrapped
from minijax.numpy import creation, products, reductions, shaping, subscripts, ufuncs
from minijax.numpy.names import FACE
from minijax.primitives import elementwise as lax, moving, structural
from minijax.primitives.convert import bitcast_convert_type, convert
from minijax.primitives.families import is_complex
from minijax.run.arrays.array import (
    Array,
    install_operators,
    reconstruct_array as reconstruct_array,
    register_array_like,
)


class _Functions:
    """The public functions, each imported at its first use: loading all of them would slow down `import`."""

    def __getattr__(self, name: str) -> Any:
        function = self.__dict__[name] = FACE.attribute(name)
        return function


_jnp = _Functions()

# ---- operators --------------------------------------------------------------------------------------

_OPERANDS = (int, float, complex, np.generic, np.ndarray, Array)
_REJECTED = (list, tuple, set, dict)
_known_operands: dict[type, bool] = {kind: True for kind in (int, float, complex, bool, np.ndarray)}


def _is_operand(x: Any) -> bool:
    kind = type(x)
    known = _known_operands.get(kind)
    if known is None:
        is_foreign = is_value(x) and hasattr(kind, "weak_type") and hasattr(kind, "__array__")
        known = _known_operands[kind] = isinstance(x, _OPERANDS) or is_foreign
    return known


def _reject_operand(symbol: str, left: Any, right: Any) -> Any:
    if type(left) in _REJECTED or type(right) in _REJECTED:  # subclasses may define the operator
        raise TypeError(
            f"unsupported operand type(s) for {symbol}: {type(left).__name__!r} and {type(right).__name__!r}"
        )
    return NotImplemented


def _binary(symbol: str, function: Callable) -> Callable:
    def method(self, other):
        if _known_operands.get(type(other)) or _is_operand(other):
            return function(self, other)
        return function(self, unwrapped(other)) if offers_array(other) else _reject_operand(symbol, self, other)

    return method


def _reflected(symbol: str, function: Callable) -> Callable:
    def method(self, other):
        if _known_operands.get(type(other)) or _is_operand(other):
            return function(other, self)
        return function(unwrapped(other), self) if offers_array(other) else _reject_operand(symbol, other, self)

    return method


_ARITHMETIC = {
    "add": ("+", ufuncs.add),
    "sub": ("-", ufuncs.subtract),
    "mul": ("*", ufuncs.multiply),
    "truediv": ("/", ufuncs.true_divide),
    "floordiv": ("//", ufuncs.floor_divide),
    "mod": ("%", ufuncs.remainder),
    "divmod": ("divmod", ufuncs.divmod),
    "pow": ("**", ufuncs.power),
    "matmul": ("@", products.matmul),
    "and": ("&", ufuncs.bitwise_and),
    "or": ("|", ufuncs.bitwise_or),
    "xor": ("^", ufuncs.bitwise_xor),
    "lshift": ("<<", ufuncs.left_shift),
    "rshift": (">>", ufuncs.right_shift),
}
_COMPARISON = {
    "eq": ("==", ufuncs.equal),
    "ne": ("!=", ufuncs.not_equal),
    "lt": ("<", ufuncs.less),
    "le": ("<=", ufuncs.less_equal),
    "gt": (">", ufuncs.greater),
    "ge": (">=", ufuncs.greater_equal),
}
_UNARY = {"neg": ufuncs.negative, "pos": ufuncs.positive, "abs": ufuncs.absolute, "invert": ufuncs.invert}


def _operators() -> dict[str, Callable]:
    table: dict[str, Callable] = {f"__{name}__": _binary(*how) for name, how in (_ARITHMETIC | _COMPARISON).items()}
    table |= {f"__r{name}__": _reflected(*how) for name, how in _ARITHMETIC.items()}
    return table | {f"__{name}__": _unary(function) for name, function in _UNARY.items()}


def _unary(function: Callable) -> Callable:
    return lambda x, /: function(x)


def _round(number, ndigits=None):
    rounded = ufuncs.round(number, ndigits or 0)
    return convert(rounded, dtypes.default_int_dtype()) if ndigits is None else rounded


def _contains(self, other):
    if self.ndim != 1:
        raise ValueError(f"Array.__contains__: search array must be one-dimensional, got arr.shape={self.shape}.")
    if other is None or isinstance(other, str | bytes):
        raise TypeError(f"Array.__contains__: unsupported operand type {type(other)}.")
    (item,) = creation.arraylike("Array.__contains__", other)
    if np.shape(item):
        raise ValueError(f"Array.__contains__: query value must be a scalar, got query.shape={np.shape(item)}")
    return bool(reductions.any(ufuncs.equal(self, item)))


def _array_namespace(self, *, api_version: str | None = None) -> Any:
    if api_version not in (None, "2024.12"):
        raise ValueError(f"{api_version=} is not available; available versions are: ['2024.12']")
    return sys.modules[__package__]


# ---- methods ----------------------------------------------------------------------------------------


def _method(name: str, signature: Callable) -> Callable:
    """A method that calls the public function `name`; `signature` is the signature that it shows."""

    loaded: list[Callable] = []

    def method(self, *args, **kwargs):
        if not loaded:
            loaded.append(getattr(_jnp, name))
        return loaded[0](self, *args, **kwargs)

    method.__name__ = method.__qualname__ = name
    doc = f"Calls `jax.numpy.{name}` with the array as its first argument."
    method.__doc__ = Documentation(doc, f"{PACKAGE}.numpy.{name}")
    method.__wrapped__ = signature
    return method


_SIGNATURES: dict[str, Callable] = {
    "all any": lambda self, axis=None, out=None, keepdims=False, *, where=None: ...,
    "argmax argmin": lambda self, axis=None, out=None, keepdims=None: ...,
    "argpartition": lambda self, kth, axis=-1: ...,
    "argsort sort": lambda self, axis=-1, *, kind=None, order=None, stable=True, descending=False: ...,
    "choose": lambda self, choices, out=None, mode="raise": ...,
    "conj conjugate copy": lambda self: ...,
    "cumprod cumsum": lambda self, axis=None, dtype=None, out=None: ...,
    "diagonal": lambda self, offset=0, axis1=0, axis2=1: ...,
    "max min": lambda self, axis=None, out=None, keepdims=False, initial=None, where=None: ...,
    "mean": lambda self, axis=None, dtype=None, out=None, keepdims=False, *, where=None: ...,
    "nonzero": lambda self, *, fill_value=None, size=None: ...,
    "prod sum": lambda self, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None,
    promote_integers=True: ...,
    "ptp": lambda self, axis=None, out=None, keepdims=False: ...,
    "ravel": lambda self, order="C", *, out_sharding=None: ...,
    "repeat": lambda self, repeats, axis=None, *, total_repeat_length=None, out_sharding=None: ...,
    "round": lambda self, decimals=0, out=None: ...,
    "searchsorted": lambda self, v, side="left", sorter=None, *, method="scan": ...,
    "squeeze": lambda self, axis=None: ...,
    "std var": lambda self, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=None,
    correction=None: ...,
    "swapaxes": lambda self, axis1, axis2: ...,
    "take": lambda self, indices, axis=None, out=None, mode=None, unique_indices=False, indices_are_sorted=False,
    fill_value=None: ...,
}  # fmt: skip


def astype(self, dtype: Any, copy: bool = False, device: Any = None) -> Any:
    """As `jax.numpy.astype`."""
    if not copy and device is None:
        return _jnp.astype(self, dtype)
    return _jnp.astype(self, dtype, copy=copy, device=device)


def clip(self, min: Any = None, max: Any = None) -> Any:  # noqa: A002
    """As `jax.numpy.clip`."""
    return ufuncs.clip(self, min=min, max=max)


def compress(
    self, condition: Any, axis: int | None = None, *, out: None = None, size: int | None = None, fill_value: Any = 0
) -> Any:
    """As `jax.numpy.compress`."""
    return _jnp.compress(condition, self, axis=axis, out=out, size=size, fill_value=fill_value)


def dot(self, b: Any, *, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """As `jax.numpy.dot`."""
    return products.dot(self, b, precision=precision, preferred_element_type=preferred_element_type)


def flatten(self, order: str = "C", *, out_sharding: Any = None) -> Any:
    """As `jax.numpy.ravel`."""
    return _jnp.ravel(self, order=order, out_sharding=out_sharding)


def reshape(self, *args: Any, order: str = "C", out_sharding: Any = None) -> Any:
    """As `jax.numpy.reshape`; the shape may be given as several arguments."""
    shape = args[0] if len(args) == 1 and not isinstance(args[0], (int, np.integer)) else args
    if order == "C" and out_sharding is None:
        return _jnp.reshape(self, shape)
    return _jnp.reshape(self, shape, order=order, out_sharding=out_sharding)


def permuted(self, *args: Any) -> Any:
    """As `jax.numpy.transpose`; the axes may be given as several arguments."""
    axes = args[0] if len(args) == 1 and (args[0] is None or not isinstance(args[0], (int, np.integer))) else args
    return _jnp.transpose(self, axes or None)


def trace(self, offset: Any = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: None = None) -> Any:
    """As `jax.numpy.trace`."""
    return _jnp.trace(self, offset, axis1, axis2, dtype, out)


def view(self, dtype: Any = None, type: None = None) -> Any:  # noqa: A002
    """As `numpy.ndarray.view`: the bits as another dtype, in a new array."""
    if type is not None:
        raise NotImplementedError("`type` argument of array.view() is not supported.")
    target = dtypes.requested_dtype(dtype, "view", float)
    return self if target == self.dtype else _from_bits(_to_bits(self), target)


def _to_bits(x: Any) -> Any:
    """Booleans as bytes, complex numbers as pairs of floats along the last axis."""
    if x.dtype == np.bool_:
        return convert(x, np.dtype(np.uint8))
    if not is_complex(x):
        return x
    pairs = structural.stack([lax.real(x), lax.imag(x)], x.ndim)
    return moving.reshape_to(pairs, (*x.shape[:-1], 2 * x.shape[-1])) if x.ndim else pairs


def _from_bits(x: Any, dtype: Any) -> Any:
    if dtype == np.bool_:
        return lax.ne(_from_bits(x, np.dtype(np.uint8)), np.uint8(0))
    if np.issubdtype(dtype, np.complexfloating):
        parts = _from_bits(x, lax.real_dtype(dtype))
        return lax.complex(parts[..., 0::2], parts[..., 1::2])
    have, want = dtypes.bit_width(x.dtype), dtypes.bit_width(dtype)
    if have != want and not x.ndim:
        raise ValueError("view() of a 0d array is only supported if the itemsize is unchanged.")
    if have < want:
        if x.shape[-1] * have % want:
            raise ValueError(
                "When changing to a larger dtype, its size must be a divisor of the total size in bytes of "
                "the last axis of the array."
            )
        x = moving.reshape_to(x, (*x.shape[:-1], x.shape[-1] * have // want, want // have))
    parts = bitcast_convert_type(x, dtype)
    return moving.reshape_to(parts, (*x.shape[:-1], x.shape[-1] * (have // want))) if have > want else parts


def byteswap(self) -> Any:
    """As `numpy.ndarray.byteswap`, but returns a copy."""
    if is_complex(self):
        return lax.complex(byteswap(lax.real(self)), byteswap(lax.imag(self)))
    if dtypes.bit_width(self.dtype) <= 8:
        return creation.copy(self)
    octets = bitcast_convert_type(self, np.dtype(np.uint8))
    return bitcast_convert_type(structural.rev(octets, (self.ndim,)), self.dtype)


def to_device(self, device: Any, *, stream: int | None = None) -> Any:
    """A copy of the array on another device."""
    if stream is not None:
        raise NotImplementedError("stream argument of array.to_device() is not supported")
    return device_put(self, device)


def _reject_flat(self):
    raise NotImplementedError("JAX Arrays do not implement the arr.flat property: consider arr.flatten() instead.")


def _matrix_transposed(self):
    if self.ndim < 2:
        raise ValueError(f"x must be at least two-dimensional for matrix_transpose; got ndim={self.ndim}")
    n = self.ndim
    return moving.transpose(self, (*range(n - 2), n - 1, n - 2))


def _common_attributes() -> dict[str, Any]:
    """The methods that arrays and tracers have in common."""
    table = _operators() | {n: _method(n, like) for names, like in _SIGNATURES.items() for n in names.split()}
    table |= {f.__name__: f for f in (astype, byteswap, clip, compress, dot, flatten, reshape, to_device, trace, view)}
    return table | {
        "transpose": permuted,
        "__getitem__": lambda self, item: subscripts.getitem(self, item),
        "__iter__": subscripts.iterate,
        "__reversed__": lambda self: iter(structural.rev(self, (0,))),
        "__contains__": _contains,
        "__round__": _round,
        "__array_namespace__": _array_namespace,
        "at": subscripts.at,
        "T": property(shaping.transpose),
        "mT": property(_matrix_transposed),
        "real": property(ufuncs.real),
        "imag": property(ufuncs.imag),
        "flat": property(_reject_flat),
    }


# ---- tracers ----------------------------------------------------------------------------------------


def _length(self):
    if not self.aval.shape:
        raise TypeError(errors.NO_LENGTH)
    return self.aval.shape[0]


def _truth(self):
    if self.aval.size != 1:
        raise ValueError(errors.AMBIGUOUS if self.aval.size else errors.AMBIGUOUS_EMPTY)
    if self.is_concrete():
        return bool(self.concrete_value())
    raise errors.TracerBoolConversionError(self)


def _to_scalar(kind: type, reads: bool) -> Callable:
    """Conversion to a Python number; if `reads`, it uses the value of a tracer that is concrete."""

    def method(self):
        if self.aval.shape:
            raise TypeError(errors.SCALARS_ONLY.format(self.aval.ndim))
        if reads and self.is_concrete():
            return kind(self.concrete_value())
        raise errors.ConcretizationTypeError(
            self,
            f"The problem arose with the `{kind.__name__}` function. If trying to convert the data type of a "
            f"value, try using `x.astype({kind.__name__})` or `jnp.array(x, {kind.__name__})` instead.",
        )

    return method


def _index(self):
    if self.aval.shape or not dtypes.issubdtype(self.aval.dtype, np.integer):
        raise TypeError(errors.NO_INDEX)
    if self.is_concrete():
        return int(self.concrete_value())
    raise errors.TracerIntegerConversionError(self)


def _item(self, *args):
    if self.is_concrete():
        return np.asarray(self.concrete_value()).item(*args)
    raise errors.ConcretizationTypeError(
        self, "This occurred in the item() method of jax.Array. Return the array, and call item() on the result."
    )


def _reject_array(self, *args, **kwargs):
    raise errors.TracerArrayConversionError(self)


def _reject_setitem(self, index, value):
    raise TypeError(errors.IMMUTABLE)


def _needs_value(what: str) -> Callable:
    def method(self, *args, **kwargs):
        raise errors.ConcretizationTypeError(self, f"The {what} was called on {self._error_repr()}.")

    return method


def _unavailable(what: str, advice: str = "") -> Callable:
    def method(self):
        raise AttributeError(f"The {what} is not available on {self._error_repr()}.{advice}{self._origin_msg()}")

    return method


_VALUE_NAMES = (
    "__dlpack__ addressable_data delete devices is_deleted on_device_size_in_bytes tobytes tolist "
    "unsafe_buffer_pointer".split()
)
_PLACEMENT_NAMES = (
    "addressable_shards committed global_shards is_fully_addressable is_fully_replicated traceback".split()
)


def _tracer_attributes() -> dict[str, Any]:
    """The attributes of tracers only: those of the type, and errors for what needs a value."""
    table: dict[str, Any] = {name: _needs_value(f"{name}() method") for name in _VALUE_NAMES}
    for name in _PLACEMENT_NAMES:
        table[name] = property(_needs_value(f"{name} property"))
    for name in ("block_until_ready", "copy_to_host_async"):
        table[name] = property(_unavailable(f"{name!r} method"))
    for name in ("shape", "dtype", "ndim", "size", "weak_type", "manual_axis_type", "mat", "memory_space"):
        table[name] = property(_attribute_of_aval(name))
    return table | {
        "sharding": property(
            _unavailable("'sharding' attribute", " `jax.typeof(x).sharding` is the sharding in its type.")
        ),
        "itemsize": property(lambda self: self.aval.dtype.itemsize),
        "nbytes": property(lambda self: self.aval.size * self.aval.dtype.itemsize),
        "item": _item,
        "__len__": _length,
        "__bool__": _truth,
        "__int__": _to_scalar(int, reads=True),
        "__float__": _to_scalar(float, reads=False),
        "__complex__": _to_scalar(complex, reads=False),
        "__index__": _index,
        "__array__": _reject_array,
        "__getitem__": lambda self, index: (
            refs.get(self, index) if type(self.aval) is AbstractRef else subscripts.getitem(self, index)
        ),
        "__setitem__": lambda self, index, value: (
            refs.set(self, index, value) if type(self.aval) is AbstractRef else _reject_setitem(self, index, value)
        ),
        "at": property(
            lambda self: refs.RefIndexer(self) if type(self.aval) is AbstractRef else subscripts.at.fget(self)
        ),
        **{name: _method_of_refs(name) for name in (*refs.METHODS, "bitcast")},
        "reshape": _of_arrays_or_refs(reshape, "reshape"),
        "transpose": _of_arrays_or_refs(permuted, "transpose"),
        "T": property(_of_arrays_or_refs(shaping.transpose, "T")),
        "__copy__": creation.copy,
        "__deepcopy__": lambda self, memo: creation.copy(self),
    }


def _of_arrays_or_refs(of_arrays: Callable, name: str) -> Callable:
    """A method of tracers of arrays, which those of references have too."""
    of_refs = (refs.METHODS | refs.VIEWS)[name]

    def method(self, *args, **options):
        return (of_refs if type(self.aval) is AbstractRef else of_arrays)(self, *args, **options)

    return functools.wraps(of_arrays)(method)


def _method_of_refs(name: str) -> property:
    def method(self):
        if type(self.aval) is not AbstractRef:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return functools.partial((refs.METHODS | refs.VIEWS)[name], self)

    return property(method)


def _attribute_of_aval(name: str) -> Callable:
    def attribute(self):
        try:
            return getattr(self.aval, name)
        except AttributeError:
            raise AttributeError(f"{type(self).__name__} has no attribute {name}") from None

    return attribute


tracer_attributes: dict[str, Any] = {}  # the attributes of tracers of arrays


def install() -> None:
    """Gives arrays and tracers their operators, methods and properties."""
    shared = _common_attributes()
    tracer_attributes.update(shared | _tracer_attributes())
    install_operators(shared)
    for name, value in tracer_attributes.items():
        setattr(Tracer, name, value)
    register_array_like(Tracer, lambda x: isinstance(x.aval, ShapedArray))


install()
