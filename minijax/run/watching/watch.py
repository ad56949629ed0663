"""Debugging modes that check or forbid program runs: `jax_no_execution`, `jax_debug_nans`, `jax_debug_infs`."""

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from minijax.base import config, dtypes


class InvalidResult(FloatingPointError):
    """Raised for a program whose result contains a NaN or an infinity; the caller finds the operation."""

    def __init__(self, name: str, kind: str):
        super().__init__(f"invalid value ({kind}) encountered in {name}")
        self.name, self.kind = name, kind


def is_checking() -> bool:
    """Returns whether results are checked."""
    options = config.state()
    return options.debug_nans or options.debug_infs


def is_on() -> bool:
    """Returns whether launches of programs must be wrapped by `watched`."""
    return is_checking() or config.state().no_execution


def watched(run: Callable[[Sequence], Any], name: str) -> Callable[[Sequence], Any]:
    """Wraps `run`, the launch of a program, to raise an error or to check its results, depending on the options."""
    options = config.state()
    if options.no_execution:

        def refused(raws):
            raise RuntimeError(f"JAX tried to execute function {name}, but the no_execution config option is set")

        return refused
    if not is_checking():
        return run

    def checked(raws):
        results = run(raws)
        check_values(name, results if isinstance(results, list) else [results])
        return results

    return checked


def check_values(name: str, arrays: Sequence) -> None:
    """Raises InvalidResult for an array with a NaN or an infinity, if the options forbid that."""
    options = config.state()
    tests = [("nan", np.isnan)] * options.debug_nans + [("inf", np.isinf)] * options.debug_infs
    for x in arrays:
        if dtypes.is_inexact(x.dtype):
            value = np.asarray(x._value)
            for kind, test in tests:
                if test(value).any():
                    raise InvalidResult(name, kind)


def named(run: Callable, name: str) -> Callable:
    """Wraps `run` so that the error for an invalid result names the operation `name`."""
    if not is_checking():
        return run

    def call(*args):
        try:
            return run(*args)
        except InvalidResult as error:
            if name == "shard_map":
                text = f"Invalid value ({error.kind}) encountered in sharded computation."
            else:
                text = f"invalid value ({error.kind}) encountered in {name}"
            advice = "Look at its operands; without jax_debug_nans and jax_debug_infs such values are allowed."
            raise FloatingPointError(f"{text.removesuffix('.')}. {advice}") from None

    return call


def explained(run: Callable, again: Callable) -> Callable:
    """Wraps `run` so that after an invalid result `again` is called with the same arguments to find the operation."""
    if not is_checking():
        return run

    def call(*args):
        try:
            return run(*args)
        except InvalidResult as error:
            explain(error, lambda: again(*args))

    return call


def explain(invalid: InvalidResult, again: Callable[[], object]) -> NoReturn:
    """Calls `again`, the function without `jit`, which raises for the operation; else raises FloatingPointError."""
    print(
        f"Invalid {invalid.kind} value encountered in the output of a jax.jit function. "
        "Calling the de-optimized version."
    )
    again()
    raise FloatingPointError(
        f"{invalid}. Because jax_debug_nans or jax_debug_infs is set, the de-optimized function (without "
        "`jit`) was called to find the operation. However, the de-optimized function did not produce "
        "invalid values during its execution: the compiler's optimizations made them, or there are nan or inf "
        "literals among the inputs or outputs."
    )
