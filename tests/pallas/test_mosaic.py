"""Kernels lowered for TPUs: their modules and calls are jax's, and so are the errors."""

import compare
import pytest
from pallas import mosaic_calls
from pallas.mosaic_kernels import SHARDED, B, F, I, Modules
from pallas.mosaic_pipelines import KERNELS

import minijax as jax
import minijax.numpy as jnp
from minijax.experimental.pallas import tpu as pltpu

# jax writes casts to the same shape where types of one shape differ in the mesh.
OWN = {"ring"}


@pytest.mark.oracle
@pytest.mark.parametrize("name", [name for name in (*KERNELS, *SHARDED) if name not in OWN])
def test_calls_are_those_of_jax(name):
    compare.same_printed("Mosaic", lambda side: mosaic_calls.calls_of(side, name), name)


ADDITION = """
module attributes {stable_mosaic.version = 11 : i64} {
  func.func @kernel(%arg0: i32, %arg1: memref<8x128xf32, #tpu.memory_space<vmem>>, %arg2: memref<8x128xf32, #tpu.memory_space<vmem>>) attributes {dimension_semantics = [#tpu.dimension_semantics<arbitrary>], iteration_bounds = array<i64: 2>, scalar_prefetch = 0 : i64, scratch_operands = 0 : i64, tpu.core_type = #tpu.core_type<tc>, window_params = [{transform_indices = @transform_0, window_bounds = array<i64: 8, 128>}, {transform_indices = @transform_1, window_bounds = array<i64: 8, 128>}]} {
    %c0 = arith.constant 0 : index
    %c0_0 = arith.constant 0 : index
    %0 = vector.load %arg1[%c0, %c0_0] : memref<8x128xf32, #tpu.memory_space<vmem>>, vector<8x128xf32>
    %cst = arith.constant 1.000000e+00 : f32
    %1 = vector.broadcast %cst : f32 to vector<8x128xf32>
    %2 = arith.addf %0, %1 : vector<8x128xf32>
    %c0_1 = arith.constant 0 : index
    %c0_2 = arith.constant 0 : index
    %3 = vector.load %arg2[%c0_1, %c0_2] : memref<8x128xf32, #tpu.memory_space<vmem>>, vector<8x128xf32>
    tpu.vector_store %arg2[%c0_1, %c0_2], %2 {strides = array<i32>} : memref<8x128xf32, #tpu.memory_space<vmem>>, vector<8x128xf32>, 
    return
  }
  func.func @transform_0(%arg0: i32) -> (i32, i32) {
    %c0_i32 = arith.constant 0 : i32
    %c0_i32_0 = arith.constant 0 : i32
    return %arg0, %c0_i32 : i32, i32
  }
  func.func @transform_1(%arg0: i32) -> (i32, i32) {
    %c0_i32 = arith.constant 0 : i32
    %c0_i32_0 = arith.constant 0 : i32
    return %arg0, %c0_i32 : i32, i32
  }
}
"""


def _add_one(m: Modules):
    def kernel(x, o):
        o[...] = x[...] + 1

    spec = m.pl.BlockSpec((8, 128), lambda i: (i, 0))
    return m.pl.pallas_call(kernel, m.jax.ShapeDtypeStruct((16, 128), F), grid=2, in_specs=[spec], out_specs=spec)


def test_the_module_of_a_kernel_has_its_blocks_as_windows():
    m = mosaic_calls.modules_of(jax)
    text = mosaic_calls.described(mosaic_calls.lowered(jax, _add_one(m), [((16, 128), F)]))
    module, config = text.split("\n{", 1)
    assert module.strip() == ADDITION.strip()
    assert config.startswith('"custom_call_config": {"serialization_format": 1, "needs_layout_passes": true}}\n')


def test_several_devices_need_shard_map():
    m = mosaic_calls.modules_of(jax)
    mesh = jax.make_mesh((2,), ("x",))
    x = jax.device_put(jnp.zeros((16, 128)), jax.NamedSharding(mesh, jax.P("x")))
    with pytest.raises(NotImplementedError, match="Mosaic kernels cannot be automatically partitioned"):
        jax.jit(_add_one(m)).trace(x).lower(lowering_platforms=("tpu",))


