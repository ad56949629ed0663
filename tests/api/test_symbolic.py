"""Descriptions of arguments whose shapes are symbolic, and the dimensions of shapes where arrays are described."""

import collections
import importlib

import numpy as np
import pytest

Pair = collections.namedtuple("Pair", "x y")

SPECS = """
A((x,), "a, ...")
A((x, x), ("a, ...", None))
A((x, {"k": i}), ("a, _", {"k": "b"}))
A((x, {"k": i}), None)
A([x], "a,b")
A(x, "a,b")
A((x,), ("a,b", "c"))
A((x,), {"a": "b"})
A((x, x), ["a,b", "c,d"])
A((x,), 5.)
A((x,), (["a list"],))
A((x,), "a,5")
A((x,), "2*a,4", constraints=["a>=2"])
A((x,), "a,b", constraints=["a>=2"], scope=export.SymbolicScope())
A((x,), "a,b", ["a>=2"])[0].shape[0] >= 2
A((x,), "a,b", scope=export.SymbolicScope(["a>=2"]))[0].shape[1] >= 2
A((3.5, True, 2 + 1j, np.float64(3)), "")
A(("s",), None)
A((None, x), (None, "a,b"))
A((Pair(x, i),), (Pair("a,b", "c"),))
A((Pair(x, i),), (("a,b", "c"),))
A((jax.ShapeDtypeStruct((3, 4), np.float32, weak_type=True),), "a,b")
A((jax.ShapeDtypeStruct(S("q,4"), np.float32),), "...")
A((jax.random.key(0),), "")
A((x,), (S("a,b"),))
A((), "a")
jax.ShapeDtypeStruct(S("a, 2"), np.float32).size
jax.core.ShapedArray(S("a, 2*b + 1"), np.dtype("float32")).str_short()
jax.core.ShapedArray(S("a", scope=scope), np.dtype("float32")) == jax.core.ShapedArray(S("a", scope=scope), np.dtype("float32"))
jax.core.ShapedArray(S("a"), np.dtype("float32")) == jax.core.ShapedArray(S("a"), np.dtype("float32"))
jax.jit(lambda n: jax.core.max_dim(n, S("a")[0]))(1)
jax.core.max_dim(S("a")[0], jax.numpy.arange(2))
"""


def outcome(package, expression):
    jax, export = importlib.import_module(package), importlib.import_module(f"{package}.export")
    names = {"jax": jax, "export": export, "A": export.symbolic_args_specs, "S": export.symbolic_shape, "np": np, "Pair": Pair,
             "x": np.ones((3, 4), np.float32), "i": jax.numpy.arange(3), "scope": export.SymbolicScope()}  # fmt: skip
    try:
        return str(eval(expression, names))
    except Exception as error:
        return type(error).__name__, isinstance(error, ValueError) and str(error).split("\n")[0][:40]


@pytest.mark.parametrize("expression", SPECS.strip().splitlines())
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_specs(expression):
    assert outcome("minijax", expression) == outcome("jax", expression)
