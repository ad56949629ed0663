"""Mutable references (Ref): each holds a value of the trace in which it was created."""

import weakref
from typing import TYPE_CHECKING, Any

from minijax.base.naming import known_as
from minijax.base.util import dir_without
from minijax.ir import effects, state
from minijax.ir.types import AbstractValue, register_value_type, typeof, value_kinds


class AbstractRef(AbstractValue):
    """Is the type of a reference to a value of type `inner_aval`; equal ones are one object.

    `memory_space` says where the value of a kernel's reference is; any object that can be hashed and printed.

    Example:
        >>> jax.typeof(jax.new_ref(jnp.ones(2))) is jax.ref.AbstractRef(jax.core.ShapedArray((2,), jnp.float32))
        True
    """

    __slots__ = ("inner_aval", "memory_space", "__weakref__")

    def __new__(cls, inner_aval: AbstractValue, memory_space: Any = None):
        key = inner_aval if memory_space is None else (inner_aval, memory_space)
        interned = _types.get(key)
        if interned is None:
            aval = object.__new__(cls)
            aval.inner_aval, aval.memory_space = inner_aval, memory_space
            interned = _types.setdefault(key, aval)
        return interned

    shape = property(lambda self: self.inner_aval.shape)
    dtype = property(lambda self: self.inner_aval.dtype)
    ndim = property(lambda self: self.inner_aval.ndim)
    size = property(lambda self: self.inner_aval.size)
    sharding = property(lambda self: self.inner_aval.sharding)
    own_sharding = property(lambda self: self.inner_aval.own_sharding)  # `has_mesh` is False: rules are about arrays
    is_high = property(lambda self: self.inner_aval.is_high)

    def to_tangent_aval(self) -> "AbstractRef":
        return AbstractRef(self.inner_aval.to_tangent_aval(), self.memory_space)

    def update_weak_type(self, weak_type: bool) -> "AbstractRef":
        return AbstractRef(self.inner_aval.update_weak_type(weak_type), self.memory_space)

    def update(self, **changes: Any) -> "AbstractRef":
        """The type of references to an inner type with some attributes changed, as `ShapedArray.update`."""
        return AbstractRef(self.inner_aval.update(**changes), self.memory_space)

    def without_axis(self, axis: int) -> "AbstractRef":
        return AbstractRef(self.inner_aval.without_axis(axis), self.memory_space)

    def with_axis(self, axis: int, size: int, entry: Any = None, mesh: Any = None) -> "AbstractRef":
        return AbstractRef(self.inner_aval.with_axis(axis, size, entry, mesh), self.memory_space)

    def str_short(self, short_dtypes: bool = False, mesh_axis_types: bool = False) -> str:
        space = "" if self.memory_space is None else f"<{self.memory_space}>"
        return f"Ref{space}{{{self.inner_aval.str_short(short_dtypes)}}}"

    def __str__(self):
        return self.str_short()

    __repr__ = __str__

    def __reduce__(self):
        return AbstractRef, (self.inner_aval, self.memory_space)


_types: weakref.WeakValueDictionary[Any, AbstractRef] = weakref.WeakValueDictionary()


class RefEffect(effects.Effect):
    """Creates, reads or writes a reference."""


REF_EFFECT: frozenset = frozenset({RefEffect()})

for _registry in (
    effects.lowerable_effects,
    effects.control_flow_allowed_effects,
    effects.remat_allowed_effects,
    effects.custom_derivatives_allowed_effects,
):
    _registry.add_type(RefEffect)


class _RefMeta(type):
    """Lets tracers of references be instances of `Ref`."""

    def __instancecheck__(cls, x):
        if type(x) is cls:
            return True
        # Users' objects that forward attributes are not references.
        return type(getattr(x, "aval", None)) is AbstractRef and any(c in value_kinds for c in type(x).__mro__)


@known_as("jax._src.core.Ref")
class Ref(metaclass=_RefMeta):
    """Is a mutable array: `ref[...]` reads it, `ref[...] = x` writes it; `jax.new_ref` creates it.

    Example:
        >>> ref = jax.new_ref(jnp.array([1, 2]))
        >>> ref[0] += 10
        >>> ref[...]
        Array([11,  2], dtype=int32)
    """

    __slots__ = ("_value", "_trace", "aval", "kind", "freed", "__weakref__")
    __hash__ = object.__hash__
    __dir__ = dir_without("T bitcast freed get kind reshape set swap transpose")

    def __init__(self, value: Any, kind: str | None = None):
        self._value, self._trace, self.kind, self.freed = value, state.thread.trace, kind, False
        self.aval = AbstractRef(typeof(value))

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)
    ndim = property(lambda self: self.aval.ndim)
    size = property(lambda self: self.aval.size)
    sharding = property(lambda self: self._value.sharding)
    committed = property(lambda self: self._value.committed)
    format = property(lambda self: self._value.format)

    if TYPE_CHECKING:  # set by minijax.composed.refs
        at: Any

        def __getitem__(self, index: Any) -> Any: ...
        def __setitem__(self, index: Any, value: Any) -> None: ...
        def addupdate(self, value: Any, idx: Any = ()) -> None: ...
        def get(self, idx: Any = ()) -> Any: ...
        def reshape(self, *shape: Any) -> Any: ...
        def set(self, value: Any, idx: Any = ()) -> None: ...
        def swap(self, value: Any, idx: Any = ()) -> Any: ...

    def __len__(self):
        if not self.shape:
            raise TypeError("len() of unsized object: the reference has rank 0")
        return self.shape[0]

    def unsafe_buffer_pointer(self) -> int:
        """The address of the buffer, which is valid only until the next write."""
        return self._value.unsafe_buffer_pointer()

    def __repr__(self):
        return f"Ref{repr(self._value).removeprefix('Array')}"


def is_ref(x: Any) -> bool:
    """Returns whether `x` is a reference itself, not a tracer of one."""
    return type(x) is Ref


def passed_ref(x: Any, where: str) -> str:
    """The message for a reference, or its type, that is passed where an array is needed."""
    return f"Attempting to pass a Ref {x} to {where} -- did you forget to unpack ([...]) the ref?"


register_value_type(Ref, lambda x: x.aval)
