"""Forms in which programs of people and random programs differed from jax: jaxprs, texts, warnings and errors."""

import contextlib
import cProfile
import functools
import warnings

import numpy as np
import pytest
from compare import same, same_jaxpr, same_refusal
from given import given

pytestmark = pytest.mark.oracle

# Functions of a number `y`, with constants `c` (NumPy's floats), `i` (NumPy's ints) and `x` (an array of jax).
TRACED = [
    lambda x, y: x.at[5].get(mode="clip") + y,
    lambda x, y: x.at[-7].get(mode="clip") + y,
    lambda x, y: x.at[1, 5].get(mode="clip") + y,
    lambda x, y: x.at[0:2, 9].get(mode="clip") + y,
    lambda x, y: x.at[5, ::-1].get(mode="clip") + y,
    lambda x, y: x.at[5, 0:3:2].get(mode="clip") + y,
    lambda x, y: x.at[-1].get(mode="clip", wrap_negative_indices=False) + y,
    lambda x, y: x.at[5, None].get(mode="clip") + y,
    lambda lax, c, y: lax.map(lambda r: r * y, c, batch_size=2),
    lambda lax, i, y: lax.map(lambda r: r * y, i, batch_size=3),
    lambda lax, i, y: lax.map(lambda r: r * y, i, batch_size=4),
    lambda lax, i, y: lax.map(lambda r: r[0] * y + r[1], (i, i * y), batch_size=2),
    lambda jax, lax, i, y: jax.vmap(lambda r: lax.ppermute(r, "i", ((0, 2), (1, 0), (2, 1))), axis_name="i")(i) + y,
    lambda jax, lax, c, y: jax.vmap(lambda r: lax.ppermute(r * y, "i", ((0, 2), (1, 0), (2, 1))), axis_name="i")(c),
    lambda jax, lax, c, y: jax.vmap(lambda r: lax.pshuffle(r * y, "i", [1, 0, 2]), 1, axis_name="i")(c.T),
]


@pytest.mark.parametrize("call", TRACED)
def test_jaxprs(call):
    def program(jax, jnp, lax):
        c, i = np.arange(6, dtype=np.float32).reshape(3, 2), np.arange(3, dtype=np.int32)
        scope = dict(jax=jax, jnp=jnp, lax=lax, c=c, i=i, x=jnp.asarray(c))
        return lambda y: given(call, dict(scope, y=y))

    same_jaxpr(program, 2.0)


@pytest.mark.parametrize(
    "call",
    [lambda x: x.at[5].get(mode="clip"), lambda x: x.at[-9, 1].get(mode="clip"), lambda e: e.at[0].get(mode="clip")],
)
def test_static_indices_are_clipped(call):
    same(lambda jnp: given(call, dict(x=jnp.arange(6.0).reshape(3, 2), e=jnp.zeros((2, 0)))))


WARNINGS = [
    lambda jnp, x: jnp.sum(x, dtype="float64"),
    lambda jnp, x: jnp.prod(x, dtype="int64"),
    lambda x: x.sum(dtype=np.float64),
    lambda jnp, x: jnp.sum(x, dtype=float),
    lambda jnp, x: jnp.sum(x, 0, "uint64"),
    lambda jnp, x: jnp.sum(x, dtype="bool"),
]


@pytest.mark.parametrize("call", WARNINGS)
def test_each_trace_of_a_sum_warns_twice(call):
    def program(jax, jnp):
        jax.clear_caches()
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            for shape in ((6,), (2, 3), (6,)):
                given(call, dict(jax=jax, jnp=jnp, x=jnp.ones(shape)))
        return [str(w.message).split(" is not")[0] for w in found]

    same(program)


# Texts of NumPy's own class, wherever a text is an option.
TEXTS = [
    lambda S, x: x.astype(S("int8")),
    lambda jnp, S: jnp.zeros(3, S("int8")),
    lambda jnp, S: jnp.asarray([1], S("int8")),
    lambda jnp, S: jnp.arange(3, dtype=S("float16")),
    lambda jnp, S: jnp.full(3, 1, S("int8")),
    lambda jnp, S, x: jnp.sum(x, dtype=S("float16")),
    lambda S, x: x.mean(dtype=S("float16")),
    lambda S, x: x.view(S("int32")),
    lambda lax, S: lax.iota(S("int8"), 3),
    lambda lax, S, x: lax.convert_element_type(x, S("int8")),
    lambda jnp, S: jnp.linspace(0, 1, 3, dtype=S("float16")),
    lambda jnp, S, x: jnp.concatenate([x, x], dtype=S("float16")),
    lambda jnp, S: jnp.result_type(S("int8"), S("float16")),
    lambda jax, S: jax.random.normal(jax.random.key(0), (2,), S("float16")),
    lambda jax, jnp, S: jax.nn.one_hot(jnp.arange(2), 2, dtype=S("int8")),
    lambda lax, S, x: lax.dot(x, x.T, preferred_element_type=S("float32")),
    lambda jnp, S, x: jnp.pad(x, 1, mode=S("edge")),
    lambda S, x: x.ravel(S("F")),
    lambda jnp, S, x: jnp.fft.fft(x, norm=S("ortho")),
    lambda jnp, S, x: jnp.linalg.norm(x, S("fro")),
    lambda jnp, S, x: jnp.take(x, 7, mode=S("clip"), axis=0),
    lambda jax, lax, S, x: jax.vmap(lambda r: lax.psum(r, S("i")), axis_name="i")(x),
    lambda jax, S, x: jax.image.resize(x, (4, 4), S("linear")),
    lambda jax, S: str(jax.make_mesh((1,), (S("x"),))),
    lambda jax, S: str(jax.sharding.AbstractMesh((2,), (S("x"),))),
    lambda jnp, S, x: jnp.searchsorted(x[0], 1.0, side=S("right")),
]


