"""`python -m minijax` runs a program as python does, with jax standing for minijax; so does `install`."""

import os
import pickle
import signal
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """A folder of its own, with the package on the path, and nothing that pytest put into the environment."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    for name in ("PYTHONSAFEPATH", "PYTHONWARNINGS"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def python(*arguments, **options):
    options = {"capture_output": True, "text": True, "timeout": 120, **options}
    return subprocess.run([sys.executable, *map(str, arguments)], **options)


def minijax(*arguments, **options):
    return python("-m", "minijax", *arguments, **options)


def same_as_python(*arguments, flags=(), **options):
    """The run under minijax, which must have ended and printed as the run under python itself."""
    ours, theirs = (python(*flags, *start, *arguments, **options) for start in (["-m", "minijax"], []))
    assert ours.stdout == theirs.stdout
    assert ours.stderr == theirs.stderr
    assert ours.returncode == theirs.returncode
    return ours


def printed(code, *arguments):
    run = minijax("-c", code, *arguments)
    assert run.returncode == 0, run.stderr
    return run.stdout


# Names


def test_jax_and_its_submodules_are_the_same_modules():
    code = """
import jax.base.lazy, minijax.base.lazy, sys
import jax.base as base
from jax.base import lazy
print(sys.modules["jax"] is sys.modules["minijax"] is jax, base is sys.modules["minijax.base"])
print(sys.modules["jax.base.lazy"] is sys.modules["minijax.base.lazy"] is lazy)
print(lazy.__name__, lazy.__spec__.name, jax.__spec__.name)
"""
    assert printed(code) == "True True\nTrue\nminijax.base.lazy minijax.base.lazy minijax\n"


def test_the_package_itself_shows_install_and_the_version_of_jax():
    code = """
import minijax
minijax.install()
import jax, jax.tree_util
print(jax is minijax, jax.__version__, jax.__version_info__, callable(jax.install))
print(jax.tree_util is minijax.tree_util, jax.tree_util.tree_leaves((1, [2])))
"""
    assert python("-c", code).stdout == "True 0.10.2 (0, 10, 2) True\nTrue [1, 2]\n"


@pytest.mark.parametrize("order", [("jax", "minijax"), ("minijax", "jax")])
def test_no_module_runs_twice_whichever_name_comes_first(order):
    code = f"""
import sys, importlib
modules = [importlib.import_module(f"{{name}}.base.lazy") for name in {order}]
print(modules[0] is modules[1], sum(name.endswith("base.lazy") for name in sys.modules))
"""
    assert printed(code) == "True 2\n"


def test_modules_loaded_under_our_name_have_jaxs_too():
    code = """
import minijax.tree_util, sys
minijax.install()
import jax
print(sys.modules["jax.tree_util"] is minijax.tree_util, "jax.base" in sys.modules)
print(jax.scipy.linalg is sys.modules["jax.scipy.linalg"] is minijax.scipy.linalg)
"""
    assert python("-c", code).stdout == "True False\nTrue\n"


def test_specs_are_found_before_and_after_the_import():
    code = """
from importlib.util import find_spec
print(find_spec("jax").name, find_spec("jax.base.lazy").origin == find_spec("minijax.base.lazy").origin)
import jax.base.lazy
print(find_spec("jax") is not None, find_spec("jax.base.lazy") is not None, find_spec("jax.nosuch"))
"""
    assert printed(code).splitlines()[1] == "True True None"


def test_a_missing_submodule_is_reported_under_the_name_asked_for():
    code = """
try: import jax.nosuch
except ModuleNotFoundError as error: print(error.name, error)
"""
    assert printed(code) == "jax.nosuch No module named 'jax.nosuch'\n"


def test_the_distribution_jax_has_the_version_of_the_api():
    code = """
import importlib.metadata as metadata
print(metadata.version("jax"), metadata.version("JAX"), metadata.distribution("jax").metadata["Name"])
print("jax" in metadata.packages_distributions(), any("jax" == name for name in metadata.requires("jax") or []))
print(all(file.locate().is_file() for file in metadata.files("jax")), "minijax/api/jit.py" in map(str, metadata.files("jax")))
print(metadata.version("numpy") == __import__("numpy").__version__)
"""
    assert printed(code) == "0.10.2 0.10.2 jax\nTrue False\nTrue True\nTrue\n"


def test_modules_can_be_reloaded_and_pickled_by_either_name():
    code = """
import importlib, pickle, sys
import jax.base.lazy
print(importlib.reload(jax.base.lazy) is sys.modules["minijax.base.lazy"])
print(pickle.loads(pickle.dumps(jax.base.lazy.defer)) is jax.base.lazy.defer)
"""
    assert printed(code) == "True\nTrue\n"


# install


def test_install_within_a_program_may_be_called_twice():
    code = """
