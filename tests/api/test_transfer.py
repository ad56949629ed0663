"""Moving values, and the scopes around operations."""

import pickle

import compare
import numpy as np
import pytest
import transform_matrix

import minijax

X = np.array([0.5, -1.5, 2.0], np.float32)


def jaxpr(jax, f, *args):
    return compare._unwrapped(compare.normal(str(jax.make_jaxpr(f)(*args))))


def ids(x):
    return [d.id for d in x.devices()]


def _put(jax, jnp):
    tree = {"a": X, "b": (1, 2.0, True, None), "c": jnp.arange(3), "d": np.int8(3), "e": np.arange(2.0)}
    out = jax.device_put(tree)
    return out, [x.committed for x in jax.tree_util.tree_leaves(out)]


def _put_on(jax, jnp):
    one, two = jax.devices()[1], jax.devices()[2]
    out = jax.device_put(X, one)
    many = jax.device_put({"a": X, "b": [1.0, 2.0]}, {"a": one, "b": two})
    sharded = jax.device_put(X, jax.sharding.SingleDeviceSharding(two))
    moved = jax.device_put(out, two)
    return (
        out,
        ids(out),
        out.committed,
        many,
        [ids(x) for x in jax.tree_util.tree_leaves(many)],
        sharded,
        ids(sharded),
        ids(moved),
        ids(out),
        jax.device_put(out) is out,
        ids(jax.device_put(moved, None)),
    )


def _put_traced(jax, jnp):
    device = jax.devices()[1]
    f = lambda x: jax.device_put(x * 2)  # noqa: E731
    g = lambda t: jax.device_put(t)["a"] * 3  # noqa: E731
    return (
        jaxpr(jax, f, 1.0),
        jaxpr(jax, jax.grad(f), 1.0),
        jaxpr(jax, jax.vmap(f), X),
        jax.grad(f)(1.0),
        jax.jit(f)(X),
        jaxpr(jax, g, {"a": 1.0, "b": X}),
        jax.jit(g)({"a": X, "b": 1}),
        jax.vmap(f)(X),
        ids(jax.grad(lambda x: jnp.sum(jax.device_put(x, device)))(jnp.asarray(X))),
        jax.jvp(lambda x: jax.device_put(x, device), (X,), (X,)),
    )


def _get(jax, jnp):
    tree = {"a": jnp.asarray(X), "b": (jnp.bfloat16(2), 1, None, "text"), "c": np.int8(3), "d": [jnp.ones((0, 2))]}
    out = jax.device_get(tree)
    return (out, type(out["a"]).__name__, out["a"].flags.writeable, jax.device_get(jnp.arange(3)), jax.device_get(2.5))


def _wait(jax, jnp):
    tree = {"a": jnp.asarray(X), "b": 1, "c": None}
    return jax.block_until_ready(tree), jax.block_until_ready(3), jnp.ones(2).block_until_ready()


def _constants(jax, jnp):
    seen = []

    def f(x):
        with jax.ensure_compile_time_eval():
            y = jnp.sin(jnp.ones(2)) * 2
            n = int(jnp.sum(jnp.arange(4)))
            seen.append(n)
            if y[0] > 0:
                y = y + 1
        return x * y * n

    return (jaxpr(jax, f, 1.0), jax.jit(f)(2.0), jax.grad(lambda x: f(x).sum())(1.0), jax.vmap(f)(X), set(seen) == {6})


def _constants_of_shapes(jax, jnp):
    def f(x):
        with jax.ensure_compile_time_eval():
            size = jnp.prod(jnp.array(x.shape)).item()
        return x.reshape(size)

    return jax.jit(f)(np.ones((2, 3), np.float32))


def _scoped(jax, jnp):
    @jax.named_scope("scope")
    def f(x):
        """doc"""
        return jnp.sin(x)

    with jax.named_scope("eager"):
        y = f(1.0)
    g = jax.named_call(lambda x: x * 2, name="twice")
    return (y, f.__name__, f.__doc__, jax.jit(f)(1.0), jaxpr(jax, f, 1.0), g(2.0), jax.grad(f)(1.0), jaxpr(jax, g, 1.0))


