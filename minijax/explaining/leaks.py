"""`find_leak`: says who keeps tracers of ended traces, and large arrays, alive."""

from __future__ import annotations

import gc
import sys
import types
from collections.abc import Iterator
from typing import Any, NamedTuple

from minijax.ir.trace import Tracer, made_at
from minijax.run.arrays.array import Array

_DEPTH, _WIDTH = 10, 300  # how far, and among how many objects, a path to a root is searched
_FOREIGN = (types.BuiltinFunctionType, types.CodeType)


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
            path = kept_by(x, ignored)
            if path is not None:
                shown = x.aval.str_short() if x.aval is not None else "of no type"
                of_tracers.append(Leak(f"{type(x).__name__} {shown}", made_at(x), path, 0))
        for x in arrays:
            path = kept_by(x, ignored) or "an object outside Python's garbage collector"
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


def kept_by(x: Any, ignored: set[int]) -> str | None:
    """The shortest path to an object from a root; None if only other tracers, or nothing, refer to it."""
    modules = {id(vars(m)): m.__name__ for m in list(sys.modules.values()) if isinstance(m, types.ModuleType)}
    # Two lists, since a tuple of an object and its path would be one more that refers to the object.
    waiting, paths = [x], [""]
    seen = {id(x), *ignored}
    everything, path_of = [x], {id(x): ""}
    found: str | None = None
    for _ in range(_DEPTH):
        beyond: list[Any] = []
        longer: list[str] = []
        seen |= {id(waiting), id(beyond), id(everything), id(sys._getframe())}
        for i in range(min(len(waiting), _WIDTH)):
            target = waiting[i]
            for holder in gc.get_referrers(target):
                if id(holder) in seen or _is_own(holder):
                    continue
                root = _root(holder, target, modules)
                if root is not None:
                    return root + paths[i]
                seen.add(id(holder))
                step = _step(holder, target) + paths[i]
                beyond.append(holder)
                longer.append(step)
                everything.append(holder)
                path_of[id(holder)] = step
                found = found or _owner(holder) + step
        waiting, paths = beyond, longer
    return _local_variable(path_of) or found


def _local_variable(path_of: dict[int, str]) -> str | None:
    """The variable of a running function that holds one of the objects; Python's collector does not list these."""
    for frame in sys._current_frames().values():
        while frame is not None:
            if frame.f_code.co_filename != __file__:
                for name, value in frame.f_locals.items():
                    if id(value) in path_of:
                        return _variable_of(frame, name) + path_of[id(value)]
            frame = frame.f_back
    return None


def _variable_of(frame: types.FrameType, name: str) -> str:
    code = frame.f_code
    return f"the local variable {name} of {code.co_qualname} ({code.co_filename}:{frame.f_lineno}): it"


def _owner(holder: Any) -> str:
    name = getattr(holder, "__qualname__", None) if isinstance(holder, type | types.FunctionType) else None
    return name or f"a {type(holder).__name__}"


def _is_own(holder: Any) -> bool:
    """Whether an object is a frame, a list or an iterator of this search, or another tracer."""
    if isinstance(holder, types.FrameType):
        return holder.f_code.co_filename == __file__
    return issubclass(type(holder), Tracer) or type(holder) is Leaks or isinstance(holder, _FOREIGN)


def _root(holder: Any, target: Any, modules: dict[int, str]) -> str | None:
    """The text for a holder that has no owner that a reader would ask for: a module or a running function."""
    # The second condition: modules that were loaded without being listed.
    name = modules.get(id(holder)) or (isinstance(holder, dict) and "__builtins__" in holder and holder.get("__name__"))
    if name:
        return next((f"{name}.{k}" for k, value in holder.items() if value is target), None)
    if isinstance(holder, types.FrameType):
        names = (name for name, value in holder.f_locals.items() if value is target)
        return _variable_of(holder, next(names, "without a name"))
    return None


def _step(holder: Any, target: Any) -> str:
    """The text by which one gets from a holder to the target."""
    if isinstance(holder, types.CellType):
        return ""
    if isinstance(holder, dict):
        key = next((k for k, value in list(holder.items()) if value is target), None)
        owner = _owner_of(holder)
        return f".{key}" if owner else f"[{key!r}]"
    if isinstance(holder, list | tuple):
        index = next((i for i, value in enumerate(holder) if value is target), 0)
        return (isinstance(target, types.CellType) and _variable(holder, index)) or f"[{index}]"
    if isinstance(holder, set | frozenset):
        return " (a member)"
    if isinstance(holder, types.FunctionType):
        return _step_of_function(holder, target)
    names = (name for name, value in _attributes(holder) if value is target)
    name = next(names, None)
    if name is not None:
        return f".{name}"
    return "" if getattr(holder, "__dict__", None) is target else f" ({type(holder).__name__})"


def _variable(closure: Any, index: int) -> str:
    """The text for a variable of the function that has that closure; "" if no function has it."""
    holders = (h for h in gc.get_referrers(closure) if isinstance(h, types.FunctionType) and h.__closure__ is closure)
    function = next(holders, None)
    return f", its closure's variable {function.__code__.co_freevars[index]}" if function else ""


def _step_of_function(function: types.FunctionType, target: Any) -> str:
    if function.__closure__ is target:
        return f" (the function {function.__qualname__})"
    if function.__defaults__ is target or function.__kwdefaults__ is target:
        return f" (the function {function.__qualname__}), its default values"
    return ""


def _owner_of(attributes: dict) -> Any:
    """The object whose attributes a dictionary holds."""
    holders = (h for h in gc.get_referrers(attributes) if not isinstance(h, types.FrameType | dict | list))
    return next((h for h in holders if getattr(h, "__dict__", None) is attributes), None)


def _attributes(x: Any) -> Iterator[tuple[str, Any]]:
    for cls in type(x).__mro__:
        slots = vars(cls).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            try:
                yield name, object.__getattribute__(x, name)
            except AttributeError:
                continue
    yield from list(getattr(x, "__dict__", {}).items())


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
