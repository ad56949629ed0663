"""Programs on sparse arrays, on minijax and on jax: jaxprs, values and errors."""

import importlib
import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
from compare import Outcome, jaxpr_text, ours, outcome, placed, same_lines, same_value, theirs


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
    return program(**{name: importlib.import_module(side.__name__ + home) for name, home in named.items()})


def same_function(program: Callable, *args: Any, jaxpr: bool = True, eager: bool = False, **tolerance: Any) -> None:
    """Requires equal jaxprs and values of the function that a program gives."""
    mine, yours = (on(side, program) for side in (ours(), theirs()))
    if jaxpr:
        same_lines("jaxpr", jaxpr_text(ours(), mine, args), jaxpr_text(theirs(), yours, args))
    run = [f if eager else side.jit(f) for side, f in ((ours(), mine), (theirs(), yours))]
    values = [f(*placed(side, args)) for side, f in zip((ours(), theirs()), run, strict=True)]
    same_value(*values, **(tolerance or TOLERANCE))


def same_result(program: Callable) -> None:
    """Requires equal values, or errors of one class, of the program itself."""
    mine, yours = (outcome(lambda side=side: on(side, program)) for side in (ours(), theirs()))
    assert _class(mine) == _class(yours), (mine.error, yours.error)
    if mine.error is None:
        same_value(mine.value, yours.value, **TOLERANCE)


def _class(ended: Outcome) -> str:
    return type(ended.error).__name__