@pytest.mark.parametrize("call", TEXTS)
def test_texts_of_numpy(call):
    def program(jax, jnp, lax):
        value = given(call, dict(jax=jax, jnp=jnp, lax=lax, S=np.str_, x=jnp.arange(6.0).reshape(2, 3)))
        return str(value) if isinstance(value, str | np.dtype) else value

    same(program)


def test_a_named_scope_gives_the_stack_of_names():
    def program(jax):
        with jax.named_scope("a") as outer, jax.named_scope("b") as inner:
            return str(outer), str(inner)

    same(program)


@pytest.mark.parametrize(
    "result",
    [lambda jnp, v: jnp.sin(v), lambda v: v[None], lambda v: v > 0, lambda v: (v, v), lambda: 2.0, lambda: None],
)
def test_what_apply_is_given_must_return_the_same_type(result):
    def program(jnp):
        return lambda: jnp.arange(4).at[0].apply(lambda v: given(result, dict(jnp=jnp, v=v)))

    same_refusal(program)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_an_empty_take_keeps_the_weak_type(axis, dtype):
    def program(jnp):
        weak = jnp.broadcast_to(jnp.asarray(2 if dtype == "int32" else 2.0), (0, 3) if axis else (2, 0))
        taken = jnp.take(weak, np.zeros((0, 3), np.int8), axis=axis)
        return taken, taken.weak_type

    same(program)


def test_differences_of_weak_booleans():
    same_jaxpr(lambda jnp: lambda x, y: jnp.diff(jnp.broadcast_to(x == y, (3,)), n=2), np.True_, 1.5)


@pytest.mark.parametrize("specs", [("x", None), (None, "x")])
def test_a_product_refuses_batch_axes_that_are_sharded_otherwise(specs):
    def program(jax, jnp):
        mesh = jax.make_mesh((1,), ("x",))
        shardings = [jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(s)) for s in specs]
        a, b = (jax.device_put(jnp.ones((4, 2, 2)), s) for s in shardings)
        return lambda: jnp.matmul(a, b)

    same_refusal(program)


@pytest.mark.parametrize("shapes", [((4, 1, 4), (2, 2, 8)), ((3, 4, 1, 4), (2, 2, 8))])
def test_a_product_names_its_batch_axes_first(shapes):
    same_refusal(lambda jnp: lambda: jnp.matmul(*map(jnp.ones, shapes)))


# Functions of a value `x` that a loop captures from outside, with constants `m` and `v`, arrays of jax, and `n`, NumPy's.
CAPTURED = [
    lambda m, x: m @ x,
    lambda jnp, m, x: jnp.dot(m, x),
    lambda m, x: (m + x)[0],
    lambda n, x: n @ x,
    lambda jnp, m, x: jnp.maximum(m, x)[0],
    lambda jnp, m, x: jnp.logaddexp(m, x)[0],
    lambda jnp, m, x: jnp.tensordot(m, x, 1),
    lambda jnp, m, x: jnp.inner(m, x),
    lambda jnp, v, x: jnp.where(v > 0, v, x),
    lambda jnp, m, v, x: jnp.clip(x, v, m[0]),
    lambda v, x: v**x,
    lambda jnp, m, x: jnp.linalg.solve(m, x),
    lambda m, x: x @ m,
    lambda jax, i, x: jax.ops.segment_sum(x, i, 2) + jax.ops.segment_max(x, i, 2),
]


@pytest.mark.parametrize("call", CAPTURED)
def test_what_a_loop_captures_stands_in_the_order_of_operands(call):
    def program(jax, jnp):
        m, v, n, i = jnp.ones((2, 2)) * 2, jnp.ones(2) * 2, np.ones((2, 2), np.float32), np.arange(2)
        scope = dict(jax=jax, jnp=jnp, m=m, v=v, n=n, i=i)
        return lambda x, y: jax.lax.scan(lambda c, _: (c + given(call, dict(scope, x=x)), None), y, length=2)

    same_jaxpr(program, np.ones(2, np.float32), np.ones(2, np.float32))


