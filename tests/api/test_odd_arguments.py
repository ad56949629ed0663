"""Arguments that are not arrays, where jax accepts them: types, tokens, and any object that vmap does not map."""

from types import SimpleNamespace

import numpy as np
import pytest
from compare import canonical, ours, same, theirs

pytestmark = pytest.mark.oracle

HANDLE = object()
VALUES = {"np": np, "X": np.arange(6.0, dtype="float32").reshape(2, 3), "HANDLE": HANDLE, "Struct": SimpleNamespace}


def program(text):
    def run(jax):
        names = {**VALUES, "jax": jax, "jnp": jax.numpy, "lax": jax.lax, "SDS": jax.ShapeDtypeStruct}
        names["s"] = jax.ShapeDtypeStruct((3,), "int16")
        return eval(text, names)

    return run


TYPES = """
jax.jit(lambda s, x: x)(s, X)
jax.jit(lambda s, x: jnp.zeros(s.shape, s.dtype) + x)(s, X)
jax.jit(lambda s, x: x * s.size)(x=X, s=s)
jax.jit(lambda d, x: x + d["a"])({"a": X, "b": s}, 1.0)
jax.jit(lambda s, x: s.weak_type)(SDS((), "float32", weak_type=True), X)
jax.jit(lambda s: jnp.ones(s.shape))(s)
jax.jit(lambda x: jax.jit(lambda s, y: y * s.size)(s, x))(X)
jax.grad(jax.jit(lambda x, s: (x * s.size).sum()))(X, s)
jax.vmap(jax.jit(lambda x, s: x * s.size), in_axes=(0, None))(X, s)
jax.jit(lambda s, x: x, donate_argnums=0)(s, X)
jax.jit(lambda s, x: x)(SDS((3,), jax.random.key(0).dtype), X)
jax.jit(lambda s, x: x)(SDS((3,), jax.dtypes.float0), X)
jax.jit(lambda s, x: x)(SDS((3,), "int8", sharding=jax.sharding.SingleDeviceSharding(jax.devices()[0])), X)
jax.jit(lambda s, x, how: x * len(how), static_argnums=2)(s, X, "static")
jax.jit(lambda s, x: x).lower(s, X).compile()(s, X)
str(jax.make_jaxpr(jax.jit(lambda s, x: x * 2))(s, X))
""".strip().splitlines()


@pytest.mark.parametrize("text", TYPES)
def test_a_type_stands_in_for_an_argument_that_is_not_read(text):
    same(program(text))


READ = """
jax.jit(lambda s, x: s + x)(s, X)
jax.jit(lambda s, x: (s, x))(s, X)
jax.jit(lambda s, x: x, keep_unused=True)(s, X)
jax.jit(lambda d, x: d["a"] + x)({"a": s}, X)
jax.jit(lambda x: x + s)(X)
jax.jit(lambda: s)()
jnp.add(s, 1)
jnp.asarray(s)
lax.sin(SDS((3,), "float32"))
jax.grad(lambda s: jnp.sum(s))(SDS((3,), "float32"))
jax.jit(lambda s, x: x)(jax.core.ShapedArray((3,), np.dtype("float32")), X)
""".strip().splitlines()


@pytest.mark.parametrize("text", READ)
def test_a_type_whose_value_is_read_is_refused(text):
    same(program(text), raises="TypeError")


ANYTHING = """
jax.vmap(lambda h, x: x * (h is HANDLE), in_axes=(None, 0))(HANDLE, X)
jax.vmap(lambda d, x: x * (d["a"] is HANDLE), in_axes=(None, 0))({"a": HANDLE, "b": 1}, X)
jax.vmap(lambda d: d["x"], in_axes=({"h": None, "x": 0},))({"h": HANDLE, "x": X})
jax.vmap(lambda f, x: f(x), in_axes=(None, 0))(jnp.sin, X)
jax.vmap(lambda t, x: x.astype(t), in_axes=(None, 0))(jnp.int8, X)
jax.vmap(lambda name, x: getattr(jnp, name)(x), in_axes=(None, 0))("cos", X)
jax.vmap(lambda h: jnp.ones(2), in_axes=None, axis_size=3)(HANDLE)
jax.vmap(jax.vmap(lambda h, x: x * 2, in_axes=(None, 0)), in_axes=(None, 0))(HANDLE, X)
jax.jit(lambda x: jax.vmap(lambda h, x: x * 2, in_axes=(None, 0))(HANDLE, x))(X)
jax.vmap(lambda h, x: jax.jit(lambda h, x: x * 2, static_argnums=0)(h, x), in_axes=(None, 0))(HANDLE, X)
jax.vmap(lambda s, x: x * s.n, in_axes=(None, 0))(Struct(n=3), X)
jax.grad(lambda x: jax.vmap(lambda h, x: x * x, in_axes=(None, 0))(HANDLE, x).sum())(X)
""".strip().splitlines()


