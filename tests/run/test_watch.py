"""`debug_nans`, `debug_infs` and `no_execution`: which programs raise, and what operation the message names."""

import numpy as np
import pytest
from compare import both, ours, outcome, same, same_refusal
from given import given

import minijax
import minijax.numpy as jnp
from minijax import lax

X = np.array([0.0, 1.0], np.float32)
Z = np.float32(0)
C = np.complex64(0)

# An expression of the values above, and the words of the message.
NANS = [
    (lambda jnp, x: jnp.log(-x - 1), "(nan) encountered in log"),
    (lambda z: z / z, "(nan) encountered in div"),
    (lambda lax, z: lax.div(z, z), "(nan) encountered in div"),
    (lambda lax, c: lax.div(c, c), "(nan) encountered in div"),
    (lambda jnp, lax, z: lax.div(z.astype(jnp.bfloat16), z.astype(jnp.bfloat16)), "(nan) encountered in div"),
    (lambda lax, z: lax.div(z.astype("float8_e4m3fn"), z.astype("float8_e4m3fn")), "(nan) encountered in div"),
    (lambda jax, jnp, x: jax.jit(lambda x: jnp.sin(x) / x)(x), "(nan) encountered in div"),
    (lambda jax, jnp, x: jax.jit(lambda x: jax.jit(lambda y: jnp.sqrt(y - 5))(x) + 1)(x), "(nan) encountered in sqrt"),
    (lambda jax, x: jax.jit(lambda x: {"a": x, "b": x / x})(x), "(nan) encountered in div"),
    (lambda jax, x: jax.jit(lambda x, n: x / x * n, static_argnums=1)(x, 2), "(nan) encountered in div"),
    (lambda jax, x: jax.jit(lambda *, x: x / x)(x=x), "(nan) encountered in div"),
    (lambda jax, x: jax.jit(lambda x: x / x, donate_argnums=0)(x + 0), "(nan) encountered in div"),
    (lambda jax, jnp, x: jax.jit(lambda x: jnp.nan)(x), "did not produce invalid values during its execution"),
    (lambda jax, x: jax.jit(lambda x: x * 3.0)(np.nan), "did not produce invalid values during its execution"),
    (lambda jax, x: jax.jit(lambda x, n: x * n, static_argnums=-1)(np.nan, 2.0), "literals"),
    (lambda jax, x: jax.jit(lambda x: 0.0 / x)(0.0), "float division by zero"),
    (lambda jax, x: jax.jit(lambda *, x: 0.0 / x["a"])(x={"a": 0.0}), "float division by zero"),
    (lambda jax, jnp, x, z: jax.grad(lambda x: jnp.where(x > 0, jnp.sqrt(x), 0.0) * 0)(z), "(nan) encountered in mul"),
    (lambda jax, jnp, x, z: jax.grad(jax.jit(lambda x: x * jnp.sqrt(x)))(z), "(nan) encountered in mul"),
    (lambda jax, jnp, x, z: jax.jit(jax.grad(lambda x: x * jnp.sqrt(x)))(z), "(nan) encountered in mul"),
    (lambda jax, jnp, x, z: jax.jvp(lambda x: jnp.sqrt(x), (z,), (z,)), "(nan) encountered in mul"),
    (lambda jax, x: jax.vmap(lambda x: x / x)(x), "(nan) encountered in div"),
    (lambda jax, x: jax.jit(jax.vmap(lambda x: x / x))(x), "(nan) encountered in div"),
    (lambda lax, z, c: lax.scan(lambda c, _: (c / c, c), z, None, length=2), "(nan) encountered in scan"),
    (
        lambda jax, lax, z, c: jax.jit(lambda z: lax.fori_loop(0, 2, lambda i, c: c / c, z))(z),
        "(nan) encountered in scan",
    ),
    (
        lambda lax, z, c: lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, c[1] / c[1]), (0, z)),
        "encountered in while",
    ),
    (lambda lax, x, z: lax.cond(True, lambda x: x / x, lambda x: x, z), "(nan) encountered in cond"),
    (lambda jnp, x: jnp.take(x, jnp.array([5])), "(nan) encountered in"),
    (lambda x: x.at[5].get(mode="fill"), "(nan) encountered in"),
    (lambda jax, x: jax.checkpoint(lambda x: x / x)(x), "(nan) encountered in div"),
    (lambda jnp: jnp.linalg.cholesky(-jnp.eye(2)), "(nan) encountered in cholesky"),
    (lambda jnp: jnp.mean(jnp.zeros(0)), "(nan) encountered in div"),
    (lambda jax, x: jax.pmap(lambda x: x / x)(x), "Invalid value (nan) encountered in sharded computation"),
    (lambda x, shard_map: shard_map(lambda x: x / x)(x), "Invalid value (nan) encountered in sharded computation"),
    (
        lambda jax, x, shard_map: jax.jit(shard_map(lambda x: x / x))(x),
        "Invalid value (nan) encountered in sharded computation",
    ),
    (lambda jax, x, spread: jax.jit(lambda x: x / x)(jax.device_put(x, spread)), "(nan) encountered in div"),
]
INFS = [
    (lambda z: 1 / z, "(inf) encountered in div"),
    (lambda jnp, z: jnp.log(z), "(inf) encountered in log"),
    (lambda jax, jnp, z: jax.jit(lambda z: jnp.exp(1000 + z))(z), "(inf) encountered in exp"),
    (lambda lax, c: lax.div(c + 1, c), "(inf) encountered in div"),
]
ALLOWED = [
    ("debug_nans", lambda z: 1 / z),
    ("debug_nans", lambda jax, jnp, z: jax.jit(lambda z: jnp.where(jnp.isnan(z / z), 0.0, 1.0))(z)),
    ("debug_nans", lambda jax: jax.device_put(np.array([np.nan]))),
    ("debug_nans", lambda jax: jax.random.normal(jax.random.key(0), (2,))),
    ("debug_nans", lambda jnp, x: jnp.nanmean(jnp.where(x > 5, x, 0.0))),
    ("debug_nans", lambda jax, jnp, x, z: jax.grad(lambda x: jnp.sqrt(x))(z)),
    ("debug_infs", lambda z: z / z),
    ("debug_infs", lambda jnp, x: jnp.max(x)),
]


