"""Trees of arrays in directories: what one library writes the other reads."""

import asyncio
import importlib
import json
from collections import OrderedDict

import numpy as np
import pytest
from mesh_language import side

pytest.importorskip("tensorstore")
pytest.importorskip("flatbuffers")
pytestmark = pytest.mark.oracle


def module(s, name="pytree_serialization"):
    return importlib.import_module(f"{s.jax.__name__}.experimental.array_serialization.{name}")


def tree(s):
    return {
        "a": s.put(np.arange(32, dtype=np.float32).reshape(8, 4), "x"),
        "b": [s.jnp.ones(3, "bfloat16"), None, s.jnp.arange(4).astype("int4")],
        "c": (s.jnp.asarray(True), OrderedDict(z=s.jnp.zeros((0, 3)), y=s.jnp.float32(2.5))),
        "d": {},
    }


def told(s, x):
    return str(s.jax.tree.map(lambda x: (str(x.dtype), x.shape, str(x.sharding), np.asarray(x).tolist()), x))


def described(x):
    return str(x).replace("minijax", "jax")


BOTH = [("minijax", "jax"), ("jax", "minijax")]


@pytest.mark.parametrize("writer, reader", BOTH)
def test_each_library_reads_what_the_other_writes(writer, reader, tmp_path):
    writer, reader = side(writer), side(reader)
    module(writer).save(tree(writer), tmp_path / "t")
    read, form = module(reader), reader.One(reader.d[2])
    expected = reader.jax.tree.map(lambda x: reader.jax.device_put(x, form), tree(reader))
    assert told(reader, read.load(tmp_path / "t", form)) == told(reader, expected)
    assert told(reader, read.nonblocking_load(tmp_path / "t", form).result()) == told(reader, expected)
    forms = {"a": reader.on(None, "y"), "b": form, "c": (form, reader.on()), "d": form}
    assert read.load(tmp_path / "t", forms)["a"].sharding == forms["a"]
    masked = read.load(tmp_path / "t", form, mask={"a": True, "b": False, "c": (False, True), "d": True})
    assert masked["b"] == [None] * 3 and masked["c"][0] is None and masked["a"].shape == (8, 4)
    assert described(read.load_pytreedef(tmp_path / "t")) == described(module(writer).load_pytreedef(tmp_path / "t"))


def test_leaves_are_described_as_in_jax(tmp_path):
    texts = []
    for s in (side("minijax"), side("jax")):
        module(s).save(tree(s), tmp_path / s.jax.__name__)
        texts.append(json.loads((tmp_path / s.jax.__name__ / "pytreedef.json").read_text())["__jax_leaf_ids"])
    assert texts[0] == texts[1] and None in texts[0]


def test_structures_are_written_as_in_jax():
    found = []
    for s in (side("minijax"), side("jax")):
        utils = module(s, "pytree_serialization_utils")
        structure = s.jax.tree.structure({"a": [1, (2, None)], "b": OrderedDict(c=1)})
        assert utils.deserialize_pytreedef(utils.serialize_pytreedef(structure)) == structure
        found.append(utils.serialize_pytreedef(structure))
    assert found[0] == found[1]


@pytest.mark.parametrize("name", ["minijax", "jax"])
def test_trees_are_written_over_and_refused(name, tmp_path):
    s = side(name)
    Z, x, form = module(s), s.jnp.arange(3), s.One(s.d[0])
    Z.save({"a": x}, tmp_path / "t")
    with pytest.raises(ValueError, match="you specified `overwrite=False`"):
        Z.save({"b": x}, tmp_path / "t", overwrite=False)
    Z.save({"b": x}, tmp_path / "t")
    assert list(Z.load(tmp_path / "t", form)) == ["b"]
    (tmp_path / "t" / "mine").write_text("")
    with pytest.raises(RuntimeError, match="Refusing to work on a directory that is not a previous checkpoint"):
        Z.save({"a": x}, tmp_path / "t")
    with pytest.raises(ValueError, match="all leaves must be either None or jax.Array-like objects"):
        Z.save({"a": 1}, tmp_path / "u")
    with pytest.raises(ValueError, match="must be a tree prefix"):
        Z.load(tmp_path / "t", {"c": form})
    with pytest.raises(AssertionError, match="does not exist"):
        Z.load(tmp_path / "nowhere", form)
    with pytest.raises(FileNotFoundError):
        Z.nonblocking_load(tmp_path / "nowhere", form)
    for leaf in (None, x):
        Z.save(leaf, tmp_path / "leaf")
        assert str(Z.load(tmp_path / "leaf", form)) == str(leaf)


def test_a_program_goes_on_while_a_tree_is_written(tmp_path):
    s = side("minijax")
    Z, form = module(s), s.One(s.d[0])
    written = Z.nonblocking_save(tree(s), tmp_path / "t")
    assert written.pytree["a"].shape == (8, 4) and written.pytree["b"][1] is None
    assert written.result(timeout=60) is None and written.done() and "done=True" in repr(written)

    async def read():
        return await Z.nonblocking_load(tmp_path / "t", form)

    assert np.array_equal(asyncio.run(read())["a"], tree(s)["a"])
    failed = Z.nonblocking_save({"a": 1}, tmp_path / "u")
    assert isinstance(failed.exception(timeout=60), ValueError)


def test_specifications_choose_chunks(tmp_path):
    s = side("minijax")
    Z, x = module(s), s.jnp.arange(6.0).reshape(2, 3)
    chunks = {"metadata": {"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1, 3]}}}}
    Z.save({"a": x, "b": x}, tmp_path / "t", ts_specs={"a": {"driver": "zarr3", **chunks}, "b": None})
    assert np.array_equal(Z.load(tmp_path / "t", s.One(s.d[0]))["a"], x)


def test_damaged_descriptions_are_refused(tmp_path):
    s = side("minijax")
    Z = module(s)
    Z.save({"a": s.jnp.ones(2)}, tmp_path / "t")
    file = tmp_path / "t" / "pytreedef.json"
    good = json.loads(file.read_text())
    for bad, error in [
        ({}, KeyError),
        (good | {"__jax_leaf_ids": ["Array(float99[2])"]}, ValueError),
        (good | {"__jax_pytreedef_repr": "EAAAAAAA"}, ValueError),
        (good | {"__jax_pytreedef_repr": "E"}, ValueError),
    ]:
        file.write_text(json.dumps(bad))
        with pytest.raises(error):
            Z.load(tmp_path / "t", s.One(s.d[0]))
