"""Launches loaded programs: from raw arrays to arrays."""

import contextlib
import math
import threading
from collections.abc import Callable, Generator, Sequence
from itertools import repeat, starmap
from operator import itemgetter
from typing import Any, NamedTuple

from jaxlib import _jax

from minijax.base import errors
from minijax.run.arrays.array import ArrayImpl, Signature, blank, collect_garbage, wrapped
from minijax.run.clients import jaxlib_versions
from minijax.run.programs import exhausted, host_calls, tokens
from minijax.run.programs.compile import JaxRuntimeError, Loaded
from minijax.run.programs.host_calls import is_calling

Request = tuple[Callable[[Sequence], Any], Sequence, Sequence]  # the launch of a program, its raw inputs, the handlers
_COLLECTED = 32  # launches until jaxlib may drop the tracebacks that it keeps
_scope: Any = getattr(_jax, "TracebackScope", contextlib.nullcontext)


def _launch_requests() -> Generator[Any, Request, None]:
    """Gives the raw results of each program that is sent to it, and ends if one fails."""
    with _scope():
        execute, raws, handlers = yield
        while True:
            for _ in range(_COLLECTED):
                results = execute(raws)
                del execute, raws  # the frame must keep no program and no input alive
                execute, raws, handlers = yield results.consume_with_handlers(handlers)
            collect_garbage()


class _Launching(threading.local):
    """The generator of the thread; `send` gives it a request and returns the raw results."""

    send: Callable[[Request], list]

    def __init__(self):
        self.begin_anew()

    def begin_anew(self) -> None:
        self.generator = _launch_requests()
        next(self.generator)
        self.send = self.generator.send

    def has_begun(self, error: BaseException) -> bool:
        """Returns whether the launch that failed with `error` had begun; if not, it is to be made without `send`."""
        if self.generator.gi_running:  # a finalizer, a signal handler or a callback launches within a launch
            return not isinstance(error, ValueError)
        self.begin_anew()
        return not isinstance(error, StopIteration)  # an interrupt had ended the generator


launching = _Launching()


def record_stacks() -> None:
    """Makes launches of this thread, and of threads that begin later, record the stack of their callers again."""
    global _scope
    _scope = contextlib.nullcontext
    launching.begin_anew()


_COLLECTIVES = ("all-reduce", "all-gather", "all-to-all", "collective-", "reduce-scatter")
_collectives_lock = threading.Lock()


class _ReadyToken:
    """A token that is ready."""

    def block_until_ready(self) -> None:
        pass


_last: list[Any] = [_ReadyToken()]  # the token of the latest program with collectives


def result_handler(sig: Signature) -> Any:
    """jaxlib's handler that wraps an output buffer as a raw array of this signature."""
    return jaxlib_versions.result_handler(sig, sig.native, committed=sig.committed)


class Effects(NamedTuple):
    """The effects of a program that require ordering with other programs, or waiting.

    Each effect in `ordered` has a token, a raw array with the signature `token`; `fresh()` makes the first one. For a
    program without ordered effects that must be waited for, `note` is called with the token of each run.
    """

    ordered: Sequence[Any] = ()
    token: Any = None
    fresh: Any = None
    note: Callable[[Any], None] | None = None


def _executor(loaded: Loaded, note: Callable[[Any], None] | None = None) -> Callable[[Sequence], Any]:
    """A function from raw inputs, which must not be deleted, to jaxlib's results; `note` gets each run's token."""
    execute = loaded.execute

    def execute_and_note(raws):
        results = execute(raws, with_tokens=True)
        note(results.consume_token())  # pyright: ignore[reportOptionalCall]
        return results

    def execute_exclusively(raws):
        # On CPU the partitions of two programs with collectives can starve each other of threads, and XLA then aborts
        # the process. Therefore only one program with collectives runs at a time.
        if is_calling():  # the program that waits for this callback may hold the lock
            return execute(raws) if note is None else execute_and_note(raws)
        with _collectives_lock:
            try:
                _last[0].block_until_ready()
            except JaxRuntimeError:
                pass  # the error is raised when that program's results are read
            results = execute(raws, with_tokens=True)
            _last[0] = token = results.consume_token()
        if note is not None:
            note(token)
        return results

    if len(loaded.devices) > 1 and loaded.devices[0].platform == "cpu":
        text = loaded.as_text()
        if any(f" {name}" in text for name in _COLLECTIVES):
            return execute_exclusively
    return execute if note is None else execute_and_note


def _launcher_with_effects(
    loaded: Loaded, signatures: Sequence[Signature], effects: Effects
) -> Callable[[Sequence], list]:
    execute, ordered, devices = loaded.execute, effects.ordered, loaded.devices
    handlers = [result_handler(sig) for sig in [*[effects.token] * len(ordered), *signatures]]

    def launch(raws):
        check_alive(raws)
        collect_garbage()
        before = tokens.take(ordered, devices, effects.fresh)
        try:
            results = execute([*before, *raws], with_tokens=True)
            tokens.note(results.consume_token())
            outs = results.consume_with_handlers(handlers)
        except JaxRuntimeError as error:
            tokens.forget(ordered)
            host_calls.raise_host_error(error)
            raise
        tokens.put(ordered, devices, outs[: len(ordered)])
        return outs[len(ordered) :]

    return launch


