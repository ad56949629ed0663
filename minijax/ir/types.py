"""Types of values: interned array types, the registry of value kinds, symbolic zeros."""

import functools
import threading
from collections.abc import Callable, Iterable
from math import prod
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from minijax.base import dims, dtypes
from minijax.base.naming import known_as
from minijax.base.source import hide_frames
from minijax.partition.explicit import Entries, check_even, sharding_in_type, typed_sharding
from minijax.partition.memory import Device, MemorySpace
from minijax.partition.meshes import abstract_context, axes_of
from minijax.partition.shardings import NamedSharding, unsharded


class AbstractValue:
    """An abstract value: what a trace knows about a value. Arrays, tokens, references and users' types are kinds."""

    __slots__ = ()
    weak_type = False
    is_high = False  # whether programs that XLA gets have others in its place
    has_qdd = False  # whether values have a state that changes in place

    def to_tangent_aval(self) -> "AbstractValue":
        raise NotImplementedError(f"{type(self).__name__} has no tangent type")

    def to_ct_aval(self) -> "AbstractValue":
        return self.to_tangent_aval()

    def strip_weak_type(self) -> "AbstractValue":
        return self

    def normalize(self) -> "AbstractValue":
        """The type that stands for those that differ in weak types alone, or in the mesh of what is not split."""
        return self.strip_weak_type()

    def fits(self, other: "AbstractValue") -> bool:
        """Whether values of both types may stand in one place: they differ in weak types or the mesh of what is not
        split, or one of them knows no mesh."""
        return self.normalize() == other.normalize()

    def lo_ty(self) -> list["AbstractValue"]:
        """The types that programs have in its place; `lower_val` and `raise_val` take values there and back."""
        return [self]

    def lower_val(self, hi_val: Any) -> list:
        return [hi_val]

    def raise_val(self, *lo_vals: Any) -> Any:
        return lo_vals[0]

    def dec_rank(self, size: int | None, spec: Any) -> "AbstractValue":
        """The type of what lies along the axis that `spec` says, of this size."""
        return self if spec is None else self.without_axis(spec)

    def inc_rank(self, size: int, spec: Any) -> "AbstractValue":
        """The type of such values along a new axis."""
        return self if spec is None else self.with_axis(spec, size)

    def leading_axis_spec(self) -> Any:
        """The spec of the axis that loops run over."""
        return 0

    def str_short(self, short_dtypes: bool = False, mesh_axis_types: bool = False) -> str:
        return str(self)

    def without_axis(self, axis: int) -> "AbstractValue":
        """The type of what lies along one axis."""
        raise TypeError(f"a value of type {self} has no axes")

    def with_axis(self, axis: int, size: int, entry: Any = None, mesh: Any = None) -> "AbstractValue":
        """The type of such values along a new axis, which may be sharded."""
        raise TypeError(f"values of type {self} cannot be stacked")


class _ManualAxes(NamedTuple):
    varying: frozenset
    unreduced: frozenset
    reduced: frozenset


@known_as("jax._src.core.ManualAxisType")
class ManualAxisType(_ManualAxes):
    """The mesh axes over which a value inside `shard_map` varies, or is yet to be reduced."""

    __slots__ = ()

    def __new__(cls, varying: Iterable = (), unreduced: Iterable = (), reduced: Iterable = ()) -> "ManualAxisType":
        return super().__new__(cls, frozenset(varying), frozenset(unreduced), frozenset(reduced))

    def moved(self, axes: Iterable, source: str | None, target: str | None) -> "ManualAxisType":
        """This type where the value is no longer `source` over the axes, but `target`; None: invarying."""
        fields = self._asdict()
        if source is not None:
            fields[source] = fields[source].difference(axes)
        if target is not None:
            fields[target] = fields[target].union(axes)
        return ManualAxisType(**fields)

    def __reduce__(self):
        return functools.partial(ManualAxisType, **self._asdict()), ()

    def invarying(self, mesh: Any) -> frozenset:
        """The manual axes of a mesh over which the value does not vary."""
        return frozenset(mesh.manual_axes).difference(*self)


NOT_MANUAL = ManualAxisType()

_NONE: frozenset = frozenset()
_interned: dict[tuple, "ShapedArray"] = {}
_lock = threading.Lock()
_MAX_INTERNED = 1 << 17


