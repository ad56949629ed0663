"""Arguments that are not arrays, where jax accepts them: types, tokens, and any object that vmap does not map."""

from types import SimpleNamespace

import numpy as np
import pytest
from compare import canonical, ours, same, same_jaxpr, theirs
from given import given

pytestmark = pytest.mark.oracle

HANDLE = object()
X = np.arange(6.0, dtype="float32").reshape(2, 3)


def called(jax, call, **more):
    """The result of `call`, whose parameters name modules of jax and the values in `more`."""
    return given(call, {"jax": jax, "jnp": jax.numpy, "lax": jax.lax, **more})


def program(call):
    return lambda jax: called(jax, call, s=jax.ShapeDtypeStruct((3,), "int16"))


TYPES = [
    lambda jax, s: jax.jit(lambda s, x: x)(s, X),
    lambda jax, jnp, s: jax.jit(lambda s, x: jnp.zeros(s.shape, s.dtype) + x)(s, X),
    lambda jax, s: jax.jit(lambda s, x: x * s.size)(x=X, s=s),
    lambda jax, s: jax.jit(lambda d, x: x + d["a"])({"a": X, "b": s}, 1.0),
    lambda jax, s: jax.jit(lambda s, x: s.weak_type)(jax.ShapeDtypeStruct((), "float32", weak_type=True), X),
    lambda jax, jnp, s: jax.jit(lambda s: jnp.ones(s.shape))(s),
    lambda jax, s: jax.jit(lambda x: jax.jit(lambda s, y: y * s.size)(s, x))(X),
    lambda jax, s: jax.grad(jax.jit(lambda x, s: (x * s.size).sum()))(X, s),
    lambda jax, s: jax.vmap(jax.jit(lambda x, s: x * s.size), in_axes=(0, None))(X, s),
    lambda jax, s: jax.jit(lambda s, x: x, donate_argnums=0)(s, X),
    lambda jax: jax.jit(lambda s, x: x)(jax.ShapeDtypeStruct((3,), jax.random.key(0).dtype), X),
    lambda jax: jax.jit(lambda s, x: x)(jax.ShapeDtypeStruct((3,), jax.dtypes.float0), X),
    lambda jax: jax.jit(lambda s, x: x)(
        jax.ShapeDtypeStruct((3,), "int8", sharding=jax.sharding.SingleDeviceSharding(jax.devices()[0])), X
    ),
    lambda jax, s: jax.jit(lambda s, x, how: x * len(how), static_argnums=2)(s, X, "static"),
    lambda jax, s: jax.jit(lambda s, x: x).lower(s, X).compile()(s, X),
    lambda jax, s: str(jax.make_jaxpr(jax.jit(lambda s, x: x * 2))(s, X)),
]


@pytest.mark.parametrize("call", TYPES)
def test_a_type_stands_in_for_an_argument_that_is_not_read(call):
    same(program(call))


READ = [
    lambda jax, s: jax.jit(lambda s, x: s + x)(s, X),
    lambda jax, s: jax.jit(lambda s, x: (s, x))(s, X),
    lambda jax, s: jax.jit(lambda s, x: x, keep_unused=True)(s, X),
    lambda jax, s: jax.jit(lambda d, x: d["a"] + x)({"a": s}, X),
    lambda jax, s: jax.jit(lambda x: x + s)(X),
    lambda jax, s: jax.jit(lambda: s)(),
    lambda jnp, s: jnp.add(s, 1),
    lambda jnp, s: jnp.asarray(s),
    lambda jax, lax: lax.sin(jax.ShapeDtypeStruct((3,), "float32")),
    lambda jax, jnp, s: jax.grad(lambda s: jnp.sum(s))(jax.ShapeDtypeStruct((3,), "float32")),
    lambda jax: jax.jit(lambda s, x: x)(jax.core.ShapedArray((3,), np.dtype("float32")), X),
]


@pytest.mark.parametrize("call", READ)
def test_a_type_whose_value_is_read_is_refused(call):
    same(program(call), raises="TypeError")


