"""Kernels for SparseCores are traced to jax's jaxprs."""

import compare
import numpy as np
import pallas_kernels  # noqa: F401  the short names of Pallas' modules
import pytest
from pallas.subcore_kernels import on_v6e

import minijax as jax
import minijax.numpy as jnp
from minijax.experimental import pallas as pl
from minijax.experimental.pallas import tpu as pltpu, tpu_sc as plsc

compare.SHORT_NAMES["plsc"] = "experimental.pallas.tpu_sc"
X = np.arange(128, dtype=np.float32)


def vector_mesh(plsc, **options):
    return plsc.VectorSubcoreMesh(core_axis_name="c", subcore_axis_name="s", **options)


def kernel(jnp, pl, pltpu, plsc, body, *types, **options):
    """A kernel on vector subcores, with vectors of 8 elements as scratch."""
    out = pltpu.HBM((128,), jnp.float32)
    scratch = [pltpu.VMEM(n if isinstance(n, tuple) else (n,), jnp.dtype(d)) for n, d in types]
    options |= dict(mesh=vector_mesh(plsc), scratch_types=scratch)
    return pl.kernel(lambda x, o, *refs: body(plsc, *refs), out, **options)


def do(f):
    """A body that returns nothing."""

    def body(*args):
        f(*args)

    return body


def loop(m, a):
    @m.parallel_loop(0, 8)
    def _(i):
        a[i] = a[i] * 2


def loop_with_a_carry(m, a):
    @m.parallel_loop(
        0, a[...].max().astype(np.int32), step=2, unroll=2, carry=(a[...].min().astype(np.int32), {"b": a[...]})
    )
    def last(i, carry):
        a[i] = a[i] * 2
        return carry[0] + 1, {"b": carry[1]["b"] * i}

    a[...] = last[1]["b"] + last[0].astype("float32")


def first(a):
    """The first eight elements, as a view; jax's operations do not take whole references."""
    return a.at[:8]


F, I, LONG = (8, "float32"), (8, "int32"), (16, "float32")  # noqa: E741
BODIES = {
    "cumsum": (do(lambda m, a: m.cumsum(a[...])), F),
    "cumsum_int": (do(lambda m, a: m.cumsum(a[...])), I),
    "cumsum_masked": (do(lambda m, a: m.cumsum(a[...], mask=a[...] > 0)), F),
    "cummax": (do(lambda m, a: m.cummax(a[...])), F),
    "bitcast": (do(lambda m, a: m.bitcast(a[...], np.int32)), F),
    "bitcast_wider": (do(lambda m, a: m.bitcast(a[...], np.float32)), (16, "bfloat16")),
    "first_flag": (do(lambda m, a: m.all_reduce_ffs(a[...] > 0)), F),
    "first_flags": (do(lambda m, a: m.all_reduce_ffs(a[...] > 0, reduce=2)), F),
    "count": (do(lambda m, a: m.all_reduce_population_count(a[...] > 0)), F),
    "gather": (do(lambda m, a, i: m.load_gather(a, [i[...]])), F, I),
    "scatter": (do(lambda m, a, i: m.store_scatter(a, [i[...]], a[...])), F, I),
    "scatter_masked": (do(lambda m, a, i: m.store_scatter(a, [i[...]], a[...], mask=a[...] > 0)), F, I),
    "scatter_add": (do(lambda m, a, i: m.addupdate_scatter(a, [i[...]], a[...])), F, I),
    "sort": (do(lambda m, a, i: m.sort_key_val(i[...], a[...])), F, I),
    "sort_masked": (do(lambda m, a, i: m.sort_key_val(i[...], a[...], mask=a[...] > 0, descending=True)), F, I),
    "occurrences": (do(lambda m, i: m.scan_count(i[...])), I),
    "occurrences_masked": (do(lambda m, i: m.scan_count(i[...], i[...] > 0)), I),
    "pack": (do(lambda m, a: m.pack(a[...], a[...], format=m.PackFormat.INTERLEAVED)), F),
    "pack_beside": (
        do(lambda m, a: m.pack(a[...], a[...], format=m.PackFormat.COMPRESSED, preferred_element_type="bfloat16")),
        F,
    ),
    "unpack": (do(lambda m, a: m.unpack(a[...], format=m.PackFormat.INTERLEAVED)), (16, "bfloat16")),
    "add": (do(lambda m, a: m.addupdate(first(a), a[:8])), LONG),
    "add_to_all": (do(lambda m, a: m.addupdate(a.at[...], a[...])), LONG),
    "add_compressed": (do(lambda m, a: m.addupdate_compressed(first(a), a[:8], mask=a[:8] > 0)), LONG),
    "store_compressed": (do(lambda m, a: m.store_compressed(first(a), a[:8], mask=a[:8] > 0)), LONG),
    "store_compressed_in_a_row": (
        do(lambda m, a: m.store_compressed(a.at[1], a[0], mask=a[0] > 0)),
        ((2, 8), "float32"),
    ),
    "load_expanded": (do(lambda m, a: m.load_expanded(first(a), mask=a[:8] > 0)), LONG),
    "barrier": (do(lambda m: m.subcore_barrier()),),
    "parallel_loop": (loop, F),
    "parallel_loop_with_a_carry": (loop_with_a_carry, F),
}


