"""Kernels for SparseCores are lowered to the modules and calls of jax."""

import compare
import pytest
from pallas import mosaic_calls
from pallas.subcore_kernels import KERNELS, Modules, do, modules_of, on_v6e, run, scalars, vectors
from pallas.test_subcores import BODIES, FETCHES, INDICES, chosen, kernel, vector_mesh, x_type

import minijax as jax

F = "float32"
X = ((128,), F)


def lowered(side, make):
    """What is lowered for a TPU v6e: `make(*modules)` gives a function and its arguments' types."""
    with on_v6e(side):
        f, *types = make(*modules_of(side))
        return mosaic_calls.lowered(side, f, types)


def same_calls(make, *question):
    """Requires equal calls and modules on both sides."""
    compare.same_printed("Mosaic for subcores", lambda side: mosaic_calls.described(lowered(side, make)), *question)


@pytest.mark.oracle
@pytest.mark.parametrize("name", KERNELS)
def test_modules_of_kernels(name):
    same_calls(lambda *modules: KERNELS[name](Modules(*modules)), name)


# These read scalars from vector memory, or store a row by a mask, which jax refuses to lower.
UNLIKE = {"parallel_loop", "parallel_loop_with_a_carry", "store_compressed_in_a_row"}


@pytest.mark.oracle
@pytest.mark.parametrize("name", [name for name in BODIES if name not in UNLIKE])
def test_modules_of_operations(name):
    body, *types = BODIES[name]
    same_calls(lambda jax, jnp, lax, pl, pltpu, plsc: (kernel(jnp, pl, pltpu, plsc, body, *types), X), name)


@pytest.mark.oracle
@pytest.mark.parametrize("name", FETCHES)
def test_modules_of_sums_on_other_subcores(name):
    shape, body = FETCHES[name]

    def make(jax, jnp, lax, pl, pltpu, plsc):
        def run(x, o, a):
            body(plsc, lax, a)

        scratch = [pltpu.SMEM(shape, jnp.int32)]
        return pl.kernel(run, x_type(jax), mesh=vector_mesh(plsc), scratch_types=scratch), X

    same_calls(make, name)


STREAMS = [
    "gather", "gather_by_a_reference", "gather_by_an_array", "gather_of_some", "scatter", "scatter_add", "a_view",
    "of_a_view", "beside_a_slice", "beside_an_ellipsis",
]  # fmt: skip


@pytest.mark.oracle
@pytest.mark.parametrize("name", STREAMS)
def test_modules_of_copies_at_indices(name):
    rows, indices = ((64, 16), F), ((40,), "int32")
    same_calls(
        lambda jax, jnp, lax, pl, pltpu, plsc: (chosen(jax, jnp, pl, pltpu, plsc, INDICES[name]), rows, indices), name
    )


# ---- refused ---------------------------------------------------------------------------------------------


def _copied(m, index, *types, out=((8, 16), F), **options):
    """A kernel that copies rows at `index(source, indices in HBM, those in VMEM)` to VMEM."""

    def body(x, i, o, own, rows, send, done):
        m.pltpu.sync_copy(i.at[:8], own)
        index(x, i, o, own, rows, send, done)

    scratch = [m.pltpu.VMEM((8,), m.jnp.int32), m.pltpu.VMEM((8, 16), m.jnp.float32), *[m.pltpu.SemaphoreType.DMA] * 2]
    return run(m, body, ((64, 16), F), ((40,), "int32"), out=out, scratch_types=scratch, **options)


def _remote(m, x, rows, send, done, device):
    how = dict(device_id=device, device_id_type=m.pl.DeviceIdType.LOGICAL)
    m.pltpu.make_async_remote_copy(x, rows, send, done, **how).start()


def _added(m, **options):
    """The kernel that adds 1 to a vector."""
    return run(
        m, lambda x, o, a: a.__setitem__(..., a[...] + 1), scratch_types=[m.pltpu.VMEM((8,), m.jnp.float32)], **options
    )


def _on(m, memory, shape, body, **options):
    scratch = [getattr(m.pltpu, memory)(shape, m.jnp.float32)]
    return run(m, lambda x, o, a: do(body(x, o, a)), scratch_types=scratch, **options)


def cores(m, count=1):
    return m.pltpu.create_tensorcore_mesh("d", num_cores=count)


def _both(m, scratch, body=do):
    """A kernel of scalar subcores with a body, and of vector subcores with none."""
    return m.pl.kernel([body, do], m.jax.ShapeDtypeStruct(*X), mesh=[scalars(m), vectors(m)], scratch_types=scratch), X


