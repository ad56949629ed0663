"""Tables of a jitted function's latest calls: from the arguments to the program, without a key of all options."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.base import cache, tree
from minijax.dispatch.operands import plain_key
from minijax.run.arrays.array import ArrayImpl, array_types
from minijax.run.arrays.transfer import put_numpy, putter_like, signature_of_numpy
from minijax.run.clients import guards
from minijax.run.programs.launch import Program

# Of these types are static arguments, and numbers that become operands; a key has both by type and value.
_BY_VALUE = frozenset((int, float, bool, str, type(None)))
_VALUES = 64  # keys with values: a counter would fill any table
_FEW = 8  # arguments, beyond which their tree is compared with that of the last call
_MISSES = 16  # calls with another tree than the last call's, after which trees are no longer compared


class Hot:
    """The programs of one function's latest calls, valid while a thread's `ready` is the one of this table.

    `ready` identifies the options and their epoch, and that there is no current trace. Besides it a key has, of each
    argument, the signature of an array (type, sharding, layout, commitment) or the type and value, and its name. Of
    zeros it has the text, for their sign; it does not tell NaNs apart by their bits, so that these are not kept.
    """

    __slots__ = ("ready", "get", "_runs", "_values", "_last", "_misses", "__weakref__")

    def __init__(self, ready: Any):
        self.ready = ready
        self._runs = cache.BoundedDict(256)
        self.get = self._runs.get  # of a call with one array, by position, the array's signature is the key
        self._values, self._misses = _VALUES, _MISSES
        self._last: Any = None

    def find(self, args: tuple, kwargs: dict) -> tuple[Program | None, Sequence]:
        """The program of a call and the raw arrays among its arguments, or (None, ())."""
        last = self._last
        if last is not None:
            raws = _raws_of_last(last, args, kwargs)
            if raws is not None:
                return last[2], raws
        elif len(args) == 1 and type(args[0]) is np.ndarray and not kwargs:
            sig = signature_of_numpy(self.ready[0], args[0])
            program = self.get(sig)
            return (None, ()) if sig is None or program is None else (program, [put_numpy(args[0], sig)])
        if len(args) + len(kwargs) <= _FEW:
            key, raws, is_on_host = _keyed(self.ready[0], args, kwargs)
            if key is not None:
                program = self.get(key if len(key) != 1 else key[0])
                if is_on_host and program is not None:
                    raws = [put_numpy(*x) if type(x) is tuple else x for x in raws]
                return program, raws
        return None, ()

    def cache_clear(self) -> None:
        self._last = None

    def __len__(self) -> int:
        return self._last is not None

    def find_second(self, x: ArrayImpl, y: Any, kwargs: dict) -> tuple[Program | None, Sequence]:
        """As `find`, for a call with an array and one more argument: that of `kwargs` or, if there is none, `y`."""
        for name in kwargs:
            z = kwargs[name]
            kind = type(z)
            if kind is ArrayImpl:
                return self.get((name, x._sig, z._sig)), [x._raw, z._raw]
            program = self.get((name, x._sig, kind, z or repr(z))) if kind in _BY_VALUE else None
            return self.find((x,), kwargs) if program is None else (program, [x._raw])
        kind = type(y)
        program = self.get((x._sig, kind, y or repr(y))) if kind in _BY_VALUE else None
        return self.find((x, y), kwargs) if program is None else (program, [x._raw])

    def keep(self, program: Program, args: tuple, kwargs: dict, operands: Sequence, static: Sequence) -> None:
        """Stores the program that takes `operands` for this call; `static` has positions and names of arguments."""
        few = len(args) + len(kwargs) <= _FEW
        key, raws, _ = _keyed(self.ready[0], args, kwargs) if few else (None, (), False)
        has_values = len(raws) < len(args) + len(kwargs)
        if key is None or has_values and (not self._values or any(map(_is_nan, key))):
            self._keep_last(program, args, kwargs, operands, static)
        elif not (has_values and guards.is_guarded()):
            self._values -= has_values
            filled = _of_arrays(program, args, kwargs, operands, static)
            if filled is not None:
                self._runs[key[0] if len(key) == 1 else key] = filled

    def _keep_last(self, program: Program, args: tuple, kwargs: dict, operands: Sequence, static: Sequence) -> None:
        """Stores the program of a call with trees, or with numbers that change, as that of the last call."""
        if not self._misses or static:
            return
        leaves, treedef = tree.flatten((args, kwargs))
        puts = _putters(self.ready[0], leaves, operands, program.donates)
        if puts is None:
            return
        self._misses -= self._last is not None
        cache.register(self)
        on_device = [x._sig for x in leaves if type(x) in array_types]
        # The last one is taken out of the leaves first, and put back last.
        self._last = treedef.flatten_up_to, on_device, program, puts[::-1], [i for i, _ in puts]


def _putters(options: Any, leaves: Sequence, operands: Sequence, donates: bool) -> list | None:
    """Positions of leaves that are not on devices, and what puts them; None if one of them cannot be put alone."""
    host = [(i, x) for i, x in enumerate(leaves) if type(x) not in array_types]
    if host and (guards.is_guarded() or any([x._sig.device is None for x in operands])):
        return None
    if donates and any([type(x) is not np.ndarray for _, x in host]):
        return None
    puts = [(i, putter_like(options, x, operands[i]._sig)) for i, x in host]
    return None if any([put is None for _, put in puts]) else puts


def _raws_of_last(last: tuple, args: tuple, kwargs: dict) -> list | None:
    """The raw arrays of a call with the tree and the signatures of the last one; None for another call."""
    flatten_up_to, signatures, _, puts, places = last
    try:
        leaves = flatten_up_to((args, kwargs))
        raws = []
        for i, put in puts:
            raw = put(leaves.pop(i))
            if raw is None:
                return None
            raws.append(raw)
        if leaves:
            if [x._sig for x in leaves] != signatures:
                return None
            leaves = [x._raw for x in leaves]
        for i in places:
            leaves.insert(i, raws.pop())
        return leaves
    except (ValueError, AttributeError, TypeError, KeyError):  # another tree or kind of leaf
        return None


def _keyed(options: Any, args: tuple, kwargs: dict) -> tuple[tuple | None, list, bool]:
    """The key of a call without trees, or None; its raw arrays, and whether some are (NumPy array, signature)."""
    key: list[Any] = [*kwargs]
    raws: list[Any] = []
    is_on_host = False
    for x in (*args, *kwargs.values()) if kwargs else args:
        kind = type(x)
        if kind is ArrayImpl:
            key.append(x._sig)
            raws.append(x._raw)
        elif kind in _BY_VALUE:
            key += (kind, x or repr(x))
        elif kind in array_types:
            key.append(x._sig)
            raws.append(x._raw)
        elif kind is np.ndarray:
            sig = signature_of_numpy(options, x)
            if sig is None:
                return None, raws, False
            key.append(sig)
            raws.append((x, sig))
            is_on_host = True
        else:
            try:
                key.append(plain_key(x))
            except KeyError:
                return None, raws, False
    return tuple(key), raws, is_on_host


def _is_nan(x: Any) -> bool:
    return type(x) is float and x != x


def _of_arrays(program: Program, args: tuple, kwargs: dict, operands: Sequence, static: Sequence) -> Program | None:
    """The program as one of only the arrays in a call, in the call's order; None if it cannot be kept."""
    arrays = [where for where, x in (*enumerate(args), *kwargs.items()) if type(x) in (*array_types, np.ndarray)]
    ordered = [*enumerate(args), *sorted(kwargs.items())]
    dynamic = [where for where, x in ordered if where not in static and x is not None]
    if dynamic == arrays:
        return program
    if len(dynamic) != len(operands) or program.donates:  # a donated number would delete its operand
        return None
    # Of an array its index alone, so that it may die.
    filled = [
        (arrays.index(i), None) if i in arrays else (None, x._raw) for i, x in zip(dynamic, operands, strict=True)
    ]
    return lambda raws: program([raw if n is None else raws[n] for n, raw in filled])
