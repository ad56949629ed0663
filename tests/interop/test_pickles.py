"""Pickles, between processes: jax reads what minijax writes under the name jax, and the reverse."""

import base64
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.oracle
ROOT = Path(__file__).resolve().parents[2]

NAMES = """
import collections, pickle
import jax, jax.numpy as jnp, numpy as np
from jax.experimental import layout, sparse
from jax.sharding import AbstractDevice, AbstractMesh, AxisType, NamedSharding, PartitionSpec as P
"""
VALUES = [
    *(f"jnp.ones(3, '{t}')" for t in "float32 bfloat16 int4 uint2 float8_e4m3fn bool complex64 float4_e2m1fn".split()),
    "jnp.asarray(1.0)", "jnp.zeros((2, 0))", "jnp.arange(3)[::-1]", "jax.random.PRNGKey(3)",
    *(f"jax.random.split(jax.random.key(3, impl='{i}'), 2)"
      for i in "threefry2x32 threefry4x32 philox2x32 philox4x32 rbg unsafe_rbg".split()),
    "jax.random.key(0)", "jax.random.key(0).dtype", "jax.random.key(0, impl='rbg').dtype",
    "jax.ShapeDtypeStruct((2, 3), jnp.float32)", "jax.ShapeDtypeStruct((), jnp.int32, weak_type=True)",
    "jax.ShapeDtypeStruct((4,), jnp.bfloat16, sharding=NamedSharding(AbstractMesh((2,), ('x',)), P('x')))",
    "P()", "P('x', None, ('y', 'z'))", "P('x', P.UNCONSTRAINED)", "P('x', unreduced={'y'})", "P(None, reduced={'y'})",
    "AxisType.Explicit", "AbstractDevice('cpu', None, 'cpu')", "AbstractMesh((2, 2), ('x', 'y'))",
    "AbstractMesh((2,), ('x',), (AxisType.Explicit,), abstract_device=AbstractDevice('v5', 2, 'tpu'))",
    "NamedSharding(AbstractMesh((2,), ('x',)), P('x'))",
    "NamedSharding(AbstractMesh((2,), ('x',)), P('x'), memory_kind='pinned_host')",
    "layout.Layout((1, 0))", "layout.Layout((1, 0), ((8, 128),))",
    "jax.tree.structure({'a': 1, 'b': (2, [3, None])})", "jax.tree.structure(collections.OrderedDict(a=1))",
    "jax.tree.structure(jax.tree_util.Partial(max, 1))", "jax.tree.structure(1)", "jax.tree_util.Partial(max, 1)",
    "jax.tree_util.tree_flatten_with_path({'a': [1]})[0][0][0]",
    "jax.typeof(jnp.ones(3))", "jax.core.ShapedArray((2,), jnp.int8, True)", "jax.memory.Space.Host",
    "jnp.float32", "jnp.bfloat16", "jnp.dtype(jnp.int4)", "jax.dtypes.float0",
    "jax.lax.Precision.HIGH", "jax.lax.DotAlgorithmPreset.F16_F16_F32",
    "jax.lax.ConvDimensionNumbers((0, 1), (0, 1), (0, 1))", "jax.lax.GatherDimensionNumbers((0,), (0,), (0,))",
    "jax.lax.ScatterDimensionNumbers((0,), (0,), (0,))",
    "sparse.BCOO.fromdense(jnp.eye(2))", "sparse.BCSR.fromdense(jnp.eye(2))",
    "{'params': [jnp.ones(2), jax.random.key(1)], 'spec': P('x'), 'tree': jax.tree.structure((1,))}",
]  # fmt: skip
# Devices belong to a process; jax pickles none, and nothing that holds them.
UNPICKLED = [
    "jax.devices()[0]", "jax.make_mesh((1,), ('x',))", "NamedSharding(jax.make_mesh((1,), ('x',)), P())",
    "jax.sharding.SingleDeviceSharding(jax.devices()[0])",
    "jax.ShapeDtypeStruct((1,), 'int8', sharding=NamedSharding(jax.make_mesh((1,), ('x',)), P()))",
]  # fmt: skip
TOLD = """
def told(x):
    return repr(x), *(str(getattr(x, name, None)) for name in ('dtype', 'shape', 'weak_type', 'committed'))

def refused(text):
    try:
        pickle.dumps(eval(text))
    except Exception as error:
        return type(error).__name__
"""


def scope():
    names = {}
    exec(NAMES + TOLD, names)
    return names


def run(code, given):
    """The `result` of the code for `given`, in a process in which minijax is imported as jax."""
    program = f"""{NAMES}{TOLD}
import base64, sys
given = pickle.loads(base64.b64decode(sys.stdin.read()))
{code}
print(base64.b64encode(pickle.dumps(result)).decode())
"""
    command = [sys.executable, "-m", "minijax", "-c", program]
    text = base64.b64encode(pickle.dumps(given)).decode()
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=120, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return pickle.loads(base64.b64decode(done.stdout))


def test_jax_reads_our_pickles_and_we_read_those_of_jax():
    names = scope()
    theirs = {text: pickle.dumps(eval(text, names)) for text in VALUES}
    code = """
result = {text: (pickle.dumps(eval(text)), told(eval(text)), told(pickle.loads(data))) for text, data in given.items()}
"""
    results = run(code, theirs)
    for text, (data, _, read_there) in results.items():
        assert b"minijax" not in data, text
        expected = names["told"](eval(text, names))
        assert names["told"](pickle.loads(data)) == expected, text
        assert tuple(part.replace("minijax", "jax") for part in read_there) == expected, text


def test_values_are_equal_after_the_way_there_and_back():
    names = scope()
    code = "result = [pickle.dumps(pickle.loads(data)) for data in given]"
    texts = [t for t in VALUES if not t.startswith(("sparse", "{", "jax.tree_util.Partial"))]
    values = [eval(text, names) for text in texts]
    for text, value, data in zip(texts, values, run(code, list(map(pickle.dumps, values))), strict=True):
        equal = pickle.loads(data) == value
        assert equal.all() if hasattr(equal, "all") else equal, text


def test_objects_that_hold_devices_are_not_pickled():
    names = scope()
    expected = [names["refused"](text) for text in UNPICKLED]
    assert run("result = [refused(text) for text in given]", UNPICKLED) == expected == ["TypeError"] * len(UNPICKLED)


def test_keys_of_a_users_generator_are_pickled():
    code = """
from jax.extend import random
ones = lambda *_: jnp.ones(1, 'uint32')
def seed(x): return jnp.ones(1, 'uint32')
def split(key, shape): return jnp.ones((*shape, 1), 'uint32')
def bits(key, width, shape): return jnp.ones(shape, 'uint32')
def fold(key, data): return key
impl = random.define_prng_impl(key_shape=(1,), seed=seed, split=split, random_bits=bits, fold_in=fold, name='own', tag='own')
key = jax.random.key(0, impl=impl)
result = told(pickle.loads(pickle.dumps(key))) == told(key)
"""
    assert run(code, None)


def test_without_the_alias_pickles_name_this_package():
    code = """
import pickle, minijax, minijax.numpy as jnp
values = [jnp.ones(2), minijax.random.key(1), minijax.P('x'), minijax.tree.structure(1), minijax.ShapeDtypeStruct((), 'int8')]
data = [pickle.dumps(x) for x in values]
assert all(repr(pickle.loads(d)) == repr(x) for d, x in zip(data, values))
assert all(b"minijax" in d for d in data) and not any(b"jax._src" in d for d in data)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, cwd=ROOT)
    assert done.returncode == 0, done.stderr