def _beside(m, meshes):
    """Kernels over meshes, on arrays in HBM."""
    f = m.pl.kernel([lambda x, o: None] * 2, m.pltpu.HBM(*X), mesh=meshes)
    return lambda x: f(constrained(m, x, "HBM")), X


def constrained(m, x, space):
    return x if space is None else m.pltpu.with_memory_space_constraint(x, getattr(m.pltpu, space))


def aliased(m, operand, result):
    """A kernel whose operand is aliased to its result, each in a memory space or in none."""

    def add_one(x, o):
        o[...] = x[...] + 1

    block = (8, 128), F
    out = m.jax.ShapeDtypeStruct(*block) if result is None else getattr(m.pltpu, result)(*block)
    f = m.pl.pallas_call(add_one, out, input_output_aliases={0: 0})
    return lambda x: f(constrained(m, x + 1, operand)), block


SPACES = [("HBM", None), (None, "HBM"), ("VMEM", "VMEM"), ("SMEM", None), (None, None)]


@pytest.mark.oracle
@pytest.mark.parametrize("spaces", SPACES, ids=str)
def test_aliased_operands_and_results_have_one_memory_space(spaces):
    def described(side):
        f, x = aliased(Modules(*modules_of(side)), *spaces)
        return mosaic_calls.described(mosaic_calls.lowered(side, f, [x]))

    compare.same_printed("spaces of aliases", described, str(spaces))


def test_a_kernel_runs_over_one_mesh_of_tensorcores():
    with pytest.raises(ValueError, match="You can't use two different TensorCoreMeshes."):
        lowered_here(lambda m: _beside(m, [cores(m), cores(m, 2)]))


