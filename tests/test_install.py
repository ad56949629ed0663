"""`python -m minijax` runs a program as python does, with minijax imported as jax; so does `install`."""

import ast
import importlib.util
import os
import pickle
import signal
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDER = str(ROOT / "minijax" / "interop" / "as_jax")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """A folder of its own, with the package on the path, and nothing that pytest put into the environment."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    for name in ("PYTHONSAFEPATH", "PYTHONWARNINGS", "MINIJAX_AS_JAX"):
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


def test_modules_show_their_names_in_jax():
    code = """
import importlib.resources, inspect
import jax, jax.numpy as jnp, jax.scipy.stats
for module in (jnp, jax.lax, jax.random, jax.scipy.stats, jax.tree):
    print(repr(module).split("'")[1], module.__spec__.name, importlib.util.find_spec(module.__name__).name)
print(inspect.getsource(jnp)[:3], (importlib.resources.files("jax.numpy") / "linalg.py").is_file())
print(importlib.reload(jnp) is jnp, type(jnp.clip).__name__)
"""
    names = ["jax.numpy", "jax.lax", "jax.random", "jax.scipy.stats", "jax.tree"]
    last = '""" True\nTrue PjitFunction\n'
    assert printed(code) == "".join(f"{name} {name} {name}\n" for name in names) + last


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
    code = f"import sys; print([path for path in sys.path if path != {FOLDER!r}][0])"
    (elsewhere / "program.py").write_text(code)
    same_as_python("program.py", flags=["-P"])
    same_as_python("-c", code, flags=["-P"])


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


def test_standard_input_is_passed_to_the_program():
    assert same_as_python("-c", "print(input()[::-1])", input="abc\n").stdout == "cba\n"


@pytest.mark.parametrize("arguments", [["-m"], ["-c"], ["--nosuch"], ["install"], ["uninstall", "--as"]])
def test_wrong_use_prints_the_usage(arguments):
    run = minijax(*arguments)
    assert (run.returncode, run.stdout) == (2, "")
    assert "usage: minijax " in run.stderr and "Traceback" not in run.stderr


def test_futures_of_the_runner_do_not_reach_the_program():
    assert printed("def f(x: 1 + 1): pass\nprint(f.__annotations__)") == "{'x': 2}\n"


# Python's own options, standard input and the prompt


@pytest.mark.parametrize(
    "arguments",
    [
        ["-X", "dev", "-c", "import sys; print(sys.flags.dev_mode, sys.argv)", "-I"],
        ["-Werror", "-c", "import sys, warnings; print(sys.warnoptions); warnings.warn('w')"],
        ["-W", "error::UserWarning:m:1", "-uc", "import sys; print(sys.argv)", "a"],
        ["-O", "program.py", "-E"],
        ["-mprogram"],
        ["-"],
        ["-", "a", "-b"],
        [],
        ["-X"],
        ["-Z"],
    ],
)
def test_pythons_options_and_standard_input_are_pythons(arguments, elsewhere):
    (elsewhere / "program.py").write_text("import sys; print(sys.argv, __debug__)\n")
    same_as_python(*arguments, input="import sys\nprint(sys.argv, sys.path[0], __name__)\n1 / 0\n")


def test_programs_that_such_a_python_runs_see_jax():
    run = python(
        "-Werror", "-P", "-m", "minijax", "-Xdev", "-", input="import jax, sys\nprint(jax.__spec__.name, sys.flags)\n"
    )
    assert run.stdout.startswith("minijax ") and "dev_mode=True" in run.stdout and "safe_path=True" in run.stdout


@pytest.mark.parametrize("options", [["-I"], ["-uE"], ["-X", "dev", "-I"], ["-P", "-IX", "dev"]])
def test_options_that_hide_the_path_are_refused(options):
    run = minijax(*options, "-c", "print('ran')")
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.startswith("minijax: with -I and -E python ignores PYTHONPATH")


