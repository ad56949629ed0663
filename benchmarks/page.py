#!/usr/bin/env python
"""Measures everything and writes benchmarks/README.md with its pictures.

    python benchmarks/page.py                                       # an hour on two cores
    python benchmarks/page.py --compared all.json --peers peers.json  # of what was measured before

The first runs `compare.py` for all groups, and `peers.py`, which says how to install the other libraries.
"""

import argparse
import datetime
import importlib
import importlib.metadata
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import exponents
import peers
import pictures
from floors import STAGES, counts, part_of

HERE = Path(__file__).resolve().parent
OURS, THEIRS = "minijax", "jax"

# The parts of the page in their order: title and what is measured.
PARTS = {
    "startup": ("Start", "A new process until its first results, with nothing cached on disk."),
    "cold": ("Whole programs, cold", "New processes that run one program of a kind, with nothing cached on disk."),
    "libraries": ("Programs on libraries", "New processes with flax, equinox, optax, blackjax; nothing on disk."),
    "restart": ("Second start", "A new process that finds compiled programs on disk."),
    "dispatch and pytree": ("Dispatch", "Calls of compiled functions, by kind of argument; trees."),
    "eager": ("Eager operations", "Operations called one by one, outside `jit`."),
    "index": ("Indexing", "Reads and updates of arrays, outside `jit`."),
    "random": ("Random numbers", "Keys and samples, outside `jit`."),
    "trace": ("Tracing", "From a Python function to a jaxpr."),
    "lower": ("Lowering", "From a jaxpr to a StableHLO module."),
    "compile": ("Compiling", "XLA's time: both give it nearly the same program."),
    "run": ("Running", "XLA's time again: compiled programs."),
    "transform, the others": ("Transformations", "`grad`, `vmap` and others of small functions, outside `jit`."),
    "transform, fresh closures": ("Fresh closures", "Control flow over functions new at each call: jax compiles anew."),
    "seed and train": ("Training loops", "Programs from begin to end."),
}  # fmt: skip
SHOWN = 24  # subjects of growth in the picture
MARGIN = 0.95  # a ratio below this counts as slower


def versions() -> str:
    """The versions of what was measured."""
    names = ("minijax", "jax", "jaxlib", "numpy")
    found = []
    for name in names:
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:  # it runs from its sources
            found.append(f"{name} {importlib.import_module(name).__version__}")
    return ", ".join([f"Python {platform.python_version()}", *found])


def label(row: str) -> str:
    """A row's name without its group and stage."""
    _, _, name = row.partition("/")
    start, _, stage = name.rpartition("/")
    return start if stage in STAGES and start else name


def ratios_by_part(rows: Sequence[Mapping]) -> dict[str, dict[str, Mapping]]:
    """Part -> row's label -> row, of the rows that both sides have."""
    out: dict[str, dict[str, Mapping]] = {}
    for row in rows:
        if row["best"] and counts(row["name"], row["unit"]):
            out.setdefault(part_of(row["name"]), {})[label(row["name"])] = row
    return out


def mean(rows: Mapping[str, Mapping]) -> float:
    return math.exp(statistics.fmean(math.log(row["best"]) for row in rows.values()))


def table(lines: Sequence[Sequence[str]]) -> str:
    """A Markdown table whose first line is its head."""
    head, *rest = (f"| {' | '.join(line)} |" for line in lines)
    return "\n".join([head, "|" + "---|" + "--:|" * (len(lines[0]) - 1), *rest]) + "\n"


def folded(title: str, text: str) -> str:
    return f"<details>\n<summary>{title}</summary>\n\n{text}\n</details>\n"


def part_text(folder: Path, part: str, rows: Mapping[str, Mapping]) -> str:
    """The section of a part: its mean, picture and table."""
    title, what = PARTS[part]
    values = {name: row["best"] for name, row in sorted(rows.items(), key=lambda item: -item[1]["best"])}
    value = pictures.number(mean(rows))
    note = f"times as fast as jax, {len(rows)} rows, geometric mean {value}"
    name = "".join(c if c.isalnum() else "-" for c in part).replace("--", "-")
    shown = pictures.save(folder, name, lambda theme: pictures.ratios(title, note, values, theme), f"{title}: {note}")
    lines = [("row", "unit", THEIRS, OURS, "ratio")]
    lines += [
        (f"`{name}`", row["unit"], f"{row['a']:.4g}", f"{row['b']:.4g}", f"{row['best']:.2f}")
        for name, row in rows.items()
    ]
    return f"## {title}\n\n{what} Mean: **{value}×**.\n\n{shown}\n{folded('All rows', table(lines))}"


