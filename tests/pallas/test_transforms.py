"""Transformations of kernels: vmap, jvp and grad in each other, with jit, scan, checkpoint and shard_map."""

import compare
import numpy as np
import pallas_kernels
import pytest

import minijax as jax
import minijax.experimental.pallas as pl
import minijax.experimental.pallas.triton as plt
import minijax.numpy as jnp
from minijax.experimental.pallas import tpu as pltpu

X = pallas_kernels.X
BATCHED = ["add", "softmax", "matmul", "matmul_with_scratch", "squeezed_rows", "two_results", "dynamic_rows", "views", "scoped", "copies",
           "revisited", "aliased", "several_specs", "program_id_in_an_index_map", "trees", "prefetch", "while_loop", "flash", "with_options"]  # fmt: skip


def batched(name, in_axes=0):
    """A vmapped kernel, and its operands with a batch of three."""
    program, operands = pallas_kernels.KERNELS[name]
    stack = lambda x: np.stack([np.asarray(x) * (i + 1 if x.dtype.kind == "f" else 1) for i in range(3)], in_axes)  # noqa: E731
    stacked = jax.tree.map(stack, operands)
    return lambda jax, jnp, lax, pl, pltpu, plt: jax.vmap(program(jax, jnp, lax, pl, pltpu, plt), in_axes), stacked


@pytest.mark.oracle
@pytest.mark.parametrize("name", BATCHED)
def test_vmap_has_jaxs_jaxprs_and_values(name):
    program, operands = batched(name)
    compare.same_jaxpr(program, *operands)
    compare.same(
        lambda jax, jnp, lax, pl, pltpu, plt: program(jax, jnp, lax, pl, pltpu, plt)(*operands), rtol=0, atol=0
    )


@pytest.mark.oracle
def test_vmap_of_vmap_along_other_axes():
    program, operands = batched("softmax", 1)
    twice = lambda jax, jnp, lax, pl, pltpu, plt: jax.vmap(program(jax, jnp, lax, pl, pltpu, plt), 1)  # noqa: E731
    compare.same_jaxpr(twice, np.stack([operands[0]] * 2, 1))


@pytest.mark.oracle
@pytest.mark.parametrize("size", [1, 2])
def test_vmap_of_some_operands(size):
    program, (x, y) = pallas_kernels.KERNELS["add"]
    for axes in ((0, None), (None, 2)):
        wide = [np.stack([a] * size, axis) if axis is not None else a for a, axis in zip((x, y), axes, strict=True)]
        compare.same_jaxpr(
            lambda jax, jnp, lax, pl, pltpu, plt, axes=axes: jax.vmap(program(jax, jnp, lax, pl, pltpu, plt), axes),
            *wide,
        )


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["add", "softmax", "double_rows", "activation", "two_results", "four_axes_of_data"])
def test_jvp_has_jaxs_jaxprs(name):
    program, operands = pallas_kernels.KERNELS[name]
    compare.same_jaxpr(
        lambda jax, jnp, lax, pl, pltpu, plt: lambda *xs: jax.jvp(program(jax, jnp, lax, pl, pltpu, plt), xs, xs),
        *operands,
    )


def rows(kernel, grid=4, out=None, **options):
    spec = pl.BlockSpec((2, 128), lambda i: (i, 0))
    return pl.pallas_call(
        kernel,
        jax.ShapeDtypeStruct((8, 128), jnp.float32),
        grid=grid,
        in_specs=[spec],
        out_specs=out or spec,
        interpret=True,
        **options,
    )


def wave(x, o):
    o[...] = jnp.sin(x[...]) * x[...]


def accumulated(x, o):
    @pl.when(pl.program_id(0) == 0)
    def _():
        o[...] = jnp.zeros_like(o)

    o[...] += jnp.exp(x[...] * 0.1)


def scratched(x, o, low):
    low[...] = x[...] ** 2
    low[...] = low[...] * x[...]
    o[...] = low[...] + low[...]


def looped(x, o):
    o[...] = jax.lax.fori_loop(0, 3, lambda i, v: jnp.tanh(v) * x[...], x[...])


def scoped(x, o):
    def body(low):
        low[...] = jnp.cos(x[...])
        o[...] = low[...] * x[...]

    pl.run_scoped(body, pltpu.VMEM((2, 128), jnp.float32))


whole = pl.BlockSpec((2, 128), lambda i: (0, 0))
CALLS = {
    "elementwise": (rows(wave), lambda x: jnp.sin(x) * x),
    "scratch": (rows(scratched, scratch_shapes=[pltpu.VMEM((2, 128), jnp.float32)]), lambda x: 2 * x**3),
    "a loop": (rows(looped), lambda x: jnp.tanh(jnp.tanh(jnp.tanh(x) * x) * x) * x),
    "scoped memory": (rows(scoped), lambda x: jnp.cos(x) * x),
}  # fmt: skip
cases = pytest.mark.parametrize(("call", "plain"), CALLS.values(), ids=CALLS)


