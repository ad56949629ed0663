"""Arguments of Pallas' functions that are not what they take, each in several ways: jax's exceptions and phrases."""

import compare
import numpy as np
import pallas_kernels  # noqa: F401  the short names of Pallas' modules
import pytest
from pallas.subcore_kernels import on_v6e

Y = ((8, 128), "float32")
WRONG = {"None": None, "a text": "wrong", "a float": 1.5, "a number": 3, "an object": object()}


def traced(jax, pl, pltpu, body):
    """Traces a kernel whose body gets the references to an operand, a result, memory, and three semaphores."""
    kinds = pltpu.SemaphoreType
    scratch = [pltpu.VMEM(*Y), kinds.DMA, kinds.REGULAR, pltpu.SMEM((4,), "int32")]
    out = jax.ShapeDtypeStruct(*Y)
    f = pl.pallas_call(lambda *refs: body(*refs), out, scratch_shapes=scratch)
    jax.jit(f).trace(out)


# Where a reference belongs, `w` is another thing.
IN_KERNELS = {
    "semaphore_signal": lambda pl, pltpu, plt, w, x, o, v, d, s, n: pl.semaphore_signal(w),
    "semaphore_wait": lambda pl, pltpu, plt, w, x, o, v, d, s, n: pl.semaphore_wait(w),
    "source": lambda pl, pltpu, plt, w, x, o, v, d, s, n: pltpu.async_copy(w, v, d),
    "destination": lambda pl, pltpu, plt, w, x, o, v, d, s, n: pltpu.async_copy(x, w, d),
    "semaphore": lambda pl, pltpu, plt, w, x, o, v, d, s, n: pltpu.async_copy(x, v, w),
    "load": lambda pl, pltpu, plt, w, x, o, v, d, s, n: pltpu.load(w),
    "store": lambda pl, pltpu, plt, w, x, o, v, d, s, n: pltpu.store(w, 1.0),
    "plt.load": lambda pl, pltpu, plt, w, x, o, v, d, s, n: plt.load(w),
}
PHRASES = {
    "semaphore_signal": ["Cannot signal on a non-semaphore Ref"],
    "semaphore_wait": ["Cannot wait on a non-semaphore Ref"],
    **dict.fromkeys(
        ["source", "destination", "semaphore"], ["DMA source/destination/semaphore arguments must be Refs."]
    ),
    "load": ["Can only call `load` on a `Ref`"],
    "store": ["Can only call `store` on a `Ref`"],
    "plt.load": ["Can only call `load` on a `Ref`"],
}
# jax has no type of these, and says so.
NO_VALUES = {"a text", "an object"}


def phrases_of(name, wrong):
    no_value = wrong in NO_VALUES or wrong == "None" and "load" in name + wrong or wrong == "None" and name == "store"
    if not no_value:
        return PHRASES[name]
    return ["is not a valid JAX type"] if wrong == "None" else []


@pytest.mark.oracle
@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("name", IN_KERNELS)
def test_references(name, wrong):
    def program(jax, pl, pltpu, plt):
        body = lambda *refs: IN_KERNELS[name](pl, pltpu, plt, WRONG[wrong], *refs)  # noqa: E731
        return lambda: traced(jax, pl, pltpu, body)

    compare.same_refusal(program, phrases_of(name, wrong))


