"""`Array`, transfers and devices, against jax by tables."""

import copy
import pickle
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest
from compare import EITHER, run_on, same

import minijax
import minijax.numpy
from minijax.base import config
from minijax.ir.types import ShapedArray, typeof
from minijax.run.arrays import array, transfer
from minijax.run.arrays.array import Array
from minijax.run.clients import client

HOST_VALUES = {
    "f32": np.array([0.0, 1.5, -2.0], np.float32),
    "scalar": np.float32(2.5),
    "int": 3,
    "float": 2.5,
    "complex": 1 + 2j,
    "bool": True,
    "empty": np.zeros((0, 3), np.float32),
    "matrix": np.arange(12, dtype=np.int8).reshape(3, 4),
    "transposed": np.arange(12, dtype=np.float32).reshape(3, 4).T,
    "strided": np.arange(12, dtype=np.int32)[::-3],
    "broadcast": np.broadcast_to(np.float32(1), (2, 3)),
    "f64": np.arange(3.0),
    "i64": np.array([2**40 + 1, -1]),
    "u64": np.uint64(5),
    "c128": np.array([1 + 1j, 2]),
    "bools": np.array([[True], [False]]),
    "f16": np.array([np.nan, np.inf, -0.0], np.float16),
    "bf16": np.array([[1, 2], [3, 0.1]], ml_dtypes.bfloat16),
    "bf16 scalar": ml_dtypes.bfloat16(3),
    "f8": np.array([1, 0.5], ml_dtypes.float8_e4m3fn),
    "f8b": np.array([1, 0.5], ml_dtypes.float8_e4m3b11fnuz),
    "bf16 empty": np.zeros((0,), ml_dtypes.bfloat16),
    "int4": np.array([1, -8, 7], ml_dtypes.int4),
    "uint4": np.array([[1], [15]], ml_dtypes.uint4),
    "int2": np.array([1, -2], ml_dtypes.int2),
    "long": np.arange(1500, dtype=np.float32),
    "wide": np.full((2, 13), 1e-7, np.float32),
    "edge": np.arange(15, dtype=np.int32),
    "past the edge": np.arange(18, dtype=np.int32),
}

VIEWS = {
    "repr": repr,
    "str": str,
    "format": lambda x: f"{x}",
    "shape": lambda x: (x.shape, x.ndim, x.size, x.nbytes, x.itemsize),
    "dtype": lambda x: (x.dtype, x.weak_type),
    "len": len,
    "bool": bool,
    "int": int,
    "float": float,
    "complex": complex,
    "index": lambda x: x.__index__(),
    "hex": hex,
    "item": lambda x: x.item(),
    "item 0": lambda x: x.item(0),
    "tolist": lambda x: repr(x.tolist()),
    "tobytes": lambda x: x.tobytes(),
    "array": lambda x: np.asarray(x).tobytes(),
    "array dtype": lambda x: np.asarray(x, dtype=np.float64).tobytes(),
    "writeable": lambda x: (np.asarray(x).flags.writeable, np.array(x).flags.writeable),
    "format spec": lambda x: format(x, ".2f"),
    "hash": hash,
    "setitem": lambda x: x.__setitem__(0, 1),
    "pickle": lambda x: repr(pickle.loads(pickle.dumps(x))),
    "copy": lambda x: (repr(copy.copy(x)), repr(copy.deepcopy(x)), copy.copy(x).committed),
    "sharding": lambda x: (repr(x.sharding), str(x.device), x.committed, x.sharding.memory_kind),
    "shards": lambda x: (repr(x.addressable_shards), repr(x.global_shards), repr(x.addressable_data(0))),
    "where": lambda x: (x.is_fully_addressable, x.is_fully_replicated, len(x.devices()), x.platform()),
    "ready": lambda x: (x.block_until_ready() is x, x.is_ready(), x.is_deleted(), x.copy_to_host_async()),
    "format object": lambda x: repr(x.format),
    "cuda": lambda x: x.__cuda_array_interface__,
    "dlpack": lambda x: (x.__dlpack_device__()[1], np.from_dlpack(x).tobytes()),
}


def outcome(function, *args):
    try:
        return function(*args)
    except Exception as error:
        return type(error)


@pytest.mark.oracle
@pytest.mark.parametrize("value", HOST_VALUES)
def test_views_of_an_array_equal_those_of_jax(value):
    import jax

    host = HOST_VALUES[value]
    ours, theirs = transfer.to_device(host), jax.device_put(host)
    for name, view in VIEWS.items():
        assert repr(outcome(view, ours)) == repr(outcome(view, theirs)), name


@pytest.mark.oracle
def test_views_of_a_deleted_array_raise_as_in_jax():
    import jax

    ours, theirs = transfer.to_device(np.arange(3.0)), jax.device_put(np.arange(3.0))
    ours.delete(), theirs.delete()
    ours.delete()
    # In jax, `is_ready` of a deleted array ends the process, and dlpack fails by accident.
    for name in set(VIEWS) - {"ready", "dlpack"}:
        found, expected = outcome(VIEWS[name], ours), outcome(VIEWS[name], theirs)
        assert repr(found) == repr(expected), name
    with pytest.raises(RuntimeError, match=r"Array has been deleted with shape=float32\[3\]"):
        repr(ours)
    for view in ("is_ready", "block_until_ready", "unsafe_buffer_pointer", "on_device_size_in_bytes"):
        with pytest.raises(RuntimeError):
            getattr(ours, view)()
    assert ours.is_deleted() and ours.shape == (3,)


MESSAGES = [
    (np.zeros(3), bool, "ambiguous"),
    (np.zeros((0,)), bool, "empty"),
    (np.zeros(3), int, "Only scalar arrays can be converted to Python scalars"),
    (1.0, lambda x: x.__index__(), "Only integer scalar arrays can be converted to a scalar index"),
    (np.zeros(3), hash, "unhashable type"),
    (np.zeros(3), lambda x: x.__setitem__(0, 1), r"immutable.*x\.at\[idx\]\.set"),
    (np.zeros(()), len, "unsized"),
]


@pytest.mark.parametrize("value, view, message", MESSAGES)
def test_errors_hold_the_phrases_that_programs_match(value, view, message):
    with pytest.raises((TypeError, ValueError), match=message):
        view(transfer.to_device(value))


BAD_VALUES = [
    "a", b"a", object(), None, np.array(["a"]), np.array([1, "a"], dtype=object), np.datetime64("2020"),
    np.longdouble(1), np.ones(3, ">f4"), np.ones(3, [("a", "f4")]), 2**40, 2**31, -(2**31) - 1,
]  # fmt: skip


@pytest.mark.oracle
@pytest.mark.parametrize("value", BAD_VALUES, ids=lambda value: type(value).__name__)
def test_values_that_are_not_arrays_are_refused_as_by_jax(value):
    import jax

    if value is None:
        with pytest.raises(TypeError):
            transfer.to_device(value)
        return
    assert outcome(transfer.to_device, value) is outcome(jax.device_put, value)


@pytest.mark.oracle
@pytest.mark.parametrize("value", [2**40, 2.5, 1j, np.arange(3), np.float64(0.1), np.uint64(2**63)])
def test_64_bit_types_are_kept_when_asked_for(value):
    import jax

    with config.enable_x64(True):
        ours = transfer.to_device(value)
        assert typeof(value) is ours.aval
    with jax.enable_x64(True):
        theirs = jax.device_put(value)
    assert repr(ours) == repr(theirs)


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["f32", "bf16", "int4", "float", "empty"])
def test_arrays_of_the_real_jax_are_accepted_with_their_weak_types(name):
    import jax

    theirs = jax.device_put(HOST_VALUES[name])
    ours = transfer.to_device(theirs)
    assert type(ours) is array.ArrayImpl and repr(ours) == repr(theirs)


@pytest.mark.parametrize("size", [1, 64, 4096])
def test_later_writes_to_numpy_memory_are_not_seen(size):
    memory = np.zeros(size + 64, np.float32)
    start = (-memory.ctypes.data % 64) // 4
    aligned = memory[start : start + size]
    x = transfer.to_device(aligned)
    aligned[:] = 7
    assert not np.asarray(x).any()


def test_views_outlive_the_array():
    x = transfer.to_device(HOST_VALUES["bf16"])
    view = np.asarray(x)
    x.delete()
    del x
    assert view.tolist() == HOST_VALUES["bf16"].tolist()
    with pytest.raises(ValueError, match="read-only"):
        view[0, 0] = 1


def test_signatures_and_shardings_are_interned():
    x, y = transfer.to_device(np.float32(1)), transfer.to_device(np.float32(2))
    assert x._sig is y._sig and x.sharding is y.sharding
    committed = transfer.to_device(x, client.default_device())
    assert committed.committed and committed._sig is not x._sig
    assert committed.unsafe_buffer_pointer() == x.unsafe_buffer_pointer()
    assert transfer.to_device(committed).committed


def test_memory_kinds_are_kept():
    sharding = client.single_device_sharding(client.default_device(), "pinned_host")
    x = transfer.to_device(np.arange(3.0), sharding)
    assert x.sharding.memory_kind == "pinned_host" and np.asarray(x).tolist() == [0, 1, 2]
    y = transfer.to_device(x, client.default_device())
    assert y.sharding.memory_kind == "device" and y.tolist() == [0, 1, 2]


def test_scalar_operands_are_remembered_and_kept_apart():
    first = transfer.scalar_operand(1.0)
    assert transfer.scalar_operand(1.0) is first
    assert first.dtype == np.float32 and transfer.scalar_operand(1).dtype == np.int32
    assert transfer.scalar_operand(True).dtype == bool
    assert np.signbit(np.asarray(transfer.scalar_operand(-0.0)))
    assert not np.signbit(np.asarray(transfer.scalar_operand(0.0)))
    assert transfer.scalar_operand(-1j).tolist() == -1j
    first.delete()
    assert transfer.scalar_operand(1.0).item() == 1.0
    with config.enable_x64(True):
        assert transfer.scalar_operand(1.0).dtype == np.float64


class Tracer:
    def __init__(self, aval):
        self.aval = aval


def test_registered_classes_pass_for_arrays():
    x = transfer.to_device(1.0)
    assert isinstance(x, Array) and not isinstance(1.0, Array) and not isinstance(Tracer(None), Array)
    array.register_array_like(Tracer, lambda t: isinstance(t.aval, ShapedArray))
    try:
        assert isinstance(Tracer(x.aval), Array) and not isinstance(Tracer(None), Array)
        assert isinstance(type("Sub", (Tracer,), {})(x.aval), Array)
        assert not isinstance(Tracer(x.aval), array.ArrayImpl)
    finally:
        array._array_like.pop(Tracer)
    assert issubclass(type(x), Array) and type(x).__name__ == "ArrayImpl"


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "float8_e5m2", "bool"])
def test_dlpack_goes_to_and_from_jax(dtype):
    import jax

    value = np.array([[0, 1], [1, 0]]).astype(dtype)
    ours = transfer.to_device(value)
    assert repr(jax.dlpack.from_dlpack(ours)) == repr(ours)
    back = transfer.from_dlpack(jax.device_put(value))
    assert repr(back) == repr(ours) and back.committed


def test_dlpack_copies_if_it_must_and_raises_if_it_may_not():
    value = np.arange(6, dtype=np.float32).reshape(2, 3).T
    assert transfer.from_dlpack(value).tolist() == value.tolist()
    with pytest.raises(ValueError, match="requires a copy"):
        transfer.from_dlpack(value, copy=False)
    with pytest.raises(TypeError, match="__dlpack__"):
        transfer.from_dlpack(3)
    x = transfer.to_device(np.zeros(3, np.float32))
    assert np.from_dlpack(x).ctypes.data == x.unsafe_buffer_pointer()


def test_live_arrays_are_ours():
    x = transfer.to_device(np.arange(3.0))
    alone = [y for y in array.live_arrays() if len(y.devices()) == 1]
    pointers = [y.unsafe_buffer_pointer() for y in alone if y.nbytes and y.dtype == x.dtype]
    assert x.unsafe_buffer_pointer() in pointers


QUESTIONS = [
    ("devices", ()), ("devices", ("cpu",)), ("local_devices", ()), ("local_devices", (0,)),
    ("device_count", ()),
    ("local_device_count", ()), ("default_backend", ()), ("process_index", ()), ("process_count", ()),
    ("process_indices", ()), ("devices", ("foo",)), ("devices", ("gpu",)), ("devices", ("cuda",)),
    ("local_devices", (3,)), ("device_count", ("gpu",)), ("local_devices", (None, "x")),
]  # fmt: skip


@pytest.mark.oracle
@pytest.mark.parametrize("name, args", QUESTIONS)
def test_questions_about_devices_are_answered_as_by_jax(name, args):
    import jax

    ours, theirs = outcome(getattr(client, name), *args), outcome(getattr(jax, name), *args)
    assert repr(ours) == repr(theirs)


def test_unknown_backends_are_named():
    with pytest.raises(RuntimeError, match=r"Unknown backend foo. Available backends are \['cpu'\]"):
        client.devices("foo")
    with pytest.raises(RuntimeError, match="no platforms that are instances of gpu are present"):
        client.devices("gpu")
    with pytest.warns(UserWarning, match="process_count"):
        assert client.host_count() == 1


def run_python(code, **environment):
    path = [entry for entry in sys.path if entry]
    environment = {"PYTHONPATH": ":".join(path), "JAX_PLATFORMS": "cpu", **environment}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)


def test_requested_platforms_that_are_unknown_raise():
    code = "from minijax.run.clients import client\ntry: client.devices()\nexcept RuntimeError as e: print(e)"
    done = run_python(code, JAX_PLATFORMS="foo")
    assert "Unable to initialize backend 'foo'" in done.stdout, done.stderr


NOTHING_IMPORTS_JAX = """
import importlib.abc, sys
class Refuse(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == "jax" or name.startswith("jax."):
            raise AssertionError("looked for " + name)
sys.meta_path.insert(0, Refuse())
import copy, pickle
import ml_dtypes, numpy as np
from minijax.run.arrays import array, transfer
from minijax.run.clients import client
from minijax.run.programs import compile, launch
from minijax.partition.shardings import Mesh, NamedSharding, P
for dtype in ("float32", "bfloat16", "int4", "bool", "complex64"):
    x = transfer.to_device(np.ones((4, 2)).astype(dtype))
    repr(x), str(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x)), x.addressable_shards, x.format
    np.asarray(x), x.is_ready(), x.block_until_ready(), x.on_device_size_in_bytes()
    if dtype != "int4":
        x.unsafe_buffer_pointer(), transfer.from_dlpack(x)
devices = client.devices()
y = transfer.to_device(np.arange(4.0), devices[1])
assert transfer.to_device(y, devices[0]).tolist() == [0, 1, 2, 3]
mesh = Mesh(np.array(devices).reshape(2, 2), ("x", "y"))
for spec in (P("x", "y"), P("y"), P(("y", "x")), P(), P(None, "x")):
    z = transfer.to_device(np.arange(16.0).reshape(4, 4), NamedSharding(mesh, spec))
    assert z.tolist() == np.arange(16).reshape(4, 4).tolist(), spec
    for shard in z.addressable_shards:
        assert shard.data.tolist() == np.arange(16).reshape(4, 4)[shard.index].tolist()
t = "tensor<4xf32>"
body = f"%r = stablehlo.add %a, %a : {t} return %r : {t}"
p = compile.compile_text(f"func.func @main(%a: {t}) -> {t} {{ {body} }}")
x = transfer.to_device(np.arange(4.0))
run = launch.bind(p, [array.signature(x.aval, x.sharding, False)])
assert run([x._raw])[0].tolist() == [0, 2, 4, 6]
p.as_text(), p.cost_analysis(), p.memory_analysis()
x.delete()
try: run([x._raw])
except RuntimeError as e: assert "Array has been deleted with shape=float32[4]" in str(e), e
array.live_arrays()
assert "jax" not in sys.modules
print("clean")
"""


