"""Attributes and operators of tracers of user-defined (hijax) types, as the types define them."""

import types
from collections.abc import Callable
from functools import partial
from typing import Any

from minijax.ir import hitypes
from minijax.ir.hitypes import aval_method, aval_property
from minijax.ir.refs import AbstractRef
from minijax.ir.trace import Tracer
from minijax.ir.types import AbstractValue
from minijax.numpy.methods import tracer_attributes


class _TypeAttribute:
    """A tracer's attribute. A user-defined type may define it; otherwise it is the array's."""

    def __init__(self, name: str, of_arrays: Any):
        self.name, self.of_arrays = name, of_arrays

    def __get__(self, x, owner):
        if x is None:
            return self.of_arrays
        if _has_hi_type(x):
            return attribute(x, self.name)
        return self.of_arrays.__get__(x, owner) if hasattr(self.of_arrays, "__get__") else self.of_arrays


def _has_hi_type(x: Tracer) -> bool:
    return x.aval is not None and x.aval.is_high and type(x.aval) is not AbstractRef


def attribute(x: Tracer, name: str) -> Any:
    """The attribute that the type of a tracer defines; the operator `__add__` is the type's `_add`."""
    if name.startswith("__") and name != "__jax_array__":
        return partial(getattr(x.aval, name[1:-2]), x)
    try:
        found = getattr(x.aval, name)
    except AttributeError:
        raise AttributeError(f"{type(x).__name__} has no attribute {name}") from None
    if isinstance(found, aval_method):
        return types.MethodType(found.fun, x)
    return found.fget(x) if isinstance(found, aval_property) else found


def _hi_attribute(x: Any, name: str) -> Any:
    if name != "aval" and _has_hi_type(x) and (not name.startswith("__") or name == "__jax_array__"):
        return attribute(x, name)
    own = next((vars(cls)[name] for cls in type(x).__mro__ if name in vars(cls)), None)
    if hasattr(type(own), "__get__"):  # a property that raised AttributeError does so again, with its own message
        return own.__get__(x, type(x))
    raise AttributeError(f"{type(x).__name__!r} object has no attribute {name!r}")


def _install_type_lookup() -> None:
    """Makes tracers look attributes up in their types first; programs that define no types do not pay for it."""
    if "__getattr__" not in Tracer.__dict__:
        for name, of_arrays in tracer_attributes.items():
            setattr(Tracer, name, _TypeAttribute(name, of_arrays))
        Tracer.__getattr__ = _hi_attribute


def register_hitype(val_cls: type, typeof_fn: Callable[[Any], AbstractValue]) -> None:
    """Registers the type of a class's values, so that transformed functions can take and return them.

    Example:
        >>> from minijax.experimental import hijax
        >>> class Interval:
        ...     def __init__(self, low, high):
        ...         self.low, self.high = low, high
        >>> class IntervalType(hijax.HiType):
        ...     lo_ty = lambda self: [jax.typeof(1.0)] * 2
        ...     lower_val = lambda self, x: [x.low, x.high]
        ...     raise_val = lambda self, low, high: Interval(low, high)
        ...     __hash__ = lambda self: hash(IntervalType)
        ...     __eq__ = lambda self, other: type(other) is IntervalType
        >>> hijax.register_hitype(Interval, lambda x: IntervalType())
        >>> jax.jit(lambda x: x)(Interval(1.0, 2.0)).high
        Array(2., dtype=float32, weak_type=True)
    """
    hitypes.register_hitype(val_cls, typeof_fn)
    _install_type_lookup()