VALUES = {
    "device_put of a tree": _put,
    "device_put on devices": _put_on,
    "device_put under transformations": _put_traced,
    "device_get": _get,
    "block_until_ready": _wait,
    "ensure_compile_time_eval": _constants,
    "ensure_compile_time_eval of shapes": _constants_of_shapes,
    "named_scope": _scoped,
}


ERRORS = {
    "device_put of text": (lambda jax: jax.device_put("text"), "not a valid JAX type"),
    "device_put of an object": lambda jax: jax.device_put({"a": object()}),
    "device_put on no device": (
        lambda jax: jax.device_put(X, "cpu"),
        "`jax.device_put` only accepts",
        "Received invalid value: cpu",
    ),
    "device_put of another tree": (
        lambda jax: jax.device_put({"a": X}, {"b": jax.devices()[0]}),
        "device_put device specification must be a tree prefix",
    ),
    "device_put of text arrays": lambda jax: jax.device_put(np.array(["text"])),
    "device_put of a large int": lambda jax: jax.device_put(2**40),
    "named_scope of no text": (
        lambda jax: jax.named_scope(3).__enter__(),
        "named_scope name argument must be a string",
    ),
}


@pytest.mark.oracle
@pytest.mark.parametrize("name", VALUES)
def test_values_move_as_in_jax(name):
    compare.same(VALUES[name])


@pytest.mark.oracle
@pytest.mark.parametrize("name", ERRORS)
def test_device_put_raises_as_in_jax(name):
    program, *phrases = entry if isinstance(entry := ERRORS[name], tuple) else (entry,)
    compare.same_error(
        lambda: compare.run_on(compare.ours(), program), lambda: compare.run_on(compare.theirs(), program), phrases
    )


def test_device_put_copies_a_numpy_array():
    held = np.arange(3.0, dtype=np.float32)
    out = minijax.device_put(held)
    held[:] = 7
    assert out.tolist() == [0.0, 1.0, 2.0]


def test_traced_values_are_put_into_the_memory_of_the_device():
    def program(jax):
        return lambda x: jax.device_put(x, jax.memory.Space.Device) * 2

    compare.sweep(
        [
            transform_matrix.transformed(compare.Case("space", program, (np.ones(2, np.float32),)), name)
            for name in ("plain", "jit", "vmap", "grad", "jvp")
        ]
    )


@pytest.mark.oracle
def test_like_has_the_type_of_a_value_and_the_sharding_of_a_committed_array():
    def likes(jax):
        x = jax.numpy.ones((3, 4))
        there = jax.device_put(x, jax.devices()[0])
        values = [x, 1, np.ones(3, np.int8), jax.random.key(0), jax.ShapeDtypeStruct((2,), np.float32, weak_type=True)]
        structs = [jax.ShapeDtypeStruct.like(v) for v in values]
        shapes = [(s.shape, str(s.dtype), s.weak_type, s.sharding is None) for s in structs]
        seen = []
        jax.jit(lambda x: seen.append(jax.ShapeDtypeStruct.like(x).shape))(x)
        return shapes, seen, jax.ShapeDtypeStruct.like(there).sharding == there.sharding

    import jax

    assert likes(minijax) == likes(jax)
    for side in (minijax, jax):
        with pytest.raises(TypeError, match="not a valid JAX type"):
            side.ShapeDtypeStruct.like("a")


def test_keys_stay_where_they_are():
    key = minijax.random.key(0)
    got = minijax.device_get([key, minijax.numpy.ones(2)])
    assert got[0].dtype == key.dtype and isinstance(got[1], np.ndarray)


@pytest.mark.oracle
def test_wide_arrays_pickled_are_narrow_where_wide_types_are_off():
    import jax

    for side in (minijax, jax):
        with side.enable_x64(True):
            pickled = [pickle.dumps(side.numpy.float64(1.5)), pickle.dumps(side.numpy.arange(3))]
        assert [pickle.loads(p).dtype for p in pickled] == [np.float32, np.int32]
