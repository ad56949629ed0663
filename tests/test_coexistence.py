"""jax and minijax in one process: neither disturbs the other, each takes the other's arrays."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp

ROOT = Path(__file__).resolve().parents[1]


def python(code):
    """Runs a program in a fresh process, warnings as errors, and returns what it prints."""
    environment = dict(os.environ, PYTHONPATH=str(ROOT), JAX_PLATFORMS="cpu")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=120, env=environment
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# One process

BOTH = """
import numpy as np
IMPORTS
def work(jax, jnp):
    f = jax.jit(lambda x: jax.lax.scan(lambda c, y: (c * y, c), x, jnp.arange(3.0))[0])
    key = jax.random.key(0)
    return [float(f(2.0)), float(jax.grad(lambda x: jnp.sin(x) ** 2)(1.0)), jnp.eye(2).tolist(),
            jax.random.normal(key, (3,)).tolist(), str(jax.make_jaxpr(jax.vmap(jnp.tanh))(np.ones(3))),
            jax.device_put(np.arange(3)).tolist(), jax.tree.leaves({"a": 1, "b": (2, None)})]
assert work(minijax, minijax.numpy) == work(jax, jax.numpy)
for first, second in ((minijax, jax), (jax, minijax)):
    first.config.update("jax_enable_x64", True)
    assert first.numpy.arange(3.0).dtype == "float64" and second.numpy.arange(3.0).dtype == "float32"
    assert first.config.jax_enable_x64 and not second.config.jax_enable_x64
    first.config.update("jax_enable_x64", False)
    with first.disable_jit(), first.default_matmul_precision("float32"):
        assert not second.config.jax_disable_jit and second.config.jax_default_matmul_precision is None
class Node:
    def __init__(self, x): self.x = x
for first, second in ((minijax, jax), (jax, minijax)):
    kind = type("Kind", (Node,), {})
    first.tree_util.register_pytree_node(kind, lambda n: ((n.x,), None), lambda _, xs: kind(*xs))
    node = kind(1)
    assert first.tree.leaves(node) == [1] and second.tree.leaves(node) == [node]
    second.tree_util.register_pytree_node(kind, lambda n: ((n.x, n.x), None), lambda _, xs: kind(xs[0]))
    assert first.tree.leaves(node) == [1] and second.tree.leaves(node) == [1, 1]