OTHERS = {
    "priority": (lambda pl, pltpu, plt, x, o, v, d, s, n: pltpu.async_copy(x, v, d, priority=-1), ["DMA start priority must be non-negative: -1"]),
    "priority of no order": (lambda pl, pltpu, plt, x, o, v, d, s, n: pltpu.async_copy(x, v, d, priority=None), []),
    "device without semaphore": (lambda pl, pltpu, plt, x, o, v, d, s, n: pltpu.async_remote_copy(x, v, None, d, 1), ["Either both or neither `src_sem` and `device_id` can be set."]),
    "semaphore without device": (lambda pl, pltpu, plt, x, o, v, d, s, n: pltpu.async_remote_copy(x, v, d, d, None), ["Either both or neither"]),
    "semaphore here": (lambda pl, pltpu, plt, x, o, v, d, s, n: pltpu.async_remote_copy(x, v, 1, d, 1), ["DMA source semaphore must be a Ref."]),
    "device": (lambda pl, pltpu, plt, x, o, v, d, s, n: pl.semaphore_signal(s, device_id=1.5), ["`device_id`s must be an int32 value, but got float32"]),
    "shape of a value": (lambda pl, pltpu, plt, x, o, v, d, s, n: pltpu.store(v, 1.0), ["Invalid shape for `swap`"]),
    "shape of an atomic value": (lambda pl, pltpu, plt, x, o, v, d, s, n: plt.atomic_add(v, (slice(None), slice(None)), 1.0), ["Invalid shape for `swap`"]),
    "axis of a grid": (lambda pl, pltpu, plt, x, o, v, d, s, n: pl.program_id("i"), []),
    "axis of another dtype": (lambda pl, pltpu, plt, x, o, v, d, s, n: pl.num_programs(0.0), []),
    "bound of a loop": (lambda pl, pltpu, plt, x, o, v, d, s, n: pl.loop(0, 4.5)(lambda i: None), []),
    "bound that is a text": (lambda pl, pltpu, plt, x, o, v, d, s, n: pl.loop("a", 4)(lambda i: None), []),
}  # fmt: skip


@pytest.mark.oracle
@pytest.mark.parametrize("name", OTHERS)
def test_other_arguments_in_kernels(name):
    body, phrases = OTHERS[name]
    program = lambda jax, pl, pltpu, plt: lambda: traced(jax, pl, pltpu, lambda *refs: body(pl, pltpu, plt, *refs))  # noqa: E731
    compare.same_refusal(program, phrases)


def over_cores(jax, pl, pltpu, body=lambda x, o: None, out=None, **options):
    """Traces a function over the cores of a TPU."""
    mesh = pltpu.create_tensorcore_mesh("core", num_cores=1)
    out = jax.ShapeDtypeStruct(*Y) if out is None else out
    jax.jit(pl.kernel(body, out, mesh=mesh, **options)).trace(jax.ShapeDtypeStruct(*Y))


def cores(pltpu):
    return pltpu.create_tensorcore_mesh("core", num_cores=1)


CAPTURED = np.ones(Y[0], np.float32)


def on_references(jax, pl, pltpu, call, captures=False):
    """Traces a function over cores on a reference, which it may capture too."""

    def traced(x):
        ref = jax.new_ref(x)

        def body(*refs):
            pltpu.sync_copy(ref if captures else refs[0], refs[-1])

        return call(pl.kernel(body, jax.ShapeDtypeStruct(*Y), mesh=cores(pltpu)), ref)

    jax.jit(traced).trace(jax.ShapeDtypeStruct(*Y))


def named(jax, pl, name):
    jax.jit(pl.pallas_call(lambda o: None, jax.ShapeDtypeStruct(*Y), name=name)).trace()


