"""Dtypes: the singletons, their names and kinds, and the type promotion lattice."""

from __future__ import annotations

import abc
import re
from math import prod
from typing import Any, Protocol, Union, runtime_checkable

import ml_dtypes
import numpy as np

from minijax.base import cache, config, errors
from minijax.base.naming import known_as, public_in
from minijax.base.source import hide_frames
from minijax.base.symbolic.dimension import SymbolicDim


@runtime_checkable
class SupportsDType(Protocol):
    """An object with a dtype."""

    @property
    def dtype(self) -> np.dtype: ...


# A Union, for programs that ask `typing.get_origin`.
DTypeLike = Union[str, type[Any], np.dtype, SupportsDType]  # noqa: UP007

DType = np.dtype
Typed = tuple[Any, bool]  # a dtype (or extended dtype) and whether it is weak


@public_in("dtypes")
class TypePromotionError(ValueError):
    """Is raised for dtypes that do not promote to a common one.

    Example:
        >>> jnp.int4(1) + jnp.int8(1)
        Traceback (most recent call last):
        minijax.dtypes.TypePromotionError: Input dtypes ('int4', 'int8') have no available implicit ...
    """


@public_in("dtypes")
class extended(np.generic):
    """Is the kind of all extended dtypes: an element is represented by one or more physical values.

    Example:
        >>> jax.dtypes.issubdtype(jax.random.key(0).dtype, jax.dtypes.extended)
        True
    """


@public_in("dtypes")
class prng_key(extended):
    """Is the kind of the dtypes of typed random keys.

    It is an abstract dtype as `numpy.floating` is: use it in `issubdtype`, not to create arrays. Arithmetic does not
    accept keys; `jax.random.key_data` returns their words.

    See also: `jax.random.key`, `jax.random.key_impl`, `jax.dtypes.extended`.

    Example:
        >>> key = jax.random.key(0)
        >>> jax.dtypes.issubdtype(key.dtype, jax.dtypes.prng_key)
        True
        >>> jax.dtypes.issubdtype(jax.random.PRNGKey(0).dtype, jax.dtypes.prng_key)
        False
    """


class ExtendedDType(abc.ABC):
    """A dtype unknown to numpy: `type` is its kind, `_rules` defines its physical representation and lowering."""

    __slots__ = ()
    names = None  # as for numpy's number dtypes
    _rules: Any

    @property
    def physical_dtype(self) -> Any:
        """The dtype of the numbers that represent an element."""
        return self._rules.physical_element_aval(self).dtype

    @property
    def physical_suffix(self) -> tuple[int, ...]:
        """The shape of the numbers that represent an element."""
        return tuple(self._rules.physical_element_aval(self).shape)

    @property
    @abc.abstractmethod
    def type(self) -> type: ...


@known_as("jax._src.random.prng.KeyTy")
class KeyType(ExtendedDType):
    """The dtype of random keys of one generator, `key<fry>`; equal for equal generators.

    The generator `_impl` has a `tag` and the `key_shape` of the 32-bit words that make up a key.
    """

    __slots__ = ("_impl",)
    type = prng_key
    physical_dtype = np.dtype("uint32")

    def __init__(self, impl: Any):
        self._impl = impl

    name = property(lambda self: f"key<{self._impl.tag}>")
    physical_suffix = property(lambda self: self._impl.key_shape)
    itemsize = property(lambda self: prod(self._impl.key_shape) * self.physical_dtype.itemsize)

    def __repr__(self):
        return self.name

    def __eq__(self, other):
        return type(other) is KeyType and self._impl == other._impl

    def __hash__(self):
        return hash((KeyType, self._impl))

    def __reduce__(self):
        return KeyType, (self._impl,)

    # jax's pickles first create a dtype without a generator.
    def __setstate__(self, state):
        self._impl = state["_impl"]


# ---- the singletons ----------------------------------------------------------------------------------

