"""The fuser: jaxprs of fused functions, blocks that follow from other blocks, and kernels with fused functions."""

import functools

import compare
import numpy as np
import pallas_kernels  # noqa: F401  (its import names the modules of Pallas)
import pytest

import minijax as jax
import minijax.experimental.pallas as pl
import minijax.numpy as jnp
from minijax import lax
from minijax.experimental.pallas import fuser

compare.SHORT_NAMES["fuser"] = "experimental.pallas.fuser"
X = np.arange(64, dtype=np.float32).reshape(8, 8) / 8


def kernels(jax, fuser):
    """Two fusible kernels: of two arguments and one result, and of one argument and two results on their own."""

    @fuser.fusible
    def product(x_fn, y_fn, out_fn):
        result = x_fn() * y_fn()
        return result if out_fn is None else out_fn(result)

    @fuser.fusible(output_fusion_prefix=(True, True))
    def pair(x_fn, out_fns):
        x = x_fn()
        first, second = [f or (lambda v: v) for f in out_fns]
        return first(x), second(x + 1)

    return product, pair


FUSED = {
    "kernel alone": lambda jax, jnp, product, pair: product,
    "before and after": lambda jax, jnp, product, pair: lambda x, y: jnp.exp(product(jnp.sin(x), y + 1)) * 2,
    "two results of one": lambda jax, jnp, product, pair: lambda x, y: (lambda z: (z + jnp.cos(y), z * 2))(product(x, y)),
    "the first of two kernels": lambda jax, jnp, product, pair: lambda x, y: product(product(x, y), y),
    "calls stay": lambda jax, jnp, product, pair: lambda x, y: jax.nn.relu(product(jax.jit(jnp.sin)(x), y)),
    "a sum after it": lambda jax, jnp, product, pair: lambda x, y: product(x, y) * jnp.sum(x),
    "own functions": lambda jax, jnp, product, pair: lambda x, y: (lambda a, b: (a, b * y))(*pair(x)),
    "exchanged": lambda jax, jnp, product, pair: lambda x, y: (lambda a, b: (b * 2, a))(*pair(x)),
    "nested": lambda jax, jnp, product, pair: lambda x, y: (lambda a, b: ((a * 2, a * y), b))(*pair(x)),
}  # fmt: skip
TRANSFORMED = {
    "plain": lambda jax, jnp, f: f,
    "jit": lambda jax, jnp, f: jax.jit(f),
    "vmap": lambda jax, jnp, f: lambda x, y: jax.vmap(f)(x[None], y[None]),
    "jit of vmap": lambda jax, jnp, f: jax.jit(jax.vmap(f)),
    "grad": lambda jax, jnp, f: jax.grad(lambda x, y: sum(jnp.sum(r) for r in jax.tree.leaves(f(x, y)))),
}


def fused(name, how):
    def program(jax, jnp, pl, fuser):
        return TRANSFORMED[how](jax, jnp, fuser.fuse(FUSED[name](jax, jnp, *kernels(jax, fuser))))

    return program


@pytest.mark.oracle
@pytest.mark.parametrize("how", TRANSFORMED)
@pytest.mark.parametrize("name", FUSED)
def test_fused_functions_have_jaxs_jaxprs(name, how):
    if name == "the first of two kernels" and how in ("grad", "jit of vmap"):
        compare.same_refusal(
            lambda jax, jnp, pl, fuser: (
                lambda: fused(name, how)(jax, jnp, pl, fuser)(jnp.ones((2, 2)), jnp.ones((2, 2)))
            )
        )
    else:
        compare.same_jaxpr(fused(name, how), X, X)


@pytest.mark.oracle
@pytest.mark.parametrize("name", FUSED)
def test_kernels_that_are_not_fused_have_jaxs_jaxprs(name):
    compare.same_jaxpr(lambda jax, jnp, pl, fuser: FUSED[name](jax, jnp, *kernels(jax, fuser)), X, X)


@pytest.mark.parametrize("name", FUSED)
def test_fused_functions_have_the_values_of_the_plain_ones(name):
    product, pair = (lambda x, y: x * y), (lambda x: (x, x + 1))
    x = jnp.asarray(X)
    want = FUSED[name](jax, jnp, product, pair)(x, x)
    compare.same_value(
        jax.jit(fused(name, "plain")(jax, jnp, pl, fuser))(x, x), want, rtol=1e-6, why="exponentials fuse"
    )
    compare.same_value(FUSED[name](jax, jnp, *kernels(jax, fuser))(x, x), want, rtol=1e-6, why="exponentials fuse")


@pytest.mark.oracle
def test_a_fusible_kernel_is_lowered_as_its_body():
    compare.same_text(lambda jax, fuser: jax.jit(kernels(jax, fuser)[0]), X, X)