def _program(mode, call):
    def program(jax, jnp, lax):
        mesh = jax.make_mesh((2,), ("a",), axis_types=(jax.sharding.AxisType.Auto,))
        spec = jax.P("a")
        values = dict(jax=jax, jnp=jnp, lax=lax, x=jnp.asarray(X), z=jnp.asarray(Z), c=jnp.asarray(C))
        values["spread"] = jax.NamedSharding(mesh, spec)
        values["shard_map"] = lambda f: jax.shard_map(f, mesh=mesh, in_specs=spec, out_specs=spec)

        def run():
            with getattr(jax, mode)(True):
                return given(call, values)

        return run

    return program


@pytest.mark.oracle
@pytest.mark.parametrize(
    "mode, call, phrase", [("debug_nans", *case) for case in NANS] + [("debug_infs", *case) for case in INFS]
)
def test_invalid_results_raise_and_the_message_names_the_operation(mode, call, phrase, capsys):
    same_refusal(_program(mode, call), phrases=[phrase])


@pytest.mark.oracle
@pytest.mark.parametrize("mode, call", ALLOWED)
def test_valid_programs_run_as_without_the_mode(mode, call, capsys):
    results = [outcome(run) for run in both(_program(mode, call))]
    assert not any(r.error for r in results)
    assert repr(results[0].value) == repr(results[1].value)


def test_a_checked_call_tells_that_it_runs_again_and_the_mode_ends_with_its_scope(capsys):
    f = minijax.jit(lambda x: x / x)
    assert np.isnan(f(jnp.float32(0)))
    with minijax.debug_nans(True), pytest.raises(FloatingPointError):
        f(jnp.float32(0))
    assert "Calling the de-optimized version." in capsys.readouterr().out
    assert np.isnan(f(jnp.float32(0))) and capsys.readouterr().out == ""


def test_the_function_is_traced_once_for_calls_with_and_without_the_mode():
    traces = []
    f = minijax.jit(lambda x: traces.append(1) or x + 1)
    f(1.0)
    with minijax.debug_nans(True):
        f(1.0)
    with minijax.debug_infs(True):
        f(1.0)
    assert len(traces) == 1


