"""`jax._src`: the undocumented names that libraries reach for, and no others."""

import subprocess
import sys
from pathlib import Path

import pytest

from minijax.interop.private import ROOMS

ROOT = Path(__file__).resolve().parents[2]


def printed(code):
    """What a program prints in which jax is minijax."""
    run = subprocess.run(
        [sys.executable, "-m", "minijax", "-c", code], capture_output=True, text=True, timeout=120, cwd=ROOT
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_each_name_is_there_in_its_module():
    code = f"""
import importlib, sys
for path in {sorted(ROOMS)}:
    module = importlib.import_module("jax._src." + path)
    for name in dir(module):
        if not name.startswith("__"):
            getattr(module, name)
            print(path, name)
print(any("/site-packages/jax/" in str(getattr(module, "__file__", "")) for module in sys.modules.values()))
"""
    lines = printed(code).splitlines()
    assert len(lines) > 40
    assert lines[-1] == "False"  # nothing of the real jax was loaded


def test_other_names_are_absent():
    code = """
import importlib
import jax
print(hasattr(jax._src, "absent"), hasattr(jax._src.core, "absent"), hasattr(jax._src.core, "importlib"))
for name in ("absent", "core.absent", "pallas"):
    try:
        importlib.import_module("jax._src." + name)
    except ModuleNotFoundError as error:
        print(error.name)
try:
    jax._src.core.absent
except AttributeError as error:
    print(error)
"""
    assert printed(code).splitlines() == [
        "False False False",
        "jax._src.absent",
        "jax._src.core.absent",
        "jax._src.pallas",
        "module 'jax._src.core' has no attribute 'absent'",
    ]


def test_without_the_alias_there_are_none():
    code = "import minijax\ntry:\n    import minijax._src\nexcept ImportError as error:\n    print(error.name, hasattr(minijax, '_src'))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, cwd=ROOT)
    assert run.stdout == "minijax._src False\n", run.stderr


def test_who_replaces_a_name_replaces_it_where_it_stands():
    code = """
import jax
from jax._src import compiler
inner = compiler.backend_compile_and_load
def refuse(backend, *args, **kwargs):
    raise RuntimeError("no compilation for " + backend.platform)
compiler.backend_compile_and_load = refuse
try:
    jax.jit(lambda x: x * 3 + 1)(2.0)
except RuntimeError as error:
    print(error)
compiler.backend_compile_and_load = inner
print(jax.jit(lambda x: x * 3 + 1)(2.0))
"""
    assert printed(code) == "no compilation for cpu\n7.0\n"


@pytest.mark.parametrize(
    "code, text",
    [
        ("jax._src.core.physical_aval(jax.random.key(0).aval)", "uint32[2]"),
        ("jax._src.core.trace_state_clean(), jax.make_jaxpr(lambda: jax._src.core.trace_state_clean() * 1)()", "(True, { lambda ; . let  in (0:i32[],) })"),
        ("[t in jax._src.tree_util._registry for t in (dict, list, tuple, type(None), jax.tree_util.Partial, set)]", "[True, True, True, True, True, False]"),
        ("jax._src.tree_util._registry[list].from_iter(None, jax._src.tree_util._registry[list].to_iter([1, 2])[0])", "[1, 2]"),
        ("str(jax._src.tree_util.prefix_errors((0, [1]), (0, (1,)))[0]('axes')).partition('\\n')[0]", "pytree structure error: different types at key path"),
        ("jax._src.api_util.infer_argnums_and_argnames(inspect.signature(lambda a, b: 0), None, 'b')", "((1,), ('b',))"),
        ("jax._src.traceback_util.include_frame(sys._getframe()), __file__ in jax._src.traceback_util._exclude_paths", "(True, False)"),
        ("jax._src.distributed.global_state.process_id, jax._src.distributed.global_state.client", "(0, None)"),
        ("list((jax.devices(), jax._src.xla_bridge._backends)[1])", "['cpu']"),
    ],
)  # fmt: skip
def test_what_names_give(code, text):
    program = f"import inspect, sys, jax\n__file__ = 'here'\nfor m in {sorted(ROOMS)}: __import__('jax._src.' + m)\nprint(({code}))"
    assert printed(program) == text + "\n"


def test_the_cause_of_a_shortened_traceback():
    code = """
import jax
from jax._src import traceback_util
jax.config.update("jax_traceback_filtering", "remove_frames")
try:
    jax.jit(lambda x: x.absent)(1.0)
except AttributeError as error:
    print(type(error.__cause__) is traceback_util.UnfilteredStackTrace)
"""
    assert printed(code) == "True\n"


@pytest.mark.oracle
def test_arrays_and_tracers_are_of_modules_that_name_their_library():
    """Libraries choose functions by the module of an array's type (autoray, opt_einsum)."""
    code = """
import jax, jax.numpy as jnp
x, show = jnp.ones(2), lambda x: print(type(x).__module__, type(x).__qualname__) or x
show(x), show(jax.random.key(0)), jax.jit(show)(x), jax.vmap(show)(x), jax.grad(show)(1.0), jax.jvp(show, (x,), (x,))
"""
    real = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, cwd=ROOT)
    assert real.returncode == 0, real.stderr
    assert printed(code) == real.stdout
