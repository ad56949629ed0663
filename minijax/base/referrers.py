"""Who keeps an object alive: the path to it from a global, or from a variable of a running function."""

import gc
import sys
import types
from collections.abc import Iterator
from typing import Any

from minijax.base.source import is_user_file

_DEPTH, _WIDTH = 10, 300  # how far, and among how many objects, a path to a root is searched
_FOREIGN = (types.BuiltinFunctionType, types.CodeType)


def kept_by(x: Any, ignored: set[int], kinds: tuple[type, ...]) -> str | None:
    """The shortest path to an object from a root.

    Objects with these ids, and of these kinds, are passed over. None if nothing else refers to it.
    """
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
                if id(holder) in seen or _is_own(holder, kinds):
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
            if is_user_file(frame.f_code.co_filename):
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


def _is_own(holder: Any, kinds: tuple[type, ...]) -> bool:
    """Whether an object is a frame of this search, or passed over."""
    if isinstance(holder, types.FrameType):
        return holder.f_code.co_filename == __file__
    return issubclass(type(holder), kinds) or isinstance(holder, _FOREIGN)


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
