"""Descriptions of arguments whose shapes are symbolic, and the dimensions of shapes where arrays are described."""

import collections
import importlib

import numpy as np
import pytest
from given import given

Pair = collections.namedtuple("Pair", "x y")

SPECS = [
    lambda A, x: A((x,), "a, ..."),
    lambda A, x: A((x, x), ("a, ...", None)),
    lambda A, x, i: A((x, {"k": i}), ("a, _", {"k": "b"})),
    lambda A, x, i: A((x, {"k": i}), None),
    lambda A, x: A([x], "a,b"),
    lambda A, x: A(x, "a,b"),
    lambda A, x: A((x,), ("a,b", "c")),
    lambda A, x: A((x,), {"a": "b"}),
    lambda A, x: A((x, x), ["a,b", "c,d"]),
    lambda A, x: A((x,), 5.0),
    lambda A, x: A((x,), (["a list"],)),
    lambda A, x: A((x,), "a,5"),
    lambda A, x: A((x,), "2*a,4", constraints=["a>=2"]),
    lambda export, A, x: A((x,), "a,b", constraints=["a>=2"], scope=export.SymbolicScope()),
    lambda A, x: A((x,), "a,b", ["a>=2"])[0].shape[0] >= 2,
    lambda export, A, x: A((x,), "a,b", scope=export.SymbolicScope(["a>=2"]))[0].shape[1] >= 2,
    lambda A: A((3.5, True, 2 + 1j, np.float64(3)), ""),
    lambda A: A(("s",), None),
    lambda A, x: A((None, x), (None, "a,b")),
    lambda A, x, i: A((Pair(x, i),), (Pair("a,b", "c"),)),
    lambda A, x, i: A((Pair(x, i),), (("a,b", "c"),)),
    lambda jax, A: A((jax.ShapeDtypeStruct((3, 4), np.float32, weak_type=True),), "a,b"),
    lambda jax, A, S: A((jax.ShapeDtypeStruct(S("q,4"), np.float32),), "..."),
    lambda jax, A: A((jax.random.key(0),), ""),
    lambda A, S, x: A((x,), (S("a,b"),)),
    lambda A: A((), "a"),
    lambda jax, S: jax.ShapeDtypeStruct(S("a, 2"), np.float32).size,
    lambda jax, S: jax.core.ShapedArray(S("a, 2*b + 1"), np.dtype("float32")).str_short(),
    lambda jax, S, scope: (
        jax.core.ShapedArray(S("a", scope=scope), np.dtype("float32"))
        == jax.core.ShapedArray(S("a", scope=scope), np.dtype("float32"))
    ),
    lambda jax, S: (
        jax.core.ShapedArray(S("a"), np.dtype("float32")) == jax.core.ShapedArray(S("a"), np.dtype("float32"))
    ),
    lambda jax, S: jax.jit(lambda n: jax.core.max_dim(n, S("a")[0]))(1),
    lambda jax, S: jax.core.max_dim(S("a")[0], jax.numpy.arange(2)),
]


def outcome(package, expression):
    jax, export = importlib.import_module(package), importlib.import_module(f"{package}.export")
    names = {"jax": jax, "export": export, "A": export.symbolic_args_specs, "S": export.symbolic_shape,
             "x": np.ones((3, 4), np.float32), "i": jax.numpy.arange(3), "scope": export.SymbolicScope()}  # fmt: skip
    try:
        return str(given(expression, names))
    except Exception as error:
        return type(error).__name__, isinstance(error, ValueError) and str(error).split("\n")[0][:40]


@pytest.mark.parametrize("expression", SPECS)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_specs(expression):
    assert outcome("minijax", expression) == outcome("jax", expression)
