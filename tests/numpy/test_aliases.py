"""Functions of jax.numpy under a second name: objects of their own, with that name, that do the same."""

import pickle

import numpy as np
import pytest
from compare import both, same

import minijax.numpy as jnp

pytestmark = pytest.mark.oracle

ALIASES = {
    "abs": "absolute", "acos": "arccos", "acosh": "arccosh", "amax": "max", "amin": "min", "asin": "arcsin",
    "asinh": "arcsinh", "atan": "arctan", "atanh": "arctanh", "bitwise_invert": "invert", "bitwise_not": "invert",
    "bitwise_left_shift": "left_shift", "bitwise_right_shift": "right_shift", "conj": "conjugate",
    "degrees": "rad2deg", "divide": "true_divide", "mod": "remainder", "pow": "power", "radians": "deg2rad",
}  # fmt: skip


@pytest.mark.parametrize("name", ALIASES)
def test_an_alias_has_a_name_and_a_doc_string_of_its_own(name):
    function, of = getattr(jnp, name), getattr(jnp, ALIASES[name])
    assert function is not of
    assert (function.__name__, function.__qualname__) == (name, name)
    assert of.__name__ == ALIASES[name]
    assert function.__doc__ == f"Alias of :func:`jax.numpy.{ALIASES[name]}`."
    assert getattr(jnp, name) is function


def test_every_function_is_called_as_in_jax():
    def names(jnp):
        functions = {n: getattr(jnp, n) for n in dir(jnp) if not n.startswith("_")}
        return {n: f.__name__ for n, f in functions.items() if callable(f) and not isinstance(f, type)}

    ours, theirs = both(names)
    assert not {n: (ours[n], theirs[n]) for n in ours if n in theirs and ours[n] != theirs[n]}


def test_an_alias_computes_the_same_in_every_way():
    x, i = np.array([0.25, 0.5], np.float32), np.array([3, -5], np.int32)
    same(lambda jnp: jnp.acosh(x + 1))
    same(lambda jnp: jnp.mod(i, 3))
    same(lambda jnp: jnp.amax(x, axis=0, keepdims=True))
    same(lambda jax, jnp: jax.vmap(jax.grad(jnp.pow))(x, x))
    same(lambda jax, jnp: jax.jit(lambda v: jnp.conj(v) + jnp.degrees(v))(x))
    assert pickle.loads(pickle.dumps(jnp.pow)) is jnp.pow
