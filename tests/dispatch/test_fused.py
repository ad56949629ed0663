"""Eager calls: how many programs a repeated one runs, and that it gives what the function itself gives."""

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax.base import cache
from minijax.run.programs.compile import compile_count
from minijax.run.programs.launch import launching

X, M, INTS = np.arange(4, dtype=np.float32) + 1, np.ones((1, 8), np.float32), np.arange(3)

MOVES = {
    "zeros": lambda x, m, i: jnp.zeros((3, 3)),
    "zeros of ints": lambda x, m, i: jnp.zeros(3, jnp.int32),
    "ones": lambda x, m, i: jnp.ones((2,), dtype="int8"),
    "arange": lambda x, m, i: jnp.arange(2, 11, 3),
    "eye": lambda x, m, i: jnp.eye(3),
    "zeros_like": lambda x, m, i: jnp.zeros_like(x),
    "ones_like": lambda x, m, i: jnp.ones_like(i, dtype=bool),
    "reshape": lambda x, m, i: x.reshape(2, -1),
    "reshape in Fortran's order": lambda x, m, i: jnp.reshape(x, (2, 2), order="F"),
    "transpose": lambda x, m, i: m.T,
    "moveaxis": lambda x, m, i: jnp.moveaxis(m, 0, 1),
    "squeeze": lambda x, m, i: jnp.squeeze(m),
    "expand_dims": lambda x, m, i: jnp.expand_dims(x, (0, 2)),
    "broadcast_to": lambda x, m, i: jnp.broadcast_to(x, (2, 4)),
    "concatenate": lambda x, m, i: jnp.concatenate([x, x, x]),
    "concatenate along an axis": lambda x, m, i: jnp.concatenate((m, m), axis=0),
    "stack": lambda x, m, i: jnp.stack([x, x], axis=1),
    "astype": lambda x, m, i: x.astype(jnp.int32),
    "astype from int": lambda x, m, i: i.astype("float32"),
}
OPERATIONS = {
    "operator": lambda x, m, i: x + x,
    "operator with a scalar": lambda x, m, i: x * 2.5,
    "power": lambda x, m, i: x**2,
    "comparison": lambda x, m, i: x > x,
    "unary": lambda x, m, i: -x,
    "function": lambda x, m, i: jnp.sin(x),
    "where": lambda x, m, i: jnp.where(x > 0, x, x),
    "sum": lambda x, m, i: jnp.sum(m),
    "method with an axis": lambda x, m, i: m.sum(0),
    "keyword": lambda x, m, i: jnp.max(m, axis=1),
    "var": lambda x, m, i: jnp.var(x),
    "matmul": lambda x, m, i: m @ m.T,
    "clip": lambda x, m, i: jnp.clip(x, 0.0, 1.0),
    "linspace": lambda x, m, i: jnp.linspace(0.0, 1.0, 10),
    "one_hot": lambda x, m, i: minijax.nn.one_hot(i, 4),
    "lax": lambda x, m, i: minijax.lax.add(x, x),
}
TWO = {"where": 2, "matmul": 2}  # these compute an operand, or transpose it, by themselves


@pytest.fixture
def runs(monkeypatch):
    """A list that grows by an element with each program that is run."""
    seen = []

    send = launching.send
    monkeypatch.setattr(launching, "send", lambda request: seen.append(1) or send(request))
    cache.clear_caches()
    yield seen
    cache.clear_caches()


def test_a_repeated_eager_call_compiles_nothing_and_runs_one_program(runs):
    operands = [jnp.asarray(v) for v in (X, M, INTS)]
    for name, call in {**MOVES, **OPERATIONS}.items():
        call(*operands)
        before = compile_count()
        del runs[:]
        call(*operands)
        assert (compile_count() - before, len(runs)) == (0, TWO.get(name, 1)), name


@pytest.mark.parametrize("name", MOVES)
def test_a_call_equals_its_operations_one_by_one(name):
    operands = [jnp.asarray(v) for v in (X, M, INTS)]
    with minijax.disable_jit():
        wanted = MOVES[name](*operands)
    for _ in range(2):
        found = MOVES[name](*operands)
        assert (found.aval, found.committed) == (wanted.aval, wanted.committed)
        assert np.asarray(found).tobytes() == np.asarray(wanted).tobytes()