ML_INTS = ("int1", "int2", "int4", "uint1", "uint2", "uint4")
ML_FLOATS = tuple(
    """
    float4_e2m1fn float6_e2m3fn float6_e3m2fn float8_e3m4 float8_e4m3 float8_e8m0fnu float8_e4m3b11fnuz float8_e4m3fn
    float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz bfloat16
    """.split()
)
INTS = tuple(f"{sign}int{bits}" for bits in (8, 16, 32, 64) for sign in ("", "u"))
NAMES = ("bool", *INTS, *ML_INTS, *ML_FLOATS, "float16", "float32", "float64", "complex64", "complex128")
# Older versions of ml_dtypes lack a few of the narrow types; these are then left out here as well.
BY_NAME: dict[str, DType] = {
    name: np.dtype(getattr(ml_dtypes, name, name))
    for name in NAMES
    if hasattr(ml_dtypes, name) or name not in ML_INTS + ML_FLOATS
}

bool_, bfloat16 = BY_NAME["bool"], BY_NAME["bfloat16"]
float16, float32, float64, complex64, complex128 = (BY_NAME[name] for name in NAMES[-5:])
int8, uint8, int16, uint16, int32, uint32, int64, uint64 = (BY_NAME[name] for name in INTS)
int2, int4, uint2, uint4 = (BY_NAME[name] for name in ("int2", "int4", "uint2", "uint4"))
float0 = np.dtype([("float0", np.void, 0)])
string = np.dtypes.StringDType()  # for arrays that no program takes

finfo = ml_dtypes.finfo
iinfo = ml_dtypes.iinfo


@cache.cache
def limits(dtype: np.dtype) -> tuple[int, int]:
    """The least and the largest number of an integer dtype."""
    info = iinfo(dtype)  # which ml_dtypes makes anew at each call
    return info.min, info.max


def check_int_fits(x: int, dtype: np.dtype) -> None:
    """Raises OverflowError if an integer dtype cannot hold `x`."""
    least, most = limits(dtype)
    if not least <= x <= most:
        raise OverflowError(
            f"Python int {x} too large to convert to {dtype.name}. Use a wider dtype or a float; 64 bits "
            "need the option jax_enable_x64."
        )


def check_unmasked(x: Any) -> None:
    """Raises ValueError for a NumPy masked array, since its mask would be lost."""
    if isinstance(x, np.ma.MaskedArray):
        raise ValueError(
            "numpy masked arrays are not supported as direct inputs to JAX functions: `x.filled()` is an array "
            "without a mask."
        )


def check_array_dtype(dtype: np.dtype) -> None:
    """Raises TypeError if no array on a device can have the dtype."""
    if dtype not in _known and dtype != string:
        raise TypeError(
            f"Dtype {dtype} is not a valid JAX array type. Only arrays of numeric types are supported by JAX."
        )


def check_for_programs(dtype: Any) -> None:
    """Raises TypeError for strings, which no program takes."""
    if dtype is string:
        raise TypeError(f"Argument of dtype {dtype} is not a valid JAX type: strings can be put on devices and read.")


PYTHON_SCALARS = (bool, int, float, complex)
python_scalar_dtypes: dict[type, DType] = {bool: bool_, int: int64, float: float64, complex: complex128}
_narrowed = {int64: int32, uint64: uint32, float64: float32, complex128: complex64}
_ml_ints = [BY_NAME[name] for name in ML_INTS if name in BY_NAME]
_ml_floats = [BY_NAME[name] for name in ML_FLOATS if name in BY_NAME]
_ml_kinds: dict[type, type] = {dtype.type: np.floating for dtype in _ml_floats}
_ml_kinds |= {d.type: np.unsignedinteger if d.name[0] == "u" else np.signedinteger for d in _ml_ints}
_known = frozenset(BY_NAME.values())
ml_scalar_types: frozenset[type] = frozenset(_ml_kinds)
_singletons: dict[Any, Any] = {dtype: dtype for dtype in (*BY_NAME.values(), float0, string)}


def is_extended(dtype: Any) -> bool:
    """Returns whether this is a dtype that numpy does not know, such as that of random keys."""
    if isinstance(dtype, np.dtype):
        return False
    return isinstance(dtype, ExtendedDType) or isinstance(dtype, type) and issubclass(dtype, extended)


def canonical(dtype: Any) -> Any:
    """Returns the singleton of this dtype, without changing its width; extended dtypes are returned unchanged."""
    if is_extended(dtype):
        return dtype
    dtype = np.dtype(dtype)
    return _singletons.get(dtype, dtype)


def tangent_dtype(dtype: Any) -> Any:
    """The tangent dtype of this dtype; float0 if values of it have no tangents."""
    if is_inexact(dtype):
        return dtype
    rules = getattr(dtype, "_rules", None)
    return float0 if rules is None else rules.tangent_dtype(dtype)


