"""The spectral radius program, run as a user would run it."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = str(ROOT / "notebooks" / "spectral_radius.py")


def _losses(folder: Path, *command: str) -> tuple[np.ndarray, str]:
    file = folder / "losses"
    run = subprocess.run(
        [sys.executable, *command, PROGRAM, "--steps", "40", "--losses", str(file), "--picture",
         str(folder / "curve.png")],
        cwd=ROOT, capture_output=True, text=True, timeout=300, env={**os.environ, "XLA_FLAGS": ""},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    return np.fromfile(file, np.float32), run.stdout


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    return _losses(tmp_path_factory.mktemp("ours"), "-m", "minijax")


def test_the_program_learns(ours):
    losses, printed = ours
    assert len(losses) == 40 and np.isfinite(losses).all()
    assert losses[-5:].mean() < losses[:5].mean()
    assert "model at [[1, -1], [1, 1]]" in printed and "1.4142135623730951" in printed


@pytest.mark.oracle
def test_its_losses_step_by_step_are_jax_s(ours, tmp_path):
    theirs, printed = _losses(tmp_path)
    assert ours[0].tobytes() == theirs.tobytes()
    keep = [line for line in printed.splitlines() if "step" not in line and "curve" not in line]
    assert [line for line in ours[1].splitlines() if line in keep] == keep
