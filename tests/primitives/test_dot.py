"""Products of arrays, against jax: programs, texts and values."""

import contextlib
import itertools

import ml_dtypes
import numpy as np
import pytest
from compare import LISTED, Case, outcome, same, same_error, sweep
from transform_matrix import transformed

import minijax

pytestmark = pytest.mark.oracle

PLAIN = (((1,), (0,)), ((), ()))
BF16 = ml_dtypes.bfloat16
DTYPES = (bool, np.int8, np.uint8, np.int32, np.uint32, np.float16, BF16, np.float32, np.complex64,
          ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2)  # fmt: skip
TRANSFORMS = ("plain", "jvp", "vjp", "vmap_of_grad", "grad_of_vmap", "jvp_of_grad")
NUMBERS = [
    (PLAIN, (3, 4), (4, 5)),
    ((((2,), (1,)), ((0,), (0,))), (2, 3, 4), (2, 4, 5)),
    ((((0,), (2,)), ((1,), (1,))), (4, 7, 3), (6, 7, 4)),
    ((((2, 0), (1, 3)), ((1,), (0,))), (2, 3, 4, 5), (3, 4, 6, 2)),
    ((((3,), (3,)), ((0, 1), (1, 0))), (2, 3, 3, 4), (3, 2, 2, 4)),
    ((((), ()), ((), ())), (3,), (2,)),
    ((((0,), (0,)), ((), ())), (0, 3), (0, 2)),
    ((((0,), (0,)), ((), ())), (4,), (4,)),
]


def array(*sizes, dtype=np.float32):
    values = np.random.RandomState(0).randn(*sizes) * 3
    return np.asarray(values > 0 if dtype is bool else values).astype(dtype)


def product(numbers=PLAIN, **how):
    return lambda lax: lambda x, y: lax.dot_general(x, y, numbers, **how)


def pair(left=np.float32, right=np.float32):
    return array(3, 4, dtype=left), array(4, 5, dtype=right)


def test_products_under_every_transform_equal_jax_s():
    cases = [Case(f"{n}", product(n), (array(*left), array(*right))) for n, left, right in NUMBERS]
    sweep([transformed(c, t) for c in cases for t in TRANSFORMS])


def test_products_are_batched_as_in_jax_for_every_place_of_the_batch_axes():
    def batched(numbers, i, k):
        return lambda jax, lax: jax.vmap(product(numbers)(lax), in_axes=(i, k))

    def wider(shape, i):
        return array(*shape) if i is None else array(*shape[:i], 2, *shape[i:])

    sweep(
        [
            Case(f"{n}-{i}-{k}", batched(n, i, k), (wider(left, i), wider(right, k)))
            for n, left, right in NUMBERS[1:4]
            for i, k in itertools.product([None, *range(len(left) + 1)], [None, *range(len(right) + 1)])
            if (i, k) != (None, None)
        ]
    )


def test_products_of_every_two_dtypes_equal_jax_s():
    sweep([Case(f"{np.dtype(a)}-{np.dtype(b)}", product(), pair(a, b)) for a, b in itertools.product(DTYPES, DTYPES)])


def test_preferred_types_equal_jax_s():
    some = [(np.int8, np.int8), (np.int32, np.int32), (BF16, np.float32), (np.complex64, np.complex64)]
    sweep(
        [
            Case(
                f"{np.dtype(a)}-{np.dtype(b)}-{np.dtype(p)}",
                product(preferred_element_type=p),
                pair(a, b),
                raises=LISTED,
            )
            for a, b in some
            for p in DTYPES
            if p is not bool
        ]
    )


def test_products_with_a_preferred_type_or_an_algorithm_have_jax_s_derivatives():
    made = [
        ({"preferred_element_type": np.float32}, BF16, BF16),
        ({}, BF16, np.float32),
        ({"preferred_element_type": np.complex64}, np.float32, np.complex64),
        ({"precision": "BF16_BF16_F32", "preferred_element_type": np.float32}, BF16, BF16),
        ({"precision": "F16_F16_F16"}, np.float16, np.float16),
        ({}, np.float32, np.int32),
    ]
    cases = [
        Case(
            f"{n} {how} {np.dtype(a)}",
            product(n, **how),
            (array(*left, dtype=a), array(*right, dtype=b)),
            raises=LISTED,
        )
        for n, left, right in (NUMBERS[0], NUMBERS[3])
        for how, a, b in made
    ]
    sweep([transformed(c, t) for c in cases for t in ("jvp", "vjp", "vmap_of_grad", "jvp_of_grad")])


@pytest.mark.parametrize("left, right", [(np.float32, np.float32), (BF16, BF16), (np.int8, np.int8)])
def test_precisions_and_algorithms_equal_jax_s(left, right):
    how = ["high", "fastest", "tensorfloat32", ("high", "default"), "BF16_BF16_F32", "F16_F16_F16",
           "BF16_BF16_F32_X3", "F32_F32_F32", "BF16_BF16_F32_X9", "TF32_TF32_F32", "slow", 3]  # fmt: skip
    sweep(
        [
            Case(f"{p}-{t}", product(precision=p, preferred_element_type=t), pair(left, right), raises=LISTED)
            for p in how
            for t in (None, np.float32)
        ]
    )


