"""Why a jitted function is traced: what `jax_explain_cache_misses` logs."""

from collections.abc import Callable, Iterable
from typing import Any

from minijax.base import monitoring, source


def explain_miss(
    fun: Callable, defined: str, key: tuple, known: Iterable[Any], names: Callable[[Any, tuple], tuple[str, ...]]
) -> None:
    """Logs how a call's key (thread state, types, tree, static arguments) differs from the closest known one.

    `names(treedef, static)` are the names of the leaves.
    """
    name, _, place = defined.partition(" at ")
    shown = f"{name} defined at {place}" if place else name
    lines = [f"TRACING CACHE MISS at {source.summary(source.here()).partition(' (')[0]} ({name}):"]
    candidates = list(known)[::-1]  # of those that are as close the latest
    if not candidates:
        before, after = (name, f" defined at {place}") if place else (name, "")
        lines += ["  never seen function:", f"    {before} id={id(fun)}{after}"]
    else:
        lines += [f"  for {shown}", "  all previously seen cache keys differ. For the closest previous key:"]
        lines += ["  " + line for line in min((_differences(key, k, names) for k in candidates), key=len)]
    monitoring.log_cache_miss("\n".join(lines))


def _differences(key: tuple, other: tuple, names: Callable) -> list[str]:
    *state, avals, treedef, static = key
    *old_state, old_avals, old_treedef, old_static = other
    lines = []
    if treedef != old_treedef:
        lines += ["different input pytree:", f"* now {treedef} and before {old_treedef}"]
    elif avals != old_avals:
        lines.append("different input types:")
        pairs = zip(names(treedef, static), avals, old_avals, strict=True)
        lines += [f"* at {n}, now {a.str_short()} and before {b.str_short()}" for n, a, b in pairs if a != b]
    if static != old_static:
        lines.append("different static arguments:")
        old, new = dict(old_static), dict(static)
        for where in dict.fromkeys((*new, *old)):
            now, before = new.get(where), old.get(where)
            if now != before:
                shown = [repr(s.value) if s else "absent" for s in (now, before)]
                lines.append(f"* at {where}, now {shown[0]} and before {shown[1]}")
    if state != old_state:
        lines.append("Tracing context doesn't match, e.g. due to config or context manager.")
        now, before = vars(state[0]), vars(old_state[0])
        lines += [
            f"* jax_{option} differs: now {value} and before {before.get(option)}"
            for option, value in now.items()
            if value is not before.get(option)
        ]
        lines += [
            f"* {what} differ: now {a} and before {b}"
            for what, a, b in zip(("named axes", "manual axes"), state[1:], old_state[1:], strict=True)
            if a != b
        ]
    return lines