def test_a_function_keeps_results_that_do_not_depend_on_the_kernel():
    product, _ = kernels(jax, fuser)
    compare.same_value(
        fuser.fuse(lambda x: (product(x, x) * 2, x + 1, 3.0))(jnp.asarray(X)), (jnp.asarray(X * X * 2), jnp.asarray(X + 1), jax.jit(lambda: 3.0)()),
    )  # fmt: skip


def test_a_kernel_sees_the_types_of_what_is_around_it():
    seen = []

    @fuser.fusible
    def kernel(x_fn, out_fn):
        seen.append((x_fn, out_fn))
        result = x_fn()
        return result if out_fn is None else out_fn(result)

    fuser.fuse(lambda x: kernel(x.astype(jnp.bfloat16))[:2])(jnp.ones((4, 8)))
    x_fn, out_fn = seen[-1]
    assert (x_fn.shape, x_fn.dtype, x_fn.in_shape) == ((4, 8), jnp.bfloat16, ((), {}))
    assert (out_fn.shape, out_fn.in_shape[0], out_fn.in_dtype[0]) == (((2, 8),), (4, 8), jnp.bfloat16)


@pytest.mark.oracle
def test_types_around_a_kernel_are_jaxs():
    def program(jax, jnp, fuser):
        seen = []

        @fuser.fusible
        def kernel(x_fn, out_fn):
            x = x_fn()
            result = x * 2, {"a": x + 1}
            if out_fn is None:
                return result
            seen.append((out_fn.in_type, out_fn.out_type, out_fn.in_shape, out_fn.shape))
            return out_fn(result)

        def around(x, s):
            first, rest = kernel(x * s)
            return {"both": first + rest["a"], "second": rest["a"] * s}

        text = str(jax.make_jaxpr(fuser.fuse(around))(jnp.ones(3), 2.0))
        return text, str(seen)

    compare.same(program)
    compare.same(lambda jax, jnp, fuser: fuser.fuse(lambda x, s: kernels(jax, fuser)[0](x, s) + s)(jnp.ones(3), 2.0))


def test_fuse_prints_the_jaxpr(capsys):
    fuser.fuse(kernels(jax, fuser)[0], debug=True)(jnp.ones(2), jnp.ones(2))
    assert capsys.readouterr().out.startswith("Jaxpr before fusion:\n{ lambda ; a:f32[2] b:f32[2]. let")


@pytest.mark.oracle
@pytest.mark.parametrize(
    "program",
    [
        lambda jax, jnp, pl, fuser: fuser.evaluate(lambda x: x.T + 1),
        lambda jax, jnp, pl, fuser: fuser.evaluate(lambda x: jnp.where(x > 0, x, 0.0)),
        lambda jax, jnp, pl, fuser: fuser.evaluate(lambda x: jax.nn.relu(x)),
        lambda jax, jnp, pl, fuser: fuser.evaluate(lambda x: jnp.sort(x)),
    ],
)
def test_evaluate_has_jaxs_jaxpr(program):
    compare.same_jaxpr(program, X)


