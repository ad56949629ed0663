"""Static types: stubs that agree with the tables of names, and what checkers and editors find by them."""

import ast
import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import jaxlib
import pytest
import write_stubs

import minijax as jax
import minijax.numpy as jnp
from minijax.base import native
from minijax.run.arrays.array import ArrayImpl
from minijax.run.clients import client

ROOT = Path(__file__).resolve().parents[1]
PROGRAMS = ROOT / "tests" / "typing"
METHODS, DEVICE = (ROOT / "minijax" / "run" / name for name in ("arrays/array_methods.pyi", "clients/device.pyi"))
NATIVE = ROOT / "minijax" / "base" / "native.pyi"
TRACERS = ROOT / "minijax" / "ir" / "tracer_methods.pyi"
# Types of arguments and defaults are printed as the interpreter and jaxlib of the oracle have them.
as_written = pytest.mark.skipif(jaxlib.__version__ != "0.10.2", reason="stubs are written with jaxlib 0.10.2")

# ---- stubs ------------------------------------------------------------------------------------------


@as_written
def test_stubs_are_those_of_the_tables():
    stubs = write_stubs.stubs()
    assert {path.relative_to(ROOT): path.read_text() for path in stubs if path.exists()} == {
        path.relative_to(ROOT): text for path, text in stubs.items()
    }, "run `python tests/write_stubs.py`"
    assert set((ROOT / "minijax").rglob("*.pyi")) == {*stubs, METHODS, NATIVE, DEVICE, TRACERS}


def test_the_package_is_marked_as_typed():
    assert (ROOT / "minijax" / "py.typed").exists()
    assert '"py.typed", "**/*.pyi"' in (ROOT / "pyproject.toml").read_text()


def classes(path: Path) -> dict[str, set[str]]:
    """The public names that a stub gives each class."""
    found = {n.name: n.body for n in ast.parse(path.read_text()).body if isinstance(n, ast.ClassDef)}
    names = {
        c: {getattr(n, "name", "") or getattr(getattr(n, "target", None), "id", "") for n in found[c]} for c in found
    }
    return {c: {n for n in names[c] if n and not n.startswith("_")} for c in names}


@as_written
def test_the_stubs_of_classes_of_jaxlib_have_their_names():
    shown = classes(NATIVE) | classes(DEVICE)
    values = {name: getattr(native, name, None) or getattr(client, name) for name in shown}
    del shown["JaxRuntimeError"]
    assert shown == {name: {n for n in dir(values[name]) if not n.startswith("_")} for name in shown}


# ---- the class of arrays ----------------------------------------------------------------------------


def declared() -> dict[str, ast.FunctionDef]:
    """The attributes that the stub gives arrays."""
    (methods,) = (n for n in ast.parse(METHODS.read_text()).body if getattr(n, "name", "") == "ArrayMethods")
    return {node.name: node for node in methods.body if isinstance(node, ast.FunctionDef)}