@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")
def test_without_arguments_a_terminal_gets_the_prompt():
    ours, theirs = os.openpty()
    environment = {**os.environ, "PYTHON_BASIC_REPL": "1", "TERM": "dumb"}
    process = subprocess.Popen(
        [sys.executable, "-m", "minijax"], stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    )
    os.write(ours, b"import jax\njax.__spec__.name\nquit()\n")
    shown, errors = process.communicate(timeout=120)
    os.close(ours), os.close(theirs)
    assert (process.returncode, shown.decode().splitlines()) == (0, ["'minijax'"])
    assert b">>> " in errors


# Processes that the program starts: the environment of the tests holds the real jax, and minijax runs from its sources

CHILDREN = """
import importlib.util, os, subprocess, sys
codes = sys.argv[1:]
start = [sys.executable, *os.environ.get("FLAGS", "").split(), "-c"]
children = [subprocess.Popen([*start, code], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for code in codes]
for child in children:
    print(child.communicate()[0].splitlines())
"""


def of_children(*codes, **environment):
    """The output of a program's child processes, which run the codes, as lists of lines."""
    run = minijax("-c", CHILDREN, *codes, env={**os.environ, **environment})
    assert run.returncode == 0, run.stderr
    return [ast.literal_eval(line) for line in run.stdout.splitlines()]


FIRST_IMPORTS = [
    "import jax",
    "import jax.numpy as jnp",
    "from jax import lax",
    "import minijax.base.lazy",
    "import importlib.util; importlib.util.find_spec('jax').origin",
    "import importlib.util; importlib.util.find_spec('jax.numpy').origin",
    "from threading import Thread as T; t = [T(target=__import__, args=('jax.tree_util',)) for _ in 'abc']; [x.start() for x in t], [x.join() for x in t]",
]


def test_whatever_a_child_imports_first_jax_is_minijax():
    code = """
import jax, sys, jax.tree_util, minijax.tree_util
pairs = [(name, "mini" + name) for name in sys.modules if name.startswith("jax.") and "mini" + name in sys.modules]
others = [name for name, ours in pairs if sys.modules[name] is not sys.modules[ours]]
print(jax is sys.modules["jax"] is sys.modules["minijax"], jax.tree_util is minijax.tree_util, others)
"""
    assert of_children(*(first + code for first in FIRST_IMPORTS)) == [["True True []"]] * len(FIRST_IMPORTS)


def test_a_child_learns_the_version_of_jax_before_and_after_its_import():
    look = "print(m.version('jax'), m.version('JAX'), m.metadata('jax')['Name'], 'jax' in m.packages_distributions())"
    for first in ("", "import jax; "):
        assert of_children(f"{first}import importlib.metadata as m; {look}") == [["0.10.2 0.10.2 jax True"]]


def test_a_child_process_computes_and_names_missing_features():
    codes = ["import jax.numpy as jnp; print(jnp.ones(2) + 1)", "import jax.nosuch"]
    computed, missing = of_children(*codes)
    assert computed == ["[2. 2.]"]
    assert missing[-1] == "ModuleNotFoundError: No module named 'jax.nosuch'"


def test_children_elsewhere_and_children_of_children_see_jax(elsewhere):
    (elsewhere / "child.py").write_text("import jax; print(jax.__spec__.name)\n")
    (elsewhere / "folder").mkdir()
    code = f"""
import subprocess, sys
subprocess.run([sys.executable, "child.py"]), subprocess.run([sys.executable, "-m", "child"])
subprocess.run([sys.executable, {str(elsewhere / "child.py")!r}], cwd="folder")
subprocess.run([sys.executable, "-c", "import subprocess, sys; subprocess.run([sys.executable, 'child.py'])"])
subprocess.run([sys.executable, "-m", "minijax", "child.py"])
subprocess.run([sys.executable, "-P", "child.py"])
"""
    assert printed(code) == "minijax\n" * 6


def test_pools_of_processes_see_jax(elsewhere):
    (elsewhere / "program.py").write_text("""
import multiprocessing, sys

def look(x):
    import jax
    return jax.__spec__.name

if __name__ == "__main__":
    for start in multiprocessing.get_all_start_methods():
        with multiprocessing.get_context(start).Pool(1) as pool:
            print(pool.map(look, [0]))
""")
    # With -I neither Python reads PYTHONPATH: the path itself is passed.
    isolated = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); from minijax.interop.command import main; main(['program.py'])"
    )
    for run in (minijax("program.py"), python("-I", "-c", isolated)):
        assert set(run.stdout.splitlines()) == {"['minijax']"}, run.stderr