# ---- kinds -------------------------------------------------------------------------------------------


def _scalar_class(kind: Any) -> type:
    if isinstance(kind, ExtendedDType):
        return kind.type
    if isinstance(kind, type) and issubclass(kind, np.generic):
        return kind
    return np.dtype(kind).type


_subtypes: dict[tuple[Any, Any], bool] = {}


def issubdtype(arg1: DTypeLike | None, arg2: DTypeLike | None) -> bool:
    """Returns whether a dtype belongs to a kind of dtypes, or equals another dtype.

    Args:
      arg1: dtype, scalar type or name.
      arg2: dtype or kind, such as `jnp.integer`, `jnp.floating`, `jnp.inexact` or `jax.dtypes.prng_key`.

    Returns:
      A bool.

    Differences from NumPy:
      bfloat16, the floats of 8 bits and fewer, and int2 and int4 belong to the kinds of their names. There are kinds
      for keys and other extended dtypes.

    See also: `jax.numpy.isdtype`, `jax.dtypes.issubdtype`.

    Example:
      >>> jnp.issubdtype(jnp.bfloat16, jnp.floating)
      True
      >>> jnp.issubdtype("uint8", jnp.signedinteger)
      False
    """
    try:
        return _subtypes[arg1, arg2]
    except KeyError:
        answer = _subtypes[arg1, arg2] = _is_subtype(arg1, arg2)
        return answer
    except TypeError:
        return _is_subtype(arg1, arg2)


def _is_subtype(arg1: Any, arg2: Any) -> bool:
    if isinstance(arg2, ExtendedDType):
        return arg1 == arg2
    kind, parent = _scalar_class(arg1), _scalar_class(arg2)
    return kind is parent or parent is np.generic or issubclass(_ml_kinds.get(kind, kind), parent)


def is_inexact(dtype: Any) -> bool:
    """Returns whether values of this dtype are floating or complex numbers."""
    return issubdtype(dtype, np.inexact)


def is_complex(dtype: Any) -> bool:
    """Returns whether values of this dtype are complex numbers."""
    return issubdtype(dtype, np.complexfloating)


# As in jax, floats of fewer than 8 bits count as having an infinity, although their arithmetic saturates.
FINITE = ("float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2fnuz")


def supports_inf(dtype: Any) -> bool:
    """Returns whether reductions over this dtype may start from an infinity."""
    return is_inexact(dtype) and np.dtype(dtype).name not in FINITE


def scalar_type_of(x: Any) -> type:
    """Returns the Python scalar type (bool, int, float, complex) of a value or dtype.

    Example:
        >>> jax.dtypes.scalar_type_of(jnp.uint8), jax.dtypes.scalar_type_of(jnp.bfloat16(2))
        (<class 'int'>, <class 'float'>)
    """
    kind = typed(x)[0]
    for scalar, abstract in ((bool, np.bool_), (int, np.integer), (float, np.floating)):
        if issubdtype(kind, abstract):
            return scalar
    if is_complex(kind):
        return complex
    raise TypeError(f"Invalid scalar value {x}")


# Types narrower than a byte are stored in one byte each; their names give the number of bits: int4, float6_e2m3fn.
_bits: dict[type, int] = {
    dtype.type: int(re.search(r"\d+", name)[0]) if name in ML_INTS + ML_FLOATS else 8 * dtype.itemsize
    for name, dtype in BY_NAME.items()
}


def itemsize_bits(dtype: Any) -> int:
    """Returns the number of bits of one element, less than 8 for the narrow types. Raises ValueError for None.

    Example:
        >>> [jax.dtypes.itemsize_bits(dtype) for dtype in (jnp.float32, jnp.bfloat16, jnp.int4)]
        [32, 16, 4]
    """
    if dtype is None:
        raise ValueError("itemsize_bits: dtype cannot be None")
    bits = None if is_extended(dtype) else _bits.get(np.dtype(dtype).type)
    if bits is None:
        raise ValueError(f"itemsize_bits: expected the dtype of a number, got {dtype!r}")
    return bits


bit_width = itemsize_bits


