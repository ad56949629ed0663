"""Arrays in files by tensorstore: what one library writes the other reads, to every sharding, dtype and shape."""

import asyncio
import importlib
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from mesh_language import same, same_errors, side

pytest.importorskip("tensorstore")
pytestmark = pytest.mark.oracle

WHERE = "experimental.array_serialization"


def module(s, name="serialization"):
    return importlib.import_module(f"{s.jax.__name__}.{WHERE}.{name}")


GIVEN = dict(
    S=module,
    T=lambda s: module(s, "tensorstore_impl"),
    asyncio=lambda s: asyncio,
    arr=lambda s: s.put(np.arange(32, dtype=np.float32).reshape(8, 4), "x"),
)


def test_specs_and_remote_storage():
    same(
        """
        S.get_tensorstore_spec("/tmp/xx/a"), S.get_tensorstore_spec("/tmp/xx/"), S.get_tensorstore_spec("xx/a")
        S.get_tensorstore_spec("/tmp/xx/a", process_idx=3), S.get_tensorstore_spec("/tmp/xx/a", ocdbt=True)
        S.get_tensorstore_spec("/tmp/xx/a", arr=arr), S.get_tensorstore_spec("gs://b/xx/a", arr=arr)
        S.get_tensorstore_spec("s3://b/xx/a"), S.get_tensorstore_spec(__import__("pathlib").Path("/tmp/xx/a"))
        T.get_tensorstore_spec("/tmp/xx/a"), T.get_tensorstore_spec("/tmp/xx/a", process_idx=3, arr=arr)
        T.get_tensorstore_spec("gs://b/x/a"), T.get_tensorstore_spec("s3://b/x", process_idx=1)
        T.get_tensorstore_spec("gs://b/x/", ocdbt=False), T.get_tensorstore_spec("/tmp/xx/a", ocdbt=False, arr=arr)
        T.get_tensorstore_spec("/tmp/x", arr=jnp.ones(()))
        T.get_tensorstore_spec("/tmp/x", arr=SDS((60, 10**9), "float32"))
        T.get_tensorstore_spec("/tmp/x", arr=SDS((100000, 100000), "bfloat16", sharding=on(None, "y")))
        T.get_tensorstore_spec("/tmp/x", arr=SDS((3**12, 2**3, 7**4), "int8", sharding=on("y")), driver="zarr")
        [S.is_remote_storage(x) for x in ("gs://a", "s3://a", "/a", "file:///a", {"driver": "gcs"})]
        [S.is_remote_storage({"kvstore": x}) for x in ({"driver": "s3"}, {"driver": "ocdbt", "base": "gs://b"}, "/a")]
        [T.is_tensorstore_spec_leaf(x) for x in ({"driver": 1}, {"kvstore": 1}, {"metadata": 1}, None, {}, 3)]
        """,
        **GIVEN,
    )
    same_errors(
        [
            ("S.get_tensorstore_spec('gs://b')", "should contain the bucket name"),
            ("T.get_tensorstore_spec('xx/a')", "Checkpoint path should be absolute"),
            ("T.get_tensorstore_spec('gs://b/x')", "Using OCDBT requires the bucket name"),
            ("S.run_serialization([arr], [])", "pytree structure error: different lengths"),
            (
                "asyncio.run(S.async_deserialize(None, S.get_tensorstore_spec('/tmp/x')))",
                "sharding passed to deserialization",
            ),
            ("S.run_deserialization([One(d[0])], [S.get_tensorstore_spec('/tmp/nowhere/x')])", "does not exist"),
            ("S.run_serialization([3], [S.get_tensorstore_spec('/tmp/nowhere/x')])", "has no attribute 'shape'"),
            ("S.run_serialization([jax.random.key(0)], [S.get_tensorstore_spec('/tmp/nowhere/x')])", "key<fry>"),
            ("S.GlobalAsyncCheckpointManagerBase()", "abstract methods"),
        ],
        **GIVEN,
    )


VALUES = {
    "sharded": "arr", "replicated": "put(numbers(8), )", "both axes": "put(numbers(8, 8), 'x', 'y')",
    **{t: f"jnp.ones((3, 2), '{t}')" for t in "bfloat16 int4 int8 uint32 bool complex64 float8_e4m3fn".split()},
    "empty": "jnp.ones((0, 3))", "scalar": "jnp.float32(3)",
}  # fmt: skip


@pytest.mark.parametrize("driver", [dict(), dict(ocdbt=True), dict(driver="zarr3"), dict(driver="zarr3", ocdbt=True)])
def test_each_library_reads_what_the_other_writes(tmp_path, driver):
    sides = [side("minijax"), side("jax")]
    for writer, reader in (sides, sides[::-1]):
        S = module(writer)
        arrays = [eval(text, {**vars(writer), "arr": GIVEN["arr"](writer)}) for text in VALUES.values()]
        paths = [str(tmp_path / writer.jax.__name__ / str(i)) for i in range(len(arrays))]
        S.run_serialization(arrays, [S.get_tensorstore_spec(p, **driver) for p in paths])
        specs = [module(reader).get_tensorstore_spec(p, **driver) for p in paths]
        read = module(reader).run_deserialization([reader.One(reader.d[3])] * len(paths), specs)
        for name, x, y in zip(VALUES, arrays, read, strict=True):
            assert (y.dtype, y.shape, y.device) == (x.dtype, x.shape, reader.d[3]), name
            assert np.asarray(x).tobytes() == np.asarray(y).tobytes(), name


