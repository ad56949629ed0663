"""Reductions and the places of extrema, against jax: programs, texts and values."""

import ml_dtypes
import numpy as np
import pytest
from compare import Case, check, same_error, same_jaxpr, same_refusal, sweep
from transform_matrix import transformed

import minijax

pytestmark = pytest.mark.oracle

NUMERIC = ("reduce_sum", "reduce_prod", "reduce_max", "reduce_min")
LOGICAL = ("reduce_and", "reduce_or", "reduce_xor")
TRANSFORMS = ("plain", "jvp", "vjp", "vmap", "vmap_of_grad", "grad_of_vmap", "jvp_of_grad")
DTYPES = (bool, np.int8, np.uint8, np.int32, np.uint32, np.float16, ml_dtypes.bfloat16, np.float32,
          np.complex64, ml_dtypes.float8_e4m3fn)  # fmt: skip
SHAPES = [((3, 4), (0,)), ((2, 3, 2), (2, 0)), ((2, 3), ()), ((), ()), ((0, 3), (0,)), ((3, 0), (0,)),
          ((5,), (0,)), ((7, 2), (0,)), ((2, 3, 2), (0, 1, 2))]  # fmt: skip


def array(*sizes, dtype=np.float32):
    values = np.random.RandomState(0).randn(*sizes) * 3
    return np.asarray(values > 0 if dtype is bool else values).astype(dtype)


def reduction(name, axes):
    return lambda lax: lambda x: getattr(lax, name)(x, axes)


def arg(name, axis, dtype=np.int32):
    return lambda lax: lambda x: getattr(lax, name)(x, axis, dtype)


def accepted(name, dtype):
    whole = np.issubdtype(dtype, np.integer)
    if name in LOGICAL:
        return whole or dtype is bool
    return dtype is not bool or name in ("reduce_max", "reduce_min")


def test_reductions_under_every_transform_equal_jax_s():
    cases = [
        Case(f"{name}-{shape}-{axes}", reduction(name, axes), (array(*shape),))
        for name in NUMERIC
        for shape, axes in SHAPES
        if (name, shape) != ("reduce_prod", (0, 3))
    ]
    sweep([transformed(c, t) for c in cases for t in TRANSFORMS])


def test_reductions_of_every_dtype_equal_jax_s():
    sweep(
        [
            Case(f"{name}-{np.dtype(d)}", reduction(name, (1,)), (array(3, 4, dtype=d),), raises=not accepted(name, d))
            for name in (*NUMERIC, *LOGICAL)
            for d in DTYPES
        ]
    )


def test_logical_reductions_are_batched_as_in_jax():
    cases = [Case(name, reduction(name, (1, 0)), (array(3, 2, dtype=bool),)) for name in LOGICAL]
    sweep([transformed(c, "vmap") for c in cases])


def test_logical_reductions_have_no_tangents():
    def program(name):
        def f(lax):
            reduce = getattr(lax, name)
            return lambda x: x * lax.convert_element_type(reduce(x > 0, (0,)), np.float32)

        return f

    cases = [Case(name, program(name), (array(4),)) for name in LOGICAL]
    sweep([transformed(c, t) for c in cases for t in ("jvp", "vjp", "linearize", "vmap_of_grad")])


@pytest.mark.parametrize("name", (*NUMERIC, *LOGICAL))
def test_results_are_as_weak_as_in_jax(name):
    def program(lax):
        return lambda x: getattr(lax, name)(lax.broadcast_in_dim(x, (3,), ()), [0])

    sweep([Case("weak", program, (1,))])


def test_rounding_to_fewer_bits_equals_jax_s():
    cases = [
        Case(
            f"{np.dtype(d)}",
            lambda lax: lambda x: lax.reduce_precision(x, 4, np.int32(3)),
            (array(3, dtype=d),),
            raises="float" not in np.dtype(d).name,
        )
        for d in DTYPES
    ]
    sweep(cases, tier="full")
    sweep([transformed(cases[DTYPES.index(np.float32)], t) for t in TRANSFORMS])


def test_products_of_complex_numbers_have_jax_s_derivative():
    case = Case("reduce_prod-c64", reduction("reduce_prod", (0,)), (array(5, dtype=np.complex64),))
    sweep([transformed(case, t) for t in ("jvp", "vjp")])