REFUSED = {
    "nothing fusible": (lambda jax, jnp, lax, pl, fuser: fuser.fuse(jnp.sin)(X), "No fusible eqn found"),
    "a fusible kernel in a call": (
        lambda jax, jnp, lax, pl, fuser: fuser.fuse(lambda x: jax.jit(kernels(jax, fuser)[0])(x, x))(X), "No fusible eqn found",
    ),
    "results that share a value": (
        lambda jax, jnp, lax, pl, fuser: fuser.fuse(lambda x: sum(kernels(jax, fuser)[1](x)))(X),
        "Outputs must be disjoint in order to use separate output fusions",
    ),
    "vmap of a kernel": (
        lambda jax, jnp, lax, pl, fuser: jax.vmap(kernels(jax, fuser)[0])(jnp.asarray(X), jnp.asarray(X)),
        "fusible does not support non-trivial batching",
    ),
    "grad of a kernel": (
        lambda jax, jnp, lax, pl, fuser: jax.grad(lambda x: kernels(jax, fuser)[0](x, x).sum())(X),
        "Differentiation rule for 'fusible' not implemented",
    ),
    "jvp of a kernel": (
        lambda jax, jnp, lax, pl, fuser: jax.jvp(lambda x: kernels(jax, fuser)[0](x, x), (X,), (X,)),
        "Differentiation rule for 'fusible' not implemented",
    ),
    "a transposition": (lambda jax, jnp, lax, pl, fuser: fuser.evaluate(jnp.transpose, allow_transpose=False)(X), ""),
    "a loop": (
        lambda jax, jnp, lax, pl, fuser: fuser.evaluate(lambda x: lax.fori_loop(0, 3, lambda i, x: x * 2, x))(X), "Primitive scan not supported."
    ),
    "a branch": (
        lambda jax, jnp, lax, pl, fuser: fuser.evaluate(lambda x: lax.cond(x[0, 0] > 0, jnp.sin, jnp.cos, x))(X), "Primitive cond not supported."
    ),
    "a custom fusion without rules": (lambda jax, jnp, lax, pl, fuser: fuser.custom_fusion(lambda x: x)(X), ""),
    "two ways to an array": (
        lambda jax, jnp, lax, pl, fuser: fuser.pull_block_spec(lambda x: x + x.T, block(pl), grid_len=2)(wide(jax)),
        "Fusion contains a DAG, cannot uniquely pull block specs",
    ),
    "strides": (
        lambda jax, jnp, lax, pl, fuser: fuser.pull_block_spec(lambda x: lax.slice(x, (0, 0), (512, 512), (2, 1)), block(pl))(wide(jax)),
        "strides are not supported yet",
    ),
    "no rule": (lambda jax, jnp, lax, pl, fuser: fuser.pull_block_spec(lambda x, i: x[i], block(pl))(wide(jax), np.arange(512)), "gather"),
    "different blocks": (
        lambda jax, jnp, lax, pl, fuser: fuser.push_block_spec(lambda x, y: x + y, block(pl), pl.BlockSpec((256, 256), lambda i, j: (i, j)))(wide(jax), wide(jax)),
        "Illegal binary push. One of the block specs must be no_block_spec.",
    ),
    "a sum of parts": (
        lambda jax, jnp, lax, pl, fuser: fuser.push_block_spec(lambda x: x.sum(0), block(pl))(wide(jax)), "over partial blocks not supported yet"
    ),
    "a slice of blocks": (lambda jax, jnp, lax, pl, fuser: fuser.push_block_spec(lambda x: x[:256], block(pl))(wide(jax)), "slice"),
    "too many specs": (
        lambda jax, jnp, lax, pl, fuser: fuser.push_block_spec(lambda x: x * 2, block(pl), block(pl))(wide(jax)), "PyTree, got PyTreeDef(((*, *), {}))"
    ),
    "blocks in another tree": (
        lambda jax, jnp, lax, pl, fuser: fuser.pull_block_spec(lambda d: d["a"], block(pl))(dict(a=wide(jax)))[0]((0, 0), (), 1.0), "PyTree, got PyTreeDef(((*,), {}))"
    ),
    "references": (
        lambda jax, jnp, lax, pl, fuser: (lambda r: fuser.get_fusion_values(lambda: r[...]))(jax.new_ref(jnp.ones(2))), "Ref values are only supported"
    ),
}  # fmt: skip


WITHOUT_RULE = {
    "gather": lambda jax, jnp, lax, x: x[np.arange(256)],
    "scatter": lambda jax, jnp, lax, x: x.at[np.arange(256)].set(1.0),
    "scatter-add": lambda jax, jnp, lax, x: x.at[np.arange(256)].add(1.0),
    "dynamic_update_slice": lambda jax, jnp, lax, x: lax.dynamic_update_slice(x, np.ones((2, 2), np.float32), (0, 0)),
    "split": lambda jax, jnp, lax, x: lax.split(x, (256, 256), axis=0)[1],
    "conv_general_dilated": lambda jax, jnp, lax, x: lax.conv_general_dilated(
        x[None, None], np.ones((1, 1, 1, 1), np.float32), (1, 1), "SAME"
    )[0, 0],
    "cond": lambda jax, jnp, lax, x: lax.cond(x[0, 0] > 0, jnp.sin, jnp.cos, x),
    "while": lambda jax, jnp, lax, x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * 2), (0, x))[1],
    "scan": lambda jax, jnp, lax, x: lax.scan(lambda c, _: (c + 1, None), x, None, length=3)[0],
    "reduce_window_sum": lambda jax, jnp, lax, x: lax.reduce_window(x, 0.0, lax.add, (2, 1), (1, 1), "SAME"),
    "top_k": lambda jax, jnp, lax, x: lax.top_k(x, 4)[0],
    "random_seed": lambda jax, jnp, lax, x: x + jax.random.uniform(jax.random.key(0), x.shape),
}


@pytest.mark.oracle
@pytest.mark.parametrize("name", WITHOUT_RULE)
def test_operations_without_a_rule_are_refused(name):
    def program(jax, jnp, lax, pl, fuser):
        f = lambda x: WITHOUT_RULE[name](jax, jnp, lax, x)  # noqa: E731
        return lambda: fuser.pull_block_spec(f, block(pl), grid_len=2)(wide(jax))

    compare.same_refusal(program, [name])


@pytest.mark.oracle
@pytest.mark.parametrize("name", REFUSED)
def test_refusals_are_jaxs(name):
    program, phrase = REFUSED[name]
    compare.same_refusal(lambda jax, jnp, lax, pl, fuser: lambda: program(jax, jnp, lax, pl, fuser), [phrase])


# ---- blocks --------------------------------------------------------------------------------------------


def block(pl, shape=(128, 256)):
    return pl.BlockSpec(shape, lambda i, j: (i, j))


def wide(jax, *shape, dtype="float32"):
    return jax.ShapeDtypeStruct(shape or (512, 512), dtype)


