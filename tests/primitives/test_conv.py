"""Convolutions, against jax: programs, texts and values."""

import itertools

import ml_dtypes
import numpy as np
import pytest
from compare import LISTED, Case, same, same_misuse, sweep
from transform_matrix import transformed

pytestmark = pytest.mark.oracle

BF16 = ml_dtypes.bfloat16
TRANSFORMS = ("plain", "jvp", "vjp", "vmap", "vmap_of_grad", "grad_of_vmap", "jvp_of_grad")
LAST = ("NHWC", "HWIO", "NHWC")
NONE = ((0, 0), (0, 0))
IMAGE, KERNEL = (4, 4, 7, 5), (6, 4, 3, 2)
# Name, shapes of the operands, what follows them in the call
FORMS = [
    ("plain", IMAGE, KERNEL, ((1, 1), "SAME"), {}),
    ("strides", IMAGE, KERNEL, ((2, 3), "VALID"), {}),
    ("same lower", IMAGE, KERNEL, ((2, 2), "SAME_LOWER"), {}),
    ("negative padding", IMAGE, KERNEL, ((1, 2), ((-1, 2), (3, -2))), {}),
    ("dilations", IMAGE, KERNEL, ((2, 3), ((1, 2), (3, 4)), (2, 3), (3, 2)), {}),
    ("dilated kernel", IMAGE, KERNEL, ((1, 1), "SAME", None, (2, 1)), {}),
    ("layout", (4, 7, 5, 4), (3, 2, 4, 6), ((1, 2), "SAME"), {"dimension_numbers": LAST}),
    ("odd layout", (7, 4, 4, 5), (3, 6, 4, 2), ((1, 2), "SAME"),
     {"dimension_numbers": ("HCNW", "HOIW", "WNHC")}),
    ("features", IMAGE, (6, 2, 3, 2), ((1, 2), "SAME"), {"feature_group_count": 2}),
    ("features last", (4, 7, 5, 4), (3, 2, 1, 8), ((1, 1), "SAME"),
     {"dimension_numbers": LAST, "feature_group_count": 4}),
    ("batches", IMAGE, KERNEL, ((2, 1), "VALID"), {"batch_group_count": 2}),
    ("batches last", (4, 7, 5, 4), (3, 2, 4, 6), ((1, 1), NONE, (2, 1), (1, 2)),
     {"dimension_numbers": ("NHWC", "HWIO", "CWNH"), "batch_group_count": 2}),
    ("one axis", (2, 3, 8), (4, 3, 3), ((2,), ((1, 1),)), {}),
    ("three axes", (1, 2, 4, 3, 5), (3, 2, 2, 3, 2), ((1, 1, 2), "SAME"), {}),
    ("no spatial axis", (4, 7), (3, 7), ((), "SAME"), {}),
    ("precision", IMAGE, KERNEL, ((1, 1), "SAME"), {"precision": ("high", "default")}),
    ("preset", IMAGE, KERNEL, ((1, 1), "SAME"), {"precision": "BF16_BF16_F32"}),
    ("window too large", (2, 3, 2), (4, 3, 3), ((1,), "VALID"), {}),
    ("empty image", (4, 4, 0, 5), KERNEL, ((1, 1), ((2, 2), (0, 0)), (2, 2)), {}),
    ("empty batch", (0, 4, 7, 5), KERNEL, ((1, 1), "SAME"), {}),
    ("no feature", (4, 0, 7, 5), (6, 0, 3, 2), ((1, 1), "SAME"), {}),
]  # fmt: skip


def array(*sizes, dtype=np.float32):
    values = np.random.RandomState(0).randint(-4, 5, sizes)
    return (values > 0 if dtype is bool else values).astype(dtype)


def program(how, named):
    return lambda lax: lambda x, w: lax.conv_general_dilated(x, w, *how, **named)


def form(name, image, kernel, how, named, dtype=np.float32):
    return Case(name, program(how, named), (array(*image, dtype=dtype), array(*kernel, dtype=dtype)))


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_convolutions_under_every_transform_equal_jax_s(transform, tier):
    sweep([transformed(form(*f), transform) for f in FORMS], tier)


@pytest.mark.parametrize("name", ["plain", "odd layout", "features last", "batches last"])
def test_convolutions_are_batched_as_in_jax_for_every_place_of_the_batch_axes(name, tier):
    ((_, image, kernel, how, named),) = (f for f in FORMS if f[0] == name)

    def batched(i, k):
        return lambda jax, lax: jax.vmap(program(how, named)(lax), in_axes=(i, k))

    def wider(shape, i):
        return array(*shape) if i is None else array(*shape[:i], 3, *shape[i:])

    places = [None, *range(5)]
    sweep(
        [
            Case(f"{name}-{i}-{k}", batched(i, k), (wider(image, i), wider(kernel, k)))
            for i, k in itertools.product(places, places)
            if (i, k) != (None, None)
        ],
        tier,
    )


