"""Monitoring: events for listeners, and the log of tracing and compiling."""

import logging
import time
from collections.abc import Callable
from typing import Any

from minijax.base import config

# ---- events ------------------------------------------------------------------------------------------

_events: list[Callable[..., None]] = []
_durations: list[Callable[..., None]] = []
_spans: list[Callable[..., None]] = []
_scalars: list[Callable[..., None]] = []
_KINDS = (_events, _durations, _spans, _scalars)


def _notify(listeners: list, event: str, *values: Any, **kwargs: Any) -> None:
    for listener in listeners:
        listener(event, *values, **kwargs)


def is_observed() -> bool:
    """Returns whether there is a listener of any kind."""
    return any(_KINDS)


def record_event(event: str, **kwargs: str | int) -> None:
    """Reports an event to the listeners.

    Example:
        >>> jax.monitoring.register_event_listener(listener := lambda event, **kwargs: print(event, kwargs))
        >>> jax.monitoring.record_event("/docs/loaded", size=3)
        /docs/loaded {'size': 3}
        >>> jax.monitoring.unregister_event_listener(listener)
    """
    _notify(_events, event, **kwargs)


def record_event_duration_secs(event: str, duration: float, **kwargs: str | int) -> None:
    """Reports the duration of an event in seconds to the listeners.

    Example:
        >>> listener = lambda event, seconds, **kwargs: print(event, seconds)
        >>> jax.monitoring.register_event_duration_secs_listener(listener)
        >>> jax.monitoring.record_event_duration_secs("/docs/loaded", 0.5)
        /docs/loaded 0.5
        >>> jax.monitoring.unregister_event_duration_listener(listener)
    """
    _notify(_durations, event, duration, **kwargs)


def record_event_time_span(event: str, start_time: float, end_time: float, **kwargs: str | int) -> None:
    """Reports the start and the end of an event to the listeners.

    Example:
        >>> listener = lambda event, start, end, **kwargs: print(event, end - start)
        >>> jax.monitoring.register_event_time_span_listener(listener)
        >>> jax.monitoring.record_event_time_span("/docs/loaded", 10.0, 10.5)
        /docs/loaded 0.5
        >>> jax.monitoring.unregister_event_time_span_listener(listener)
    """
    _notify(_spans, event, start_time, end_time, **kwargs)


def record_scalar(event: str, value: float | int, **kwargs: str | int) -> None:
    """Reports a number to the listeners.

    Example:
        >>> listener = lambda event, value, **kwargs: print(event, value)
        >>> jax.monitoring.register_scalar_listener(listener)
        >>> jax.monitoring.record_scalar("/docs/loss", 0.25)
        /docs/loss 0.25
        >>> jax.monitoring.unregister_scalar_listener(listener)
    """
    _notify(_scalars, event, value, **kwargs)


def register_event_listener(callback: Callable[..., None]) -> None:
    """Registers `callback(event, **kwargs)` for each event.

    Example:
        >>> listener = lambda event, **kwargs: print(event, kwargs)
        >>> jax.monitoring.register_event_listener(listener)
        >>> jax.monitoring.record_event("/docs/saved")
        /docs/saved {}
        >>> jax.monitoring.unregister_event_listener(listener)
    """
    _events.append(callback)


def register_event_duration_secs_listener(callback: Callable[..., None]) -> None:
    """Registers `callback(event, seconds, **kwargs)` for each duration.

    Example:
        >>> timed = []
        >>> listener = lambda event, seconds, **kwargs: timed.append(event)
        >>> jax.monitoring.register_event_duration_secs_listener(listener)
        >>> _ = jax.jit(lambda x: x + 1)(1)
        >>> jax.monitoring.unregister_event_duration_listener(listener)
        >>> "/jax/core/compile/jaxpr_trace_duration" in timed
        True
    """
    _durations.append(callback)


def register_event_time_span_listener(callback: Callable[..., None]) -> None:
    """Registers `callback(event, start, end, **kwargs)` for each time span; times are those of `time.time`.

    Example:
        >>> listener = lambda event, start, end, **kwargs: print(event, end - start)
        >>> jax.monitoring.register_event_time_span_listener(listener)
        >>> jax.monitoring.record_event_time_span("/docs/saved", 1.0, 3.0)
        /docs/saved 2.0
        >>> jax.monitoring.unregister_event_time_span_listener(listener)
    """
    _spans.append(callback)


