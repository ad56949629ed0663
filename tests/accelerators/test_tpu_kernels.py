"""The real compiler of TPUs takes minijax's kernels as it takes jax's, and makes as much code of them.

jax's outcomes are in kernels.jsonl, which kernels.py writes. No device is needed, but `.ci/accelerators`.
"""

import functools
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import recorded
from accelerators.test_accelerators import IS_REFERENCE, ONE_IN, packages, read, seed
from pallas import subcore_kernels
from pallas.mosaic_kernels import SHARDED
from pallas.mosaic_pipelines import KERNELS

FOLDER = Path(__file__).parent
pytestmark = pytest.mark.accelerator
# These are compiled in each run.
ALWAYS = {"matmul", "grouped_matmul", "flash_attention", "double_buffered", "ring", "remote_coordinates"}


@functools.cache
def expected() -> dict[str, dict]:
    return read(FOLDER / "kernels.jsonl")


@functools.cache
def outcomes() -> dict[str, dict]:
    """What came of the drawn kernels, compiled one after the other in a process of their own."""
    names = [name for name in expected() if name in ALWAYS or recorded.share(seed(), f"kernel {name}", ONE_IN)]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.jsonl"
        paths = [str(FOLDER.parents[1]), str(FOLDER.parent), packages("v5e")]
        environment = os.environ | dict(PYTHONPATH=os.pathsep.join(filter(None, paths)))
        command = [sys.executable, str(FOLDER / "kernels.py"), "minijax", str(out), *names]
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=3600)
        assert ran.returncode == 0, ran.stderr[-3000:]
        return read(out)


def test_what_is_expected_of_each_kernel_is_known():
    assert set(expected()) == {*KERNELS, *SHARDED, *[f"subcores {name}" for name in subcore_kernels.COMPILED]}


def test_kernels_compile_to_as_much_code_as_those_of_jax():
    if packages("v5e") is None:
        pytest.skip("the compiler is not installed")
    wrong = {}
    for name, mine in outcomes().items():
        theirs = expected()[name]
        if ("error" in mine) != ("error" in theirs) or IS_REFERENCE and "code" in mine and mine != theirs:
            wrong[name] = mine, theirs
    assert wrong == {}
