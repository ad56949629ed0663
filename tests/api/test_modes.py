"""Modes that change what a trace or a call is: no jit, evaluation at compile time, promotion, options of ops."""

import functools
import importlib

import numpy as np
import pytest
from compare import LISTED, Case, both, check, ended, on_both, same, same_jaxpr, same_refusal, sweep
from given import given

import minijax
import minijax.numpy as jnp

X = np.array([1.0, 2.0], np.float32)
N = np.arange(3.0)
A, B = np.ones((2, 3), np.float32), np.ones(3, np.float32)
H = np.ones((3, 4), np.float16)


def _under(mode, value, function, **more):
    """A program that calls a function in a mode; `seen` collects the types and shapes that its `show` was given."""

    def program(jax, jnp, lax, nn):
        seen = []

        def show(x):
            seen.append((type(x).__name__, getattr(x, "shape", x)))
            return x

        values = {k: jnp.asarray(v) if isinstance(v, np.ndarray) else v for k, v in more.items()}
        values |= dict(jax=jax, jnp=jnp, lax=lax, nn=nn, x=jnp.asarray(X), n=N, z=jnp.zeros(()), show=show)
        with getattr(jax, mode)(value):
            return given(function, values), seen

    return program


# ---- disable_jit -------------------------------------------------------------------------------------

WITHOUT_JIT = [
    lambda jax, show, x: jax.jit(lambda x: show(x) * 2)(x),
    lambda jax, show: jax.jit(lambda x: show(x))(3),
    lambda jax, show, n: jax.jit(lambda x: show(x))(n),
    lambda jax, show, x: jax.jit(lambda x, n: show(n), static_argnums=1)(x, [1]),
    lambda jax, x: jax.jit(lambda x: x if x.sum() > 0 else -x)(x),
    lambda jax, x: jax.jit(lambda x: "s")(x),
    lambda jax, x: jax.jit(lambda a: bool(a[0] == 1))(x),
    lambda lax, show, x: lax.scan(lambda c, a: (show(c) + a, show(a) * 2), 0.0, x),
    lambda lax, show, n: lax.scan(lambda c, a: (c + show(a), None), 0.0, n),
    lambda lax, x: lax.scan(lambda c, a: (c + a, (c, {"k": a})), 0.0, x, reverse=True),
    lambda lax: lax.scan(lambda c, a: (c + 1, None), 0, None, length=3),
    lambda lax, show, x: lax.map(lambda a: show(a) * 2, x),
    lambda lax, show: lax.cond(True, lambda a: show(a), lambda a: a + 1, 3),
    lambda lax, show, x, z: lax.cond(z > 0, lambda a: a, lambda a: show(a) + 1, x),
    lambda lax: lax.cond(False, lambda a: (a,), lambda a: a + 1, 3),
    lambda lax, show, x: lax.switch(7, [lambda a: a, lambda a: show(a) * 2], x),
    lambda lax, show: lax.while_loop(lambda c: show(c) < 2, lambda c: c + 1, 0),
    lambda lax, show, z: lax.while_loop(lambda c: c < 2, lambda c: show(c) + 1, z),
    lambda lax, show: lax.fori_loop(0, 2, lambda i, c: c + show(i), 0.0),
    lambda jnp, lax, show: lax.fori_loop(jnp.array(0), jnp.array(2), lambda i, c: c + show(i), 0.0),
    lambda jax, x: jax.vmap(jax.jit(lambda a: a * 2))(x),
    lambda jax: jax.grad(jax.jit(lambda a: a**2 if a > 0 else a))(2.0),
    lambda jax, lax, x: jax.vmap(lambda p, a: lax.cond(p, lambda a: a, lambda a: a * 2, a))(x > 1, x),
    lambda jax, lax, x: jax.vmap(lambda a: lax.scan(lambda c, b: (c * b, c), a, x))(x),
    lambda jax, lax, x: jax.grad(lambda a: lax.scan(lambda c, b: (c * b, c), a, x)[0])(2.0),
    lambda jax, lax, x: jax.vmap(lambda a: lax.while_loop(lambda c: c < 3, lambda c: c + 1, a))(x),
    lambda jax: jax.checkpoint(lambda a: a * 2)(2.0),
    lambda jax, jnp: jax.grad(jax.checkpoint(lambda a: jnp.sin(a)))(2.0),
    lambda jnp, lax, x: lax.associative_scan(jnp.add, x),
    lambda jnp, x: jnp.cumsum(x),
    lambda jax: jax.random.normal(jax.random.key(0)),
    lambda jnp, x: jnp.linalg.solve(jnp.eye(2), x),
    lambda jax, x: jax.pmap(lambda a: a * 2)(x),
    lambda nn: nn.relu(2.0),
]