def growth_text(folder: Path, pairs: Sequence[Sequence[Mapping]]) -> str:
    """The section on growth: the fitted powers and the largest sizes."""
    a, b = pairs[-1]
    theirs, ours = exponents.growths(a), exponents.growths(b)
    powers = {
        subject: {
            side: found[subject].exponent
            for side, found in ((OURS, ours), (THEIRS, theirs))
            if subject in found and found[subject].exponent is not None
        }
        for subject in ours
    }
    powers = {subject: series for subject, series in powers.items() if OURS in series}
    lines = [tuple(line) for line in exponents.lines_of(a, b)]
    lines[0] = ("subject", f"power, {THEIRS}", f"power, {OURS}", f"largest, {THEIRS}", f"largest, {OURS}")
    steep = sorted(s for s, series in powers.items() if series[OURS] > exponents.LINEAR)
    steepest = sorted(powers, key=lambda subject: -max(powers[subject].values()))[:SHOWN]
    note = f"power of the size, fitted to the largest sizes: 1 is linear, 2 quadratic; the {len(steepest)} steepest"
    drawn = {subject: {side: max(power, 0.0) for side, power in powers[subject].items()} for subject in steepest}
    draw = lambda theme: pictures.groups("Growth", note, drawn, theme, log=False)
    shown = pictures.save(folder, "growth", draw, f"Growth: {note}")
    text = (
        "How time and memory grow with the number of operations, of leaves of arguments, of devices, of layers, and "
        "with the depth of nesting: the power of the size that fits the three largest sizes. "
    )
    if steep:
        names = ", ".join(f"{s} ({powers[s][OURS]:.2f})" for s in steep)
        text += f"Steeper than {exponents.LINEAR} are {names}: {exponents.WHY}"
    return f"## Growth\n\n{text}\n\n{shown}\n{folded('All subjects', table(lines))}"


def peers_text(folder: Path, found: Mapping[str, Any]) -> str:
    """The section on other libraries: relative times, all times, and where others win."""
    relative: dict[str, dict[str, float]] = {}
    faster = []
    for program in peers.PROGRAMS:
        base = found[OURS][program].get("seconds")
        series = {n: p[program]["seconds"] / base for n, p in found.items() if base and "seconds" in p[program]}
        relative[program] = series
        faster += [f"{n} at {program} ({1 / r:.1f}×)" for n, r in series.items() if r < MARGIN and n != OURS]
    relative = {program: series for program, series in relative.items() if series}
    used = {e["version"]: None for p in found.values() for e in p.values() if " " in e.get("version", "")}
    note = "time of a call relative to minijax; shorter is faster"
    draw = lambda theme: pictures.groups("Other libraries", note, relative, theme, log=True, unit="×")
    shown = pictures.save(folder, "peers", draw, f"Other libraries: {note}")
    absent = {}
    for name, programs in found.items():
        for program, entry in programs.items():
            if "error" in entry:
                why = entry["error"].removeprefix("NotImplementedError: ")
                absent.setdefault(f"{name}: {why}", []).append(program)
    reasons = [f"- {why} ({'all' if len(on) == len(peers.PROGRAMS) else ', '.join(on)})" for why, on in absent.items()]
    text = (
        "The same programs, with the same numbers, in libraries for the CPU, each on one core in a process of its own, "
        f"compiled where the library can; their results agree ({', '.join(used)}). The "
        "table has microseconds of a call, and seconds until "
        "the first result in brackets."
    )
    text += f" Faster than minijax: {'; '.join(faster)}." if faster else ""
    ends = "Not run:\n\n" + "\n".join(reasons) + "\n" if reasons else ""
    return f"## Other libraries\n\n{text}\n\n{shown}\n{table(peers.lines_of(dict(found)))}\n{ends}"


