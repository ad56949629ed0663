"""The real compilers take the kernels of `jax.experimental.pallas.ops`, in both directions.

No device is needed, but the compilers' packages: `.ci/accelerators` installs them and runs these tests.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.accelerator
FOLDER = Path(__file__).parent


@pytest.mark.parametrize("platform", ["cuda", "tpu"])
def test_kernels_compile(platform):
    packages = os.environ.get(f"MINIJAX_{platform.upper()}_PACKAGES")
    if packages is None:
        pytest.skip("the compiler is not installed")
    paths = os.pathsep.join([str(FOLDER.parents[1]), packages])
    command = [sys.executable, str(FOLDER / "user_kernels.py"), platform]
    ran = subprocess.run(command, env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True, timeout=600)
    assert (ran.returncode, ran.stdout) == (0, ""), ran.stderr[-2000:]