OUTSIDE = {
    "stride": (lambda jax, jnp, pl, pltpu: pl.ds(0, 4, 1.5), ["Non-static stride in `dslice`"]),
    "stride that is a text": (lambda jax, jnp, pl, pltpu: pl.ds(0, 4, "1"), ["Non-static stride in `dslice`"]),
    "multiple": (lambda jax, jnp, pl, pltpu: pl.multiple_of(jnp.int32(8), None), []),
    "fractional multiple": (lambda jax, jnp, pl, pltpu: pl.multiple_of(jnp.int32(8), 1.5), []),
    "nothing broadcast": (lambda jax, jnp, pl, pltpu: pl.broadcast_to(None, (2,)), ["None is not a valid value for jnp.array"]),
    "broadcast to a size": (lambda jax, jnp, pl, pltpu: pl.broadcast_to(jnp.ones(3), 4), []),
    "condition": (lambda jax, jnp, pl, pltpu: pl.debug_check(1.5, "m"), ["debug_check takes a scalar pred as argument, got 1.5"]),
    "no condition": (lambda jax, jnp, pl, pltpu: pl.debug_check(None, "m"), ["debug_check takes a scalar pred as argument, got None"]),
    "like a text": (lambda jax, jnp, pl, pltpu: pl.empty_ref_like("wrong"), ["empty_ref_like does not support <class 'str'>"]),
    "memory like a text": (lambda jax, jnp, pl, pltpu: pltpu.VMEM.like("wrong"), []),
    "cores": (lambda jax, jnp, pl, pltpu: pltpu.InterpretParams(num_cores_or_threads=0), ["Number of cores or threads must be at least 1, but got 0."]),
    "no cores": (lambda jax, jnp, pl, pltpu: pltpu.InterpretParams(num_cores_or_threads=None), []),
    "clocks": (lambda jax, jnp, pl, pltpu: pltpu.InterpretParams(vector_clock_size=0), ["Vector clock size must be at least 1, but got 0."]),
    "short clocks": (lambda jax, jnp, pl, pltpu: pltpu.InterpretParams(vector_clock_size=2).get_vector_clock_size(2), ["Vector clock size (2) must be greater than the total number of cores/threads (2)."]),
    "name of a call": (lambda jax, jnp, pl, pltpu: named(jax, pl, 3), ["expected string or bytes-like object, got 'int'"]),
    "name over cores": (lambda jax, jnp, pl, pltpu: over_cores(jax, pl, pltpu, name=3), []),
    "results over cores": (lambda jax, jnp, pl, pltpu: over_cores(jax, pl, pltpu, out="wrong"), ["Invalid out_shape type: <class 'str'>"]),
    "scratch over cores": (lambda jax, jnp, pl, pltpu: over_cores(jax, pl, pltpu, scratch_types="wrong"), ["Unsupported abstract value type"]),
    "bodies": (lambda jax, jnp, pl, pltpu: over_cores(jax, pl, pltpu, [lambda x, o: None]), ["mesh must be a sequence when body is a sequence of callables"]),
    "a number as body": (lambda jax, jnp, pl, pltpu: over_cores(jax, pl, pltpu, 3), ["the first argument must be callable"]),
    "bodies and meshes": (lambda jax, jnp, pl, pltpu: pl.kernel([lambda x, o: None], Y, mesh=[cores(pltpu)] * 0), ["body and mesh sequences must have the same length."]),
    "no bodies": (lambda jax, jnp, pl, pltpu: pl.kernel([], jax.ShapeDtypeStruct(*Y), mesh=[]), ["At least one mesh/function pair is required"]),
    "a returned value": (lambda jax, jnp, pl, pltpu: over_cores(jax, pl, pltpu, lambda x, o: 3), ["The kernel function in mpmd_map", "should return None. It returns a PyTree"]),
    "a captured array": (lambda jax, jnp, pl, pltpu: over_cores(jax, pl, pltpu, lambda x, o: o.set(x[...] + CAPTURED)), ["The kernel function in the mpmd_map", "captures non-Ref constants"]),
    "an unknown axis": (lambda jax, jnp, pl, pltpu: over_cores(jax, pl, pltpu, lambda x, o: jax.lax.axis_index("other") and None), ["Found an unbound axis name: other"]),
    "a reference twice": (lambda jax, jnp, pl, pltpu: on_references(jax, pl, pltpu, lambda f, r: f(r, r)), ["Cannot pass the same ref into a mpmd map multiple times"]),
    "a reference that is captured too": (lambda jax, jnp, pl, pltpu: on_references(jax, pl, pltpu, lambda f, r: f(r), True), ["Closed-over ref aliases with a passed-in ref is not supported."]),
    "buffers of another class": (lambda jax, jnp, pl, pltpu: pltpu.BufferedRefBase().initialize_slots(), []),
}  # fmt: skip


@pytest.mark.oracle
@pytest.mark.parametrize("name", OUTSIDE)
def test_arguments_outside_of_kernels(name):
    make, phrases = OUTSIDE[name]
    compare.same_refusal(lambda jax, jnp, pl, pltpu: lambda: make(jax, jnp, pl, pltpu), phrases)


