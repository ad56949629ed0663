#!/usr/bin/env python
"""Runs what libraries bring as tests, on jax and on minijax, and compares case by case.

    python tests/ecosystem/own_tests.py optax chex
    python tests/ecosystem/own_tests.py --all --keep /tmp/own      # a second run installs nothing

Source distributions come from the package index, and so do two environments: one with jax, and its copy without
jax, where minijax is that of this tree. Of each library a fixed sample runs. Fails if a case fails on minijax alone.
"""

import argparse
import os
import subprocess
import sys
import tarfile
import tempfile
import venv
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
JAX = ["jax==0.10.2", "jaxlib==0.10.2"]
# Tests for absl read flags, which are not parsed under pytest.
PYTEST = """
import os, sys, pytest
from absl import flags
flags.FLAGS.mark_as_parsed()
{first}
sys.exit(pytest.main(sys.argv[1:]))
"""


class Sample(NamedTuple):
    """A library's version, and which of its tests run, as arguments of pytest in a folder of its sources."""

    version: str
    tests: str
    needs: str = ""  # what the tests import besides
    first: str = ""  # what runs before pytest
    folder: str = "."


FOUR_DEVICES = """
import chex
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
flags.FLAGS(["", "--chex_n_cpu_devices=4"])
"""
KERAS_ON_JAX = 'os.environ["KERAS_BACKEND"] = "jax"'
SAMPLES = {
    "chex": Sample("0.1.92", "chex", needs="cloudpickle", first=FOUR_DEVICES),
    "mctx": Sample("0.0.71", "_src/tests", folder="mctx"),
    "tree-math": Sample("0.2.1", "tree_math"),
    "penzai": Sample("0.2.5", "tests/core tests/nn"),
    "optax": Sample("0.2.8", "optax --ignore=optax/_src/alias_test.py --ignore=optax/contrib/_common_test.py"),
    "flax": Sample(
        "0.12.8",
        "core struct_test.py cursor_test.py jax_utils_test.py nnx/mutable_array_test.py nnx/bridge"
        " linen/linen_transforms_test.py --ignore=core/design",
        needs="cloudpickle",
        folder="tests",
    ),
    "tinygp": Sample("0.3.1", "test_kernels/test_kernels.py test_transforms.py test_noise.py", folder="tests"),
    "distrax": Sample(
        "0.1.9",
        "utils/jittable_test.py utils/transformations_test.py utils/math_test.py bijectors/block_test.py",
        needs="mock",
        folder="distrax/_src",
    ),
    "dm-haiku": Sample("0.0.17", "lift_test.py stateful_test.py dot_test.py", needs="mock", folder="haiku/_src"),
    "kfac-jax": Sample("0.0.8", "test_utils.py", folder="tests"),
    "jraph": Sample("0.0.6.dev0", "models_test.py", folder="jraph/_src"),
    "brax": Sample("0.14.2", "math_test.py scan_test.py base_test.py training/types_test.py", folder="brax"),
    "gpjax": Sample(
        "1.0.0",
        "test_transforms.py test_scan.py test_integration_equinox.py",
        needs="hypothesis pytest-mock",
        folder="tests",
    ),
    "flowjax": Sample(
        "19.1.2",
        "test_root_finding.py test_utils.py test_masks.py test_bijections/test_jax_transforms.py test_train",
        folder="tests",
    ),
    "dynamax": Sample("1.0.3", "dynamax/parameters_test.py dynamax/utils/utils_test.py"),
    "e3nn-jax": Sample("0.21.0", "basic_test.py scatter_test.py grad_test.py", needs="equinox", folder="tests/_src"),
    "interpax": Sample("0.3.16", "test_interpolate.py", folder="tests"),
    "jax-md": Sample("0.2.29", "custom_smap_test.py", needs="netCDF4 ase", folder="tests"),
    "s2fft": Sample("1.5.0", "test_ftm_flm_primitive.py", folder="tests"),
    "keras": Sample(
        "3.15.1",
        "backend/common/thread_safe_test.py backend/common/symbolic_scope_test.py ops/core_test.py",
        first=KERAS_ON_JAX,
        folder="keras/src",
    ),
    "mujoco-mjx": Sample("3.17.0", "scan_test.py dataclasses_test.py", folder="mujoco/mjx/_src"),
}
NONE = "neither the source distribution nor the wheel contains tests"
WITHOUT_TESTS = {
    "equinox": NONE,
    "lineax": NONE,
    "optimistix": NONE,
    "evosax": NONE,
    "ott-jax": NONE,
    "jaxopt": "it contains a module of utilities for tests only",
    "jaxlie": "its tests import a module that the source distribution lacks",
    "orbax-checkpoint": "it contains utilities for tests only",
    "tfp-nightly": "there is no source distribution, and its wheel contains utilities for tests only",
}


