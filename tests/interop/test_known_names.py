"""Modules, functions and classes have jax's names where jax is minijax, and are found by them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULES = """
numpy numpy.fft numpy.linalg lax lax.linalg nn nn.initializers random ops image tree_util scipy.special scipy.linalg
scipy.stats.norm scipy.ndimage sharding stages core extend.core debug custom_derivatives experimental.sparse
experimental.ode example_libraries.stax interpreters.ad interpreters.mlir
""".split()
# What is numpy's, jaxlib's or an error's there. Of sparse arrays jax has the functions in files that are public too.
ELSEWHERE = """
extend.core.InconclusiveDimensionOperation extend.core.JaxprTypeError interpreters.mlir.dense_int_array numpy.can_cast
sharding.Sharding
"""
PROGRAM = f"""
import importlib, json, pickle, types
import jax
MODULES = {MODULES}
found = {{}}
for path in ["", *MODULES]:
    module = importlib.import_module("jax." + path) if path else jax
    found[path] = [module.__name__, {{}}]
    for name in dir(module):
        x = getattr(module, name)
        if name.startswith("_") or isinstance(x, types.ModuleType) or not isinstance(getattr(x, "__qualname__", None), str):
            continue
        home = getattr(x, "__module__", None)
        if not isinstance(home, str):
            continue
        again = importlib.import_module(home)
        for part in x.__qualname__.split("."):
            again = getattr(again, part, None)
        found[path][1][name] = home, again is x
aval, array = jax.typeof(1.0), jax.numpy.ones(2)
jaxpr = jax.make_jaxpr(lambda x: x + 1.0)(1.0)
lowered = jax.jit(lambda x: x).lower(1.0)
objects = [jaxpr, jaxpr.jaxpr, jaxpr.eqns[0], *jaxpr.eqns[0].invars, jax.new_ref(array), array.sharding, array.format, lowered,
           lowered.compile(), jax.jit(len), jax.numpy.add, jax.custom_jvp(len), jax.custom_vjp(len), jax.numpy.linalg.qr(jax.numpy.eye(2)),
           jax.numpy.linalg.eigh(jax.numpy.eye(2)), jax.P("x"), aval, array, jax.tree_util.Partial(len)]
classes = [f"{{type(x).__module__}}.{{type(x).__name__}}" for x in objects]
print(json.dumps([found, classes]))
"""


def told(*start):
    run = subprocess.run([sys.executable, *start, "-c", PROGRAM], capture_output=True, text=True, timeout=120, cwd=ROOT)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@pytest.fixture(scope="module")
def sides():
    return told("-m", "minijax"), told()


@pytest.mark.oracle
def test_modules_have_jaxs_names(sides):
    ours, theirs = sides
    assert {path: name for path, (name, _) in ours[0].items()} == {path: name for path, (name, _) in theirs[0].items()}


@pytest.mark.oracle
def test_classes_of_objects_have_jaxs_names(sides):
    ours, theirs = sides
    assert ours[1] == theirs[1]


@pytest.mark.oracle
def test_functions_and_classes_are_found_by_their_names(sides):
    ours, theirs = sides
    lost = [
        f"{path}.{name}"
        for path, (_, names) in ours[0].items()
        for name, (home, is_there) in names.items()
        if home.startswith("jax") and not is_there and theirs[0][path][1].get(name, [None, False])[1]
    ]
    assert lost == []


@pytest.mark.oracle
def test_functions_of_public_modules_have_module_names_of_jax(sides):
    """Where jax's function names a public module, ours does."""
    ours, theirs = sides
    differing = {
        f"{path}.{name}": (home, theirs[0][path][1][name][0])
        for path, (_, names) in ours[0].items()
        for name, (home, _) in names.items()
        if "_src" not in theirs[0][path][1].get(name, ["_src"])[0] and home != theirs[0][path][1][name][0]
    }
    assert {name for name in differing if not name.startswith("experimental.sparse.")} <= set(ELSEWHERE.split())
