"""Repeated traced calls of library functions copy recorded equations only where these would be recorded again."""

import warnings

import numpy as np
import pytest
from compare import same_jaxpr, same_text

import minijax as jax
import minijax.numpy as jnp
from minijax.dispatch import replay

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def traced(function, *args):
    return str(jax.make_jaxpr(function)(*args))


def times(program, *args, n=4):
    """The jaxprs of a program that is traced again and again: the second call is recorded, and later ones copy it."""
    return {traced(program, *args) for _ in range(n)}


@pytest.mark.parametrize(
    "one, other",
    [
        (lambda x: x[1], lambda x: x[True]),
        (lambda x: x[0, 1], lambda x: x[(0, 1),]),
        (lambda x: x[None], lambda x: x[:, None]),
        (lambda x: x[0:1], lambda x: x[0:1, 0:1]),
        (lambda x: x.at[jnp.array([5])].get(mode="fill", fill_value=0.0),
         lambda x: x.at[jnp.array([5])].get(mode="fill", fill_value=-0.0)),
        (lambda x: x.at[0].set(0.0), lambda x: x.at[0].set(-0.0)),
        (lambda x: x.at[0].add(1.0), lambda x: x.at[0].multiply(1.0)),
        (lambda x: jnp.sum(x, axis=1), lambda x: jnp.sum(x, axis=1, keepdims=True)),
        (lambda x: jnp.var(x, ddof=1), lambda x: jnp.var(x, ddof=0)),
        (lambda x: jnp.clip(x, 0.0, 1.0), lambda x: jnp.clip(x, -0.0, 1.0)),
        (lambda x: jnp.power(x, 2), lambda x: jnp.power(x, 2.0)),
    ],
)  # fmt: skip
def test_calls_that_differ_are_kept_apart(one, other):
    for _ in range(4):
        traced(one, X), traced(other, X)
    assert times(one, X) != times(other, X)
    assert len(times(one, X)) == len(times(other, X)) == 1


@pytest.mark.parametrize("call", range(4))
def test_each_repeated_call_has_jax_s_jaxpr(call):
    same_jaxpr(lambda jnp: lambda x: (x[0], x[:, 1:], x @ x.T, jnp.var(x, axis=0), x.at[0].set(2.0)), X)


def test_weak_types_and_widths_are_kept_apart():
    weak, strong = (times(lambda x: jnp.mean(jnp.stack([x, x])), x) for x in (1.0, np.float32(1)))
    assert len(weak) == len(strong) == 1
    for _ in range(4):
        for x in (X, X.astype(np.float16)):
            (result,) = jax.make_jaxpr(lambda x: jnp.matmul(x.T, x)[:, 1:])(x).out_avals
            assert result.dtype == x.dtype
    with jax.enable_x64(True):
        wide = times(lambda x: jnp.mean(jnp.stack([x, x])), 1.0)
    assert wide != weak


def test_options_are_part_of_the_key():
    program = lambda x: x @ x.T  # noqa: E731
    before = times(program, X)
    with jax.default_matmul_precision("highest"):
        assert "HIGHEST" in times(program, X).pop()
    assert times(program, X) == before


def test_a_warning_is_given_by_each_call():
    with jax.numpy_rank_promotion("warn"):
        for _ in range(4):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                traced(lambda x: jnp.logaddexp(x, x[0]), X)
            assert caught


def test_an_error_is_raised_by_each_call():
    for _ in range(4):
        with pytest.raises(TypeError):
            traced(lambda x: jnp.matmul(x, x), X)


def test_users_functions_are_called_each_time():
    calls = []
    inner = jax.jit(lambda x: calls.append(1) or x + 1, inline=True)
    for _ in range(4):
        jax.make_jaxpr(lambda x: inner(x) * 2)(X)
    assert traced(lambda x: inner(x) * 2, X).count("mul") == 1
    recorded = [name[1] for name in list(replay.recordings._items) if isinstance(name, tuple)]
    assert inner not in recorded


ARITHMETIC = [
    lambda jnp: lambda x, y: (x + y, y + x, x + x, x * y, x / y, jnp.sin(x), jnp.sqrt(x * y), x == y, x < 1),
    lambda jnp: lambda x, y: (x * 2, x * 2.0, 2 * x, 2.5 - x, x * -0.0, x * 0.0, x + 0, x + True, x + 200, x / 3),
    lambda jnp: lambda x, y: (x * float("nan"), x + 1e30, jnp.maximum(x, 0), jnp.minimum(0.5, y), jnp.arctan2(x, 1)),
    lambda jnp: (
        lambda x, y: (x + y[0], x[0] + y, x + y[0, 0], jnp.add(x[0, 0], 1), jnp.positive(x), x + X, x + X[0, 0])
    ),
]
BITS = lambda jnp: lambda x, y: (x & y, x | 1, y ^ x, jnp.logical_not(x), x + 300, x + -1, x * 255, -y)  # noqa: E731


@pytest.mark.parametrize("call", range(3))
@pytest.mark.parametrize("program", range(4))
@pytest.mark.parametrize(
    "dtypes", [("float32", "float32"), ("float32", "bfloat16"), ("int32", "uint8"), ("bool", "int8")]
)
def test_each_repeated_operation_has_jax_s_jaxpr(dtypes, program, call):
    x, y = (X.astype(jnp.dtype(dtype)) for dtype in dtypes)
    same_jaxpr(ARITHMETIC[program], x, y)