@known_as("jax._src.core.ShapedArray")
class ShapedArray(AbstractValue):
    """The type of an array: shape, dtype, weak type, sharding, manual axes, memory space.

    Equal types are one object, so they are compared by identity.
    """

    __slots__ = ("shape", "dtype", "weak_type", "_sharding", "manual_axis_type", "memory_space",
                 "ndim", "size", "_text", "_hlo", "_tangent", "__weakref__")  # fmt: skip
    shape: tuple[int, ...]
    dtype: Any
    ndim: int
    size: int
    weak_type: bool
    manual_axis_type: ManualAxisType
    memory_space: MemorySpace
    _text: str
    _hlo: str
    _tangent: "ShapedArray"

    def __new__(cls, shape, dtype, weak_type=False, *, sharding=None, manual_axis_type=NOT_MANUAL, memory_space=Device):
        key = (shape, dtype, weak_type, sharding, manual_axis_type, memory_space)
        try:
            interned = _interned.get(key)
        except TypeError:
            interned = None
        if interned is not None and interned.shape is not None:
            return interned
        return _intern(shape, dtype, weak_type, sharding, manual_axis_type, memory_space)

    def __setattr__(self, name, value):
        raise AttributeError(f"ShapedArray is immutable: cannot set {name!r}")

    def __reduce__(self):
        named = dict(sharding=self.sharding, manual_axis_type=self.manual_axis_type, memory_space=self.memory_space)
        return functools.partial(ShapedArray, self.shape, self.dtype, self.weak_type, **named), ()

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    @property
    def sharding(self) -> NamedSharding:
        if self._sharding is not None:
            return self._sharding
        mesh = abstract_context()  # of axes that types say nothing of
        return unsharded(self.ndim, None if mesh is None or mesh.explicit_axes else mesh)

    @property
    def entries(self) -> Entries:
        """For each axis the mesh axes that it is split over, as its type says."""
        return self._sharding.spec.partitions if self._sharding is not None else (None,) * self.ndim

    def sharded_text(self, entries: Entries) -> str:
        """The type as jaxprs print it, if its axes were split so."""
        return f"{dtypes.short_name(self.dtype)}[{','.join(map(_split_size, self.shape, entries))}]"

    @property
    def sums(self) -> tuple[frozenset, frozenset]:
        """The Explicit and manual axes over which values are unreduced, and reduced, as their type says."""
        if self._sharding is None:
            return self.manual_axis_type[1:]
        _, unreduced, reduced = self.manual_axis_type
        spec = self._sharding.spec
        return spec.unreduced | unreduced, spec.reduced | reduced

    def sharded_over(
        self, mesh: Any, entries: Entries, unreduced: frozenset = _NONE, reduced: frozenset = _NONE
    ) -> "ShapedArray":
        """This type of a value that lies so over the Explicit axes of a mesh."""
        sharding = typed_sharding(mesh, tuple(entries), unreduced, reduced)
        return self if sharding is self._sharding else self.update(sharding=sharding)

    def without_axis(self, axis: int) -> "ShapedArray":
        shape = self.shape[:axis] + self.shape[axis + 1 :]
        if self._sharding is None:
            return self.update(shape=shape)
        spec = self._sharding.spec
        entries = spec.partitions[:axis] + spec.partitions[axis + 1 :]
        sharding = typed_sharding(self._sharding.mesh, entries, spec.unreduced, spec.reduced)
        return self.update(shape=shape, sharding=sharding)

    def with_axis(self, axis: int, size: int, entry: Any = None, mesh: Any = None) -> "ShapedArray":
        shape = (*self.shape[:axis], size, *self.shape[axis:])
        if self._sharding is None and entry is None:
            return self.update(shape=shape)
        spec = self.sharding.spec
        entries = (*spec.partitions[:axis], entry, *spec.partitions[axis:])
        mesh = self.sharding.mesh if mesh is None else mesh
        return self.update(shape=shape, sharding=typed_sharding(mesh, entries, spec.unreduced, spec.reduced))

    mat = property(lambda self: self.manual_axis_type)
    itemsize = property(lambda self: self.dtype.itemsize)

    def __len__(self):
        if not self.shape:
            raise TypeError("len() of unsized object: the array has rank 0")
        return self.shape[0]

    def update(self, **fields) -> "ShapedArray":
        """This type with some fields changed."""
        values: dict[str, Any] = dict(
            shape=self.shape,
            dtype=self.dtype,
            weak_type=self.weak_type,
            sharding=self._sharding,
            manual_axis_type=self.manual_axis_type,
            memory_space=self.memory_space,
        )
        if "shape" in fields and len(fields["shape"]) != self.ndim and "sharding" not in fields:
            values["sharding"] = None
        return ShapedArray(**{**values, **fields})

    def strip_weak_type(self) -> "ShapedArray":
        return self.update(weak_type=False) if self.weak_type else self

    @property
    def is_split(self) -> bool:
        """Whether the type says more of how values lie over a mesh than that all devices have them."""
        return self._sharding is not None and (any(self.entries) or any(self.sums))

    def normalize(self) -> "ShapedArray":
        if self._sharding is None or self.is_split:
            return self.strip_weak_type()
        return self.update(weak_type=False, sharding=None)

    def fits(self, other: AbstractValue) -> bool:
        if type(other) is ShapedArray and (self._sharding is None) != (other._sharding is None):
            return self.update(weak_type=False, sharding=None) is other.update(weak_type=False, sharding=None)
        return self.normalize() == other.normalize()

    def update_weak_type(self, weak_type: bool) -> "ShapedArray":
        return self if weak_type == self.weak_type else self.update(weak_type=weak_type)

    def to_tangent_aval(self) -> "ShapedArray":
        if self._tangent is None:
            dtype = dtypes.tangent_dtype(self.dtype)
            tangent = self if dtype == self.dtype else self.update(dtype=dtype, weak_type=False)
            object.__setattr__(self, "_tangent", tangent)
        return self._tangent

    def to_ct_aval(self) -> "ShapedArray":
        # What each device adds to the cotangent of a value that all have (reduced) is a part of a sum (unreduced).
        tangent = self.to_tangent_aval()
        if self._sharding is None and self.manual_axis_type is NOT_MANUAL or not any(self.sums):
            return tangent
        varying, unreduced, reduced = self.manual_axis_type
        tangent = tangent.update(manual_axis_type=ManualAxisType(varying, reduced, unreduced))
        if self._sharding is None:
            return tangent
        mesh, spec = self._sharding.mesh, self._sharding.spec
        if tangent.dtype == dtypes.float0:
            return tangent.sharded_over(mesh, self.entries)
        return tangent.sharded_over(mesh, self.entries, spec.reduced, spec.unreduced)

    def str_short(self, short_dtypes: bool = False, mesh_axis_types: bool = False) -> str:
        is_short = short_dtypes or self.dtype == dtypes.float0  # which NumPy calls void
        name = dtypes.short_name(self.dtype) if is_short else self.dtype.name
        space = "" if self.memory_space is Device else f"<{self.memory_space.name.lower()}>"
        sizes = self.shape if self._sharding is None else map(_split_size, self.shape, self.entries)
        types = self._axis_types_text() if mesh_axis_types and self._sharding is not None else ""
        return f"{name}{space}[{','.join(map(str, sizes))}]{self._varying_text()}{types}"

    def _axis_types_text(self) -> str:
        kinds: dict[str, list] = {}
        for axis, kind in zip(self.sharding.mesh.axis_names, self.sharding.mesh.axis_types, strict=True):
            kinds.setdefault(kind.name, []).append(axis)
        texts = [f"{kind}: {axes[0] if len(axes) == 1 else tuple(axes)!r}" for kind, axes in kinds.items()]
        return f"({{{', '.join(texts)}}})"

    def _varying_text(self) -> str:
        kinds = zip("VUR", (self.manual_axis_type.varying, *self.sums), strict=True)
        texts = [f"{letter}:{_axes_text(sorted(map(str, axes)))}" for letter, axes in kinds if axes]
        return f"{{{', '.join(texts)}}}" if texts else ""

    def varying_over(self, axes: frozenset) -> "ShapedArray":
        """This type of a value that varies over these mesh axes and no others."""
        if self.manual_axis_type.varying == axes:
            return self
        return self.update(manual_axis_type=self.manual_axis_type._replace(varying=axes))

    def in_space(self, space: MemorySpace) -> "ShapedArray":
        """This type of a value in that memory."""
        return self if self.memory_space is space else self.update(memory_space=space)

    @property
    def text(self) -> str:
        """The type as jaxprs print it, `f32[3]`."""
        if self._text is None:
            object.__setattr__(self, "_text", self.str_short(True))
        return self._text

    def __str__(self):
        return ("~" if self.weak_type else "") + self.str_short()

    def __repr__(self):
        return f"ShapedArray({self.str_short()}{', weak_type=True' if self.weak_type else ''})"


