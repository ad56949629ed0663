"""Kernels for SparseCores, each a function of `Modules` that gives a function and the types of its arguments."""

import contextlib
import importlib
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

F, I, U = "float32", "int32", "uint32"  # noqa: E741
X = ((128,), F)
KERNELS: dict[str, Callable] = {}


class Modules(NamedTuple):
    """The modules that kernels are written with, of jax or of minijax."""

    jax: Any
    jnp: Any
    lax: Any
    pl: Any
    pltpu: Any
    plsc: Any


def modules_of(side: ModuleType) -> Modules:
    """The modules that kernels are written with."""
    names = ("numpy", "lax", *[f"experimental.pallas{name}" for name in ("", ".tpu", ".tpu_sc")])
    return Modules(side, *[importlib.import_module(f"{side.__name__}.{name}") for name in names])


def on_v6e(side: ModuleType) -> contextlib.AbstractContextManager:
    """Context manager: says that programs are for a TPU v6e, which has SparseCores."""
    device = side.sharding.AbstractDevice("TPU v6 lite", 1, "tpu")
    return side.sharding.use_abstract_mesh(side.sharding.AbstractMesh((), (), abstract_device=device))


def kernel(make: Callable) -> Callable:
    """Adds a kernel under the name of its function."""
    KERNELS[make.__name__.strip("_")] = make
    return make


def vectors(m, **options):
    return m.plsc.VectorSubcoreMesh(core_axis_name="c", subcore_axis_name="s", **options)


def scalars(m, **options):
    return m.plsc.ScalarSubcoreMesh(axis_name="c", **options)


def run(m, body, *types, mesh=vectors, out=X, **options):
    """A kernel whose body gets the references to its operands, its result and its scratch, and returns nothing."""

    def whole(*refs):
        body(*refs)

    result = m.jax.ShapeDtypeStruct(*out) if isinstance(out, tuple) else out
    return (m.pl.kernel(whole, result, mesh=mesh(m), **options), *(types or (X,)))


def bodies(name: str, body: Callable, /, *scratch, mesh=vectors, **options):
    """Adds a kernel that runs `body(modules, source, result, *scratch)`."""

    def make(m):
        made = {k: v(m) if callable(v) else v for k, v in options.items()}
        refs = [memory(m) if callable(memory) else m.pltpu.VMEM(*memory) for memory in scratch]
        return run(m, lambda *refs: body(m, *refs), mesh=mesh, scratch_types=refs, **made)

    KERNELS[name] = make


def values(name: str, f: Callable, /, *scratch, **options):
    """Adds a kernel that stores `f(modules, *values of the scratch)` in the first of these."""

    def body(m, x, o, *refs):
        refs[0][...] = f(m, *[r[...] for r in refs]).astype(refs[0].dtype)

    bodies(name, body, *scratch, **options)


def do(*_: Any) -> None:
    """Ends a line that does several things."""


A, AI, AU, WIDE, ROWS = ((8,), F), ((8,), I), ((8,), U), ((64,), F), ((2, 16), F)
NUMBERS = lambda m: m.pltpu.SMEM((2,), m.jnp.int32)  # noqa: E731
DMA = lambda m: m.pltpu.SemaphoreType.DMA  # noqa: E731
SIGNALS = lambda m: m.pltpu.SemaphoreType.REGULAR((2,))  # noqa: E731
SHARED = lambda m: m.pltpu.VMEM_SHARED((16, 8), m.jnp.float32)  # noqa: E731
_at = lambda m, i, n=8: m.pl.ds(i, n)  # noqa: E731
_set = lambda ref, index, value: ref.__setitem__(index, value)  # noqa: E731

# A kernel in a line.
# fmt: off

# ---- values ----------------------------------------------------------------------------------------------

for _name in "exp abs neg sign".split():
    values(_name, lambda m, a, _n=_name: getattr(m.lax, _n)(a), A)