@pytest.mark.parametrize("dtype", [np.float16, BF16, np.complex64])
def test_convolutions_of_other_dtypes_have_jax_s_derivatives(dtype, tier):
    some = [f for f in FORMS if f[0] in ("plain", "dilations", "features last", "batches last")]
    sweep([transformed(form(*f, dtype=dtype), t) for f in some for t in ("plain", "vjp", "jvp_of_grad")], tier)


def test_convolutions_of_every_dtype_equal_jax_s(tier):
    dtypes = (bool, np.int8, np.uint8, np.int32, np.uint32, np.float16, BF16, np.float32, np.complex64,
              ml_dtypes.float8_e4m3fn, ml_dtypes.int4)  # fmt: skip
    cases = [
        Case(
            f"{np.dtype(d)}-{p and np.dtype(p)}",
            program(((1, 1), "SAME"), {"preferred_element_type": p}),
            (array(2, 3, 4, 4, dtype=d), array(2, 3, 2, 2, dtype=d)),
            raises=LISTED,
        )
        for d in dtypes
        for p in (None, *dtypes)
    ]
    mixed = [
        Case(
            f"{np.dtype(a)} and {np.dtype(b)}",
            program(((1,), "SAME"), {}),
            (array(1, 2, 5, dtype=a), array(3, 2, 2, dtype=b)),
            raises=LISTED,
        )
        for a, b in ((np.float32, BF16), (np.float32, np.int32), (bool, np.int8))
    ]
    weak = Case(
        "weak", lambda jnp, lax: lambda x: lax.conv(*[jnp.broadcast_to(x, (1, 1, 3))] * 2, (1,), "SAME"), (1.0,)
    )
    sweep([*cases, *mixed, weak], tier)


def test_convolutions_with_a_preferred_type_have_jax_s_derivatives(tier):
    named = {"preferred_element_type": np.float32}
    cases = [
        form("lhs", IMAGE, KERNEL, ((2, 1), "SAME"), named, BF16),
        form("groups", IMAGE, (6, 2, 3, 2), ((1, 1), "SAME"), named | {"feature_group_count": 2}, BF16),
        form("batches", IMAGE, KERNEL, ((1, 1), "SAME"), named | {"batch_group_count": 2}, BF16),
    ]
    sweep([transformed(c, t) for c in cases for t in ("jvp", "vjp", "jvp_of_grad", "vmap_of_grad")], tier)


def written(text, *shapes, dtype=np.float32):
    """A case whose program is an expression of `x` and `w`."""

    def program(jax, lax):
        return eval(f"lambda x, w=None: {text}", {"jax": jax, "lax": lax, "np": np})

    return Case(
        f"{text} {shapes} {np.dtype(dtype)}", program, tuple(array(*s, dtype=dtype) for s in shapes), raises=LISTED
    )


@pytest.mark.parametrize("how", [
    "'SAME'", "'VALID'", "((1, 2), (0, 3))", "'SAME', use_consistent_padding=True",
    "((1, 2), (0, 3)), use_consistent_padding=True", "'SAME', rhs_dilation=(2, 3)", "'same'", "'foo'", "3",
    "'VALID', rhs_dilation=(2, 3), use_consistent_padding=True", "((1, 1),)",
    "'SAME', dimension_numbers=('NHWC', 'HWIO', 'CNHW'), precision='high'",
    "((1, 2), (0, 3)), transpose_kernel=True, dimension_numbers=('NHWC', 'WOIH', 'CNHW')",
])  # fmt: skip
def test_transposed_convolutions_equal_jax_s(how, tier):
    shapes = (4, 7, 5, 4), (3, 4, 6, 2) if "WOIH" in how else (3, 2, 4, 6)
    cases = [written(f"lax.conv_transpose(x, w, {s}, {how})", *shapes) for s in ("(2, 3)", "(1, 1)", "(7, 1)")]
    sweep([*cases, transformed(cases[0], "vjp")], tier)


def test_transposed_convolutions_of_every_rank_equal_jax_s(tier):
    text = "lax.conv_transpose(x, w, (2,) * {}, 'SAME', preferred_element_type=np.float32)"
    shapes = [
        ((4, 3), (3, 2)),
        ((4, 5, 3), (2, 3, 2)),
        ((1, 3, 2, 4, 2), (2, 2, 3, 2, 3)),
        ((1, 1, 1, 1, 1, 2), (1, 1, 1, 1, 2, 2)),
        ((4, 5, 3), (2, 3)),
    ]
    sweep([written(text.format(len(x) - 2), x, w) for x, w in shapes], tier)


