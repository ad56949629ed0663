"""The base of the benchmarks: the implementation under test, the clock, and the rows measured so far.

The command line selects the implementation: `jax` here is what `--impl` names, so that one source serves both.
"""

import argparse
import gc
import importlib
import os
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

parser = argparse.ArgumentParser()
parser.add_argument("--impl", default="jax", help="the module to measure: jax or minijax")
parser.add_argument("--groups", default="all", help="which groups of rows, with commas between them")
parser.add_argument("--quick", action="store_true", help="fewer repetitions, no large programs")
parser.add_argument("--out", help="where the results go as JSON; standard output if left out")
parser.add_argument(
    "--clock", default="wall", choices=["wall", "cpu"], help="cpu: the time that processes use, for a busy machine"
)
parser.add_argument("--turns", help="two file descriptors: one says when to go on, the other when to wait")
options = parser.parse_args()
_turns = tuple(map(int, options.turns.split(","))) if options.turns else None


def turn() -> None:
    """Lets the other side of a comparison measure, so that both run at the same speed of the machine."""
    if _turns:
        heard, said = _turns
        os.write(said, b".")
        os.read(heard, 1)


turn()

_began = time.perf_counter()
jax = importlib.import_module(options.impl)
jnp = importlib.import_module(options.impl + ".numpy")
IMPORT_SECONDS = time.perf_counter() - _began
for _name in ("random", "nn", "lax", "tree_util", "sharding"):
    importlib.import_module(f"{options.impl}.{_name}")
np = importlib.import_module("numpy")  # after the import that is measured

clock = time.process_time if options.clock == "cpu" else time.perf_counter
results: dict[str, dict] = {}
groups: dict[str, Callable[[], None]] = {}

_SCALES = {"us": 1e6, "ms": 1e3, "s": 1.0}


def group(function: Callable[[], None]) -> Callable[[], None]:
    """Decorator: the function measures the rows of the group that it is named after."""
    groups[function.__name__.rstrip("_")] = function
    return function


def put(row: str, values: list, unit: str, **notes: Any) -> None:
    """Records a row; seconds are converted to `us` or `ms`. Larger is better for `1/s`, smaller for the rest."""
    values = [v * _SCALES.get(unit, 1.0) for v in values]
    best = max(values) if unit == "1/s" else min(values)
    middle = statistics.median(values)
    results[row] = dict(best=float(f"{best:.6g}"), median=float(f"{middle:.6g}"), n=len(values), unit=unit, **notes)


def guard(row: str, measure: Callable[[], Any]) -> None:
    """Records an error as the row of a workload that fails, and continues."""
    try:
        measure()
    except Exception as error:
        first_line = str(error).split("\n")[0]
        results[row] = {"error": f"{type(error).__name__}: {first_line}"[:160]}


def leaves(tree: Any) -> Iterator[Any]:
    if isinstance(tree, list | tuple):
        for item in tree:
            yield from leaves(item)
    elif isinstance(tree, dict):
        for item in tree.values():
            yield from leaves(item)
    else:
        yield tree


def sync(tree: Any) -> Any:
    """Returns `tree` when its arrays are computed."""
    for x in leaves(tree):
        wait = getattr(x, "block_until_ready", None)
        if wait is not None:
            wait()
    return tree


def timed(row: str, function: Callable[[], Any], each: bool = False, unit: str = "us", **notes: Any) -> None:
    """Time of a call; with `each`, every call waits for its results."""
    guard(row, lambda: put(row, _time_of(function, each), unit, **notes))


def _time_of(function, each):
    budget, repeats = (0.02, 8) if options.quick else (0.06, 12)
    call = (lambda: sync(function())) if each else function
    sync(function())
    sync(function())
    start = clock()
    sync(call())
    once = max(clock() - start, 1e-7)
    count = max(1, int(budget / once)) if once < budget else 1
    if count > 3:  # a second calibration, warm
        start = clock()
        for _ in range(min(count, 50)):
            last = call()
        sync(last)
        once = max((clock() - start) / min(count, 50), 1e-8)
        count = max(1, min(int(budget / once), 200_000))
    values, collecting = [], gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        for _ in range(repeats):
            turn()
            start = clock()
            for _ in range(count):
                last = call()
            sync(last)
            values.append((clock() - start) / count)
    finally:
        if collecting:
            gc.enable()
    return values