for _name in "add sub mul div rem max min".split():
    values(f"{_name}_floats", lambda m, a, b, _n=_name: getattr(m.lax, _n)(a, b), A, A)
for _name in "bitwise_and bitwise_or bitwise_xor shift_left shift_right_logical shift_right_arithmetic div max".split():
    values(f"{_name}_ints", lambda m, a, b, _n=_name: getattr(m.lax, _n)(a, b), AI, AI)
    values(f"{_name}_unsigned", lambda m, a, b, _n=_name: getattr(m.lax, _n)(a, b), AU, AU)
for _name in "eq ne lt le gt ge".split():
    values(_name, lambda m, a, b, _n=_name: m.jnp.where(getattr(m.lax, _n)(a, b), a, b), A, A)
for _name in "sum max min any all cumsum".split():
    values(f"{_name}_of_floats", lambda m, a, _n=_name: a + getattr(m.jnp, _n)(a), A)
    values(f"{_name}_of_ints", lambda m, a, _n=_name: a + getattr(m.jnp, _n)(a), AI)
values("clip", lambda m, a: m.jnp.clip(a, 0, 1), A)
values("not_flags", lambda m, a: m.jnp.where(~(a > 0), a, 1), A)
values("arange", lambda m, a: a + m.jnp.arange(8), AI)
values("reversed", lambda m, a: a[::-1], A)
values("sorted", lambda m, a: m.jnp.sort(a), A)
values("sorted_with_another", lambda m, a, b: m.lax.sort((a, b), num_keys=1)[1], A, AI)
values("argsort", lambda m, a: m.jnp.argsort(a), A)
values("take", lambda m, a, i: a.at[i].get(mode="promise_in_bounds"), A, AI)
values("an_element", lambda m, a: a + a[3], A)
values("rotated", lambda m, a: m.jnp.concatenate([a[4:], a[:4]]), A)
values("converted", lambda m, a: a.astype("int32") + a.astype("bfloat16"), A)
values("bits", lambda m, a: m.lax.bitcast_convert_type(a, "int32"), A)
values("halves", lambda m, a: a + 1, ((16,), "bfloat16"))
values("jitted", lambda m, a: m.jax.jit(lambda x: x + 1)(a), A)

# ---- references ------------------------------------------------------------------------------------------