from minijax.interop.alias import install
install(), install()
import jax, minijax, sys
print(jax is minijax, sum(type(finder).__name__ == "AliasFinder" for finder in sys.meta_path))
"""
    assert python("-c", code).stdout == "True 1\n"


@pytest.mark.parametrize("loaded", ["jax", "jax.numpy"])
def test_install_refuses_where_another_jax_is_loaded(loaded):
    code = f"""
import sys, types
sys.modules["{loaded}"] = types.ModuleType("{loaded}")
from minijax.interop.alias import install
try: install()
except RuntimeError as error: print(error)
print(len([finder for finder in sys.meta_path if type(finder).__name__ == "AliasFinder"]))
"""
    run = python("-c", code)
    assert f"{loaded} is already loaded" in run.stdout
    assert run.stdout.endswith("\n0\n"), run.stderr


@pytest.mark.oracle
def test_install_refuses_where_the_real_jax_is_loaded():
    run = python("-c", "import jax; from minijax.interop.alias import install; install()")
    assert run.returncode == 1
    assert "RuntimeError: minijax.install: jax is already loaded" in run.stderr


# Running a program

SHOW = """
import os, sys
print(sys.argv, __name__, __file__, __spec__, __package__, __cached__, type(__loader__).__name__)
print(sys.path[0], sys.modules["__main__"].__dict__ is globals(), sorted(globals()))
"""


def test_a_file_sees_what_python_shows_it(elsewhere):
    (elsewhere / "folder").mkdir()
    (elsewhere / "folder" / "neighbour.py").write_text("x = 'imported'\n")
    (elsewhere / "folder" / "program.py").write_text(SHOW + "import neighbour\nprint(neighbour.x)\n")
    (elsewhere / "link.py").symlink_to(elsewhere / "folder" / "program.py")
    for path in ("folder/program.py", elsewhere / "folder" / "program.py", "link.py"):
        assert "imported" in same_as_python(path, "a", "-b", "--c=1", "-m").stdout


def test_a_folder_or_an_archive_with_a_main_file_runs(elsewhere):
    (elsewhere / "app").mkdir()
    (elsewhere / "app" / "__main__.py").write_text("import sys, helper\nprint(sys.argv, sys.path[0])\n")
    (elsewhere / "app" / "helper.py").write_text("")
    same_as_python("app", "a")
    assert python("-m", "zipapp", "app").returncode == 0
    same_as_python("app.pyz", "a")


def test_a_module_sees_what_python_shows_it(elsewhere):
    (elsewhere / "package").mkdir()
    (elsewhere / "package" / "__init__.py").write_text("import sys\nprint('package', sys.argv)\n")
    (elsewhere / "package" / "program.py").write_text(
        "import sys\nfrom . import other\nprint(sys.argv, __name__, __spec__.name, __package__)\n"
    )
    (elsewhere / "package" / "other.py").write_text("")
    same_as_python("-m", "package.program", "a", "-b")
    assert same_as_python("-m", "package").returncode == 1
    assert same_as_python("-m", "nosuch").returncode == 1


def test_a_module_may_be_named_by_its_alias():
    run = minijax("-m", "jax.example_libraries.stax")
    assert (run.returncode, run.stderr) == (0, "")


def test_code_sees_what_python_shows_it():
    same_as_python("-c", "import sys; print(sys.argv, sys.path[0], sorted(globals()), __spec__)", "a")


def test_a_safe_path_stays_safe(elsewhere):
    (elsewhere / "program.py").write_text("import sys; print(sys.path[0])\n")
    same_as_python("program.py", flags=["-P"])
    same_as_python("-c", "import sys; print(sys.path[0])", flags=["-P"])


def test_arguments_after_the_program_are_its_own():
    assert minijax("-c", "import sys; print(sys.argv[1:])", "-m", "--help", "-c").stdout == "['-m', '--help', '-c']\n"


# How it ends


@pytest.mark.parametrize(
    "code",
    [
        "raise SystemExit",
        "raise SystemExit(3)",
        "raise SystemExit('a message')",
        "import sys; sys.exit(True)",
        "import os; os._exit(4)",
        "import atexit; atexit.register(lambda: print(__name__)); 1 / 0",
        "import sys; sys.excepthook = lambda *a: print('hook', a[0], a[2].tb_lineno, a[2].tb_next); 1 / 0",
    ],
)
def test_exit_codes_are_pythons(code):
    same_as_python("-c", code)


TRACEBACKS = {
    "raising": "def f():\n    raise ValueError('x')\n\nf()\n",
    "chained": "try:\n    1 / 0\nexcept ZeroDivisionError as error:\n    raise KeyError('y') from error\n",
    "during": "try:\n    1 / 0\nexcept ZeroDivisionError:\n    {}['y']\n",
    "group": "raise ExceptionGroup('g', [ValueError(1), TypeError(2)])\n",
    "syntax": "x = (1,\n",
    "import": "import nosuch_module\n",
    "encoding": "# coding: latin-1\nraise ValueError('\\xe9')\n",
}


@pytest.mark.parametrize("name", TRACEBACKS)
def test_tracebacks_are_pythons(name, elsewhere):
    (elsewhere / "program.py").write_text(TRACEBACKS[name])
    run = same_as_python("program.py")
    assert run.returncode == 1
    assert "minijax" not in run.stderr


def test_an_interrupt_ends_the_process_by_its_signal():
    run = same_as_python("-c", "raise KeyboardInterrupt")
    assert run.returncode == -signal.SIGINT


def test_a_missing_file_is_reported_as_python_reports_it():
    assert same_as_python("nosuch.py").returncode == 2


def test_input_reaches_the_program():
    assert same_as_python("-c", "print(input()[::-1])", input="abc\n").stdout == "cba\n"


@pytest.mark.parametrize("arguments", [[], ["-m"], ["-c"], ["--nosuch"]])
def test_wrong_use_prints_the_usage(arguments):
    run = minijax(*arguments)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.startswith("usage: python -m minijax PROGRAM")


def test_help_prints_the_usage():
    run = minijax("--help")
    assert run.returncode == 0
    assert run.stdout.startswith("usage: python -m minijax PROGRAM")


def test_futures_of_the_runner_do_not_reach_the_program():
    assert printed("def f(x: 1 + 1): pass\nprint(f.__annotations__)") == "{'x': 2}\n"


def test_the_environment_is_left_alone():
    assert printed("import os; print(os.environ['PYTHONPATH'])") == os.environ["PYTHONPATH"] + "\n"


# Other ways in


SUITE = {
    "conftest.py": "import jax\n\n\ndef pytest_report_header():\n    return f'jax is {jax.__spec__.name}'\n",
    "test_it.py": "import jax\n\n\ndef test_it():\n    assert jax.__spec__.name == 'minijax' and (jax.numpy.ones(2) + 1).sum() == 4\n",
}


@pytest.mark.parametrize(
    "start", [["-m", "minijax", "-m", "pytest"], ["-m", "pytest", "-p", "minijax.interop.pytest_plugin"]]
)
def test_tests_run_on_minijax(elsewhere, start):
    for name, text in SUITE.items():
        (elsewhere / name).write_text(text)
    run = python(*start, "-q", elsewhere)
    assert run.returncode == 0, run.stdout + run.stderr


def test_the_switch_lets_jax_stand_for_minijax_in_all_processes(elsewhere):
    (elsewhere / "switch.pth").write_text((ROOT / "minijax_as_jax.pth").read_text())
    code = f"""
