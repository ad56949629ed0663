"""From the arguments of a call to the arrays that a program takes, by a table over their types."""

from collections.abc import Callable, Sequence
from itertools import chain
from math import isinf
from typing import Any

import numpy as np

from minijax.base import dtypes, errors
from minijax.ir.trace import Tracer, escaped_message
from minijax.run import transfer
from minijax.run.array import ArrayImpl, array_types

# With their type, these tell a value from others.
KEYS_OF_THEMSELVES = frozenset((bool, int, str, type, type(None), *map(type, dtypes.BY_NAME.values())))


def _of_numpy(x: np.ndarray) -> ArrayImpl:
    is_float0 = x.dtype.kind == "V" and x.dtype == dtypes.float0
    return transfer.no_numbers(x) if is_float0 else transfer.from_numpy(x)


def _of_tracer(x: Tracer) -> ArrayImpl:
    raise errors.UnexpectedTracerError(escaped_message(x))


def _unchanged(x: ArrayImpl) -> ArrayImpl:
    return x


class _Operands(dict):
    """By the type of a leaf, what makes an array of it."""

    def __missing__(self, kind: type) -> Callable[[Any], ArrayImpl]:
        if kind in array_types:
            make = _unchanged
        elif issubclass(kind, np.number):
            make = transfer.scalar_operand
        else:
            make = _of_tracer if issubclass(kind, Tracer) else transfer.to_device
        self[kind] = make
        return make


_OPERANDS = _Operands({ArrayImpl: _unchanged, np.ndarray: _of_numpy})
_OPERANDS |= dict.fromkeys((bool, int, float, complex), transfer.scalar_operand)
# The types of leaves that stand in place of arrays everywhere; all others may be trees.
_LEAVES = dict(_OPERANDS)
_LEAVES |= {kind: transfer.scalar_operand for kind in np.sctypeDict.values() if issubclass(kind, np.number)}


def operand(x: Any) -> ArrayImpl:
    """`x` as an array on a device. Raises TypeError for what is no value."""
    return x if type(x) is ArrayImpl else _OPERANDS[type(x)](x)


def operands_of(leaves: Sequence) -> tuple[Sequence, list]:
    """The leaves as arrays, and the signatures of these."""
    try:
        return leaves, [x._sig for x in leaves]
    except AttributeError:
        operands = [x if type(x) is ArrayImpl else _OPERANDS[type(x)](x) for x in leaves]
        return operands, [x._sig for x in operands]


def parse(
    options: Any, args: tuple, kwargs: dict, static: Sequence[int | str] | None = ()
) -> tuple[tuple, Sequence[ArrayImpl]] | None:
    """The key that a call's program is remembered by, and its operands: the dynamic arguments as arrays.

    None unless the `static` arguments, by position and by name, are known and plain values, and the others arrays or
    numbers.
    """
    if static is None:
        return None
    if not static and len(kwargs) < 2:
        values = (*args, *kwargs.values()) if kwargs else args
        if values and type(values[-1]) is ArrayImpl:
            try:
                return (options, *kwargs, *[x._sig for x in values]), values
            except AttributeError:
                pass
    arguments = enumerate(args)
    if kwargs:
        names = [name for name in kwargs if name not in static]
        if len(names) > 1 and sorted(names) != names:
            return None
        arguments = chain(arguments, kwargs.items())
    key: list[Any] = [options, *kwargs]
    operands = []
    for place, x in arguments:
        kind = type(x)
        if static and place in static:
            try:
                key.append(x if kind is int else plain_key(x))
            except KeyError:
                return None
            continue
        if kind is not ArrayImpl and kind not in array_types:
            to_operand = _LEAVES.get(kind)
            if to_operand is None:
                return None
            try:
                x = to_operand(x)
            except TypeError:
                return None
        key.append(x._sig)
        operands.append(x)
    return tuple(key), operands


def parse_trees(options: Any, leaves: Sequence, treedef: Any, static: tuple = ()) -> tuple[tuple, Sequence[ArrayImpl]]:
    """As `parse`, for the leaves of arguments that are trees, beside static ones of any kind."""
    operands, sigs = operands_of(leaves)
    return (options, treedef, static, *sigs), operands


def plain_key(x: Any) -> Any:
    """What tells a plain value, or a tuple or list of them, from others. Raises KeyError for what may hold data."""
    kind = type(x)
    if kind in KEYS_OF_THEMSELVES:
        return x if kind is int else (kind, x)
    if kind is tuple or kind is list:
        return (kind, *map(plain_key, x))
    if kind is float and isinf(x) or issubclass(kind, type | np.dtype):  # a bound that is none, not one number of many
        return kind, x
    raise KeyError