def test_conjugate_gradients_capture_the_matrix_first():
    matrix = np.array([[4, 1], [1, 3]], np.float32)
    same_jaxpr(
        lambda jax, jnp: lambda b: jax.scipy.sparse.linalg.cg(lambda x: jnp.asarray(matrix) @ x, b),
        np.ones(2, np.float32),
    )


@pytest.mark.parametrize("shapes", [((1, 1), (1, 2)), ((1, 1), (1,)), ((1, 2, 2), (1, 2, 1)), ((1, 1, 1), (1, 1, 1))])
def test_transposed_products_of_size_one(shapes):
    same_jaxpr(lambda jax, jnp: jnp.linalg.solve, *(np.ones(s, np.float32) for s in shapes))


@pytest.mark.parametrize("ids", [[0.0, 1, 2, 3], [True, False, True, True], [0, 1]])
def test_odd_numbers_of_segments(ids):
    same_refusal(lambda jax, jnp: lambda: jax.ops.segment_sum(jnp.arange(4.0), np.array(ids), num_segments=4))


# Derivatives of a loop, branch or call of `f`, a jitted function that reads a constant or gets a number.
INSIDE = {
    "scan": lambda jax, jnp, f, x: jax.lax.scan(lambda c, t: (f(c) * t, t), x, jnp.arange(3.0))[0],
    "fori_loop": lambda jax, f, x: jax.lax.fori_loop(0, 3, lambda i, c: f(c), x),
    "cond": lambda jax, f, x: jax.lax.cond(x[0] > 0, f, lambda x: x, x),
    "checkpoint": lambda jax, f, x: jax.checkpoint(f)(x),
    "call": lambda f, x: f(x),
}


# Second derivatives of branches and of `checkpoint` have their constants in another order.
DERIVATIVES = [
    (d, t) for d in ("grad", "hessian", "jacfwd") for t in INSIDE if d != "hessian" or t not in ("cond", "checkpoint")
]


@pytest.mark.parametrize(("derivative", "inside"), DERIVATIVES)
@pytest.mark.parametrize(
    "function",
    [
        lambda jax, m: jax.jit(lambda x: m @ x),
        lambda jax: jax.nn.selu,
        lambda jax, jnp: lambda x: jax.jit(jnp.multiply)(x, 2.5),
    ],
)
def test_what_jitted_functions_read_is_a_residual(function, inside, derivative):
    def program(jax, jnp):
        f = given(function, dict(jax=jax, jnp=jnp, m=jnp.ones((2, 2)) * 2))
        return getattr(jax, derivative)(lambda x: given(INSIDE[inside], dict(jax=jax, jnp=jnp, f=f, x=x)).sum())

    same_jaxpr(program, np.ones(2, np.float32))


def test_locations_leave_the_standard_library_out():
    def program(jax, jnp):
        @contextlib.contextmanager
        def entered():
            yield

        functions = entered()(jnp.sin), jax.named_scope("tip")(jnp.cos), functools.singledispatch(jnp.tan)
        run = jax.jit(lambda x: [cProfile.Profile().runcall(f, x) for f in functions])
        text = run.lower(1.0).as_text(debug_info=True)
        return [name in text for name in ("inner", "wrapper", "runcall", "tip", "lambda")]

    assert same(program) == [False, False, False, True, True]


# Functions whose derivatives read constants, which vary over a manual axis as the operands do.
VARYING = [
    lambda jnp, x: jnp.maximum(x, x * 2),
    lambda jnp, x: jnp.clip(x, 0, 1),
    lambda jax, jnp, x: jax.nn.logsumexp(jnp.stack([x, x]), 0),
    lambda jax, x: jax.nn.softmax(x),
    lambda jax, x: jax.nn.elu(x),
    lambda jax, x: jax.nn.selu(x),
    lambda x: x % 3,
    lambda jnp, x: jnp.hypot(x, x),
    lambda jnp, x: jnp.sinc(x),
    lambda jax, jnp, x: jax.lax.fori_loop(0, 3, lambda i, c: jnp.maximum(c, jnp.sin(c)), x),
]


@pytest.mark.parametrize("call", VARYING)
def test_constants_of_derivatives_vary_at_once(call):
    def program(jax, jnp):
        mesh = jax.make_mesh((2,), ("r",), axis_types=(jax.sharding.AxisType.Auto,), devices=jax.devices()[:2])
        spec = jax.sharding.PartitionSpec("r")
        body = lambda x: given(call, dict(jax=jax, jnp=jnp, x=x))  # noqa: E731
        f = jax.shard_map(body, mesh=mesh, in_specs=spec, out_specs=spec)
        return lambda x: jax.jvp(f, (x,), (x,))

    same_jaxpr(program, np.arange(4, dtype=np.float32))