def _short_name(dtype: DType) -> str:
    name = "float0" if dtype == float0 else dtype.name
    for long, short in () if name in ("float0", "bool") else SHORTER:
        if name.startswith(long):
            return short + name[len(long) :]
    return name


SHORTER = (("bfloat", "bf"), ("float", "f"), ("complex", "c"), ("uint", "u"), ("int", "i"))
_short_names: dict[Any, str] = {dtype: _short_name(dtype) for dtype in (*BY_NAME.values(), float0)}


def short_name(dtype: Any) -> str:
    """The name that jaxprs print: f32, bf16, i32, u8, bool, key<fry>, float0."""
    name = _short_names.get(dtype)
    if name is None:
        name = str(dtype) if isinstance(dtype, ExtendedDType) else _short_name(np.dtype(dtype))
    return name


# ---- the x64 switch ----------------------------------------------------------------------------------

_wide: dict[Any, Any] = {}
_narrow: dict[Any, Any] = {}


def canonicalize_dtype(dtype: Any, allow_extended_dtype: bool = False) -> Any:
    """Returns the dtype that arrays get for this one: 64-bit types become 32-bit unless jax_enable_x64 is set.

    Example:
        >>> jax.dtypes.canonicalize_dtype("float64")
        dtype('float32')
    """
    memo = _wide if config.state().enable_x64 else _narrow
    canonicalized = memo.get(dtype)
    if canonicalized is not None:
        return canonicalized
    if is_extended(dtype):
        if allow_extended_dtype:
            return dtype
        raise ValueError(f"canonicalize_dtype: {dtype} is an extended dtype, allow_extended_dtype is False")
    canonicalized = canonical(dtype)
    if memo is _narrow:
        canonicalized = _narrowed.get(canonicalized, canonicalized)
    memo[dtype] = canonicalized
    return canonicalized


def available(dtype: Any, fun_name: str) -> Any:
    """As `canonicalize_dtype` for a dtype that follows from the operands, with a warning if it is narrowed."""
    canonicalized = canonicalize_dtype(dtype, True)
    return canonicalized if canonicalized is dtype else check_and_canonicalize_user_dtype(dtype, fun_name)


def narrow(dtype: Any) -> Any:
    """The 32-bit counterpart of a 64-bit dtype; other dtypes are returned unchanged."""
    return _narrowed.get(dtype, dtype)


def scalar_dtype(kind: type) -> DType:
    """The dtype that values of a Python scalar type get."""
    return canonicalize_dtype(python_scalar_dtypes[kind])


def default_int_dtype() -> DType:
    return int64 if config.state().enable_x64 else int32


def default_uint_dtype() -> DType:
    return uint64 if config.state().enable_x64 else uint32


def default_float_dtype() -> DType:
    return float64 if config.state().enable_x64 else float32


def dtype_from_user(dtype: Any) -> Any:
    """The dtype that an argument specifies as a dtype, a type, a name, or an object with `.dtype`."""
    if isinstance(dtype, (DType, ExtendedDType)) or is_extended(dtype):
        return dtype
    if hasattr(dtype, "shape") and not isinstance(dtype, (type, str)):
        if isinstance(dtype, np.generic) or not hasattr(dtype, "__array__"):
            return np.dtype(dtype.dtype)  # a NumPy scalar, or a `ShapeDtypeStruct`
        if isinstance(dtype, np.ndarray):
            raise TypeError("Cannot construct a dtype from an array; instead of dtype=arr use dtype=arr.dtype.")
        raise ValueError(
            "Passing an array as a dtype argument is no longer supported; instead of dtype=arr use dtype=arr.dtype."
        )
    try:
        return np.dtype(dtype)
    except TypeError as error:
        raise TypeError(f"{error}. Use a name or a type such as 'float32', jnp.bfloat16 or int.") from None


# Functions that jax jits: they warn of a narrowed dtype when they are traced, the others at every call.
_WARN_ONCE = frozenset(
    "mean var std cumsum cumprod nancumsum nancumprod nanmean linspace logspace geomspace one_hot".split()
)
_warned: set[tuple[str | None, Any]] = set()
cache.on_clear(_warned.clear)