@cases
def test_grad(call, plain):
    loss = lambda f: lambda x: jnp.sum(jnp.cos(f(x)))  # noqa: E731
    for transform in (jax.grad, lambda f: jax.jit(jax.grad(f)), lambda f: jax.grad(jax.checkpoint(f))):
        np.testing.assert_allclose(transform(loss(call))(X), transform(loss(plain))(X), rtol=2e-5, atol=1e-6)


@cases
def test_jvp_of_jvp_and_jvp_of_grad(call, plain):
    along = lambda f: lambda x: jax.jvp(f, (x,), (jnp.ones_like(x),))[1]  # noqa: E731
    np.testing.assert_allclose(along(along(call))(X), along(along(plain))(X), rtol=2e-4, atol=2e-5)
    slope = lambda f: along(jax.grad(lambda x: jnp.sum(f(x))))  # noqa: E731
    np.testing.assert_allclose(slope(call)(X), slope(plain)(X), rtol=2e-4, atol=2e-5)


@cases
def test_vmap_of_grad_and_grad_of_vmap(call, plain):
    many = np.stack([X, 2 * X])
    both = lambda f: (jax.vmap(jax.grad(lambda x: jnp.sum(f(x)))), jax.grad(lambda x: jnp.sum(jax.vmap(f)(x))))  # noqa: E731
    for ours, expected in zip(both(call), both(plain), strict=True):
        np.testing.assert_allclose(ours(many), expected(many), rtol=2e-5, atol=1e-5)


def test_grad_of_results_that_steps_add_to():
    f = pl.pallas_call(
        accumulated, jax.ShapeDtypeStruct((2, 128), jnp.float32), grid=4, in_specs=[pl.BlockSpec((2, 128), lambda i: (i, 0))],
        out_specs=whole, interpret=True,
    )  # fmt: skip
    weights = jnp.arange(256.0).reshape(2, 128)
    found = jax.grad(lambda x: jnp.sum(f(x) * weights))(X)
    expected = jax.grad(lambda x: jnp.sum(jnp.exp(x * 0.1).reshape(4, 2, 128).sum(0) * weights))(X)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_jvp_of_an_operand_without_tangent():
    program, (x, y) = pallas_kernels.KERNELS["add"]
    f = compare.run_on(jax, program)
    out, tangent = jax.jvp(lambda a: f(a, y) * 2, (x,), (jnp.ones_like(x),))
    assert np.allclose(out, 2 * (x + y)) and (np.asarray(tangent) == 2).all()


def test_jacfwd_and_hessian():
    f = pl.pallas_call(
        lambda x, o: o.__setitem__(..., x[...] ** 3), jax.ShapeDtypeStruct((3,), jnp.float32), interpret=True
    )
    x = jnp.arange(1.0, 4.0)
    np.testing.assert_allclose(jax.jacfwd(f)(x), np.diag(3 * np.arange(1.0, 4.0) ** 2), rtol=1e-6)
    np.testing.assert_allclose(jax.jacrev(f)(x), np.diag(3 * np.arange(1.0, 4.0) ** 2), rtol=1e-6)
    np.testing.assert_allclose(jax.hessian(lambda x: f(x).sum())(x), np.diag(6 * np.arange(1.0, 4.0)), rtol=1e-6)


def test_aliases_and_written_operands_have_tangents():
    def kernel(x, o):
        o[0] = x[0] * 3

    f = pl.pallas_call(kernel, jax.ShapeDtypeStruct((3,), jnp.float32), input_output_aliases={0: 0}, interpret=True)
    out, tangent = jax.jvp(f, (jnp.ones(3),), (jnp.ones(3),))
    assert np.asarray(out).tolist() == np.asarray(tangent).tolist() == [3, 1, 1]
    assert np.asarray(jax.grad(lambda x: f(x).sum())(jnp.ones(3))).tolist() == [3, 1, 1]


def test_in_scan_and_cond():
    f = rows(wave)
    out, _ = jax.lax.scan(lambda c, _: (f(c), None), X, None, 3)
    expected = X
    for _ in range(3):
        expected = np.sin(expected) * expected
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-6)
    assert jax.jit(lambda x, flag: jax.lax.cond(flag, f, lambda v: v, x))(X, False)[0, 0] == X[0, 0]


