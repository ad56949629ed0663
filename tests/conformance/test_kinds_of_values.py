"""Numbers of users' classes, and NumPy scalars, at each place where a program takes a value: types, values, errors."""

import enum
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compare import same

pytestmark = pytest.mark.oracle


class Color(enum.IntEnum):
    RED = 1
    BLUE = 2


class Mode(enum.IntFlag):
    READ = 1
    WRITE = 2


class Count(int):
    pass


class Length(float):
    pass


class Phase(complex):
    pass


VALUES = [Color.BLUE, Mode.READ, Count(3), Length(2.5), Phase(1j), np.float64(1.5), np.int64(2), True, 2, 0.5]

# Each is a function of a value and of the vector `x`.
DOORS: dict[str, Callable] = {
    "an argument": lambda jax, jnp, lax: lambda v, x: jax.jit(lambda a: a * 2)(v),
    "an argument by name": lambda jax, jnp, lax: lambda v, x: jax.jit(lambda x, *, a: a + x)(1, a=v),
    "a static argument": lambda jax, jnp, lax: lambda v, x: jax.jit(lambda x, a: x * a, static_argnums=1)(x, v),
    "a donated argument": lambda jax, jnp, lax: lambda v, x: jax.jit(lambda a: a + 1, donate_argnums=0)(v),
    "a tree": lambda jax, jnp, lax: lambda v, x: jax.jit(lambda t: t)({"a": v}),
    "a captured value": lambda jax, jnp, lax: lambda v, x: jax.jit(lambda x: x * v)(x),
    "a captured value in a jaxpr": lambda jax, jnp, lax: lambda v, x: str(jax.make_jaxpr(lambda a: a * v)(x)),
    "an argument in a jaxpr": lambda jax, jnp, lax: lambda v, x: str(jax.make_jaxpr(lambda a: a * 2)(v)),
    "an argument of an inlined function": lambda jax, jnp, lax: (
        lambda v, x: str(jax.make_jaxpr(lambda x: jax.jit(lambda a, b: a * b, inline=True)(x, v))(x))
    ),
    "a comparison": lambda jax, jnp, lax: lambda v, x: jax.jit(lambda x: jnp.where(x == v, 10, x + v))(2),
    "an operand": lambda jax, jnp, lax: lambda v, x: [x + v, v * x, x**v, jnp.add(v, 1), jnp.int8(1) + v],
    "asarray": lambda jax, jnp, lax: (
        lambda v, x: [jnp.asarray(v), jnp.array([v, v]), jax.device_put(v), jnp.full(2, v)]
    ),
    "an update": lambda jax, jnp, lax: lambda v, x: x.at[0].set(v),
    "the carry of a scan": lambda jax, jnp, lax: lambda v, x: lax.scan(lambda c, a: (c, a), v, jnp.arange(2)),
    "the carry of a fori_loop": lambda jax, jnp, lax: lambda v, x: lax.fori_loop(0, 2, lambda i, c: c * 2, v),
    "the carry of a while_loop": lambda jax, jnp, lax: (
        lambda v, x: lax.while_loop(lambda c: abs(c) < 20, lambda c: c * 3, v)
    ),
    "the bound of a loop": lambda jax, jnp, lax: lambda v, x: lax.fori_loop(0, v, lambda i, c: c + i, 0),
    "the operand of a branch": lambda jax, jnp, lax: lambda v, x: lax.cond(True, lambda a: a, lambda a: a * 2, v),
    "a predicate": lambda jax, jnp, lax: lambda v, x: lax.cond(v, lambda: 1, lambda: 0),
    "the index of a switch": lambda jax, jnp, lax: lambda v, x: lax.switch(v, [lambda: 0, lambda: 1, lambda: 2]),
    "an argument that is not mapped": lambda jax, jnp, lax: (
        lambda v, x: jax.vmap(lambda a, b: a * b, in_axes=(0, None))(x, v)
    ),
    "eval_shape": lambda jax, jnp, lax: lambda v, x: str(jax.eval_shape(lambda a: a * 2, v)),
    "checkpoint": lambda jax, jnp, lax: lambda v, x: jax.checkpoint(lambda a: a * 2)(v),
    "grad": lambda jax, jnp, lax: lambda v, x: jax.grad(lambda a: a * 2.0)(v),
    "jvp": lambda jax, jnp, lax: lambda v, x: jax.jvp(lambda a: a * x.sum(), (v,), (v,)),
    "linear_transpose": lambda jax, jnp, lax: lambda v, x: jax.linear_transpose(lambda a: a * v, x)(x),
    "pure_callback": lambda jax, jnp, lax: (
        lambda v, x: jax.pure_callback(lambda a: np.float32(abs(a)), jax.ShapeDtypeStruct((), jnp.float32), v)
    ),
    "closure_convert": lambda jax, jnp, lax: lambda v, x: jax.closure_convert(lambda a: a * 2, v)[0](v),
    "a reference": lambda jax, jnp, lax: lambda v, x: jax.new_ref(v)[...],
    "lax": lambda jax, jnp, lax: lambda v, x: [lax.add(jnp.ones(()), v), jnp.clip(x, v)],
    "a shape": lambda jax, jnp, lax: lambda v, x: [jnp.zeros(v), jnp.arange(v)],
    "a seed": lambda jax, jnp, lax: lambda v, x: jax.random.key_data(jax.random.key(v)),
}


def described(jax: Any, result: Any) -> Any:
    kinds = [
        (str(getattr(x, "dtype", "")), getattr(x, "weak_type", None), np.asarray(x)) for x in jax.tree.leaves(result)
    ]
    return result if isinstance(result, str) else kinds


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("door", DOORS)
def test_numbers_of_all_classes_are_taken_as_by_jax(door):
    def program(jax, jnp, lax):
        outcomes = []
        for value in VALUES:
            try:
                outcomes.append(described(jax, DOORS[door](jax, jnp, lax)(value, jnp.ones(2))))
            except Exception as error:
                outcomes.append(type(error).__name__)
        return outcomes

    same(program)