def bind(
    loaded: Loaded, signatures: Sequence[Signature], effects: Effects | None = None
) -> Callable[[Sequence], list[ArrayImpl]]:
    """A function from raw inputs to arrays with these signatures."""
    if effects is not None and effects.note is None:
        launch = _launcher_with_effects(loaded, signatures, effects)
        return lambda raws: [sig.wrap(raw, sig) for raw, sig in zip(launch(raws), signatures, strict=True)]
    return program_of(loaded, signatures, list, note=effects and effects.note)


# From the raw inputs to the result; the attribute `donates` is True if XLA may delete inputs.
Program = Any


def program_of(
    loaded: Loaded,
    signatures: Sequence[Signature],
    finish: Callable[[list], Any] | None,
    donates: bool = False,
    note: Callable[[Any], None] | None = None,
) -> Program:
    """A program whose result is `finish` of the list of its arrays; without `finish`, the only array.

    `note` gets the token of each run.
    """
    execute, handlers = _parts(loaded, signatures, note)
    is_plain = all(sig.wrap is wrapped for sig in signatures)
    if is_plain and finish is None:
        return _program(execute, handlers, signatures[0], None, donates)
    of_arrays = finish or itemgetter(0)

    def of_plain(results):  # the targets of the loop fill in the arrays
        arrays = [x for x, x._raw, x._sig in zip(_blanks, results, signatures)]  # noqa: B905
        return arrays if finish is list else of_arrays(arrays)

    def of_any(results):
        return of_arrays([sig.wrap(raw, sig) for raw, sig in zip(results, signatures, strict=True)])

    return _program(execute, handlers, None, of_plain if is_plain else of_any, donates)


_blanks = starmap(blank, repeat(()))
_LARGE = 1 << 32  # bytes of results that may exceed the memory


def _parts(loaded: Loaded, signatures: Sequence[Signature], note: Callable | None = None) -> tuple[Callable, list]:
    collect_garbage()  # drops what programs that are gone have left
    execute, handlers = _executor(loaded, note), [result_handler(sig) for sig in signatures]
    if len(loaded.devices) > 1:  # jaxlib would end the process for a deleted input
        execute = _refusing_deleted(execute)
    size = sum([math.prod(sig.shape) * sig.dtype.itemsize for sig in signatures])
    if size > _LARGE:
        execute = exhausted.refused(size, loaded) or execute
    return execute, handlers


def _program(
    execute: Callable, handlers: list, sig: Signature | None, finish: Callable | None, donates: bool = False
) -> Program:
    """A program whose result is `finish` of the raw results; without `finish`, the array with `sig`."""

    def program(raws):
        try:
            results = launching.send((execute, raws, handlers))
        except BaseException as error:
            results = _launched_again(error, execute, raws, handlers)
        if finish is not None:
            return finish(results)
        array = blank()
        array._raw = results[0]
        array._sig = sig
        return array

    program.donates = donates
    return program


def _launched_again(error: BaseException, *request: Any) -> list:
    """The results of a launch that did not begin; raises the cause of one that failed, or else its error."""
    if not launching.has_begun(error):
        execute, raws, handlers = request
        return execute(raws).consume_with_handlers(handlers)
    if isinstance(error, JaxRuntimeError):
        check_alive(request[1])
        host_calls.raise_host_error(error)
        exhausted.raise_explained(error, request[0])
    raise error


def launcher(loaded: Loaded, signatures: Sequence[Signature]) -> Callable[[list], list]:
    """A function from raw inputs, sharded as the program expects, to raw outputs with these signatures."""
    return _program(*_parts(loaded, signatures), None, list)


def check_alive(raws: Sequence[Any]) -> None:
    """Raises RuntimeError if an input was deleted or donated."""
    for raw in raws:
        if raw.is_deleted():
            kind = raw.aval
            text = kind.aval.str_short() if type(kind) is Signature else f"{kind.dtype}{list(kind.shape)}"
            raise errors.deleted(text) from None


def _refusing_deleted(execute: Callable) -> Callable:
    def execute_alive(raws):
        check_alive(raws)
        return execute(raws)

    return execute_alive


def picking(program: Program, places: Sequence[int], count: int, hidden: Sequence) -> Program:
    """The program as one of the raw arrays of `count` arguments, of which it reads those at `places`, and `hidden`."""
    if not hidden and tuple(places) == (*range(count),):
        return program

    def picked(raws):
        return program([*[raws[i] for i in places], *hidden])

    picked.donates = program.donates
    return picked


def check_donated(raws: Sequence[Any], donated: Sequence[int]) -> None:
    """Raises JaxRuntimeError if a donated input is passed to a program twice."""
    ids = [id(raw) for raw in raws]
    if len(set(ids)) == len(ids):
        return
    for n in donated:
        if ids.count(ids[n]) > 1:
            again = next(k for k, same in enumerate(ids) if same == ids[n] and k != n)
            raise JaxRuntimeError(
                "INVALID_ARGUMENT: Attempt to use a buffer that was previously donated in the same call to "
                f"Execute() (flattened argument {again}, first use: {n}). Toy example for this bug: "
                "`f(donate(a), a)`."
            )