@pytest.mark.parametrize("precision", ["bfloat16", "high", "F32_F32_F32"])
def test_the_configured_precision_is_the_default(precision):
    def program(jax):
        def f(x, y):
            with jax.default_matmul_precision(precision):
                return jax.lax.dot(x, y), jax.lax.dot(x, y, precision="default")

        return f

    sweep([Case(precision, program, pair())])


def test_algorithms_for_accelerators_are_emitted_as_by_jax():
    x, y = pair()
    for name in ("TF32_TF32_F32", "BF16_BF16_F32_X9", "BF16_BF16_BF16"):
        texts = []
        for m in sides():
            traced = m.jit(product(precision=name)(m.lax)).trace(x, y)
            texts.append(traced.lower(lowering_platforms=("cuda",)).as_text())
        algorithm = [t[t.index("algorithm") : t.index(">", t.index("algorithm"))] for t in texts]
        assert algorithm[0] == algorithm[1]


def test_dot_and_batch_matmul_equal_jax_s():
    shapes = [((4,), (4, 5)), ((4,), (4,)), ((3, 4), (4,)), ((2, 3, 4), (4, 5)), ((5,), (4,)), ((3, 4), (3, 4))]
    cases = [Case(f"dot-{a}-{b}", lambda lax: lax.dot, (array(*a), array(*b)), raises=LISTED) for a, b in shapes]
    shapes = [((2, 3, 4), (2, 4, 5)), ((3,), (3,)), ((2, 3, 4), (4, 5)), ((7, 2, 3, 4), (7, 2, 4, 5))]
    cases += [
        Case(f"bmm-{a}-{b}", lambda lax: lax.batch_matmul, (array(*a), array(*b)), raises=LISTED) for a, b in shapes
    ]
    cases.append(Case("weak", lambda lax: lambda x: lax.dot_general(x, 2.0, (((), ()), ((), ()))), (1.0,)))
    sweep(cases)


@pytest.mark.parametrize("numbers", [(((0,), (0,)), ((), ())), (((2,), (0,)), ((), ())),
                                     (((1, 0), (0,)), ((), ())), (((1,), (0,)), ((0,), (1,))),
                                     (((1,), (0,)), ((0,), ())),
                                     (((1,), (0,)), ((1,), (0,))), 3])  # fmt: skip
def test_dimension_numbers_that_do_not_fit_are_rejected(numbers):
    same_error(*(lambda m=m: m.lax.dot_general(*pair(), numbers) for m in sides()))


@pytest.mark.parametrize("how", [
    {"precision": ("high", None)}, {"precision": ("high",)}, {"out_sharding": 3}, {"precision": 3},
])  # fmt: skip
def test_other_precisions_and_shardings_are_rejected(how):
    same_error(*(lambda m=m: m.lax.dot_general(*pair(), PLAIN, **how) for m in sides()))


@pytest.mark.parametrize("axes, spec", [(None, "a"), ("Auto", "a"), ("Auto", None), ("Auto", "z")])
def test_out_shardings_are_accepted_as_by_jax(axes, spec):
    def call(jax):
        kind = jax.sharding.AxisType
        mesh = jax.make_mesh((1,), ("a",), axis_types=(getattr(kind, axes or "Auto"),))
        with contextlib.nullcontext() if axes is None else jax.set_mesh(mesh):
            return jax.lax.dot(*pair(), out_sharding=jax.P(spec))

    results = [outcome(lambda m=m: call(m)) for m in sides()]
    assert type(results[0].error) is type(results[1].error)
    assert results[0].error or (results[0].value == np.asarray(results[1].value)).all()


def test_precisions_are_found_by_the_names_that_jax_knows():
    ours, theirs = (m.lax.Precision for m in sides())
    for value in ("high", "bfloat16", "float32", None, 0, "tensorfloat32"):
        assert repr(ours(value)) == repr(theirs(value))
    with pytest.raises(ValueError):
        ours("foo")


def test_presets_support_the_dtypes_of_those_of_jax():
    ours, theirs = (m.lax.DotAlgorithmPreset for m in sides())
    dtypes = (np.float16, BF16, np.float32, np.float64)
    for mine, other in zip(ours, theirs, strict=True):
        assert (mine.name, mine.value) == (other.name, other.value)
        assert types(mine.supported_lhs_types) == types(other.supported_lhs_types)
        assert types(mine.accumulation_type) == types(other.accumulation_type)
        for d in dtypes:
            outs = (p.supported_output_types(d, d) for p in (mine, other))
            assert len({types(o) for o in outs}) == 1


def types(found):
    if found is None:
        return None
    return tuple(np.dtype(d) for d in found) if isinstance(found, tuple) else np.dtype(found)


def sides():
    return minijax, pytest.importorskip("jax")


KINDS = "bool int8 uint8 int32 bfloat16 float16 float32 complex64".split()


def test_preferred_types_may_be_narrower_for_floats_alone():
    def asked(jax, jnp):
        def product(a, b, preferred):
            try:
                x, y = (jax.ShapeDtypeStruct((2,), d) for d in (a, b))
                how = dict(dimension_numbers=(((0,), (0,)), ((), ())), preferred_element_type=jnp.dtype(preferred))
                return str(jax.eval_shape(lambda x, y: jax.lax.dot_general(x, y, **how), x, y).dtype)
            except TypeError as error:
                return "must not be narrower" in str(error)

        return [product(*kinds) for kinds in itertools.product(KINDS, repeat=3)]

    same(asked)
