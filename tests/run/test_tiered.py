"""`minijax_tiered`: a program is compiled quickly, run at once, and replaced by the one that is compiled fully."""

import gc
import threading
import weakref

import numpy as np
import pytest
from processes import run_python, together

import minijax as jax
import minijax.numpy as jnp
from minijax.experimental import io_callback
from minijax.run.programs import compile, tiered
from minijax.sharding import Mesh, NamedSharding, PartitionSpec as P


def heavy(x):
    for i in range(20):
        x = jnp.tanh(x @ x.T / 4 + i)
    return x, x.sum()


X = np.linspace(0, 1, 64, dtype=np.float32).reshape(8, 8)


@pytest.fixture(autouse=True)
def tiers(monkeypatch):
    """The option is on; the flags of the tests, which ask for few optimizations, would turn it off."""
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    before = jax.config.minijax_tiered
    jax.config.update("minijax_tiered", True)
    yield
    finish()
    jax.config.update("minijax_tiered", before)


def finish():
    for thread in threading.enumerate():
        if thread.name.startswith("compiling jit_"):
            thread.join()


def account_of(name):
    return next((a for a in reversed(tiered.accounts) if a.name == name), None)


def named(name, fun=heavy):
    """A function of that name, whose program no other one shares."""

    def own(*args):
        return jax.tree.map(lambda x: x + len(name), fun(*args))

    own.__name__ = name
    return jax.jit(own)


def test_a_program_is_replaced_from_its_second_call_on():
    f = named("replaced")
    compiled = jax.jit(f).lower(X).compile()
    count = compile.compile_count()
    first = f(X)
    account = account_of("replaced")
    assert (account.calls, account.full, compile.compile_count()) == (1, None, count + 1)
    second = f(X)
    finish()
    assert account.calls == 2 and account.full > 0
    later = f(X)
    assert account.calls == 2
    for results in (first, second):
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), results, compiled(X))
    assert [np.asarray(x).tobytes() for x in later] == [np.asarray(x).tobytes() for x in compiled(X)]
    assert str(account).startswith("replaced: compiled quickly in ") and ", fully in " in str(account)


def test_a_program_called_once_is_not_compiled_again():
    f = named("once")
    f(X)
    count = compile.compile_count()
    finish()
    assert compile.compile_count() == count and account_of("once").full is None


def test_nothing_is_tiered_unless_it_is_asked_for():
    jax.config.update("minijax_tiered", False)
    f = named("unasked")
    f(X), f(X)
    assert account_of("unasked") is None


def with_callback(x):
    y, total = heavy(x)
    return y, io_callback(lambda x: x, jax.ShapeDtypeStruct((), jnp.float32), total)


MESH = Mesh(np.array(jax.devices()[:2]), ("x",))
BY_ROWS, EVERYWHERE = NamedSharding(MESH, P("x")), NamedSharding(MESH, P())
NOT_TIERED = {
    "small": lambda f: f(X, small=True),
    "ahead": lambda f: jax.jit(f).lower(X).compile()(X),
    "options": lambda f: jax.jit(f, compiler_options={"xla_cpu_enable_fast_math": False})(X),
    "callback": lambda f: jax.jit(lambda x: with_callback(f(x)[0]))(X),
    "sharded": lambda f: jax.jit(f)(jax.device_put(X, BY_ROWS)),
    "shardings": lambda f: jax.jit(f, in_shardings=BY_ROWS, out_shardings=(BY_ROWS, EVERYWHERE))(X),
}


@pytest.mark.parametrize("kind", NOT_TIERED)
def test_what_is_not_tiered(kind):
    before = len(tiered.accounts)

    def f(x, small=False):
        return (x * x + x, x) if small else heavy(x * len(kind))

    for _ in range(2):
        NOT_TIERED[kind](jax.jit(f, static_argnames="small"))
    assert [a.name for a in list(tiered.accounts)[before:]] == []


def test_donated_arguments_and_derivatives():
    step = jax.jit(lambda x: x - 0.1 * jax.grad(lambda x: heavy(x)[1])(x), donate_argnums=0)
    x, y = jnp.asarray(X), jnp.asarray(X)
    for _ in range(3):
        before, x = x, step(x)
        assert before.is_deleted()
    finish()
    for _ in range(3):
        before, x = x, step(x)
        assert before.is_deleted()
    jax.config.update("minijax_tiered", False)
    plain = jax.jit(lambda x: x - 0.1 * jax.grad(lambda x: heavy(x)[1])(x) * 1)
    for _ in range(6):
        y = plain(y)
    np.testing.assert_allclose(x, y, rtol=1e-3)


def test_threads_that_call_at_once_compile_once():
    f = named("threads")
    f(X)
    count = compile.compile_count()
    together(lambda i: f(X), 4)
    finish()
    assert compile.compile_count() == count + 1


def test_a_program_goes_on_if_it_cannot_be_compiled_fully(monkeypatch):
    f = named("failing")
    first = f(X)

    def fail(*args):
        raise RuntimeError("no memory")

    monkeypatch.setattr(compile, "load_or_build", fail)
    with pytest.warns(UserWarning, match="minijax_tiered: jit_failing goes on as it was compiled first. no memory"):
        f(X)
        finish()
    assert [np.asarray(x).tobytes() for x in f(X)] == [np.asarray(x).tobytes() for x in first]
    assert account_of("failing").full is None


@pytest.mark.parametrize("calls", [1, 3])
def test_a_captured_array_can_die(calls):
    x = jnp.asarray(X)
    f = named(f"dying{calls}", lambda y, x=x: heavy(x * y))
    for _ in range(calls):
        f(X)
    finish()
    captured = weakref.ref(x)
    del x, f
    gc.collect()
    assert captured() is None


PROCESS = """
import sys
import minijax as jax, minijax.numpy as jnp
from minijax.run.programs import tiered
jax.config.update("minijax_tiered", True)
@jax.jit
def f(x):
    for i in range(40):
        x = jnp.tanh(x @ x.T / 4 + i)
    return x
for _ in range(int(sys.argv[1])):
    f(jnp.ones((8, 8)))
print(len(tiered.accounts))
"""


def test_a_process_ends_while_a_program_is_compiled(tmp_path, monkeypatch):
    """It waits for the compilation, and stores the program; the next one loads it."""
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("JAX_ENABLE_COMPILATION_CACHE", "1")
    monkeypatch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    assert run_python(PROCESS, 2).split() == ["1"]
    assert run_python(PROCESS, 2).split() == ["0"]