# Attributes of every object, and those of arrays for NumPy and for pickles: users do not call these.
OF_OBJECTS = {name for name in dir(object) if name not in ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__")}
FOR_NUMPY = """
    __array_priority__ __copy__ __cuda_array_interface__ __deepcopy__ __dict__ __hash__ __hex__ __jax_array__ __module__
    __numpy_dtype__ __oct__ __setitem__ __slots__ __weakref__ __annotations__
""".split()


def test_the_stub_of_arrays_has_the_names_of_arrays():
    names = {n for n in dir(ArrayImpl) if not re.match(r"_[^_]", n)} - OF_OBJECTS - set(FOR_NUMPY)
    assert set(declared()) | {"aval"} == names


@pytest.mark.parametrize("name", [n for n in declared() if not n.startswith("__")])
def test_a_method_of_arrays_has_the_signature_of_the_stub(name):
    node, value = declared()[name], getattr(ArrayImpl, name)
    if isinstance(value, property):
        assert [ast.unparse(d) for d in node.decorator_list] == ["property"]
        return
    a, parameters = node.args, inspect.signature(value).parameters.values()
    kinds = [(x.arg, "POSITIONAL_OR_KEYWORD") for x in a.args] + [(x.arg, "KEYWORD_ONLY") for x in a.kwonlyargs]
    if a.vararg:
        kinds.insert(len(a.args), (a.vararg.arg, "VAR_POSITIONAL"))
    assert [(p.name, p.kind.name) for p in parameters] == kinds
    defaults = [ast.unparse(d) for d in (*a.defaults, *a.kw_defaults) if d is not None]
    assert [repr(p.default) for p in parameters if p.default is not p.empty] == defaults


def shape_of(function) -> list[tuple] | None:
    """The names, kinds and defaults of a method's parameters."""
    try:
        return [(p.name, p.kind, p.default) for p in inspect.signature(function).parameters.values()]
    except (TypeError, ValueError):
        return None


@pytest.mark.oracle
def test_methods_of_arrays_have_the_signatures_of_jax():
    import jax as real

    ours, theirs = {}, {}
    for name in dir(real.Array):
        if shape_of(getattr(real.Array, name)) and hasattr(jax.Array, name):
            ours[name], theirs[name] = shape_of(getattr(jax.Array, name)), shape_of(getattr(real.Array, name))
    assert len(ours) > 80 and ours == theirs


@pytest.mark.oracle
@pytest.mark.parametrize("name", "add apply divide get max min mul multiply power set subtract".split())
def test_updates_of_arrays_have_the_signatures_of_jax(name):
    import jax.numpy as real

    assert shape_of(getattr(jnp.ones(3).at[0], name)) == shape_of(getattr(real.ones(3).at[0], name))


# ---- checkers ---------------------------------------------------------------------------------------

CHECKED = [str(PROGRAMS / f"{name}.py") for name in ("correct", "libraries", "wrong")]
Found = dict[tuple[str, int], list[str]]  # messages by the name and the line of a program


def _pyright(text: str) -> tuple[Found, Found]:
    errors: Found = {}
    notes: Found = {}
    for entry in json.loads(text)["generalDiagnostics"]:
        where = Path(entry["file"]).stem, entry["range"]["start"]["line"] + 1
        found = {"error": errors, "information": notes}.get(entry["severity"], {})
        found.setdefault(where, []).append(entry["message"])
    return errors, notes


def _mypy(text: str) -> tuple[Found, Found]:
    errors: Found = {}
    notes: Found = {}
    for path, line, kind, message in re.findall(r"^(.+?):(\d+): (error|note): (.*)$", text, re.MULTILINE):
        found = {"error": errors, "note": notes}[kind]
        found.setdefault((Path(path).stem, int(line)), []).append(message)
    return errors, notes


@pytest.fixture(scope="module")
def findings(tmp_path_factory) -> dict[str, tuple[Found, Found]]:
    """Errors and notes of all programs: one run of each checker, both at a time."""
    pytest.importorskip("mypy")
    pytest.importorskip("basedpyright")
    cache = tmp_path_factory.mktemp("mypy")
    # As for users, who have the package in site-packages: errors of its own files are not shown, those of stubs neither.
    settings = cache / "mypy.ini"
    settings.write_text("[mypy]\nfollow_imports = silent\nfollow_imports_for_stubs = True\n")
    commands = {
        "basedpyright": ["basedpyright", "--outputjson", "--pythonpath", sys.executable],
        "mypy": ["mypy", "--cache-dir", str(cache), "--config-file", str(settings), "--no-error-summary"],
    }
    environment = os.environ | {"MYPYPATH": str(ROOT)}
    runs = {
        name: subprocess.Popen([sys.executable, "-m", *command, *CHECKED], cwd=ROOT, env=environment, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        for name, command in commands.items()
    }  # fmt: skip
    texts = {name: run.communicate()[0] for name, run in runs.items()}
    return {"basedpyright": _pyright(texts["basedpyright"]), "mypy": _mypy(texts["mypy"])}


CHECKERS = ["basedpyright", "mypy"]
slow = pytest.mark.slow  # checkers read the package and NumPy's stubs without a cache


@slow
@pytest.mark.parametrize("checker", CHECKERS)
def test_checkers_find_every_mistake_and_nothing_else(checker, findings):
    lines = (PROGRAMS / "wrong.py").read_text().splitlines()
    marked = {("wrong", i) for i, line in enumerate(lines, 1) if line.endswith("# wrong")}
    assert len(marked) >= 40
    errors, _ = findings[checker]
    assert set(errors) == marked, {where: errors.get(where) for where in set(errors) ^ marked}


@slow
@pytest.mark.parametrize("checker", CHECKERS)
def test_type_checkers_infer_the_types_of_results(checker, findings):
    _, notes = findings[checker]
    shown = [text for (program, _), texts in sorted(notes.items()) for text in texts if program == "correct"]
    array = re.compile(r'is "(minijax\.run\.arrays\.array\.)?Array"')
    assert array.search(shown[0])
    assert re.search(r"PjitFunction\[.*params: dict\[str, .*Array\], x: .*Array, \*, depth: int", shown[1])


def test_the_correct_program_runs(capsys):
    module = {"__name__": "correct"}
    exec(compile((PROGRAMS / "correct.py").read_text(), "correct.py", "exec"), module)
    assert module["train"](2) > 0
    assert module["cumulative"](jnp.arange(3.0))[0] == 10
    assert module["derivatives"](jnp.arange(3.0)).shape == (3,)
    assert module["arrays"]([1.0] * 6).shape == (1, 2)
    assert module["places"](jnp.ones((2, 2))).shape == (2, 2)
    module["stages"](jnp.ones(3))


def test_the_program_over_libraries_runs(capsys):
    module = {"__name__": "libraries"}
    exec(compile((PROGRAMS / "libraries.py").read_text(), "libraries.py", "exec"), module)
    for name in ("trees", "libraries", "primitives", "numbers"):
        module[name]()


# ---- editors ----------------------------------------------------------------------------------------

CODES = {
    "import {0}.numpy as jnp\njnp.do": {"dot", "double"},
    "import {0} as jax\njax.random.nor": {"normal"},
    "import {0}.numpy as jnp\nx = jnp.ones(3)\nx.": {"sum", "at", "shape", "astype", "T", "block_until_ready"},
}


@pytest.mark.oracle
@pytest.mark.parametrize("code", CODES)
def test_an_editor_offers_without_an_import_what_it_offers_for_jax(code):
    jedi = pytest.importorskip("jedi")
    environment = jedi.api.environment.InterpreterEnvironment()

    def offered(package: str) -> set[str]:
        script = jedi.Script(code.format(package), environment=environment)
        return {c.name for c in script.complete() if not c.name.startswith("_")}

    ours, theirs = offered("minijax"), offered("jax")
    assert CODES[code] <= ours
    assert theirs - ours == set()


ALIASED = {
    "import jax\njax.": {"jit", "grad", "numpy", "lax", "tree"},
    "import jax.numpy as jnp\njnp.": {"dot", "linalg", "float32"},
    "import jax.numpy as jnp\njnp.linalg.": {"norm", "svd"},
    "import jax.numpy as jnp\nx = jnp.ones(3)\nx.": {"sum", "at", "shape", "astype", "T"},
    "import jax\njax.tree.": {"map", "leaves"},
    "from jax.scipy.special import log": {"logsumexp", "logit"},
    "import jax.numpy as jnp\njnp.finfo(jnp.float32).": {"eps", "max"},
}


@pytest.mark.parametrize("code", ALIASED)
def test_an_editor_finds_the_names_of_jax_where_jax_is_an_alias(code):
    jedi = pytest.importorskip("jedi")
    project = jedi.Project(ROOT, sys_path=[str(ROOT / "minijax" / "interop" / "as_jax"), str(ROOT), *sys.path])
    offered = {c.name for c in jedi.Script(code, project=project).complete()}
    assert ALIASED[code] <= offered


def test_an_editor_shows_signatures_where_jax_is_an_alias():
    jedi = pytest.importorskip("jedi")
    project = jedi.Project(ROOT, sys_path=[str(ROOT / "minijax" / "interop" / "as_jax"), str(ROOT), *sys.path])
    (found,) = jedi.Script("import jax.numpy as jnp\njnp.clip(", project=project).get_signatures()
    assert [p.name for p in found.params] == ["arr", "min", "max"]