def test_a_donated_argument_survives_while_results_are_checked():
    with minijax.debug_nans(True):
        x = jnp.arange(3.0)
        minijax.jit(lambda x: x + 1, donate_argnums=0)(x)
        assert not x.is_deleted()


def test_a_compiled_stage_raises_too():
    with minijax.debug_nans(True):
        compiled = minijax.jit(lambda x: x / x).lower(jnp.zeros(2)).compile()
        with pytest.raises(FloatingPointError, match="nan"):
            compiled(jnp.zeros(2))


REFUSED = [lambda f, x: f(x), lambda x: x + x, lambda lax, x: lax.cosh(x), lambda jax, x: jax.jit(lambda x: x)(x), lambda lax, x: lax.scan(lambda c, y: (c, y), 1.0, x),
           lambda jax: jax.grad(lambda y: y * y)(1.0), lambda jax, x: jax.pmap(lambda y: y * 2)(x), lambda x: x[0], lambda jnp: jnp.zeros(3)]  # fmt: skip
NOT_RUN = [
    lambda jax, f, x: jax.make_jaxpr(f)(x).jaxpr.eqns[0].primitive.name,
    lambda jax, f, x: jax.eval_shape(f, x).shape,
    lambda f, x: type(f.lower(x).compile()).__name__,
    lambda jax: jax.device_put(np.arange(3)).shape,
    lambda x: np.asarray(x).tolist(),
]


@pytest.mark.oracle
@pytest.mark.parametrize("call", REFUSED + NOT_RUN)
def test_no_execution_refuses_compiled_programs(call):
    def program(jax, jnp, lax):
        f, x = jax.jit(lambda x: jnp.sin(x) * 2), jnp.asarray(X)
        f(x)

        def run():
            with jax.no_execution(True):
                return given(call, dict(jax=jax, jnp=jnp, lax=lax, f=f, x=x))

        return run

    if call in REFUSED:
        same_refusal(program, phrases=["JAX tried to execute function jit(", "no_execution config option"])
    else:
        same(lambda jax, jnp, lax: program(jax, jnp, lax)())


@pytest.mark.oracle
def test_no_tracing_refuses_new_traces_and_runs_known_programs():
    def program(call):
        def made(jax, jnp, lax):
            x = jnp.asarray(X)
            known = jax.jit(lambda x: jnp.sin(x) * 2)
            known(x), lax.cosh(x)

            def run():
                with jax.no_tracing(True):
                    return given(call, dict(jax=jax, jnp=jnp, lax=lax, known=known, x=x))

            return run

        return made

    for call in (
        lambda known: known(np.arange(3.0)),
        lambda lax, x: lax.sinh(x),
        lambda jnp, x: jnp.cumsum(x),
        lambda known: known.lower(np.arange(3.0)),
    ):
        same_refusal(program(call), phrases=["re-tracing function", "'no_tracing' is set"])
    for call in (
        lambda known, x: known(x).shape,
        lambda lax, x: lax.cosh(x).shape,
        lambda jax, known, x: jax.eval_shape(known, x).shape,
    ):
        same(lambda jax, jnp, lax, call=call: program(call)(jax, jnp, lax)())


def _is_watched(run):
    """Whether a function of minijax.run.watching.watch is among those that `run` calls."""
    cells = [cell.cell_contents for cell in run.__closure__ or ()]
    return "watch" in run.__code__.co_filename or any(_is_watched(f) for f in cells if hasattr(f, "__code__"))


def test_modes_that_are_off_leave_the_launch_of_a_program_alone():
    x = jnp.arange(3.0)
    f = ours().jit(lambda x: lax.sin(x))
    f(x)
    with minijax.debug_nans(True):
        f(x)
    programs = f._engine.memory.programs
    by_mode = {key[0].debug_nans: _is_watched(programs.get(key)) for key in programs.names()}
    assert by_mode == {False: False, True: True}


@pytest.mark.parametrize(("argument", "phrase"), [(np.nan, "input"), (1.0, "literal")])
def test_errors_state_that_an_input_or_a_literal_holds_the_nan(argument, phrase):
    def call(jax, jnp):
        f = jax.jit((lambda x: x * 3.0) if phrase == "input" else lambda x: (jnp.nan, x + 2))

        def run():
            with jax.debug_nans(True):
                f(argument)

        return run

    same_refusal(call, phrases=["the de-optimized function did not", phrase])