def slower_text(parts: Mapping[str, Mapping[str, Mapping]]) -> str:
    """The rows at which jax is faster."""
    every = [(row["best"], PARTS[part][0], name) for part, rows in parts.items() for name, row in rows.items()]
    found = [entry for entry in every if entry[0] < MARGIN]
    if not found:
        return ""
    lines = [("row", "part", "ratio")] + [(f"`{n}`", part, f"{r:.2f}") for r, part, n in sorted(found)]
    return (
        f"## Where jax is faster\n\n{len(found)} of {len(every)} rows have a ratio below {MARGIN}. "
        "A NumPy array is put on the device from Python, where jax has C++ do it; compiling and running are XLA's own "
        f"time, which varies between runs.\n\n{folded('These rows', table(lines))}"
    )


def page(compared: Mapping[str, Any], found: Mapping[str, Any] | None, folder: Path) -> str:
    """The text of the page; its pictures are written below `folder`."""
    shown = folder / "pictures"
    parts = {part: rows for part, rows in ratios_by_part(compared["rows"]).items() if part in PARTS}
    parts = {part: parts[part] for part in PARTS if part in parts}
    means = {PARTS[part][0]: mean(rows) for part, rows in parts.items()}
    note = "times as fast as jax, geometric mean of each part"
    clock = ", in CPU time" if compared.get("clock") == "cpu" else ""
    today = f"{datetime.date.today():%d %B %Y}"
    draw = lambda theme: pictures.ratios("minijax against jax", note, means, theme)
    machine = f"{os.cpu_count()} cores, {platform.machine().replace('_', '-')}, CPU only"
    texts = [
        "# Benchmarks\n",
        f"How fast minijax is beside jax and other libraries: {machine}, {today}, {versions()}. "
        f"Both sides of a comparison run in processes of their own, by turns of hundredths of a second{clock}, so that "
        "other work on the machine slows both alike: ratios tell more than times. Above 1, minijax is faster. "
        "This page and its pictures are written by `benchmarks/page.py`.\n",
        pictures.save(shown, "parts", draw, f"minijax against jax: {note}"),
        *(part_text(shown, part, rows) for part, rows in parts.items()),
    ]
    if any(name.startswith("growth/") for name in compared["pairs"][-1][1]):
        texts.append(growth_text(shown, compared["pairs"]))
    if found:
        texts.append(peers_text(shown, found))
    texts.append(slower_text(parts))
    texts.append(
        "## To run it yourself\n\n```\npip install -e '.[test,peers]'\npython benchmarks/page.py\n```\n\n"
        "A part alone: `python benchmarks/compare.py --groups eager,index`, or `python benchmarks/peers.py`. "
        "[docs/benchmarks.md](../docs/benchmarks.md) says what each group measures.\n"
    )
    return "\n".join(texts)


def measured(command: Sequence[str]) -> Any:
    """What a program of this folder writes as JSON."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "found.json"
        subprocess.run([sys.executable, str(HERE / command[0]), *command[1:], "--json", str(out)])
        return json.loads(out.read_text())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compared", nargs="*", help="what `compare.py --json` wrote; later files add their groups")
    parser.add_argument("--peers", help="what `peers.py --json` wrote")
    parser.add_argument("--pairs", default="2", help="of runs of compare.py")
    parser.add_argument("--clock", default="wall", choices=["wall", "cpu"])
    parser.add_argument("--out", default=str(HERE), help="the folder of the page")
    options = parser.parse_args()
    if options.compared:
        documents = [json.loads(Path(name).read_text()) for name in options.compared]
    else:
        documents = [measured(["compare.py", "--pairs", options.pairs, "--clock", options.clock])]
    rows = {row["name"]: row for document in documents for row in document["rows"]}
    sides: tuple[dict, dict] = ({}, {})
    for document in documents:
        for side, found in zip(sides, document["pairs"][-1], strict=True):
            side.update(found)
    found = json.loads(Path(options.peers).read_text()) if options.peers else measured(["peers.py"])
    folder = Path(options.out)
    text = page({"rows": [*rows.values()], "pairs": [sides], "clock": options.clock}, found, folder)
    (folder / "README.md").write_text(text)


if __name__ == "__main__":
    main()