def check_and_canonicalize_user_dtype(dtype: Any, fun_name: str | None = None) -> Any:
    """The dtype used for one that a user requests explicitly; warns, or raises, if 64-bit types are not available.

    Raises TypeError for a dtype that arrays cannot have.
    """
    try:
        requested = dtype_from_user(dtype)
        if is_extended(requested):
            return requested
        if requested not in _known and requested not in (float0, string):
            raise TypeError(
                f"JAX only supports number, bool, and string dtypes, got dtype {requested} in {fun_name or 'dtype'}"
            )
        state = config.state()
        if state.enable_x64 or requested not in _narrowed or isinstance(dtype, type) and dtype in python_scalar_dtypes:
            return canonicalize_dtype(requested)
        if state.explicit_x64_dtypes is config.ExplicitX64Mode.ALLOW:
            return requested
        where = f" requested in {fun_name}" if fun_name else ""
        message = f"Explicitly requested dtype {requested}{where} is not available"
        advice = "set the jax_enable_x64 configuration option or the JAX_ENABLE_X64 shell environment variable"
        if state.explicit_x64_dtypes is config.ExplicitX64Mode.ERROR:
            raise ValueError(f"{message}. To enable more dtypes, {advice}.")
        narrowed = _narrowed[requested]
        if (fun_name, requested) not in _warned:
            errors.warn(f"{message}, and will be truncated to dtype {narrowed}. To enable more dtypes, {advice}.")
            if fun_name in _WARN_ONCE:
                _warned.add((fun_name, requested))
        return narrowed
    except Exception as error:
        hide_frames(error)
        raise


def requested_dtype(dtype: Any, fun_name: str, default: Any = None) -> Any:
    """The array dtype for an argument `dtype`, or for `default` if `dtype` is None; None if both are None."""
    try:
        dtype = default if dtype is None else dtype
        if type(dtype) is type and dtype in python_scalar_dtypes:
            return canonicalize_dtype(dtype)
        return None if dtype is None else check_and_canonicalize_user_dtype(dtype, fun_name)
    except Exception as error:
        hide_frames(error)
        raise


# ---- the lattice -------------------------------------------------------------------------------------


def _lattice(x64: bool) -> dict[Any, frozenset]:
    """Maps each node (a dtype, or a Python scalar type for weak types) to all nodes it promotes to."""
    edges: dict[Any, list[Any]] = {node: [] for node in (*BY_NAME.values(), int, float, complex)}
    edges[bool_] = [int]
    edges[int] = [uint8, int8, *_ml_ints]
    for narrow, wide in ((8, 16), (16, 32), (32, 64)):
        edges[BY_NAME[f"int{narrow}"]] = [BY_NAME[f"int{wide}"]]
        edges[BY_NAME[f"uint{narrow}"]] = [BY_NAME[f"int{wide}"], BY_NAME[f"uint{wide}"]]
    edges[int64] = edges[uint64] = [float]
    if not x64:
        edges[uint32] = [int32, uint64]
    edges[float] = [float16, complex, *_ml_floats]
    edges[float16] = edges[bfloat16] = [float32]
    edges[float32], edges[float64] = [float64, complex64], [complex128]
    edges[complex], edges[complex64] = [complex64], [complex128]
    return _closure(edges)


def _strict_lattice() -> dict[Any, frozenset]:
    """The lattice where Python scalars promote to every dtype of their kind or a higher one; dtypes do not promote."""
    edges: dict[Any, list[Any]] = {dtype: [] for dtype in BY_NAME.values()}
    edges[complex] = [complex64, complex128]
    edges[float] = [complex] + [dtype for dtype in BY_NAME.values() if issubdtype(dtype, np.floating)]
    edges[int] = [float] + [dtype for dtype in BY_NAME.values() if issubdtype(dtype, np.integer)]
    return _closure(edges)


def _closure(edges: dict[Any, list[Any]]) -> dict[Any, frozenset]:
    above: dict[Any, frozenset] = {}

    def visit(node):
        if node not in above:
            above[node] = frozenset({node}).union(*map(visit, edges[node]))
        return above[node]

    for node in edges:
        visit(node)
    return above


STRICT_MODE = config.NumpyDtypePromotion.STRICT
WIDE, NARROW, STRICT = _lattice(x64=True), _lattice(x64=False), _strict_lattice()
# Indexed by strictness and by the x64 switch.
_promoted: tuple[tuple[dict[tuple, Typed], ...], ...] = ({}, {}), ({}, {})


