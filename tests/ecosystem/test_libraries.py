"""JAX's libraries where jax is minijax: those that are installed import, and programs of them print what they do on jax."""

import ast
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = sorted(Path(__file__).parent.glob("programs/*.py"))
LIBRARIES = """
flax.linen flax.nnx optax equinox chex jaxtyping lineax optimistix jaxopt orbax.checkpoint penzai.pz
tensorflow_probability.substrates.jax brax.envs mujoco.mjx jax_md jraph e3nn_jax gpjax tinygp ott evosax gymnax keras
dynamax kfac_jax mctx pgx jumanji netket quax qwix pennylane
pytensor.link.jax.dispatch clu.metrics grain coreax interpax quadax flowjax tree_math distrax haiku
blackjax numpyro diffrax treescope jpviz jaxviz bijx quaxed.numpy s2fft aqt.jax.v2.aqt_dot_general
""".split()
# Where warnings are errors, libraries that were written for an older NumPy or jax do not import.
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore", "KERAS_BACKEND": "jax"}
ENVIRONMENT = {name: value for name, value in ENVIRONMENT.items() if name != "XLA_FLAGS"}


def run(*arguments):
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, env=ENVIRONMENT, cwd=ROOT)


def is_installed(module):
    return importlib.util.find_spec(module.partition(".")[0]) is not None


@pytest.mark.parametrize("module", [pytest.param(m, marks=pytest.mark.skipif(not is_installed(m), reason="not installed")) for m in LIBRARIES])  # fmt: skip
def test_it_imports(module):
    result = run("-m", "minijax", "-c", f"import {module}")
    assert result.returncode == 0, result.stderr


def _imported(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            yield node.module


@pytest.mark.oracle
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_it_prints_the_same_as_with_jax(program):
    absent = [module for module in _imported(program) if not is_installed(module)]
    if absent:
        pytest.skip(f"{absent[0]} is not installed")
    ours, theirs = run("-m", "minijax", program), run(program)
    assert theirs.returncode == 0, theirs.stderr
    assert ours.stdout == theirs.stdout, ours.stderr