bodies("copies", lambda m, x, o, a: do(m.pltpu.sync_copy(x, a), m.pltpu.sync_copy(a, o)), X)
bodies("row_of_a_matrix", lambda m, x, o, a: _set(a, (1, _at(m, 0)), a[0, _at(m, 8)]), ROWS)
bodies("matrix", lambda m, x, o, a: _set(a, ..., a[...] + 1), ROWS)
bodies("row_by_number", lambda m, x, o, a: _set(a, (m.lax.axis_index("c"), _at(m, 0)), a[0, _at(m, 8)]), ROWS)
bodies("view_of_a_row", lambda m, x, o, a: _set(a.at[1], _at(m, 0), a.at[m.pl.ds(0, 1)][0, _at(m, 8)]), ROWS)
bodies("bits_of_a_reference", lambda m, x, o, a: _set(a, ..., a.bitcast("int32")[...].astype(F)), ROWS)
bodies("scalars", lambda m, x, o, n: _set(n, m.lax.axis_index("c"), n[1] + 1), NUMBERS)
bodies("scalars_of_a_scalar_subcore", lambda m, x, o, n: _set(n, 0, n[1] * 2 + m.lax.axis_index("c")), NUMBERS, mesh=scalars)
bodies("copy_of_a_scalar_subcore", lambda m, x, o: m.pltpu.sync_copy(x, o), mesh=scalars)
bodies("copy_of_a_row", lambda m, x, o, a, b: do(m.pltpu.sync_copy(b.at[1], a), m.pltpu.sync_copy(a, b.at[m.lax.axis_index("s")])), A, SHARED)
bodies("copies_of_a_tree", lambda m, x, o, a, b: m.pltpu.sync_copy((x.at[:8], x.at[8:16]), (a, b)), A, A)
bodies("async_copy", lambda m, x, o, a, s: m.pltpu.async_copy(x.at[_at(m, m.pl.multiple_of(8 * m.lax.axis_index("s"), 8))], a, s, priority=1).wait(), A, DMA)
bodies("gather_of_a_matrix", lambda m, x, o, a, i: _set(a, (0, _at(m, 0)), m.plsc.load_gather(a, [i[...], i[...]])), ROWS, AI)
bodies("gather_of_a_row", lambda m, x, o, a, i: _set(a, (0, _at(m, 0)), m.plsc.load_gather(a.at[1], [i[...]], mask=i[...] > 1)), ROWS, AI)
bodies("scatter_to_a_row", lambda m, x, o, a, i: m.plsc.store_scatter(a.at[m.lax.axis_index("c")], [i[...]], a[0, _at(m, 0)]), ROWS, AI)
bodies("stream_of_shared_memory", lambda m, x, o, i, a, b: do(m.pltpu.sync_copy(b.at[i], a), m.pltpu.sync_copy(a, b.at[i], add=True)), AI, ((8, 8), F), SHARED)
bodies("scoped_memory", lambda m, x, o, a: m.pl.run_scoped(lambda b: _set(b, ..., a[...]), m.pltpu.VMEM(*A)), A)
bodies("scoped_memory_of_the_default_kind", lambda m, x, o, a: m.pl.run_scoped(lambda b: _set(b, ..., a[...]), m.pl.MemorySpace.DEFAULT(*A)), A)
bodies("scoped_value", lambda m, x, o, a: _set(a, ..., m.pl.run_scoped(lambda b: b[...] + 1, m.pltpu.VMEM(*A))), A)

# ---- the rest --------------------------------------------------------------------------------------------

bodies("semaphores", lambda m, x, o, a, s: do(m.pl.semaphore_signal(s.at[1], 2), m.pl.semaphore_wait(s.at[m.lax.axis_index("c")], 2), _set(a, ..., a[...] + m.pl.semaphore_read(s.at[0]))), A, SIGNALS)
bodies("semaphore_of_a_core", lambda m, x, o, s: m.pl.semaphore_signal(s.at[0], 2, core_index=1), SIGNALS)
bodies("semaphore_of_a_device", lambda m, x, o, s: m.pl.semaphore_signal(s.at[0], 2, device_id=1, device_id_type=m.pl.DeviceIdType.LOGICAL), SIGNALS)
bodies("barrier_of_cores", lambda m, x, o, s: m.pltpu.core_barrier(s, core_axis_name="c"), lambda m: m.pltpu.SemaphoreType.REGULAR, mesh=scalars)
bodies("barrier_of_devices", lambda m, x, o: m.pl.semaphore_wait(m.pltpu.get_barrier_semaphore(), 1), compiler_params=lambda m: m.pltpu.CompilerParams(collective_id=1))
bodies("delayed", lambda m, x, o: m.pl.delay(10))
bodies("watched", lambda m, x, o: m.pltpu.trace_value("x", m.lax.axis_index("s")))
bodies("printed", lambda m, x, o: m.pl.debug_print("hello"))
bodies("printed_vector", lambda m, x, o, a: m.pl.debug_print("hello", a[...]), A)
bodies("printed_reference", lambda m, x, o, a: m.pl.debug_print("hello", a), A)
bodies("counted", lambda m, x, o, a: _set(a, ..., m.lax.fori_loop(0, 5, lambda i, c: c + a[...], a[...])), A)
bodies("counted_by_a_scalar", lambda m, x, o, a, n: _set(a, ..., m.lax.fori_loop(0, n[0], lambda i, c: c * a[...], a[...])), A, NUMBERS)
bodies("while_small", lambda m, x, o, n: _set(n, 1, m.lax.while_loop(lambda i: i < 100, lambda i: 2 * i, n[0])), NUMBERS)
bodies("chosen", lambda m, x, o, a, n: _set(a, ..., m.lax.switch(n[0], [lambda: a[...] * 2, lambda: a[...], lambda: a[...] + 1])), A, NUMBERS)
bodies("one_subcore", lambda m, x, o, a: m.pl.when(m.lax.axis_index("s") == 0)(lambda: _set(a, ..., a[...] + 1)), A)
values("named_kernel", lambda m, a: a + 1, A, name="my kernel", metadata={"a": "b"})
values("cost", lambda m, a: a + 1, A, cost_estimate=lambda m: m.pl.CostEstimate(flops=1, bytes_accessed=2, transcendentals=3))
for _name, _options in dict(
    limit=dict(vmem_limit_bytes=1000), sparse_tiling=dict(use_tc_tiling_on_sc=False), side_effects=dict(has_side_effects=True),
    unchecked=dict(disable_bounds_checks=True, disable_semaphore_checks=True, skip_device_barrier=True),
    flags=dict(flags={"a": True}), no_layouts=dict(needs_layout_passes=False),
).items():
    values(f"option_{_name}", lambda m, a: a + 1, A, compiler_params=lambda m, _o=_options: m.pltpu.CompilerParams(**_o))