def register_scalar_listener(callback: Callable[..., None]) -> None:
    """Registers `callback(event, value, **kwargs)` for each scalar.

    Example:
        >>> listener = lambda event, value, **kwargs: print(event, value)
        >>> jax.monitoring.register_scalar_listener(listener)
        >>> jax.monitoring.record_scalar("/docs/size", 3)
        /docs/size 3
        >>> jax.monitoring.unregister_scalar_listener(listener)
    """
    _scalars.append(callback)


def _unregister(listeners: list, callback: Callable[..., None]) -> None:
    if callback not in listeners:
        raise AssertionError(f"{callback} is not registered as a listener of this kind")
    listeners.remove(callback)


def unregister_event_listener(callback: Callable[..., None]) -> None:
    """Undoes `register_event_listener`. Raises AssertionError if the callback is not registered.

    Example:
        >>> jax.monitoring.register_event_listener(print)
        >>> jax.monitoring.unregister_event_listener(print)
        >>> jax.monitoring.record_event("/docs/loaded")
    """
    _unregister(_events, callback)


def unregister_event_duration_listener(callback: Callable[..., None]) -> None:
    """Undoes `register_event_duration_secs_listener`. Raises AssertionError if the callback is not registered.

    Example:
        >>> listener = lambda event, seconds, **kwargs: print(event)
        >>> jax.monitoring.register_event_duration_secs_listener(listener)
        >>> jax.monitoring.unregister_event_duration_listener(listener)
        >>> jax.monitoring.record_event_duration_secs("/docs/loaded", 0.5)
    """
    _unregister(_durations, callback)


def unregister_event_time_span_listener(callback: Callable[..., None]) -> None:
    """Undoes `register_event_time_span_listener`. Raises AssertionError if the callback is not registered.

    Example:
        >>> jax.monitoring.register_event_time_span_listener(print)
        >>> jax.monitoring.unregister_event_time_span_listener(print)
        >>> jax.monitoring.record_event_time_span("/docs/loaded", 0.0, 1.0)
    """
    _unregister(_spans, callback)


def unregister_scalar_listener(callback: Callable[..., None]) -> None:
    """Undoes `register_scalar_listener`. Raises AssertionError if the callback is not registered.

    Example:
        >>> jax.monitoring.register_scalar_listener(print)
        >>> jax.monitoring.unregister_scalar_listener(print)
        >>> jax.monitoring.record_scalar("/docs/loss", 0.5)
    """
    _unregister(_scalars, callback)


def clear_event_listeners() -> None:
    """Removes all listeners.

    Example:
        >>> heard = []
        >>> jax.monitoring.register_event_listener(lambda event, **kwargs: heard.append(event))
        >>> jax.monitoring.clear_event_listeners()
        >>> jax.monitoring.record_event("/mine/happened")
        >>> heard
        []
    """
    for listeners in _KINDS:
        listeners.clear()


# ---- the log -----------------------------------------------------------------------------------------

# The loggers have the same names as in jax, since programs look them up by name.
_dispatch = logging.getLogger("jax._src.dispatch")
_programs = logging.getLogger("jax._src.interpreters.pxla")
_tracing = logging.getLogger("jax._src.interpreters.partial_eval")
_checkpoints = logging.getLogger("jax._src.ad_checkpoint")
_compiler = logging.getLogger("jax._src.compiler")


_logged = logging.Formatter("{levelname}:{asctime}:{name}:{lineno}: {message}", style="{")
_handlers: list[tuple[logging.Logger, logging.Handler]] = []
_debugged: list[tuple[logging.Logger, logging.Handler, int]] = []


def _write_to_stderr(logger: logging.Logger, level: int = logging.NOTSET) -> logging.Handler:
    handler = logging.StreamHandler()
    handler.setFormatter(_logged)
    handler.setLevel(level)
    logger.addHandler(handler)
    return handler


@config.logging_level.on_change
def _log_from(level: str | None, thread_only: bool) -> None:
    """Writes the library's log messages of at least this level to stderr, for all threads."""
    if thread_only:
        return
    while _handlers:
        logger, handler = _handlers.pop()
        logger.removeHandler(handler)
    for logger in map(logging.getLogger, ("jax", "jaxlib")):
        if level is not None:
            logger.setLevel(level)
            if level != "NOTSET":
                _handlers.append((logger, _write_to_stderr(logger)))


