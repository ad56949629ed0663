"""What is measured, and how much faster than jax each part must be at least."""

from typing import NamedTuple

GROUPS = ["startup", "cold", "libraries", "restart", "dispatch", "pytree", "eager", "index", "transform", "stages",
          "chains", "random", "effects", "seed", "train", "pmap", "memory", "host", "pallas", "growth"]  # fmt: skip
DEVICE_GROUPS = ["device"]  # with --device alone

STAGES = ("trace", "lower", "compile", "run")
# A new closure at each call, which jax compiles again.
FRESH = ("eager_scan10", "eager_cond", "eager_while", "eager_fori", "jit_fresh_lambda")


class Floor(NamedTuple):
    """The least geometric mean of a part's ratios, and the least ratio of any of its rows."""

    mean: float
    row: float


FLOORS = {
    "startup": Floor(1.7, 1.2),
    "cold": Floor(1.6, 1.3),
    "libraries": Floor(1.7, 1.2),
    "restart": Floor(2.1, 1.5),
    "eager": Floor(1.8, 0.65),
    "index": Floor(8.5, 1.0),
    "transform, fresh closures": Floor(60.0, 40.0),
    "transform, the others": Floor(2.8, 0.9),
    "trace": Floor(5.0, 2.8),
    "lower": Floor(8.5, 5.0),
    "compile": Floor(0.93, 0.8),
    "effects": Floor(1.0, 0.8),
    "random": Floor(1.4, 0.85),
    "run": Floor(0.93, 0.8),
    "dispatch and pytree": Floor(1.03, 0.8),
    "seed and train": Floor(0.97, 0.8),
    "pallas, tracing": Floor(1.5, 1.0),
    "pallas, lowering": Floor(6.0, 3.0),
    "pallas, running": Floor(8.0, 1.0),
}
# A NumPy array is put on the device from Python, where jax has C++ do it.
ROW_FLOORS = {
    "startup/import": 2.0,
    "dispatch/jit_numpy_in": 0.5,
    "pallas/double_2048/run": 60.0,
    "pallas/matmul_128/run": 3.0,
}

_JOINED = {
    "dispatch": "dispatch and pytree",
    "pytree": "dispatch and pytree",
    "seed": "seed and train",
    "train": "seed and train",
}


def part_of(row: str) -> str:
    """The part that a row counts for."""
    group, _, name = row.partition("/")
    stage = name.rpartition("/")[2]
    if group in ("stages", "chains") and stage in STAGES:
        return stage
    if group == "pallas":
        return {"run": "pallas, running", "lower": "pallas, lowering"}.get(stage, "pallas, tracing")
    if group == "transform":
        return "transform, fresh closures" if name in FRESH else "transform, the others"
    return _JOINED.get(group, group)


def floor_of_row(row: str) -> float | None:
    """The least ratio of one row; None where its part has no floor."""
    floor = FLOORS.get(part_of(row))
    return ROW_FLOORS.get(row, floor and floor.row)


def counts(row: str, unit: str) -> bool:
    """Returns whether a row's ratio enters its part's mean: not counts, nor rows that repeat others."""
    name = row.rpartition("/")[2]
    return unit != "count" and "_per_" not in row and name != "import_in_process" and not name.startswith("ref_")