def _axes_text(axes: Any) -> str:
    return str(axes[0]) if len(axes) == 1 else f"({','.join(map(str, axes))})"


def _split_size(size: int, entry: Any) -> str:
    return str(size) if entry is None else f"{size}@{_axes_text(axes_of(entry))}"


def _intern(shape, dtype, weak_type, sharding, manual_axis_type, memory_space) -> ShapedArray:
    shape = dims.canonical_shape(shape)
    dtype = dtypes.canonical(dtype)
    sharding = None if sharding is None else sharding_in_type(sharding, len(shape))
    key = (shape, dtype, bool(weak_type), sharding, manual_axis_type, memory_space)
    with _lock:
        interned = _interned.get(key)
        if interned is not None:
            return interned
        if sharding is not None:
            check_even(shape, sharding)
        new = object.__new__(ShapedArray)
        put = object.__setattr__
        for name, value in zip(ShapedArray.__slots__, key, strict=False):
            put(new, name, value)
        put(new, "ndim", len(shape))
        put(new, "size", prod(shape))
        put(new, "_text", None)
        put(new, "_hlo", None)
        put(new, "_tangent", None)
        if len(_interned) > _MAX_INTERNED:
            _interned.clear()
        _interned[key] = new
        return new


class AbstractToken(AbstractValue):
    """The type of a token, which orders effects."""

    __slots__ = ()
    text = "Tok"

    def to_tangent_aval(self):
        return self

    def str_short(self, short_dtypes: bool = False, mesh_axis_types: bool = False) -> str:
        return "Tok"

    def __str__(self):
        return "AbstractToken()"

    __repr__ = __str__

    def __reduce__(self):
        return "token_type"