I8 = np.arange(8)
ON_SUBCORES = {
    "gather of a number": (lambda plsc, v, w, h: plsc.load_gather(1.5, [I8]), ["Can only call `load_gather` on a `Ref`"]),
    "gather of halves": (lambda plsc, v, w, h: plsc.load_gather(h, [I8]), ["ref.dtype=bfloat16 must be int32 or float32"]),
    "gather at a matrix": (lambda plsc, v, w, h: plsc.load_gather(v, [I8.reshape(2, 4)]), ["Indices must be a 1-D array"]),
    "gather at two": (lambda plsc, v, w, h: plsc.load_gather(v, [I8, I8]), ["The number of indices does not match"]),
    "gather of more than a register": (lambda plsc, v, w, h: plsc.load_gather(w, [np.arange(16)]), ["Gather only supports float32 arrays of shapes [(8,)], got (16,)"]),
    "mask of a gather": (lambda plsc, v, w, h: plsc.load_gather(v, [I8], mask=I8[:3] > 1), ["mask.shape=(3,) does not match the expected shape (8,)"]),
    "scatter at nothing": (lambda plsc, v, w, h: plsc.store_scatter(v, [], v[...]), ["Indices must not be empty"]),
    "shape of a scatter": (lambda plsc, v, w, h: plsc.store_scatter(v, [I8], w[...]), ["x.shape=(16,) does not match"]),
    "dtype of a scatter": (lambda plsc, v, w, h: plsc.store_scatter(v, [I8], v[...] > 1), ["val.dtype=bool != ref.dtype=float32"]),
    "mask of a scatter": (lambda plsc, v, w, h: plsc.addupdate_scatter(v, [I8], v[...], mask=I8[:3] > 1), ["mask.shape=(3,) does not match"]),
    "no reference": (lambda plsc, v, w, h: plsc.addupdate(1.5, v[...]), ["ref must be an AbstractRef or TransformedRef, got 1.5"]),
    "halves as keys": (lambda plsc, v, w, h: plsc.sort_key_val(v[...] > 1, v[...]), ["keys dtype bool should be uint32, int32 or float32"]),
    "flags as values": (lambda plsc, v, w, h: plsc.sort_key_val(v[...], v[...] > 1), ["values dtype bool should be 32 bits"]),
    "mask of a sort": (lambda plsc, v, w, h: plsc.sort_key_val(v[...], v[...], mask=v[...]), ["mask dtype float32 is not boolean"]),
    "counted flags": (lambda plsc, v, w, h: plsc.scan_count(v[...] > 1), ["x.dtype=bool must be uint32, int32 or float32"]),
    "mask of a count": (lambda plsc, v, w, h: plsc.scan_count(v[...], v[...]), ["mask.dtype=float32 is not a boolean dtype"]),
    "packed dtypes": (lambda plsc, v, w, h: plsc.pack(v[...], v[...] > 1, format=plsc.PackFormat.INTERLEAVED), ["Packed arrays must have the same dtype, got float32 and bool"]),
    "format": (lambda plsc, v, w, h: plsc.pack(v[...], v[...], format="wrong"), ["Unexpected format: wrong"]),
}  # fmt: skip


@pytest.mark.oracle
@pytest.mark.parametrize("name", ON_SUBCORES)
def test_arguments_of_operations_of_subcores(name):
    call, phrases = ON_SUBCORES[name]

    def program(jax, pl, pltpu, plsc):
        def body(x, o, *scratch):
            call(plsc, *scratch)

        mesh = plsc.VectorSubcoreMesh(core_axis_name="c", subcore_axis_name="s")
        scratch = [pltpu.VMEM((8,), "float32"), pltpu.VMEM((16,), "float32"), pltpu.VMEM((16,), "bfloat16")]
        x = jax.ShapeDtypeStruct((128,), "float32")
        f = pl.kernel(body, x, mesh=mesh, scratch_types=scratch)
        return lambda: jax.make_jaxpr(f)(x)

    with compare.on_both(on_v6e):
        compare.same_refusal(program, phrases)


@pytest.mark.oracle
def test_values_of_enumerations_and_types_of_memory():
    def told(jax, jnp, pl, pltpu):
        chips = [(c.value, str(c), isinstance(c, str), c == c.value) for c in pltpu.ChipVersion]
        tilings = [(t.value, t.shape) for t in pltpu.Tiling]
        clock = pltpu.InterpretParams(num_cores_or_threads=2).get_vector_clock_size(3)
        like = pltpu.VMEM.like(1.5), pltpu.SMEM.like(jnp.ones(3))
        return str((chips, tilings, clock, like, pl.broadcast_to([1, 2], (2, 2))))

    compare.same(told)
