"""Types of values: interned array types, the registry of value kinds, symbolic zeros."""

import functools
import threading
import weakref
from collections.abc import Callable, Iterable, Set
from math import prod
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from minijax.base import dims, dtypes
from minijax.base.naming import known_as
from minijax.base.source import hide_frames
from minijax.base.util import Immutable, dir_without, put
from minijax.partition.explicit import Entries, check_even, sharding_in_type, typed_sharding
from minijax.partition.memory import Device, MemorySpace
from minijax.partition.meshes import abstract_context, axes_of
from minijax.partition.shardings import NamedSharding, unsharded


class AbstractValue:
    """An abstract value: what a trace knows about a value, here an array, token, reference or user-defined value."""

    __slots__ = ()
    weak_type = False
    is_high = False  # True if lowering replaces it by its lo types
    has_qdd = False  # True if values are mutable: a trace follows the type of their state
    own_sharding: Any = None  # the NamedSharding over a mesh with Explicit axes; None: the type has no mesh
    has_mesh = False
    __dir__ = dir_without(
        "entries has_mesh in_space is_compatible is_sharded own_sharding reduction_state sharded_over "
        "str_with_sharding text varying_over vspace_zero with_axis without_axis"
    )

    def to_tangent_aval(self) -> "AbstractValue":
        raise NotImplementedError(f"{type(self).__name__} has no tangent type")

    def to_ct_aval(self) -> "AbstractValue":
        return self.to_tangent_aval()

    def at_least_vspace(self) -> "AbstractValue":
        """As `to_tangent_aval`, by its older name, which libraries call in their derivative rules."""
        return self.to_tangent_aval()

    def strip_weak_type(self) -> "AbstractValue":
        return self

    def normalize(self) -> "AbstractValue":
        """The common form of the types that differ only in weak type, or in the mesh of an unsharded type."""
        return self.strip_weak_type()

    def is_compatible(self, other: "AbstractValue") -> bool:
        """Returns whether a carry or branch result of one type may be replaced by one of the other: they are equal up
        to weak type, and up to sharding if only one has a mesh in its type or both are unsharded."""
        return self.normalize() == other.normalize()

    def lo_ty(self) -> list["AbstractValue"]:
        """The lo types that it is lowered to; `lower_val` and `raise_val` convert values to these and back."""
        return [self]

    def lower_val(self, hi_val: Any) -> list:
        return [hi_val]

    def raise_val(self, *lo_vals: Any) -> Any:
        return lo_vals[0]

    def dec_rank(self, size: int | None, spec: Any) -> "AbstractValue":
        """The type of one element of a value mapped over the axis `spec`, of this size."""
        return self if spec is None else self.without_axis(spec)

    def inc_rank(self, size: int, spec: Any) -> "AbstractValue":
        """The type of values of this type stacked along a new axis `spec`."""
        return self if spec is None else self.with_axis(spec, size)

    def leading_axis_spec(self) -> Any:
        """The spec of the axis that loops run over."""
        return 0

    def str_short(self, short_dtypes: bool = False, mesh_axis_types: bool = False) -> str:
        return str(self)

    def without_axis(self, axis: int) -> "AbstractValue":
        """The type of one element along an axis."""
        raise TypeError(f"a value of type {self} has no axes")

    def with_axis(self, axis: int, size: int, entry: Any = None, mesh: Any = None) -> "AbstractValue":
        """The type of values of this type stacked along a new axis, which may be sharded."""
        raise TypeError(f"values of type {self} cannot be stacked")


_axis_types: dict[tuple, "ManualAxisType"] = {}
_NONE: frozenset = frozenset()


