"""Forms in which programs of people and random programs differed from jax: jaxprs, texts, warnings and errors."""

import contextlib
import cProfile
import functools
import warnings

import numpy as np
import pytest
from compare import same, same_jaxpr, same_refusal

pytestmark = pytest.mark.oracle

# Functions of a number `y`, with constants `c` (NumPy's floats), `i` (NumPy's ints) and `x` (an array of jax).
TRACED = """
    x.at[5].get(mode='clip') + y | x.at[-7].get(mode='clip') + y | x.at[1, 5].get(mode='clip') + y
    x.at[0:2, 9].get(mode='clip') + y | x.at[5, ::-1].get(mode='clip') + y | x.at[5, 0:3:2].get(mode='clip') + y
    x.at[-1].get(mode='clip', wrap_negative_indices=False) + y | x.at[5, None].get(mode='clip') + y
    lax.map(lambda r: r * y, c, batch_size=2) | lax.map(lambda r: r * y, i, batch_size=3)
    lax.map(lambda r: r * y, i, batch_size=4) | lax.map(lambda r: r[0] * y + r[1], (i, i * y), batch_size=2)
    jax.vmap(lambda r: lax.ppermute(r, 'i', ((0, 2), (1, 0), (2, 1))), axis_name='i')(i) + y
    jax.vmap(lambda r: lax.ppermute(r * y, 'i', ((0, 2), (1, 0), (2, 1))), axis_name='i')(c)
    jax.vmap(lambda r: lax.pshuffle(r * y, 'i', [1, 0, 2]), 1, axis_name='i')(c.T)
"""


def forms(table):
    return [text.strip() for text in table.replace("\n", "|").split("|") if text.strip()]


@pytest.mark.parametrize("text", forms(TRACED))
def test_jaxprs(text):
    def program(jax, jnp, lax):
        c, i = np.arange(6, dtype=np.float32).reshape(3, 2), np.arange(3, dtype=np.int32)
        scope = dict(jax=jax, jnp=jnp, lax=lax, c=c, i=i, x=jnp.asarray(c))
        return eval(f"lambda y: {text}", scope)

    same_jaxpr(program, 2.0)


@pytest.mark.parametrize(
    "text", ["x.at[5].get(mode='clip')", "x.at[-9, 1].get(mode='clip')", "e.at[0].get(mode='clip')"]
)
def test_static_indices_are_clipped(text):
    same(lambda jnp: eval(text, dict(x=jnp.arange(6.0).reshape(3, 2), e=jnp.zeros((2, 0)))))


WARNINGS = """
    jnp.sum(x, dtype='float64') | jnp.prod(x, dtype='int64') | x.sum(dtype=np.float64) | jnp.sum(x, dtype=float)
    jnp.sum(x, 0, 'uint64') | jnp.sum(x, dtype='bool')
"""


@pytest.mark.parametrize("text", forms(WARNINGS))
def test_each_trace_of_a_sum_warns_twice(text):
    def program(jax, jnp):
        jax.clear_caches()
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            for shape in ((6,), (2, 3), (6,)):
                eval(text, dict(jax=jax, jnp=jnp, np=np, x=jnp.ones(shape)))
        return [str(w.message).split(" is not")[0] for w in found]

    same(program)


# Texts of NumPy's own class, wherever a text is an option.
TEXTS = """
    x.astype(S('int8')) | jnp.zeros(3, S('int8')) | jnp.asarray([1], S('int8')) | jnp.arange(3, dtype=S('float16'))
    jnp.full(3, 1, S('int8')) | jnp.sum(x, dtype=S('float16')) | x.mean(dtype=S('float16')) | x.view(S('int32'))
    lax.iota(S('int8'), 3) | lax.convert_element_type(x, S('int8')) | jnp.linspace(0, 1, 3, dtype=S('float16'))
    jnp.concatenate([x, x], dtype=S('float16')) | jnp.result_type(S('int8'), S('float16'))
    jax.random.normal(jax.random.key(0), (2,), S('float16')) | jax.nn.one_hot(jnp.arange(2), 2, dtype=S('int8'))
    lax.dot(x, x.T, preferred_element_type=S('float32')) | jnp.pad(x, 1, mode=S('edge')) | x.ravel(S('F'))
    jnp.fft.fft(x, norm=S('ortho')) | jnp.linalg.norm(x, S('fro')) | jnp.take(x, 7, mode=S('clip'), axis=0)
    jax.vmap(lambda r: lax.psum(r, S('i')), axis_name='i')(x) | jax.image.resize(x, (4, 4), S('linear'))
    str(jax.make_mesh((1,), (S('x'),))) | str(jax.sharding.AbstractMesh((2,), (S('x'),))) | jnp.searchsorted(x[0], 1.0, side=S('right'))
"""


