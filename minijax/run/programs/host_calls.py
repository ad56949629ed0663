"""Host callbacks: the functions that XLA calls from programs, their arguments, results and errors."""

import collections
import contextlib
import itertools
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from traceback import format_exception
from typing import Any, NoReturn

import numpy as np
from jaxlib import _hlo, _jax

from minijax.base import cache, dtypes, thread
from minijax.base.source import NOTE, filtered
from minijax.hlo.custom_call import HostTransfers
from minijax.ir.types import ShapedArray

JaxRuntimeError = _jax.JaxRuntimeError
Buffer, ExecutionContext, ExecutionStage = _jax.ffi.Buffer, _jax.ffi.ExecutionContext, _jax.ffi.ExecutionStage

# ---- while a program is compiled --------------------------------------------------------------------


class Inspection:
    """A function that XLA calls during compilation with the sharding it chose for an operand.

    It is kept alive until the program is compiled; an error that it raised is raised then.
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
        """Its address as encoded in a module, where XLA reads it."""
        return _jax.encode_inspect_sharding_callback(self)

    def raise_error(self) -> None:
        if self.error is not None:
            raise as_runtime_error(self.error, "Error calling inspect_sharding") from None


# ---- calls ------------------------------------------------------------------------------------------


class _Calling(threading.local):
    """The number of host callbacks that this thread is running, one inside the other."""

    depth = 0


_calling = _Calling()


def is_calling() -> bool:
    """Returns whether this thread runs a host callback, for which a program waits."""
    return _calling.depth > 0


@contextlib.contextmanager
def host_callback_context() -> Iterator[None]:
    """Context manager for host callbacks: they run outside of traces, and their errors are stored for the caller."""
    _calling.depth += 1
    try:
        # The thread may be in the middle of a trace, which must not record the callback's operations.
        with thread.outside_traces():
            yield
    except BaseException as error:
        raise HostCallError(_remember(error)) from error
    finally:
        _calling.depth -= 1


class HostCall:
    """A host callback as XLA calls it: it takes host arrays and returns a tuple of host arrays.

    `function` takes arrays, which are valid only during the call, and returns a list of values. Empty arrays are not
    passed through XLA; with `ordered` the first operand and result is a token.
    """

    __slots__ = ("function", "ins", "outs", "ordered")

    def __init__(self, function: Callable, ins: Sequence[ShapedArray], outs: Sequence[ShapedArray], ordered: bool):
        self.function, self.ins, self.outs, self.ordered = function, tuple(ins), tuple(outs), ordered

    def __call__(self, *arrays):
        passed = iter(arrays[1:] if self.ordered else arrays)
        values = [next(passed) if a.size else np.empty(a.shape, a.dtype) for a in self.ins]
        with host_callback_context():
            results = checked_results(self.function, values, self.outs)
        results = [r for r, a in zip(results, self.outs, strict=True) if a.size]
        return (None, *results) if self.ordered else tuple(results)


def on_channels(call: HostTransfers, backend: Any) -> Any:
    """jaxlib's callback for a host function that a program calls by transfers."""
    function: HostCall = call.function
    first = (None,) if function.ordered else ()  # in place of a token

    def transferred(*arrays):
        values = arrays if any(a.size for a in function.ins) else ()
        results = function(*first, *values)[len(first) :]
        return results or tuple([np.zeros(a.shape, a.dtype) for a in call.receives])

    shapes = (
        [_hlo.Shape.array_shape(np.dtype(a.dtype), a.shape) for a in side] for side in (call.sends, call.receives)
    )
    return backend.make_python_callback_from_host_send_and_recv(transferred, *shapes, *call.channels)