@known_as("jax._src.core.ManualAxisType")
class ManualAxisType(Immutable):
    """Describes over which manual mesh axes a value inside `shard_map` is varying, unreduced or reduced.

    Equal ones are one object. Raises ValueError for an axis over which the value varies and is unreduced or reduced.

    Example:
        >>> mesh = jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
        >>> f = lambda x: print(jax.typeof(x).manual_axis_type)
        >>> jax.shard_map(f, mesh=mesh, in_specs=jax.P("i"), out_specs=jax.P())(jnp.ones(2))
        ManualAxisType(varying=frozenset({'i'}), unreduced=frozenset(), reduced=frozenset())
    """

    __slots__ = ("varying", "unreduced", "reduced", "__weakref__")
    __dir__ = dir_without("moved of reduction sets")
    varying: frozenset
    unreduced: frozenset
    reduced: frozenset

    def __new__(cls, *, varying: Set = _NONE, unreduced: Set = _NONE, reduced: Set = _NONE) -> "ManualAxisType":
        for name, axes in (("unreduced", unreduced), ("reduced", reduced)):
            if varying & axes:
                raise ValueError(f"varying and {name} cannot have common mesh axes. Got {varying=} and {name}={axes}")
        return cls.of((varying, unreduced, reduced))

    @classmethod
    def of(cls, sets: Iterable[Iterable]) -> "ManualAxisType":
        """The type with these sets of axes: varying, unreduced, reduced."""
        key = tuple([frozenset(axes) for axes in sets])
        if (found := _axis_types.get(key)) is None:
            new = object.__new__(cls)
            put(new, varying=key[0], unreduced=key[1], reduced=key[2])
            found = _axis_types.setdefault(key, new)
        return found

    @property
    def sets(self) -> tuple[frozenset, frozenset, frozenset]:
        """The sets of axes: varying, unreduced, reduced."""
        return self.varying, self.unreduced, self.reduced

    def _fields(self) -> dict[str, frozenset]:
        return dict(varying=self.varying, unreduced=self.unreduced, reduced=self.reduced)

    @property
    def vur(self) -> frozenset:
        """All axes: varying, unreduced and reduced ones."""
        return _NONE.union(*self.sets)

    @property
    def empty(self) -> bool:
        return self is NOT_MANUAL

    @property
    def reduction(self) -> tuple[frozenset, frozenset]:
        """The axes over which the value is unreduced, and those over which it is reduced."""
        return self.unreduced, self.reduced

    def update(self, **changes: Set) -> "ManualAxisType":
        """This type with other sets of axes in some fields."""
        return ManualAxisType(**{**self._fields(), **changes})

    def to_ct_mat(self) -> "ManualAxisType":
        """The type of cotangents: unreduced where the value is reduced, and the other way round."""
        return ManualAxisType.of((self.varying, self.reduced, self.unreduced))

    def moved(self, axes: Iterable, source: str | None, target: str | None) -> "ManualAxisType":
        """This type with `axes` taken out of the field `source` and added to `target`; None means invarying."""
        fields = self._fields()
        if source is not None:
            fields[source] = fields[source].difference(axes)
        if target is not None:
            fields[target] = fields[target].union(axes)
        return ManualAxisType.of(fields.values())

    def __reduce__(self):
        return functools.partial(ManualAxisType, **self._fields()), ()

    def __repr__(self):
        return f"ManualAxisType(varying={self.varying}, unreduced={self.unreduced}, reduced={self.reduced})"

    def invarying(self, mesh: Any) -> frozenset:
        """The manual axes of a mesh over which the value is neither varying, unreduced nor reduced."""
        return frozenset(mesh.manual_axes) - self.vur


NOT_MANUAL = ManualAxisType()

_interned: dict[tuple, "ShapedArray"] = {}
_lock = threading.Lock()
_MAX_INTERNED = 1 << 17


