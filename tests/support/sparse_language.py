"""Programs on sparse arrays, on minijax and on jax: jaxprs, values and errors."""

import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import recorded
from compare import (
    Outcome,
    described,
    entry_of,
    jaxpr_text,
    module_of,
    ours,
    outcome,
    placed,
    same_lines,
    same_value,
    theirs,
)


def f32(values: Any) -> np.ndarray:
    return np.array(values, np.float32)


def i32(values: Any) -> np.ndarray:
    return np.array(values, np.int32)


# A small matrix with zeros, a stack of them, and what is multiplied with them.
M = f32([[0, 1, 0, 2], [3, 0, 0, 0], [0, 0, 4, 5]])
STACK = np.stack([M, M[::-1], 2 * M[:, ::-1]])
V, W = f32([1, 2, 3]), f32([1, -1, 2, 0.5])
TOLERANCE: dict[str, Any] = dict(rtol=1e-5, atol=1e-6, why="sums are taken in another order")


def on(side: ModuleType, program: Callable) -> Any:
    """The result of a program of (jax, jnp, lax, sparse, ...) on one side; its parameters are modules, by name."""
    homes = {"jax": "", "jnp": ".numpy", "lax": ".lax", "random": ".random"}
    named = {name: homes.get(name, f".experimental.{name}") for name in inspect.signature(program).parameters}
    return program(**{name: module_of(side.__name__ + home) for name, home in named.items()})


def same_function(program: Callable, *args: Any, jaxpr: bool = True, eager: bool = False, **tolerance: Any) -> None:
    """Requires equal jaxprs and values of the function that a program gives."""
    mine = on(ours(), program)
    text = jaxpr_text(ours(), mine, args) if jaxpr else ""
    value = _called(ours(), mine, args, eager)
    words = recorded.told(program), recorded.told(args), eager
    entry = entry_of("sparse function", *words, says=(text, described(value)))
    if entry.asks:
        yours = on(theirs(), program)
        if jaxpr:
            same_lines("jaxpr", text, jaxpr_text(theirs(), yours, args))
        same_value(value, _called(theirs(), yours, args, eager), **(tolerance or TOLERANCE))
        entry.confirm()


def _called(side: ModuleType, function: Callable, args: tuple, eager: bool) -> Any:
    return (function if eager else side.jit(function))(*placed(side, args))


def same_result(program: Callable) -> None:
    """Requires equal values, or errors of one class, of the program itself."""
    mine = outcome(lambda: on(ours(), program))
    says = _class(mine) if mine.error else described(mine.value)
    entry = entry_of("sparse result", recorded.told(program), says=says)
    if entry.asks:
        yours = outcome(lambda: on(theirs(), program))
        assert _class(mine) == _class(yours), (mine.error, yours.error)
        if mine.error is None:
            same_value(mine.value, yours.value, **TOLERANCE)
        entry.confirm()


def _class(ended: Outcome) -> str:
    return type(ended.error).__name__
