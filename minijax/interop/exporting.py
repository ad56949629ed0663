"""`export`, with user-defined lowering rules."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

from minijax.api.export.checks import DisabledSafetyCheck
from minijax.api.export.exported import Exported
from minijax.api.export.exporting import exporter
from minijax.interop.lowering import by_rules


def export(
    fun_jit: Callable,
    *,
    platforms: Sequence[str] | None = None,
    disabled_checks: Sequence[DisabledSafetyCheck] = (),
    _override_lowering_rules: Sequence[tuple[Any, Any]] | None = None,
) -> Callable[..., Exported]:
    """Exports a jitted function: `export(f)(*args)` is its program for arguments or `ShapeDtypeStruct`s of such types.

    `platforms` are those that the program can run on, by default the current one. Raises ValueError for a function
    that is not jitted, and for programs with custom calls that later versions may not support.
    """
    pairs = _override_lowering_rules or ()
    rules = tuple([(prim, functools.partial(by_rules, prim, {None: (rule, True)})) for prim, rule in pairs])
    return exporter(fun_jit, platforms, disabled_checks, rules)