# fmt: off
REFUSED = {
    "read of HBM": (lambda m: _on(m, "VMEM", (8,), lambda x, o, a: x[:8]), ["HBM"]),
    "write to HBM": (lambda m: _on(m, "VMEM", (8,), lambda x, o, a: o.__setitem__(slice(8), a[...])), ["HBM"]),
    "read of shared memory": (lambda m: _on(m, "VMEM_SHARED", (8,), lambda x, o, a: a[...]), ["VMEM_SHARED"]),
    "scalar of VMEM": (lambda m: _on(m, "VMEM", (8,), lambda x, o, a: a[0]), ["VMEM"]),
    "vector of SMEM": (lambda m: _on(m, "SMEM", (8,), lambda x, o, a: a[...]), ["SMEM"]),
    "strided": (lambda m: _on(m, "VMEM", (16,), lambda x, o, a: a[m.pl.ds(0, 8, stride=2)]), ["stride 1"]),
    "number after a slice": (lambda m: _on(m, "VMEM", (8, 8), lambda x, o, a: a[:, 1]), ["slice"]),
    "long vector without layouts": (lambda m: _on(m, "VMEM", (2, 16), lambda x, o, a: a[...], compiler_params=m.pltpu.CompilerParams(needs_layout_passes=False)), ["(8,)", "(2, 16)"]),
    "long gather": (lambda m: _on(m, "VMEM", (16,), lambda x, o, a: m.plsc.load_gather(a, [a[...].astype("int32")])), ["(8,)", "(16,)"]),
    "sort of a long vector": (lambda m: _on(m, "VMEM", (16,), lambda x, o, a: m.plsc.sort_key_val(a[...], a[...])), []),
    "sort of short numbers": (lambda m: _on(m, "VMEM", (8,), lambda x, o, a: m.plsc.sort_key_val(a[...], a[...].astype("bfloat16"))), ["sort_key_val", "bfloat16", "32"]),
    "square root": (lambda m: _on(m, "VMEM", (8,), lambda x, o, a: m.jnp.sqrt(a[...])), ["Unimplemented primitive in Pallas TPU lowering for sc_vector_subcore: sqrt"]),
    "numbers on a scalar subcore": (lambda m: _on(m, "SMEM", (8,), lambda x, o, a: m.jnp.arange(8), mesh=scalars), ["Unimplemented primitive in Pallas TPU lowering for sc_scalar_subcore: iota"]),
    "four numbers": (lambda m: _on(m, "VMEM", (8,), lambda x, o, a: m.jnp.arange(4)), []),
    "two keys": (lambda m: _on(m, "VMEM", (8,), lambda x, o, a: m.lax.sort((a[...], a[...]), num_keys=2)), ["key"]),
    "sort of a matrix": (lambda m: _on(m, "VMEM", (8, 8), lambda x, o, a: m.jnp.sort(a[...], 0)), []),
    "sum of a column": (lambda m: _on(m, "VMEM", (2, 8), lambda x, o, a: a[...].sum(1)), ["reductions require axes to be (0,) on SparseCore, but got (1,)."]),
    "cumsum from the end": (lambda m: _on(m, "VMEM", (8,), lambda x, o, a: m.lax.cumsum(a[...], reverse=True)), ["reverse=True"]),
    "print with a hole": (lambda m: _on(m, "VMEM", (8,), lambda x, o, a: m.pl.debug_print("a {}", a[...])), ["placeholders"]),
    "semantics": (lambda m: _added(m, compiler_params=m.pltpu.CompilerParams(dimension_semantics=("parallel",))), ["dimension_semantics"]),
    "added copy": (lambda m: _on(m, "VMEM", (128,), lambda x, o, a: m.pltpu.sync_copy(a, o, add=True)), ["add=True"]),
    "added copy of HBM": (lambda m: _on(m, "VMEM", (128,), lambda x, o, a: m.pltpu.sync_copy(x, o, add=True)), ["VMEM_SHARED"]),
    "indices in HBM": (lambda m: _copied(m, lambda x, i, o, own, rows, *_: m.pltpu.sync_copy(x.at[i.at[:8]], rows)), ["HBM"]),
    "indices between HBM": (lambda m: _copied(m, lambda x, i, o, own, rows, *_: m.pltpu.sync_copy(x.at[own], o)), []),
    "indices of VMEM": (lambda m: _copied(m, lambda x, i, o, own, rows, *_: m.pltpu.sync_copy(x.at[:8], rows.at[own])), []),
    "view at indices": (lambda m: _copied(m, lambda x, i, o, own, rows, *_: m.pltpu.sync_copy(x.at[own].at[:4], rows.at[:4])), []),
    "indices and a device": (lambda m: _copied(m, lambda x, i, o, own, rows, send, done: _remote(m, x.at[own], rows, send, done, 1)), []),
    "several numbers of cores": (lambda m: (m.pl.kernel([lambda x, o: None] * 2, m.jax.ShapeDtypeStruct(*X), mesh=[scalars(m), vectors(m, num_cores=1)]), X), ["number of"]),
    "memory of one of both kinds": (lambda m: _both(m, [m.pltpu.VMEM((8,), F)]), ["MPMD map with more than one mesh requires scratch_type to have a `core_type` specified"]),
    "semaphores of one of both kinds": (lambda m: _both(m, [m.pltpu.SemaphoreType.DMA((2,))]), ["is missing it"]),
    "unnamed subcore": (lambda m: _both(m, [m.pltpu.SemaphoreType.REGULAR @ vectors(m)], lambda x, o, s: m.pl.semaphore_signal(s, 1)), ["When addressing sc_vector_subcore from sc_scalar_subcore", "the following axes are missing from the mesh"]),
    "unnamed TensorCore": (lambda m: run(m, lambda x, o, s: m.pl.semaphore_signal(s, 1), mesh=scalars, out=[m.jax.ShapeDtypeStruct(*X), m.pltpu.SemaphoreType.REGULAR @ cores(m)]), ["When addressing tc from sc_scalar_subcore"]),
    "axes of others": (lambda m: run(m, lambda x, o, s: m.pl.semaphore_signal(s, 1, device_id={"c": 1, "d": 0}), mesh=scalars, out=[m.jax.ShapeDtypeStruct(*X), m.pltpu.SemaphoreType.REGULAR @ cores(m)]), ["Unrecognized axes in device_id"]),
    "scalar of another's memory": (lambda m: _both(m, [m.pltpu.SMEM((8,), F) @ vectors(m)], lambda x, o, a: a.__setitem__(0, a[0] + 1)), []),
    "result in VMEM": (lambda m: run(m, lambda x, o: None, out=m.pltpu.VMEM((16,), F) @ vectors(m)), ["Invalid core type for VMEM: sc_vector_subcore"]),
    "semaphores of vector subcores": (lambda m: run(m, lambda x, o: None, out=m.pltpu.SemaphoreType.DMA((2,))), ["Invalid kernel type for semaphore"]),
    "spaces of an alias": (lambda m: aliased(m, "HBM", "VMEM"), ["In/out memory space conflict for alias 0->0"]),
    "TensorCores and others": (lambda m: _beside(m, [vectors(m), cores(m)]), ["mpmd_map does not support TC kernels yet"]),
    "TensorCores first": (lambda m: _beside(m, [cores(m), vectors(m)]), ["is not compatible with"]),
    "TensorCores twice": (lambda m: _beside(m, [cores(m), cores(m)]), ["is not compatible with"]),
    "another number of cores": (lambda m: _beside(m, [vectors(m), scalars(m, num_cores=1)]), ["should have the same core axis name and number of cores as the"]),
    "several default spaces": (lambda m: (m.pl.kernel([lambda x, o: None] * 2, m.jax.ShapeDtypeStruct(*X), mesh=[vectors(m), cores(m)]), X), ["Multiple meshes with different default memory spaces are not supported."]),
    "gather of a TensorCore": (lambda m: (m.pl.pallas_call(lambda x, o: o.__setitem__(slice(8), m.plsc.load_gather(x, [m.jnp.arange(8)])), m.jax.ShapeDtypeStruct(*X)), X), ["Unimplemented primitive in Pallas TPU lowering for tc: gather"]),
    "bits of a TensorCore": (lambda m: (m.pl.pallas_call(lambda x, o: o.__setitem__(..., m.plsc.bitcast(x[...], "int32") * 1.0), m.jax.ShapeDtypeStruct(*X)), X), ["Unimplemented primitive in Pallas TPU lowering for tc: bitcast"]),
    "tiling of a TensorCore": (lambda m: (m.pl.pallas_call(lambda x, o: None, m.jax.ShapeDtypeStruct(*X), compiler_params=m.pltpu.CompilerParams(use_tc_tiling_on_sc=True)), X), ["use_tc_tiling_on_sc"]),
}
# fmt: on