PATCHES = [
    "(1, 2), ((0, 1), (2, 0)){}",
    "(1, 1), 'SAME'{}, rhs_dilation=(2, 2)",
    "(1, 2), ((0, 0), (0, 0)){}, lhs_dilation=(1, 2)",
    "(1, 2), 'VALID'{}, dimension_numbers=('NHWC', 'WOIH', 'CNHW')",
    "(1, 1), 'SAME'{}, dimension_numbers=('NHWC', 'OIHW', 'NHWC')",
    "(1, 1), 'SAME'{}, precision=lax.Precision.HIGH",
]


def test_patches_equal_jax_s(tier):
    texts = [f"lax.conv_general_dilated_patches(x, (3, 2), {how.format('')})" for how in PATCHES]
    cases = [written(text, IMAGE) for text in texts]
    cases += [written(texts[0], IMAGE, dtype=d) for d in (np.int32, bool, BF16, np.complex64)]
    cases += [transformed(c, t) for c in cases[:4] for t in ("vjp", "vmap")]
    for precision in ("'high'", "('high', 'high')"):
        how = PATCHES[0].format(f", precision={precision}")
        cases.append(written(f"lax.conv_general_dilated_patches(x, (3, 2), {how})", IMAGE))
    sweep(cases, tier)


def test_local_convolutions_equal_jax_s(tier):
    kernels = [(6, 24, 6, 3), (6, 24, 7, 5), (6, 24, 5, 4), (3, 6, 30, 4), (6, 30, 4, 7), (6, 24, 7, 5)]
    text = "lax.conv_general_dilated_local(x, w, {})"
    cases = [
        written(text.format(how.format(", (3, 2)")), IMAGE, kernel)
        for how, kernel in zip(PATCHES, kernels, strict=True)
    ]
    cases += [
        written(text.format(f"(1, 1), 'SAME', (3, 2), precision={p}"), IMAGE, kernels[-1])
        for p in ("('high', 'highest')", "'high'", "'BF16_BF16_F32'")
    ]
    sweep([*cases, *(transformed(c, t) for c in cases[:4] for t in ("vjp", "vmap"))], tier)


def test_the_simpler_convolutions_equal_jax_s(tier):
    shapes = IMAGE, KERNEL
    sweep(
        [
            written(text, *shapes)
            for text in (
                "lax.conv(x, w, (2, 1), 'SAME')",
                "lax.conv(x, w, (1, 1), ((0, 1), (2, 3)), 'high', np.float32)",
                "lax.conv_with_general_padding(x, w, (1, 1), 'SAME', None, None)",
                "lax.conv_with_general_padding(x, w, [1, 1], [[0, 0], [1, 1]], [2, 2], [1, 2], 'high')",
                "lax.conv_general_dilated(x, w, np.array([1, 1]), np.array([[1, 1], [1, 1]]))",
            )
        ],
        tier,
    )


SHAPES = [
    "conv_dimension_numbers((1, 2, 3, 4), (1, 2, 3, 4), None)",
    "conv_dimension_numbers((1, 2, 3), (1, 2, 3), ['NHC', 'HIO', 'NHC'])",
    "conv_dimension_numbers((1, 2), (1,), lax.ConvDimensionNumbers('a', 'b', 'c'))",
    "conv_dimension_numbers((), (), None)",
    "conv_general_permutations(('NHWC', 'HWIO', 'CNWH'))",
    "conv_shape_tuple((4, 4, 7, 5), (6, 4, 3, 2), (1, 1), 'SAME')",
    "conv_shape_tuple((4, 4, 7, 5), (6, 4, 3, 2), (1, 2), ((0, 0), (1, 1)), 2)",
    "conv_shape_tuple((4, 4, 1, 5), (6, 4, 3, 2), (1, 1), ((0, 0), (1, 1)))",
    "conv_shape_tuple((4, 4), (6, 4), (), ())",
    "conv_general_shape_tuple((4, 7, 5, 4), (3, 2, 4, 6), (1, 2), 'SAME', ('NHWC', 'HWIO', 'WNHC'))",
    "conv_transpose_shape_tuple((4, 7, 5, 4), (3, 2, 4, 6), (2, 3), 'VALID', ('NHWC', 'HWIO', 'WNHC'))",
    "conv_transpose_shape_tuple((4, 7, 5, 4), (3, 2, 4, 6), (1, 2), 'SAME', ('NHWC', 'HWIO', 'NHWC'))",
    "conv_transpose_shape_tuple((4, 7, 5, 4), (3, 2, 4, 6), (2, 3), ((0, 0), (1, 2)), ('NHWC', 'HWIO', 'NHWC'))",
]