@pytest.mark.oracle
def test_flags_of_the_compiler_are_those_of_jax():
    def text(side):
        flags = dict(a=True, b=3)
        make, types = _value(_PLUS, X, compiler_params=lambda m: m.pltpu.CompilerParams(flags=flags))
        return mosaic_calls.described(mosaic_calls.lowered(side, make(mosaic_calls.modules_of(side)), types))

    compare.same_printed("Mosaic", text, "flags")


# ---- errors -----------------------------------------------------------------------------------------------


def _body(f, *types, out=None, **options):
    """A program that calls a kernel with the body `f(modules, *references)`."""

    def make(m):
        made = {k: v(m) if callable(v) else v for k, v in options.items()}
        shape, dtype = out or types[0]
        return m.pl.pallas_call(lambda *refs: f(m, *refs), m.jax.ShapeDtypeStruct(shape, m.jnp.dtype(dtype)), **made)

    return make, types


def _value(f, *types, **options):
    return _body(lambda m, *refs: refs[-1].__setitem__(..., f(m, *[r[...] for r in refs[:-1]])), *types, **options)


def _keyed(
    draw, make_key=lambda m, words: m.pltpu.to_pallas_key(m.jax.random.wrap_key_data(words)), words=(2,), space="SMEM"
):
    """A kernel that stores `draw(modules, reference to keys)`."""

    def make(m):
        def body(key, o):
            o[...] = draw(m, key).astype(o.dtype)

        spec = m.pl.BlockSpec(memory_space=getattr(m.pltpu, space))
        inner = m.pl.pallas_call(body, m.jax.ShapeDtypeStruct((8, 128), m.jnp.dtype("uint32")), in_specs=[spec])
        return lambda w: inner(make_key(m, w))

    return make, ((words, "uint32"),)


def _blocks(shape, index_map, **spec):
    return lambda m: [m.pl.BlockSpec(shape, index_map, **{k: v(m) for k, v in spec.items()})]