@pytest.mark.oracle
@pytest.mark.parametrize("name", BODIES)
def test_jaxprs(name):
    body, *types = BODIES[name]
    with compare.on_both(on_v6e):
        compare.same_jaxpr(
            lambda jax, jnp, lax, pl, pltpu, plsc: jax.jit(kernel(jnp, pl, pltpu, plsc, body, *types), inline=True), X
        )


FETCHES = {
    "element": ((2,), lambda m, lax, a: m.fetch_and_add(a.at[0], 1, subcore_id=2)),
    "scalar": ((), lambda m, lax, a: m.fetch_and_add(a, a[...] * 2, subcore_id=lax.axis_index("s"))),
    "read": ((2,), lambda m, lax, a: m.fetch_and_add(a.at[a[1]], a[0], subcore_id=a[1])),
}


@pytest.mark.oracle
@pytest.mark.parametrize("name", FETCHES)
def test_jaxprs_of_sums_on_other_subcores(name):
    shape, body = FETCHES[name]

    def program(jax, jnp, lax, pl, pltpu, plsc):
        def run(x, o, a):
            body(plsc, lax, a)

        scratch = [pltpu.SMEM(shape, jnp.int32)]
        return jax.jit(pl.kernel(run, x_type(jax), mesh=vector_mesh(plsc), scratch_types=scratch), inline=True)

    with compare.on_both(on_v6e):
        compare.same_jaxpr(program, X)


def x_type(jax):
    return jax.ShapeDtypeStruct((128,), "float32")


REFUSED = {
    "value_of_another_shape": (lambda m, a, b: m.addupdate(first(a), a[:4]), ["Value must have shape (8,), got (4,)"]),
    "value_of_another_dtype": (lambda m, a, b: m.addupdate(first(a), b[:8]), ["must have the same dtype"]),
    "mask_of_another_shape": (
        lambda m, a, b: m.store_compressed(first(a), a[:8], mask=a[:4] > 0),
        ["Mask must have shape (8,), got (4,)"],
    ),
    "mask_of_another_dtype": (lambda m, a, b: m.load_expanded(first(a), mask=b[:8]), ["Mask must be a boolean array"]),
    "fetch_from_an_array": (lambda m, a, b: m.fetch_and_add(b, 1, subcore_id=0), ["Expected a scalar ref"]),
    "fetch_of_floats": (lambda m, a, b: m.fetch_and_add(a.at[0], 1, subcore_id=0), ["Only int32 refs are supported"]),
    "fetch_from_vector_memory": (
        lambda m, a, b: m.fetch_and_add(b.at[0], 1, subcore_id=0),
        ["Only refs in SMEM memory space are supported"],
    ),
}


@pytest.mark.oracle
@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    body, phrases = REFUSED[name]

    def program(jax, jnp, lax, pl, pltpu, plsc):
        f = kernel(jnp, pl, pltpu, plsc, do(body), LONG, (16, "int32"))
        return lambda: jax.make_jaxpr(f)(X)

    with compare.on_both(on_v6e):
        compare.same_refusal(program, phrases)


@pytest.mark.oracle
def test_a_float_is_not_added_to_an_integer():
    def program(jax, jnp, lax, pl, pltpu, plsc):
        def run(x, o, a):
            plsc.fetch_and_add(a, 1.5, subcore_id=0)

        scratch = [pltpu.SMEM((), jnp.int32)]
        f = pl.kernel(run, x_type(jax), mesh=vector_mesh(plsc), scratch_types=scratch)
        return lambda: jax.make_jaxpr(f)(X)

    with compare.on_both(on_v6e):
        compare.same_refusal(program, ["The value must be a scalar of the same type as the ref (int32)"])


INDICES = {
    "gather": lambda m, p, x, i, b, s: p.sync_copy(x.at[m.Indices(i)], b),
    "gather_by_a_reference": lambda m, p, x, i, b, s: p.sync_copy(x.at[i], b),
    "gather_by_an_array": lambda m, p, x, i, b, s: p.sync_copy(x.at[m.Indices(i[...])], b),
    "gather_of_some": lambda m, p, x, i, b, s: p.async_copy(x.at[m.Indices(i, ignored_value=-1)], b, s).wait(),
    "scatter": lambda m, p, x, i, b, s: p.sync_copy(b, x.at[m.Indices(i)]),
    "scatter_add": lambda m, p, x, i, b, s: p.sync_copy(b, x.at[m.Indices(i)], add=True),
    "a_view": lambda m, p, x, i, b, s: p.sync_copy(x.at[i.at[:4]], b.at[:4]),
    "a_view_of_a_view": lambda m, p, x, i, b, s: p.sync_copy(
        x.at[m.Indices(i.at[m.window(i[0], 4)].at[:2], ignored_value=7)], b.at[:2]
    ),
    "of_a_view": lambda m, p, x, i, b, s: p.sync_copy(x.at[:32].at[i], b),
    "viewed": lambda m, p, x, i, b, s: p.sync_copy(x.at[i].at[:4], b.at[:4]),
    "beside_a_slice": lambda m, p, x, i, b, s: p.sync_copy(x.at[i, :4], b.at[:, :4]),
    "beside_a_window": lambda m, p, x, i, b, s: p.sync_copy(x.at[i, m.window(i[0], 4)], b.at[:, :4]),
    "after_a_window": lambda m, p, x, i, b, s: p.sync_copy(x.at[m.window(i[0], 8), i.at[1:]], b.at[:, :7]),
    "beside_an_ellipsis": lambda m, p, x, i, b, s: p.sync_copy(x.at[i, ...], b),
    "read": lambda m, p, x, i, b, s: b.set(b[m.Indices(i)]),
    "written": lambda m, p, x, i, b, s: b.set(b[...], idx=(i,)),
}


class Modules:
    """SparseCores' module, with dynamic slices."""

    def __init__(self, plsc, pl):
        self.Indices, self.window = plsc.Indices, pl.ds


def chosen(jax, jnp, pl, pltpu, plsc, copy, **options):
    """A kernel that copies eight indices, and then what they choose, to its first rows."""

    def run(x, i, o, indices, rows, done):
        pltpu.sync_copy(i.at[pl.ds(0, 8)], indices)
        copy(Modules(plsc, pl), pltpu, x, indices, rows, done)
        pltpu.sync_copy(rows, o.at[pl.ds(0, 8)])

    scratch = [pltpu.VMEM((8,), jnp.int32), pltpu.VMEM((8, 16), jnp.float32), pltpu.SemaphoreType.DMA]
    out = jax.ShapeDtypeStruct((8, 16), "float32")
    return pl.kernel(run, out, mesh=vector_mesh(plsc, num_cores=1), scratch_types=scratch, **options)


