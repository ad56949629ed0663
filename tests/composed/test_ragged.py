"""Products of divided arrays, against jax: programs, texts and values."""

import dataclasses

import ml_dtypes
import numpy as np
import pytest
from compare import Case, ours, run_on, same, same_misuse, same_value, sweep, theirs
from transform_matrix import transformed

pytestmark = pytest.mark.oracle

BF16 = ml_dtypes.bfloat16
# Contracting and batch axes, the divided axis, the axis of groups; shapes of the operands and group sizes
PLAIN = ((((1,), (1,)), ((), ())), [0], [0], (11, 3), (4, 3, 5), (4,))
KEPT = [
    PLAIN,
    ((((2,), (2,)), ((0,), (0,))), [1], [1], (2, 11, 3), (2, 4, 3, 5), (2, 4)),
    ((((2,), (2,)), ((0,), (0,))), [1], [1], (2, 11, 3), (2, 4, 3, 5), (4,)),
    ((((0,), (2,)), ((), ())), [1], [1], (3, 11), (5, 4, 3), (4,)),
    ((((0, 2), (2, 0)), ((), ())), [1], [1], (3, 11, 2, 7), (2, 4, 3, 5), (4,)),
    ((((0,), (2,)), ((3,), (1,))), [1], [3], (3, 11, 7, 2), (5, 2, 3, 4), (2, 4)),
    ((((0,), (2,)), ((3, 1), (1, 4))), [2], [3], (3, 6, 11, 2), (5, 2, 3, 4, 6), (2, 6, 4)),
    ((((2,), (1,)), ((), ())), [1], [0], (6, 11, 3), (4, 3, 5), (6, 4)),
    ((((1,), (2,)), ((), ())), [0], [1], (11, 3), (5, 4, 3), (4,)),
    ((((1,), (1,)), ((), ())), [0], [0], (3, 2), (0, 2, 4), (0,)),
    ((((1,), (1,)), ((), ())), [0], [0], (0, 2), (3, 2, 4), (3,)),
]
CONTRACTED = [
    ((((0,), (0,)), ((), ())), [0], [], (11, 3), (11, 5), (4,)),
    ((((1,), (1,)), ((0,), (0,))), [1], [], (2, 11, 3), (2, 11, 5), (2, 4)),
    ((((0, 1), (2, 0)), ((), ())), [1], [], (3, 11, 7), (11, 5, 3), (4,)),
    ((((0, 1), (2, 0)), ((), ())), [1], [], (3, 11, 7), (11, 5, 3), (3, 4)),
    ((((0, 1), (3, 0)), ((3,), (1,))), [1], [], (3, 11, 7, 2), (11, 2, 5, 3), (2, 3, 4)),
]
BATCHED = [
    ((((2,), (1,)), ((0,), (0,))), [0], [], (11, 3, 2), (11, 2, 5), (4,)),
    ((((3,), (2,)), ((0, 1), (0, 1))), [1], [], (2, 11, 6, 3), (2, 11, 3, 5), (2, 4)),
]


def array(*sizes, dtype=np.float32):
    return (np.random.RandomState(0).randint(-4, 5, sizes)).astype(dtype)


def group_sizes(*shape, dtype=np.int32):
    sizes = np.random.RandomState(0).randint(0, 5, shape)
    return sizes.astype(dtype)


def product(dot, ragged, groups, **how):
    def program(lax):
        numbers = lax.RaggedDotDimensionNumbers(dot, ragged, groups)
        return lambda x, y, sizes: lax.ragged_dot_general(x, y, sizes, numbers, **how)

    return program


def case(form, dtypes=(np.float32, np.float32, np.int32), **how):
    dot, ragged, groups, left, right, sizes = form
    a, b, c = dtypes
    args = array(*left, dtype=a), array(*right, dtype=b), group_sizes(*sizes, dtype=c)
    return Case(f"{form} {how} {[np.dtype(d).name for d in dtypes]}", product(dot, ragged, groups, **how), args)


@pytest.mark.parametrize("forms", [KEPT, CONTRACTED, BATCHED], ids=["kept", "contracted", "batched"])
def test_ragged_products_equal_jax_s(forms, tier):
    sweep([transformed(case(f), t) for f in forms for t in ("plain", "jvp", "vjp")], tier)


def test_ragged_products_are_batched_along_leading_axes_as_in_jax(tier):
    forms = [KEPT[0], KEPT[3], CONTRACTED[0], *BATCHED]
    sweep([transformed(case(f), t) for f in forms for t in ("vmap", "grad_of_vmap")], tier)


@pytest.mark.parametrize("form", [KEPT[1], KEPT[5], CONTRACTED[1], CONTRACTED[4]])
def test_ragged_products_are_batched_beside_other_batch_axes(form):
    def batched(jax, jnp, lax):
        return jax.vmap(product(*form[:3])(lax))(*map(jnp.asarray, args))

    def one_by_one(jnp, lax):
        return jnp.stack([product(*form[:3])(lax)(*xs) for xs in zip(*args, strict=True)])

    args = [np.stack([x, x[::-1]]) for x in case(form).args]
    # jax's own batching fails here: it hands numpy ints to vmap.
    same_value(run_on(ours(), batched), run_on(theirs(), one_by_one))


