"""Docstrings of public functions: what each one says, and the examples, which run."""

import copy
import functools
import importlib
import inspect
import pickle
import pkgutil
import pydoc
import re
import subprocess
import sys
import types

import pytest
from examples import check_examples

import minijax as jax
import minijax.numpy as jnp
from minijax.base.documentation import Documentation

# The public modules whose functions are described in full sentences. More can be added as they are done.
MODULES = """
minijax.numpy minijax.numpy.fft minijax.numpy.linalg
minijax.scipy.cluster.vq minijax.scipy.fft minijax.scipy.integrate minijax.scipy.interpolate minijax.scipy.linalg
minijax.scipy.ndimage minijax.scipy.optimize minijax.scipy.signal minijax.scipy.sparse.linalg
minijax.scipy.spatial.transform minijax.scipy.special minijax.scipy.stats
""".split()
STATS = [f"minijax.scipy.stats.{m}" for m in dir(importlib.import_module("minijax.scipy.stats")) if m[0] != "_"]
MODULES += [
    m for m in STATS if isinstance(getattr(sys.modules["minijax.scipy.stats"], m.rpartition(".")[2]), types.ModuleType)
]

# Functions that NumPy and SciPy do not have under these names.
OURS = """
scipy.special.bessel_jn scipy.stats.vonmises scipy.special.lpmn scipy.special.lpmn_values numpy.astype
""".split()

VERBS = re.compile(r"[A-Z]\w*s (?!of\b)|Alias of :func:`jax\.[\w.]+`\.$")


def functions() -> dict[str, object]:
    """The public functions of the modules, by dotted name; no classes, and nothing that is another library's."""
    found = {}
    for module in map(importlib.import_module, MODULES):
        for name in dir(module):
            value = None if name.startswith("_") else getattr(module, name, None)  # older ml_dtypes have no int1
            is_ours = str(getattr(value, "__module__", "")).startswith(("minijax", "jax"))
            if callable(value) and not isinstance(value, type) and is_ours:
                found[f"{module.__name__}.{name}"] = value
    return found


FUNCTIONS = functions()
named = pytest.mark.parametrize("name", FUNCTIONS)


def own(name: str) -> str:
    """Our own text, without another library's."""
    return inspect.cleandoc(str.__str__(FUNCTIONS[name].__doc__))


def test_the_functions_are_found():
    assert len(FUNCTIONS) > 550


@named
def test_it_starts_with_a_sentence_with_a_verb(name):
    first = own(name).partition("\n")[0]
    assert first.endswith(".") and VERBS.match(first) and "As `" not in own(name), first


# ---- the text of NumPy and SciPy ----------------------------------------------------------------------


def other(name: str):
    """The function of NumPy or SciPy, or None if there is none."""
    try:
        return pkgutil.resolve_name(name.removeprefix("minijax."))
    except (AttributeError, ImportError):
        return None


def sentence(text: str) -> str:
    """The first line of prose, after the paragraph of a signature."""
    paragraphs = re.split(r"\n\s*\n", inspect.cleandoc(text))
    prose = next(p for p in paragraphs if p.strip() and not re.match(r"\w+\(.*", p))
    return prose.partition("\n")[0]


@named
def test_it_goes_on_with_the_text_of_the_other_function(name):
    function, doc = FUNCTIONS[name], FUNCTIONS[name].__doc__
    if not name.startswith(("minijax.numpy", "minijax.scipy")):
        return
    assert isinstance(doc, Documentation)
    text = inspect.getdoc(function)
    assert text.startswith(own(name))
    if doc.startswith("Alias of"):
        assert own(doc.source) in text
    elif getattr(other(name), "__doc__", None):
        assert sentence(other(name).__doc__) in text and f"'s documentation of `{doc.source}`:" in text
        assert "See Also" not in text and ">>> np." not in text.removeprefix(own(name))
    else:
        assert text == own(name)


def test_every_way_to_show_it_shows_both_texts(capsys):
    doc = jnp.dot.__doc__
    text = inspect.getdoc(jnp.dot)
    assert "NumPy's documentation of `numpy.dot`:" in text and len(text.splitlines()) > 40
    print(doc)
    assert capsys.readouterr().out.strip() == text
    assert str(doc) == f"{doc}" == "\n".join(doc.splitlines()) == doc.expandtabs() == text == doc.strip()
    assert pydoc.render_doc(jnp.dot, renderer=pydoc.plaintext).count("documentation of") == 1
    assert doc.split("\n") == text.split("\n")


