"""NumPy arrays, keys, descriptions, containers and other objects where a value is taken: kinds, dtypes, values, errors."""

import array
import dataclasses
import decimal
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compare import same

pytestmark = pytest.mark.oracle


class Wrapper:
    def __init__(self, value):
        self.value = value

    def __jax_array__(self):
        return self.value


def read_only():
    x = np.ones(2, np.float32)
    x.flags.writeable = False
    return x


@dataclasses.dataclass
class Checked:
    """Its constructor looks at its field: nothing but arrays and what trees are made of may enter it."""

    x: Any
    n: int = dataclasses.field(metadata=dict(static=True))

    def __post_init__(self):
        assert not isinstance(self.x, str)

    def __mul__(self, other):
        return Checked(self.x * other, self.n)


def checked(jax):
    class Registered(Checked):
        pass

    jax.tree_util.register_dataclass(Registered, data_fields=["x"], meta_fields=["n"])
    return Registered(jax.numpy.ones(2), 3)


VALUES: dict[str, Callable] = {
    "of no axes": lambda jax, jnp: np.array(1.5, np.float32),
    "of no axes, wide": lambda jax, jnp: np.array(2),
    "read-only": lambda jax, jnp: read_only(),
    "wide": lambda jax, jnp: np.arange(2.0),
    "strided": lambda jax, jnp: np.arange(4.0, dtype=np.float32)[::2],
    "of objects": lambda jax, jnp: np.array([1, 2], object),
    "of text": lambda jax, jnp: np.array(["a", "b"]),
    "of days": lambda jax, jnp: np.array(["2020-01-01"], "datetime64[D]"),
    "of records": lambda jax, jnp: np.zeros(2, [("a", "i4")]),
    "empty": lambda jax, jnp: np.zeros((0, 2), np.float32),
    "a NumPy scalar": lambda jax, jnp: np.float64(2.5),
    "bfloat16": lambda jax, jnp: jnp.bfloat16(1.5),
    "weak": lambda jax, jnp: jnp.asarray(1.5),
    "a description": lambda jax, jnp: jax.ShapeDtypeStruct((2,), jnp.float32),
    "a key": lambda jax, jnp: jax.random.key(1),
    "keys": lambda jax, jnp: jax.random.split(jax.random.key(1)),
    "old keys": lambda jax, jnp: jax.random.PRNGKey(1),
    "None": lambda jax, jnp: None,
    "a dataclass": lambda jax, jnp: checked(jax),
    "a list": lambda jax, jnp: [1.0, 2.0],
    "text": lambda jax, jnp: "abc",
    "a wrapper": lambda jax, jnp: Wrapper(jnp.ones(2)),
    "a decimal": lambda jax, jnp: decimal.Decimal("1.5"),
    "an array of Python": lambda jax, jnp: array.array("f", [1, 2]),
    "a function": lambda jax, jnp: len,
}

