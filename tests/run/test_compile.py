"""Compiling text: sharing, options, views, custom calls and the bound form."""

import contextlib
import threading

import numpy as np
import pytest
from jaxlib import xla_client

from minijax.base import cache, dtypes
from minijax.ir.types import ShapedArray
from minijax.run import bindings, client, compile, launch, transfer
from minijax.run.array import signature

VECTOR = "tensor<4xf32>"


def module(op, name="jit_f", location=""):
    return (
        f"module @{name} {{\nfunc.func public @main(%a: {VECTOR}) -> {VECTOR} {{\n"
        f"%r = stablehlo.{op} %a, %a : {VECTOR}{location}\nreturn %r : {VECTOR}\n}}\n}}"
    )


def run(program, *values):
    arrays = [transfer.to_device(value) for value in values]
    bound = launch.bind(program, [signature(arrays[0].aval, arrays[0].sharding, False)])
    return bound([x._raw for x in arrays])[0]


def compiled(*args, **kwargs):
    before = compile.compile_count()
    return compile.compile_text(*args, **kwargs), compile.compile_count() - before


def test_equal_texts_are_compiled_once_whatever_their_locations():
    text = module("add", "jit_once")
    first, compiles = compiled(text)
    assert compiles == 1
    located = module("add", "jit_once", ' loc("jit(f)/add"("a (b.py":12:4))')
    aliased = module("add", "jit_once", " loc(#loc1)") + '\n#loc1 = loc(fused["x", "a.py":1:1])'
    called = module("add", "jit_once", ' loc(callsite("f"("a.py":1:1) at "main.py":3:1))')
    for other in (text, located, aliased, called):
        again, compiles = compiled(other)
        assert compiles == 0 and again.executable is first.executable
    assert run(first, np.arange(4, dtype=np.float32)).tolist() == [0, 2, 4, 6]
    assert compiled(module("multiply", "jit_once"))[1] == 1
    assert compiled(module("add", "jit_other"))[1] == 1


def test_strings_that_look_like_locations_are_kept():
    text = 'a = "loc(x)" loc("y") b'
    assert compile.strip_locations(text) == 'a = "loc(x)" b'
    assert compile.strip_locations("nothing here") == "nothing here"


def test_options_and_devices_take_part_in_the_key():
    text = module("add", "jit_options")
    assert compiled(text)[1] == 1
    assert compiled(text, options={"xla_llvm_disable_expensive_passes": True})[1] == 1
    assert compiled(text, options={"xla_llvm_disable_expensive_passes": True})[1] == 0
    if client.device_count() > 1:
        program, compiles = compiled(text, devices=client.devices()[1:2])
        assert compiles == 1 and program.devices == (client.devices()[1],)


def test_clear_caches_forgets_executables():
    text = module("add", "jit_cleared")
    compiled(text)
    cache.clear_caches()
    assert compiled(text)[1] == 1


def test_two_threads_compile_a_text_once():
    text, before = module("subtract", "jit_threads"), compile.compile_count()
    barrier, programs = threading.Barrier(4), []

    def work():
        barrier.wait()
        programs.append(compile.compile_text(text))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert compile.compile_count() == before + 1
    assert len({id(program.executable) for program in programs}) == 1


BAD_OPTIONS = [
    {"foo": 1},
    {"xla_backend_optimization_level": "abc"},
    {"xla_llvm_disable_expensive_passes": "false"},
    {"xla_backend_optimization_level": [1]},
    {"optimization_level": "O1"},
    [1],
]


def outcome(function):
    try:
        function()
    except Exception as error:
        return type(error), "option" in str(error)


@pytest.mark.oracle
@pytest.mark.parametrize("options", BAD_OPTIONS, ids=repr)
def test_bad_options_are_refused_as_by_jax(options):
    import jax

    lowered = jax.jit(lambda x: x + 1).lower(np.float32(1))
    expected = outcome(lambda: lowered.compile(compiler_options=options))
    assert expected == outcome(lambda: compile.compile_text(module("add"), options=options))


@pytest.mark.parametrize("options", [{"optimization_level": 9}, {"exec_time_optimization_effort": 0.5}])
def test_build_options_are_accepted(options):
    # jaxlib has no efforts from 0.11.1 on.
    missing = [name for name in options if not hasattr(xla_client.CompileOptions().executable_build_options, name)]
    with pytest.warns(UserWarning, match=missing[0]) if missing else contextlib.nullcontext():
        program = compile.compile_text(module("add"), options=options)
    assert run(program, np.ones(4, np.float32)).tolist() == [2] * 4