@pytest.mark.parametrize("call", range(3))
@pytest.mark.parametrize("dtypes", [("int32", "uint8"), ("uint8", "int8"), ("int8", "int8")])
def test_each_repeated_operation_on_integers_has_jax_s_jaxpr(dtypes, call):
    same_jaxpr(BITS, *(X.astype(dtype) for dtype in dtypes))


@pytest.mark.parametrize(
    "program",
    [
        lambda jax: jax.grad(lambda x, y: (x * y + x * 2.0).sum()),
        lambda jax: jax.vmap(lambda x, y: x * y + 1, in_axes=(0, None)),
        lambda jax: lambda x, y: jax.lax.scan(lambda c, a: (c + a * 2, c * x[0] + y), x[0], x),
        lambda jax: lambda x, y: jax.jit(lambda z: z * x + y)(x * y),
        lambda jax: lambda x, y: jax.lax.cond(y[0] > 0, lambda z: z * x[0], lambda z: z + y, y),
        lambda jax: jax.jvp(lambda x: x * x, (X,), (X,)) and (lambda x, y: jax.jvp(lambda x: x * y, (x,), (x * 2,))),
    ],
)
def test_repeated_operations_under_transformations(program):
    for _ in range(3):
        same_jaxpr(program, X, X[0])


def test_numbers_beside_weak_types_stay_weak():
    for _ in range(3):
        jaxpr = jax.make_jaxpr(lambda x, y: (x * 2.5, y * 2.5))(1.0, np.float32(1))
        assert [eqn.invars[1].aval.weak_type for eqn in jaxpr.eqns] == [True, False]
        assert [aval.weak_type for aval in jaxpr.out_avals] == [True, False]


def test_an_operation_that_promotes_ranks_warns_each_time():
    for _ in range(3):
        traced(lambda x: x + x[0], X)
    with jax.numpy_rank_promotion("warn"):
        for _ in range(3):
            with pytest.warns(UserWarning, match="rank promotion"):
                traced(lambda x: x + x[0], X)
    with jax.numpy_dtype_promotion("strict"), pytest.raises(ValueError, match="promotion"):
        traced(lambda x: x + x.astype("int32"), X)


CUSTOM = [
    lambda jax: lambda x: jax.nn.relu(jax.nn.relu(jax.nn.relu(x)) + x[0]),
    lambda jax: jax.grad(lambda x: jax.nn.relu6(jax.nn.relu(x) * jax.nn.relu(x)).sum()),
    lambda jax: jax.vmap(lambda x: jax.nn.relu(jax.nn.relu(x))),
    lambda jax: jax.jit(lambda x: jax.lax.scan(lambda c, a: (jax.nn.relu(c), jax.nn.relu(c) * a), x[0], x)),
    lambda jax: lambda x: jax.checkpoint(lambda x: jax.nn.relu(jax.nn.relu(x)))(x),
    lambda jax: lambda x: (jax.nn.relu(jax.numpy.sum(x)), jax.nn.relu(1.0), jax.nn.relu(x=x)),
]


@pytest.mark.parametrize("program", range(len(CUSTOM)))
def test_repeated_calls_of_functions_with_rules(program):
    for _ in range(3):
        same_jaxpr(CUSTOM[program], X)
        same_text(CUSTOM[program], X)


def test_each_call_of_a_function_with_rules_has_lines_of_its_own():
    def program(x):
        for _ in range(3):
            x = jax.nn.relu(x)
        return (
            jax.nn.relu(x)
        )  # fmt: skip

    eqns = jax.make_jaxpr(program)(X).eqns
    bodies = [eqn.params["call_jaxpr"].eqns[0] for eqn in eqns]
    lines = [next(f.line_num for f in e.source_info.traceback.frames if f.file_name == __file__) for e in bodies]
    assert len({id(e.params["call_jaxpr"].jaxpr) for e in eqns}) == 4
    assert lines[0] == lines[1] == lines[2] < lines[3]


def test_a_new_rule_replaces_that_of_earlier_calls():
    square = jax.custom_jvp(jnp.square)
    for factor in (1.0, 5.0):
        square.defjvps(lambda t, out, x, factor=factor: factor * t)
        for _ in range(3):
            gradient = jax.jit(lambda x: jax.grad(jax.jit(lambda x: square(square(x))))(x))(3.0)
        assert gradient == factor**2


def test_users_functions_with_rules_are_called_each_time():
    calls = []
    square = jax.custom_jvp(lambda x: calls.append(1) or x * x)
    square.defjvps(lambda t, out, x: 2 * x * t)
    for n in range(1, 4):
        traced(lambda x: square(x), X)
        assert len(calls) == n


def test_lines_of_repeated_operations_are_their_own():
    def program(x):
        x = x + x
        x = x + x
        x = x + x
        return x + x

    lines = [eqn.source_info.traceback.frames for eqn in jax.make_jaxpr(program)(X).eqns]
    assert len({next(f.line_num for f in frames if f.file_name == __file__) for frames in lines}) == 4


def test_repeated_operations_have_their_own_scopes():
    def program(x):
        for name in "ab":
            with jax.named_scope(name):
                x = x + x
        return x + x

    stacks = [str(eqn.source_info.name_stack) for eqn in jax.make_jaxpr(program)(X).eqns]
    assert stacks == ["a", "b", ""]


def test_clear_caches_forgets_recordings():
    times(lambda x: x[0] + x[1], X)
    assert len(replay.recordings) and len(replay.lone)
    jax.clear_caches()
    assert not len(replay.recordings) and not len(replay.lone)