ROWS, CHOSEN = np.arange(1024, dtype=np.float32).reshape(64, 16), np.arange(40, 0, -1, dtype=np.int32)


@pytest.mark.oracle
@pytest.mark.parametrize("name", INDICES)
def test_jaxprs_of_copies_at_indices(name):
    with compare.on_both(on_v6e):
        compare.same_jaxpr(
            lambda jax, jnp, lax, pl, pltpu, plsc: chosen(jax, jnp, pl, pltpu, plsc, INDICES[name]), ROWS, CHOSEN
        )


@pytest.mark.oracle
def test_copies_at_the_elements_of_a_reference_are_interpreted():
    def program(jax, jnp, lax, pl, pltpu, plsc):
        return chosen(jax, jnp, pl, pltpu, plsc, INDICES["gather_by_a_reference"], interpret=True)(ROWS, CHOSEN)

    with compare.on_both(on_v6e):
        compare.same(program, rtol=0, atol=0)


def test_copies_at_indices_read_and_write_these_rows():
    gather = chosen(jax, jnp, pl, pltpu, plsc, INDICES["gather_by_an_array"], interpret=True)
    np.testing.assert_array_equal(gather(ROWS, CHOSEN), ROWS[CHOSEN[:8]])
    view = chosen(jax, jnp, pl, pltpu, plsc, INDICES["a_view"], interpret=True)
    np.testing.assert_array_equal(view(ROWS, CHOSEN)[:4], ROWS[CHOSEN[:4]])
    mesh = plsc.ScalarSubcoreMesh(axis_name="c", num_cores=1)

    @pl.kernel(out_type=jax.ShapeDtypeStruct((8,), jnp.float32), mesh=mesh, interpret=True)
    def sums(x, i, o):
        o[...] = jnp.zeros(8)
        pltpu.sync_copy(x, o.at[plsc.Indices(i, ignored_value=2)], add=True)

    np.testing.assert_array_equal(sums(jnp.arange(1.0, 5.0), jnp.array([6, 2, 6, 0])), [4, 0, 0, 0, 0, 0, 4, 0])


MIXED = {
    "a_number": lambda m, p, x, i, b, s: p.sync_copy(x.at[0, i], b.at[0, :8]),
    "two": lambda m, p, x, i, b, s: p.sync_copy(x.at[i, i], b.at[:, 0]),
    "an_array": lambda m, p, x, i, b, s: p.sync_copy(x.at[i, i[...]], b.at[:, 0]),
    "a_scalar": lambda m, p, x, i, b, s: p.sync_copy(x.at[i.at[0]], b.at[0]),
    "of_a_number": lambda m, p, x, i, b, s: p.sync_copy(x.at[m.Indices(3)], b.at[0]),
    "of_a_slice": lambda m, p, x, i, b, s: p.sync_copy(x.at[m.Indices(slice(2))], b.at[:2]),
}


@pytest.mark.oracle
@pytest.mark.parametrize("name", MIXED)
def test_indices_that_are_refused(name):
    def program(jax, jnp, lax, pl, pltpu, plsc):
        f = chosen(jax, jnp, pl, pltpu, plsc, MIXED[name])
        return lambda: jax.make_jaxpr(f)(ROWS, CHOSEN)

    with compare.on_both(on_v6e):
        compare.same_refusal(program)


def test_what_is_not_interpreted_of_indices():
    with pytest.raises(NotImplementedError, match="reads with an ignored value cannot be interpreted"):
        chosen(jax, jnp, pl, pltpu, plsc, INDICES["gather_of_some"], interpret=True)(ROWS, CHOSEN)
    simulated = pltpu.InterpretParams()
    with pytest.raises(NotImplementedError, match="a reference as an index is not simulated"):
        chosen(jax, jnp, pl, pltpu, plsc, INDICES["gather"], interpret=simulated)(ROWS, CHOSEN)


