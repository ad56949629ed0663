#!/usr/bin/env python
"""Measures two implementations alternately in one run, and prints the comparison.

    python benchmarks/compare.py --a jax --b minijax --pairs 3 --groups dispatch,eager,stages
    python benchmarks/compare.py --a jax --b jax --pairs 3 --quick       # itself: the ratios are about 1
    python benchmarks/compare.py --device --json device.json --picture device.png

Each run is a process of its own, so that the two are never loaded together. The two processes of a pair
alternate every few hundredths of a second, so that changes of the machine's speed affect both equally.
`--device` measures what the attached devices reach: products, training steps, collectives, copies, with their
operations and bytes per second as shares of what the makers publish.
Disk caches are off on both sides except in the group `restart`, where both are warm.
A ratio is A/B for times and sizes, B/A for rates: above 1, B is better. `best` compares the best values of
all pairs, which are least disturbed by other work on the machine; the floors apply to it.
Fails if B lacks a row that A has, if a program of B has more instructions than that of A after optimization,
or, with `--floors`, if a ratio is below its floor.
"""

import argparse
import contextlib
import datetime
import json
import math
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import limits
from floors import DEVICE_GROUPS, FLOORS, GROUPS, counts, floor_of_row, part_of

HERE = Path(__file__).resolve().parent
ABSENT = {"error": "absent"}


class Row(NamedTuple):
    """One value on both sides: the best of each, and the ratio of each pair."""

    name: str
    unit: str
    a: float | None
    b: float | None
    ratios: list[float]
    best: float | None
    errors: tuple[str, str]

    @property
    def lost(self) -> bool:
        return self.a is not None and self.b is None

    @property
    def grown(self) -> bool:
        """Returns whether B's program has more instructions than A's."""
        return self.name.endswith("/hlo_instructions") and None not in (self.a, self.b) and self.b > self.a


class Side:
    """A process that measures a group, and continues when it is its turn."""

    def __init__(self, options: argparse.Namespace, side: str, group: str, out: Path):
        env = dict(os.environ, JAX_ENABLE_COMPILATION_CACHE="false")
        env.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its byte code
        path = getattr(options, f"path_{side}")
        if path:
            env["PYTHONPATH"] = path + os.pathsep + env.get("PYTHONPATH", "")
        self.out = out
        (heard, self._say), (self._hear, said) = os.pipe(), os.pipe()
        command = [getattr(options, f"python_{side}"), str(HERE / "frontend.py"), "--out", str(out),
                   "--impl", getattr(options, side), "--groups", group, "--clock", options.clock,
                   "--turns", f"{heard},{said}"]  # fmt: skip
        command += ["--quick"] if options.quick else []
        self._process = subprocess.Popen(
            command, env=env, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL, pass_fds=(heard, said)
        )
        os.close(heard)
        os.close(said)
        self.alive = bool(os.read(self._hear, 1))

    def take_turn(self) -> None:
        """Lets the process run until its next turn, or its end."""
        with contextlib.suppress(BrokenPipeError):  # it was killed while it waited
            os.write(self._say, b".")
        self.alive = bool(os.read(self._hear, 1))

    def rows(self) -> dict[str, dict]:
        """The measured rows, after the process has ended; empty if it died."""
        os.close(self._say)
        os.close(self._hear)
        ended = self._process.wait()
        return json.loads(self.out.read_text())["results"] if ended == 0 else {}


def measure(options: argparse.Namespace, order: str, group: str) -> dict[str, dict[str, dict]]:
    """The rows of a group on each side; the two alternate every few hundredths of a second."""
    with tempfile.TemporaryDirectory() as folder:
        sides = {side: Side(options, side, group, Path(folder) / f"{side}.json") for side in order}
        while any(side.alive for side in sides.values()):
            for side in sides.values():
                if side.alive:
                    side.take_turn()
        return {name: side.rows() for name, side in sides.items()}


