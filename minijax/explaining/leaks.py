"""`find_leak`: says who keeps tracers of ended traces, and large arrays, alive."""

from __future__ import annotations

import gc
import sys
from typing import Any, NamedTuple

from minijax.base.referrers import kept_by
from minijax.ir.trace import Tracer, made_at
from minijax.run.arrays.array import Array


class Leak(NamedTuple):
    """A value that is kept alive.

    Attributes:
        type: Its type and shape.
        made_at: The line that made a tracer, or the name of the argument; "" for arrays.
        kept_by: The path to it from a global, a variable of a running function, or what else has no owner.
        bytes: The size of an array; 0 for tracers.
    """

    type: str
    made_at: str
    kept_by: str
    bytes: int

    def __str__(self):
        made = f", made at {self.made_at}" * bool(self.made_at)
        return f"{self.type}{made}\n    kept by {self.kept_by}"


class Leaks:
    """The result of `find_leak`; false if it is empty.

    Attributes:
        tracers: Tracers that outlive their traces.
        arrays: Large arrays.
    """

    def __init__(self, size: int):
        self.size = size
        self._before: frozenset[int] | None = None
        self._held: list[Any] = []
        self._found: tuple[list[Leak], list[Leak]] | None = None

    def __enter__(self) -> Leaks:
        # The old ones are held, so that no new object has the identity of one of them.
        self._held = [*_dead_tracers(), *_large_arrays(self.size)]
        self._before = frozenset(map(id, self._held))
        return self

    def __exit__(self, *exception: object) -> None:
        self._found = self._search()
        self._held.clear()

    @property
    def tracers(self) -> list[Leak]:
        return self._all()[0]

    @property
    def arrays(self) -> list[Leak]:
        return self._all()[1]

    def _all(self) -> tuple[list[Leak], list[Leak]]:
        if self._found is None:
            self._found = self._search()
        return self._found

    def _search(self) -> tuple[list[Leak], list[Leak]]:
        """The leaks by now, but for what was alive when the `with` statement began."""
        of_tracers: list[Leak] = []
        of_arrays: list[Leak] = []
        before = self._before or frozenset()
        tracers = [x for x in _dead_tracers() if id(x) not in before]
        arrays = [x for x in _large_arrays(self.size) if id(x) not in before]
        ignored = {id(tracers), id(arrays), id(self._held), id(sys._getframe())}
        for x in tracers:
            path = kept_by(x, ignored, (Tracer, Leaks))
            if path is not None:
                shown = x.aval.str_short() if x.aval is not None else "of no type"
                of_tracers.append(Leak(f"{type(x).__name__} {shown}", made_at(x), path, 0))
        for x in arrays:
            path = kept_by(x, ignored, (Tracer, Leaks)) or "an object outside Python's garbage collector"
            of_arrays.append(Leak(f"Array {x.aval.str_short()}, {x.nbytes:,} bytes", "", path, x.nbytes))
        return of_tracers, of_arrays

    def __bool__(self) -> bool:
        return bool(self.tracers or self.arrays)

    def __repr__(self):
        if not self:
            return "No leaks: no tracer outlives its trace, and no array is large."
        lines = [f"{len(self.tracers)} tracers outlive their traces:"] * bool(self.tracers)
        lines += [f"  {leak}" for leak in self.tracers]
        lines += [f"{len(self.arrays)} arrays of at least {self.size:,} bytes are alive:"] * bool(self.arrays)
        return "\n".join([*lines, *(f"  {leak}" for leak in self.arrays)])


def _dead_tracers() -> list[Any]:
    gc.collect()
    # `type`, since `isinstance` would ask proxies for their class.
    tracers = [x for x in gc.get_objects() if issubclass(type(x), Tracer)]
    return [x for x in tracers if getattr(getattr(x, "_trace", None), "alive", True) is False]


def _large_arrays(size: int) -> list[Any]:
    alive: list[Any] = [x for x in gc.get_objects() if issubclass(type(x), Array)]
    return [x for x in alive if not x.is_deleted() and x.nbytes >= size]


def find_leak(size: int = 1 << 20) -> Leaks:
    """Finds tracers that outlive their traces, and large arrays, and says who keeps them alive.

    In a `with` statement it finds what was made in its block and is still alive at its end; called alone,
    everything that is alive when the result is first looked at. It asks Python's garbage collector; in programs with
    millions of objects this takes seconds, and objects that `gc.freeze` has hidden are not found.

    Args:
        size: The size in bytes from which arrays are listed.

    Returns:
        An object with the attributes `tracers` and `arrays`, lists of leaks, that is false if both are empty. A leak
        has `type`, `made_at` (the line), `kept_by` (the path from a global or a local variable) and `bytes`. Printing
        it shows all of this.

    See also: `jax.checking_leaks`, which raises an error for tracers as soon as their trace ends.

    Example:
        >>> kept = []
        >>> with jax.find_leak() as leaks:
        ...     y = jax.jit(lambda x: kept.append(x * 2) or x)(1.0)
        >>> [leak.type for leak in leaks.tracers]
        ['DynamicJaxprTracer float32[]']
    """
    return Leaks(size)