ANYTHING = [
    lambda jax: jax.vmap(lambda h, x: x * (h is HANDLE), in_axes=(None, 0))(HANDLE, X),
    lambda jax: jax.vmap(lambda d, x: x * (d["a"] is HANDLE), in_axes=(None, 0))({"a": HANDLE, "b": 1}, X),
    lambda jax: jax.vmap(lambda d: d["x"], in_axes=({"h": None, "x": 0},))({"h": HANDLE, "x": X}),
    lambda jax, jnp: jax.vmap(lambda f, x: f(x), in_axes=(None, 0))(jnp.sin, X),
    lambda jax, jnp: jax.vmap(lambda t, x: x.astype(t), in_axes=(None, 0))(jnp.int8, X),
    lambda jax, jnp: jax.vmap(lambda name, x: getattr(jnp, name)(x), in_axes=(None, 0))("cos", X),
    lambda jax, jnp: jax.vmap(lambda h: jnp.ones(2), in_axes=None, axis_size=3)(HANDLE),
    lambda jax: jax.vmap(jax.vmap(lambda h, x: x * 2, in_axes=(None, 0)), in_axes=(None, 0))(HANDLE, X),
    lambda jax: jax.jit(lambda x: jax.vmap(lambda h, x: x * 2, in_axes=(None, 0))(HANDLE, x))(X),
    lambda jax: jax.vmap(lambda h, x: jax.jit(lambda h, x: x * 2, static_argnums=0)(h, x), in_axes=(None, 0))(
        HANDLE, X
    ),
    lambda jax, s: jax.vmap(lambda s, x: x * s.n, in_axes=(None, 0))(SimpleNamespace(n=3), X),
    lambda jax: jax.grad(lambda x: jax.vmap(lambda h, x: x * x, in_axes=(None, 0))(HANDLE, x).sum())(X),
]


@pytest.mark.parametrize("call", ANYTHING)
def test_arguments_that_vmap_does_not_map_may_be_any_object(call):
    same(program(call))


MAPPED = [
    lambda jax: jax.vmap(lambda h, x: x)(HANDLE, X),
    lambda jax: jax.vmap(lambda x, h: x)(X, h=HANDLE),
    lambda jax: jax.vmap(lambda h, x: (h, x), in_axes=(None, 0))(HANDLE, X),
    lambda jax: jax.vmap(lambda h, x: (h, x), in_axes=(None, 0), out_axes=(None, 0))(HANDLE, X),
    lambda jax: jax.vmap(lambda h, x: h + x, in_axes=(None, 0))(HANDLE, X),
    lambda jax: jax.vmap(jax.jit(lambda h, x: x), in_axes=(None, 0))(HANDLE, X),
]


@pytest.mark.parametrize("call", MAPPED)
def test_arguments_and_results_that_vmap_maps_must_be_values(call):
    same(program(call), raises="TypeError")


