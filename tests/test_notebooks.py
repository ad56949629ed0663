"""The programs in notebooks/ that import minijax, run as a user would run them, and as JAX programs."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent


def _run(program: Path, folder: Path, steps: int) -> tuple[np.ndarray, str]:
    """The losses of a program, and what it prints but for its speed and where its picture is."""
    losses = folder / "losses"
    run = subprocess.run(
        [sys.executable, str(program), "--steps", str(steps), "--losses", str(losses), "--picture",
         str(folder / "picture.png")],
        cwd=folder, capture_output=True, text=True, timeout=300,
        env={**os.environ, "XLA_FLAGS": "", "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    printed = [re.sub(r" +[\d.]+ steps/s", "", line) for line in run.stdout.splitlines()]
    return np.fromfile(losses, np.float32), "\n".join(line for line in printed if "picture" not in line)


def _compared(name: str, folder: Path, steps: int) -> tuple[np.ndarray, str]:
    """The results of a program with minijax, which are those with jax."""
    program = ROOT / "notebooks" / name
    ours = _run(program, folder, steps)
    (folder / name).write_text(re.sub(r"\bminijax\b", "jax", program.read_text()))
    theirs = _run(folder / name, folder, steps)
    assert ours[0].tobytes() == theirs[0].tobytes() and ours[1] == theirs[1]
    return ours


@pytest.mark.oracle
@pytest.mark.slow
def test_the_network_that_writes_learns_as_in_jax(tmp_path):
    losses, printed = _compared("text_lstm.py", tmp_path, 12)
    assert len(losses) == 12 and losses[-1] < losses[0] - 1
    assert "held out" in printed and "Return the " in printed


@pytest.mark.oracle
@pytest.mark.slow
def test_the_network_that_reads_digits_learns_as_in_jax(tmp_path):
    pytest.importorskip("sklearn")
    losses, printed = _compared("digits.py", tmp_path, 60)
    assert len(losses) == 60 and losses[-10:].mean() < losses[:10].mean() / 2
    assert float(printed.partition("right of those held out: ")[2].split()[0]) > 0.7
