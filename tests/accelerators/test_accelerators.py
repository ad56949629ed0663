"""The real compilers of TPUs and NVIDIA's GPUs make of minijax's programs what they make of jax's.

No device is needed, but the compilers' packages: `.ci/accelerators` installs them and runs these tests. jax's outcomes
are in files, which side.py writes; programs that differ are listed with the reason.
"""

import functools
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import jaxlib.version
import pytest
import recorded
from accelerators.table import MACHINES, PROGRAMS, TPUS

FOLDER = Path(__file__).parent
pytestmark = pytest.mark.accelerator
# Each run compiles one in so many programs, drawn by the seed, on each machine; with MINIJAX_TEST_TIER=full all.
ONE_IN = 1 if os.environ.get("MINIJAX_TEST_TIER") == "full" else 12
COMPARED = "hlo", "cost", "memory", "layouts", "formats"
# Other versions of the compilers give other code: with them it is compared which programs compile.
IS_REFERENCE = jaxlib.version.__version__ == "0.10.2"

# Programs of which the optimized HLO is another one, by machine ("" for all), with the reason.
_SVD = "the polar decomposition is written otherwise: 10 % fewer cycles, 27 % fewer bytes"
_NAMES = "computations have other names, and so another order; costs and memory are equal"
_CALLS = "jax lowers calls of the host for attached GPUs alone"
_MARKED = "jax marks arguments on one device with a mesh without axes: 16 to 25 % more bytes, 6 to 13 % fewer cycles"
_EXPORTED = "jax chooses each product by the platform, minijax what differs: 12 to 23 % fewer cycles"
_TERMS = "functions that call another are lowered one by one: 1 % fewer bytes, as many cycles"
_KERNELS = "the sum of kernels has one axis fewer; cycles and temporaries are equal"
_LIBRARY = "jax asks for the version of cuSolver, which is not here"
_BY_SVD = (
    "linalg svd", "linalg pinv", "linalg full svd", "linalg lstsq", "gradient of batched svd float32",
    "gradient of batched svd complex64", "numpy polynomials", "scipy signal",
)  # fmt: skip
_BY_CALLS = (
    "pure_callback", "io_callback", "debug_print", "sharded_print", "rules callback of rows", "rules callback unordered",
    "rules print in scan", "shards print", "sharded print of rows",
)  # fmt: skip
DIFFERENT: dict[tuple[str, str], str] = {
    **{(machine, name): _SVD for machine in TPUS for name in _BY_SVD},
    **{("h100", name): _CALLS for name in _BY_CALLS},
    **{(machine, "convolution_net"): _NAMES for machine in TPUS},
    ("v5p", "random permutation"): _NAMES,
    **{(machine, "rules exported"): _EXPORTED for machine in TPUS},
    **{(machine, "scipy integrals"): _TERMS for machine in TPUS},
    **{(machine, "convolution grouped float32 gradient"): _MARKED for machine in TPUS},
    ("", "scipy kde"): _KERNELS,
    ("h100", "linalg eig"): _LIBRARY,
}


def packages(machine: str) -> str | None:
    """The folder of the machine's packages: from the environment, or "" if they are installed here."""
    variable, module = (
        ("MINIJAX_TPU_PACKAGES", "libtpu") if machine in TPUS else ("MINIJAX_CUDA_PACKAGES", "jax_plugins")
    )
    return os.environ.get(variable, "" if importlib.util.find_spec(module) else None)


@functools.cache
def outcomes(machine: str) -> dict[str, dict]:
    """What came of the drawn programs, compiled one after the other in a process of their own."""
    names = [name for name in expected(machine) if recorded.share(seed(), f"{machine} {name}", ONE_IN)]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.jsonl"
        paths = [str(FOLDER.parents[1]), str(FOLDER), packages(machine)]
        environment = os.environ | dict(PYTHONPATH=os.pathsep.join(filter(None, paths)))
        command = [sys.executable, str(FOLDER / "side.py"), "minijax", machine, str(out), *names]
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=3600)
        assert ran.returncode == 0, ran.stderr[-3000:]
        return read(out)


def read(path: Path) -> dict[str, dict]:
    return {entry["name"]: entry for entry in map(json.loads, path.read_text().splitlines())}


@functools.cache
def expected(machine: str) -> dict[str, dict]:
    return read(FOLDER / f"{machine}.jsonl")


def seed() -> str:
    return os.environ.get("MINIJAX_TEST_SEED", "0")


@pytest.mark.parametrize("machine", MACHINES)
def test_what_is_expected_of_each_program_is_known(machine):
    assert set(expected(machine)) == set(PROGRAMS)


@pytest.mark.parametrize("machine", MACHINES)
def test_programs_compile_to_those_of_jax(machine):
    if packages(machine) is None:
        pytest.skip("the compiler is not installed")
    wrong = {}
    for name, mine in outcomes(machine).items():
        theirs, is_listed = expected(machine)[name], (machine, name) in DIFFERENT or ("", name) in DIFFERENT
        if "error" in theirs or "error" in mine or not IS_REFERENCE:
            if mine.get("error") != theirs.get("error") and not is_listed:
                wrong[name] = mine.get("text"), theirs.get("text")
            continue
        found = [what for what in COMPARED if mine[what] != theirs[what]]
        if bool(found) != is_listed:
            wrong[name] = found
    assert wrong == {}
