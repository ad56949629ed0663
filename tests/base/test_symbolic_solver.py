"""Dimension variables by the shapes of arguments: values, and the errors with which jax's exported programs refuse."""

import re

import jax
import numpy as np
import pytest

from minijax.base.symbolic_scope import SymbolicScope, symbolic_shape
from minijax.base.symbolic_solver import solve

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


def solved(specs, shapes, constraints):
    scope = SymbolicScope(constraints)
    symbolic = [symbolic_shape(spec, scope=scope) for spec in specs]
    solution = solve(symbolic, [f"args[{i}]" for i in range(len(specs))])
    values = solution.values({name: shapes[i][axis] for name, (i, axis) in solution.sizes.items()})
    for expected, shape in zip(shapes, symbolic, strict=True):
        assert tuple(d.evaluate(values) for d in shape) == expected
    return None


def exported(specs, shapes, constraints):
    scope = jax.export.SymbolicScope(constraints)
    args = [jax.ShapeDtypeStruct(jax.export.symbolic_shape(spec, scope=scope), np.float32) for spec in specs]
    jax.export.export(jax.jit(lambda *xs: xs[0]))(*args).call(*(np.ones(shape, np.float32) for shape in shapes))


def outcome(call, *case):
    """The error's class and words, without what follows the facts."""
    try:
        return call(*case)
    except Exception as error:
        words = re.split(r"Please see|See http|\nThe ", str(error))[0]
        return type(error).__name__, re.sub(r"\s+", " ", words)


@pytest.mark.parametrize("case", CALLS, ids=[f"{specs}-{shapes}-{given}" for specs, shapes, given in CALLS])
def test_calls(case):
    assert outcome(solved, *case) == outcome(exported, *case)


def test_expressions_over_sizes():
    scope = SymbolicScope(["b >= a"])
    shapes = [symbolic_shape("3*a + 2, 5", scope=scope), (), symbolic_shape("2*a - b", scope=scope)]
    solution = solve(shapes, ["x", "y", "z['{k}']"])
    assert solution.sizes == {"x.shape[0]": (0, 0), "z['{k}'].shape[0]": (2, 0)}
    a, size = "floordiv(x.shape[0] - 2, 3)", "z['{k}'].shape[0]"
    assert {name: str(d) for name, d in solution.variables.items()} == {"a": a, "b": f"2*{a} - {size}"}
    assert [(c.sign, c.right) for c in solution.checks] == [("==", 0), (">=", 1), (">=", 1), (">=", 0)]
    assert solution.values({"x.shape[0]": 8, size: 1}) == {"a": 2, "b": 3}
    with pytest.raises(ValueError, match=r"b >= a\. Expected 'b - a' .* but found -1.*\['\{k\}'\]"):
        solution.values({"x.shape[0]": 8, size: 3})


def test_arguments_of_two_scopes():
    with pytest.raises(ValueError, match="Invalid mixing of symbolic scopes in the shapes of arguments"):
        solve([symbolic_shape("a"), symbolic_shape("a")], ["x", "y"])


def test_no_symbolic_shapes():
    assert solve([(2, 3), ()], ["x", "y"]).values({}) == {}