@pytest.mark.oracle
@pytest.mark.parametrize("function", WITHOUT_JIT)
def test_without_jit_functions_get_values_and_run_operation_by_operation(function):
    same(_under("disable_jit", True, function))


@pytest.mark.oracle
@pytest.mark.parametrize(
    "function",
    [lambda jax, x: jax.jit(lambda y: y * 2)(x), lambda jax, x: jax.lax.scan(lambda c, b: (c * b, c), 1.0, x)],
)
def test_without_jit_calls_leave_their_operations_in_jaxprs(function):
    def program(jax):
        def f(x):
            with jax.disable_jit():
                return function(jax, x)

        return f

    same_jaxpr(program, X)


@pytest.mark.oracle
def test_a_scan_of_no_length_has_no_type_without_jit():
    def program(jax, lax, jnp):
        def run():
            with jax.disable_jit():
                lax.scan(lambda c, a: (c, a), 0.0, jnp.zeros(0))

        return run

    same_refusal(program, phrases=["zero-length scan is not supported in disable_jit() mode"])


# ---- ensure_compile_time_eval ------------------------------------------------------------------------

AT_COMPILE_TIME = [
    lambda jnp, x: float(jnp.sum(jnp.arange(3.0))) * x,
    lambda jnp, x: x * jnp.ones(2),
    lambda jax, jnp, x: jax.jit(lambda y: y * 2)(jnp.ones(2)) + x,
    lambda jnp, lax, x: lax.scan(lambda c, a: (c + a, c), 0.0, jnp.arange(3.0))[0] + x,
    lambda jax, x: float(jax.grad(lambda y: y**2)(3.0)) + x,
    lambda lax, x: lax.cond(True, lambda a: a, lambda a: a + 1, 1.0) + x,
    lambda jax, jnp, x: jax.vmap(jnp.sin)(jnp.ones(2)) + x,
    lambda jnp, x: x if bool(jnp.any(jnp.arange(2) > 0)) else -x,
    lambda jnp, x: int(jnp.arange(5)[3]) * x,
    lambda jnp, x: jnp.sin(x) + jnp.cos(1.0),
    lambda jnp, nn, x: nn.relu(x) * nn.relu(jnp.ones(())),
    lambda lax, x: lax.while_loop(lambda c: c < 3, lambda c: c + 1, 0) + x,
]


@pytest.mark.oracle
@pytest.mark.parametrize("function", AT_COMPILE_TIME)
def test_known_values_are_computed_at_compile_time(function, tier):
    def program(jax, jnp, lax, nn):
        def f(x):
            with jax.ensure_compile_time_eval():
                return given(function, dict(jax=jax, jnp=jnp, lax=lax, nn=nn, x=x))

        return f

    check(Case("value", program, (np.float32(2),)), tier)
    check(
        Case(
            "grad",
            lambda jax, jnp, lax, nn: jax.grad(lambda x: jnp.sum(program(jax, jnp, lax, nn)(x))),
            (np.float32(2),),
        ),
        tier,
    )
    check(Case("vmap", lambda jax, jnp, lax, nn: jax.vmap(program(jax, jnp, lax, nn)), (X,)), tier)


# ---- promotion ---------------------------------------------------------------------------------------