def test_it_can_be_pickled_copied_and_wrapped():
    doc = jnp.dot.__doc__
    for twin in (
        pickle.loads(pickle.dumps(doc)),
        copy.copy(doc),
        copy.deepcopy(doc),
        functools.wraps(jnp.dot)(lambda: 0).__doc__,
    ):
        assert type(twin) is Documentation and twin == doc and str(twin) == str(doc)
    assert pickle.loads(pickle.dumps(jnp.sum)) is jnp.sum


def test_parameters_that_we_do_not_take_are_left_out():
    parameters = str(jnp.exp.__doc__).partition("Parameters\n")[2].partition("Returns\n")[0]
    assert re.findall(r"^  (\S+) : ", parameters, re.MULTILINE) == ["x"]
    assert re.search(r"^ +where : ", str(jnp.sum.__doc__), re.MULTILINE)
    assert "overwrite_a :" not in inspect.getdoc(jax.scipy.linalg.sqrtm)


def test_a_method_shows_the_function():
    assert "Computes the sum of elements" in inspect.getdoc(jnp.ones(2).sum)


def test_a_source_that_is_absent_leaves_our_text():
    for source in ("numpy.no_such_function", "scipy.no_such_module.f"):
        assert str(Documentation("Text.", source)) == "Text."


def run(program: str, *flags: str) -> str:
    return subprocess.run(
        [sys.executable, *flags, "-c", program], check=True, capture_output=True, text=True, timeout=120
    ).stdout.strip()


def test_nothing_is_imported_before_it_is_read():
    program = """
import sys, minijax.numpy as jnp, minijax.scipy.stats as stats
[getattr(jnp, name) for name in dir(jnp)]; stats.norm.pdf; before = set(sys.modules)
print(any(m.partition(".")[0] == "scipy" for m in before), "pydoc" in before, "SciPy" in str(stats.norm.pdf.__doc__))
"""
    assert run(program) == "False False True"


def test_there_may_be_no_docstrings():
    assert (
        run("import minijax.numpy as jnp; print(jnp.dot.__doc__, jnp.exp.__doc__, jnp.sum(jnp.ones(2)))", "-OO")
        == "None None 2.0"
    )


# ---- examples -----------------------------------------------------------------------------------------

EXAMPLES = [name for name in FUNCTIONS if ">>>" in own(name)]


def test_each_function_has_an_example():
    assert [name for name in FUNCTIONS if name not in EXAMPLES and not own(name).startswith("Alias of")] == []


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_examples_run(name):
    check_examples(name, own(name))


# Those that libraries call most, but for classes.
MUCH_USED = """
numpy: absolute add all allclose any arange argmax argmin argsort array asarray broadcast_to clip concatenate cos cumsum
    diag dot einsum empty exp expand_dims eye flip floor full full_like isfinite isnan issubdtype linspace log
    logical_and logical_not logical_or matmul max maximum mean min minimum moveaxis multiply ndim ones ones_like outer
    pad power prod repeat reshape result_type roll round shape sign sin sort split sqrt square squeeze stack std sum
    swapaxes take take_along_axis tanh tensordot tile trace transpose tril where zeros zeros_like
numpy.linalg: inv norm
scipy.special: logsumexp
scipy.linalg: solve_triangular
"""
SECTIONS = [
    f"minijax.{module}.{name}"
    for module, _, names in (line.partition(": ") for line in re.split(r"\n(?=\w)", MUCH_USED.strip()))
    for name in names.split()
]


@pytest.mark.parametrize("name", SECTIONS)
def test_much_used_functions_have_sections(name):
    text = own(name)
    assert all(part in text for part in ("\nArgs:\n", "\nReturns:\n", "\nSee also: ", "\nExample:\n"))
    assert text.count("\n") >= 14
    listed = {n for n in inspect.signature(FUNCTIONS[name]).parameters if n not in ("out", "args", "_dot_general")}
    is_ufunc = isinstance(FUNCTIONS[name], jnp.ufunc)
    assert is_ufunc or listed <= set(re.findall(r"^  \*{0,2}(\w+): ", text, re.MULTILINE)), listed
