"""Source maps: from lines of jaxprs, StableHLO and HLO back to the user's lines."""

import json
import re

import pytest

import minijax
import minijax.numpy as jnp
from minijax import lax
from minijax.experimental import source_mapper
from minijax.experimental.source_mapper import hlo, mlir


def program(x):
    y = jnp.sin(x)
    return y * 2 + jnp.cos(x)


def absolute(dump):
    """For each line of the text that has a place: its words, the source's line from 1."""
    lines, at, found = dump.generated_code.split("\n"), [0, 0, 0], {}
    for n, group in enumerate(dump.source_map.mappings):
        for segment in group:
            at = [a + b for a, b in zip(at, segment[1:4], strict=True)]
            found[lines[n].strip()] = at[1] + 1
    return found


def line_of(found, operation):
    (line,) = {at for text, at in found.items() if re.search(rf"\b{operation}\b", text)}
    return line


@pytest.mark.parametrize(
    "kind, sine, cosine", [("jaxpr", "sin", "cos"), ("hlo:stable-hlo", "sine", "cosine"), ("hlo:o", "sine", "cosine")]
)
def test_lines_of_each_text_come_from_the_users(kind, sine, cosine):
    passes = source_mapper.filter_passes(kind)
    start = program.__code__.co_firstlineno
    for dump, p in zip(source_mapper.generate_sourcemaps(program, passes)(jnp.ones(3)), passes, strict=True):
        assert dump.pass_name == p.name and dump.source_map.sources == [__file__]
        assert len(dump.source_map.mappings) == len(dump.generated_code.split("\n")) + 1
        found = absolute(dump)
        assert line_of(found, sine + r"(?=[ (]+[%a])") == start + 1
        assert line_of(found, cosine + r"(?=[ (]+[%a])") == start + 2


def test_equations_of_nested_jaxprs_have_their_own_places():
    def loop(x):
        return lax.fori_loop(
            0, 3, lambda i, c:
                c * 2, x)  # fmt: skip

    (dump,) = source_mapper.generate_sourcemaps(loop, source_mapper.filter_passes("jaxpr"))(1.0)
    found, start = absolute(dump), loop.__code__.co_firstlineno
    assert found["length=3"] == found["] 0:i32[] a"] == start + 1
    assert line_of(found, "mul") == start + 3


def test_maps_are_written_and_read():
    mappings = [[(0, 0, 1, 2), (5, 0, 1, -2, 0)], [], [(3,), (123456, 0, -16, 15)]]
    whole = source_mapper.SourceMap(3, ["a.py"], ["x"], ["n"], mappings)
    assert json.loads(whole.to_json())["mappings"] == "AACE,KACFA;;G,gkxHAhBe"
    assert source_mapper.SourceMap.from_json(whole.to_json()) == whole
    for text in ("{}", "x", '{"version": 3, "sources": [], "sourcesContent": [], "names": [], "mappings": "!"}'):
        with pytest.raises((KeyError, ValueError)):
            source_mapper.SourceMap.from_json(text)


def test_mappings_are_relative_to_those_before():
    made = source_mapper.MappingsGenerator()
    with pytest.raises(RuntimeError):
        made.new_segment(1, 0, 1, 2)
    for segment in ((4, 0, 6, 8), (4, 1, 7, 11)):
        made.new_group()
        made.new_segment(*segment)
    made.new_segment(9)
    assert made.mappings() == [[(4, 0, 6, 8)], [(4, 1, 1, 3), (5,)]]


def test_locations_of_mlir_are_followed():
    lines = """module {
  %0 = "a"() : () -> i32 loc(#loc3)
  %1 = "b"() : () -> i32 loc(#loc4)
}
#loc = loc(unknown)
#loc1 = loc("a.py":3:4 to :9)
#loc2 = loc("n"(#loc1))
#loc3 = loc(callsite(#loc2 at #loc1))
#loc4 = loc("x"("b.py":7:0))
#loc5 = loc("args[0]")"""
    segments, files = mlir.parse_mlir_locations(lines.split("\n"))
    assert segments == {1: (0, 0, 2, 4), 2: (0, 0, 2, 4), 3: (0, 0, 2, 4), 4: (0, 1, 6, 0)} and files == [
        "a.py",
        "b.py",
    ]
    mappings = source_mapper.create_mlir_sourcemap(lines).mappings
    assert mappings[:4] == [[], [(2, 0, 2, 4)], [(2, 1, 4, -4)], []]


def test_both_forms_of_metadata_in_hlo_are_read():
    old = 'ENTRY e {\n  a = f32[] add(x), metadata={op_name="n" source_file="/a/b.py" source_line=7}\n  b = f32[] c\n}'
    assert hlo.parse_hlo_dump(old).mappings[1] == [(2, 0, 6, 0)]
    new = """FileNames
1 "x.py"
2 "y.py"

FunctionNames
1 "main"

FileLocations
1 {file_name_id=2 function_name_id=1 line=153 end_line=154 column=2 end_column=31}

StackFrames
1 {file_location_id=1 parent_frame_id=1}

ENTRY %c () -> pred[] {
  ROOT %k = pred[] constant(true), metadata={op_name="opname" stack_frame_id=1}
}"""
    read = hlo.parse_hlo_dump(new)
    assert read.sources == ["y.py"] and read.mappings[-3] == [(2, 0, 152, 0)]


def test_passes_are_known_by_name_once():
    assert [p.name for p in source_mapper.all_passes()] == ["jaxpr", *[p.value for p in hlo.HloPass]]
    with pytest.raises(ValueError, match="already registered"):
        source_mapper.register_pass(source_mapper.all_passes()[0])
    assert source_mapper.filter_passes("nothing") == []


def test_a_function_without_operations_has_an_empty_map():
    (dump,) = source_mapper.generate_sourcemaps(lambda x: 3.0, source_mapper.filter_passes("jaxpr"))(1.0)
    assert dump.source_map.sources == [] and not any(dump.source_map.mappings)
    assert minijax.jit(program)(1.0).shape == ()


def test_equations_that_are_printed_once_have_their_places():
    square = minijax.jit(lambda x:
        jnp.sin(x) * 2)  # fmt: skip

    def f(x):
        y = square(square(x))
        return jnp.cos(y) + jnp.sin(y)

    (dump,) = source_mapper.generate_sourcemaps(f, source_mapper.filter_passes("jaxpr"))(1.0)
    found, start = absolute(dump), f.__code__.co_firstlineno
    assert line_of(found, "mul") == start - 2
    assert sorted(at for text, at in found.items() if " sin " in text) == [start - 2, start + 2]
    assert line_of(found, "cos") == start + 2 and line_of(found, "jit") == start + 1