TOKENS = [
    lambda jax, lax: jax.jit(lambda: lax.create_token())(),
    lambda jax, t: jax.jit(lambda t: t)(t),
    lambda jax, lax, t: jax.jit(lambda t, x: (lax.after_all(t, lax.create_token()), x + 1, t))(t, X),
    lambda jax, lax, t: jax.jit(lambda t, x: lax.after_all(t))(jax.jit(lambda t: lax.after_all(t, t))(t), X),
    lambda lax, t: lax.after_all(t, lax.after_all(t), lax.create_token(X)).block_until_ready(),
    lambda jax, t: jax.block_until_ready(jax.jit(lambda t: {"t": t, "x": X})(t)),
    lambda jax, lax, t: jax.jit(lambda a: jax.jit(lambda b: lax.after_all(b))(a))(t),
    lambda jax, lax, t: jax.jit(lambda x: (lax.after_all(t), x))(1.0),
    lambda jax, t: jax.jit(lambda x: (t, x))(1.0),
    lambda jax, t: jax.jit(lambda t, x: x, keep_unused=True)(t, X),
    lambda jax, jnp, t: jax.jit(lambda x, t: (x * 2, t), donate_argnums=0)(jnp.asarray(X), t)[1],
    lambda jax, lax, t: jax.grad(jax.jit(lambda x, t: ((x * 2).sum(), lax.after_all(t))), has_aux=True)(X, t),
    lambda jax, lax, t: jax.vmap(
        jax.jit(lambda x, t: (x * 2, lax.after_all(t))), in_axes=(0, None), out_axes=(0, None)
    )(X, t),
    lambda jax, lax, t: jax.checkpoint(lambda t: lax.after_all(t))(t),
    lambda jax, t: jax.device_put({"t": t, "x": X}),
    lambda jax, t: jax.device_put(t, jax.devices()[-1]),
    lambda jax, t, N: jax.device_put(t, N),
    lambda jax, lax, t: jax.jit(lambda t, x: (lax.after_all(t), x + 1))(t, jax.device_put(X, jax.devices()[-1])),
    lambda jax, lax, t, N: jax.jit(lambda t, x: (lax.after_all(t), x + 1))(t, jax.device_put(X, N)),
    lambda jax, lax, t, N: [
        f := jax.jit(lambda t, x: (lax.after_all(t), x + 1)),
        f(f(f(t, 1.0)[0], jax.device_put(X, N))[0], X),
    ][1],
    lambda jax, lax, t, N: jax.jit(lambda t, x: (lax.after_all(t), x.T), in_shardings=(None, N))(t, X),
    lambda jax, lax: jax.jit(lambda x: (x, lax.create_token())).lower(X).compile()(X),
    lambda jax, lax, t: str(jax.eval_shape(lambda t: lax.after_all(t), t)),
    lambda jax, lax, t: str(jax.eval_shape(lambda t: lax.after_all(t), jax.core.abstract_token)),
    lambda jax, lax, t: str(jax.make_jaxpr(lambda a, x: (lax.after_all(a, t), x))(t, X)),
]


def with_tokens(call):
    def run(jax):
        mesh = jax.sharding.Mesh(np.array(jax.devices()), ("i",))
        replicated = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
        result = called(jax, call, t=jax.lax.create_token(), N=replicated)
        return jax.tree.map(lambda x: "Token" if type(x).__name__ == "Token" else x, result)

    return run


@pytest.mark.filterwarnings("ignore:.*abstract_token:DeprecationWarning", "ignore:Some donated:UserWarning")
@pytest.mark.parametrize("call", TOKENS)
def test_tokens_are_arguments_and_results(call):
    same(with_tokens(call))


def test_texts_of_programs_with_tokens_are_those_of_jax():
    def text(jax):
        program = jax.jit(lambda a, x: (jax.lax.after_all(a, jax.lax.create_token()), x + 1))
        return canonical(program.lower(jax.lax.create_token(), 1.0).as_text())

    assert text(ours()) == text(theirs())


@pytest.mark.parametrize("name", ["grad", "value_and_grad", "jacfwd", "jacrev", "hessian"])
def test_a_list_is_a_pair_of_a_result_and_an_auxiliary_output(name):
    same(lambda jax: [float(x) for x in jax.tree.leaves(getattr(jax, name)(lambda x: [x * x, x], has_aux=True)(1.5))])


def test_an_optimizer_of_paths_is_asked_for_three_operands_only():
    same(lambda jnp: jnp.einsum("ij,jk->ik", np.ones((2, 3)), np.ones((3, 2)), optimize="unknown"))


def test_dot_general_without_dimension_numbers_is_dot():
    same(lambda lax: lax.dot_general(np.ones((2, 3), np.float32), np.ones(3, np.float32), None))


def test_types_of_tangents_that_are_weak_pass_the_checks_of_jaxprs():
    def program(jax, jnp):
        with jax.enable_checks(True):
            return str(jax.make_jaxpr(lambda x, y: jax.jvp(jnp.negative, (x,), (y,)))(np.float32(1), 1.0))

    same(program)


def test_an_upper_bound_beside_a_scalar_stays_a_scalar_under_vmap():
    same_jaxpr(
        lambda jax, lax: jax.vmap(lax.clamp, (0, None, None)), np.ones(3, np.float32), np.float32(1), np.float32(2)
    )