@config.debug_log_modules.on_change
def _debug(modules: str | None, thread_only: bool) -> None:
    """Writes all log messages of the given modules to stderr, for all threads."""
    if thread_only:
        return
    while _debugged:
        logger, handler, level = _debugged.pop()
        logger.removeHandler(handler)
        logger.setLevel(level)
    for logger in map(logging.getLogger, filter(None, (modules or "").split(","))):
        _debugged.append((logger, _write_to_stderr(logger, logging.DEBUG), logger.level))
        logger.setLevel(logging.DEBUG)


if config.logging_level.default != "NOTSET":
    _log_from(config.logging_level.default, False)
_debug(config.debug_log_modules.default, False)


def log_program(name: str, avals: Any, mapping: Any) -> None:
    """Logs that a program is being compiled."""
    text = "Compiling %s with global shapes and types %s. Argument mapping: %s."
    _programs.log(_level(), text, name, tuple(avals), tuple(mapping))


def _level() -> int:
    return logging.WARNING if config.log_compiles.value else logging.DEBUG


def log_cache_miss(message: str) -> None:
    """Logs why a function is traced."""
    _tracing.log(logging.WARNING, message)


def log_saved_values(message: str) -> None:
    """Logs which values a checkpointed function saves."""
    _checkpoints.log(_level_of_saved(), message)


def logs_saved_values() -> bool:
    """True if the messages of `log_saved_values` are logged."""
    return _checkpoints.isEnabledFor(_level_of_saved())


def _level_of_saved() -> int:
    return logging.WARNING if config.log_checkpoint_residuals.value else logging.DEBUG


def log_jaxpr_dump(name: str, folder: str) -> None:
    """Logs that a jaxpr is written to a file."""
    logging.getLogger().info("Dumping jaxpr for %s to %s.", name, folder)


def log_program_dump(file: str) -> None:
    """Logs that a module has been written to a file."""
    _compiler.info("Dumped the module to %s.", file)


class timed:
    """Context manager for one step of compilation: reports its duration to listeners and the log."""

    __slots__ = ("_step", "_name", "_started")

    def __init__(self, step: tuple[str, str], name: str):
        self._step, self._name = step, name

    def __enter__(self) -> None:
        self._started = time.time()
        if _scalars:
            record_scalar(self._step[0], self._started, fun_name=self._name)

    def __exit__(self, *exception: object) -> None:
        event, text = self._step
        ended = time.time()
        if _durations:
            record_event_duration_secs(event, ended - self._started, fun_name=self._name)
        if _spans:
            record_event_time_span(event, self._started, ended, fun_name=self._name)
        _dispatch.log(_level(), text, self._name, ended - self._started)


TRACING = "/jax/core/compile/jaxpr_trace_duration", "Finished tracing %s for jit in %.9f sec"
LOWERING = (
    "/jax/core/compile/jaxpr_to_mlir_module_duration",
    "Finished jaxpr to MLIR module conversion %s in %.9f sec",
)
COMPILING = "/jax/core/compile/backend_compile_duration", "Finished XLA compilation of %s in %.9f sec"

# ---- the programs on disk ----------------------------------------------------------------------------

CACHE_REQUEST = "/jax/compilation_cache/compile_requests_use_cache"
CACHE_TASK = "/jax/compilation_cache/tasks_using_cache"
CACHE_DISABLED = "/jax/compilation_cache/task_disabled_cache"
CACHE_MISS = "/jax/compilation_cache/cache_misses"  # reported when an entry is written


def log_disk_cache_hit(name: str, key: str, compiled: float, retrieved: float) -> None:
    """Logs that a program was loaded from disk in `retrieved` seconds; compiling it took `compiled` seconds."""
    record_event("/jax/compilation_cache/cache_hits")
    record_event_duration_secs("/jax/compilation_cache/compile_time_saved_sec", compiled - retrieved)
    record_event_duration_secs("/jax/compilation_cache/cache_retrieval_time_sec", retrieved)
    _compiler.log(_level(), "Persistent compilation cache hit for '%s' with key '%s'", name, key)


def log_disk_cache_miss(name: str, key: str) -> None:
    """Logs that no program with that key was on disk: a warning if misses are explained and the user set a folder."""
    is_explained = config.explain_cache_misses.value and config.compilation_cache_dir.value is not None
    level = logging.WARNING if is_explained else _level()
    _compiler.log(level, "PERSISTENT COMPILATION CACHE MISS for '%s' with key '%s'", name, key)