@known_as("jax._src.core.ShapedArray")
class ShapedArray(AbstractValue):
    """The type of an array: shape, dtype, weak type, sharding, manual axes, memory space.

    Equal types are one object, so they are compared by identity.
    """

    __slots__ = ("shape", "dtype", "weak_type", "own_sharding", "manual_axis_type", "memory_space",
                 "ndim", "size", "has_mesh", "_text", "_hlo", "_tangent", "__weakref__")  # fmt: skip
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

    __setattr__, __delattr__ = Immutable.__setattr__, Immutable.__delattr__

    def __reduce__(self):
        named = dict(sharding=self.sharding, manual_axis_type=self.manual_axis_type, memory_space=self.memory_space)
        return functools.partial(ShapedArray, self.shape, self.dtype, self.weak_type, **named), ()

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    @property
    def sharding(self) -> NamedSharding:
        if self.has_mesh:
            return self.own_sharding
        mesh = abstract_context()  # types record only meshes with Explicit axes
        return unsharded(self.ndim, None if mesh is None or mesh.explicit_axes else mesh)

    @property
    def entries(self) -> Entries:
        """For each dimension the mesh axes that it is sharded over, according to the type."""
        return self.own_sharding.spec.partitions if self.has_mesh else (None,) * self.ndim

    def str_with_sharding(self, entries: Entries) -> str:
        """The type as jaxprs print it, with dimensions sharded over `entries`."""
        return f"{dtypes.short_name(self.dtype)}[{','.join(map(_sharded_size, self.shape, entries))}]"

    @property
    def reduction_state(self) -> tuple[frozenset, frozenset]:
        """(unreduced, reduced): the Explicit and manual axes of the reduction state in the type."""
        if not self.has_mesh:
            return self.manual_axis_type.reduction
        unreduced, reduced = self.manual_axis_type.reduction
        spec = self.own_sharding.spec
        return spec.unreduced | unreduced, spec.reduced | reduced

    def sharded_over(
        self, mesh: Any, entries: Entries, unreduced: frozenset = _NONE, reduced: frozenset = _NONE
    ) -> "ShapedArray":
        """This type with the given sharding over the Explicit axes of a mesh."""
        sharding = typed_sharding(mesh, tuple(entries), unreduced, reduced)
        return self if sharding is self.own_sharding else self.update(sharding=sharding)

    def without_axis(self, axis: int) -> "ShapedArray":
        shape = self.shape[:axis] + self.shape[axis + 1 :]
        if not self.has_mesh:
            return self.update(shape=shape)
        spec = self.own_sharding.spec
        entries = spec.partitions[:axis] + spec.partitions[axis + 1 :]
        sharding = typed_sharding(self.own_sharding.mesh, entries, spec.unreduced, spec.reduced)
        return self.update(shape=shape, sharding=sharding)

    def with_axis(self, axis: int, size: int, entry: Any = None, mesh: Any = None) -> "ShapedArray":
        shape = (*self.shape[:axis], size, *self.shape[axis:])
        if not self.has_mesh and entry is None:
            return self.update(shape=shape)
        spec = self.sharding.spec
        entries = (*spec.partitions[:axis], entry, *spec.partitions[axis:])
        mesh = self.sharding.mesh if mesh is None else mesh
        return self.update(shape=shape, sharding=typed_sharding(mesh, entries, spec.unreduced, spec.reduced))

    mat = property(lambda self: self.manual_axis_type)
    itemsize = property(lambda self: self.dtype.itemsize)

    def update(self, **fields) -> "ShapedArray":
        """This type with some fields changed."""
        values: dict[str, Any] = dict(
            shape=self.shape,
            dtype=self.dtype,
            weak_type=self.weak_type,
            sharding=self.own_sharding,
            manual_axis_type=self.manual_axis_type,
            memory_space=self.memory_space,
        )
        if "shape" in fields and len(fields["shape"]) != self.ndim and "sharding" not in fields:
            values["sharding"] = None
        return ShapedArray(**{**values, **fields})

    def strip_weak_type(self) -> "ShapedArray":
        return self.update(weak_type=False) if self.weak_type else self

    @property
    def is_sharded(self) -> bool:
        """Returns whether the type has a sharding other than fully replicated."""
        return self.has_mesh and (any(self.entries) or any(self.reduction_state))

    def normalize(self) -> "ShapedArray":
        if not self.has_mesh or self.is_sharded:
            return self.strip_weak_type()
        return self.update(weak_type=False, sharding=None)

    def is_compatible(self, other: AbstractValue) -> bool:
        if type(other) is ShapedArray and self.has_mesh != other.has_mesh:
            return self.update(weak_type=False, sharding=None) is other.update(weak_type=False, sharding=None)
        return self.normalize() == other.normalize()

    def update_weak_type(self, weak_type: bool) -> "ShapedArray":
        return self if weak_type == self.weak_type else self.update(weak_type=weak_type)

    def to_tangent_aval(self) -> "ShapedArray":
        if self._tangent is None:
            dtype = dtypes.tangent_dtype(self.dtype)
            tangent = self if dtype == self.dtype else self.update(dtype=dtype)
            object.__setattr__(self, "_tangent", tangent)
        return self._tangent

    def to_ct_aval(self) -> "ShapedArray":
        # The cotangent of a replicated value (reduced) is a partial sum on each device (unreduced), and vice versa.
        tangent = self.to_tangent_aval() if self._tangent is None else self._tangent
        if not self.has_mesh and self.manual_axis_type is NOT_MANUAL or not any(self.reduction_state):
            return tangent
        tangent = tangent.update(manual_axis_type=self.manual_axis_type.to_ct_mat())
        if not self.has_mesh:
            return tangent
        mesh, spec = self.own_sharding.mesh, self.own_sharding.spec
        if tangent.dtype == dtypes.float0:
            return tangent.sharded_over(mesh, self.entries)
        return tangent.sharded_over(mesh, self.entries, spec.reduced, spec.unreduced)

    def str_short(self, short_dtypes: bool = False, mesh_axis_types: bool = False) -> str:
        is_short = short_dtypes or self.dtype == dtypes.float0  # NumPy calls it void
        name = dtypes.short_name(self.dtype) if is_short else self.dtype.name
        space = "" if self.memory_space is Device else f"<{self.memory_space.name.lower()}>"
        sizes = map(_sharded_size, self.shape, self.entries) if self.has_mesh else self.shape
        types = self._axis_types_text() if mesh_axis_types and self.has_mesh else ""
        return f"{name}{space}[{','.join(map(str, sizes))}]{self._varying_text()}{types}"

    def _axis_types_text(self) -> str:
        kinds: dict[str, list] = {}
        for axis, kind in zip(self.sharding.mesh.axis_names, self.sharding.mesh.axis_types, strict=True):
            kinds.setdefault(kind.name, []).append(axis)
        texts = [f"{kind}: {axes[0] if len(axes) == 1 else tuple(axes)!r}" for kind, axes in kinds.items()]
        return f"({{{', '.join(texts)}}})"

    def _varying_text(self) -> str:
        kinds = zip("VUR", (self.manual_axis_type.varying, *self.reduction_state), strict=True)
        texts = [f"{letter}:{_axes_text(sorted(map(str, axes)))}" for letter, axes in kinds if axes]
        return f"{{{', '.join(texts)}}}" if texts else ""

    def varying_over(self, axes: frozenset) -> "ShapedArray":
        """This type, varying over exactly these mesh axes."""
        if self.manual_axis_type.varying == axes:
            return self
        return self.update(manual_axis_type=self.manual_axis_type.update(varying=axes))

    def in_space(self, space: MemorySpace) -> "ShapedArray":
        """This type in another memory space."""
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