@pytest.mark.oracle
def test_jaxprs_of_kernels_on_both_kinds_of_subcores():
    def program(jax, jnp, lax, pl, pltpu, plsc):
        meshes = [plsc.ScalarSubcoreMesh(axis_name="c"), vector_mesh(plsc)]
        bodies = [do(lambda x, o: pltpu.sync_copy(x, o)), do(lambda x, o: lax.axis_index("s"))]
        return pl.kernel(bodies, jax.ShapeDtypeStruct((128,), jnp.float32), mesh=meshes)

    with compare.on_both(on_v6e):
        compare.same_jaxpr(program, X)


@pytest.mark.oracle
def test_meshes_are_those_of_jax():
    def described(jax, jnp, lax, pl, pltpu, plsc):
        meshes = [plsc.ScalarSubcoreMesh(axis_name="c"), vector_mesh(plsc), vector_mesh(plsc, num_subcores=3)]
        facts = lambda m: (m, m.shape, m.size, m.core_type, m.default_memory_space, m.supported_memory_spaces)  # noqa: E731
        return str([(facts(m), m.dimension_semantics) for m in meshes] + [plsc.get_sparse_core_info().num_lanes])

    with compare.on_both(on_v6e):
        compare.same(described)


MISTAKES = {
    "Mesh has 3 cores, but the current TPU chip has only 2 SparseCores": lambda plsc, pltpu, run: vector_mesh(
        plsc, num_cores=3
    ),
    "Mesh has 17 subcores, but the current TPU chip has only 16 subcores": lambda plsc, pltpu, run: vector_mesh(
        plsc, num_subcores=17
    ),
    "You can't use two different VectorSubcoreMeshes": lambda plsc, pltpu, run: vector_mesh(
        plsc
    ).check_is_compatible_with(vector_mesh(plsc)),
    "should have a different axis name from the TensorCoreMesh": lambda plsc, pltpu, run: plsc.ScalarSubcoreMesh(
        axis_name="c"
    ).check_is_compatible_with(pltpu.create_tensorcore_mesh("c", num_cores=1)),
    "must be uint32, int32 or float32": lambda plsc, pltpu, run: run(lambda m, a: m.cumsum(a[...]), (8, "bfloat16")),
    "is not a boolean dtype": lambda plsc, pltpu, run: run(lambda m, a: m.cumsum(a[...], mask=a[...]), F),
    "x.shape=(8,) != mask.shape=(4,)": lambda plsc, pltpu, run: run(lambda m, a: m.cumsum(a[...], mask=a[:4] > 0), F),
    "is not divisible by 32": lambda plsc, pltpu, run: run(
        lambda m, a: m.bitcast(a[...], np.float32), (15, "bfloat16")
    ),
    "Mask all-reduce only supports bool arrays, got float32": lambda plsc, pltpu, run: run(
        lambda m, a: m.all_reduce_ffs(a[...]), F
    ),
    "Compressed unpack requires an array with shape (N, 2), got (16,)": lambda plsc, pltpu, run: run(
        lambda m, a: m.unpack(a[...], format=m.PackFormat.COMPRESSED), (16, "bfloat16")
    ),
    "The number of indices does not match ref.ndim=1": lambda plsc, pltpu, run: run(
        lambda m, a, i: m.store_scatter(a, [i[...], i[...]], a[...]), F, I
    ),
}


@pytest.mark.oracle
@pytest.mark.parametrize("message", MISTAKES)
def test_errors_are_those_of_jax(message):
    def program(jax, jnp, lax, pl, pltpu, plsc):
        def run(body, *types):
            jax.make_jaxpr(kernel(jnp, pl, pltpu, plsc, do(body), *types))(X)

        return lambda: MISTAKES[message](plsc, pltpu, run)

    with compare.on_both(on_v6e):
        compare.same_refusal(program, [message])