assert work(minijax, minijax.numpy) == work(jax, jax.numpy)
assert isinstance(jax.numpy.ones(1), jax.Array) and not isinstance(jax.numpy.ones(1), minijax.Array)
assert isinstance(minijax.numpy.ones(1), minijax.Array) and not isinstance(minijax.numpy.ones(1), jax.Array)
counts = len(minijax.live_arrays()), len(jax.live_arrays())
mine, theirs = minijax.numpy.ones(3), jax.numpy.ones(3)
assert (len(minijax.live_arrays()), len(jax.live_arrays())) == (counts[0] + 1, counts[1] + 1)
minijax.clear_caches(); jax.clear_caches()
assert work(jax, jax.numpy) == work(minijax, minijax.numpy)
print("both work")
"""


@pytest.mark.oracle
@pytest.mark.parametrize("order", [("jax", "minijax"), ("minijax", "jax")], ids="-".join)
def test_both_work_in_one_process_in_either_order(order):
    imports = "\n".join(f"import {name}, {name}.numpy, {name}.tree_util" for name in order)
    assert python(BOTH.replace("IMPORTS", imports)) == "both work\n"


@pytest.mark.oracle
def test_jax_may_be_imported_after_minijax_has_run():
    work = "assert float(M.jit(M.grad(lambda x: M.numpy.sin(x) * x))(1.0)) > 1"
    apart = "assert 'jax' not in sys.modules"
    code = f"import sys, minijax as M\n{work}\n{apart}\nimport jax\n{work}\nprint(jax.jit(lambda x: x + 1)(1))"
    assert python(code) == "2\n"


# Without jax

ALONE = """
import sys, importlib.abc
class Refuse(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == "jax" or name.startswith("jax."):
            raise AssertionError("looked for " + name)
sys.meta_path.insert(0, Refuse())
import copy, pickle
import numpy as np
import minijax as jax, minijax.numpy as jnp
from minijax import lax
x = jnp.arange(12.0).reshape(3, 4)
def loss(w, x):
    h, _ = lax.scan(lambda c, row: (jnp.tanh(c @ w + row), c), jnp.zeros(4), x)
    h = lax.cond(h.sum() > 0, lambda v: v, lambda v: -v, h)
    h = lax.fori_loop(0, 2, lambda i, v: v * 0.5, h)
    return jnp.where(h > 0, h, jnp.exp(h)).sum()
w = jax.random.normal(jax.random.key(1), (4, 4))
jax.value_and_grad(jax.jit(loss))(w, x)
jax.jit(jax.vmap(jax.grad(jax.checkpoint(loss)), (None, 0)))(w, x[None])
jax.hessian(lambda v: (v ** 3).sum())(x[0]), jax.jvp(jnp.sin, (x,), (x,)), jax.linearize(jnp.sin, x)[1](x)
f = jax.custom_vjp(lambda v: v); f.defvjp(lambda v: (v, None), lambda _, ct: (ct,)); jax.grad(f)(1.0)
jnp.linalg.norm(x), jnp.linalg.inv(w @ w.T + jnp.eye(4)), jnp.linalg.cholesky(jnp.eye(3))
jnp.einsum("ij,kj->ik", x, x)
x[0], x[:, 1:], x[jnp.array([0, 2])], x.at[0].set(1), x[x > 3], jnp.sort(x), jnp.argmax(x), jnp.cumsum(x)
jax.random.split(jax.random.PRNGKey(0)), jax.random.permutation(jax.random.key(0), 5), jax.nn.softmax(x)
for dtype in ("float32", "bfloat16", "int8", "bool", "complex64", "float8_e4m3fn", "int4"):
    y = jax.device_put(np.ones((2, 2))).astype(dtype)
    repr(y), str(y), f"{y}", np.asarray(y), jax.device_get(y), y.tolist()
    copy.deepcopy(y), pickle.loads(pickle.dumps(y)), y == y
np.from_dlpack(x), jnp.from_dlpack(x), jnp.from_dlpack(np.ones(3)), np.sin(x), x + np.ones(4)
assert not hasattr(x, "__jax_array__")
jax.devices()[0], x.sharding, x.devices(), x.addressable_shards, jax.live_arrays()
lowered = jax.jit(loss).lower(w, x)
print(jax.make_jaxpr(loss)(w, x)), lowered.as_text(), lowered.compile().cost_analysis()
for wrong in (lambda v: x[0] + jnp.ones(7), jax.jit(lambda v: 1 if v > 0 else 2), lambda v: jnp.sin("a")):
    try: wrong(1.0)
    except TypeError as e: str(e)
x.delete()
try: x + 1
except RuntimeError: pass
jax.clear_caches()
assert not any(name == "jax" or name.startswith("jax.") for name in sys.modules)
print("alone")
"""


HOST_CALLS = """
import numpy as np
IMPORTS
def calls(module):
    f = module.jit(lambda x: x + 1)
    return lambda: [(str(y.dtype), y.tolist()) for x in ARRAYS for y in [f(x), f(x), f(x)]]
ARRAYS = [np.arange(3, dtype=np.float32), np.arange(3.0), np.arange(3, dtype=np.int8), np.ones((), np.float16)]
f = calls(minijax)
before = f()
LATER
g = calls(jax)
assert before == f() == g()
for first, second, of_first, of_second in ((jax, minijax, g, f), (minijax, jax, f, g)):
    with first.enable_x64(True):
        assert of_second() == before and of_first()[3][0] == "float64"
    with first.disable_jit():
        assert of_second() == before
assert before == f() == g()
"""


@pytest.mark.oracle
@pytest.mark.parametrize("imports, later", [
    ("import minijax, jax", ""), ("import jax, minijax", ""), ("import minijax", "import jax"),
])  # fmt: skip
def test_calls_with_numpy_arrays_do_not_hear_of_the_other_s_switches(imports, later):
    python(HOST_CALLS.replace("IMPORTS", imports).replace("LATER", later))


def test_nothing_looks_for_jax():
    assert python(ALONE).endswith("alone\n")


# Each other's arrays


@pytest.fixture(scope="module")
def jax():
    """The real one."""
    return pytest.importorskip("jax")


def told(x):
    return type(x).__module__.split(".")[0], str(x.dtype), x.weak_type, np.asarray(x).tolist()


VALUES = {
    "float32": lambda jnp: jnp.arange(3.0),
    "bfloat16": lambda jnp: jnp.ones(3, jnp.bfloat16),
    "weak float": lambda jnp: jnp.asarray(2.0),
    "weak int": lambda jnp: jnp.asarray(2),
    "weak vector": lambda jnp: jnp.full((3,), 2.0),
    "bool": lambda jnp: jnp.ones(3, bool),
    "complex64": lambda jnp: jnp.ones(3, jnp.complex64),
    "int4": lambda jnp: jnp.ones(3, jnp.int4),
    "float8": lambda jnp: jnp.ones(3, jnp.float8_e4m3fn),
    "empty": lambda jnp: jnp.ones((0, 3)),
}


@pytest.mark.oracle
@pytest.mark.parametrize("name", VALUES)
def test_arrays_keep_dtype_and_weak_type_on_their_way_to_the_other(jax, name):
    mine, theirs = VALUES[name](jnp), VALUES[name](jax.numpy)
    assert told(mine)[1:] == told(theirs)[1:]
    assert told(jnp.asarray(theirs)) == told(mine) and told(jax.numpy.asarray(mine)) == told(theirs)
    assert told(minijax.device_put(theirs)) == told(mine)
    assert told(minijax.jit(lambda x: x)(theirs)) == told(mine)
    assert minijax.typeof(theirs) is minijax.typeof(mine)


TAKEN = {
    "a function": lambda m, a: m.numpy.sin(a),
    "jit": lambda m, a: m.jit(lambda x: x * 2)(a),
    "grad": lambda m, a: m.grad(lambda x: (x * x).sum())(a),
    "vmap": lambda m, a: m.vmap(lambda x: x * x)(a),
    "captured": lambda m, a: m.jit(lambda x: x * a)(2.0),
    "scan": lambda m, a: m.lax.scan(lambda c, x: (c + x, x), 0.0, a)[0],
    "cond": lambda m, a: m.lax.cond(a[0] < 1, lambda x: x + 1, lambda x: x, a),
    "lax": lambda m, a: m.lax.add(a, a),
    "where": lambda m, a: m.numpy.where(a > 1, a, a),
    "concatenate": lambda m, a: m.numpy.concatenate([a, m.numpy.ones(1)]),
    "a list": lambda m, a: m.numpy.array([a, a]),
    "index": lambda m, a: m.numpy.arange(5.0)[a.astype("int32")],
    "at": lambda m, a: m.numpy.zeros(3).at[0].set(a[1]),
    "cotangent": lambda m, a: m.vjp(m.numpy.sin, m.numpy.ones(3))[1](a)[0],
    "jvp": lambda m, a: m.jvp(m.numpy.sin, (a,), (a,))[1],
    "dlpack": lambda m, a: m.numpy.from_dlpack(a),
    "left operand": lambda m, a: m.numpy.ones(3) * a,
    "matmul": lambda m, a: m.numpy.ones((2, 3)) @ a,
    "donated": lambda m, a: m.jit(lambda x: x + 1, donate_argnums=0)(a + 0),
    "a size": lambda m, a: m.numpy.zeros(a.astype("int32")[2]),
}


@pytest.mark.oracle
@pytest.mark.parametrize("name", TAKEN)
def test_minijax_takes_arrays_of_jax(jax, name):
    found = TAKEN[name](minijax, jax.numpy.arange(3.0))
    assert told(found) == told(TAKEN[name](minijax, jnp.arange(3.0)))


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["captured", "concatenate", "a list", "at", "dlpack", "left operand", "matmul"])
def test_jax_takes_arrays_of_minijax_where_it_takes_foreign_ones(jax, name):
    found = TAKEN[name](jax, jnp.arange(3.0))
    assert told(found) == told(TAKEN[name](jax, jax.numpy.arange(3.0)))


@pytest.mark.oracle
def test_the_error_of_jax_explains_how_to_convert_arrays(jax):
    with pytest.raises(ValueError, match="explicitly convert your object using jax.numpy.array"):
        jax.numpy.sin(jnp.ones(3))
    assert not hasattr(minijax.random.key(0), "__jax_array__")


def _in(module, body):
    return module.jit(body)(np.ones(3, np.float32))


CROSSED = {
    "a function of ours": lambda jax: _in(jax, lambda x: jnp.sin(x)),
    "jit of ours": lambda jax: _in(jax, lambda x: minijax.jit(lambda y: y)(x)),
    "lax of ours": lambda jax: _in(jax, lambda x: minijax.lax.add(x, x)),
    "asarray of ours": lambda jax: _in(jax, lambda x: jnp.asarray(x)),
    "device_put of ours": lambda jax: _in(jax, lambda x: minijax.device_put(x)),
    "typeof of ours": lambda jax: _in(jax, lambda x: minijax.typeof(x)),
    "index of ours": lambda jax: jax.jit(lambda i: jnp.arange(3)[i])(1),
    "captured by our jit": lambda jax: _in(jax, lambda x: minijax.jit(lambda y: y * x)(1.0)),
    "returned by our jit": lambda jax: _in(jax, lambda x: minijax.jit(lambda: x)()),
    "our function under grad": lambda jax: jax.grad(lambda x: jnp.sin(x))(1.0),
    "our grad": lambda jax: jax.jit(lambda x: minijax.grad(lambda y: y)(x))(1.0),
    "a function of jax": lambda jax: _in(minijax, lambda x: jax.numpy.sin(x)),
    "jit of jax": lambda jax: _in(minijax, lambda x: jax.jit(lambda y: y)(x)),
    "asarray of jax": lambda jax: _in(minijax, lambda x: jax.numpy.asarray(x)),
    "returned by jax's jit": lambda jax: _in(minijax, lambda x: jax.jit(lambda: x)()),
    "jax's function under grad": lambda jax: minijax.grad(lambda x: jax.numpy.sin(x))(1.0),
    "jax's function under vmap": lambda jax: minijax.vmap(lambda x: jax.numpy.sin(x))(np.ones(3)),
}


@pytest.mark.oracle
@pytest.mark.parametrize("name", CROSSED)
def test_tracers_of_one_are_refused_by_the_other(jax, name):
    with pytest.raises(TypeError) as found:
        CROSSED[name](jax)
    assert "NoneType" not in str(found.value)
    # Neither is confused afterwards.
    assert float(minijax.jit(lambda x: x + 1)(1.0)) == float(jax.jit(lambda x: x + 1)(1.0)) == 2
