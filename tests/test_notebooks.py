"""The programs in notebooks/ that import minijax, run as a user would run them, and as JAX programs."""

import importlib
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


# ---- notebooks with outputs ---------------------------------------------------------------------------

NOTEBOOKS = sorted(path.stem for path in (ROOT / "notebooks").glob("*.ipynb"))
NUMBER = re.compile(r"(?<![\w.])-?\d+\.\d*(?:e[+-]?\d+)?")


@pytest.fixture
def build(monkeypatch):
    """notebooks/build.py."""
    for needed in ("jupytext", "nbclient", "ipykernel", "matplotlib"):
        pytest.importorskip(needed)
    monkeypatch.syspath_prepend(str(ROOT / "notebooks"))
    for name in ("XLA_FLAGS", "MINIJAX_AS_JAX"):
        monkeypatch.delenv(name, raising=False)
    return importlib.import_module("build")


def _agree(shown: str, written: str) -> bool:
    """Whether two texts are equal; another machine's numbers may be another in the third digit."""
    if NUMBER.sub("_", shown).split() != NUMBER.sub("_", written).split():
        return False
    pairs = zip(NUMBER.findall(shown), NUMBER.findall(written), strict=True)
    return all(np.isclose(float(a), float(b), rtol=2e-3, atol=2e-4) for a, b in pairs)


def test_every_notebook_is_made_from_its_cells(build):
    assert NOTEBOOKS == sorted(build.NOTEBOOKS)


@pytest.mark.slow
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebooks_show_what_is_written_in_them(name, build):
    nbformat = importlib.import_module("nbformat")
    written, shown = nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", 4), build.executed(name)
    assert [cell.source for cell in shown.cells] == [cell.source for cell in written.cells]
    for now, then in zip(build.text_of(shown), build.text_of(written), strict=True):
        assert len(now) == len(then) and all(map(_agree, now, then)), (now, then)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_cells_of_notebooks_are_programs_for_import_jax(name, tmp_path):
    """Under `minijax` the same cells run with `import jax`; those that are to fail are left out."""
    text = (ROOT / "notebooks" / "cells" / f"{name}.py").read_text()
    cells = [cell for cell in re.split(r"^# %%", text, flags=re.M) if not re.match(r".*raises-exception", cell)]
    program = "\n#".join(cells).replace("import minijax as jax", "import jax").replace("minijax.", "jax.")
    (tmp_path / "program.py").write_text(program)
    command = [sys.executable, "-m", "minijax", str(tmp_path / "program.py")]
    environment = {k: v for k, v in os.environ.items() if k != "XLA_FLAGS"} | {
        "PYTHONPATH": str(ROOT),
        "MPLBACKEND": "Agg",
    }
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, env=environment)
    assert run.returncode == 0, run.stderr[-3000:]
