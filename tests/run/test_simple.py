"""Simple programs are compiled with few optimizations, and compute the same bits."""

import pytest
from processes import run_python

import minijax as jax
import minijax.numpy as jnp
from minijax.run.clients import jaxlib_versions
from minijax.run.programs.compile import default_options

X = jnp.arange(12.0).reshape(3, 4)
SIMPLE = {
    "one sum": lambda: jax.jit(lambda x: x + 1).lower(X),
    "one quotient": lambda: jax.jit(lambda x: x / 3).lower(X),
    "moved": lambda: jax.jit(lambda x: jnp.concatenate([x.T.ravel(), x[0]])[::-1]).lower(X),
    "compared": lambda: jax.jit(lambda x: (x > 1) | (x < 0)).lower(X),
    "chosen": lambda: jax.jit(lambda b, x: jnp.where(b, -x, abs(x))).lower(X > 1, X),
    "integers": lambda: jax.jit(lambda n: (n * 3 + 1) // 2 % 5 << 1).lower(jnp.arange(5)),
    "keys": lambda: jax.jit(jax.random.split).lower(jax.random.key(0)),
    "indices": lambda: jax.jit(lambda x, i: x[i]).lower(jnp.ones((50, 64)), jnp.arange(20)),
    "updates": lambda: jax.jit(lambda x, i: x.at[i].set(0)).lower(X, jnp.arange(2)),
    "updates that add": lambda: jax.jit(lambda x, i: x.at[i].add(1)).lower(X, jnp.arange(2)),
    "sorted integers": lambda: jax.jit(lambda n: n.argsort()).lower(jnp.arange(5)),
    "sum of integers": lambda: jax.jit(lambda n: n.sum()).lower(jnp.arange(5)),
    "largest integer": lambda: jax.jit(lambda n: n.argmax()).lower(jnp.arange(5)),
    "any": lambda: jax.jit(lambda x: (x > 0).any()).lower(X),
    "no array": lambda: jax.jit(lambda: jnp.zeros(3)).lower(),
}
OTHERS = {
    "two roundings": lambda: jax.jit(lambda x: x * x + x).lower(X),
    "chosen by size": lambda: jax.jit(lambda x, y: jnp.where(x > y, x, y)).lower(X, X),
    "compared in bfloat16": lambda: jax.jit(lambda x: x != 0).lower(X.astype(jnp.bfloat16)),
    "sine": lambda: jax.jit(jnp.sin).lower(X),
    "product": lambda: jax.jit(lambda x: x @ x.T).lower(X),
    "sum of all": lambda: jax.jit(jnp.sum).lower(X),
    "largest": lambda: jax.jit(lambda x: (x.max(), x.argmax())).lower(X),
    "sorted": lambda: jax.jit(lambda x: jnp.sort(x)).lower(X),
    "sum that moves": lambda: jax.jit(lambda x, i: x.at[i].add(x[i] * 3)).lower(X, jnp.arange(2)),
    "rows of sums": lambda: jax.jit(lambda x, i: x.sum(0)[i]).lower(X, jnp.arange(2)),
    "loop": lambda: jax.jit(lambda n: jax.lax.fori_loop(0, n, lambda i, x: x + i, 0)).lower(3),
    "branches": lambda: jax.jit(lambda n: jax.lax.cond(n > 0, lambda: 1, lambda: 2)).lower(3),
    "complex product": lambda: jax.jit(lambda x: x * x).lower(X + 1j),
    "complex quotient": lambda: jax.jit(lambda x: x / x).lower(X + 1j),
    "complex magnitude": lambda: jax.jit(abs).lower(X + 1j),
    "large": lambda: jax.jit(lambda x: x + 1).lower(jnp.ones(5000)),
    "callback": lambda: jax.jit(lambda x: jax.pure_callback(lambda x: x, x, x)).lower(X),
}


@pytest.fixture(autouse=True)
def no_flags(monkeypatch):
    """As users run: the tests compile everything with few optimizations."""
    monkeypatch.delenv("XLA_FLAGS", raising=False)


@pytest.mark.parametrize("name", SIMPLE)
def test_what_is_simple(name):
    text = SIMPLE[name]().as_text()
    assert default_options(text, "cpu") == dict(jaxlib_versions.QUICK_TO_COMPILE)
    assert default_options(text, "gpu") == {}


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_not(name):
    assert default_options(OTHERS[name]().as_text(), "cpu") == {}


def test_flags_of_users_count(monkeypatch):
    text = SIMPLE["one sum"]().as_text()
    monkeypatch.setenv("XLA_FLAGS", "--xla_force_host_platform_device_count=2")
    assert default_options(text, "cpu")
    monkeypatch.setenv("XLA_FLAGS", "--xla_backend_optimization_level=3")
    assert default_options(text, "cpu") == {}


BITS = """
import os
os.environ.pop("XLA_FLAGS", None)
import numpy as np
import minijax as jax, minijax.numpy as jnp
from minijax.run.programs import compile

given = []
options_of = compile.default_options
compile.default_options = lambda text, platform: given.append(options_of(text, platform)) or given[-1]
x = jnp.asarray(np.random.default_rng(0).uniform(-9, 9, (5, 13)).astype(np.float32))
n = jnp.arange(-9, 9)
key = jax.random.key(5)
edges = jnp.asarray(np.array([np.inf, -np.inf, 0, -0.0, 1e-40, -1e-40, 3e38, 1], np.float32))
programs = [
    (lambda x: x + 0.3, x), (lambda x: x - 1e-7, x), (lambda x: x * 0.1, x), (lambda x: x / 3.0, x), (lambda x: 1 / x, x),
    (lambda x: jnp.sqrt(x), x), (lambda x: x % 0.7, x), (lambda x: jnp.floor(x), x), (lambda x: x.astype(jnp.bfloat16), x),
    (lambda x: x.astype(int), x), (lambda x: jnp.round(x), x), (lambda x: jnp.clip(x, -1, 1), x), (lambda x: x[1:, ::2].T, x),
    (lambda n: n // 4 * 7 % 3, n), (lambda n: n << 2 | n >> 1, n), (lambda n: n / 7, n), (lambda n: n.astype(jnp.float16), n),
    (lambda k: jax.random.key_data(jax.random.split(k, 3)), key), (lambda k: jax.random.bits(k, (7,)), key),
    (lambda k: jax.random.key_data(jax.random.fold_in(k, 3)), key),
    (lambda x: jnp.where(x[:, None] > x, x[:, None], x), edges), (lambda x: jnp.maximum(x[:, None], x), edges),
    (lambda x: x[jnp.array([3, -1, 3, 0])], x), (lambda x: x[jnp.array([3, 9, -9]), jnp.array([3])], x),
    (lambda x: x.at[jnp.array([3, 1, 3])].set(x[:3] ), x), (lambda x: x.at[jnp.array([3, 1, 3, 3])].add(x[:4]), x),
    (lambda x: x.at[jnp.array([1, 1, 3])].mul(x[2:]), x), (lambda x: x.at[jnp.array([1, 1, 3])].min(x[2:]), x),
    (lambda n: (n.sum(), n.prod(), n.max(), jnp.bitwise_xor.reduce(n)), n), (lambda n: jnp.sort(n % 5), n),
    (lambda n: jnp.argsort(n % 5), n), (lambda n: (n % 5).argmax(), n), (lambda x: ((x > 8.8).any(1), (x < 8).all(0)), x),
    (lambda n: n.cumsum(), n), (lambda n: jax.ops.segment_sum(n, n % 5, 5), n), (lambda n: n[n % 5], n),
    (lambda x: x[jnp.array([0, 4, 4])] + 1, edges), (lambda x: x.at[jnp.array([4, 4])].add(1e-40), edges),
    (lambda x: x[:, None] >= x, edges), (lambda x: x.astype(jnp.bfloat16).astype(bool), edges), (lambda x: jnp.sign(x), edges),
]
for i, (f, v) in enumerate(programs):
    lowered = jax.jit(f).lower(v)
    usual = lowered.compile({"xla_backend_optimization_level": 3})
    given.clear()
    got = jax.jit(lambda v: f(v))(v)
    pairs = zip(jax.tree.leaves(usual(v)), jax.tree.leaves(got), strict=True)
    print(i, bool(given and given[-1]), all(np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in pairs))
"""


def test_simple_programs_have_the_same_bits():
    lines = [line.split() for line in run_python(BITS).strip().split("\n")]
    assert len(lines) == 41 and all(same == "True" for _, _, same in lines)
    assert sum(quick == "True" for _, quick, _ in lines) >= 28