def _sharded_size(size: int, entry: Any) -> str:
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
        put(new, "has_mesh", sharding is not None)
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


# Aliases for the signatures of rules.
Val = Any  # a value: an array, a tracer, a Python or NumPy scalar
Name = str  # the name of a value in a StableHLO module: `%3`
Aval = ShapedArray | Any  # an abstract value: of an array, or of a token, reference or user-defined value
Ct = Zero | Any  # a tangent or cotangent: a value, or Zero where it is known to be zero


def is_float0(aval: Aval) -> bool:
    """Returns whether the dtype is float0, that of the tangents of integers and booleans."""
    return type(aval) is ShapedArray and aval.dtype.names == ("float0",)


def varying_axes(aval: Aval) -> frozenset:
    """The mesh axes over which a value inside `shard_map` varies."""
    return aval.manual_axis_type.varying if type(aval) is ShapedArray else NOT_MANUAL.varying


def space_of(aval: Aval) -> MemorySpace:
    """The memory space of values of this type."""
    return aval.memory_space if type(aval) is ShapedArray else Device


def is_zero(x: Any) -> bool:
    return type(x) is Zero


class ValueKind(NamedTuple):
    """For a Python class of values: functions that give an instance's abstract value and its canonical form."""

    typeof: Callable[[Val], Aval]
    canonicalise: Callable[[Val], Val]