def test_kernels_need_no_device_to_be_traced_but_one_to_be_compiled():
    f = kernel(jnp, pl, pltpu, plsc, BODIES["cumsum"][0], F)
    assert "masked_cumsum" in str(jax.make_jaxpr(f)(X))
    with pytest.raises(ValueError, match="SparseCore kernels are only supported on TPU"):
        jax.jit(f).trace(X).lower(lowering_platforms=("tpu",))
    with pytest.raises(NotImplementedError, match="swap cannot be interpreted"):
        kernel(jnp, pl, pltpu, plsc, BODIES["add"][0], LONG, interpret=True)(X)
    with pytest.raises(NotImplementedError, match="an operation of SparseCores"):
        kernel(jnp, pl, pltpu, plsc, BODIES["cumsum"][0], F, interpret=True)(X)


SIMULATED = {
    **{name: BODIES[name] for name in "gather scatter scatter_masked scatter_add add add_compressed".split()},
    **{name: BODIES[name] for name in "store_compressed load_expanded barrier parallel_loop".split()},
    "cumsum": (do(lambda m, a: a.set(m.cumsum(a[...]))), F),
    "sort": (do(lambda m, a, i: a.set(m.sort_key_val(i[...], a[...])[1])), F, I),
    "occurrences": (do(lambda m, i: i.set(m.scan_count(i[...])[0])), I),
}


@pytest.mark.parametrize("name", SIMULATED)
def test_operations_are_not_simulated(name):
    body, *types = SIMULATED[name]
    with pytest.raises(NotImplementedError, match="cannot be simulated|of SparseCores"):
        kernel(jnp, pl, pltpu, plsc, body, *types, interpret=pltpu.InterpretParams())(X)


@pytest.mark.oracle
def test_copies_are_interpreted():
    def program(jax, jnp, lax, pl, pltpu, plsc):
        mesh = plsc.ScalarSubcoreMesh(axis_name="c")
        out = jax.ShapeDtypeStruct((128,), jnp.float32)
        return pl.kernel(do(lambda x, o: pltpu.sync_copy(x, o)), out, mesh=mesh, interpret=True)(X)

    with compare.on_both(on_v6e):
        compare.same(program, rtol=0, atol=0)


def test_several_bodies_run_one_after_the_other():
    meshes = [plsc.ScalarSubcoreMesh(axis_name="c", num_cores=2), vector_mesh(plsc, num_cores=2)]

    def part(place):
        def body(x, o):
            i = jax.lax.axis_index("c")
            pltpu.sync_copy(x.at[pl.ds(16 * i, 16)], o.at[pl.ds(place + 16 * i, 16)])

        return body

    f = pl.kernel([part(0), part(32)], jax.ShapeDtypeStruct((64,), jnp.float32), mesh=meshes, interpret=True)
    x = jnp.arange(32.0)
    np.testing.assert_array_equal(f(x), np.tile(x, 2))
    np.testing.assert_array_equal(jax.vmap(f)(jnp.stack([x, -x])), np.stack([np.tile(x, 2), -np.tile(x, 2)]))
    simulated = pltpu.InterpretParams()
    with pytest.raises(NotImplementedError, match="several kernels run one after the other, with interpret=True"):
        pl.kernel([part(0), part(32)], jax.ShapeDtypeStruct((64,), jnp.float32), mesh=meshes, interpret=simulated)(x)
    with pytest.raises(NotImplementedError, match="several kernels have no derivatives"):
        jax.grad(lambda x: f(x).sum())(x)


@pytest.mark.oracle
def test_jaxprs_of_kernels_that_capture_references():
    def program(jax, jnp, lax, pl, pltpu, plsc):
        meshes = [plsc.ScalarSubcoreMesh(axis_name="c"), vector_mesh(plsc)]

        def f(x):
            one, other = jax.new_ref(x), jax.new_ref(2 * x)
            bodies = [
                do(lambda o: pltpu.sync_copy(one, o)),
                do(lambda o: (pltpu.sync_copy(other, o), pltpu.sync_copy(o, one))),
            ]
            return pl.kernel(bodies, jax.ShapeDtypeStruct((128,), jnp.float32), mesh=meshes)()

        return f

    with compare.on_both(on_v6e):
        compare.same_jaxpr(program, X)