def alternate(options: argparse.Namespace) -> list[tuple[dict, dict]]:
    """The rows of A and of B, pair by pair."""
    pairs: list[tuple[dict, dict]] = [({}, {}) for _ in range(options.pairs)]
    everything = DEVICE_GROUPS if options.device else GROUPS
    for group in everything if options.groups == "all" else options.groups.split(","):
        for i, (a, b) in enumerate(pairs):
            found = measure(options, "ab" if i % 2 == 0 else "ba", group)
            a.update(found["a"])
            b.update(found["b"])
        print(f"{group}: {options.pairs} pairs", file=sys.stderr, flush=True)
    return pairs


def ratio(a: float | None, b: float | None, unit: str) -> float | None:
    if a is None or b is None or a <= 0 or b <= 0:
        return None
    return b / a if unit == "1/s" else a / b


def row_of(name: str, pairs: Sequence[tuple[dict, dict]]) -> Row:
    """Combines the values of all pairs for one row."""
    sides = [[pair[i].get(name, ABSENT) for pair in pairs] for i in range(2)]
    unit = next((r["unit"] for side in sides for r in side if "unit" in r), "")
    choose = max if unit == "1/s" else min
    a, b = (choose([r["best"] for r in side if "best" in r], default=None) for side in sides)
    ratios = [ratio(x.get("best"), y.get("best"), unit) for x, y in zip(*sides, strict=True)]
    errors = tuple(next((r["error"] for r in side if "error" in r), "") for side in sides)
    return Row(name, unit, a, b, [r for r in ratios if r is not None], ratio(a, b, unit), errors)


def text_of(value: float | None, error: str) -> str:
    if value is None:
        return f"ERR {error[:40]}"
    return f"{value:.0f}" if value >= 1000 else f"{value:.4g}"


def print_table(lines: Sequence[Sequence[str]], left: Sequence[int], markdown: bool) -> None:
    """A table whose first line is its head; the columns `left` are aligned to the left."""
    if markdown:
        rule = "|" + "---|" * len(lines[0])
        texts = [f"| {' | '.join(line)} |" for line in lines]
        print("\n".join([texts[0], rule, *texts[1:]]))
        return
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = [c.ljust(w) if i in left else c.rjust(w) for i, (c, w) in enumerate(zip(line, widths, strict=True))]
        print("  ".join(cells).rstrip())


def print_rows(rows: Sequence[Row], options: argparse.Namespace) -> None:
    lines = [("row", f"A={options.a}", f"B={options.b}", "unit", "median", "best", "range")]
    for r in rows:
        found = r.ratios and r.best
        median = f"{statistics.median(r.ratios):.2f}" if found else "-"
        spread = f"{min(r.ratios):.2f}..{max(r.ratios):.2f}" if found else ""
        lines.append((r.name, text_of(r.a, r.errors[0]), text_of(r.b, r.errors[1]), r.unit, median,
                      f"{r.best:.2f}" if found else "-", spread))  # fmt: skip
    print_table(lines, (0, 3), options.markdown)


def part_lines(rows: Sequence[Row]) -> tuple[list[tuple[str, ...]], list[str]]:
    """A line for each part, and the floors that do not hold."""
    parts: dict[str, list[Row]] = {}
    for r in rows:
        if r.best is not None and counts(r.name, r.unit):
            parts.setdefault(part_of(r.name), []).append(r)
    lines = [("part", "rows", "mean", "floor", "worst", "floor", "holds", "worst row")]
    broken = []
    for part, found in parts.items():
        mean = math.exp(statistics.fmean(math.log(r.best) for r in found))
        worst = min(found, key=lambda r: r.best)
        floor = FLOORS.get(part)
        low = [f"{r.name} {r.best:.2f} < {floor_of_row(r.name)}" for r in found if (floor_of_row(r.name) or 0) > r.best]
        if floor is not None and mean < floor.mean:
            low.append(f"{part} {mean:.2f} < {floor.mean}")
        broken += low
        texts = ("-", "-", "-") if floor is None else (f"{floor.mean}", f"{floor.row}", "no" if low else "yes")
        lines.append(
            (part, f"{len(found)}", f"{mean:.2f}", texts[0], f"{worst.best:.2f}", texts[1], texts[2], worst.name)
        )
    return lines, broken


