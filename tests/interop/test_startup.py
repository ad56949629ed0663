"""`import jax` leaves in `sys.modules` what jax leaves there, and nothing of it loads before it is used."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from minijax.interop.private import PATHS

ROOT = Path(__file__).resolve().parents[2]
LIST = "import json, sys\nimport jax\nprint(json.dumps([n for n in sys.modules if n == 'jax' or n.startswith('jax.')]))"


def printed(*arguments):
    run = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=120, cwd=ROOT)
    assert run.returncode == 0, run.stderr
    return run.stdout


def is_private(name):
    return any(part.startswith("_") for part in name.split("."))


@pytest.mark.oracle
def test_the_names_are_those_of_jax():
    theirs = set(json.loads(printed("-c", LIST)))
    ours = set(json.loads(printed("-W", "error", "-m", "minijax", "-c", LIST)))
    assert {n for n in ours if not is_private(n)} == {n for n in theirs if not is_private(n)}
    served = {"jax._src", *(f"jax._src.{path}" for path in PATHS)}
    assert {n for n in ours if is_private(n)} == served & theirs


PROGRAM = """
import minijax; minijax.install()
import importlib, inspect, pickle, pkgutil, sys, threading, unittest, unittest.mock, warnings
import jax

modules = sys.modules
loaded = lambda: {n for n in modules if n.startswith("minijax.") and "jax" + n[7:] in modules}
said = {}

# Who scans all modules loads none.
class Case(unittest.TestCase):
    def test(self):
        with self.assertWarns(UserWarning):
            warnings.warn("here")
        assert inspect.getmodule(compile("1", "nowhere.py", "exec")) is None
        assert inspect.stack()[0].function == "test"
        assert all(isinstance(m, object) and m.__class__ for m in list(modules.values()))
said["scans"] = Case("test").run().wasSuccessful()
said["loaded"] = sorted(loaded()), "numpy" in modules, "jaxlib" in modules
said["files"] = [modules[n].__file__.rpartition("minijax")[2] for n in ("jax.numpy", "jax.numpy.fft", "jax.tree_util")]
said["unloaded"] = sorted(loaded())

# The first use loads, in whichever thread it comes, and the module is the one that was there.
held, start, results = modules["jax.numpy.linalg"], threading.Barrier(6), []
def use(i):
    start.wait()
    results.append((modules["jax.nn"].relu if i % 2 else modules["jax.numpy.linalg"].norm)(-3.0))
threads = [threading.Thread(target=use, args=(i,)) for i in range(6)]
[t.start() for t in threads]; [t.join() for t in threads]
said["threads"] = sorted(map(float, results))
said["same"] = [held is jax.numpy.linalg is minijax.numpy.linalg, modules["jax.numpy"] is jax.numpy is modules["minijax.numpy"],
                type(held) is type(sys), modules["jax.lax"].linalg is modules["jax.lax.linalg"]]
said["others"] = sorted(n for n in ("minijax.image", "minijax.export", "minijax.scipy") if n in modules)

# What is set, replaced or reloaded there, is so in the module.
modules["jax.image"].extra = 3
said["set"] = jax.image.extra, callable(jax.image.resize)
said["reload"] = importlib.reload(modules["jax.tree"]) is jax.tree, jax.tree.leaves([1, (2,)])
with unittest.mock.patch("jax.ops.segment_sum", lambda *a: "patched"):
    said["patched"] = jax.ops.segment_sum()
said["restored"] = callable(jax.ops.segment_sum), jax.ops.segment_sum is not None
said["pickles"] = pickle.loads(pickle.dumps(jax.numpy.sin)) is jax.numpy.sin
said["module"] = inspect.getmodule(jax.numpy.sin) is modules[jax.numpy.sin.__module__]
said["walked"] = {"jax.numpy.fft", "jax.scipy.linalg"} <= {i.name for i in pkgutil.walk_packages(jax.scipy.__path__, "jax.scipy.")} | {"jax.numpy.fft"}
said["private"] = [importlib.import_module("jax._src.core") is jax._src.core, importlib.util.find_spec("jax._src.lax.lax").name, jax._src.lax.__path__]

# A module that fails to load fails each time it is used.
modules["minijax.api.export"] = None
failures = []
for _ in range(2):
    try:
        modules["jax.export"].symbolic_shape
    except ImportError as error:
        failures.append(type(error).__name__)
del modules["minijax.api.export"]
said["failures"] = failures, callable(modules["jax.export"].symbolic_shape), modules["jax.export"] is jax.export
import json
print(json.dumps(said))
"""


@pytest.fixture(scope="module")
def said():
    return json.loads(printed("-W", "error", "-c", PROGRAM))


EXPECTED = {
    "scans": True,
    "loaded": [[], False, False],
    "files": ["/numpy/__init__.py", "/numpy/fft.py", "/tree_util.py"],
    "unloaded": [],
    "threads": [0.0, 0.0, 0.0, 3.0, 3.0, 3.0],
    "same": [True, True, True, True],
    "others": [],
    "set": [3, True],
    "reload": [True, [1, 2]],
    "patched": "patched",
    "restored": [True, True],
    "pickles": True,
    "module": True,
    "walked": True,
    "private": [True, "jax._src.lax.lax", []],
    "failures": [["ModuleNotFoundError", "ModuleNotFoundError"], True, True],
}


@pytest.mark.parametrize("what", EXPECTED)
def test_modules_load_when_they_are_used(said, what):
    assert said[what] == EXPECTED[what]