def test_several_bodies_capture_references_and_scalars():
    meshes = [plsc.ScalarSubcoreMesh(axis_name="c", num_cores=2), vector_mesh(plsc, num_cores=2)]

    @jax.jit
    def f(x, place):
        one, other = jax.new_ref(x), jax.new_ref(2 * x)

        def first(o):
            pltpu.sync_copy(one.at[:16], o.at[:16])

        def second(o):
            pltpu.sync_copy(other.at[pl.ds(place, 16)], o.at[16:])
            pltpu.sync_copy(o.at[16:], one.at[:16])

        out = jax.ShapeDtypeStruct((32,), jnp.float32)
        return pl.kernel([first, second], out, mesh=meshes, interpret=True)(), one[...], other[...]

    x = np.arange(32, dtype=np.float32)
    y, one, other = f(x, 3)
    np.testing.assert_array_equal(y, [*x[:16], *2 * x[3:19]])
    np.testing.assert_array_equal(one, [*2 * x[3:19], *x[16:]])
    np.testing.assert_array_equal(other, 2 * x)


def test_parallel_loops_are_interpreted():
    mesh = plsc.ScalarSubcoreMesh(axis_name="c", num_cores=1)

    @pl.kernel(out_type=jax.ShapeDtypeStruct((8,), jnp.int32), mesh=mesh, interpret=True)
    def sums(x, o):
        @plsc.parallel_loop(0, 8, carry={"sum": jnp.int32(0)})
        def last(i, carry):
            o[i] = carry["sum"]
            return {"sum": carry["sum"] + x[i]}

        @plsc.parallel_loop(1, last["sum"] // 4, step=3)
        def _(i):
            o[i] = -o[i]

    expected = np.cumsum(np.arange(8)) - np.arange(8)
    expected[[1, 4]] *= -1
    np.testing.assert_array_equal(sums(jnp.arange(8)), expected)


def test_a_carry_of_another_tree_is_refused():
    with pytest.raises(ValueError, match="parallel_loop: the function must return a carry like its argument"):
        plsc.parallel_loop(0, 3, carry=1)(lambda i, c: (c, c))


@pytest.mark.parametrize("where", ["operand", "operand, by an array", "result"])
def test_pipelines_over_blocks_at_indices_are_interpreted(where):
    def double(a, o):
        o[...] = a[...] * 2

    def body(x, i, o, own):
        pltpu.sync_copy(i, own)
        eight = (lambda i: own[pl.ds(i * 8, 8)]) if "array" in where else (lambda i: own.at[pl.ds(i * 8, 8)])
        chosen, rows = (
            pl.BlockSpec((pl.Indirect(8), 128), lambda i: (eight(i), 0)),
            pl.BlockSpec((8, 128), lambda i: (i, 0)),
        )
        ins, outs = (rows, chosen) if where == "result" else (chosen, rows)
        pltpu.emit_pipeline(double, grid=(4,), in_specs=[ins], out_specs=[outs])(x, o)

    x, indices = jnp.arange(64.0)[:, None] * jnp.ones((1, 128)), jnp.arange(32)[::-1]
    with on_v6e(jax):
        mesh = vector_mesh(plsc, num_cores=1, num_subcores=1)
        options = dict(mesh=mesh, scratch_types=[pltpu.VMEM((32,), "int32")], interpret=True)
        found = pl.kernel(body, jax.ShapeDtypeStruct((32, 128), "float32"), **options)(x, indices)
    wanted = 2 * x[:32] if where == "result" else 2 * x[indices]
    np.testing.assert_array_equal(found[indices] if where == "result" else found, wanted)
