"""Helpers of the tests of robustness: threads that start together, processes, and the state of the library."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from minijax.base import cache, config
from minijax.base.thread import NEVER, thread
from minijax.ir import context, state

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 240  # seconds after which a test reports a deadlock


def together(work: Callable[[int], Any], count: int = 8) -> list:
    """The results of `work(i)` in each of `count` threads that start simultaneously; exceptions are results too."""
    start, results = threading.Barrier(count), [None] * count

    def run(i):
        start.wait()
        try:
            results[i] = work(i)
        except BaseException as error:
            results[i] = error

    threads = [threading.Thread(target=run, args=(i,), daemon=True) for i in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(PATIENCE)
    assert not any(t.is_alive() for t in threads), "deadlock"
    return results


def thread_state() -> list:
    """The parts of the calling thread's state that differ from the idle state."""
    found: list[Any] = []
    if not state.is_eager():
        found.append(state.thread.trace)
    if state.thread.axes:
        found.append(state.thread.axes)
    if context.current_context() != context.EMPTY:
        found.append(context.current_context())
    if config._thread.overrides or config._thread.saved:
        found.append((config._thread.overrides, config._thread.saved))
    return found


def left_behind(recursion_limit: int) -> list:
    """The parts of the state of the calling thread and the process that differ from the idle state."""
    found = thread_state()
    if sys.getrecursionlimit() != recursion_limit:
        found.append(f"recursion limit {sys.getrecursionlimit()}")
    running = [store._pending._running for store in list(cache._registry) if hasattr(store, "_pending")]
    # A mark whose lock is free has no effect: the next computation removes it.
    live = [{name: mark for name, mark in marks.copy().items() if mark.lock.locked()} for marks in running]
    return found + [marks for marks in live if marks] + ([cache._waiting] if cache._waiting else [])


def reset() -> None:
    """Resets the calling thread's state to the idle state."""
    thread.trace, thread.axes, thread.context = None, (), context.EMPTY
    thread.overrides.clear()
    thread.saved.clear()
    thread.current = thread.ready = NEVER


def run_python(program: str, *args: Any, timeout: float = 600) -> str:
    """The output of a program in its own process, which must exit with status 0."""
    env = dict(os.environ, PYTHONPATH=str(ROOT), JAX_PLATFORMS="cpu")
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, args)], env=env, capture_output=True, text=True, timeout=timeout
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout
