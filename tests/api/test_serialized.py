"""Compiled programs as bytes: results are those of jax's own, in this process and in others."""

import contextlib
import importlib
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from mesh_language import same, same_errors, side

import minijax
import minijax.numpy as jnp
from minijax.base import config
from minijax.experimental.serialize_executable import deserialize_and_load, serialize
from minijax.run import disk_cache

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def reloaded(s):
    """The program of a function for these arguments, written, and loaded on the devices that it was compiled for."""
    module = importlib.import_module(f"{s.jax.__name__}.experimental.serialize_executable")

    def load(f, *args, **kwargs):
        compiled = (f if hasattr(f, "lower") else s.jax.jit(f)).lower(*args, **kwargs).compile()
        used = [x for x in s.jax.tree.leaves((args, kwargs)) if hasattr(x, "sharding")] or [s.jnp.ones(())]
        devices = list(used[0].sharding._device_assignment)
        return module.deserialize_and_load(*module.serialize(compiled), execution_devices=devices)

    return load


GIVEN = {
    "load": reloaded,
    "X": lambda s: s.jnp.asarray(X),
    "keys": lambda s: s.random.split(s.random.key(0), 100),
    "big": lambda s: s.jnp.arange(200.0),
    "serialize": lambda s: importlib.import_module(f"{s.jax.__name__}.experimental.serialize_executable").serialize,
}
VALUES = """
load(lambda x, *, k: {"a": x + k, "b": [x.sum()]}, X, k=2.0)(X, k=3.0)
load(lambda x: x[..., None] + big, X)(X).sum(), load(lambda x: x + big[3], X)(X)
load(lambda x: random.key_data(keys)[3] + x[0, 0], X)(X), load(lambda x: x[0, 0] + big.astype(jnp.bfloat16), X)(X)
np.asarray(load(lambda x: x + a.sum(), v)(v)), np.asarray(load(lambda x: x[:, None] + a, v)(v))
load(lambda x, y: y * 2, X, X)(X, X), load(lambda x: x * 2, 1)(3), load(lambda x: x * 2, 1.0)(3.0)
load(lambda: jnp.ones(3))()
load(lambda k: random.normal(k, (2,)), random.key(0))(random.key(0))
random.key_data(load(lambda k: k, random.key(0))(random.key(3)))
load(lambda y: y @ y.T, a)(a), load(lambda y: y @ y.T, a)(np.ones((8, 8), np.float32))
load(lambda y: y * 2, jax.device_put(X, d[3]))(jax.device_put(X, d[3]))
load(jax.jit(lambda x: x + 1, in_shardings=on("x"), out_shardings=on("y")), v)(v)
load(lambda x: x, X).in_avals, load(lambda x: x, X).args_info
[load(lambda y: y @ y.T, a).input_shardings, load(lambda y: y @ y.T, a).output_shardings]
load(jax.jit(lambda x: x + 1, donate_argnums=0), X).donate_argnums
lax.linalg.qr(X)[1], load(lambda x: lax.linalg.qr(x)[1], X)(X)
[str(tree) for tree in serialize(jax.jit(lambda x, *, k: {"a": x}).lower(X, k=1).compile())[1:]]
"""
ERRORS = [
    ("load(lambda x: x + 1, X)(X, X)", "does not match the input pytree"),
    ("load(lambda x: x + 1, X)(X.astype(int))", "Argument types differ"),
    ("jax.jit(load(lambda x: x + 1, X))(X)", "Cannot apply JAX transformations"),
]


def test_programs_run_as_before():
    same(VALUES, **GIVEN)


def test_misuse_raises_as_in_jax():
    same_errors(ERRORS, **GIVEN)


def compiled(f=lambda x: {"a": x + 1}, *args, **options):
    return minijax.jit(f, **options).lower(*(args or (X,))).compile()


def test_paths_of_this_process_are_not_inherited():
    ref = minijax.new_ref(jnp.zeros(()))

    def keep(x):
        ref[...] = x

    programs = [
        compiled(lambda x: minijax.pure_callback(lambda x: x, x, x)),
        compiled(lambda x: [minijax.debug.print("{}", x), x][1]),
        compiled(lambda x: [minijax.debug.print("{}", x, ordered=True), x][1]),
    ]
    for program in programs:
        with pytest.raises(ValueError, match="calls functions of this process"):
            serialize(program)
    with pytest.raises(ValueError, match="serialize with a closed-over"):
        serialize(compiled(keep, 1.0))
    with pytest.raises(TypeError, match="only compiled programs"):
        serialize(minijax.jit(lambda x: x).lower(X))


def test_functions_that_captured_references_are_compiled():
    ref = minijax.new_ref(jnp.zeros(2))

    def keep(x):
        ref[0] = x
        return 2 * x

    program = compiled(keep, 1.0)
    assert program(3.0) == 6 and ref[...].tolist() == [3, 0]
    assert len(program.in_avals[0]) == len(program.input_shardings[0]) == len(program.input_formats[0]) == 1


def test_a_program_is_serialized_again_and_equals_itself():
    data, *trees = serialize(compiled())
    again = deserialize_and_load(*serialize(deserialize_and_load(data, *trees)))
    assert again(X)["a"].tolist() == (X + 1).tolist()
    assert again.as_text() == compiled().as_text() and again.memory_analysis().argument_size_in_bytes == 24
    assert again.out_info == compiled().out_info and again.runtime_executable() is not None


def test_donated_arguments_are_taken():
    program = deserialize_and_load(*serialize(compiled(donate_argnums=0)))
    x = jnp.asarray(X) + 0
    program(x)
    assert x.is_deleted()


def test_devices_are_chosen_and_checked():
    devices = minijax.devices()
    one, mesh = serialize(compiled()), side("minijax").m8
    several = serialize(
        compiled(lambda x: x + 1, minijax.device_put(np.ones(8), minijax.NamedSharding(mesh, minijax.P("i"))))
    )
    assert deserialize_and_load(*one, execution_devices=devices[3:4])(X)["a"].devices() == {devices[3]}
    back = deserialize_and_load(*several, execution_devices=devices[::-1])(np.ones(8, np.float32))
    assert [shard.device for shard in back.addressable_shards] == devices[::-1] and back.tolist() == [2] * 8
    assert deserialize_and_load(*one, backend="cpu")(X)["a"].shape == (2, 3)
    assert deserialize_and_load(*one, backend=devices[0].client)(X)["a"].shape == (2, 3)
    for options, error, text in (
        (dict(execution_devices=devices[:2]), ValueError, "runs on 1 devices, there are 2"),
        (dict(execution_devices=[]), ValueError, "runs on 1 devices, there are 0"),
        (dict(backend="gpu"), RuntimeError, "gpu"),
    ):
        with pytest.raises(error, match=text):
            deserialize_and_load(*one, **options)
    with pytest.raises(ValueError, match="runs on 8 devices, there are 4"):
        deserialize_and_load(*several, execution_devices=devices[:4])


def test_other_bytes_are_refused():
    data, in_tree, out_tree = serialize(compiled())
    for wrong in (b"", b"abc", data[:-1], data + b"x", b"X" + data[1:], pickle.dumps(1)):
        with pytest.raises(ValueError, match="not what `serialize`"):
            deserialize_and_load(wrong, in_tree, out_tree)
    for i in range(0, len(data), len(data) // 100):
        flipped = data[:i] + bytes([data[i] ^ 4]) + data[i + 1 :]
        with pytest.raises(ValueError, match="not what `serialize`"):
            deserialize_and_load(flipped, in_tree, out_tree)
    with pytest.raises(TypeError, match="must be bytes"):
        deserialize_and_load(5, in_tree, out_tree)
    with pytest.raises(ValueError, match="1 values for in_tree"):
        deserialize_and_load(data, minijax.tree.structure(((1, 2), {})), out_tree)


def test_programs_from_the_disk_cache_are_serialized_in_full(tmp_path):
    disk_cache.reset_cache()
    stored = dict(
        enable_compilation_cache=True, compilation_cache_dir=str(tmp_path), persistent_cache_min_compile_time_secs=0.0
    )
    with contextlib.ExitStack() as stack:
        for name, value in stored.items():
            stack.enter_context(config.option(name)(value))
        for _ in range(2):
            minijax.clear_caches()
            program = compiled(lambda x: jnp.tanh(x) * x.sum() + 3)
            again = deserialize_and_load(*serialize(program))
            np.testing.assert_array_equal(again(X), program(X))
        assert list(tmp_path.glob("jit_*"))
    disk_cache.reset_cache()


CHILD = """
import os, pickle, sys
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
import numpy as np
import minijax as jax
from minijax.experimental.serialize_executable import deserialize_and_load
seen = []
jax.monitoring.register_event_duration_secs_listener(lambda name, *args, **kwargs: seen.append(name))
x = np.arange(6, dtype=np.float32).reshape(2, 3)
with open(sys.argv[1], "rb") as file:
    one, several, foreign = pickle.load(file)
print(deserialize_and_load(*one)(x)["a"].tolist())
out = deserialize_and_load(*several)(np.ones(8, np.float32))
print(out.tolist(), len(out.sharding.device_set), [name for name in seen if "compil" in name or "trac" in name])
try:
    deserialize_and_load(*foreign)
except jax.errors.JaxRuntimeError as error:
    print(error)
"""


def test_another_process_runs_them_without_tracing_or_compiling(tmp_path):
    mesh = side("minijax").m8
    ys = minijax.device_put(np.ones(8, np.float32), minijax.NamedSharding(mesh, minijax.P("i")))
    capsule = importlib.import_module("ffi_library")
    programs = [serialize(compiled()), serialize(compiled(lambda x: x + x.sum(), ys))]
    if not capsule.without_compiler.args[0]:
        minijax.devices()
        capsule.register(minijax.ffi)
        call = minijax.ffi.ffi_call(
            "test_add_one", [minijax.ShapeDtypeStruct((3,), np.float32), minijax.ShapeDtypeStruct((), bool)]
        )
        programs.append(serialize(compiled(call, X[0])))
    else:
        programs.append((b"", None, None))
    path = tmp_path / "programs"
    path.write_bytes(pickle.dumps(programs))
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(path)], capture_output=True, text=True, cwd=Path(__file__).parents[2]
    )
    assert done.returncode == 0, done.stderr
    first, second, *error = done.stdout.splitlines()
    assert first == str((X + 1).tolist()) and second == f"{[9.0] * 8} 8 []"
    assert not error or "No FFI handler registered for test_add_one" in error[0]