def test_places_of_extrema_equal_jax_s():
    special = np.array([[1, np.nan, 5, np.nan], [-0.0, 0.0, -0.0, -np.inf]], np.float32)
    cases = [
        Case(f"{name}-{np.dtype(d)}", arg(name, 1), (array(3, 4, dtype=d),))
        for name in ("argmax", "argmin")
        for d in DTYPES
        if d is not np.complex64
    ]
    cases += [Case(f"{name}-special", arg(name, 1, np.uint8), (special,)) for name in ("argmax", "argmin")]
    cases += [
        transformed(Case(f"argmax-{axis}", arg("argmax", axis), (array(2, 3),)), t)
        for axis in (0, 1)
        for t in ("vmap", "grad")
    ]
    sweep(cases)


def test_places_in_one_program_share_their_functions():
    def program(lax):
        return lambda x: [lax.argmax(x, 0, d) for d in (np.int32, np.int32, np.uint8)]

    sweep([Case("argmax-thrice", program, (array(3, 2),))])


@pytest.mark.parametrize("axes", [(0, 0), (2,), (-1,)])
def test_reductions_reject_axes_that_are_not_distinct_or_not_there(axes):
    same_error(*(lambda m=m: m.lax.reduce_max(array(2, 3), axes) for m in sides()))


@pytest.mark.parametrize("axis, dtype, shape", [(2, np.int32, (2, 3)), (-1, np.int32, (2, 3)),
                                                (0, np.float32, (2, 3)), (0, np.int32, (0, 3))])  # fmt: skip
def test_places_reject_bad_axes_dtypes_and_empty_dimensions(axis, dtype, shape):
    same_error(*(lambda m=m: m.lax.argmax(array(*shape), axis, dtype) for m in sides()))


@pytest.mark.parametrize("name", LOGICAL)
@pytest.mark.parametrize("axes, phrase", [((2,), "out of bounds"), (1, "not iterable")])
def test_logical_reductions_reject_axes_that_are_not_there(name, axes, phrase):
    same_error(*(lambda m=m: getattr(m.lax, name)(array(2, 3, dtype=bool), axes) for m in sides()), [phrase])


@pytest.mark.parametrize("call", [
    lambda lax: lax.argmax(array(3), 0, None), lambda lax: lax.argmin(array(3), 0.5, np.int32),
    lambda lax: lax.argmin(array(3), "a", np.int32), lambda lax: lax.argmin(array(3), None, np.int32),
    lambda lax: lax.argmax(array(3), 0, bool), lambda lax: lax.argmax(np.float32(1), 0, np.int32),
    lambda lax: lax.argmax(array(3, dtype=np.complex64), 0, np.int32),
    lambda lax: lax.reduce_precision(array(3), 0, 3), lambda lax: lax.reduce_precision(array(3), 4, -1),
    lambda lax: lax.reduce_precision(array(3), 4.0, 3), lambda lax: lax.reduce_precision(array(3), 4, "a"),
    lambda lax: lax.reduce_max(array(3), "a"), lambda lax: lax.reduce_max(array(3), None)])  # fmt: skip
def test_other_arguments_that_do_not_fit_are_rejected(call):
    same_error(*(lambda m=m: call(m.lax) for m in sides()))


def sides():
    return minijax, pytest.importorskip("jax")


@pytest.mark.parametrize(
    "program",
    [
        lambda jnp: lambda x: jnp.prod(x),
        lambda jnp: lambda x: jnp.nanprod(x),
        lambda jnp: lambda x: jnp.cumprod(x).sum(),
        lambda lax: lambda x: lax.reduce_prod(x, (0,)),
    ],
)
@pytest.mark.parametrize("size", [1, 3, 4, 5])
def test_derivatives_of_products_keep_the_residuals_of_jax(program, size):
    x = np.arange(1, size + 1, dtype=np.float32)
    for transform in ("grad", "hessian", "jvp", "vmap_of_grad", "linearize"):
        check(transformed(Case(f"size {size}", program, (x,)), transform))


@pytest.mark.parametrize("name", ["argmax", "argmin", "nanargmax"])
def test_the_place_of_a_complex_extremum_is_refused_where_it_is_computed(name):
    x = np.ones(3, np.complex64)
    same_jaxpr(lambda jnp: getattr(jnp, name), x)
    same_refusal(lambda jax, jnp: lambda: jax.jit(getattr(jnp, name))(x))