RANKS = [
    lambda a, b: a + b,
    lambda a, b: b - a,
    lambda a, b: a / b,
    lambda a, b: a % b,
    lambda a, b: a == b,
    lambda a, b: a < b,
    lambda a: a + np.ones(3),
    lambda jnp, a, b: jnp.add(a, b),
    lambda jnp, a, b: jnp.power(a, b),
    lambda jnp, a, b: jnp.maximum(a, b),
    lambda jnp, a, b: jnp.logaddexp(a, b),
    lambda jnp, a, b: jnp.clip(a, b, None),
    lambda jnp, a, b: jnp.isclose(a, b),
    lambda jnp, a, b: jnp.divmod(a, b),
    lambda jnp, a, b: jnp.hypot(a, b),
    lambda jnp, a, b: jnp.floor_divide(a, b),
    lambda jnp, a, b: jnp.arctan2(a, b),
    lambda jnp, a, b: jnp.linspace(b, a, 3),
    lambda jax, a, b: jax.jit(lambda a, b: a * b)(a, b),
    lambda jnp, a, b: jnp.vectorize(lambda x, y: x + y)(a, b),
]
SAME_RANKS = [
    lambda a: a + 1.0,
    lambda z, a: a + z,
    lambda a: a + a[:1],
    lambda jnp, a, b: jnp.where(a > 0, b, a),
    lambda jnp, a, b: jnp.dot(a, b),
    lambda jnp, a, b: jnp.matmul(a, b),
    lambda jnp, a, b: jnp.outer(a, b),
    lambda jnp, b: jnp.broadcast_to(b, (2, 3)),
    lambda a, b: a.at[0].set(b),
    lambda jnp, a: jnp.concatenate([a, a]),
    lambda nn, a: nn.softmax(a),
    lambda jax, a, b: jax.vmap(lambda x: x + b)(a),
    lambda jax, b: jax.random.uniform(jax.random.key(0), (2, 3), minval=b),
    lambda jnp, b: jnp.full((2, 3), b),
]


@pytest.mark.oracle
@pytest.mark.parametrize("function", RANKS)
def test_implicit_ranks_warn_or_raise_where_they_do_in_jax(function):
    def program(jax, jnp, lax, nn):
        return lambda: run(jax, jnp, lax, nn)

    run = _under("numpy_rank_promotion", "raise", function, a=A, b=B)
    same_refusal(program, phrases=["rank", "jax_numpy_rank_promotion"])


@pytest.mark.oracle
@pytest.mark.parametrize(
    "function",
    [
        lambda a, b: a + b,
        lambda a, b: b - a,
        lambda a, b: a == b,
        lambda jnp, a, b: jnp.power(a, b),
        lambda jnp, a, b: jnp.clip(a, b, None),
    ],
)
def test_implicit_ranks_are_warned_of(function):
    # Shapes that no other test uses: both sides warn only when a call is first traced.
    warn = _under("numpy_rank_promotion", "warn", function, a=np.ones((2, 41), np.float32), b=np.ones(41, np.float32))
    for side in both(lambda jax, jnp, lax, nn: lambda: warn(jax, jnp, lax, nn)):
        with pytest.warns(UserWarning, match="Following NumPy automatic rank promotion for"):
            side()


@pytest.mark.oracle
def test_equal_ranks_and_scalars_need_no_promotion():
    for function in SAME_RANKS:
        same(_under("numpy_rank_promotion", "raise", function, a=A, b=B))


@pytest.mark.oracle
def test_random_functions_work_where_dtypes_must_agree():
    functions = [
        lambda jax: jax.random.key(0),
        lambda jax: jax.random.PRNGKey(0),
        lambda jax: jax.random.normal(jax.random.key(0), (3,)),
        lambda jax: jax.random.split(jax.random.key(0)),
        lambda jax: jax.random.fold_in(jax.random.key(0), 1),
        lambda jnp, x: jnp.sin(x) + 1,
        lambda jnp, x: jnp.mean(x),
    ]
    for function in functions:
        same(_under("numpy_dtype_promotion", "strict", function))


# ---- options of operations ---------------------------------------------------------------------------