def _least_upper_bound(nodes: set[Any], state: config.State) -> Any:
    strict = state.numpy_dtype_promotion is STRICT_MODE
    above = STRICT if strict else WIDE if state.enable_x64 else NARROW
    common = frozenset.intersection(*[above[node] for node in nodes])
    least = [node for node in common if common == above[node]]
    if len(least) == 1:
        return least[0]
    names = ", ".join(sorted(repr(node.name if isinstance(node, DType) else str(node)) for node in nodes))
    message = f"Input dtypes ({names}) have no available implicit dtype promotion path"
    if strict:
        raise TypePromotionError(
            f"{message} when jax_numpy_dtype_promotion=strict. Cast the inputs explicitly to the dtype you "
            "want, or set jax_numpy_dtype_promotion=standard."
        )
    narrow = " or ".join(
        word
        for word, kinds in (
            ("4-bit floats", ML_FLOATS[:1]),
            ("6-bit floats", ML_FLOATS[1:3]),
            ("8-bit floats", ML_FLOATS[3:-1]),
            ("1-bit, 2-bit and 4-bit integers", ML_INTS),
        )
        if any(isinstance(node, DType) and node.name in kinds for node in nodes)
    )
    raise TypePromotionError(
        f"{message}. To avoid unintended promotion, {narrow} do not support implicit promotion: "
        "cast explicitly, e.g. x.astype('float32')."
    )


def promote(*operands: Typed) -> Typed:
    """The dtype and weak type of a result computed from operands with these dtypes and weak types."""
    state = config.state()
    memo = _promoted[state.numpy_dtype_promotion is STRICT_MODE][state.enable_x64]
    result = memo.get(operands)
    if result is None:
        result = _promote(operands, state)
        if state.enable_x64 or not any(dtype in _narrowed for dtype, _ in operands):
            memo[operands] = result  # a narrowed type warns each time
    return result


def _promote(operands: tuple[Typed, ...], state: config.State) -> Typed:
    dtypes = {dtype for dtype, _ in operands}
    all_weak = all(weak for _, weak in operands)
    node = _promoted_node(operands, dtypes, all_weak, state)
    if isinstance(node, type):
        return scalar_dtype(node), True
    is_weak = all_weak and node != bool_
    keeps = len(dtypes) == 1 and not (is_weak and len(operands) > 1)
    return node if keeps else check_and_canonicalize_user_dtype(node, "dtype"), is_weak


def _promoted_node(operands: tuple[Typed, ...], dtypes: set[Any], all_weak: bool, state: config.State) -> Any:
    """The node of the lattice that operands promote to: a dtype, or a Python scalar type for a weak result."""
    # If all operands are weak, they keep their dtypes during promotion.
    keep_dtypes = all_weak and (state.numpy_dtype_promotion is not STRICT_MODE or len(operands) == 1)
    if len(dtypes) == 1 and (keep_dtypes or not all_weak):
        return next(iter(dtypes))
    for dtype in dtypes - _known:
        raise ValueError(f"dtype={dtype!r} is not a valid dtype for JAX type promotion.")
    nodes = {scalar_type_of(d) if weak and d != bool_ and not keep_dtypes else d for d, weak in operands}
    return _least_upper_bound(nodes, state)


def _widest(dtype: DType) -> DType:
    return uint64 if issubdtype(dtype, np.unsignedinteger) else python_scalar_dtypes[scalar_type_of(dtype)]


_typed_scalars: tuple[dict[type, Typed], ...] = tuple(
    {kind: (narrowed.get(dtype, dtype), kind is not bool) for kind, dtype in python_scalar_dtypes.items()}
    for narrowed in (_narrowed, {})
)


def typed(x: Any) -> Typed:
    """The dtype and weak type of a value or dtype. Arrays keep 64 bits; for others that depends on the x64 switch."""
    if x is None:
        raise ValueError("Invalid argument to dtype: None.")
    kind = type(x)
    if kind in python_scalar_dtypes:
        return _typed_scalars[config.state().enable_x64][kind]
    aval = getattr(x, "aval", None)
    if aval is not None and hasattr(aval, "dtype"):
        return aval.dtype, getattr(aval, "weak_type", False)
    if isinstance(x, (type, str, DType)):
        return _typed_dtype(x)
    dtype = getattr(x, "dtype", None)
    if dtype is None and isinstance(x, SymbolicDim):
        return typed(0)
    if dtype is None:
        kind = number_base(kind)
        if kind is None:
            raise TypeError(f"Cannot determine dtype of {x}")
        return _typed_scalars[config.state().enable_x64][kind]
    return _array_dtype(dtype, x), False


