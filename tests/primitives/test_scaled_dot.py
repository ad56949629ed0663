"""Products of scaled arrays, against jax: programs, texts and values."""

import itertools

import ml_dtypes
import numpy as np
import pytest
from compare import LISTED, Case, same_misuse, sweep
from transform_matrix import transformed

pytestmark = pytest.mark.oracle

F8, E8, BF16, F4 = (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e8m0fnu, ml_dtypes.bfloat16, ml_dtypes.float4_e2m1fn)


def array(*sizes, dtype=F8):
    values = np.random.RandomState(0).randint(1 if dtype is E8 else -3, 5, sizes)
    return values.astype(np.float32).astype(dtype)


def program(x, w, s, t, **how):
    """The product of `x` and `w`, with the scales that are given."""

    def made(lax):
        scales = [("lhs_scale", s), ("rhs_scale", t)]
        given = [name for name, value in scales if value is not None]
        return lambda x, w, *found: lax.scaled_dot(x, w, **dict(zip(given, found, strict=True)), **how)

    return Case("", made, tuple(v for v in (x, w, s, t) if v is not None))


def case(x, w, s=None, t=None, **how):
    made = program(x, w, s, t, **how)
    name = f"{[(v.shape, v.dtype.name) for v in made.args]} {s is None} {how}"
    return Case(name, made.program, made.args, raises=LISTED)


PAIR = array(4, 64), array(64, 8)
SCALES = array(4, 2, dtype=E8), array(2, 8, dtype=E8)
LAST = (((2,), (2,)), ((0,), (0,)))
CASES = [
    case(*PAIR, *SCALES),
    case(*PAIR),
    case(*PAIR, SCALES[0]),
    case(*PAIR, t=SCALES[1]),
    case(*PAIR, *SCALES, preferred_element_type=np.float32),
    case(*PAIR, *SCALES, preferred_element_type="float16"),
    case(*PAIR, array(4, 32, dtype=E8), array(1, 8, dtype=BF16)),
    case(array(3, 4, 64), array(3, 8, 64), array(3, 4, 2, dtype=E8), array(3, 8, 4, dtype=E8), dimension_numbers=LAST),
    case(array(2, 4, 64, dtype=BF16), array(2, 64, 8, dtype=BF16)),
    case(array(2, 1, 4, 8), array(2, 1, 8, 3)),
    case(array(4, 64, 2), array(64, 2, 8), dimension_numbers=(((1, 2), (0, 1)), ((), ()))),
    case(array(4, 8), array(4, 8), dimension_numbers=(((), ()), ((0,), (0,)))),
    case(array(0, 64), array(64, 8)),
]


@pytest.mark.parametrize("transform", ["plain", "vmap", "vmap_of_vmap", "grad"])
def test_scaled_products_equal_jax_s(transform, tier):
    sweep([transformed(c, transform) for c in CASES], tier)


def test_scaled_products_of_every_dtype_equal_jax_s(tier):
    kinds = (F8, ml_dtypes.float8_e5m2, F4, BF16, np.float16, np.float32, np.int8)
    sweep(
        [
            case(array(4, 16, dtype=a), array(16, 8, dtype=b), array(4, 2, dtype=E8))
            for a, b in itertools.product(kinds, kinds)
        ],
        tier,
    )


def test_scaled_products_are_batched_as_in_jax_for_some_operands(tier):
    def batched(places):
        return lambda jax, lax: jax.vmap(CASES[0].program(lax), in_axes=places)

    def wider(x, i):
        return x if i is None else np.stack([x] * 3, i)

    sweep(
        [
            Case(f"{places}", batched(places), tuple(map(wider, CASES[0].args, places)))
            for places in [(0, None, 0, None), (None, 0, None, 0), (1, 2, 1, 2), (0, 0, None, 0)]
        ],
        tier,
    )


VALUES = {"x": PAIR[0], "w": PAIR[1], "s": SCALES[0], "t": SCALES[1]}


@pytest.mark.parametrize("call, phrase", [
    ("x, w, lhs_scale=s[:3]", "does not match scale dim size"), ("x, w, lhs_scale=x[:, :3]", "must be divisible"),
    ("x, w, lhs_scale=x", "at least 2"), ("x, w, lhs_scale=s[0]", "same rank"), ("x, w[None]", "same rank"),
    ("x[0], w[:, 0]", "0-rank and 1-rank"), ("x, w[:62]", "does not match RHS contracting dim"),
    ("jnp.stack([x] * 3), jnp.stack([w[:62]] * 2)", "must have the same batch dimension size"), ("x, w, dimension_numbers=3", ""),
    ("x, w, dimension_numbers=(((0,), (0,)), ((), ()))", ""), ("x, w, preferred_element_type='foo'", ""),
    ("x[:, :0], w[:0]", ""),
])  # fmt: skip
def test_misuse_is_rejected_as_by_jax(call, phrase):
    same_misuse(f"jax.lax.scaled_dot({call})", VALUES, phrase)