def checked_results(function: Callable, values: Sequence, outs: Sequence[ShapedArray]) -> list[np.ndarray]:
    """Calls a function and returns its results as arrays. Raises RuntimeError if their types are not `outs`."""
    results = function(*values)
    if len(results) != len(outs):
        raise RuntimeError(f"Mismatched number of outputs from callback. Expected: {len(outs)}, Actual: {len(results)}")
    arrays = []
    for i, (result, aval) in enumerate(zip(results, outs, strict=True)):
        array = np.asarray(result)
        dtypes.check_array_dtype(array.dtype)
        # XLA may call from its own threads, in which thread-local options may differ.
        dtype = aval.dtype if array.dtype == aval.dtype else dtypes.canonicalize_dtype(array.dtype)
        for what, expected, actual in (("shape", aval.shape, array.shape), ("dtype", aval.dtype, dtype)):
            if expected != actual:
                raise RuntimeError(
                    f"Incorrect output {what} for return value #{i}: Expected: {expected}, Actual: {actual}. Return "
                    "what result_shape_dtypes of the callback says, or change that."
                )
        arrays.append(array.astype(dtype, copy=False))
    return arrays


# ---- errors -----------------------------------------------------------------------------------------

_MARK = re.compile(r"\[host call (\d+)\]")
_numbers = itertools.count()
_raised: cache.BoundedDict = cache.BoundedDict(8)  # few, since tracebacks keep the locals of their frames alive


class logged_failure:
    """Context manager that logs the error of a host callback, since its caller may never see it."""

    __slots__ = ("_log", "_name")

    def __init__(self, log: Any, name: str):
        self._log, self._name = log, name

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, *rest: object) -> None:
        if kind is not None and issubclass(kind, Exception):
            self._log.error("jax.%s failed", self._name, exc_info=error)


class HostCallError(Exception):
    """Raised to XLA in place of a host callback's error: XLA keeps only its text, which contains a number."""


def _remember(error: BaseException) -> str:
    number = next(_numbers)
    _raised[number] = error
    return f"{type(error).__name__}: {error} [host call {number}]"


def as_runtime_error(error: BaseException, when: str = "CpuCallback error calling callback") -> BaseException:
    """The JaxRuntimeError that jax raises for the error of a host callback: its text is that error's traceback."""
    if not isinstance(error, Exception):
        return error
    trace = filtered(error.__traceback__)
    text = "".join(format_exception(type(error), error, trace)).replace(f"\n{NOTE}", "").rstrip()
    return JaxRuntimeError(f"INTERNAL: {when}: {text}").with_traceback(trace)


_FFI_STAGE = re.compile(r"\[(prepare|initialize|instantiate|execute)\] ")
_targets: collections.deque[str] = collections.deque(maxlen=8)


def note_ffi_target(name: str) -> None:
    """Stores the name of an FFI target that programs call, for the error text if a call fails."""
    if name not in _targets:
        _targets.append(name)


def _raise_with_targets(failure: JaxRuntimeError) -> None:
    """Raises the failure of an FFI call with the names of the possible targets, which XLA's error lacks."""
    if _targets and _FFI_STAGE.search(str(failure)):
        names = ", ".join(f"`{name}`" for name in _targets)
        raise_with(failure, f"The FFI target is {'one of ' * (len(_targets) > 1)}{names}")


def add_advice(failure: JaxRuntimeError, advice: str) -> None:
    """Appends to the text of a failure."""
    failure._error_message = text = f"{failure}{advice}"
    failure.args = (text,)


def raise_with(failure: JaxRuntimeError, explanation: str) -> NoReturn:
    """Raises a failure again, with an explanation after XLA's text."""
    same = {"__module__": JaxRuntimeError.__module__, "error_code_string": failure.error_code_string}
    kind = type("JaxRuntimeError", (JaxRuntimeError,), same)
    raise kind(f"{failure}\n{explanation}") from None


def raise_host_error(failure: JaxRuntimeError) -> None:
    """Raises the error of the host callback that made a program fail, or names the FFI target that failed."""
    mark = _MARK.search(str(failure))
    error = _raised.get(int(mark[1])) if mark else None
    if error is not None:
        raise as_runtime_error(error) from None
    if "previously donated in the same call" in str(failure):
        add_advice(failure, " An array can be donated once in a call: pass `x.copy()` for one of the arguments.")
    _raise_with_targets(failure)
