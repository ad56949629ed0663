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


def outcome(package, *case):
    """The error's class and words, without what follows the facts."""
    try:
        return called(package, *case)
    except Exception as error:
        words = re.split(r"\.? ?,? ?\.? ?(Please see|See http|\nThe )", str(error))[0]
        return type(error).__name__, re.sub(r"\s+", " ", words)


@pytest.mark.parametrize("case", CALLS, ids=[f"{specs}-{shapes}-{given}" for specs, shapes, given in CALLS])
def test_calls(case):
    assert outcome("minijax", *case) == outcome("jax", *case)
