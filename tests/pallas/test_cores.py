"""`pl.kernel` and `pl.core_map` are traced to jax's jaxprs, and run one core after the other."""

import re

import compare
import numpy as np
import pallas_kernels  # noqa: F401  the short names of Pallas' modules
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.experimental import pallas as pl
from minijax.experimental.pallas import tpu as pltpu

X = np.random.default_rng(0).normal(size=(16, 128)).astype(np.float32)
TWO = pltpu.create_tensorcore_mesh("c", num_cores=2)


def copy_part(lax, pl, pltpu):
    def body(x, o, *scratch):
        part = pl.ds(lax.axis_index("c") * 8, 8)
        pltpu.sync_copy(x.at[part], o.at[part])

    return body


def kernel(jax, jnp, lax, pl, pltpu, plt):
    mesh = pltpu.create_tensorcore_mesh("c", num_cores=2)
    scratch = [pltpu.VMEM((8, 128), jnp.float32), [pltpu.SemaphoreType.DMA]]
    options = dict(mesh=mesh, scratch_types=scratch, interpret=True)
    return pl.kernel(copy_part(lax, pl, pltpu), jax.ShapeDtypeStruct((16, 128), jnp.float32), **options)


def of_trees(jax, jnp, lax, pl, pltpu, plt):
    one = jax.ShapeDtypeStruct((16, 128), jnp.float32)
    mesh = pltpu.create_tensorcore_mesh("c", num_cores=1)
    options = dict(name="own", metadata={"a": "b"}, interpret=True)

    @pl.kernel(
        out_type=dict(a=one, b=[one]), mesh=mesh, scratch_types=dict(s=pltpu.VMEM((16, 128), jnp.float32)), **options
    )
    def body(x, y, o, s):
        pltpu.sync_copy(x, s)
        s[...] = s[...] + 1
        pltpu.sync_copy(s, o["a"])
        pltpu.sync_copy(y["z"], o["b"][0])

    return lambda x: body(x, dict(z=2 * x))


def in_spaces(jax, jnp, lax, pl, pltpu, plt):
    mesh = pltpu.create_tensorcore_mesh("c", num_cores=1)
    return lambda x: pl.kernel(lambda x, o: None, pltpu.HBM((16, 128), jnp.float32), mesh=mesh)(x)


def without_results(jax, jnp, lax, pl, pltpu, plt):
    return lambda x: pl.kernel(lambda x: None, mesh=pltpu.create_tensorcore_mesh("c", num_cores=1))(x)


def of_references(jax, jnp, lax, pl, pltpu, plt):
    mesh = pltpu.create_tensorcore_mesh("c", num_cores=2)
    body = copy_part(lax, pl, pltpu)

    def f(x):
        ref = jax.new_ref(x)
        y = pl.kernel(body, jax.ShapeDtypeStruct((16, 128), jnp.float32), mesh=mesh, interpret=True)(ref)
        pl.kernel(body, mesh=mesh, interpret=True)(2 * y, ref)
        pl.kernel(lambda z: pltpu.sync_copy(z.at[:8], ref.at[:8]), mesh=mesh, interpret=True)(3 * y)
        return y, ref[...]

    return f


PROGRAMS = [kernel, of_trees, in_spaces, without_results, of_references]


@pytest.mark.oracle
@pytest.mark.parametrize("program", PROGRAMS)
def test_jaxprs_of_kernels(program):
    compare.same_jaxpr(program, X)


@pytest.mark.oracle
def test_the_jaxpr_of_a_kernel_in_transformations():
    compare.same_jaxpr(
        lambda jax, jnp, lax, pl, pltpu, plt: jax.vmap(jax.jit(kernel(jax, jnp, lax, pl, pltpu, plt))), X[None]
    )


def mapped(body, num_cores=2, scratch=lambda pltpu: ()):
    """A program that runs `body(modules, references, scratch)` by `core_map`."""

    def program(jax, jnp, lax, pl, pltpu, plt):
        mesh = pltpu.create_tensorcore_mesh("c", num_cores=num_cores)

        def f(x):
            refs = jax.new_ref(x), jax.new_ref(jnp.zeros_like(x))

            @pl.core_map(mesh, scratch_shapes=scratch(pltpu), interpret=True)
            def run(*given):
                body((jax, jnp, lax, pl, pltpu), *refs, *given)

            return refs[1][...]

        return f

    return program


def part(m, x, o, *scratch):
    copy_part(*m[2:])(x, o)


def first(m, x, o):
    m[4].run_on_first_core("c")(lambda: m[4].sync_copy(x, o))