@pytest.mark.oracle
@pytest.mark.parametrize("value", [False, True])
def test_the_derivative_of_softmax(value, tier):
    def case(name, function, *args):
        def program(jax, jnp, nn):
            def f(*xs):
                with jax.softmax_custom_jvp(value):
                    return function(jax, jnp, nn)(*xs)

            return f

        return Case(f"{name} {value}", program, args)

    m = np.array([[True, False, True], [True, True, False]])
    sweep(
        [
            case("plain", lambda jax, jnp, nn: nn.softmax, A),
            case("axis", lambda jax, jnp, nn: lambda x: nn.softmax(x, axis=0), A),
            case("where", lambda jax, jnp, nn: lambda x, m: nn.softmax(x, where=m), A, m),
            case("grad", lambda jax, jnp, nn: jax.grad(lambda x: nn.softmax(x)[0]), B),
            case("jvp", lambda jax, jnp, nn: lambda x: jax.jvp(nn.softmax, (x,), (x,)), B),
            case("vmap of grad", lambda jax, jnp, nn: jax.vmap(jax.grad(lambda x: nn.softmax(x)[0])), A),
            case("hessian", lambda jax, jnp, nn: jax.hessian(lambda x: nn.softmax(x)[0]), B),
            case("bf16", lambda jax, jnp, nn: jax.grad(lambda x: nn.softmax(x)[0]), B.astype("float16")),
        ],
        tier,
    )


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sums_of_halves_can_be_forbidden(dtype):
    def program(jax, jnp, lax):
        h = jnp.asarray(H).astype(dtype)

        def run(function):
            with jax.allow_f16_reductions(False):
                return given(function, dict(jax=jax, jnp=jnp, lax=lax, h=h))

        return run

    for function in (
        lambda lax, h: lax.reduce_sum_p.bind(h, axes=(0,), out_sharding=None),
        lambda jax, jnp, h: jax.grad(lambda x: jnp.broadcast_to(x, (3, 4)).astype("float32").sum())(h[0, 0]),
    ):
        same_refusal(
            lambda jax, jnp, lax, function=function: functools.partial(program(jax, jnp, lax), function),
            phrases=["jax_allow_f16_reductions=False"],
        )
    for function in (
        lambda jnp, h: jnp.sum(h),
        lambda jnp, h: jnp.max(h),
        lambda jnp, h: jnp.cumsum(h, 0),
        lambda jnp, h: jnp.dot(h, h.T),
        lambda jnp, h: jnp.prod(h),
    ):
        run = lambda jax, jnp, lax, f=function: ended(lambda: program(jax, jnp, lax)(f))  # noqa: E731
        assert same(run) == "returned"


@pytest.mark.oracle
def test_types_inside_shard_map_follow_the_options():
    def program(option, value, function):
        def made(jax, jnp, lax):
            mesh = jax.make_mesh((1, 2), ("a", "b"), axis_types=(jax.sharding.AxisType.Auto,) * 2)

            def f(x):
                with getattr(jax, option)(value):
                    return function(jax, lax, mesh, x)

            return f

        return made

    def spread(jax, lax, mesh, x):
        spec = jax.P("a", "b")
        return jax.shard_map(lambda x: x + 1, mesh=mesh, in_specs=spec, out_specs=spec)(x)

    def index(jax, lax, mesh, x):
        spec = jax.P(None, "b")
        return jax.shard_map(lambda x: x + lax.axis_index("a"), mesh=mesh, in_specs=spec, out_specs=spec)(x)

    x = np.arange(4, dtype=np.float32).reshape(2, 2)
    for value in (False, True):
        same_jaxpr(program("remove_size_one_mesh_axis_from_type", value, spread), x)
    with on_both(lambda jax: jax.remove_size_one_mesh_axis_from_type(True)):  # the checker of jaxprs infers types anew
        same_jaxpr(program("auto_pcast", True, index), x)
    same_jaxpr(program("auto_pcast", True, spread), x)
    same_refusal(
        lambda jax, jnp, lax: lambda: jax.make_jaxpr(program("auto_pcast", False, spread)(jax, jnp, lax))(x),
        phrases=["requires varying manual axes to match", "check_vma=False"],
    )


# ---- leaks -------------------------------------------------------------------------------------------

