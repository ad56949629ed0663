"""The spectral radius program, run as a user would run it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = str(ROOT / "notebooks" / "spectral_radius.py")


def _losses(folder: Path, *command: str) -> tuple[list[np.ndarray], str]:
    """The losses of both trainings, and what the program prints."""
    files = [folder / "losses", folder / "spread"]
    run = subprocess.run(
        [sys.executable, *command, PROGRAM, "--steps", "40", "--losses", str(files[0]), "--spread-losses",
         str(files[1]), "--picture", str(folder / "picture.png")],
        cwd=ROOT, capture_output=True, text=True, timeout=300, env={**os.environ, "XLA_FLAGS": ""},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    return [np.fromfile(file, np.float32) for file in files], run.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("ours")


@pytest.fixture(scope="module")
def ours(folder):
    return _losses(folder, "-m", "minijax")


def test_the_program_learns(ours, folder):
    both, printed = ours
    for losses in both:
        assert len(losses) == 40 and np.isfinite(losses).all()
        assert losses[-5:].mean() < losses[:5].mean() / 2
    np.testing.assert_allclose(*both, rtol=0.05)
    assert printed.count("compiling ... ") == 2 and printed.count("steps/s") >= 20
    assert "model at [[1, -1], [1, 1]]" in printed and "true: 1.4142" in printed
    pytest.importorskip("matplotlib")
    assert (folder / "picture.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.oracle
def test_its_losses_step_by_step_are_jax_s(ours, tmp_path):
    theirs, printed = _losses(tmp_path)
    for mine, expected in zip(ours[0], theirs, strict=True):
        assert mine.tobytes() == expected.tobytes()
    keep = [line for line in printed.splitlines() if not re.search("steps/s|compiling|picture", line)]
    assert [line for line in ours[1].splitlines() if line in keep] == keep and len(keep) == 5