def barrier(m, x, o, semaphore):
    m[4].core_barrier(semaphore, core_axis_name="c")
    first(m, x, o)


def number(m, x, o):
    o[0, 0] = (m[3].program_id(0) * m[2].axis_size("c")).astype(m[1].float32)
    _ = x[...]


SEMAPHORE = dict(scratch=lambda pltpu: [pltpu.SemaphoreType.REGULAR])
MAPPED = [
    mapped(part),
    mapped(first),
    mapped(first, 1),
    mapped(barrier, **SEMAPHORE),
    mapped(barrier, 1, **SEMAPHORE),
    mapped(number),
]


@pytest.mark.oracle
@pytest.mark.parametrize("program", MAPPED)
def test_jaxprs_of_core_map(program):
    def text(side):
        found = compare.jaxpr_text(side, compare.run_on(side, program), [X])
        # jax prints an object of its own for the results' names.
        return re.sub(r"result_paths=[^)]*\)", "result_paths)", found)

    compare.same_printed("jaxpr", text, program, X)


# ---- values, which jax does not compute for more than one core --------------------------------------------


@pytest.mark.parametrize("program", [kernel, MAPPED[0], MAPPED[1], MAPPED[2], MAPPED[4]])
@pytest.mark.parametrize("wrapped", [lambda f: f, jax.jit, lambda f: lambda x: jax.vmap(f)(x[None])[0]])
def test_values(program, wrapped):
    f = wrapped(compare.run_on(jax, program))
    np.testing.assert_array_equal(f(X), X)


@pytest.mark.oracle
def test_values_on_one_core_are_those_of_jax():
    compare.same(lambda jax, jnp, lax, pl, pltpu, plt: of_trees(jax, jnp, lax, pl, pltpu, plt)(X), rtol=0, atol=0)


def test_what_a_kernel_writes_into_references_stays():
    f = compare.run_on(jax, of_references)
    for run in (f, jax.jit(f)):
        y, last = run(X)
        np.testing.assert_array_equal(y, X)
        np.testing.assert_array_equal(last, np.concatenate([3 * X[:8], 2 * X[8:]]))


def test_each_element_of_a_batch_runs_in_turn():
    f = compare.run_on(jax, kernel)
    xs = np.stack([X, 2 * X, 3 * X])
    np.testing.assert_array_equal(jax.jit(jax.vmap(f))(xs), xs)
    np.testing.assert_array_equal(jax.vmap(compare.run_on(jax, MAPPED[0]))(xs), xs)


def test_derivatives():
    f = pl.kernel(copy_part(jax.lax, pl, pltpu), jax.ShapeDtypeStruct((16, 128), jnp.float32), mesh=TWO, interpret=True)
    np.testing.assert_array_equal(jax.jvp(f, (X,), (2 * X,))[1], 2 * X)
    np.testing.assert_array_equal(jax.grad(lambda x: jnp.sum(f(x) * X))(X), X)


# ---- meshes and errors -----------------------------------------------------------------------------------


@pytest.mark.oracle
def test_meshes_are_those_of_jax():
    def described(jax, jnp, lax, pl, pltpu, plt):
        mesh = pltpu.create_tensorcore_mesh("c", num_cores=2)
        facts = (
            mesh.shape,
            mesh.axis_names,
            mesh.core_type.name,
            mesh.default_memory_space,
            mesh.supported_memory_spaces,
        )
        return str((mesh, facts, mesh.dimension_semantics))

    compare.same(described)


def test_a_mesh_needs_no_tpu():
    assert pltpu.create_tensorcore_mesh("core").shape == {"core": 1}
    assert TWO == pltpu.create_tensorcore_mesh("c", num_cores=2) != pltpu.create_tensorcore_mesh("c", num_cores=1)
    assert hash(TWO) == hash(pltpu.create_tensorcore_mesh("c", num_cores=2))