def test_nothing_looks_for_jax_on_several_devices():
    done = run_python(NOTHING_IMPORTS_JAX, JAX_NUM_CPU_DEVICES="4")
    assert done.stdout.endswith("clean\n"), done.stderr
    assert not done.stderr


def test_donated_arguments_are_refused():
    """jax itself refuses them where a call is new, and jaxlib where it is known; a deleted array jax always."""
    lax, jnp = minijax.lax, minijax.numpy
    known = {
        "a jitted function": minijax.jit(lambda x: 2 * x),
        "an operation": lax.sin,
        "a function that moves data": lambda x: jnp.concatenate([x, x]),
        "an operator": lambda x: x + 1,
    }
    # No other test of the process calls `tan` with this shape.
    x, y = jnp.ones((3, 1, 37)) + 1, jnp.ones((3, 1, 37))
    for call in known.values():
        call(x)
    minijax.jit(lambda x: x + 1, donate_argnums=0)(x)
    y.delete()
    for call in known.values():
        with pytest.raises(ValueError, match="Invalid buffer passed.* Buffer has been deleted or donated"):
            call(x)
        with pytest.raises(RuntimeError, match=r"Array has been deleted with shape=float32\[3,1,37\]"):
            call(y)
    for new in (minijax.jit(lambda x: 3 * x), lax.tan, lambda x: jnp.concatenate([x, x, x])):
        with pytest.raises(RuntimeError, match=r"Array has been deleted with shape=float32\[3,1,37\]"):
            new(x)
    with pytest.raises(minijax.errors.JaxRuntimeError, match="called on deleted or donated buffer"):
        x.unsafe_buffer_pointer()


BUFFERS = {
    **{t: lambda jnp, t=t: jnp.ones((2, 3), t) for t in ("bool", "int8", "uint16", "int32", "float16", "complex64")},
    **{t: lambda jnp, t=t: jnp.ones((2, 3), t) for t in ("bfloat16", "float8_e4m3fn", "int4", "uint2")},
    "empty": lambda jnp: jnp.ones((0, 3)),
    "scalar": lambda jnp: jnp.ones(()),
    "deleted": lambda jnp: (x := jnp.ones(3), x.delete())[0],
    "keys": lambda jnp, jax: jax.random.key(0),
}


@pytest.mark.oracle
@pytest.mark.parametrize("name", BUFFERS)
def test_arrays_speak_the_buffer_protocol_as_jax_s(name):
    def seen(view):
        return view.format, view.shape, view.strides, view.readonly, view.tobytes()

    # Python 3.11 gives SystemError for an array that waits for its program and has no buffer.
    same(lambda jax, jnp: seen(memoryview(jax.block_until_ready(run_on(jax, BUFFERS[name])))), raises=EITHER)


def test_a_buffer_of_an_array_keeps_its_memory_alive():
    jnp = minijax.numpy
    x = jnp.arange(6.0).reshape(2, 3)
    view = memoryview(x)
    x.delete()
    assert np.array_equal(np.asarray(view), np.arange(6.0).reshape(2, 3))
    y = jnp.arange(4.0)
    view = memoryview(y)
    assert np.array_equal(minijax.jit(lambda v: v + 1, donate_argnums=0)(y), np.arange(1.0, 5.0))
    assert np.array_equal(np.asarray(view), np.arange(4.0))
