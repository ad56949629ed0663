"""Launches loaded programs: from raw arrays to arrays."""

import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from minijax.run.arrays.array import ArrayImpl, Signature, collect_garbage
from minijax.run.clients import jaxlib_versions
from minijax.run.programs import host_calls, tokens
from minijax.run.programs.compile import JaxRuntimeError, Loaded
from minijax.run.programs.host_calls import is_calling

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


def launcher(
    loaded: Loaded, signatures: Sequence[Signature], effects: Effects | None = None
) -> Callable[[Sequence], list]:
    """A function from raw inputs, sharded as the program expects, to raw outputs with these signatures."""
    note = effects.note if effects is not None else None
    if effects is not None and note is None:
        return _launcher_with_effects(loaded, signatures, effects)
    execute, handlers = _executor(loaded, note), [result_handler(sig) for sig in signatures]
    checks = _must_check_inputs(loaded)

    # This closure keeps the program alive, which the weak cache finds as long as it can be run.
    def launch(raws):
        collect_garbage()
        try:
            if checks:
                loaded.check_alive(raws)
            return execute(raws).consume_with_handlers(handlers)
        except JaxRuntimeError as error:
            _explain(error, loaded, raws)
            raise

    return launch


def _must_check_inputs(loaded: Loaded) -> bool:
    """Returns whether to check inputs before a launch: on several devices jaxlib ends the process for a deleted one."""
    return len(loaded.devices) > 1


def _executor(loaded: Loaded, note: Callable[[Any], None] | None = None) -> Callable[[Sequence], Any]:
    """A function from raw inputs, which must not be deleted, to jaxlib's results; `note` gets each run's token."""
    execute = loaded.executable.execute_sharded

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
    execute, ordered, devices = loaded.executable.execute_sharded, effects.ordered, loaded.devices
    handlers = [result_handler(sig) for sig in [*[effects.token] * len(ordered), *signatures]]

    def launch(raws):
        loaded.check_alive(raws)
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


def _explain(error: JaxRuntimeError, loaded: Loaded, raws: Sequence[Any]) -> None:
    """Raises the cause of a program's failure, if it is known."""
    loaded.check_alive(raws)
    host_calls.raise_host_error(error)


def bind(
    loaded: Loaded, signatures: Sequence[Signature], effects: Effects | None = None
) -> Callable[[Sequence], list[ArrayImpl]]:
    """A function from raw inputs to arrays with these signatures."""
    launch, wrap = launcher(loaded, signatures, effects), _wrapper(signatures)
    return lambda raws: list(map(wrap, launch(raws), signatures))


def bind_call(
    loaded: Loaded, signatures: Sequence[Signature], raws_of: Callable[[Sequence], list], finish: Callable | None
) -> Callable[[Sequence], Any]:
    """A function of arrays that runs a program on `raws_of(arrays)` and applies `finish` to the results.

    Without `finish` there is one result, which is returned.
    """
    execute, handlers = _executor(loaded), [result_handler(sig) for sig in signatures]
    checks = _must_check_inputs(loaded)
    wrap, sig = _wrapper(signatures), signatures[0] if signatures else None

    # Most eager programs have one operand and one result. A function call takes 1 % of the time of such a call.
    def of_one(arrays):
        collect_garbage()
        raw = arrays[0]._raw
        try:
            if checks and raw.is_deleted():
                loaded.check_alive([raw])
            return wrap(execute([raw]).consume_with_handlers(handlers)[0], sig)
        except JaxRuntimeError as error:
            _explain(error, loaded, [raw])
            raise

    def to_one(arrays):
        collect_garbage()
        raws = raws_of(arrays)
        try:
            if checks:
                loaded.check_alive(raws)
            return wrap(execute(raws).consume_with_handlers(handlers)[0], sig)
        except JaxRuntimeError as error:
            _explain(error, loaded, raws)
            raise

    def to_several(arrays):
        collect_garbage()
        raws = raws_of(arrays)
        try:
            if checks:
                loaded.check_alive(raws)
            return finish(map(wrap, execute(raws).consume_with_handlers(handlers), signatures))
        except JaxRuntimeError as error:
            _explain(error, loaded, raws)
            raise

    if finish is not None:
        return to_several
    return of_one if raws_of is _raws_of_first else to_one


def _raws_of_first(arrays):
    return [arrays[0]._raw]


def raws_at(places: Sequence[int], count: int, hidden: Sequence = ()) -> Callable[[Sequence], list]:
    """A function from `count` arrays to the raw arrays of those at `places`, followed by the raw arrays `hidden`."""
    if hidden and len(places) == 1:
        (i,) = places
        return lambda arrays: [arrays[i]._raw, *hidden]
    if hidden:
        return lambda arrays: [*[arrays[i]._raw for i in places], *hidden]
    if tuple(places) == (0,):
        return _raws_of_first
    if len(places) == 1:
        (i,) = places
        return lambda arrays: [arrays[i]._raw]
    if len(places) == 2:
        i, j = places
        return lambda arrays: [arrays[i]._raw, arrays[j]._raw]
    if tuple(places) == (*range(count),):
        return lambda arrays: [x._raw for x in arrays]
    return lambda arrays: [arrays[i]._raw for i in places]


def _wrapper(signatures: Sequence[Signature]) -> Callable[[Any, Signature], Any]:
    if all(sig.wrap is ArrayImpl for sig in signatures):
        return ArrayImpl
    return lambda raw, sig: sig.wrap(raw, sig)


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