X, XI = ((8, 128), F), ((8, 128), I)
ROWS = dict(out_specs=lambda m: m.pl.BlockSpec((8, 128), lambda i: (i, 0)), grid=(4,))
TALL = ((32, 128), F)
_PLUS = lambda m, x: x + 1  # noqa: E731
# fmt: off
ERRORS = {
    "sort": (_value(lambda m, x: m.jnp.sort(x), X), "Unimplemented primitive in Pallas TPU lowering for tc: sort."),
    "cumsum": (_value(lambda m, x: m.jnp.cumsum(x, 0), X), "Unimplemented primitive in Pallas TPU lowering for tc: cumsum."),
    "expm1": (_value(lambda m, x: m.jnp.expm1(x), X), "Unimplemented primitive in Pallas TPU lowering for tc: expm1."),
    "dynamic_slice": (_value(lambda m, x: m.lax.dynamic_slice(x, (m.pl.program_id(0), 0), (8, 128)), X, grid=(1,)), "Unimplemented primitive in Pallas TPU lowering for tc: dynamic_slice."),
    "unsigned sum": (_value(lambda m, x: m.jnp.max(x, 0, keepdims=True), ((8, 128), "uint32"), out=((1, 128), "uint32")), "Reductions over unsigned integers not implemented."),
    "precision": (_value(lambda m, x: m.jnp.dot(x, x, precision="high"), ((128, 128), F)), "Unsupported dot precision: "),
    "reciprocal": (_value(lambda m, x: m.pl.reciprocal(x), ((8, 128), B)), "Only float32 is supported."),
    "scan of rows": (_value(lambda m, x: x + m.lax.scan(lambda c, y: (c + y, None), x[0], x)[0][None], X), "Scan with 1 extensive argument(s) is not supported."),
    "scan to rows": (_value(lambda m, x: m.lax.scan(lambda c, _: (c + 1, c), x[0], None, length=8)[1], X), "Scan with 1 extensive output(s) is not supported."),
    "reverse scan": (_value(lambda m, x: m.lax.scan(lambda c, _: (c + 1, None), x, None, length=8, reverse=True)[0], X), ""),
    "printed flag": (_body(lambda m, x, o: (m.pl.debug_print("x {}", x[0, 0] > 0), o.__setitem__(..., x[...]))[1], X), "All arguments must be 32-bit integers when using placeholders"),
    "scalar to VMEM": (_body(lambda m, x, o: o.__setitem__((0, 0), x[0, 0]), X), "Cannot store scalars to VMEM"),
    "read of ANY": (_value(_PLUS, X, in_specs=_blocks(None, None, memory_space=lambda m: m.pl.ANY)), "Loads are only allowed on VMEM and SMEM references."),
    "vector of SMEM": (_value(_PLUS, X, in_specs=_blocks(None, None, memory_space=lambda m: m.pltpu.SMEM)), "Can only load scalars from SMEM"),
    "copied flags": (_body(lambda m, x, o, s, sem: (m.pltpu.async_copy(x, s, sem).wait(), o.__setitem__(..., m.jnp.where(s[...], 1.0, 0.0)))[1], ((8, 128), "bool"), out=X, in_specs=_blocks(None, None, memory_space=lambda m: m.pl.ANY), scratch_shapes=lambda m: [m.pltpu.VMEM((8, 128), m.jnp.bool_), m.pltpu.SemaphoreType.DMA]), "DMAs with bool dtypes are not supported."),
    "strided copy": (_body(lambda m, x, o, s, sem: (m.pltpu.async_copy(x.at[m.pl.ds(0, 8, 2)], s, sem).wait(), o.__setitem__(..., s[...]))[1], ((16, 128), F), out=X, in_specs=_blocks(None, None, memory_space=lambda m: m.pl.ANY), scratch_shapes=lambda m: [m.pltpu.VMEM((8, 128), m.jnp.float32), m.pltpu.SemaphoreType.DMA]), "Strided slices of references are unsupported."),
    "added copy": (_body(lambda m, x, o, s, sem: m.pltpu.make_async_copy(x, s, sem).start(add=True), X, in_specs=_blocks(None, None, memory_space=lambda m: m.pl.ANY), scratch_shapes=lambda m: [m.pltpu.VMEM((8, 128), m.jnp.float32), m.pltpu.SemaphoreType.DMA]), "DMA with add=True is not supported."),
    "rows of 4": (_value(_PLUS, TALL, grid=(8,), in_specs=_blocks((4, 128), lambda i: (i, 0)), out_specs=lambda m: m.pl.BlockSpec((4, 128), lambda i: (i, 0))), "The Pallas TPU lowering currently requires that the last two dimensions of your block shape are divisible by 8 and 128 respectively, or be equal to the respective dimensions of the overall array. Block spec for args[0] in pallas_call"),
    "rank 0": (_value(_PLUS, ((), F)), "The Pallas TPU lowering currently supports only blocks of rank >= 1. "),
    "part of ANY": (_body(lambda m, x, o: None, TALL, in_specs=_blocks((8, 128), lambda i: (i, 0), memory_space=lambda m: m.pl.ANY), **ROWS), "supports in memory space ANY only blocks having the same block shape as the array shape and a trivial index_map (returning all 0s)."),
    "three buffers": (_body(lambda m, x, o: None, TALL, in_specs=_blocks((8, 128), lambda i: (i, 0), pipeline_mode=lambda m: m.pl.Buffered(3)), **ROWS), "Only single (1) and double (2) buffering are supported. Got 3."),
    "revisited buffers": (_body(lambda m, x, o: None, TALL, in_specs=_blocks((8, 128), lambda i: (i, 0), pipeline_mode=lambda m: m.pl.Buffered(2, revisit=m.pl.RevisitMode.ANY)), **ROWS), "RevisitMode.ANY is not supported with double buffering."),
    "semantics": (_body(lambda m, x, o: None, TALL, in_specs=_blocks((8, 128), lambda i: (i, 0)), compiler_params=lambda m: m.pltpu.CompilerParams(dimension_semantics=("parallel", "parallel")), **ROWS), "Length of grid does not match length of dimension semantics. len(grid)=1, len(dimension_semantics)=2"),
    "one element dimension": (_body(lambda m, x, o: None, TALL, in_specs=lambda m: [m.pl.BlockSpec((m.pl.Element(8), 128), lambda i: (i * 8, 0))], **ROWS), "All block dimensions must be Elements or none of them can be Elements."),
    "words of a key": (_keyed(lambda m, key: m.jax.random.key_data(key[...])[0, 0] + m.jnp.zeros((8, 128), "uint32")), "key_data not support for Pallas PRNG keys"),
    "bits of 16": (_keyed(lambda m, key: m.jax.random.bits(key[...], (8, 128), "uint16")), "Only 32-bit PRNG supported"),
    "one number": (_keyed(lambda m, key: m.jax.random.bits(key[...], ()) + m.jnp.zeros((8, 128), "uint32")), "random_bits only supports rank>=2 outputs."),
    "key of a number": (_keyed(lambda m, key: m.jax.random.bits(m.jax.random.key(3, impl="pallas_tpu"), (8, 128))), "All seed data must be scalar integers"),
    "split key": (_keyed(lambda m, key: m.jax.random.bits(m.jax.random.split(key[...])[0], (8, 128))), "Unimplemented primitive in Pallas TPU lowering for tc: random_split."),
    "key in VMEM": (_keyed(lambda m, key: m.jax.random.bits(key[...], (8, 128)), space="VMEM"), "PRNG keys must be loaded from SMEM. Did you set the memory space to MemorySpace.SMEM in the BlockSpec for the PRNG key input?"),
    "many keys": (_keyed(lambda m, key: m.jax.random.bits(key[1], (8, 128)), lambda m, words: m.jax.random.wrap_key_data(words, impl="pallas_tpu"), (3, 1, 2)), "Can only load a single key per load."),
    "flag": (_value(_PLUS, X, compiler_params=lambda m: m.pltpu.CompilerParams(flags={"a": "x"})), "invalid flag value: "),
    "collective without barrier": (_value(_PLUS, X, compiler_params=lambda m: m.pltpu.CompilerParams(collective_id=1)), "collective_id has to be unspecified or None when not using a custom barrier"),
    "barrier without collective": (_body(lambda m, x, o: m.pl.semaphore_wait(m.pltpu.get_barrier_semaphore(), 1), X), "collective_id has to be specified when using a custom barrier"),
}
# fmt: on