import site, sys
site.addsitedir({str(elsewhere)!r})
print("minijax" in sys.modules, "numpy" in sys.modules)
try:
    import jax
    print(jax.__spec__.name)
except ImportError:
    pass
"""
    environment = {**os.environ, "MINIJAX_AS_JAX": "1"}
    assert python("-c", code, env=environment).stdout == "True False\nminijax\n"
    assert python("-c", code).stdout.startswith("False False\n")


def test_the_switch_is_installed_beside_the_package():
    site = Path(sysconfig.get_path("purelib"))
    if not (site / "minijax" / "__init__.py").is_file():
        pytest.skip("minijax runs from its sources")
    assert (site / "minijax_as_jax.pth").read_text() == (ROOT / "minijax_as_jax.pth").read_text()


def test_to_install_imports_nothing_that_computes():
    code = """
import sys
import minijax
minijax.install()
import jax
print([name for name in ("numpy", "jaxlib", "importlib.metadata") if name in sys.modules])
print(jax.numpy.ones(2) + 1)
"""
    assert python("-c", code).stdout == "[]\n[2. 2.]\n"


@pytest.mark.parametrize(
    "program",
    [
        "import sys, pickle\nx = pickle.load(sys.stdin.buffer)",
        "import minijax.lax as lax\nx = lax.add(1.0, 2.0)",
        "import minijax.random\nx = minijax.random.normal(minijax.random.key(0))",
        "import minijax.dlpack, numpy\nx = minijax.dlpack.from_dlpack(numpy.ones(2))",
        "import numpy\nfrom minijax import checkpoint\nx = checkpoint(lambda x: x * 2)(numpy.ones(2))",
        "from minijax.flatten_util import ravel_pytree\nx, _ = ravel_pytree([1.0, 2.0])",
        "import minijax\nx = minijax.device_put(3.0)",
    ],
)
def test_arrays_have_operators_however_the_package_is_imported(program):
    import minijax as jax

    data = pickle.dumps(jax.numpy.ones(3))
    run = python("-c", f"{program}\nprint((x + 1).shape == x.shape)", input=data, text=False)
    assert run.stdout == b"True\n", run.stderr
