"""From the arguments of a call to the arrays that a program takes, by a table over their types."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.base import dtypes, errors, tree
from minijax.ir.trace import Tracer, escaped_message
from minijax.run import transfer
from minijax.run.array import ArrayImpl, array_types

# With their type, these tell a value from others.
KEYS_OF_THEMSELVES = frozenset((bool, int, str, type(None)))


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
_OPERANDS |= dict.fromkeys(dtypes.PYTHON_SCALARS, transfer.scalar_operand)
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


def parse(options: Any, args: tuple, kwargs: dict) -> tuple[tuple, Sequence[ArrayImpl]]:
    """The key that a call's program is remembered by, and its operands: the leaves in their order, as arrays.

    Equal calls have one key: where all arguments are leaves it holds no tree.
    """
    if not kwargs:
        if args and type(args[-1]) is ArrayImpl:
            try:
                return (options, *[x._sig for x in args]), args
            except AttributeError:
                return _parse_leaves(options, args)
        return _parse_leaves(options, args)
    leaves, treedef = tree.flatten((args, kwargs))
    operands, sigs = operands_of(leaves)
    return (options, treedef, *sigs), operands


def _parse_leaves(options: Any, args: tuple) -> tuple[tuple, Sequence[ArrayImpl]]:
    operands = []
    for x in args:
        to_operand = _LEAVES.get(type(x))
        if to_operand is None:
            leaves, treedef = tree.flatten((args, {}))
            operands, sigs = operands_of(leaves)
            if len(leaves) == len(args) and treedef.num_nodes == len(args) + 3:
                return (options, *sigs), operands
            return (options, treedef, *sigs), operands
        operands.append(to_operand(x))
    return (options, *[x._sig for x in operands]), operands