bodies("rows_without_layouts", lambda m, x, o, a: m.plsc.store_compressed(a.at[1, _at(m, 0)], a[0, _at(m, 0)], mask=a[0, _at(m, 8)] > 0), ROWS, compiler_params=lambda m: m.pltpu.CompilerParams(needs_layout_passes=False))
# fmt: on


def _parallel_loop(m, x, o, a, n):
    @m.plsc.parallel_loop(0, n[0], step=2, unroll=4, carry=(a[m.pl.ds(0, 8)], n[1]))
    def last(i, carry):
        return carry[0] + a[m.pl.ds(8 * i, 8)], carry[1] + i

    a[m.pl.ds(0, 8)], n[1] = last


def _loop_of_chunks(m, x, o, a):
    @m.pl.loop(0, 64, step=8, unroll=2)
    def _(i):
        a[m.pl.ds(i, 8)] = a[m.pl.ds(i, 8)] * 2


def _scopes(m, x, o, a, signals, done):
    with m.jax.named_scope("one"):
        a[0, m.pl.ds(0, 8)] = a[1, m.pl.ds(8, 8)]
    with m.jax.named_scope("two"):
        m.pl.semaphore_signal(signals.at[1], 1)
    with m.jax.named_scope("three"):
        m.pltpu.make_async_copy(a.at[0], a.at[1], done).start()


bodies("parallel_loop_with_a_carry", _parallel_loop, WIDE, NUMBERS)
bodies("loop_of_chunks", _loop_of_chunks, WIDE)
bodies("scopes", _scopes, ROWS, SIGNALS, DMA)


# ---- calls -----------------------------------------------------------------------------------------------


def copy(m):
    """A body that copies an array."""

    def body(x, o, *scratch):
        m.pltpu.sync_copy(x, o)

    return body


@kernel
def both_kinds_of_subcores(m):
    def part(x, o):
        m.pltpu.sync_copy(x.at[m.pl.ds(0, 8)], o.at[m.pl.ds(8 * m.lax.axis_index("s"), 8)])

    return m.pl.kernel([copy(m), part], m.jax.ShapeDtypeStruct(*X), mesh=[scalars(m), vectors(m)]), X


@kernel
def both_kinds_of_one_core(m):
    def part(x, o, shared):
        m.pltpu.sync_copy(x.at[:8], shared)

    meshes = [scalars(m, num_cores=1), vectors(m, num_cores=1, num_subcores=4)]
    shared = [m.pltpu.VMEM_SHARED((8,), m.jnp.float32)]
    return m.pl.kernel([copy(m), part], m.jax.ShapeDtypeStruct(*X), mesh=meshes, scratch_types=shared), X