MISTAKES = {
    "both": lambda jax, pl, pltpu, f, mesh: pltpu.create_tensorcore_mesh("c", devices=jax.devices(), num_cores=1),
    "one_body_of_meshes": lambda jax, pl, pltpu, f, mesh: pl.kernel(f, mesh=[mesh, mesh]),
    "decorator_of_meshes": lambda jax, pl, pltpu, f, mesh: pl.kernel(mesh=[mesh]),
    "meshes_of_tensor_cores": lambda jax, pl, pltpu, f, mesh: pl.kernel([f, f], mesh=[mesh, mesh])(X),
    "returns": lambda jax, pl, pltpu, f, mesh: jax.jit(lambda: pl.core_map(mesh)(lambda: 1))(),
    "captures": lambda jax, pl, pltpu, f, mesh: jax.jit(
        lambda ref: pl.core_map(mesh)(lambda: ref.__setitem__(..., jax.numpy.asarray(X)))
    )(jax.new_ref(X)),
    "kernel_captures": lambda jax, pl, pltpu, f, mesh: pl.kernel(
        lambda x: x.__setitem__(..., jax.numpy.asarray(X)), mesh=mesh
    )(X),
    "unbound": lambda jax, pl, pltpu, f, mesh: jax.jit(
        lambda: pl.core_map(mesh)(lambda: pltpu.run_on_first_core("d")(lambda: None))
    )(),
}
PHRASES = {
    "both": ["cannot specify both devices and num_cores"],
    "one_body_of_meshes": ["mesh cannot be a sequence when body is a single callable"],
    "decorator_of_meshes": ["mesh cannot be a sequence when using pl.kernel as a decorator"],
    "meshes_of_tensor_cores": ["is not compatible with"],
    "returns": ["should return None. It returns a PyTree"],
    "captures": ["captures non-scalar constants [f32[16,128]]. You should pass them as inputs."],
    "kernel_captures": ["captures non-Ref constants [f32[16,128]]. You should pass them as inputs."],
    "unbound": ["unbound axis name: d"],
}


@pytest.mark.oracle
@pytest.mark.parametrize("name", MISTAKES)
def test_errors_are_those_of_jax(name):
    def program(jax, jnp, lax, pl, pltpu, plt):
        mesh = pltpu.create_tensorcore_mesh("c", num_cores=1)
        return lambda: MISTAKES[name](jax, pl, pltpu, lambda x: None, mesh)

    compare.same_refusal(program, PHRASES[name])


def test_errors():
    with pytest.raises(TypeError, match="pl.kernel: mesh must be a mesh of cores, got 3"):
        pl.kernel(lambda x: None, mesh=3)
    with pytest.raises(ValueError, match="Invalid out_shape type"):
        pl.kernel(lambda x: None, 3, mesh=TWO)
    with pytest.raises(ValueError, match="body and mesh sequences must have the same length. Got 2 bodies, 1 meshes"):
        pl.kernel([lambda x: None] * 2, mesh=[TWO])


def with_scalars(jax, jnp, lax, pl, pltpu, plt):
    """A function whose kernel captures where it reads and how much it adds."""

    def f(x):
        place, more = (x[0, 0] * 0).astype(jnp.int32) + 3, x[0, 1]

        def body(x, o, rows):
            pltpu.sync_copy(x.at[pl.ds(place, 8)], rows)
            rows[...] = rows[...] + more
            pltpu.sync_copy(rows, o.at[pl.ds(lax.axis_index("c") * 8, 8)])

        mesh = pltpu.create_tensorcore_mesh("c", num_cores=2)
        out, scratch = jax.ShapeDtypeStruct((16, 128), jnp.float32), [pltpu.VMEM((8, 128), jnp.float32)]
        return pl.kernel(body, out, mesh=mesh, scratch_types=scratch, interpret=True)(x)

    return f


@pytest.mark.oracle
def test_jaxprs_of_kernels_that_capture_scalars():
    compare.same_jaxpr(with_scalars, X)


def test_kernels_read_the_scalars_that_they_capture():
    f = with_scalars(jax, jnp, jax.lax, pl, pltpu, None)
    expected = np.tile(X[3:11] + X[0, 1], (2, 1))
    np.testing.assert_array_equal(f(X), expected)
    np.testing.assert_array_equal(jax.vmap(f)(np.stack([X, X])), np.stack([expected, expected]))
    with pltpu.force_tpu_interpret_mode():
        np.testing.assert_array_equal(jax.jit(f)(X), expected)
    with pytest.raises(NotImplementedError, match="derivatives of kernels that capture scalars"):
        jax.grad(lambda x: f(x).sum())(X)


def test_functions_over_cores_read_the_scalars_that_they_capture():
    @jax.jit
    def f(x, place):
        source, result = jax.new_ref(x), jax.new_ref(jnp.zeros_like(x))

        @pl.core_map(TWO, interpret=True)
        def _():
            pltpu.sync_copy(source.at[pl.ds(place, 4)], result.at[pl.ds(4 * jax.lax.axis_index("c"), 4)])

        return result[...]

    np.testing.assert_array_equal(f(X, 2)[:8], np.tile(X[2:6], (2, 1)))