# A function, the block of its result, and the shapes of its arguments.
PULLED = {
    "a multiple and a sum": (lambda jax, jnp, lax, x, y: x * 2 + y, [], [(512, 512), (512, 512)]),
    "a sum with a row": (lambda jax, jnp, lax, x, y: x + y, [], [(512, 512), (512,)]),
    "a broadcast row": (lambda jax, jnp, lax, x: jnp.broadcast_to(x, (512, 512)), [], [(512,)]),
    "an axis inserted": (lambda jax, jnp, lax, x: x[None] * 2, (None, 128, 256), [(512, 512)]),
    "a part": (lambda jax, jnp, lax, x: x[0], [], [(1, 512, 512)]),
    "a transpose": (lambda jax, jnp, lax, x: x.T, [], [(512, 512)]),
    "axes swapped": (lambda jax, jnp, lax, x: x.swapaxes(0, 1), (128, None, 256), [(4, 512, 512)]),
    "a slice": (lambda jax, jnp, lax, x: x[512:1024], [], [(2048, 512)]),
    "a sum with an iota": (
        lambda jax, jnp, lax, x: x + lax.broadcasted_iota(jnp.float32, (512, 512), 1),
        [],
        [(512, 512)],
    ),
    "a choice": (lambda jax, jnp, lax, x: jnp.where(x > 0, x, 0.0), [], [(512, 512)]),
    "a sum of rows": (lambda jax, jnp, lax, x: jnp.sum(x, 1, keepdims=True), (128, 1), [(512, 512)]),
    "a product": (lambda jax, jnp, lax, x, y: x @ y, [], [(512, 512), (512, 512)]),
    "a reshape": (lambda jax, jnp, lax, x: x.reshape(512, 4, 128), (128, 2, 128), [(512, 512)]),
    "a cast": (lambda jax, jnp, lax, x: x.astype(jnp.bfloat16), [], [(512, 512)]),
    "a call": (lambda jax, jnp, lax, x: jax.nn.silu(jax.jit(jnp.sin)(x)), [], [(512, 512)]),
    "powers": (lambda jax, jnp, lax, x: jnp.square(x) + x**0.5, [], [(512, 512)]),
    "bits": (lambda jax, jnp, lax, x: lax.bitcast_convert_type(x, jnp.int32), [], [(512, 512)]),
    "two results": (lambda jax, jnp, lax, x: (x * 2, x - 1), [], [(512, 512)]),
}


def spec_of(pl, shape):
    if shape == (None, 128, 256):
        return pl.BlockSpec(shape, lambda i, j: (0, i, j))
    if shape == (128, None, 256):
        return pl.BlockSpec(shape, lambda i, j: (i, 2, j))
    if shape == (128, 2, 128):
        return pl.BlockSpec(shape, lambda i, j: (i, j, 0))
    return block(pl, shape)


def pulled(name, jax, jnp, lax, pl, fuser):
    function, shape, shapes = PULLED[name]
    f = functools.partial(function, jax, jnp, lax)
    spec = spec_of(pl, shape or (128, 256))
    specs = (spec, spec) if name == "two results" else spec
    return fuser.pull_block_spec(f, specs, grid_len=2)(*[wide(jax, *s) for s in shapes])


def size(dim):
    return getattr(dim, "block_size", dim)


@pytest.mark.oracle
@pytest.mark.parametrize("name", PULLED)
def test_pulled_blocks_are_jaxs(name):
    def shapes(jax, jnp, lax, pl, fuser):
        return [tuple(map(size, s.block_shape)) for s in pulled(name, jax, jnp, lax, pl, fuser)[1]]

    compare.same(shapes)
    for number in range(len(PULLED[name][2])):
        compare.same_jaxpr(
            lambda jax, jnp, lax, pl, fuser, n=number: (
                lambda i, j: pulled(name, jax, jnp, lax, pl, fuser)[1][n].index_map(i, j)
            ),
            1,
            2,
        )


@pytest.mark.oracle
@pytest.mark.parametrize("name", PULLED)
def test_functions_for_kernels_have_jaxs_jaxprs(name):
    specs = pulled(name, jax, jnp, lax, pl, fuser)[1]
    blocks = [np.ones([size(d) for d in s.block_shape if d is not None], np.float32) for s in specs]
    compare.same_jaxpr(
        lambda jax, jnp, lax, pl, fuser: lambda *xs: pulled(name, jax, jnp, lax, pl, fuser)[0]((1, 2), (), *xs), *blocks
    )


@pytest.mark.oracle
@pytest.mark.parametrize("draw", ["bits", "uniform"])
def test_random_numbers_have_jaxs_jaxprs(draw):
    def program(jax, jnp, pl, fuser):
        f = lambda key: getattr(jax.random, draw)(jax.random.fold_in(key, 3), (512, 512))  # noqa: E731
        kernel_fn, (spec,), _ = fuser.pull_block_spec(f, block(pl), grid_len=2)(jax.random.key(0))
        assert (spec.block_shape, str(spec.memory_space)) == (None, "key")
        return lambda seed: kernel_fn((1, 2), (), jax.random.key(seed))

    compare.same_jaxpr(program, 0)