def mapped(m, body, mesh=vectors, **options):
    """A function that runs `body(source, result, *scratch)` by `core_map`."""

    def f(x):
        source, result = m.jax.new_ref(x), m.jax.new_ref(m.jnp.zeros_like(x))
        m.pl.core_map(mesh(m), **options)(lambda *scratch: body(source, result, *scratch))
        return result[...]

    return f, X


@kernel
def core_map(m):
    return mapped(m, copy(m))


@kernel
def core_map_of_scalar_subcores(m):
    return mapped(m, copy(m), scalars)


@kernel
def core_map_with_scratch(m):
    def body(source, result, a):
        m.pltpu.sync_copy(source.at[:8], a)
        m.pltpu.sync_copy(a, result.at[:8])

    return mapped(m, body, scratch_shapes=[m.pltpu.VMEM((8,), m.jnp.float32)], name="own")


@kernel
def batch_of_one(m):
    return m.jax.vmap(run(m, copy(m))[0]), ((1, 128), F)


@kernel
def result_in_hbm(m):
    return run(m, copy(m), out=m.pltpu.HBM((128,), m.jnp.float32))


@kernel
def two_results(m):
    def body(x, o, p):
        m.pltpu.sync_copy((x, x), (o, p))

    return run(m, body, out=[m.pltpu.HBM((128,), m.jnp.float32), m.jax.ShapeDtypeStruct(*X)])


@kernel
def semaphores_as_results(m):
    return run(m, do, out=m.pltpu.SemaphoreType.REGULAR(()), mesh=scalars)


@kernel
def operand_in_hbm(m):
    f, x = run(m, copy(m))
    return lambda x: f(m.pltpu.with_memory_space_constraint(x, m.pltpu.HBM)), x


@kernel
def flags(m):
    f, _ = run(m, copy(m), out=((128,), "bool"))
    return lambda x: f(x > 0), X


@kernel
def size_that_a_kernel_computes(m):
    def body(x, n, o, s):
        m.pltpu.sync_copy(n, s)
        m.pltpu.sync_copy(x.at[m.pl.ds(0, s[0])], o.at[m.pl.ds(0, s[0])])

    return run(m, body, X, ((1,), I), mesh=scalars, scratch_types=[m.pltpu.SMEM((1,), m.jnp.int32)])


def moved(m, mesh):
    """A function that moves eight elements, from a place to one that its kernel captures."""

    def f(x):
        place = x[0].astype("int32"), x[1].astype("int32")

        # The name that jax gives kernels that capture something.
        def _rewritten_body(x, o):
            m.pltpu.sync_copy(x.at[m.pl.ds(place[0], 8)], o.at[m.pl.ds(place[1], 8)])

        return m.pl.kernel(_rewritten_body, m.jax.ShapeDtypeStruct(*X), mesh=mesh)(x)

    return f, X


@kernel
def scalars_that_vector_subcores_capture(m):
    return moved(m, vectors(m))


@kernel
def scalars_that_scalar_subcores_capture(m):
    return moved(m, scalars(m))


@kernel
def scalars_that_tensorcores_capture(m):
    return moved(m, m.pltpu.create_tensorcore_mesh("c", num_cores=2))


def captured(name: str, mesh: Callable, **options):
    """Adds a `core_map` whose kernel captures references and scalars, in turn."""

    def make(m):
        def f(x, place, other):
            a, b = m.jax.new_ref(x), m.jax.new_ref(2 * x)

            def body(*scratch):
                m.pltpu.sync_copy(a.at[m.pl.ds(place, 8)], b.at[:8])
                m.pl.when(other > 3)(lambda: m.pltpu.sync_copy(b.at[m.pl.ds(place + 1, 8)], a.at[m.pl.ds(other, 8)]))

            made = {k: v(m) for k, v in options.items()}
            m.pl.core_map(mesh(m), **made)(body)
            return a[...], b[...]

        return f, X, ((), I), ((), I)

    KERNELS[name] = make