# Each is a function of a value and of the vector `x`.
DOORS: dict[str, Callable] = {
    "an argument": lambda jax, jnp, lax: lambda v, x: jax.jit(lambda a: jax.tree.map(lambda b: b, a))(v),
    "an operand in jit": lambda jax, jnp, lax: lambda v, x: jax.jit(lambda a: a * 2)(v),
    "an argument that is not read": lambda jax, jnp, lax: lambda v, x: jax.jit(lambda a: 1)(v),
    "an argument by name": lambda jax, jnp, lax: lambda v, x: jax.jit(lambda x, *, a: a)(1, a=v),
    "a static argument": lambda jax, jnp, lax: lambda v, x: jax.jit(lambda x, a: x * 2, static_argnums=1)(x, v),
    "an inlined argument": lambda jax, jnp, lax: (
        lambda v, x: jax.jit(lambda x: jax.jit(lambda a: a, inline=True)(v))(1)
    ),
    "a result": lambda jax, jnp, lax: lambda v, x: jax.jit(lambda x: v)(1.0),
    "a captured value": lambda jax, jnp, lax: lambda v, x: jax.jit(lambda x: x * v)(x),
    "captured in a loop": lambda jax, jnp, lax: lambda v, x: lax.scan(lambda c, _: (c * v, c), x, None, length=2),
    "captured in grad": lambda jax, jnp, lax: lambda v, x: jax.grad(lambda x: jnp.sum(x * v))(x),
    "make_jaxpr": lambda jax, jnp, lax: lambda v, x: str(jax.make_jaxpr(lambda a: a)(v)),
    "lowering": lambda jax, jnp, lax: lambda v, x: str(jax.jit(lambda a: a).lower(v).in_avals),
    "grad": lambda jax, jnp, lax: lambda v, x: jax.grad(lambda a: jnp.sum(a * 2.0))(v),
    "grad of integers": lambda jax, jnp, lax: lambda v, x: jax.grad(lambda a: jnp.sum(a * 2.0), allow_int=True)(v),
    "jvp": lambda jax, jnp, lax: lambda v, x: jax.jvp(lambda a: a, (v,), (v,)),
    "a tangent": lambda jax, jnp, lax: lambda v, x: jax.jvp(lambda a: a * 2, (x,), (v,)),
    "vjp": lambda jax, jnp, lax: lambda v, x: jax.vjp(lambda a: a, v)[0],
    "a cotangent": lambda jax, jnp, lax: lambda v, x: jax.vjp(lambda a: a, x)[1](v),
    "linearize": lambda jax, jnp, lax: lambda v, x: jax.linearize(lambda a: a, v)[0],
    "linear_transpose": lambda jax, jnp, lax: lambda v, x: jax.linear_transpose(lambda a: a * 2, v)(x),
    "a mapped argument": lambda jax, jnp, lax: lambda v, x: jax.vmap(lambda a: a)(v),
    "an argument that is not mapped": lambda jax, jnp, lax: lambda v, x: jax.vmap(lambda a, b: b, (0, None))(x, v),
    "checkpoint": lambda jax, jnp, lax: lambda v, x: jax.checkpoint(lambda a: a)(v),
    "a loop's carry": lambda jax, jnp, lax: lambda v, x: lax.scan(lambda c, a: (c, a), v, x),
    "a loop's slices": lambda jax, jnp, lax: lambda v, x: lax.scan(lambda c, a: (c, a), 1.0, v),
    "a branch's operand": lambda jax, jnp, lax: lambda v, x: lax.cond(True, lambda a: a, lambda a: a, v),
    "a branch's result": lambda jax, jnp, lax: lambda v, x: lax.cond(True, lambda: v, lambda: v),
    "custom_jvp": lambda jax, jnp, lax: lambda v, x: with_jvp(jax, lambda a: a)(v),
    "a product in custom_jvp": lambda jax, jnp, lax: lambda v, x: with_jvp(jax, lambda a: a * 2)(v),
    "custom_vjp": lambda jax, jnp, lax: lambda v, x: with_vjp(jax, lambda a: a)(v),
    "a product in custom_vjp": lambda jax, jnp, lax: lambda v, x: with_vjp(jax, lambda a: a * 2)(v),
    "a residual": lambda jax, jnp, lax: lambda v, x: jax.grad(with_vjp(jax, lambda a: a, v))(1.0),
    "a composite's operand": lambda jax, jnp, lax: lambda v, x: lax.composite(lambda a: a, "name")(v),
    "shard_map": lambda jax, jnp, lax: (
        lambda v, x: jax.shard_map(lambda a: a, mesh=jax.make_mesh((1,), ("x",)), in_specs=jax.P(), out_specs=jax.P())(
            v
        )
    ),
    "a callback's result": lambda jax, jnp, lax: (
        lambda v, x: jax.pure_callback(lambda a: v, jax.ShapeDtypeStruct((2,), jnp.float32), 1.0)
    ),
    "device_put": lambda jax, jnp, lax: lambda v, x: jax.device_put(v),
    "asarray": lambda jax, jnp, lax: lambda v, x: jnp.asarray(v),
    "stack": lambda jax, jnp, lax: lambda v, x: jnp.stack([v, v]),
    "a sum": lambda jax, jnp, lax: lambda v, x: x + v,
    "a reflected sum": lambda jax, jnp, lax: lambda v, x: v + x,
    "a comparison": lambda jax, jnp, lax: lambda v, x: x == v,
    "jnp.sin": lambda jax, jnp, lax: lambda v, x: jnp.sin(v),
    "jnp.sum": lambda jax, jnp, lax: lambda v, x: jnp.sum(v),
    "jnp.where": lambda jax, jnp, lax: lambda v, x: jnp.where(True, v, v),
    "jnp.concatenate": lambda jax, jnp, lax: lambda v, x: jnp.concatenate([v, v]),
    "zeros_like": lambda jax, jnp, lax: lambda v, x: jnp.zeros_like(v),
    "result_type": lambda jax, jnp, lax: lambda v, x: str(jnp.result_type(v, jnp.int8)),
    "an update": lambda jax, jnp, lax: lambda v, x: x.at[:].set(v),
    "nn.gelu": lambda jax, jnp, lax: lambda v, x: jax.nn.gelu(v),
    "a reference": lambda jax, jnp, lax: lambda v, x: jax.new_ref(v)[...],
    "a tree": lambda jax, jnp, lax: lambda v, x: len(jax.tree.leaves(v)),
}