def test_ragged_products_batched_along_some_operands_are_rejected_as_by_jax(tier):
    def program(places):
        return lambda jax, lax: jax.vmap(product(*PLAIN[:3])(lax), in_axes=places)

    for places in ((0, None, None), (1, 1, 1), (0, 0, None)):
        shapes = [s if i is None else (*s[:i], 2, *s[i:]) for s, i in zip(PLAIN[3:], places, strict=True)]
        args = array(*shapes[0]), array(*shapes[1]), group_sizes(*shapes[2])
        sweep([Case(f"{places}", program(places), args, raises=True)], tier)


def test_derivatives_by_one_operand_are_jax_s(tier):
    def by(argnum):
        return lambda jax, lax: jax.grad(lambda *args: product(*PLAIN[:3])(lax)(*args).sum(), argnums=argnum)

    cases = [dataclasses.replace(case(PLAIN), name=f"by {i}", program=by(i)) for i in (0, 1)]
    sweep([*cases, transformed(case(PLAIN), "jvp_of_grad"), transformed(case(PLAIN), "vmap_of_grad")], tier)


def test_ragged_products_of_other_dtypes_equal_jax_s(tier):
    kinds = [
        (BF16, BF16, np.int32),
        (np.float32, BF16, np.int8),
        (np.complex64, np.complex64, np.uint32),
        (np.int8, np.int8, np.int16),
        (bool, bool, np.int32),
        (np.float16, np.float16, np.uint8),
    ]
    cases = [case(form, kind) for form in (KEPT[0], KEPT[3], CONTRACTED[0]) for kind in kinds]
    cases += [transformed(case(KEPT[3], kind), "vjp") for kind in kinds[:3]]
    for how in ({"preferred_element_type": np.float32}, {"precision": "high"}, {"precision": "F32_F32_F32"}):
        some = case(KEPT[3], kinds[0], **how)
        cases += [some, transformed(some, "vjp"), transformed(some, "vmap")]
    sweep(cases, tier)


def test_ragged_dot_is_the_matrix_product_of_each_group(tier):
    args = array(11, 3), array(4, 3, 5), np.array([3, 0, 2, 9], np.int32)
    sweep([Case("ragged_dot", lambda lax: lax.ragged_dot, args), Case("ragged_dot with negative sizes",
           lambda lax: lax.ragged_dot, (*args[:2], np.array([3, -2, 1, 4], np.int32)))], tier)  # fmt: skip


@pytest.mark.parametrize("form", [PLAIN, KEPT[5], CONTRACTED[4], BATCHED[1]])
@pytest.mark.parametrize("platform", ["cuda", "tpu"])
def test_accelerators_get_the_instruction_that_jax_s_get(platform, form):
    def line(jax, lax):
        made = case(form, precision="high")
        lowered = jax.jit(made.program(lax)).trace(*made.args).lower(lowering_platforms=(platform,))
        return next(text for text in lowered.as_text().splitlines() if "ragged_dot" in text and "=" in text)

    same(line)


def test_dimension_numbers_are_values_as_in_jax():
    def program(lax):
        made = lax.RaggedDotDimensionNumbers
        one, other = made([[[1], [1]], [[], []]], [0], [0]), made((((1,), (1,)), ((), ())), (0,), (0,))
        return repr(one), one == other, hash(one) == hash(other)

    same(program)


VALUES = {"x": array(11, 3), "w": array(4, 3, 5), "g": group_sizes(4)}
NUMBERS = "jax.lax.RaggedDotDimensionNumbers"
GENERAL = "jax.lax.ragged_dot_general(x, w, g, " + NUMBERS


@pytest.mark.parametrize("call, phrase", [
    ("jax.lax.ragged_dot(x, w, g[None])", "expected group_sizes to have shape"),
    ("jax.lax.ragged_dot(x, w, g[:3])", "expected rhs group dimension size to be 3"),
    ("jax.lax.ragged_dot(x, w, g.astype('float32'))", "subtype of np.integer"),
    ("jax.lax.ragged_dot(x, w, g[0])", "rank of group_sizes"),
    ("jax.lax.ragged_dot(x[:, :2], w, g)", "contracting dimensions to have the same shape"),
    ("jax.lax.ragged_dot(x, w, g, 'slow')", "must be"),
    ("jax.lax.ragged_dot(x, w, g, out_sharding=3)", "out_sharding"),
    (GENERAL + "((((1,), (1,)), ((), ())), [], [0]))", "exactly one lhs ragged"),
    (GENERAL + "((((1,), (1,)), ((), ())), [0], []))", "exactly one rhs group"),
    (GENERAL + "((((1,), (1,)), ((), ())), [2], [0]))", "lhs ragged dimension numbers"),
    (GENERAL + "((((1,), (1,)), ((), ())), [0], [3]))", "rhs group dimension numbers"),
    (GENERAL + "((((1,), (1,)), ((), ())), [0], [1]))", "distinct from"),
    (GENERAL + "((((1,), (1,)), ((), ())), [1], [0]))", "zero group dimensions"),
    (NUMBERS + "(3, [0], [0])", ""),
])  # fmt: skip
def test_misuse_is_rejected_as_by_jax(call, phrase):
    same_misuse(call, VALUES, phrase)