@pytest.mark.parametrize("text", forms(TEXTS))
def test_texts_of_numpy(text):
    def program(jax, jnp, lax):
        value = eval(text, dict(jax=jax, jnp=jnp, lax=lax, S=np.str_, x=jnp.arange(6.0).reshape(2, 3)))
        return str(value) if isinstance(value, str | np.dtype) else value

    same(program)


def test_a_named_scope_gives_the_stack_of_names():
    def program(jax):
        with jax.named_scope("a") as outer, jax.named_scope("b") as inner:
            return str(outer), str(inner)

    same(program)


@pytest.mark.parametrize("result", ["jnp.sin(v)", "v[None]", "v > 0", "(v, v)", "2.0", "None"])
def test_what_apply_is_given_must_return_the_same_type(result):
    def program(jnp):
        return lambda: jnp.arange(4).at[0].apply(lambda v: eval(result, dict(jnp=jnp, v=v)))

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
CAPTURED = """
    m @ x | jnp.dot(m, x) | (m + x)[0] | n @ x | jnp.maximum(m, x)[0] | jnp.logaddexp(m, x)[0] | jnp.tensordot(m, x, 1)
    jnp.inner(m, x) | jnp.where(v > 0, v, x) | jnp.clip(x, v, m[0]) | v ** x | jnp.linalg.solve(m, x) | x @ m
    jax.ops.segment_sum(x, i, 2) + jax.ops.segment_max(x, i, 2)
"""


@pytest.mark.parametrize("text", forms(CAPTURED))
def test_what_a_loop_captures_stands_in_the_order_of_operands(text):
    def program(jax, jnp):
        m, v, n, i = jnp.ones((2, 2)) * 2, jnp.ones(2) * 2, np.ones((2, 2), np.float32), np.arange(2)
        call = eval(f"lambda x: {text}", dict(jax=jax, jnp=jnp, m=m, v=v, n=n, i=i))
        return lambda x, y: jax.lax.scan(lambda c, _: (c + call(x), None), y, length=2)

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
INSIDE = """
    jax.lax.scan(lambda c, t: (f(c) * t, t), x, jnp.arange(3.0))[0] | jax.lax.fori_loop(0, 3, lambda i, c: f(c), x)
    jax.lax.cond(x[0] > 0, f, lambda x: x, x) | jax.checkpoint(f)(x) | f(x)
"""


# Second derivatives of branches and of `checkpoint` have their constants in another order.
DERIVATIVES = [
    (d, t)
    for d in ("grad", "hessian", "jacfwd")
    for t in forms(INSIDE)
    if d != "hessian" or "ch" not in t and "cond" not in t
]


@pytest.mark.parametrize(("derivative", "text"), DERIVATIVES)
@pytest.mark.parametrize(
    "function", ["jax.jit(lambda x: m @ x)", "jax.nn.selu", "lambda x: jax.jit(jnp.multiply)(x, 2.5)"]
)
def test_what_jitted_functions_read_is_a_residual(function, text, derivative):
    def program(jax, jnp):
        f = eval(function, dict(jax=jax, jnp=jnp, m=jnp.ones((2, 2)) * 2))
        return getattr(jax, derivative)(lambda x: eval(text, dict(jax=jax, jnp=jnp, f=f, x=x)).sum())

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
VARYING = """
    jnp.maximum(x, x * 2) | jnp.clip(x, 0, 1) | jax.nn.logsumexp(jnp.stack([x, x]), 0) | jax.nn.softmax(x) | jax.nn.elu(x)
    jax.nn.selu(x) | x % 3 | jnp.hypot(x, x) | jnp.sinc(x) | jax.lax.fori_loop(0, 3, lambda i, c: jnp.maximum(c, jnp.sin(c)), x)
"""


@pytest.mark.parametrize("text", forms(VARYING))
def test_constants_of_derivatives_vary_at_once(text):
    def program(jax, jnp):
        mesh = jax.make_mesh((2,), ("r",), axis_types=(jax.sharding.AxisType.Auto,), devices=jax.devices()[:2])
        spec = jax.sharding.PartitionSpec("r")
        f = jax.shard_map(eval(f"lambda x: {text}", dict(jax=jax, jnp=jnp)), mesh=mesh, in_specs=spec, out_specs=spec)
        return lambda x: jax.jvp(f, (x,), (x,))

    same_jaxpr(program, np.arange(4, dtype=np.float32))