LEAKS = [
    (lambda jax: jax.checking_leaks(), lambda jax, leak, x: jax.jit(leak)(x)),
    (lambda jax: jax.checking_leaks(), lambda jax, leak, x: jax.vmap(leak)(x)),
    (lambda jax: jax.check_tracer_leaks(True), lambda jax, leak, x: jax.make_jaxpr(leak)(1.0)),
]


@pytest.mark.oracle
@pytest.mark.parametrize("mode, function", LEAKS)
def test_leaked_tracers_are_found(mode, function, few_objects):
    def program(jax, jnp):
        def run():
            kept = []

            def leak(y):
                kept.append(y * 2)
                return y

            with mode(jax):
                function(jax, leak, jnp.asarray(X))

        return run

    same_refusal(program, phrases=["Leaked trace ", "Leaked tracer(s):", "Tracer(", "is referred to by "])


def test_no_leaks_are_found_in_programs_without_leaks(few_objects):
    with minijax.checking_leaks():
        f = minijax.jit(minijax.grad(minijax.jit(lambda x: jnp.sum(minijax.vmap(jnp.sin)(x)))))
        assert f(jnp.arange(3.0)).shape == (3,)


# ---- names -------------------------------------------------------------------------------------------


@pytest.mark.oracle
def test_top_level_names_are_those_of_jax():
    def program(jax, jnp):
        x = jnp.arange(4.0)
        with pytest.warns(UserWarning, match="has been renamed"):
            hosts = jax.host_id(), jax.host_count(), jax.host_ids()
        shard = x.addressable_shards[0]
        typing = importlib.import_module(f"{jax.__name__}.typing")
        monitoring = importlib.import_module(f"{jax.__name__}.monitoring")
        return (
            hosts,
            isinstance(jax.devices()[0], jax.Device),
            isinstance(shard, jax.Shard),
            jax.effects_barrier(),
            jax.make_user_context(3).value,
            sorted(n for n in dir(typing) if n[0] != "_"),
            sorted(n for n in dir(monitoring) if n[0] != "_"),
            sorted(n for n in dir(jax.ops) if n[0] != "_"),
            [(s.name, s.value, str(s), repr(s)) for s in jax.memory.Space],
            jax.print_environment_info(True)[:14],
            jax.device_put(x, jax.memory.Space.Host).sharding.memory_kind,
            jax.device_put(jax.device_put(x, jax.memory.Space.Host), jax.memory.Space.Device).sharding.memory_kind,
        )

    same(program)


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["device_put_replicated", "device_put_sharded", "no_such_name"])
def test_removed_names_raise_that_they_were_removed(name):
    phrase = "has no attribute" if name == "no_such_name" else "is deprecated; use jax.device_put instead"
    same_refusal(lambda jax: lambda: getattr(jax, name), phrases=[phrase])


DLPACK = [
    "dl.from_dlpack(np.arange(4.0))", "dl.from_dlpack(x)", "dl.from_dlpack(x, device=d1).device.id",
    "dl.from_dlpack(x, copy=True)", "dl.from_dlpack(np.arange(3)).dtype", "dl.from_dlpack(x.astype(jnp.bfloat16))",
    "dl.from_dlpack(x > 1)", "[dl.is_supported_dtype(t) for t in ('float32', float, np.int8, 'int4', 'S1', 'bool')]",
    "dl.from_dlpack(x.__dlpack__())", "dl.from_dlpack(x, device='cpu')", "dl.from_dlpack(x, device=d1, copy=False)",
    "dl.from_dlpack([1])", "dl.is_supported_dtype('foo')", "dl.is_supported_dtype(None)",
    "dl.is_supported_dtype(jnp.float8_e4m3fn)", "dl.is_supported_dtype(jnp.bfloat16)",
]  # fmt: skip


@pytest.mark.oracle
@pytest.mark.parametrize("text", DLPACK)
def test_dlpack(text):
    def program(jax, jnp, dlpack):
        return eval(text, dict(dl=dlpack, jnp=jnp, np=np, x=jnp.asarray(X), d1=jax.devices()[1]))

    same(program, raises=LISTED)