PUSHED = [
    lambda jax, jnp, lax, x: x * 2,
    lambda jax, jnp, lax, x: x.T + 1,
    lambda jax, jnp, lax, x: (x.T, x),
    lambda jax, jnp, lax, x: x.reshape(512, 4, 128),
    lambda jax, jnp, lax, x: x.astype(jnp.bfloat16),
    lambda jax, jnp, lax, x: jax.nn.gelu(x),
    lambda jax, jnp, lax, x: x[None],
    lambda jax, jnp, lax, x: x + lax.iota(jnp.float32, 512),
    lambda jax, jnp, lax, x: jnp.where(x > 0, x, 0.0),
    lambda jax, jnp, lax, x: dict(a=jax.jit(jnp.exp)(x)),
]


def pushed(function, jax, jnp, lax, pl, fuser):
    return fuser.push_block_spec(functools.partial(function, jax, jnp, lax), block(pl))(wide(jax))


@pytest.mark.oracle
@pytest.mark.parametrize("function", PUSHED)
def test_pushed_blocks_are_jaxs(function):
    compare.same(
        lambda jax, jnp, lax, pl, fuser: jax.tree.map(
            lambda s: [*map(size, s.block_shape)], pushed(function, jax, jnp, lax, pl, fuser)
        )
    )
    compare.same_jaxpr(
        lambda jax, jnp, lax, pl, fuser: lambda i, j: jax.tree.map(lambda s: s.index_map(i, j), pushed(function, jax, jnp, lax, pl, fuser)), 1, 2
    )  # fmt: skip


@pytest.mark.oracle
def test_captured_arrays_become_arguments():
    def values(jax, jnp, pl, fuser):
        w = jnp.arange(4.0)
        f, values, scalars = fuser.get_fusion_values(lambda x: x + w, jnp.ones((2, 4)))
        return values, scalars, f(values, jnp.ones((2, 4)))

    def captured(jax, jnp, pl, fuser):
        w = jnp.arange(4.0)
        f, values, _ = fuser.get_fusion_values(lambda x: x + w, jnp.ones((2, 4)))
        return lambda x: f(values, x)

    compare.same(values)
    compare.same_jaxpr(captured, np.ones((2, 4), np.float32))


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["get_stateful_input_fusion_values", "get_stateful_output_fusion_values"])
def test_captured_references_become_arguments(name):
    def program(jax, jnp, pl, fuser):
        ref, w = jax.new_ref(jnp.arange(4.0)), jnp.ones(4)

        def f(x):
            if "output" in name:
                ref[...] = x
                return x + w
            return ref[...] * x + w

        f, values, scalars, *aliases = getattr(pl.fuser, name)(f, jnp.ones(4))
        values = [x[...] for x in values]
        return len(values), scalars, aliases, jax.tree.leaves(f(tuple(values), 2 * jnp.ones(4)))

    compare.same(program)


# ---- kernels with fused functions ----------------------------------------------------------------------


def run(f, spec, grid, *xs, out=None):
    """The function by a kernel that computes it block by block, from blocks of its arguments."""
    f, values, scalars = fuser.get_fusion_values(f, *xs)
    handler = fuser.make_scalar_prefetch_handler(0)
    made = fuser.pull_block_spec(f, spec, grid_len=len(grid), scalar_prefetch_handler=handler)(values, *xs)
    kernel_fn, (value_specs, *specs), _ = made
    blocks = jax.tree.leaves((value_specs, specs), is_leaf=lambda s: s is pl.no_block_spec)
    out = jax.eval_shape(f, values, *xs) if out is None else out

    def kernel(scalar_refs, *refs):
        *ins, o = refs
        values_in = [r[...] for r in ins]
        ids = tuple(map(pl.program_id, range(len(grid))))
        n = len(values)
        o[...] = kernel_fn(ids, (scalar_refs,), tuple(values_in[:n]), *values_in[n:])

    grid_spec = pl.tpu.PrefetchScalarGridSpec(1, grid, blocks, spec)
    call = pl.pallas_call(kernel, out, grid_spec=grid_spec, interpret=True)
    return call(tuple([jnp.reshape(s, (1,)) for s in scalars]), *values, *xs)


def at(*axes):
    """An index map of the numbers of a step; -1 is 0."""
    return lambda *ids: tuple([0 if a < 0 else ids[a] for a in axes])


def numbers(*shape, dtype=jnp.float32):
    return jnp.arange(np.prod(shape)).reshape(shape).astype(dtype) % 97