class Side:
    """An environment in which tests run: with jax, or with minijax in its place."""

    def __init__(self, name: str, folder: Path, python: str = ""):
        self.name, self.folder = name, folder
        self._python = python or str(folder / name / "bin" / "python")

    def make(self) -> None:
        if not (self.folder / self.name).exists():
            venv.create(self.folder / self.name, with_pip=True)
            self.install("pytest", "absl-py", *([] if self.name == "minijax" else JAX))

    @property
    def log(self) -> Path:
        """The output of the last tests."""
        return self.folder / f"{self.name}.log"

    def install(self, *arguments: str) -> None:
        self._output("-m", "pip", "install", "-q", "--disable-pip-version-check", *arguments)

    def packages(self) -> list[str]:
        """The installed packages that can be installed elsewhere, with versions."""
        return [line for line in self._output("-m", "pip", "freeze").splitlines() if "==" in line]

    def outcomes(self, tests: Sequence[str], source: Path, cwd: Path, first: str = "") -> dict[str, str]:
        """How each case ended. A case that runs several times, or has parts, ended as the worst of them."""
        report = self.folder / f"{self.name}.xml"
        report.unlink(missing_ok=True)
        start = ["-m", "minijax"] if self.name == "minijax" else []
        options = [
            "-q",
            "-p",
            "no:cacheprovider",
            "--continue-on-collection-errors",
            "-o",
            "junit_family=xunit1",
            f"--junitxml={report}",
        ]
        env = {**os.environ, "PYTHONPATH": f"{source}{os.pathsep}{ROOT}", "PYTHONWARNINGS": "ignore"}
        env.pop("XLA_FLAGS", None)
        command = [self._python, *start, "-c", PYTEST.format(first=first), *options, *tests]
        with self.log.open("w") as log:
            code = subprocess.run(command, cwd=cwd, env=env, stdout=log, stderr=log, check=False).returncode
        if not report.exists():
            raise RuntimeError(f"pytest on {self.name} ended with {code} and no report: see {self.log}")
        cases: dict[str, str] = {}
        for case in ElementTree.parse(report).iter("testcase"):
            name = f"{case.get('classname')}::{case.get('name')}"
            cases[name] = max(_outcome(case), cases.get(name, ""), key=OUTCOMES.index)
        return cases

    def _output(self, *arguments: str) -> str:
        return subprocess.run([self._python, *arguments], check=True, stdout=subprocess.PIPE, text=True).stdout


OUTCOMES = ["", "skipped", "passed", "failure", "error"]
FAILED = OUTCOMES[3:]


def _outcome(case: ElementTree.Element) -> str:
    return next((child.tag for child in case if child.tag in OUTCOMES), "passed")


def only_on_ours(theirs: dict[str, str], ours: dict[str, str]) -> list[str]:
    """The cases that pass on jax and not on minijax, and those that fail on minijax alone."""
    lost = [name for name, outcome in theirs.items() if outcome == "passed" and ours.get(name) != "passed"]
    fails = [name for name, outcome in ours.items() if outcome in FAILED and theirs.get(name) not in FAILED]
    return list(dict.fromkeys(lost + fails))


def source(library: str, version: str, folder: Path) -> Path:
    """The unpacked source distribution, of the name that its archive has."""
    place = folder / "sources" / library
    if not place.exists():
        place.mkdir(parents=True)
        command = ["pip", "download", "-q", "--no-deps", "--no-binary", library, "-d", place, f"{library}=={version}"]
        subprocess.run([folder / "jax" / "bin" / "python", "-m", *command], check=True)
        with tarfile.open(next(place.glob("*.tar.gz"))) as archive:
            archive.extractall(place, filter="data")
    return next(path for path in place.iterdir() if path.is_dir())


def compare(library: str, jax: Side, minijax: Side) -> tuple[list[str], list[str]]:
    """A line of the table, and the cases that fail on minijax alone."""
    sample = SAMPLES[library]
    jax.install(*JAX, f"{library}=={sample.version}", *sample.needs.split())
    minijax.install("--no-deps", *(package for package in jax.packages() if not package.startswith("jax==")))
    place = source(library, sample.version, jax.folder)
    theirs, ours = (
        side.outcomes(sample.tests.split(), place, place / sample.folder, sample.first) for side in (jax, minijax)
    )
    if "passed" not in theirs.values():
        raise RuntimeError(f"no test of {library} passes on jax: see {jax.log}")
    passes = [str(list(cases.values()).count("passed")) for cases in (theirs, ours)]
    lost = only_on_ours(theirs, ours)
    return [library, str(len(theirs)), *passes, str(len(lost))], lost


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", nargs="*", help=", ".join(SAMPLES))
    parser.add_argument("--all", action="store_true", help="every library of the table")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="where sources and environments stay")
    options = parser.parse_args()
    libraries = list(SAMPLES) if options.all else options.library
    if not libraries or not SAMPLES.keys() >= set(libraries):
        parser.error(f"name some of {', '.join(SAMPLES)}, or --all")
    lines, lost = [["library", "cases", "jax passes", "minijax passes", "fails only on minijax"]], []
    with tempfile.TemporaryDirectory() as folder:
        sides = [Side(name, (options.keep or Path(folder)).resolve()) for name in ("jax", "minijax")]
        for side in sides:
            side.make()
        for library in libraries:
            line, cases = compare(library, *sides)
            lines.append(line)
            lost += [f"{library}: {case}" for case in cases]
    print("\n".join(" | ".join(line) for line in lines), *lost, sep="\n")
    sys.exit(1 if lost else 0)


if __name__ == "__main__":
    main()
