"""Functions of the host that programs call: what XLA hands them, what it is given back, and the errors they raise."""

import collections
import contextlib
import itertools
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from traceback import format_exception
from typing import Any

import numpy as np
from jaxlib import _jax

from minijax.base import cache, dtypes, thread
from minijax.base.source import NOTE, filtered
from minijax.ir.types import ShapedArray

JaxRuntimeError = _jax.JaxRuntimeError
Buffer, ExecutionContext, ExecutionStage = _jax.ffi.Buffer, _jax.ffi.ExecutionContext, _jax.ffi.ExecutionStage

# ---- while a program is compiled --------------------------------------------------------------------


class Inspection:
    """A function of an operand's sharding as XLA chose it, which XLA calls while it compiles a program.

    It lives until the program is compiled; what it raised is raised then.
    """

    __slots__ = ("function", "error")

    def __init__(self, function: Callable[[Any], None]):
        self.function = function
        self.error: BaseException | None = None

    def __call__(self, hlo: Any) -> None:
        try:
            with thread.outside_traces():
                self.function(hlo)
        except BaseException as error:
            self.error = error

    def address(self) -> bytes:
        """Where XLA finds it, as a program's text says."""
        return _jax.encode_inspect_sharding_callback(self)

    def raise_error(self) -> None:
        if self.error is not None:
            raise as_runtime_error(self.error, "Error calling inspect_sharding") from None


# ---- calls ------------------------------------------------------------------------------------------


class _Calling(threading.local):
    """Whether this thread runs a function for a program."""

    depth = 0


_calling = _Calling()


def is_calling() -> bool:
    """Whether the caller was itself called by a program, which waits for it."""
    return _calling.depth > 0


@contextlib.contextmanager
def called_by_program() -> Iterator[None]:
    """What a program calls runs in this: outside of traces, and what it raises is put by for the program's caller."""
    _calling.depth += 1
    try:
        # The thread may be in the middle of a trace, which is none of the function's.
        with thread.outside_traces():
            yield
    except BaseException as error:
        raise HostCallError(_remember(error)) from error
    finally:
        _calling.depth -= 1


class HostCall:
    """A function of values as XLA calls it: arrays of the host in, a tuple of them out.

    `function` takes arrays, which live as long as the call, and gives a list of values. Empty arrays do not
    pass through XLA; with `ordered` a token is the first operand and result.
    """

    __slots__ = ("function", "ins", "outs", "ordered")

    def __init__(self, function: Callable, ins: Sequence[ShapedArray], outs: Sequence[ShapedArray], ordered: bool):
        self.function, self.ins, self.outs, self.ordered = function, tuple(ins), tuple(outs), ordered

    def __call__(self, *arrays):
        passed = iter(arrays[1:] if self.ordered else arrays)
        values = [next(passed) if a.size else np.empty(a.shape, a.dtype) for a in self.ins]
        with called_by_program():
            results = checked_results(self.function, values, self.outs)
        results = [r for r, a in zip(results, self.outs, strict=True) if a.size]
        return (None, *results) if self.ordered else tuple(results)


def checked_results(function: Callable, values: Sequence, outs: Sequence[ShapedArray]) -> list[np.ndarray]:
    """What a function returns for the values, as arrays of these types. Raises RuntimeError if it is something else."""
    results = function(*values)
    if len(results) != len(outs):
        raise RuntimeError(f"Mismatched number of outputs from callback. Expected: {len(outs)}, Actual: {len(results)}")
    arrays = []
    for i, (result, aval) in enumerate(zip(results, outs, strict=True)):
        array = np.asarray(result)
        dtypes.check_array_dtype(array.dtype)
        # XLA may call from a thread of its own, whose options are others.
        dtype = aval.dtype if array.dtype == aval.dtype else dtypes.canonicalize_dtype(array.dtype)
        for what, expected, actual in (("shape", aval.shape, array.shape), ("dtype", aval.dtype, dtype)):
            if expected != actual:
                raise RuntimeError(
                    f"Incorrect output {what} for return value #{i}: Expected: {expected}, Actual: {actual}"
                )
        arrays.append(array.astype(dtype, copy=False))
    return arrays


# ---- errors -----------------------------------------------------------------------------------------

_MARK = re.compile(r"\[host call (\d+)\]")
_numbers = itertools.count()
_raised: cache.BoundedDict = cache.BoundedDict(8)  # they hold what the frames of their tracebacks hold


class logged_failure:
    """Logs what a function of the host raises, since its caller may never see it."""

    __slots__ = ("_log", "_name")

    def __init__(self, log: Any, name: str):
        self._log, self._name = log, name

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, *rest: object) -> None:
        if kind is not None and issubclass(kind, Exception):
            self._log.error("jax.%s failed", self._name, exc_info=error)


class HostCallError(Exception):
    """Raised into XLA, which keeps no more than the text of the error that a function of the host has raised."""


def _remember(error: BaseException) -> str:
    number = next(_numbers)
    _raised[number] = error
    return f"{type(error).__name__}: {error} [host call {number}]"


def as_runtime_error(error: BaseException, when: str = "CpuCallback error calling callback") -> BaseException:
    """The error of a host function as the JaxRuntimeError that jax raises: its text is the traceback of that error."""
    if not isinstance(error, Exception):
        return error
    trace = filtered(error.__traceback__)
    text = "".join(format_exception(type(error), error, trace)).replace(f"\n{NOTE}", "").rstrip()
    return JaxRuntimeError(f"INTERNAL: {when}: {text}").with_traceback(trace)


_FFI_STAGE = re.compile(r"\[(prepare|initialize|instantiate|execute)\] ")
_targets: collections.deque[str] = collections.deque(maxlen=8)


def note_target(name: str) -> None:
    """Keeps the name of a function registered with XLA that programs call, for what is said when one fails."""
    if name not in _targets:
        _targets.append(name)


def _raise_with_targets(failure: JaxRuntimeError) -> None:
    """Raises a failure of a call as one that says which functions may have been meant, which XLA does not tell."""
    text = str(failure)
    if _targets and _FFI_STAGE.search(text):
        names = ", ".join(f"`{name}`" for name in _targets)
        same = {"__module__": JaxRuntimeError.__module__, "error_code_string": failure.error_code_string}
        kind = type("JaxRuntimeError", (JaxRuntimeError,), same)
        raise kind(f"{text}\nThe FFI target is {'one of ' * (len(_targets) > 1)}{names}") from None


def raise_host_error(failure: JaxRuntimeError) -> None:
    """Raises the error of the host function that made a program fail, or names the FFI target that did."""
    mark = _MARK.search(str(failure))
    error = _raised.get(int(mark[1])) if mark else None
    if error is not None:
        raise as_runtime_error(error) from None
    _raise_with_targets(failure)
