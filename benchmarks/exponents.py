"""How measured times and sizes grow: a power of the size, fitted to the largest sizes of each subject."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

LINEAR = 1.15  # a power above it is not linear, but for the garbage collector's part
WHY = (
    "the gradient of nested `cond`s is a jaxpr of quadratic size, as in jax; their `vmap` copies inner branches once a "
    "level; and an operation below many transformations passes each of them."
)
FITTED = 3  # the largest sizes: at small ones the constant part of the time prevails


class Growth(NamedTuple):
    """How a subject grows on one side: the fitted power, and the largest size, its value and unit; or why it ended."""

    exponent: float | None
    size: int
    value: float | None
    unit: str
    error: str


def exponent_of(points: Sequence[tuple[int, float]]) -> float | None:
    """The power of the size that fits the largest sizes best; None for fewer than two points."""
    points = [(math.log(n), math.log(value)) for n, value in sorted(points)[-FITTED:] if value > 0]
    if len(points) < 2:
        return None
    mean_x, mean_y = (sum(column) / len(points) for column in zip(*points, strict=True))
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / sum((x - mean_x) ** 2 for x, _ in points)


def growths(rows: Mapping[str, Mapping]) -> dict[str, Growth]:
    """Subject -> how it grows, from the rows `growth/<subject>/<size>` of one side."""
    found: dict[str, dict[int, Mapping]] = {}
    for name, row in rows.items():
        group, _, rest = name.partition("/")
        subject, _, size = rest.rpartition("/")
        if group == "growth" and subject:
            found.setdefault(subject, {})[int(size)] = row
    out = {}
    for subject, sizes in found.items():
        points = {n: row for n, row in sizes.items() if "best" in row}
        errors = [f"{row['error']} at {n}" for n, row in sizes.items() if "error" in row and row["error"] != "absent"]
        last = max(points, default=0)
        value, unit = (points[last]["best"], points[last]["unit"]) if points else (None, "")
        fitted = exponent_of([(n, row["best"]) for n, row in points.items()])
        out[subject] = Growth(fitted, last, value, unit, errors[0] if errors else "")
    return out


def _texts(growth: Growth | None) -> tuple[str, str]:
    if growth is None:
        return "-", "-"
    power = "-" if growth.exponent is None else f"{growth.exponent:.2f}"
    reached = "-" if growth.value is None else f"{growth.value:.4g} {growth.unit} at {growth.size}"
    return power, f"{reached}; {growth.error.partition(':')[0]}" if growth.error else reached


def lines_of(a: Mapping[str, Mapping], b: Mapping[str, Mapping]) -> list[tuple[str, ...]]:
    """The lines of a table: each subject's power on both sides, and what its largest size took."""
    theirs, ours = growths(a), growths(b)
    lines = [("subject", "power a", "power b", "largest a", "largest b")]
    for subject in dict.fromkeys([*theirs, *ours]):
        (power_a, last_a), (power_b, last_b) = _texts(theirs.get(subject)), _texts(ours.get(subject))
        lines.append((subject, power_a, power_b, last_a, last_b))
    return lines