def test_a_call_that_changes_nothing_gives_its_argument():
    x = jnp.asarray(X)
    for call in (lambda: x.reshape(4), lambda: jnp.squeeze(x), lambda: x.astype(x.dtype)):
        assert call() is x and call() is x


def test_a_call_that_warns_or_raises_does_so_each_time():
    z = jnp.asarray([1 + 2j, 3j])
    for _ in range(3):
        with pytest.warns(DeprecationWarning, match="imaginary"):
            assert z.astype(jnp.float32).tolist() == [1, 0]
        with pytest.raises(TypeError, match="reshape"):
            z.reshape(3)


def test_values_that_are_equal_and_not_the_same_are_kept_apart():
    x = jnp.asarray(X)
    for _ in range(2):
        assert x.astype(bool).dtype == bool and x.astype(int).dtype == np.int32
        assert jnp.zeros((1, 2)).shape == (1, 2)
        with pytest.raises(TypeError):
            jnp.zeros((1.0, 2.0))
        assert jnp.stack([x, x]).shape == (2, 4) and jnp.stack([x]).shape == (1, 4)
        assert jnp.concatenate([x, jnp.asarray(INTS)]).dtype == np.float32


def test_data_that_are_not_arrays_are_not_part_of_a_program():
    x = jnp.asarray(X[:1])
    jnp.concatenate([x, X[:1]])
    before = compile_count()
    assert [jnp.concatenate([x, X[k : k + 1]]).tolist() for k in range(3)] == [[1, 1], [1, 2], [1, 3]]
    assert compile_count() == before


def test_deleted_arrays_are_refused_by_remembered_calls():
    x, y = jnp.asarray(X), jnp.asarray(X)
    for call in (lambda v: v.reshape(2, 2), lambda v: v + v, minijax.jit(lambda v: v * 3)):
        call(x)
    y.delete()
    for call in (lambda v: v.reshape(2, 2), lambda v: v + v, minijax.jit(lambda v: v * 3)):
        with pytest.raises(RuntimeError, match="deleted"):
            call(y)


def test_moves_follow_the_default_device():
    if len(minijax.devices()) < 2:
        pytest.skip("needs two devices")
    x = jnp.asarray(X)
    for device in minijax.devices()[:2] * 2:
        with minijax.default_device(device):
            assert jnp.zeros((3,)).devices() == {device}
            assert jnp.sin(2.0).devices() == {device}
        assert x.reshape(2, 2).devices() == x.devices()


def test_reductions_are_distinguished_by_their_options():
    x = np.arange(12, dtype=np.float32).reshape(3, 4) - 5
    a = jnp.asarray(x)
    how = [
        {},
        {"axis": 0},
        {"axis": 1},
        {"axis": -1},
        {"axis": (0, 1)},
        {"axis": 0, "keepdims": True},
        {"keepdims": True},
    ]
    for _ in range(2):
        for name in ("sum", "prod", "max", "min", "mean", "any", "all"):
            for options in how:
                np.testing.assert_array_equal(
                    getattr(jnp, name)(a, **options), getattr(np, name)(x, **options), err_msg=f"{name} {options}"
                )
            for axis in (0, 1, -1, 0):
                np.testing.assert_array_equal(getattr(jnp, name)(a, axis), getattr(np, name)(x, axis), err_msg=name)
        for bound in (-np.inf, np.inf, 3.0, 4.0):
            assert jnp.max(a, initial=bound) == max(6, bound) and jnp.min(a, initial=bound) == min(-5, bound)
        assert jnp.sum(a, dtype=bool).dtype == bool and jnp.sum(a, dtype="int8").dtype == np.int8
        with pytest.raises(ValueError, match="axis 2"):
            jnp.sum(a, 2)


def test_reductions_run_operation_by_operation_without_jit(runs):
    a = jnp.arange(3.0)
    jnp.mean(a)
    with minijax.disable_jit():
        runs.clear()
        found = jnp.mean(a)
        assert len(runs) > 1
    assert found == 1


def test_stop_gradient_of_an_array_is_that_array():
    a = jnp.arange(3.0)
    assert minijax.lax.stop_gradient(a) is a
