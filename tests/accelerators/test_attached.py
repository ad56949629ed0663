"""Programs give the same results on the attached machine as on CPUs: `pytest -m device tests/accelerators`.

They run in a process of their own, since the tests' has CPUs alone. Without an accelerator only the comparison is tested.
"""

import functools
import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from accelerators.attached import PROGRAMS, apart

FOLDER = Path(__file__).parent
MACHINE = (
    "gpu"
    if Path("/dev/nvidia0").exists()
    else "tpu"
    if any(Path(path).exists() for path in ("/dev/accel0", "/dev/vfio/0"))
    else ""
)


@functools.cache
def outcomes(machine: str, *names: str) -> dict[str, dict]:
    """What came of the programs on that machine."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.jsonl"
        environment = os.environ | dict(
            PYTHONPATH=os.pathsep.join(map(str, FOLDER.parents[1::-1])),
            JAX_PLATFORMS=dict(gpu="cuda,cpu", tpu="tpu,cpu", cpu="cpu")[machine],
            XLA_FLAGS="--xla_force_host_platform_device_count=16",
        )
        command = [sys.executable, str(FOLDER / "attached.py"), machine, str(out), *names]
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=3000)
        assert ran.returncode == 0, ran.stderr[-3000:]
        return {found.pop("name"): found for found in map(json.loads, out.read_text().splitlines())}


@pytest.mark.device
@pytest.mark.parametrize("name", PROGRAMS if MACHINE else ["none is attached"])
def test_results_are_those_of_cpus(name):
    found = outcomes(MACHINE)[name]
    if "skipped" in found:
        pytest.skip(found["skipped"])
    assert "error" not in found, found["error"]
    assert found["apart"] <= 1


def test_programs_run_where_there_is_no_accelerator():
    names = "linalg qr", "transformer step over four", "random normal", "jnp.std", "lstm"
    found = outcomes("cpu", *names)
    assert {name: found[name]["apart"] for name in names} == dict.fromkeys(names, 0.0)


def test_different_results_are_found():
    x = np.array([1.0, -2.0, np.inf], np.float32)
    assert apart("f", [x], [x]) == 0
    assert apart("f", [x], [x * np.float32(1 + 1e-6)]) < 1 < apart("f", [x], [x + np.float32(1e-2)])
    assert apart("f", [x], [x.astype(np.float64)]) == apart("f", [x], []) == apart("f", [x], [x[:2]]) == math.inf
    assert apart("f", [x], [np.array([1, -2, 0], np.float32)]) == math.inf
    assert (
        apart("f", [x], [-x]) == math.inf and apart("f", [x[:2]], [-x[:2]]) > 1 and apart("qr", [x[:2]], [-x[:2]]) == 0
    )
    assert apart("f", [np.array([1, 2])], [np.array([1, 3])]) == math.inf
