"""Elementwise ops, against jax: every dtype, and every transform."""

import inspect
import itertools
import re

import ml_dtypes
import numpy as np
import pytest
from compare import LISTED, Case, normal, same, sweep
from transform_matrix import transformed

import minijax

pytestmark = pytest.mark.oracle

UNARY = """
    abs acos acosh asin asinh atan atanh bitwise_not cbrt ceil clz conj cos cosh erf exp exp2 expm1 floor imag
    is_finite lgamma log log1p logistic neg population_count real round rsqrt sign sin sinh sqrt square tan tanh
""".split()
BINARY = """
    add atan2 bitwise_and bitwise_or bitwise_xor complex div eq ge gt le lt max min mul ne nextafter pow rem
    shift_left shift_right_arithmetic shift_right_logical sub
""".split()


def array(*sizes, dtype=np.float32):
    values = np.random.RandomState(0).uniform(0.1, 0.9, sizes)
    return np.asarray(values > 0.5 if dtype is bool else values if dtype(0.5) else values * 7).astype(dtype)


def op(name):
    return lambda lax: getattr(lax, name)


@pytest.mark.parametrize("name", BINARY)
def test_scalars_and_weak_types_beside_arrays(name, tier):
    whole = name.startswith(("bitwise", "shift"))
    x, number = array(2, 3, dtype=np.int32 if whole else np.float32), 2 if whole else 1.5
    sweep(
        [
            Case(f"{name}-right", lambda lax: lambda x: getattr(lax, name)(x, number), (x,), raises=LISTED),
            Case(f"{name}-left", lambda lax: lambda x: getattr(lax, name)(number, x), (x,), raises=LISTED),
            Case(f"{name}-both", op(name), (number, number), raises=LISTED),
        ],
        tier,
    )


@pytest.mark.parametrize("transform", ["jvp", "vjp", "linearize"])
def test_derivatives_at_python_scalars_have_jax_s_weak_types(transform, tier):
    cases = [
        Case(name, op(name), (0.75, 0.25)[:count], raises=LISTED)
        for count, names in ((1, UNARY), (2, BINARY))
        for name in names
    ]
    programs = {
        "floors": lambda jax, lax, jnp: lambda x: lax.complex(x, jnp.floor_divide(x, x)),
        "elu of complex": lambda jax, lax, jnp: lambda x: jax.nn.elu(lax.complex(x, x)).real,
        "power of integers": lambda jax, lax, jnp: lambda x: lax.pow(x, jnp.int32(3)),
        "power of an array": lambda jax, lax, jnp: lambda x: lax.pow(jnp.broadcast_to(x, (3,)), x),
    }
    cases += [Case(name, program, (0.75,)) for name, program in programs.items()]
    sweep([transformed(case, transform) for case in cases], tier)


@pytest.mark.parametrize("dtype", ["bool", "int32", "int8", "uint8", "uint32", "float32"])
def test_select_n_takes_any_integer(dtype, tier):
    which = np.array([0, 1, 1], dtype)
    case = Case(f"two-{dtype}", op("select_n"), (which, array(3), array(3) * 2), raises=LISTED)
    more = Case(f"three-{dtype}", op("select_n"), (which, array(3), array(3) * 2, array(3) * 3), raises=LISTED)
    scalar = Case(f"scalar-{dtype}", op("select_n"), (which[1], array(3), array(3) * 2), raises=LISTED)
    sweep([transformed(c, t) for c in (case, more, scalar) for t in ("plain", "vmap", "vjp")], tier)


SPREAD = ("add", "sub", "rem", "complex", "mul", "div", "atan2", "max", "pow")


@pytest.mark.parametrize("name", SPREAD)
def test_tangents_are_spread_with_the_operands(name, tier):
    def left(y):
        return lambda lax: lambda x: getattr(lax, name)(x, y)

    def right(y):
        return lambda lax: lambda x: getattr(lax, name)(y, x)

    shapes = [((1, 3), (2, 3)), ((2, 3), (2, 1)), ((), (2, 3)), ((2, 1), (1, 3))]
    cases = [
        Case(f"{name}-{n}-{side.__name__}", side(array(*b) + 2), (array(*a) + 2,), raises=LISTED)
        for n, (a, b) in enumerate(shapes)
        for side in (left, right)
    ]
    sweep([transformed(c, t) for c in cases for t in ("jvp", "vjp", "vmap_of_grad")], tier)


def test_powers_with_integers_are_spread(tier):
    shapes = [((1, 3), (2, 3)), ((2, 3), (2, 1)), ((), (2, 3)), ((2, 3), ())]
    cases = [Case(f"{n}", op("pow"), (array(*a) + 2, array(*b, dtype=np.int32))) for n, (a, b) in enumerate(shapes)]
    sweep([transformed(c, t) for c in cases for t in ("jvp", "vjp", "vmap_of_grad")], tier)


def test_clamp_is_weak_where_all_its_operands_are(tier):
    x = np.float32(2)
    cases = [
        Case(f"{low}-{y}-{high}", lambda lax: lambda a, b, c: lax.clamp(a, b, c), (low, y, high))
        for low in (1.0, x)
        for y in (1.5, x)
        for high in (3.0, x)
    ]
    sweep([transformed(c, t) for c in cases for t in ("plain", "jvp")], tier)