READINGS = """
    read(arr.sharding), read(on(None, "y")), read(One(d[2])), read(on(), (12, 4)), read(on("x"), (12, 4))
    read(on("x"), (4, 4), jnp.bfloat16), read(on(None, "y"), (5, 4)), read(One(d[0]), None, jnp.int32)
    read(SDS((8, 4), jnp.int32, sharding=on(None, "y"))), read(SDS((4, 4), jnp.float16, sharding=One(d[1])))
    laid.format.layout.major_to_minor, laid
"""


def test_arrays_are_read_to_other_shapes_dtypes_shardings_and_layouts(tmp_path):
    def reader(s):
        S = module(s)
        path = str(tmp_path / s.jax.__name__)
        S.run_serialization([GIVEN["arr"](s)], [S.get_tensorstore_spec(path)])
        return lambda form, *more: asyncio.run(S.async_deserialize(form, S.get_tensorstore_spec(path), *more))

    def laid(s):
        layout = importlib.import_module(f"{s.jax.__name__}.experimental.layout")
        return reader(s)(layout.Format(layout.Layout((1, 0)), s.on("x")))

    same(READINGS, read=reader, laid=laid, **GIVEN)


def test_files_have_jax_s_chunks_and_specs_get_their_metadata(tmp_path):
    found = []
    for s in (side("minijax"), side("jax")):
        S, root = module(s), tmp_path / s.jax.__name__
        spec = S.get_tensorstore_spec(str(root / "a"))
        results = asyncio.run(S.async_serialize(GIVEN["arr"](s), spec))
        files = {str(p.relative_to(root)): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}
        found.append((results, files, spec["metadata"], spec["dtype"]))
    assert found[0] == found[1] and len(found[0][1]) == 5


def test_managers_write_while_the_program_goes_on(tmp_path):
    for s in (side("minijax"), side("jax")):
        S = module(s)
        manager, done, x = S.GlobalAsyncCheckpointManager(), [], GIVEN["arr"](s)
        paths = [str(tmp_path / s.jax.__name__ / name) for name in "pq"]
        manager.serialize_with_paths([x, x * 2], paths, on_commit_callback=lambda done=done: done.append(1))
        manager.wait_until_finished()
        read = manager.deserialize_with_paths([x.sharding] * 2, paths)
        assert done == [1] and np.array_equal(read[1], x * 2) and read[1].sharding == x.sharding

        def fail():
            raise ValueError("at the commit")

        manager.serialize([x], [S.get_tensorstore_spec(paths[0])], on_commit_callback=fail)
        with pytest.raises(ValueError, match="at the commit"):
            manager.wait_until_finished()
        manager.check_for_errors()
        manager.wait_until_finished()


def test_databases_of_several_processes_become_one(tmp_path):
    s = side("minijax")
    T, x = module(s, "tensorstore_impl"), GIVEN["arr"](s)
    for i in range(2):
        asyncio.run(T.async_serialize(x + i, T.get_tensorstore_spec(str(tmp_path / f"a{i}"), process_idx=i, arr=x)))
    parts = [T.get_tensorstore_spec(str(tmp_path / "a"), process_idx=i)["kvstore"] | {"path": ""} for i in range(2)]
    asyncio.run(T.combine_kvstores({"driver": "ocdbt", "base": f"file://{tmp_path}/"}, parts))
    for i in range(2):
        read = asyncio.run(T.async_deserialize(x.sharding, T.get_tensorstore_spec(str(tmp_path / f"a{i}"))))
        assert np.array_equal(read, x + i)


def test_few_bytes_are_read_immediately(tmp_path):
    s = side("minijax")
    S, T, x = module(s), module(s, "tensorstore_impl"), GIVEN["arr"](s)
    spec = S.get_tensorstore_spec(str(tmp_path / "a"))
    S.run_serialization([x], [spec])

    async def read(limit):
        return await T.async_deserialize(x.sharding, spec, byte_limiter=T.LimitInFlightBytes(limit))

    assert all(np.array_equal(asyncio.run(read(limit)), x) for limit in (1, 50, 10**6))


def test_without_tensorstore_the_import_raises():
    code = f"""
import sys
from pathlib import Path
sys.modules["tensorstore"] = None
import minijax
import minijax.{WHERE}
try:
    import minijax.{WHERE}.serialization
except ImportError as error:
    print(error.name)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout == "tensorstore\n", done.stderr


def test_metadata_is_json(tmp_path):
    s = side("minijax")
    spec = module(s).get_tensorstore_spec(str(tmp_path / "a"), arr=GIVEN["arr"](s), driver="zarr3")
    assert json.loads(json.dumps(spec))["metadata"]["shape"] == [8, 4]


def test_two_processes_write_together(tmp_path):
    pytest.importorskip("flatbuffers")
    program = str(Path(__file__).with_name("several_writers.py"))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    environment = {**os.environ, "XLA_FLAGS": "", "PYTHONPATH": str(Path(__file__).parents[2])}
    commands = [[sys.executable, program, str(i), address, str(tmp_path)] for i in range(2)]
    pipes = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    processes = [subprocess.Popen(command, env=environment, **pipes) for command in commands]
    try:
        for process in processes:
            printed, errors = process.communicate(timeout=100)
            assert process.returncode == 0 and printed.splitlines()[-1] == "True", errors
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.communicate()
    s = side("jax")
    read = module(s).run_deserialization([s.on()], [module(s).get_tensorstore_spec(str(tmp_path / "array"))])[0]
    assert np.array_equal(read, np.arange(16).reshape(4, 4))
    assert np.array_equal(module(s, "pytree_serialization").load(tmp_path / "tree", s.on())["a"], read)