captured("scalars_of_a_core_map", lambda m: m.pltpu.create_tensorcore_mesh("c", num_cores=2))
captured("scalars_of_a_core_map_of_subcores", scalars)
captured("scalars_beside_scratch", scalars, scratch_shapes=lambda m: [m.pltpu.SMEM((8,), I), m.pltpu.SMEM((4,), F)])


# ---- pipelines -------------------------------------------------------------------------------------------


def pipeline(name: str, body: Callable | None = None, shape=(128,), block=(8,), **options):
    """Adds a kernel that runs a pipeline of four steps or more over blocks of an array."""

    def make(m):
        def add_one(a, o):
            o[...] = a[...] + 1

        first = lambda *i: (i[0], *[0] * (len(block) - 1))  # noqa: E731
        spec = m.pl.BlockSpec(block, first)
        made = dict(grid=(4,), in_specs=[spec], out_specs=[spec])
        made |= {k: v(m) if callable(v) else v for k, v in options.items()}
        inner = add_one if body is None else lambda a, o: body(m, a, o)
        steps = lambda x, o: m.pltpu.emit_pipeline(inner, **made)(x, o)  # noqa: E731
        return run(m, steps, (shape, F), out=(shape, F))

    KERNELS[name] = make


PARALLEL = lambda m: (m.pltpu.PARALLEL,)  # noqa: E731
pipeline("pipeline")
pipeline("pipeline_of_subcores", core_axis_name="s", dimension_semantics=PARALLEL)
pipeline("pipeline_of_all_subcores", grid=(64,), core_axis_name=("c", "s"), dimension_semantics=PARALLEL)
pipeline("pipeline_that_waits", no_pipelining=True)
pipeline("pipeline_of_sparse_tiles", tiling=lambda m: m.pltpu.Tiling.SPARSE_CORE)
pipeline("pipeline_of_rows", lambda m, a, o: _set(o, (0, _at(m, 0)), a[1, _at(m, 8)] + 1), (32, 128), (8, 128))


@kernel
def pipeline_of_streams(m):
    def body(x, i, o):
        def fetch(indices, rows):
            m.pltpu.sync_copy(x.at[indices.at[0]], rows)

        specs = dict(
            in_specs=[m.pl.BlockSpec((1, 8), lambda i: (0, i))], out_specs=[m.pl.BlockSpec((8, 128), lambda i: (i, 0))]
        )
        m.pltpu.emit_pipeline(fetch, grid=(4,), core_axis_name="s", dimension_semantics=PARALLEL(m), **specs)(i, o)

    return run(m, body, ((64, 128), F), ((1, 32), I), out=((32, 128), F))


ROWS = lambda m: m.pl.BlockSpec((8, 128), lambda i: (i, 0))  # noqa: E731