def test_clamp_stays_where_all_its_operands_are_mapped(tier):
    last = Case("last", lambda jax, lax: jax.vmap(lambda x: lax.clamp(x, x, x), 1), (array(2, 3),))
    sweep([last], tier)


ACCURATE = "exp log sin cos tan tanh exp2 log1p expm1 logistic cbrt rsqrt sqrt".split()


@pytest.mark.parametrize("transform", ["plain", "jvp", "vmap_of_grad"])
def test_accuracies_are_carried_as_by_jax(transform, tier):
    def accurate(name, of):
        return lambda lax: lambda x: getattr(lax, name)(x, accuracy=of(lax))

    ways = {"highest": lambda lax: lax.AccuracyMode.HIGHEST, "default": lambda lax: lax.AccuracyMode.DEFAULT}
    # Reverse derivatives of jax's sine lose the accuracy that its forward ones keep.
    names = [name for name in ACCURATE if (name, transform) != ("sin", "vmap_of_grad")]
    sweep(
        [
            transformed(
                Case(f"{name}-{np.dtype(dtype)}-{way}", accurate(name, of), (array(3, dtype=dtype),), raises=LISTED),
                transform,
            )
            for name in names
            for way, of in ways.items()
            for dtype in (np.float32, np.complex64)
        ],
        tier,
    )


def test_tolerances_are_written_as_by_jax():
    def tolerant(name, *how):
        return lambda lax: lambda x: getattr(lax, name)(x, accuracy=lax.Tolerance(*how))

    cases = [
        Case(f"{name}-{how}", tolerant(name, *how), (array(3),))
        for name in ("exp", "sin", "logistic")
        for how in ((1e-3, 1e-5, 0), (0.0, 0.0, 5), (0.1,))
    ]
    sweep(cases, jaxpr=False)
    sweep([Case("bogus", lambda lax: lambda x: lax.exp(x, accuracy="bogus"), (array(3),), raises=LISTED)])


@pytest.mark.parametrize("how", [{}, {"atol": -1.0}, {"ulps": -2}])
def test_wrong_tolerances_raise_as_in_jax(how):
    same(lambda lax: lax.Tolerance(**how), raises=True)


@pytest.mark.parametrize("transform", ["plain", "jvp", "vjp", "vmap"])
def test_products_of_another_dtype_equal_jax_s(transform, tier):
    def product(out):
        return lambda lax: lambda x, y: lax.mul(x, y, out_dtype=out)

    pairs = [
        (ml_dtypes.bfloat16, ml_dtypes.bfloat16, "float32"),
        (np.float32, np.float32, "bfloat16"),
        (np.int8, np.int8, "int32"),
        (np.float32, np.float16, "float32"),
        (np.float32, np.float32, "float32"),
    ]
    cases = [
        Case(f"{np.dtype(a)}-{np.dtype(b)}-{out}", product(out), (array(3, dtype=a), array(3, dtype=b)), raises=LISTED)
        for a, b, out in pairs
    ]
    sweep([transformed(case, transform) for case in cases], tier)


# The vjp of this product ends jax's process in XLA.
def test_products_of_reals_may_be_complex():
    x, y = array(3), array(3) + 1
    product, pull = minijax.vjp(lambda x, y: minijax.lax.mul(x, y, out_dtype="complex64"), x, y)
    assert product.dtype == np.complex64 and (np.asarray(product) == x * y).all()
    for run in (pull, minijax.jit(pull)):
        left, right = run(product + 1j)
        assert left.dtype == np.float32 and (np.asarray(left) == x * y * y).all()
        assert (np.asarray(right) == x * (x * y)).all()


def test_signatures_are_those_of_jax():
    def found(lax):
        names = [*UNARY, *BINARY, *ACCURATE, "mulhi", "polygamma", "igamma", "igammac", "betainc", "zeta"]
        parameters = {n: inspect.signature(getattr(lax, n)).parameters.values() for n in names if n != "round"}
        return str({n: [(p.name, p.kind, p.default) for p in ps] for n, ps in parameters.items()})

    same(lambda lax: found(lax))


@pytest.mark.parametrize("name", ["select_n", "clamp", "clamp by numbers", "select by one"])
def test_operands_with_batch_axes_at_several_places(name):
    def rows(x, at):
        return x if at is None else np.stack([x] * 3, at)

    def jaxprs(jax, lax):
        f = lax.clamp if "clamp" in name else lax.select_n
        x, number = np.ones((2, 4), np.float32), np.float32(1)
        first = (
            np.True_ if name == "select by one" else number if "numbers" in name else x if "clamp" in name else x > 0
        )
        last = number if "numbers" in name else x
        places = [[None, *range(np.ndim(a) + 1)] for a in (first, x, last)]
        found = []
        for axes in itertools.product(*places):
            if any(at is not None for at in axes):
                args = map(rows, (first, x, last), axes)
                found.append(normal(re.sub(r"\s+", "", str(jax.make_jaxpr(jax.vmap(f, axes))(*args)))))
        return [re.sub(r"np\.int64\((\d+)\)", r"\1", text) for text in found]

    same(jaxprs)