W, TABLE = np.arange(8, dtype=np.float32), np.arange(256, dtype=np.float32).reshape(32, 8)
FUNCTIONS = {
    "elementwise": (lambda x, y: jnp.exp(-x) + y * 2, (4, 8), at(0, 1), (4, 2), [(16, 16)] * 2),
    "rows": (lambda x, y: x + y, (4, 8), at(0, 1), (4, 2), [(16, 16), (16,)]),
    "columns": (lambda x, y: x + y[:, None], (4, 8), at(0, 1), (4, 2), [(16, 16), (16,)]),
    "scalar": (lambda x, y: x * y, (4, 8), at(0, 1), (4, 2), [(16, 16), ()]),
    "broadcast squeezed": (lambda x: jnp.broadcast_to(x[None], (3, 16, 16)), (None, 4, 8), at(2, 0, 1), (4, 2, 3), [(16, 16)]),
    "transpose": (lambda x: x.transpose(2, 0, 1), (None, 4, 8), at(2, 0, 1), (4, 2, 3), [(16, 16, 3)]),
    "product": (lambda x, y: x @ y, (4, 8), at(0, 1), (4, 2), [(16, 5), (5, 16)]),
    "batched product": (lambda x, y: jnp.einsum("bij,bkj->bik", x, y), (None, 4, 8), at(2, 0, 1), (4, 2, 3), [(3, 16, 5), (3, 16, 5)]),
    "softmax": (lambda x: jnp.exp(x - jnp.max(x, 1, keepdims=True)), (4, 16), at(0, -1), (4,), [(16, 16)]),
    "reductions": (lambda x: jnp.max(x, 0) + jnp.min(x, 0) + jnp.prod(x > 3, 0), (8,), at(0), (2,), [(4, 16)]),
    "argmax": (lambda x: jnp.argmax(x, 1), (4,), at(0), (4,), [(16, 16)]),
    "cumsum": (lambda x: jnp.cumsum(x, 1), (4, 16), at(0, -1), (4,), [(16, 16)]),
    "sort": (lambda x: -jnp.sort(-x, 0), (16, 8), at(-1, 0), (2,), [(16, 16)]),
    "iota": (lambda x: x + lax.broadcasted_iota(jnp.float32, (16, 16), 0), (4, 8), at(0, 1), (4, 2), [(16, 16)]),
    "iota squeezed": (lambda x: x + lax.broadcasted_iota(jnp.float32, (16, 16), 0), (None, 8), at(0, 1), (16, 2), [(16, 16)]),
    "slice": (lambda x: x[8:24], (4, 8), at(0, 1), (4, 2), [(32, 16)]),
    "row of several": (lambda x: x[2], (4, 8), at(0, 1), (4, 2), [(3, 16, 16)]),
    "reversed": (lambda x: x[::-1], (4, 8), at(0, 1), (4, 2), [(16, 16)]),
    "padded": (lambda x: jnp.pad(x, ((0, 0), (3, 5))), (4, 16), at(0, -1), (4,), [(16, 8)]),
    "concatenated": (lambda x, y: jnp.concatenate([x, y], 0), (4, 8), at(0, 1), (4, 2), [(8, 16), (8, 16)]),
    "concatenated whole": (lambda x, y: jnp.concatenate([x, y], 1), (4, 16), at(0, -1), (4,), [(16, 6), (16, 10)]),
    "stacked": (lambda x, y: jnp.stack([x, y]), (None, 4, 8), at(2, 0, 1), (4, 2, 2), [(16, 16)] * 2),
    "stacked whole": (lambda x, y: jnp.stack([x, y], 1), (4, 2, 8), at(0, -1, 1), (4, 2), [(16, 16)] * 2),
    "tiled": (lambda x: jnp.tile(x, (2, 3)), (4, 24), at(0, -1), (4,), [(8, 8)]),
    "repeated": (lambda x: jnp.repeat(x, 2, 0), (4, 8), at(0, 1), (4, 2), [(8, 16)]),
    "joined axes": (lambda x: x.reshape(16, 16), (4, 8), at(0, 1), (4, 2), [(2, 8, 16)]),
    "joined blocks": (lambda x: x.reshape(16, 16), (8, 8), at(0, 1), (2, 2), [(8, 2, 4, 4)]),
    "divided axis": (lambda x: x.reshape(4, 4, 16), (None, 2, 8), at(0, 1, 2), (4, 2, 2), [(16, 16)]),
    "divided blocks": (lambda x: x.reshape(16, 4, 4), (4, 2, 4), at(0, 1, -1), (4, 2), [(16, 16)]),
    "axes of one": (lambda x: x.reshape(1, 16, 1, 16)[0], (4, None, 8), at(0, -1, 1), (4, 2), [(16, 16)]),
    "clamped": (lambda x: lax.clamp(2.0, x, 5.0), (4, 8), at(0, 1), (4, 2), [(16, 16)]),
    "element blocks": (lambda x: jnp.sin(x), (pl.Element(4), 8), lambda i, j: (i * 4, j), (4, 2), [(16, 16)]),
    "remat": (lambda x: jax.checkpoint(jnp.sin)(x), (4, 8), at(0, 1), (4, 2), [(16, 16)]),
    "captured": (lambda x: x + jnp.asarray(W), (4, 8), at(0, -1), (4,), [(16, 8)]),
    "captured scalar": (lambda x: x * jnp.asarray(W)[3], (4, 8), at(0, -1), (4,), [(16, 8)]),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_kernel_of_blocks_computes_the_function(name):
    f, shape, index_map, grid, shapes = FUNCTIONS[name]
    xs = [numbers(*s) for s in shapes]
    want = f(*xs)
    got = run(f, pl.BlockSpec(shape, lambda *ids: index_map(*ids[: len(grid)])), grid, *xs)
    compare.same_value(got, want, rtol=1e-6, why="the kernel's operations are fused differently")


@pytest.mark.parametrize("start", [0, 8, 16, 100])
def test_starts_of_slices_are_prefetched(start):
    table, first = jnp.asarray(TABLE), jnp.int32(start)
    f = lambda x: x + lax.dynamic_slice(table, (first, 0), (16, 8))  # noqa: E731
    spec = pl.BlockSpec((4, 8), lambda i, *_: (i, 0))
    compare.same_value(run(f, spec, (4,), numbers(16, 8)), f(numbers(16, 8)))


def test_rows_that_are_chosen_at_run_time():
    tables, which = jnp.stack([jnp.asarray(TABLE)] * 3) * numbers(3, 1, 1), jnp.int32(2)
    f = lambda x: x + tables[which]  # noqa: E731
    compare.same_value(run(f, pl.BlockSpec((4, 8), lambda i, *_: (i, 0)), (8,), numbers(32, 8)), f(numbers(32, 8)))


def matmul(x_fn, y_fn, out_fn, blocks=(4, 8)):
    """A product whose operands and results are functions, as kernels of users write it."""
    (m, k), (_, n) = x_fn.shape, y_fn.shape
    rows, columns = blocks
    alone = out_fn is None
    out_fn = out_fn or fuser.Fusion(lambda r: (r,), ((jax.ShapeDtypeStruct((m, n), x_fn.dtype),), {}), None)
    whole = jax.ShapeDtypeStruct((m, n), x_fn.dtype)
    functions, arrays, specs = [], [], []
    for fn, spec in ((x_fn, pl.BlockSpec((rows, k), at(0, -1))), (y_fn, pl.BlockSpec((k, columns), at(-1, 1)))):
        f, values, _ = fuser.get_fusion_values(fn)
        kernel_fn, (value_specs,), _ = fuser.pull_block_spec(f, spec, grid_len=2)(values)
        functions.append((kernel_fn, len(values)))
        arrays += values
        specs += value_specs
    f, values, _ = fuser.get_fusion_values(out_fn, whole)
    out_specs = fuser.push_block_spec(out_fn, pl.BlockSpec(blocks, at(0, 1)))(whole)
    kernel_fn, (value_specs, _), _ = fuser.pull_block_spec(f, out_specs, grid_len=2)(values, whole)
    arrays += values
    specs += value_specs

    def kernel(*refs):
        ins, outs = list(refs[: len(arrays)]), refs[len(arrays) :]
        ids = pl.program_id(0), pl.program_id(1)
        take = lambda n: tuple([ins.pop(0)[...] for _ in range(n)])  # noqa: E731
        x, y = [f(ids, (), take(n)) for f, n in functions]
        for ref, value in zip(outs, kernel_fn(ids, (), take(len(values)), x @ y), strict=True):
            ref[...] = value

    result = jax.eval_shape(f, values, whole)
    call = pl.pallas_call(
        kernel, result, grid=(m // rows, n // columns), in_specs=specs, out_specs=out_specs, interpret=True
    )
    results = call(*arrays)
    return results[0] if alone else results


def test_a_matmul_with_everything_around_it():
    def around(product):
        def f(x, y, b):
            z = product(jax.nn.relu(x).astype(jnp.float32), jnp.concatenate([y.T, y.T * 2], 1))
            return jax.nn.silu(z + b), (z * 2).T

        return f

    x, y, b = numbers(16, 8) - 40, numbers(8, 8) / 97, numbers(16)
    got = jax.jit(fuser.fuse(around(fuser.fusible(matmul))))(x, y, b)
    compare.same_value(got, around(jnp.matmul)(x, y, b), rtol=1e-5, why="sums of products in another order")


def test_a_custom_fusion_has_its_own_rules():
    scale = jnp.float32(3)

    @fuser.custom_fusion
    def scaled(x, y):
        return (x + y.T) * scale

    swapped = lambda b: b.replace(  # noqa: E731
        block_shape=b.block_shape[::-1], block_index_transform=lambda *ids: b.block_index_transform(*ids)[::-1]
    )
    scaled.def_pull_block_spec(lambda blocks: (blocks[0], swapped(blocks[0])))
    scaled.def_push_block_spec(lambda specs: (specs[0],))
    scaled.def_eval_rule(lambda context, x, y: ((x + y.T) * 3,))
    scaled.def_pallas_impl(lambda x, y: (x + y.T) * 3)
    x, y = numbers(16, 8), numbers(8, 16)
    want = (x + y.T) * 3 + 1
    compare.same_value(scaled(x, y) + 1, want)
    compare.same_value(jax.jit(lambda x, y: scaled(x, y) + 1)(x, y), want)
    compare.same_value(run(lambda x, y: scaled(x, y) + 1, pl.BlockSpec((4, 8), lambda i, *_: (i, 0)), (4,), x, y), want)
    spec = pl.BlockSpec((4, 8), lambda i: (i, 0))
    assert fuser.push_block_spec(scaled, spec, pl.no_block_spec)(x, y).block_shape == (4, 8)


def test_a_custom_fusion_has_its_own_form_in_kernels():
    @fuser.custom_fusion
    def twice(x):
        return x * 2

    twice.def_pull_block_spec(lambda blocks: blocks)
    twice.def_push_block_spec(lambda specs: specs)
    twice.def_eval_rule(lambda context, x: (x * 2,))
    twice.def_pallas_impl(lambda x: x + x + 1)

    def kernel(x, o):
        o[...] = twice(x[...])

    x = numbers(8, 128)
    call = pl.pallas_call(kernel, jax.ShapeDtypeStruct(x.shape, x.dtype), interpret=True)
    compare.same_value(call(x), x + x + 1)
    plain = pl.pallas_call(kernel, jax.ShapeDtypeStruct(x.shape, x.dtype))
    for platform in ("cuda", "tpu"):
        assert jax.jit(plain).trace(x).lower(lowering_platforms=(platform,)).as_text()


@pytest.mark.oracle
def test_custom_fusions_have_jaxs_jaxprs():
    def program(jax, jnp, pl, fuser):
        const = jnp.float32(5)

        @fuser.custom_fusion
        def shifted(x, y):
            return x + y + const

        shifted.def_pull_block_spec(lambda blocks: (blocks[0], blocks[0]))
        shifted.def_push_block_spec(lambda specs: (specs[0],))
        shifted.def_eval_rule(lambda context, x, y: (shifted(x, y),))
        shifted.def_pallas_impl(lambda x, y: x + y + 100)
        return fuser.evaluate(shifted)

    compare.same_jaxpr(program, X, X)
    for transform in ("vmap", "grad"):
        compare.same_refusal(
            lambda jax, jnp, pl, fuser, t=transform: lambda: getattr(jax, t)(lambda *xs: program(jax, jnp, pl, fuser)(*xs)[0, 0])(X[None], X[None])
        )  # fmt: skip


def test_blocks_of_another_size_are_refused():
    kernel_fn, _, _ = fuser.pull_block_spec(jnp.sin, block(pl), grid_len=2)(wide(jax))
    with pytest.raises(ValueError, match=r"block 0 has the shape \(8, 8\) and should have \(128, 256\)"):
        kernel_fn((0, 0), (), jnp.ones((8, 8)))
    loose, _, _ = fuser.pull_block_spec(jnp.sin, block(pl), grid_len=2, strict_mode=False)(wide(jax))
    assert loose((0, 0), (), jnp.ones((8, 8))).shape == (8, 8)


@pytest.mark.parametrize(
    "f, shape, error",
    [
        (lambda x: x[100:], (612, 512), "start 100 is not a multiple of the block's size 128"),
        (lambda x: jnp.cumsum(x, 0), (512, 512), "cumsum over partial blocks not supported yet"),
        (lambda x: x.reshape(512, 512), (256, 1024), "reshape not supported yet"),
        (lambda x: jnp.pad(x, ((0, 0), (0, 256))), (512, 256), "pad over partial blocks not supported yet"),
        (lambda x: lax.dynamic_slice(x, (x[0, 0].astype(int), 0), (512, 512)), (1024, 512), "depends on an argument"),
        (lambda x: jnp.concatenate([x, x]), (256 + 1, 512), "do not divide the operands' sizes"),
    ],
)
def test_blocks_that_no_rule_finds_are_refused(f, shape, error):
    with pytest.raises(NotImplementedError, match=error):
        _, specs, _ = fuser.pull_block_spec(f, block(pl), grid_len=2, scalar_prefetch_handler=lambda: ())(
            wide(jax, *shape)
        )
        specs[0].index_map(0, 0)


def test_captured_arrays_are_refused_without_get_fusion_values():
    w = jnp.ones(512)
    kernel_fn, _, _ = fuser.pull_block_spec(lambda x: x + w, block(pl), grid_len=2)(wide(jax))
    with pytest.raises(ValueError, match="captures 1 values, and the kernel has 0 scalars"):
        kernel_fn((0, 0), (), jnp.ones((128, 256)))
    with pytest.raises(ValueError, match="must have the same number of dimensions as the array shape"):
        fuser.pull_block_spec(jnp.sin, pl.BlockSpec((128,), lambda i: (i,)), grid_len=1)(wide(jax))