def with_jvp(jax, f):
    g = jax.custom_jvp(f)
    g.defjvp(lambda primals, tangents: (f(*primals), f(*tangents)))
    return g


def with_vjp(jax, f, residual=None):
    g = jax.custom_vjp(f)
    g.defvjp(lambda a: (f(a), residual), lambda r, ct: (ct,))
    return g


# What a function returns without touching it: jax has classes of its own for NumPy's arrays and for Python's numbers.
KINDS = {
    "ArrayImpl": "array", "PRNGKeyArray": "array", "TypedNdArray": "host", "ndarray": "host", "TypedFloat": "float",
    "float32": "host", "Literal": "host",
}  # fmt: skip


def described(jax, result):
    if isinstance(result, str):
        return result.replace("minijax", "jax")
    leaves = []
    for x in jax.tree.leaves(result, is_leaf=lambda x: x is None):
        kind = KINDS.get(type(x).__name__, type(x).__name__)
        is_key = hasattr(x, "dtype") and jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key)
        numbers = np.asarray(jax.random.key_data(x)) if is_key else x
        shown = "" if kind in ("ShapeDtypeStruct", "Wrapper", "function") else str(np.asarray(numbers, object).tolist())
        leaves.append(
            (kind, "" if kind == "float" else str(getattr(x, "dtype", "")), bool(getattr(x, "weak_type", False)), shown)
        )
    return repr(leaves)


# Cells that differ, by door. jax looks at a wrapper's dtype before it asks for its array, fails an assertion for a
# result of linear_transpose that is no tree of arrays, and returns a description that a loop does not read.
LEFT = {
    "a tangent": "a wrapper", "linear_transpose": "a dataclass", "a loop's carry": "a description",
    "a loop's slices": "a description",
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("door", DOORS)
def test_values_of_all_kinds_are_taken_as_by_jax(door):
    def program(jax, jnp, lax):
        outcomes = []
        for name, value in VALUES.items():
            if LEFT.get(door) == name:
                continue
            try:
                end = described(jax, DOORS[door](jax, jnp, lax)(value(jax, jnp), jnp.ones(2)))
            except Exception as error:
                # jax's InvalidInputException is a TypeError.
                end = "TypeError" if isinstance(error, TypeError) else type(error).__name__
            outcomes.append(f"{name}: {end}")
        return "\n".join(outcomes)

    same(program)
