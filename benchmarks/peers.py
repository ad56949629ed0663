#!/usr/bin/env python
"""Runs the same programs with several array libraries, by turns, and compares times and results.

    pip install -e '.[peers]'
    python benchmarks/peers.py --rounds 3 --json peers.json
    python benchmarks/peers.py --libraries "minijax;NumPy"

Each library runs in a process of its own on one core, compiled where it can be; the best of all rounds counts. A
library that is not installed, or lacks what a program needs, is left out there. Fails if results differ.
"""

import argparse
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from peer_programs import LIBRARIES, PROGRAMS

HERE = Path(__file__).resolve().parent
FIRST = "minijax"  # whose results the others must have
TOLERANCE = 2e-3  # of sums of float32, relative to the largest result

Found = dict[str, Any]


def run(name: str, python: str, seconds: float) -> Found:
    """What one process of a library measured."""
    env = dict(os.environ, PEERS_SECONDS=str(seconds), PEERS_CORE="1", JAX_ENABLE_COMPILATION_CACHE="false", DEV="CPU")
    env["PYTHONPATH"] = str(HERE.parent) if name in ("minijax", "jax") else ""
    command = [python, str(HERE / "peer_programs.py"), name]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    if done.returncode:
        return {"error": done.stderr.strip().split("\n")[-1][:160]}
    return json.loads(done.stdout.strip().split("\n")[-1])


def joined(rounds: list[Found]) -> Found:
    """The best times of all rounds of one library, by program."""
    if "error" in rounds[0]:
        return dict.fromkeys(PROGRAMS, rounds[0])
    out = {}
    for program in PROGRAMS:
        ran = [found[program] for found in rounds if "seconds" in found.get(program, {})]
        out[program] = rounds[0][program] if not ran else {
            **ran[0],
            "first": min(r["first"] for r in ran),
            "seconds": min(r["seconds"] for r in ran),
        }  # fmt: skip
    return out


def differing(found: dict[str, Found]) -> list[str]:
    """The libraries whose results are not those of the first, with the program."""
    out = []
    for program in PROGRAMS:
        expected = found[FIRST][program].get("results", [])
        scale = max(map(abs, expected), default=0) * TOLERANCE
        for name, programs in found.items():
            results = programs[program].get("results", expected)
            same = len(results) == len(expected)
            same = same and all(map(lambda x, y: math.isclose(x, y, abs_tol=scale), results, expected))
            if not same:
                out.append(f"{name}, {program}: {results} instead of {expected}")
    return out


def text_of(entry: Found) -> str:
    """Microseconds of a call, and seconds of the first; or a dash where it did not run."""
    if "error" in entry:
        return "-"
    return f"{entry['seconds'] * 1e6:,.0f} ({entry['first']:.2f})"


def lines_of(found: dict[str, Found]) -> list[tuple[str, ...]]:
    """The lines of a table: a row a program, a column a library that ran any."""
    names = [name for name, programs in found.items() if any("seconds" in entry for entry in programs.values())]
    return [("µs a call (s of the first)", *names)] + [
        (program, *(text_of(found[name][program]) for name in names)) for program in PROGRAMS
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--libraries", default=";".join(LIBRARIES), help="names with `;` between them")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.5, help="for the repeated calls of each program")
    parser.add_argument("--python", default=sys.executable, help="the Python that has the other libraries")
    parser.add_argument("--json", help="a file for the results")
    options = parser.parse_args()
    names = options.libraries.split(";")
    rounds: dict[str, list[Found]] = {name: [] for name in names}
    for _ in range(options.rounds):
        for name in names:
            python = sys.executable if name in ("minijax", "jax") else options.python
            rounds[name].append(run(name, python, options.seconds))
            print(f"{name}: {len(rounds[name])} of {options.rounds}", file=sys.stderr, flush=True)
    found = {name: joined(ran) for name, ran in rounds.items()}
    if options.json:
        Path(options.json).write_text(json.dumps(found, indent=1))
    for line in lines_of(found):
        print(" | ".join(line))
    for name, programs in found.items():
        for program, entry in programs.items():
            if "error" in entry:
                print(f"{name}, {program}: {entry['error']}")
    wrong = differing(found) if FIRST in found else []
    print("\n".join(wrong))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