def test_programs_that_are_wrong_raise():
    with pytest.raises(xla_client.XlaRuntimeError):
        compile.compile_text("module { nonsense }")
    with pytest.raises(xla_client.XlaRuntimeError):
        compile.compile_text(module("add").replace("stablehlo.add", "stablehlo.foo"))


@pytest.mark.parametrize("is_parsed", [False, True])
def test_programs_give_the_same_results_whether_xla_parses_them(monkeypatch, is_parsed):
    monkeypatch.setattr(compile, "_UNPARSED", 0 if is_parsed else 10**9)
    monkeypatch.setattr(bindings, "_PROGRAMS_PER_CONTEXT", 3)
    monkeypatch.setattr(bindings, "_contexts", [])
    contexts, make = [], bindings._context
    monkeypatch.setattr(bindings, "_context", lambda: contexts.append(make()) or contexts[-1])
    for i in range(7):
        program, compiles = compiled(module("add", f"jit_parsed_{is_parsed}_{i}"))
        assert compiles == 1 and run(program, np.arange(4, dtype=np.float32)).tolist() == [0, 2, 4, 6]
    assert len(contexts) == (3 if is_parsed else 0)
    with pytest.raises(compile.JaxRuntimeError):
        compile.compile_text(module("add", f"jit_wrong_{is_parsed}").replace("return %r", "return %s"))
    with pytest.raises(compile.JaxRuntimeError):
        compile.compile_text(f"module @jit_empty_{is_parsed} {{}}")


def test_several_outputs_none_and_types_without_numpy_kin():
    text = f"""func.func public @main(%a: {VECTOR}) -> ({VECTOR}, tensor<4xbf16>, tensor<2x0xi32>) {{
      %b = stablehlo.convert %a : ({VECTOR}) -> tensor<4xbf16>
      %c = stablehlo.iota dim = 0 : tensor<2x0xi32>
      return %a, %b, %c : {VECTOR}, tensor<4xbf16>, tensor<2x0xi32> }}"""
    program = compile.compile_text(text)
    x = transfer.to_device(np.arange(4, dtype=np.float32))
    bf16 = dtypes.bfloat16
    avals = [x.aval, ShapedArray((4,), bf16, True), ShapedArray((2, 0), np.int32)]
    sigs = [signature(aval, x.sharding, flag) for aval, flag in zip(avals, (False, True, False), strict=True)]
    outputs = launch.bind(program, sigs)([x._raw])
    assert [repr(y) for y in outputs] == [
        "Array([0., 1., 2., 3.], dtype=float32)",
        "Array([0, 1, 2, 3], dtype=bfloat16, weak_type=True)",
        "Array([], shape=(2, 0), dtype=int32)",
    ]
    assert [y.committed for y in outputs] == [False, True, False]
    assert [raw.aval.shape for raw in launch.launcher(program, sigs)([x._raw])] == [(4,), (4,), (2, 0)]
    nothing = compile.compile_text("func.func public @main() { return }")
    assert launch.bind(nothing, [])([]) == []


def test_deleted_and_donated_inputs_are_named():
    text = module("add").replace(f"%a: {VECTOR}", f"%a: {VECTOR} {{tf.aliasing_output = 0 : i32}}")
    program, x = compile.compile_text(text), transfer.to_device(np.ones(4, np.float32))
    bound = launch.bind(program, [signature(x.aval, x.sharding, False)])
    assert bound([x._raw])[0].tolist() == [2] * 4
    assert x.is_deleted()
    with pytest.raises(RuntimeError, match=r"Array has been deleted with shape=float32\[4\]"):
        bound([x._raw])


def test_views_of_a_program():
    program = compile.compile_text(module("add", "jit_viewed"))
    assert program.as_text().startswith("HloModule jit_viewed")
    assert program.cost_analysis()["flops"] == 4
    assert program.memory_analysis().argument_size_in_bytes == 16


def test_lapack_is_registered_when_a_program_names_it():
    matrix, layout = "tensor<2x2xf32>", "dense<[0, 1]> : tensor<2xindex>"
    text = f"""func.func public @main(%a: {matrix}) -> {matrix} {{
      %r:2 = stablehlo.custom_call @lapack_spotrf_ffi(%a) {{api_version = 4 : i32,
        backend_config = {{uplo = 76 : ui8}}, operand_layouts = [{layout}],
        result_layouts = [{layout}, dense<> : tensor<0xindex>]}} : ({matrix}) -> ({matrix}, tensor<i32>)
      return %r#0 : {matrix} }}"""
    value = np.array([[4, 2], [2, 5]], np.float32)
    found = run(compile.compile_text(text), value)
    assert np.tril(np.asarray(found)).tolist() == [[2, 0], [1, 2]]
