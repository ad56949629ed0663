"""Truncated, damaged or foreign serialized programs raise Python errors; none of them crashes."""

import subprocess
import sys

import numpy as np
import pytest

import minijax as jax
from minijax import export
from minijax.api.export import schema, wire

X = np.arange(4, dtype=np.float32)


def program(x):
    return jax.numpy.where(x > 1, jax.numpy.sin(x) * 2, jax.jit(lambda y: y @ y + 1.5)(x))


def blob(order=1):
    return bytes(export.export(jax.jit(program))(X).serialize(vjp_order=order))


def their_blob():
    import jax as theirs
    from jax import export as their_export

    return bytes(their_export.export(theirs.jit(lambda x: theirs.numpy.sin(x) * 2))(X).serialize())


@pytest.mark.parametrize("make", [blob, pytest.param(their_blob, marks=pytest.mark.oracle)])
def test_a_prefix_is_refused_wherever_it_is_cut(make):
    data = make()
    for i in range(200):
        with pytest.raises(ValueError):
            export.deserialize(data[: len(data) * i // 200])


DAMAGE = """
import random, sys
import numpy as np
from minijax import export
data = sys.stdin.buffer.read()
rng = random.Random(sys.argv[1])
expected = np.asarray(export.deserialize(data).call(np.arange(4, dtype=np.float32)))
refused = 0
for _ in range(200):
    place, damaged = rng.randrange(len(data) * 8), bytearray(data)
    damaged[place // 8] ^= 1 << place % 8
    try:
        result = export.deserialize(damaged).call(np.arange(4, dtype=np.float32))
    except ValueError:
        refused += 1
    else:
        np.testing.assert_array_equal(np.asarray(result), expected)
print("refused", refused)
"""


def test_a_flipped_bit_raises_or_changes_nothing():
    run = subprocess.run([sys.executable, "-c", DAMAGE, "0"], input=blob(), capture_output=True, timeout=120)
    assert run.returncode == 0, run.stderr.decode()[-2000:]
    assert int(run.stdout.split()[1]) > 190


def test_tables_without_a_checksum_are_checked_as_they_are_read():
    data = bytearray(blob(0)[:-4])
    data[4:8] = b"\0\0\0\0"  # without the mark, the checksum is not verified
    assert export.deserialize(data).fun_name == "program"
    refused = 0
    module = data.index(b"ML\xefR")
    for place in range(0, module):
        damaged = bytearray(data)
        damaged[place] ^= 0x80
        try:
            export.deserialize(damaged)
        except (ValueError, NotImplementedError, TypeError):
            refused += 1
    assert refused > module // 4


def _altered(**fields):
    table = wire.decoded(schema.TABLES, "Exported", blob(0)) | fields
    return wire.encoded(schema.TABLES, "Exported", table)


@pytest.mark.parametrize(
    ("fields", "phrase"),
    [
        (dict(serialization_version=99), "version 99 of the format"),
        (dict(serialization_version=0), "version 0 of the format"),
        (dict(calling_convention_version=8), "version 8 of the calling convention"),
        (dict(calling_convention_version=11), "version 11 of the calling convention"),
        (dict(fun_name=None), "no fun_name"),
        (dict(in_tree=None), "no in_tree"),
        (dict(in_tree={"kind": 9}), "no tree of kind 9"),
        (dict(in_tree={"kind": 2, "children": [{"kind": 0}, {"kind": 0}]}), "1 types for"),
        (dict(in_tree={"kind": 4, "children": [{"kind": 0}], "children_names": ["b", "a"]}), "has the keys"),
        (dict(in_tree={"kind": 5, "custom_name": "nobody's"}), "unregistered type `nobody's`"),
        (dict(unique_avals=[{"dtype": 77}]), "dtype 77 is not known"),
        (dict(unique_avals=[{"dtype": 10, "shape": ["n +"]}]), "n +"),
        (dict(in_aval_indices=[5]), "damaged"),
        (dict(in_sharding_indices=[3]), "damaged"),
        (dict(module_kept_var_idx=[4]), "takes the arguments"),
        (dict(disabled_checks=[{"kind": 7}]), "no check of kind 7"),
        (dict(ordered_effects=[{"type_name": "<class 'x.Y'>"}]), "is not registered"),
    ],
)
def test_fields_of_tables_are_checked(fields, phrase):
    with pytest.raises((ValueError, NotImplementedError), match=phrase):
        export.deserialize(_altered(**fields))


@pytest.mark.parametrize("module", [b"", b"abc", b"ML\xefR\rStableHLO_v9.15.0\0"])
def test_an_invalid_module_raises_when_it_is_called(module):
    program = export.deserialize(_altered(mlir_module_serialized=module))
    with pytest.raises(ValueError, match="module"):
        program.call(X)


def test_a_string_is_refused():
    with pytest.raises(TypeError):
        export.deserialize("abc")  # pyright: ignore


def test_damaged_offsets_raise_or_are_read_and_never_loop():
    """Guards against endless recursion: each 32-bit word is moved by small amounts, as offsets to tables are."""
    tree = {"kind": 2, "children": [{"kind": 0}]}
    data = bytearray(wire.encoded(schema.TABLES, "Exported", {"in_tree": tree})[:-4])
    data[4:8] = b"\0\0\0\0"
    refused = damaged = 0
    for place in range(8, len(data) - 3, 4):
        word = int.from_bytes(data[place : place + 4], "little")
        for move in [*range(-64, 0, 4), *range(4, 64, 4)]:
            damaged += 1
            moved = ((word + move) & 0xFFFFFFFF).to_bytes(4, "little")
            try:
                wire.decoded(schema.TABLES, "Exported", data[:place] + moved + data[place + 4 :])
            except ValueError:
                refused += 1
    assert damaged // 4 < refused < damaged, (refused, damaged)


def test_without_flatbuffers_the_error_names_the_extra_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "flatbuffers", None)
    monkeypatch.setattr(wire, "flatbuffers", wire.defer("flatbuffers"))
    with pytest.raises(ImportError, match="pip install 'minijax\\[export\\]'"):
        blob()