def test_the_environment_of_children_keeps_the_users_path(monkeypatch):
    code = "import os; print(os.environ['PYTHONPATH'], os.environ['MINIJAX_AS_JAX'])"
    assert printed(code) == os.pathsep.join([FOLDER, str(ROOT)]) + " 1\n"
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([FOLDER, "a", str(ROOT)]))
    monkeypatch.setenv("MINIJAX_AS_JAX", "0")
    assert printed(code) == os.pathsep.join([FOLDER, "a", str(ROOT)]) + " 1\n"


@pytest.mark.oracle
def test_a_child_may_have_the_real_jax():
    code = """
import os, subprocess, sys
child = [sys.executable, "-c", "import sys, jax.numpy as jnp; print(jnp.__spec__.name, 'minijax' in sys.modules, sys.modules['jax'].__version__)"]
subprocess.run(child, env={**os.environ, "MINIJAX_AS_JAX": "0"})
del os.environ["PYTHONPATH"]
subprocess.run(child)
"""
    assert printed(code) == "jax.numpy False 0.10.2\n" * 2


# Children in another environment, without minijax


@pytest.fixture
def other_python(elsewhere):
    """A Python without packages."""
    venv.create(elsewhere / "other", symlinks=True)
    return elsewhere / "other" / ("Scripts" if os.name == "nt" else "bin") / "python"


def test_without_jaxlib_the_import_error_gives_the_reason(other_python):
    code = f"import os, subprocess; os.environ['PYTHONPATH'] = {FOLDER!r}; subprocess.run([{str(other_python)!r}, '-c', 'import jax.numpy'])"
    last = minijax("-c", code).stderr.splitlines()[-1]
    assert last.startswith(f"ImportError: jax means minijax here, by the folder {FOLDER} on Python's path, but ")
    assert f"{other_python} has no jaxlib, ml_dtypes, numpy" in last and "MINIJAX_AS_JAX=0" in last


def test_a_python_with_jaxlib_takes_the_minijax_that_started_it(other_python, elsewhere):
    (elsewhere / "packages").mkdir()
    for name in ("jaxlib", "numpy", "ml_dtypes"):
        found = Path(importlib.util.find_spec(name).origin).parent
        for path in (found, *found.parent.glob(f"{name}.libs")):
            (elsewhere / "packages" / path.name).symlink_to(path)
    (elsewhere / "minijax").mkdir()  # no package: it has no __init__.py
    path = os.pathsep.join([FOLDER, str(elsewhere / "packages")])
    child = "import jax; print(jax.__file__, jax.numpy.ones(2) + 1)"
    code = f"import os, subprocess; os.environ['PYTHONPATH'] = {path!r}; subprocess.run([{str(other_python)!r}, '-c', {child!r}])"
    run = minijax("-c", code)
    assert run.stdout == f"{ROOT / 'minijax' / '__init__.py'} [2. 2.]\n", run.stderr


# Other ways in


SUITE = {
    "conftest.py": "import jax\n\n\ndef pytest_report_header():\n    return f'jax is {jax.__spec__.name}'\n",
    "test_it.py": """
import subprocess, sys
import jax

def test_it():
    assert jax.__spec__.name == "minijax" and (jax.numpy.ones(2) + 1).sum() == 4

def test_children():
    command = [sys.executable, "-c", "import jax; print(jax.__spec__.name)"]
    assert subprocess.run(command, capture_output=True).stdout == b"minijax\\n"
""",
}


@pytest.mark.parametrize(
    "start", [["-m", "minijax", "-m", "pytest", "-n", "1"], ["-m", "pytest", "-p", "minijax.interop.pytest_plugin"]]
)
def test_tests_run_on_minijax(elsewhere, start):
    for name, text in SUITE.items():
        (elsewhere / name).write_text(text)
    run = python(*start, "-q", elsewhere)
    assert run.returncode == 0, run.stdout + run.stderr


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