token_type = AbstractToken()


class Zero:
    """A tangent or cotangent known to be zero, of type `aval`."""

    __slots__ = ("aval",)

    def __init__(self, aval: "Aval"):
        self.aval = aval

    def __repr__(self):
        return f"Zero({self.aval})"

    @staticmethod
    def from_primal_value(value: Any) -> "Zero":
        return Zero(typeof(value).to_tangent_aval())


# The words of rules' signatures.
Val = Any  # a value: an array, a tracer, a number of Python's or NumPy's
Name = str  # of a value in the text of a module: `%3`
Aval = ShapedArray | Any  # a type: of an array, but for those of tokens, references and users' values
Ct = Zero | Any  # a tangent or cotangent: a value, or Zero where it is known to be zero


def is_float0(aval: Aval) -> bool:
    """Whether the type is that of tangents of values that do not move continuously."""
    return type(aval) is ShapedArray and aval.dtype.names == ("float0",)


def varying_axes(aval: Aval) -> frozenset:
    """The mesh axes over which a value inside `shard_map` varies."""
    return aval.manual_axis_type.varying if type(aval) is ShapedArray else NOT_MANUAL.varying


def space_of(aval: Aval) -> MemorySpace:
    """In which memory a value lies."""
    return aval.memory_space if type(aval) is ShapedArray else Device


def is_zero(x: Any) -> bool:
    return type(x) is Zero


class ValueKind(NamedTuple):
    """How the core reads a Python type of values: its type, and its canonical form."""

    typeof: Callable[[Val], Aval]
    canonicalise: Callable[[Val], Val]


class SymbolKind(NamedTuple):
    """How the core reads a Python type of symbols, which have values only where a program runs."""

    typeof: Callable[[Any], Aval]
    operation: Callable[[Any], tuple[Any, dict]]  # that gives the value: a primitive without operands, its parameters


value_kinds: dict[type, ValueKind] = {}
symbol_kinds: dict[type, SymbolKind] = {}


def _identity(x):
    return x


def register_value_type(cls: type, typeof: Callable, canonicalise: Callable = _identity) -> None:
    """Make instances of `cls` values that can be operands."""
    value_kinds[cls] = ValueKind(typeof, canonicalise)


def typeof(x: Val) -> Aval:
    """The type of a value: an array, tracer, key array, NumPy array or Python scalar.

    Raises TypeError if `x` is none of these.
    """
    try:
        kind = value_kinds.get(type(x))
        return kind[0](x) if kind is not None else _typeof_by_base(x)
    except Exception as error:
        hide_frames(error)
        raise


hi_classes: set[type] = set()  # of values whose types users define, and of operations; empty in most programs


def checked_type(x: Val) -> Aval:
    """As `typeof`, and raises OverflowError for an int that its type cannot hold."""
    aval = typeof(x)
    if type(x) is int and x.bit_length() > 31:
        dtypes.check_int_fits(x, aval.dtype)
    return aval