class SymbolKind(NamedTuple):
    """For a Python class of symbolic dimensions, whose values are known only when a program runs."""

    typeof: Callable[[Any], Aval]
    operation: Callable[[Any], tuple[Any, dict]]  # -> (primitive without operands that computes it, its parameters)


value_kinds: dict[type, ValueKind] = {}
symbol_kinds: dict[type, SymbolKind] = {}


def _identity(x):
    return x


def register_value_type(cls: type, typeof: Callable, canonicalise: Callable = _identity) -> None:
    """Registers `cls`: its instances can be operands of primitives."""
    value_kinds[cls] = ValueKind(typeof, canonicalise)


def typeof(x: Val) -> Aval:
    """The type of a value: an array, tracer, key array, NumPy array or Python scalar.

    Raises TypeError for any other object.
    """
    try:
        kind = value_kinds.get(type(x))
        return kind[0](x) if kind is not None else _typeof_by_base(x)
    except Exception as error:
        hide_frames(error)
        raise


hi_classes: set[type] = set()  # classes of user-defined (hijax) values and primitives; empty in most programs


def checked_type(x: Val) -> Aval:
    """As `typeof`, but raises OverflowError for an int that its type cannot hold."""
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
        return ShapedArray(x.shape, dtypes.canonicalize_dtype(x.dtype), bool(getattr(x, "weak_type", False)))
    raise TypeError(f"value {x!r} of type {type(x)} is not a valid JAX type")


def offers_array(x: Any) -> bool:
    """Returns whether `x` can be converted to an array by its method `__jax_array__`."""
    return callable(getattr(x, "__jax_array__", None))


def is_hi_value(x: Any) -> bool:
    """Returns whether the type of `x` is user-defined (hijax)."""
    return bool(hi_classes) and (type(x) in hi_classes or getattr(getattr(x, "aval", None), "is_high", False))


def unwrapped(x: Any) -> Any:
    """`x.__jax_array__()` if `x` has that method and is not a value itself; else `x`."""
    is_value = type(x) in value_kinds or any(c in value_kinds for c in type(x).__mro__)
    return x if is_value and not is_hi_value(x) or not offers_array(x) else x.__jax_array__()


def is_value(x: Any) -> bool:
    """Returns whether `x` can be an operand, or has a `__jax_array__`; for the latter, `typeof` raises."""
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
    """A host value whose type does not depend on `enable_x64`."""

    __slots__ = ("value", "aval")

    def __init__(self, value: Any, aval: ShapedArray):
        self.value, self.aval = np.asarray(value, aval.dtype), aval

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)
    weak_type = property(lambda self: self.aval.weak_type)

    def __array__(self, dtype=None, copy=None):
        return self.value if dtype is None else self.value.astype(dtype)


def of_type(value: Any, aval: Aval) -> Any:
    """`value`, wrapped as `Typed` if it is a host value whose own type is not `aval`."""
    if type(aval) is not ShapedArray or not isinstance(value, _HOST_VALUES):
        return value
    have = typeof(value)
    return value if have.dtype == aval.dtype and have.weak_type == aval.weak_type else Typed(value, aval)


def scalar(value: Any, dtype: Any, weak_type: bool = False) -> Any:
    """A number as a scalar constant; a weakly typed one keeps the Python number, not rounded to the dtype."""
    number = dtypes.scalar_type_of(dtype)(value) if weak_type else np.asarray(value, dtype)[()]
    return of_type(number, ShapedArray((), dtype, weak_type))


_HOST_VALUES = (*dtypes.PYTHON_SCALARS, np.generic, np.ndarray)
register_value_type(Typed, attrgetter("aval"))


