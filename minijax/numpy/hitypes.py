"""What tracers of users' types have: attributes and operators that their types say."""

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


class _OfType:
    """An attribute of tracers of arrays, which tracers of users' types have if their types say so."""

    def __init__(self, name: str, of_arrays: Any):
        self.name, self.of_arrays = name, of_arrays

    def __get__(self, x, owner):
        if x is None:
            return self.of_arrays
        if _is_of_users_type(x):
            return attribute(x, self.name)
        return self.of_arrays.__get__(x, owner) if hasattr(self.of_arrays, "__get__") else self.of_arrays


def _is_of_users_type(x: Tracer) -> bool:
    return x.aval is not None and x.aval.is_high and type(x.aval) is not AbstractRef


def attribute(x: Tracer, name: str) -> Any:
    """What the type of a tracer has under this name; operators there lose their underscores: `_add`."""
    if name.startswith("__") and name != "__jax_array__":
        return partial(getattr(x.aval, name[1:-2]), x)
    try:
        found = getattr(x.aval, name)
    except AttributeError:
        raise AttributeError(f"{type(x).__name__} has no attribute {name}") from None
    if isinstance(found, aval_method):
        return types.MethodType(found.fun, x)
    return found.fget(x) if isinstance(found, aval_property) else found


def _of_high_tracers(x: Any, name: str) -> Any:
    if name != "aval" and _is_of_users_type(x) and (not name.startswith("__") or name == "__jax_array__"):
        return attribute(x, name)
    raise AttributeError(f"{type(x).__name__!r} object has no attribute {name!r}")


def _ask_types() -> None:
    """From now on tracers ask their types first. Nobody pays for it who defines no type."""
    if "__getattr__" not in Tracer.__dict__:
        for name, of_arrays in tracer_attributes.items():
            setattr(Tracer, name, _OfType(name, of_arrays))
        Tracer.__getattr__ = _of_high_tracers


def register_hitype(val_cls: type, typeof_fn: Callable[[Any], AbstractValue]) -> None:
    """Says what type the values of a class have, which can then be arguments and results of transformed functions."""
    hitypes.register_hitype(val_cls, typeof_fn)
    _ask_types()
