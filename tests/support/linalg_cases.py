"""Helpers of the tests of linear algebra: random matrices, and cases of `lax.linalg`."""

import functools
from typing import Any

import numpy as np
from compare import Case, canonical, placed, run_on, same_printed, sweep, wide_numbers

PLATFORMS = ("cpu", "cuda", "rocm", "tpu")


def matrix(*shape: int, dtype: Any = np.float32, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    x = random.normal(size=shape)
    return (x + 1j * random.normal(size=shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def case(function: str, *args: Any, **how: Any) -> Case:
    """A function of `lax.linalg`; strings among the keywords are members of enumerations there."""

    def program(lax):
        given = {k: _member(lax.linalg, v) for k, v in how.items()}
        return lambda *args: getattr(lax.linalg, function)(*args, **given)

    shapes = [f"{x.dtype}{list(x.shape)}" for x in args]
    return Case(f"{function} {how} {shapes}", program, args)


def _member(module: Any, value: Any) -> Any:
    if not isinstance(value, str):
        return value
    enumeration, name = value.split(".")
    return getattr(module, enumeration)[name]


def with_doubles(cases: list[Case]) -> None:
    """Compares cases with 64 bits switched on."""
    with wide_numbers():
        sweep(cases)


def same_on_platforms(cases: list[Case], platforms: tuple[str, ...] = PLATFORMS) -> None:
    """Requires equal texts, or equal errors, of programs for platforms that need not be there."""
    for c in cases:
        for platform in platforms:
            text_on = functools.partial(_lowered, c, platform)
            same_printed(f"{c.name} on {platform}", text_on, c.program, c.args, platform)


def _lowered(c: Case, platform: str, side: Any) -> str:
    try:
        traced = side.jit(run_on(side, c.program)).trace(*placed(side, c.args))
        return canonical(traced.lower(lowering_platforms=(platform,)).as_text())
    except NotImplementedError as error:
        return type(error).__name__


def same_refusals(cases: list[Case]) -> None:
    """Requires that both sides refuse the arguments, in one way."""
    sweep([Case(c.name, c.program, c.args, raises=True) for c in cases])
