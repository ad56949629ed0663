"""Converts the arguments of a call to the arrays that a program takes, by a table over their types."""

from collections.abc import Callable, Sequence
from math import isinf
from typing import Any

import numpy as np

from minijax.base import dtypes, errors, tree
from minijax.ir.hitypes import full_type
from minijax.ir.trace import Tracer, escaped_message
from minijax.ir.types import Aval, hi_classes, register_value_type, value_kinds
from minijax.run.arrays import transfer
from minijax.run.arrays.array import ArrayImpl, array_types

# Values of these types, together with the type, are their own keys.
SELF_KEYED_TYPES = frozenset((bool, int, str, type, type(None), *map(type, dtypes.BY_NAME.values())))


def _of_numpy(x: np.ndarray) -> ArrayImpl:
    is_float0 = x.dtype.kind == "V" and x.dtype == dtypes.float0
    return transfer.float0_operand(x) if is_float0 else transfer.from_numpy(x)


def _of_tracer(x: Tracer) -> ArrayImpl:
    raise errors.UnexpectedTracerError(escaped_message(x))


class Unread:
    """In a trace, the value of an argument that only describes a type, such as a ShapeDtypeStruct."""

    __slots__ = ("_sig", "_described")
    _raw = property(lambda self: self._described._raw)  # which raises TypeError

    def __init__(self, described: Any):
        self._sig, self._described = described._sig, described


register_value_type(Unread, lambda x: x._sig.aval)


def as_value(x: Any) -> Any:
    """A leaf as an operand of the equation that records a call."""
    return x if type(x) in value_kinds or not hasattr(type(x), "_sig") else Unread(x)


def argument_type(x: Any) -> Aval:
    """The type of a leaf. Raises TypeError for a leaf without one."""
    return x._sig.aval if type(x) not in value_kinds and hasattr(type(x), "_sig") else full_type(x)


def _of_user_defined_type(x: Any) -> ArrayImpl:
    raise TypeError(f"a value of type {type(x)} is not an array: it has a user-defined type")


def _unchanged(x: ArrayImpl) -> ArrayImpl:
    return x


class _Operands(dict):
    """Maps the type of a leaf to the function that converts it to an array."""

    def __missing__(self, kind: type) -> Callable[[Any], ArrayImpl]:
        if hasattr(kind, "_sig"):  # arrays, tokens, and objects that only describe a type
            make = _unchanged
        elif kind in hi_classes:
            make = _of_user_defined_type
        elif issubclass(kind, np.number):
            make = transfer.scalar_operand
        else:
            make = _of_tracer if issubclass(kind, Tracer) else transfer.to_device
        self[kind] = make
        return make


_OPERANDS = _Operands({ArrayImpl: _unchanged, np.ndarray: _of_numpy})
_OPERANDS |= dict.fromkeys(dtypes.PYTHON_SCALARS, transfer.scalar_operand)


class _Leaves(dict):
    """As `_Operands`, for the types that are always leaves; all other types may be trees."""

    def __missing__(self, kind: type) -> Callable[[Any], ArrayImpl]:
        if kind not in array_types:
            raise KeyError(kind)
        self[kind] = _unchanged
        return _unchanged


_LEAVES = _Leaves(_OPERANDS)
_LEAVES |= dict.fromkeys(transfer.NUMBERS, transfer.scalar_operand)


def operand(x: Any) -> ArrayImpl:
    """`x` as an array on a device. Raises TypeError for an invalid value."""
    return x if type(x) is ArrayImpl else _OPERANDS[type(x)](x)


def operands_of(leaves: Sequence) -> tuple[Sequence, list]:
    """The leaves as arrays, and the arrays' signatures."""
    try:
        return leaves, [x._sig for x in leaves]
    except AttributeError:
        operands = list(map(operand, leaves))
        return operands, [x._sig for x in operands]


def parse(options: Any, args: tuple, kwargs: dict) -> tuple[tuple, Sequence[ArrayImpl]]:
    """The cache key of a call's program, and its operands: the leaves as arrays.

    Raises TypeError for an invalid value.
    """
    if kwargs and len(kwargs) > 1 or args and type(args[0]) in _CONTAINERS:
        return _parse_trees(options, args, kwargs)
    values = (*args, *kwargs.values()) if kwargs else args
    try:
        if values and type(values[-1]) is ArrayImpl:
            return (options, *kwargs, *[x._sig for x in values]), values
    except AttributeError:
        pass
    try:
        operands = [x if type(x) is ArrayImpl else _LEAVES[type(x)](x) for x in values]
    except KeyError:
        return _parse_trees(options, args, kwargs)
    return (options, *kwargs, *[x._sig for x in operands]), operands


_CONTAINERS = frozenset((list, dict, tuple))


def _parse_trees(options: Any, args: tuple, kwargs: dict) -> tuple[tuple, Sequence[ArrayImpl]]:
    leaves, treedef = tree.flatten((args, kwargs))
    try:
        return (options, treedef, *[x._sig for x in leaves]), leaves
    except AttributeError:
        operands, sigs = operands_of(leaves)
        return (options, treedef, *sigs), operands


def parse_static(
    options: Any, args: tuple, kwargs: dict, static: Sequence[int | str]
) -> tuple[tuple, Sequence[ArrayImpl]]:
    """As `parse`, if `static` arguments, by position and name, are plain values, and the others are not trees.

    Raises KeyError for other calls.
    """
    key: list[Any] = [options, *kwargs]
    operands = []
    for i, x in enumerate(args):
        if i in static:
            key.append(x if type(x) is int else plain_key(x))
        elif x is None:
            key.append(None)
        else:
            x = x if type(x) is ArrayImpl else _LEAVES[type(x)](x)
            key.append(x._sig)
            operands.append(x)
    last = ""
    for name, x in kwargs.items():
        if name in static:
            key.append(x if type(x) is int else plain_key(x))
        elif x is None:
            key.append(None)
        elif type(x) is ArrayImpl and name > last:  # operands are sorted by name
            key.append(x._sig)
            operands.append(x)
            last = name
        else:
            raise KeyError
    return tuple(key), operands


def plain_key(x: Any) -> Any:
    """The key of a plain value, or of a tuple or list of plain values. Raises KeyError for anything else."""
    kind = type(x)
    if kind in SELF_KEYED_TYPES:
        return x if kind is int else (kind, x)
    if kind is tuple or kind is list:
        return (kind, *map(plain_key, x))
    if kind is float and isinf(x) or issubclass(kind, type | np.dtype):  # an infinite bound, not an arbitrary number
        return kind, x
    raise KeyError


def raise_if_donated(error: RuntimeError, values: Sequence) -> None:
    """Raises ValueError if a cached program failed because of a donated array; in jax the error is jaxlib's."""
    if "Array has been deleted" not in str(error):
        return
    for i, x in enumerate(values):
        if isinstance(x, ArrayImpl) and x._raw.is_deleted() and "_was_freed" not in x.__dict__:
            raise ValueError(
                f"INVALID_ARGUMENT: Invalid buffer passed to Execute() as argument {i} to replica 0: "
                f"INVALID_ARGUMENT: Buffer has been deleted or donated. {error}"
            ) from None