def _numpy_typeof(x) -> ShapedArray:
    if x.dtype != dtypes.float0:
        dtypes.check_array_dtype(x.dtype)
    return ShapedArray(x.shape, dtypes.canonicalize_dtype(x.dtype))


class TypedNumber:
    """A Python number that has the dtype of its arrays, which rules of users may ask for."""

    dtype: np.dtype

    def __new__(cls, value: Any, dtype: np.dtype):
        number = super().__new__(cls, value)  # pyright: ignore[reportCallIssue]
        number.dtype = dtype
        return number

    aval = property(lambda self: ShapedArray((), self.dtype, True))

    value = property(lambda self: np.asarray(self.plain(), self.dtype))

    def plain(self) -> Any:
        """The Python number without a dtype."""
        (kind,) = [base for base in type(self).__bases__ if base is not TypedNumber]
        return kind(self)

    def __repr__(self):
        return f"{type(self).__name__}({super().__repr__()}, dtype={self.dtype.name})"

    def __str__(self):
        return super().__repr__()

    def __reduce__(self):
        return type(self), (self.plain(), self.dtype)


@known_as("jax._src.literals.TypedInt")
class TypedInt(TypedNumber, int):
    pass


@known_as("jax._src.literals.TypedFloat")
class TypedFloat(TypedNumber, float):
    pass


@known_as("jax._src.literals.TypedComplex")
class TypedComplex(TypedNumber, complex):
    pass


_TYPED_NUMBERS = {int: TypedInt, float: TypedFloat, complex: TypedComplex}
for _kind in _TYPED_NUMBERS.values():
    register_value_type(_kind, attrgetter("aval"))
WITH_TYPES = frozenset({Typed, *_TYPED_NUMBERS.values()})  # values on the host that have a type of their own


def typed_value(x: Val) -> Val:
    """`x` as functions of users get it: a Python number with a dtype, a NumPy value with the dtype of its array.

    Raises OverflowError for an int that its type cannot hold.
    """
    kind = type(x)
    if kind not in _TYPED_NUMBERS:
        return canonical_value(x)
    return _TYPED_NUMBERS[kind](x, checked_type(x).dtype)


def canonical_value(x: Val) -> Val:
    """`x`, or a NumPy value of the dtype that arrays get for its own."""
    if not isinstance(x, np.ndarray | np.generic) or x.dtype == (dtype := dtypes.canonicalize_dtype(x.dtype)):
        return x
    return np.asarray(x, dtype) if isinstance(x, np.ndarray) else dtype.type(x)


def _snapshot(x: np.ndarray) -> np.ndarray:
    """A read-only copy, so that a program does not change when the array that it captured does.

    It is the same object for the same elements of the same array, since bodies compare what they captured by identity.
    """
    dtype = dtypes.canonicalize_dtype(x.dtype)
    if x.flags.owndata and not x.flags.writeable and x.dtype == dtype:
        return x
    key = id(x)
    known = _snapshots.get(key)
    copy = known[1]() if known and known[0]() is x else None
    if copy is None or copy.dtype != dtype or copy.tobytes() != x.astype(dtype, copy=False).tobytes():
        copy = np.array(x, dtype)
        copy.flags.writeable = False
        _snapshots[key] = weakref.ref(x, lambda _: _snapshots.pop(key, None)), weakref.ref(copy)
    return copy


# By the id of an array: references to it and to its copy.
_snapshots: dict[int, tuple[weakref.ref, weakref.ref]] = {}


register_value_type(np.ndarray, _numpy_typeof, _snapshot)
register_value_type(np.generic, _numpy_typeof)
for _scalar in (*np.sctypeDict.values(), *dtypes.ml_scalar_types):
    if issubclass(_scalar, (np.number, np.bool_)) or _scalar in dtypes.ml_scalar_types:
        register_value_type(_scalar, _numpy_typeof)


def _is_foreign_array(cls: type) -> bool:
    """Returns whether instances are arrays of another library, which are copied when they are used."""
    return all(hasattr(cls, name) for name in ("shape", "dtype", "__array__")) and not hasattr(cls, "_trace")