@pytest.mark.parametrize("text", ANYTHING)
def test_arguments_that_vmap_does_not_map_may_be_any_object(text):
    same(program(text))


MAPPED = """
jax.vmap(lambda h, x: x)(HANDLE, X)
jax.vmap(lambda x, h: x)(X, h=HANDLE)
jax.vmap(lambda h, x: (h, x), in_axes=(None, 0))(HANDLE, X)
jax.vmap(lambda h, x: (h, x), in_axes=(None, 0), out_axes=(None, 0))(HANDLE, X)
jax.vmap(lambda h, x: h + x, in_axes=(None, 0))(HANDLE, X)
jax.vmap(jax.jit(lambda h, x: x), in_axes=(None, 0))(HANDLE, X)
""".strip().splitlines()


@pytest.mark.parametrize("text", MAPPED)
def test_arguments_and_results_that_vmap_maps_must_be_values(text):
    same(program(text), raises="TypeError")


TOKENS = """
jax.jit(lambda: lax.create_token())()
jax.jit(lambda t: t)(t)
jax.jit(lambda t, x: (lax.after_all(t, lax.create_token()), x + 1, t))(t, X)
jax.jit(lambda t, x: lax.after_all(t))(jax.jit(lambda t: lax.after_all(t, t))(t), X)
lax.after_all(t, lax.after_all(t), lax.create_token(X)).block_until_ready()
jax.block_until_ready(jax.jit(lambda t: {"t": t, "x": X})(t))
jax.jit(lambda a: jax.jit(lambda b: lax.after_all(b))(a))(t)
jax.jit(lambda x: (lax.after_all(t), x))(1.0)
jax.jit(lambda x: (t, x))(1.0)
jax.jit(lambda t, x: x, keep_unused=True)(t, X)
jax.jit(lambda x, t: (x * 2, t), donate_argnums=0)(jnp.asarray(X), t)[1]
jax.grad(jax.jit(lambda x, t: ((x * 2).sum(), lax.after_all(t))), has_aux=True)(X, t)
jax.vmap(jax.jit(lambda x, t: (x * 2, lax.after_all(t))), in_axes=(0, None), out_axes=(0, None))(X, t)
jax.checkpoint(lambda t: lax.after_all(t))(t)
jax.device_put({"t": t, "x": X})
jax.device_put(t, jax.devices()[-1])
jax.device_put(t, N)
jax.jit(lambda t, x: (lax.after_all(t), x + 1))(t, jax.device_put(X, jax.devices()[-1]))
jax.jit(lambda t, x: (lax.after_all(t), x + 1))(t, jax.device_put(X, N))
[f := jax.jit(lambda t, x: (lax.after_all(t), x + 1)), f(f(f(t, 1.0)[0], jax.device_put(X, N))[0], X)][1]
jax.jit(lambda t, x: (lax.after_all(t), x.T), in_shardings=(None, N))(t, X)
jax.jit(lambda x: (x, lax.create_token())).lower(X).compile()(X)
str(jax.eval_shape(lambda t: lax.after_all(t), t))
str(jax.eval_shape(lambda t: lax.after_all(t), jax.core.abstract_token))
str(jax.make_jaxpr(lambda a, x: (lax.after_all(a, t), x))(t, X))
""".strip().splitlines()


def with_tokens(text):
    def run(jax):
        mesh = jax.sharding.Mesh(np.array(jax.devices()), ("i",))
        names = {**VALUES, "jax": jax, "jnp": jax.numpy, "lax": jax.lax, "t": jax.lax.create_token()}
        result = eval(text, {**names, "N": jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())})
        return jax.tree.map(lambda x: "Token" if type(x).__name__ == "Token" else x, result)

    return run


@pytest.mark.filterwarnings("ignore:.*abstract_token:DeprecationWarning", "ignore:Some donated:UserWarning")
@pytest.mark.parametrize("text", TOKENS)
def test_tokens_are_arguments_and_results(text):
    same(with_tokens(text))


def test_texts_of_programs_with_tokens_are_those_of_jax():
    def text(jax):
        program = jax.jit(lambda a, x: (jax.lax.after_all(a, jax.lax.create_token()), x + 1))
        return canonical(program.lower(jax.lax.create_token(), 1.0).as_text())

    assert text(ours()) == text(theirs())