def chosen(name: str, spec: Callable, out_spec=lambda m, own: ROWS(m), count=32, **options):
    """Adds a pipeline over blocks of rows that indices in vector memory name, in the operand or in the result."""

    def make(m):
        def add_one(a, o):
            o[0, :8] = a[0, :8] + 1

        def body(x, i, o, own):
            m.pltpu.sync_copy(i, own)
            made = {"grid": (count // 8,), **{k: v(m) if callable(v) else v for k, v in options.items()}}
            specs = dict(in_specs=[spec(m, own)], out_specs=[out_spec(m, own)])
            m.pltpu.emit_pipeline(add_one, **specs, **made)(x, o)

        own = m.pltpu.VMEM((count,), m.jnp.int32)
        return run(m, body, ((64, 128), F), ((count,), I), out=((count, 128), F), scratch_types=[own])

    KERNELS[name] = make


def listed(m, own, index=None, **options):
    index = (lambda i: own.at[m.pl.ds(i * 8, 8)]) if index is None else index
    return m.pl.BlockSpec((m.pl.Indirect(8), 128), lambda i: (index(i), 0), **options)


chosen("pipeline_at_indices", listed)
chosen("pipeline_to_indices", lambda m, own: ROWS(m), listed)
chosen("pipeline_at_indices_that_are_read", lambda m, own: listed(m, own, lambda i: own[m.pl.ds(i * 8, 8)]))
chosen("pipeline_at_numbers", lambda m, own: listed(m, own, lambda i: m.jnp.arange(8) * 2 + i))
chosen("pipeline_at_indices_with_one_buffer", lambda m, own: listed(m, own, pipeline_mode=m.pl.Buffered(1)))
chosen("pipeline_at_indices_that_waits", listed, no_pipelining=True)
chosen("pipeline_at_indices_of_subcores", listed, count=128, core_axis_name="s", dimension_semantics=PARALLEL)


def of_both(name: str, body: Callable, types: Callable):
    """Adds a kernel of scalar subcores with a body, and of vector subcores with none; `types` are of their scratch."""

    def make(m):
        scratch = types(m, scalars(m), vectors(m))
        one = lambda *refs: body(m, *refs)  # noqa: E731
        out = m.jax.ShapeDtypeStruct(*X)
        return m.pl.kernel([one, do], out, mesh=[scalars(m), vectors(m)], scratch_types=scratch), X

    KERNELS[name] = make


def mixed(m, one, other):
    kinds = m.pltpu.SemaphoreType
    return [m.pltpu.VMEM((16,), F) @ other, kinds.REGULAR @ one, m.pltpu.SMEM((8,), I) @ one, kinds.DMA((2,)) @ other]


of_both("memory_of_both_kinds", lambda m, *refs: None, mixed)
of_both("shared_memory_of_both_kinds", lambda m, *refs: None, lambda m, one, other: [m.pltpu.VMEM_SHARED((8,), F)])
of_both(
    "copy_to_memory_of_others",
    lambda m, x, o, a: m.pltpu.sync_copy(x.at[:16], a),
    lambda m, one, other: [m.pltpu.VMEM((16,), F) @ other],
)


@kernel
def own_memory(m):
    def body(x, i, o, own, rows, done):
        m.pltpu.sync_copy(i, own)
        m.pltpu.async_copy(x.at[own], rows, done).wait()
        m.pl.run_scoped(lambda a: a.__setitem__(..., a[...] + 1), m.pltpu.VMEM((8,), F) @ vectors(m))

    scratch = [m.pltpu.VMEM((8,), I), m.pltpu.VMEM((8, 128), F), m.pltpu.SemaphoreType.DMA]
    return run(m, body, ((64, 128), F), ((8,), I), scratch_types=[one @ vectors(m) for one in scratch])


def of_tensorcores(m, **options):
    return m.pltpu.create_tensorcore_mesh("d", num_cores=1, **options)


@kernel
def semaphore_of_a_tensorcore(m):
    out = [m.jax.ShapeDtypeStruct(*X), m.pltpu.SemaphoreType.REGULAR @ of_tensorcores(m)]
    return run(m, lambda x, o, s: m.pl.semaphore_signal(s, 1, device_id={"d": 0}), out=out, mesh=scalars)


@kernel
def result_in_memory_of_a_tensorcore(m):
    out = [m.jax.ShapeDtypeStruct(*X), m.pltpu.VMEM((16,), F) @ of_tensorcores(m)]
    return run(m, lambda x, o, p: m.pltpu.sync_copy(x, o), out=out, mesh=of_tensorcores)


# libtpu ends the process for results of scalar subcores that are semaphores.
COMPILED = [name for name in KERNELS if name not in ("semaphores_as_results", "semaphore_of_a_tensorcore")]