@pytest.mark.oracle
@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_those_of_jax(name):
    (make, types), phrase = ERRORS[name]

    def program(jax):
        return lambda: mosaic_calls.lowered(jax, make(mosaic_calls.modules_of(jax)), types)

    compare.same_refusal(program, [phrase])


def test_errors_of_blocks_name_the_next_block_that_is_allowed():
    (make, types), _ = ERRORS["rows of 4"]
    with pytest.raises(ValueError, match=r"The next larger block that is allowed is \(8, 128\)"):
        mosaic_calls.lowered(jax, make(mosaic_calls.modules_of(jax)), types)


def test_vectors_need_blocks_of_whole_tiles():
    make, types = _value(_PLUS, ((2048,), F), grid=(2,), in_specs=_blocks((1000,), lambda i: i), out_specs=lambda m: m.pl.BlockSpec((1000,), lambda i: i))  # fmt: skip
    with pytest.raises(ValueError, match="requires that rank 1 block shapes, either 1"):
        mosaic_calls.lowered(jax, make(mosaic_calls.modules_of(jax)), types)


def test_debug_prints_the_jaxpr_and_the_module(capsys):
    make, types = _value(_PLUS, X, debug=True)
    mosaic_calls.lowered(jax, make(mosaic_calls.modules_of(jax)), types)
    out = capsys.readouterr().out
    assert (
        "The kernel jaxpr for pallas_call" in out and "The Mosaic module for pallas_call" in out and "arith.addf" in out
    )


def test_pallas_keys_are_used_in_kernels_only():
    key = pltpu.to_pallas_key(jax.random.PRNGKey(0))
    assert str(key.dtype) == "key<pl>" and key.shape == () and jax.random.key_data(key).shape == (1, 2)
    with pytest.raises(NotImplementedError, match="Cannot split a Pallas key. Use fold_in instead"):
        jax.random.split(key)
    with pytest.raises(ValueError, match=r"block_size \(1\) and tile_size \(2\) must have the same length."):
        pltpu.sample_block(jax.random.uniform, key, (8,), (8, 128), (8, 128))