@pytest.mark.oracle
@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    make, phrases = REFUSED[name]
    compare.same_refusal(lambda jax: lambda: lowered(jax, lambda *modules: make(Modules(*modules))), phrases)


@pytest.mark.oracle
def test_chips_without_sparse_cores_are_refused():
    def program(jax):
        device = jax.sharding.AbstractDevice("TPU v4", 1, "tpu")
        f, x = run(modules_of(jax), do)

        def lower():
            with jax.sharding.use_abstract_mesh(jax.sharding.AbstractMesh((), (), abstract_device=device)):
                mosaic_calls.lowered(jax, f, [x])

        return lower

    with compare.on_both(on_v6e):
        compare.same_refusal(program, [])


def lowered_here(make):
    """What minijax lowers for a TPU v6e."""
    return mosaic_calls.described(lowered(jax, lambda *modules: make(Modules(*modules))))


def test_rows_are_stored_by_masks():
    body, *types = BODIES["store_compressed_in_a_row"]
    text = lowered_here(lambda m: (kernel(m.jnp, m.pl, m.pltpu, m.plsc, body, *types), X))
    assert ": vector<8xi1> to vector<1x8xi1>" in text


def test_sizes_of_the_mesh_are_known():
    text = lowered_here(lambda m: _on(m, "SMEM", (8,), lambda x, o, a: a.__setitem__(0, m.pl.num_programs(1) * 1.0)))
    assert "arith.constant 1.600000e+01 : f32" in text


def test_other_subcores_are_refused():
    def make(m):
        def body(x, o, s):
            m.pl.semaphore_signal(s, 1, device_id={"s": 1})

        return run(m, body, scratch_types=[m.pltpu.SemaphoreType.REGULAR])

    with pytest.raises(NotImplementedError, match="device_id names other subcores by"):
        lowered_here(make)


def test_several_kernels_capture_references():
    def make(m):
        def f(x):
            ref = m.jax.new_ref(x)

            def first(o):
                m.pltpu.sync_copy(ref, o)

            def second(o):
                m.pltpu.sync_copy(o, ref)

            out = m.jax.ShapeDtypeStruct(*X)
            return m.pl.kernel([first, second], out, mesh=[scalars(m), vectors(m)])(), ref[...]

        return f, X

    text = lowered_here(make)
    assert text.count("(%arg0: i32, %arg1: memref<128xf32") == 1 and text.count("(%arg0: i32, %arg1: i32, ") == 1
    assert "@first" in text and "@second" in text and "output_tuple_indices = [1], operand_index = 0" in text


def test_flags_in_memory_are_refused():
    def make(m):
        return run(m, lambda x, o, a: do(a[...]), scratch_types=[m.pltpu.VMEM((8,), m.jnp.bool_)])

    with pytest.raises(NotImplementedError, match="references to flags are not supported"):
        lowered_here(make)


def test_debug_prints_the_kernels_and_their_module(capsys):
    def make(m):
        return m.pl.kernel(
            [lambda x, o: m.pltpu.sync_copy(x, o), do],
            m.jax.ShapeDtypeStruct(*X),
            mesh=[scalars(m), vectors(m)],
            debug=True,
        ), X

    lowered_here(make)
    out = capsys.readouterr().out
    assert out.count("The kernel jaxpr for mpmd_map") == 2
    assert "The Mosaic module for mpmd_map" in out and "tpu.enqueue_dma" in out