def test_under_shard_map():
    mesh = jax.make_mesh((4,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
    call = lambda x: pl.pallas_call(wave, jax.ShapeDtypeStruct(x.shape, x.dtype), interpret=True)(x)  # noqa: E731
    sharded = jax.shard_map(call, mesh=mesh, in_specs=jax.P("i"), out_specs=jax.P("i"), check_vma=False)
    np.testing.assert_allclose(jax.jit(sharded)(X), np.sin(X) * X, rtol=1e-6)


def test_captured_references():
    total = jax.new_ref(jnp.zeros(3))

    def kernel(x, o):
        total[...] += x[...]
        o[...] = total[...]

    f = pl.pallas_call(kernel, jax.ShapeDtypeStruct((3,), jnp.float32), grid=2, interpret=True)
    assert np.asarray(jax.jit(f)(jnp.arange(3.0))).tolist() == [0, 2, 4]
    assert np.asarray(total[...]).tolist() == [0, 2, 4]
    assert np.asarray(f(jnp.ones(3))).tolist() == [2, 4, 6]


def test_aliased_references_are_one_buffer():
    def kernel(x, o):
        o[0] = 5.0
        o[1] = x[0] + 1

    f = pl.pallas_call(kernel, jax.ShapeDtypeStruct((2,), jnp.float32), input_output_aliases={0: 0}, interpret=True)
    assert np.asarray(f(jnp.zeros(2))).tolist() == [5, 6]


def test_dynamic_grids():
    def kernel(x, o):
        @pl.when(pl.program_id(0) == 0)
        def _():
            o[...] = jnp.zeros_like(o)

        o[...] += x[...] * pl.num_programs(0)

    @jax.jit
    def f(n, x):
        return pl.pallas_call(kernel, jax.ShapeDtypeStruct((2,), jnp.float32), grid=(n,), interpret=True)(x)

    assert np.asarray(f(3, jnp.ones(2))).tolist() == [9, 9]
    assert np.asarray(jax.vmap(f)(jnp.array([1, 2]), jnp.ones((2, 2)))).tolist() == [[1, 1], [4, 4]]


def test_bounded_slices_read_and_write_as_many_elements_as_they_have():
    """Three rows from 0, and five from 3: blocks have five rows, the others of which are not written."""
    bounds = np.array([0, 3, 8], np.int32)
    spec = pltpu.PrefetchScalarGridSpec(
        1,
        (2,),
        [pl.BlockSpec((pl.BoundedSlice(5), 128), lambda i, b: (pl.ds(b[i], b[i + 1] - b[i]), 0))],
        pl.BlockSpec((pl.BoundedSlice(5), 128), lambda i, b: (pl.ds(b[i], b[i + 1] - b[i]), 0)),
    )

    def kernel(b, x, o):
        o[...] = x[...] + pl.program_id(0).astype(jnp.float32)

    f = pl.pallas_call(kernel, jax.ShapeDtypeStruct((8, 128), jnp.float32), grid_spec=spec, interpret=True)
    np.testing.assert_array_equal(f(bounds, X), X + np.array([0] * 3 + [1] * 5, np.float32)[:, None])


# ---- reverse mode by kernels ------------------------------------------------------------------------


def lowered(kernel, shape, grid, in_specs, out_specs, **options):
    """A call that compilers of kernels would get, which a CPU interprets with a warning."""
    return pl.pallas_call(
        kernel, jax.ShapeDtypeStruct(shape, jnp.float32), grid=grid, in_specs=in_specs, out_specs=out_specs, **options
    )


def shifted(x, b, o):
    o[...] = jnp.sin(x[...]) * b[...] + pl.program_id(0)


def squared(x, o):
    o[...] = x[...] ** 2 + x[...].sum(0, keepdims=True)


def outer(x, y, o):
    o[...] = x[...].T * y[...]


def scratch(x, o, low):
    low[...] = jnp.exp(x[...])
    o[...] = low[...] * x[...]


two = pl.BlockSpec((2, 128), lambda i: (i, 0))
BY_KERNELS = {
    "an operand for all steps": (
        lowered(shifted, (8, 128), 4, [two, pl.BlockSpec((1, 128), lambda i: (0, 0))], two), (X, X[:1]),
        lambda x, b: jnp.sin(x) * b + jnp.repeat(jnp.arange(4.0), 2)[:, None],
    ),
    "blocks in another order": (
        lowered(squared, (8, 128), 4, [pl.BlockSpec((2, 128), lambda i: (3 - i, 0))], two), (X,),
        lambda x: (x.reshape(4, 2, 128) ** 2 + x.reshape(4, 2, 128).sum(1, keepdims=True))[::-1].reshape(8, 128),
    ),
    "blocks that several steps read": (
        lowered(outer, (8, 6), (4, 3), [pl.BlockSpec((1, 2), lambda i, j: (0, i)), pl.BlockSpec((1, 2), lambda i, j: (0, j))],
                pl.BlockSpec((2, 2), lambda i, j: (i, j))),
        (X[:1, :8], X[1:2, :6]), lambda x, y: x.T * y,
    ),
    "a squeezed axis": (
        lowered(squared, (3, 4, 128), 3, [pl.BlockSpec((None, 4, 128), lambda i: (i, 0, 0))], pl.BlockSpec((None, 4, 128), lambda i: (i, 0, 0))),
        (np.stack([X[:4], X[4:], X[2:6]]),), lambda x: x**2 + x.sum(1, keepdims=True),
    ),
    "scratch": (
        lowered(scratch, (8, 128), 4, [two], two, scratch_shapes=[pltpu.VMEM((2, 128), jnp.float32)]), (X,), lambda x: jnp.exp(x) * x,
    ),
    "no grid": (pl.pallas_call(squared, jax.ShapeDtypeStruct((8, 128), jnp.float32)), (X,), lambda x: x**2 + x.sum(0, keepdims=True)),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:pallas_call. there is no compiler")
@pytest.mark.parametrize(("call", "operands", "plain"), BY_KERNELS.values(), ids=BY_KERNELS)
def test_the_backward_pass_is_a_kernel(call, operands, plain):
    every = tuple(range(len(operands)))
    loss = lambda f: lambda *xs: jnp.sum(jnp.cos(f(*xs)))  # noqa: E731
    for transform in (jax.grad, lambda f, n: jax.jit(jax.grad(f, n)), lambda f, n: jax.grad(jax.checkpoint(f), n)):
        for ours, expected in zip(
            transform(loss(call), every)(*operands), jax.grad(loss(plain), every)(*operands), strict=True
        ):
            np.testing.assert_allclose(ours, expected, rtol=2e-5, atol=2e-5)
    assert str(jax.make_jaxpr(jax.grad(loss(call), every))(*operands)).count("pallas_call[") == 2
    many = [np.stack([x, 2 * x]) for x in operands]
    for ours, expected in zip(
        jax.vmap(jax.grad(loss(call), every))(*many), jax.vmap(jax.grad(loss(plain), every))(*many), strict=True
    ):
        np.testing.assert_allclose(ours, expected, rtol=2e-5, atol=5e-5)


@pytest.mark.filterwarnings("ignore:pallas_call. there is no compiler")
def test_second_derivatives_by_kernels():
    call, operands, plain = BY_KERNELS["an operand for all steps"]
    small = [x[..., :128] for x in operands]
    slope = lambda f: lambda x: jnp.sum(jax.grad(lambda x: jnp.sum(jnp.cos(f(x, small[1]))))(x) ** 2)  # noqa: E731
    np.testing.assert_allclose(jax.grad(slope(call))(small[0]), jax.grad(slope(plain))(small[0]), rtol=1e-4, atol=1e-4)


@pytest.mark.filterwarnings("ignore:pallas_call. there is no compiler")
def test_kernels_whose_steps_depend_on_each_other_are_differentiated_as_interpreted():
    f = lowered(accumulated, (2, 128), 4, [two], whole)
    found = jax.grad(lambda x: jnp.sum(f(x)))(X)
    np.testing.assert_allclose(found, 0.1 * np.exp(X * 0.1), rtol=1e-5)
    assert "pallas_call" not in str(jax.make_jaxpr(jax.grad(lambda x: jnp.sum(f(x))))(X))


@pytest.mark.parametrize("platform", ["cuda", "tpu"])
def test_both_passes_are_lowered_to_kernels(platform):
    params = plt.CompilerParams() if platform == "cuda" else pltpu.CompilerParams()
    spec = pl.BlockSpec((8, 128), lambda i: (i, 0))
    f = lowered(wave, (32, 128), 4, [spec], spec, compiler_params=params)
    step = jax.jit(jax.value_and_grad(lambda x: jnp.sum(f(x))))
    text = step.trace(jnp.ones((32, 128))).lower(lowering_platforms=(platform,)).as_text()
    assert text.count("custom_call @") == 2 and "while" not in text


def test_gradients_of_blocks_beyond_the_end_are_finite():
    """Rows beyond the end are no number, but add nothing to the gradient of an operand that all rows share."""
    spec = pl.BlockSpec((4, 128), lambda i: (i, 0))
    f = pl.pallas_call(
        shifted, jax.ShapeDtypeStruct((6, 128), jnp.float32), grid=2, in_specs=[spec, pl.BlockSpec((1, 128), lambda i: (0, 0))],
        out_specs=spec, interpret=True,
    )  # fmt: skip
    found = jax.grad(lambda x, b: jnp.sum(f(x, b)), (0, 1))(X[:6], X[:1])
    np.testing.assert_allclose(found[1], np.sin(X[:6]).sum(0, keepdims=True), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found[0], np.cos(X[:6]) * X[:1], rtol=1e-5, atol=1e-6)