def report(rows: Sequence[Row], options: argparse.Namespace) -> bool:
    """Prints the results; returns whether they pass."""
    print_rows(rows, options)
    lines, broken = part_lines(rows)
    print("\nbest over the pairs, geometric means by part (above 1: B is better)")
    print_table(lines, (0, 7), options.markdown)
    failures = [f"lost by {options.b}: {r.name} ({r.errors[1]})" for r in rows if r.lost]
    failures += [f"more instructions: {r.name}, {r.b:.0f} > {r.a:.0f}" for r in rows if r.grown]
    failures += [f"below the floor: {text}" for text in broken] if options.floors else []
    if all(r.best is None for r in rows):
        failures.append("no row was measured on both sides")
    print("\n".join(["", *failures] if failures else []))
    return not failures


def kind_of(rows: dict[str, dict]) -> str:
    """The kind of the devices of a run with --device."""
    return rows.get("device/count", {}).get("kind", "")


def processor() -> str:
    """The name of this machine's processor, and how many there are."""
    cpuinfo = Path("/proc/cpuinfo")
    named = re.search(r"model name\s*: (.*)", cpuinfo.read_text()) if cpuinfo.exists() else None
    return f"{os.cpu_count()} × {named[1] if named else platform.processor() or platform.machine()}"


def print_reached(pairs: Sequence[tuple[dict, dict]], options: argparse.Namespace) -> None:
    """Prints what the devices reached on both sides in the last pair."""
    kind = kind_of(pairs[-1][1])
    a, b = (limits.reached(rows, kind) for rows in pairs[-1])
    print(f"\n{kind}: operations and bytes per second, a: {options.a}, b: {options.b}")
    print_table(limits.lines_of(a, b), (0, 1), options.markdown)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for side, impl in (("a", "jax"), ("b", "minijax")):
        parser.add_argument(f"--{side}", default=impl)
        parser.add_argument(f"--python-{side}", default=sys.executable)
        parser.add_argument(f"--path-{side}", default="" if side == "a" else str(HERE.parent))
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--groups", default="all", help=", ".join(GROUPS))
    parser.add_argument("--quick", action="store_true", help="fewer repetitions, no large programs")
    parser.add_argument("--clock", default="wall", choices=["wall", "cpu"])
    parser.add_argument("--floors", action="store_true", help="fail if a floor does not hold")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--device", action="store_true", help="what the attached devices reach, instead of all groups")
    parser.add_argument("--picture", help="a file for a picture with a bar for each part, or row of --device")
    parser.add_argument("--json", help="a file for every run and every row")
    return parser.parse_args()


def main() -> None:
    options = parse()
    pairs = alternate(options)
    names = dict.fromkeys(name for pair in pairs for rows in pair for name in rows)
    rows = [row_of(name, pairs) for name in names]
    if options.json:
        found: Any = {"pairs": pairs, "rows": [r._asdict() for r in rows]}
        Path(options.json).write_text(json.dumps(found, indent=1))
    passed = report(rows, options)
    if options.device:
        print_reached(pairs, options)
    if options.picture:
        shown = {r.name.partition("/")[2]: r.best for r in rows if options.device and r.best and r.unit != "count"}
        means = {line[0]: float(line[2]) for line in part_lines(rows)[0][1:]}
        title = f"{kind_of(pairs[-1][1]) or processor()}, {datetime.date.today()}"
        limits.draw(shown or means, (options.a, options.b), title, Path(options.picture))
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
