"""Every elementwise operation of jax.lax, against jax: each dtype that there is, and each transform."""

import ml_dtypes
import numpy as np
import pytest
from compare import LISTED, Case, sweep
from transform_matrix import transformed

import minijax

pytestmark = pytest.mark.oracle

UNARY = """
    abs acos acosh asin asinh atan atanh bessel_i0e bessel_i1e bitwise_not cbrt ceil clz conj cos cosh digamma erf
    erf_inv erfc exp exp2 expm1 floor imag is_finite lgamma log log1p logistic neg population_count real reciprocal
    round rsqrt sign sin sinh sqrt square stop_gradient tan tanh
""".split()
BINARY = """
    add atan2 bitwise_and bitwise_or bitwise_xor complex div eq ge gt le lt max min mul mulhi ne nextafter polygamma pow rem shift_left shift_right_arithmetic shift_right_logical sub zeta
""".split()
WITH = {
    "integer_pow": [(k,) for k in (-3, 0, 1, 2, 5)],
    "round": [(1,)],
    "reduce_precision": [(5, 10), (8, 7), (1, 0), (11, 52)],
    "convert_element_type": [(d,) for d in (bool, int, float, complex, "int8", "bfloat16")],
    "bitcast_convert_type": [(d,) for d in ("int8", "uint16", "float32", "bool", "int4")],
}
TERNARY = "clamp select_n".split()
NARROW = (ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.int4, ml_dtypes.uint4)
DTYPES = (bool, np.int8, np.int16, np.int32, np.uint8, np.uint16, np.uint32, np.float16, np.float32, np.complex64,
          *NARROW)  # fmt: skip


def array(*sizes, dtype=np.float32):
    values = np.random.RandomState(0).uniform(0.1, 0.9, sizes)
    whole = dtype is bool or not dtype(0.5)
    return np.asarray(values > 0.5 if dtype is bool else values * 7 if whole else values).astype(dtype)


def op(name, *rest):
    return lambda lax: lambda *args: getattr(lax, name)(*args, *rest)


def calls(*sizes, dtype):
    """A case of each operation on arrays of one dtype."""
    x = array(*sizes, dtype=dtype)
    for count, names in ((1, UNARY), (2, BINARY), (3, TERNARY)):
        for name in names:
            which = (x != 0,) if name == "select_n" else (x,)
            yield Case(f"{name}-{np.dtype(dtype)}", op(name), (*which, *(x,) * (count - 1)), raises=LISTED)
    for name, ways in WITH.items():
        for way in ways:
            yield Case(f"{name}-{way}-{np.dtype(dtype)}", op(name, *way), (x,), raises=LISTED)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: str(np.dtype(d)))
def test_every_dtype(dtype, tier):
    sweep(list(calls(4, dtype=dtype)), tier)


MORE = [pytest.param(name, marks=pytest.mark.full) for name in ("jvp", "vmap", "hessian")]
TRANSFORMS = ["vjp", "vmap_of_grad", "jit_of_vmap_of_jvp", *MORE]


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_every_transform(transform, tier):
    sweep([transformed(case, transform) for case in calls(3, dtype=np.float32)], tier)


@pytest.mark.parametrize("transform", ["jvp", "vjp", "vmap"])
@pytest.mark.parametrize("dtype", [np.complex64, np.float16, np.int32], ids=lambda d: str(np.dtype(d)))
def test_transforms_of_other_dtypes(transform, dtype, tier):
    sweep([transformed(case, transform) for case in calls(2, dtype=dtype)], tier)


def test_every_axis(tier):
    def mapped(name, axes, *rest):
        return lambda jax, lax: jax.vmap(lambda *args: getattr(lax, name)(*args, *rest), axes, 1)

    x = array(2, 2, 2)
    pairs = [(a, b) for a in (0, 1, 2, None) for b in (0, 1, 2, None) if (a, b) != (None, None)]
    cases = [
        Case(f"{name}-{axes}", mapped(name, axes), (x, x), raises=LISTED) for name in ("sub", "atan2") for axes in pairs
    ]
    cases += [Case(f"{name}-2", mapped(name, 2), (x,), raises=LISTED) for name in ("sin", "conj", "sign")]
    cases += [Case(f"clamp-{axes}", mapped("clamp", axes), (x, x, x), raises=LISTED) for axes in ((0, 1, 2), (2, 0, 2))]
    sweep(cases, tier)


def test_empty_arrays_and_scalars(tier):
    cases = [*calls(dtype=np.float32), *calls(2, 0, dtype=np.float32)]
    sweep(cases, tier)


@pytest.mark.parametrize("kind", [bool, int, float, complex])
def test_python_scalars(kind, tier):
    value = kind(1.5) if kind in (float, complex) else kind(1)
    tables = ((1, UNARY), (2, BINARY))
    sweep(
        [
            Case(f"{name}-{kind.__name__}", op(name), (value,) * count, raises=LISTED)
            for count, names in tables
            for name in names
        ],
        tier,
    )


def test_elements_that_take_up_the_last_axis_are_mapped_along_any():
    # jax raises for the last axis.
    x = np.arange(12, dtype=np.int8).reshape(4, 3)
    found = minijax.vmap(lambda v: minijax.lax.bitcast_convert_type(v, "int32"), 1)(x)
    assert np.asarray(found).tolist() == np.ascontiguousarray(x.T).view(np.int32)[:, 0].tolist()