def number_base(kind: type) -> type | None:
    """The type of Python numbers that a class, such as an IntEnum, is derived from; None if there is no such type."""
    if issubclass(kind, np.generic):
        return None
    return next((base for base in kind.__mro__ if base in python_scalar_dtypes), None)


def dtype(x: Any) -> Any:
    """Returns the dtype that an array of the given value or dtype has.

    Example:
        >>> jax.lax.dtype(1.5), jax.lax.dtype(jnp.array([1, 2]))
        (dtype('float32'), dtype('int32'))
    """
    return typed(x)[0]


def _typed_dtype(x: Any) -> Typed:
    if isinstance(x, type) and x in python_scalar_dtypes:
        return _typed_scalars[config.state().enable_x64][x]
    dtype = x if is_extended(x) else np.dtype(x)
    have = _array_dtype(dtype, x)
    if isinstance(getattr(x, "dtype", None), np.dtype):  # `jnp.float64`, which tells a type and requests none
        return have, False
    return check_and_canonicalize_user_dtype(dtype, "dtype"), False


def _array_dtype(dtype: Any, x: Any) -> Any:
    if not is_extended(dtype) and dtype not in _known and dtype not in (float0, string):
        raise TypeError(
            f"Value {x!r} with dtype {dtype} is not a valid JAX array type. "
            "Only arrays of numeric types are supported by JAX."
        )
    return canonicalize_dtype(dtype, allow_extended_dtype=True)


def result_type(*args: Any, return_weak_type_flag: bool = False) -> Any:
    """Returns the dtype of a result computed from these values or dtypes; with the flag, also whether it is weak.

    Example:
        >>> jax.dtypes.result_type(jnp.int32, 1.5, return_weak_type_flag=True)
        (dtype('float32'), True)
    """
    if not args:
        raise ValueError("result_type: at least one array or dtype is required")
    dtype, weak = promote(*[typed(default_float_dtype() if x is None else x) for x in args])
    dtype = canonicalize_dtype(_widest(dtype)) if weak else dtype
    return (dtype, weak) if return_weak_type_flag else dtype


def promote_types(a: DTypeLike | None, b: DTypeLike | None) -> np.dtype:
    """Returns the dtype that two dtypes promote to.

    Promotion follows a lattice. The Python types `int`, `float` and `complex` are weak: they take the width of the
    other. Raises TypePromotionError if no implicit promotion exists.

    Example:
      >>> jnp.promote_types("int8", "uint8")
      dtype('int16')
      >>> jnp.promote_types("int32", "bfloat16")
      dtype(bfloat16)
    """
    nodes = {x if isinstance(x, type) and x in (int, float, complex) else np.dtype(x) for x in (a, b)}
    for node in nodes:
        if node not in STRICT:
            raise ValueError(f"dtype={node!r} is not a valid dtype for JAX type promotion.")
    node = _least_upper_bound(nodes, config.state())
    return python_scalar_dtypes.get(node, node)


# ---- related dtypes ----------------------------------------------------------------------------------


def to_numeric_dtype(dtype: Any) -> DType:
    """The dtype used in arithmetic: int32 for bool, others unchanged."""
    return int32 if dtype == bool_ else dtype


def to_inexact_dtype(dtype: Any) -> DType:
    """The floating dtype in which integers and bool are computed; inexact dtypes are unchanged."""
    if issubdtype(dtype, np.inexact):
        return dtype
    if is_extended(dtype):
        raise TypeError(f"Cannot interpret '{dtype}' as a data type of numbers; jax.random.key_data(key) has numbers")
    return float64 if np.dtype(dtype) in (int64, uint64) else float32


def to_floating_dtype(dtype: Any) -> DType:
    """The dtype of the real part; integers and bool become floating."""
    return {complex64: float32, complex128: float64}.get(dtype) or to_inexact_dtype(dtype)


def to_complex_dtype(dtype: Any) -> DType:
    """The complex dtype with the precision of this one."""
    return complex128 if to_inexact_dtype(dtype) in (float64, complex128) else complex64
