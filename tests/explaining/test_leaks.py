"""`find_leak`: tracers of ended traces and large arrays, and the paths that keep them alive."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("leaks_program.py")
ROOT = PROGRAM.parents[2]
CHECKS = (
    "a_function_that_keeps_nothing_has_no_leaks", "a_list", "a_global", "an_attribute", "nested_containers",
    "a_closure", "a_local_variable", "tracers_of_other_transformations", "large_arrays",
)  # fmt: skip


@pytest.fixture(scope="module")
def failures():
    command = [sys.executable, str(PROGRAM), *CHECKS]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == 0, done.stderr
    reports = [report.strip() for report in done.stdout.split("\0")]
    return dict(report.split("\n", 1) for report in reports if report)


@pytest.mark.parametrize("check", CHECKS)
def test_leaks(check, failures):
    assert check not in failures, failures[check]
