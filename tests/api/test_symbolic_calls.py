"""Dimension variables by the shapes of arguments: values, and the errors with which jax's exported programs refuse."""

import importlib
import re

import numpy as np
import pytest

# Specifications of arguments, shapes with which they are called, constraints.
CALLS = [
    (["b*b, b*d*d, d"], [(4, 36, 3)], []),
    (["3*b, c"], [(5, 36)], []),
    (["3*b, c"], [(6, 36)], []),
    (["3*b+10"], [(10,)], []),
    (["-a+10"], [(12,)], []),
    (["-2*a+10, a*a"], [(6, 4)], []),
    (["-2*a+10, a*a"], [(6, 5)], []),
    (["a,a"], [(2, 3)], []),
    (["a"], [(0,)], []),
    (["a-1"], [(0,)], []),
    (["a"], [(1,)], ["a>=2", "a<=4"]),
    (["a"], [(5,)], ["a>=2", "a<=4"]),
    (["a,b"], [(3, 2)], ["max(a,b)==b"]),
    (["a,b"], [(3, 3)], ["max(a, b) == 4", "a == b"]),
    (["a,b"], [(3, 2)], ["a==b"]),
    (["a,b"], [(3, 2)], ["2*a==b"]),
    (["a,b"], [(5, 4)], ["mod(a,2)==0"]),
    (["a", "mod(a,3), b"], [(4,), (1, 2)], []),
    (["a", "mod(a,3), b"], [(4,), (2, 2)], []),
    (["2*a+b, a"], [(4, 2)], []),
    (["a+b, a"], [(4, 2)], []),
    (["floordiv(a,2)"], [(2,)], []),
    (["a*b, a"], [(4, 2)], []),
    (["a*b+c, a, b"], [(9, 2, 3)], []),
    (["a*floordiv(b,2), b"], [(9, 2)], []),
    (["a"], [(2,)], ["a>=b"]),
    (["a, c", "a"], [(2, 3), (3,)], []),
    (["2*a, a+1"], [(4, 4)], []),
    (["max(a,4)", "a"], [(4,), (3,)], []),
    (["max(a,4)", "a"], [(5,), (3,)], []),
]


def called(package, specs, shapes, constraints):
    jax, export = importlib.import_module(package), importlib.import_module(f"{package}.export")
    scope = export.SymbolicScope(constraints)
    specs = [jax.ShapeDtypeStruct(export.symbolic_shape(spec, scope=scope), np.float32) for spec in specs]
    export.export(jax.jit(lambda *args: args[0]))(*specs).call(*(np.ones(shape, np.float32) for shape in shapes))


# Specifications of an exported function, and of one that calls it.
NESTED = [
    ("3, a, a+b", "3, 4, c"), ("3, a, b", "3, c-4, 12"), ("3, a, b", "c, c, c"), ("3, a, a+b", "3, c, d"), ("3, a, b", "3, c, c+d"),
    ("3, 4, 5*a", "3, 4, c"), ("3, a, b+2", "3, c, d"), ("3, a, max(a, 5)", "3, c, d"), ("3, a, a", "3, 4, c"),
]  # fmt: skip


def nested(package, inner, outer):
    jax, export = importlib.import_module(package), importlib.import_module(f"{package}.export")
    inner, outer = [jax.ShapeDtypeStruct(export.symbolic_shape(spec), np.float32) for spec in (inner, outer)]
    called = export.export(jax.jit(lambda x: x * 2))(inner)
    return str(export.export(jax.jit(called.call))(outer).out_avals)


def kept_apart(package, specs):
    """The error of an export for variables of two scopes."""
    jax, export = importlib.import_module(package), importlib.import_module(f"{package}.export")
    specs = jax.tree.map(lambda spec: jax.ShapeDtypeStruct(export.symbolic_shape(spec), np.float32), specs)
    export.export(jax.jit(lambda *args, **kwargs: 0.0))(*specs[0], **specs[1])


def outcome(package, *case, run=called):
    """The error's class and words, without what follows the facts."""
    try:
        return run(package, *case)
    except Exception as error:
        words = re.split(r"\.? ?,? ?\.? ?(Please see|See http|\nThe )", str(error))[0]
        return type(error).__name__, re.sub(r"\s+", " ", words)


@pytest.mark.parametrize("case", CALLS, ids=[f"{specs}-{shapes}-{given}" for specs, shapes, given in CALLS])
def test_calls(case):
    assert outcome("minijax", *case) == outcome("jax", *case)


@pytest.mark.parametrize("case", NESTED, ids=" in ".join)
def test_calls_of_sizes_that_are_symbolic(case):
    assert outcome("minijax", *case, run=nested) == outcome("jax", *case, run=nested)


@pytest.mark.parametrize("specs", [(["a"], {}), (["a", "a"], {}), (["2, a", "a"], {}), ([{"k": "a"}], {"name": "b"})])
def test_variables_of_two_scopes(specs):
    ours, theirs = (outcome(package, specs, run=kept_apart) for package in ("minijax", "jax"))
    assert without_scopes(ours) == without_scopes(theirs)


def without_scopes(outcome):
    return re.sub(r"(SymbolicScope )?\d+ created at [^(]*\([^)]*\)", "SCOPE", str(outcome))


def test_messages_name_places_among_the_arguments_of_a_call():
    """The name of the parameter is in the function, which a caller of the exported program does not have."""

    def program(x, *, weights):
        return x

    def refused(package):
        jax, export = importlib.import_module(package), importlib.import_module(f"{package}.export")
        a, b = [jax.ShapeDtypeStruct(export.symbolic_shape(s), np.float32) for s in ("a", "a*a")]
        export.export(jax.jit(program))(np.float32(1), weights=[b])
        return a

    ours = outcome("minijax", run=refused)
    assert ours == outcome("jax", run=refused)
    assert "kwargs['weights'][0].shape[0]" in ours[1]


@pytest.mark.parametrize("package", ["minijax", "jax"])
def test_scans_of_a_symbolic_length_are_checked(package):
    jax, export = importlib.import_module(package), importlib.import_module(f"{package}.export")
    f = jax.jit(lambda x: jax.lax.scan(lambda c, a: (c + a, c * a), 0.0, x))
    with jax.enable_checks(True):
        exported = export.export(f)(jax.ShapeDtypeStruct(export.symbolic_shape("5*b"), np.float32))
    total, products = exported.call(np.arange(10, dtype=np.float32))
    assert total == 45 and products[-1] == 36 * 9
