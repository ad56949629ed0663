"""Why a function was traced again, in a sentence: the difference from the nearest earlier call."""

from collections.abc import Sequence
from typing import Any

from minijax.dispatch.explain import CallRecord, Difference, differences


def reason(earlier: Sequence[CallRecord], call: CallRecord, parameters: Sequence[str]) -> str:
    """Returns in plain words how a call differs from the nearest earlier one.

    Args:
      earlier: the earlier calls of the same definition, at least one.
      call: the call that caused a trace.
      parameters: the names of the function's parameters, for static arguments.

    Returns:
      The differences, separated by semicolons.
    """
    # Among equally near ones `min` takes the latest.
    rows, before = min(((differences(old, call), old) for old in reversed(earlier)), key=lambda pair: len(pair[0]))
    texts = [*_of_types(rows, before, call)]
    for row in rows:
        texts += _of_row(row, before, call, parameters)
    return "; ".join(texts) or "nothing differs: its cache entry is gone"


_TYPES = ("shape", "dtype", "weak type", "memory space", "type")
_PLACES = ("sharding", "committed", "layout")


def _of_types(rows: Sequence[Difference], before: CallRecord, now: CallRecord) -> list[str]:
    """A sentence for each argument whose type differs."""
    changed: dict[str, set[str]] = {}
    for row in rows:
        if row.what in _TYPES:
            changed.setdefault(row.where, set()).add(row.what)
    texts = []
    for name, old, new in zip(now.names, before.avals, now.avals, strict=False):
        if whats := changed.get(name):
            texts.append(f"{name} {_verb(whats, new)}: {_typed(old)} -> {_typed(new)}")
    return texts


def _verb(whats: set[str], new: Any) -> str:
    if whats == {"weak type"}:
        return "became weak" if getattr(new, "weak_type", False) else "is weak no longer"
    if whats == {"shape"}:
        return "has another shape"
    if whats == {"dtype"}:
        return "has another dtype"
    return "has another type"


def _typed(aval: Any) -> str:
    return ("weak " if getattr(aval, "weak_type", False) else "") + aval.str_short()


def _of_row(row: Difference, before: CallRecord, now: CallRecord, parameters: Sequence[str]) -> list[str]:
    """A sentence for a difference that is not of a type."""
    if row.what in _TYPES:
        return []
    if row.what == "static value":
        is_named = row.where.isdecimal() and int(row.where) < len(parameters)
        name = parameters[int(row.where)] if is_named else row.where
        return [f"the static argument `{name}` was {row.before}, then {row.now}"]
    if row.what == "tree":
        return [_of_tree(before, now)]
    if row.what == "function":
        return ["the function was defined again: a new object of the same line"]
    if row.what in _PLACES:
        return [f"the {row.what} of {row.where} was {row.before}, then {row.now}"]
    return [f"the {row.what} `{row.where}` was {row.before}, then {row.now}"]


def _of_tree(before: CallRecord, now: CallRecord) -> str:
    """The keys that are new or gone; the trees, if both have the same keys."""
    new = [f"`{name}` is new" for name in now.names if name not in before.names]
    gone = [f"`{name}` is gone" for name in before.names if name not in now.names]
    keys = ", ".join(new + gone)
    return f"the tree of the arguments differs: {keys or f'{before.tree}, then {now.tree}'}"