def test_axes_and_shapes_are_jax_s():
    for text in SHAPES:
        same(
            lambda lax, text=text: repr(
                [tuple(map(plain, s)) if isinstance(s, tuple) else plain(s) for s in eval(f"lax.{text}", {"lax": lax})]
            )
        )
    same(lambda lax: repr(lax.ConvDimensionNumbers((0,), (1,), (2,))))


def plain(size):
    return int(size) if isinstance(size, np.integer) else size


VALUES = {"x": array(*IMAGE), "w": array(*KERNEL)}
CALL = "jax.lax.conv_general_dilated(x, w, "


MISUSES = [
    (CALL + "(1, 1), 'foo')", "Unrecognized padding type"),
    (CALL + "(1, 1), 3)", "padding argument to conv"),
    (CALL + "(1, 1), ((1.0, 1), (0, 0)))", "(low, high) pairs"),
    (CALL + "(1, 1), ((1, 1),))", "expected 2, got 1"),
    (CALL + "(1,), ((0, 0), (0, 0)))", "same number of dimensions"),
    (CALL + "(-1, 1), ((0, 0), (0, 0)))", ""),
    (CALL + "(1, 1), ((0, 0), (0, 0)), (1,))", ""),
    (CALL + "(1, 1), ((0, 0), (0, 0)), None, (1, 1, 1))", ""),
    (CALL + "1, 'VALID')", ""),
    (CALL + "(1, 1), 'SAME', (2, 2))", "String padding"),
    (CALL + "(1, 1), 'SAME', None, (0, 1))", "must be positive"),
    (CALL + "(1, 1), ((-5, -5), (0, 0)))", "Negative padding is larger"),
    (CALL.replace("x,", "x[0],") + "(1, 1), 'SAME')", "ndim to be equal"),
    (CALL.replace("w,", "w[:, :3],") + "(1, 1), 'SAME')", "rhs input feature"),
    (CALL.replace("w,", "w[:, :, :0],") + "(1, 1), ((0, 0), (0, 0)))", ""),
    (CALL.replace("w,", "w[:5],") + "(1, 1), 'SAME', batch_group_count=2)", "is not a multiple of"),
    (CALL + "(1, 1), 'SAME', feature_group_count=0)", "positive integer"),
    (CALL + "(1, 1), 'SAME', feature_group_count=3)", "does not divide"),
    (CALL + "(1, 1), 'SAME', batch_group_count=3)", "does not divide"),
    (CALL.replace("w,", "w[:, :2],") + "(1, 1), 'SAME', None, None, None, 2, 2)", "At most one"),
    (CALL + "(1, 1), 'SAME', dimension_numbers=('NHW', 'OIHW', 'NCHW'))", "dimension_numbers[0] must have len"),
    (CALL + "(1, 1), 'SAME', dimension_numbers=('NCHH', 'OIHW', 'NCHW'))", "duplicate characters"),
    (CALL + "(1, 1), 'SAME', dimension_numbers=('NCHW', 'OIHX', 'NCHW'))", "same set of spatial"),
    (CALL + "(1, 1), 'SAME', dimension_numbers=('NXHW', 'OIHW', 'NCHW'))", "exactly once"),
    (CALL + "(1, 1), 'SAME', dimension_numbers=('NCHW', 'OIHW'))", "length 3"),
    (CALL + "(1, 1), 'SAME', dimension_numbers=3)", "tuple/list or None"),
    (CALL + "(1, 1), 'SAME', dimension_numbers=(3, 4, 5))", "must be strings"),
    (CALL + "(1, 1), 'SAME', precision='slow')", "must be"),
    (CALL + "(1, 1), 'SAME', out_sharding=3)", "out_sharding"),
    (CALL + "(1, 1), 'SAME', out_sharding=jax.P())", "mesh context"),
    (
        "jax.lax.conv_transpose_shape_tuple((4, 7, 1), (3, 2, 1), (2,), 'foo', ('NCH', 'IOH', 'NCH'))",
        "Invalid padding mode",
    ),
    ("jax.lax.conv_shape_tuple((4, 7), (3, 2), (), (), 3)", ""),
]


@pytest.mark.parametrize("call, phrase", MISUSES)
def test_misuse_is_rejected_as_by_jax(call, phrase):
    same_misuse(call, VALUES, phrase)


@pytest.mark.parametrize("platform", ["cuda", "tpu"])
def test_complex_convolutions_are_emitted_for_accelerators_as_by_jax(platform):
    _, image, kernel, how, named = FORMS[0]
    args = array(*image, dtype=np.complex64), array(*kernel, dtype=np.complex64)

    def counts(jax, lax):
        lowered = jax.jit(program(how, named)(lax)).trace(*args).lower(lowering_platforms=(platform,))
        return lowered.as_text().count("stablehlo.convolution")

    same(counts)