def _typeof_by_base(x):
    dtypes.check_unmasked(x)
    for cls in type(x).__mro__[1:]:
        kind = value_kinds.get(cls)
        if kind is not None:
            return kind.typeof(x)
    if type(x) in symbol_kinds:
        return symbol_kinds[type(x)].typeof(x)
    if offers_array(x):
        raise ValueError(
            "Triggering __jax_array__() during abstractification is no longer supported. To avoid this error, "
            f"convert the object of type {type(x)} with jax.numpy.asarray, or make its class a pytree."
        )
    if _is_foreign_array(type(x)):
        return _foreign_typeof(x)
    raise TypeError(f"value {x!r} of type {type(x)} is not a valid JAX type")


def offers_array(x: Any) -> bool:
    """Whether `x` says by `__jax_array__` which array it stands for."""
    return callable(getattr(x, "__jax_array__", None))


def is_of_users_type(x: Any) -> bool:
    """Whether `x` is a value of a type that a user defined."""
    return bool(hi_classes) and (type(x) in hi_classes or getattr(getattr(x, "aval", None), "is_high", False))


def unwrapped(x: Any) -> Any:
    """The array that `x` stands for, if it is no array itself and says so; otherwise `x`."""
    is_value = type(x) in value_kinds or any(c in value_kinds for c in type(x).__mro__)
    return x if is_value and not is_of_users_type(x) or not offers_array(x) else x.__jax_array__()


def is_value(x: Any) -> bool:
    """Whether `x` can be an operand; for what says by `__jax_array__` that it could, `typeof` raises."""
    cls = type(x)
    known = cls in value_kinds or any(c in value_kinds for c in cls.__mro__)
    return known or _is_foreign_array(cls) or offers_array(x)


_scalar_types: dict[tuple, ShapedArray] = {}


def _scalar_typeof(kind):
    def scalar(x):
        dtype = dtypes.scalar_dtype(kind)
        aval = _scalar_types.get((kind, dtype))
        if aval is None:
            aval = _scalar_types[kind, dtype] = ShapedArray((), dtype, kind is not bool)
        return aval

    return scalar


for _kind in dtypes.PYTHON_SCALARS:
    register_value_type(_kind, _scalar_typeof(_kind))


class Typed:
    """A host value that keeps its type, whatever `enable_x64` says of its kind."""

    __slots__ = ("value", "aval")

    def __init__(self, value: Any, aval: ShapedArray):
        self.value, self.aval = np.asarray(value, aval.dtype), aval

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)
    weak_type = property(lambda self: self.aval.weak_type)

    def __array__(self, dtype=None, copy=None):
        return self.value if dtype is None else self.value.astype(dtype)


def of_type(value: Any, aval: Aval) -> Any:
    """A host value that is read as one of type `aval`: `value` itself where it is; other values stay."""
    if type(aval) is not ShapedArray or not isinstance(value, _HOST_VALUES):
        return value
    have = typeof(value)
    return value if have.dtype == aval.dtype and have.weak_type == aval.weak_type else Typed(value, aval)


def scalar_of(value: Any, dtype: Any, weak_type: bool = False) -> Any:
    """A scalar of this dtype on the host."""
    scalar = np.asarray(value, dtype)[()]
    return of_type(scalar.item() if weak_type else scalar, ShapedArray((), dtype, weak_type))


_HOST_VALUES = (*dtypes.PYTHON_SCALARS, np.generic, np.ndarray)
register_value_type(Typed, attrgetter("aval"))


def _numpy_typeof(x) -> ShapedArray:
    if x.dtype != dtypes.float0:
        dtypes.check_array_dtype(x.dtype)
    return ShapedArray(x.shape, dtypes.canonicalize_dtype(x.dtype))


def _snapshot(x: np.ndarray) -> np.ndarray:
    """A read-only copy, so that a program does not change when the array that it captured does."""
    dtype = dtypes.canonicalize_dtype(x.dtype)
    if x.flags.owndata and not x.flags.writeable and x.dtype == dtype:
        return x
    copy = np.array(x, dtype)
    copy.flags.writeable = False
    return copy


register_value_type(np.ndarray, _numpy_typeof, _snapshot)
register_value_type(np.generic, _numpy_typeof)
for _scalar in (*np.sctypeDict.values(), *dtypes.ml_scalar_types):
    if issubclass(_scalar, (np.number, np.bool_)) or _scalar in dtypes.ml_scalar_types:
        register_value_type(_scalar, _numpy_typeof)


def _is_foreign_array(cls: type) -> bool:
    """Whether instances are arrays of another library, to be copied when they are used."""
    return all(hasattr(cls, name) for name in ("shape", "dtype", "__array__")) and not hasattr(cls, "_trace")


def _foreign_typeof(x) -> ShapedArray:
    return ShapedArray(x.shape, dtypes.canonicalize_dtype(x.dtype), bool(getattr(x, "weak_type", False)))
