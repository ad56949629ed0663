"""Reductions, against jax: types, jaxprs and texts for all, values for a part."""

import numpy as np
import pytest
from compare import LISTED, Case, check_eager, same_error, sweep
from transform_matrix import transformed

import minijax

pytestmark = pytest.mark.oracle

DTYPES = ("bool", "int8", "uint16", "int32", "bfloat16", "float32", "complex64")
REDUCTIONS = """
    all any argmax argmin average count_nonzero max mean min nanargmax nanargmin nanmax nanmean nanmin nanprod
    nanstd nansum nanvar prod ptp std sum var
""".split()
OF_ONE_AXIS = ("argmax", "argmin", "nanargmax", "nanargmin")


def array(*shape, dtype="float32"):
    dtype = np.dtype(dtype)
    numbers = np.arange(np.prod(shape, dtype=int)).reshape(shape) * 3 % 7 - (0 if dtype.kind in "bu" else 2)
    return (numbers * (1 + 0.5j) if dtype.kind == "c" else numbers).astype(dtype)


def call(name, **options):
    return lambda jnp: lambda x: getattr(jnp, name)(x, **options)


def call_where(name, **options):
    return lambda jnp: lambda x, mask: getattr(jnp, name)(x, where=mask, **options)


def names_for(x):
    # Complex numbers have no maximum: jax raises only at compilation.
    return [n for n in REDUCTIONS if not (n in OF_ONE_AXIS and np.iscomplexobj(x))]


@pytest.mark.parametrize("dtype", DTYPES)
def test_reductions_agree_on_every_dtype(dtype, tier):
    x = array(2, 3, dtype=dtype)
    cases = [Case(f"{n}-{dtype}", call(n), (x,), raises=LISTED) for n in names_for(x)]
    sweep(cases + [Case(f"{n}-{dtype}-axis", call(n, axis=-1), (x,), raises=LISTED) for n in names_for(x)], tier)


@pytest.mark.parametrize("axis", [(0, -1), (), 1, (2, 0, 1), np.int32(1)], ids=repr)
def test_axes_may_be_several_and_kept(axis, tier):
    names = [n for n in REDUCTIONS if n not in OF_ONE_AXIS] if isinstance(axis, tuple) else REDUCTIONS
    cases = [
        Case(f"{n}-{axis}-{keep}", call(n, axis=axis, keepdims=keep), (array(2, 3, 4),), raises=LISTED)
        for n in names
        for keep in (False, True)
    ]
    sweep(cases, tier)


@pytest.mark.parametrize("value", [3.0, 3, True, 2j], ids=repr)
def test_python_scalars_give_strong_results(value):
    sweep([Case(f"{n}-{value!r}", call(n), (value,), raises=LISTED) for n in names_for(np.asarray(value))])


@pytest.mark.parametrize("shape", [(0, 3), (2, 0), ()], ids=repr)
def test_empty_and_scalar_arrays_agree(shape):
    cases = [Case(f"{n}-{shape}", call(n), (array(*shape),), raises=LISTED) for n in REDUCTIONS]
    sweep(
        cases
        + [Case(f"{n}-{shape}-axis", call(n, axis=0), (array(*shape),), raises=LISTED) for n in REDUCTIONS if shape]
    )


X, W, H = array(2, 3, 4), array(2, 3, 4, dtype="bool"), array(2, 3, dtype="bfloat16")
WHERE = ("sum", "prod", "mean", "all", "any", "var", "std", "nansum", "nanmean")

WITH_ARGUMENTS = [
    *(Case(f"{n}-where", call_where(n, axis=0), (X, W)) for n in WHERE),
    *(Case(f"{n}-where-narrow", call_where(n), (X, array(4, dtype="bool"))) for n in ("sum", "mean", "all")),
    *(Case(f"{n}-where-initial", call_where(n, initial=0.5, axis=1), (X, W)) for n in ("max", "min", "sum")),
    *(Case(f"{n}-initial", call(n, initial=2, axis=0, keepdims=True), (X,))
      for n in ("sum", "prod", "max", "min")),
    *(Case(f"{n}-dtype", call(n, dtype="bfloat16"), (X,))
      for n in ("sum", "prod", "mean", "var", "std", "nansum")),
    *(Case(f"{n}-half", call(n, dtype="float32"), (H,)) for n in ("sum", "mean", "var", "nanmean")),
    Case("sum-int-dtype", call("sum", dtype=int), (X,)),
    Case("sum-bool-dtype", call("sum", dtype="float32"), (W,)),
    Case("sum-narrow", call("sum", promote_integers=False), (array(3, dtype="uint8"),)),
    Case("sum-narrow-bool", call("sum", promote_integers=False), (W,)),
    Case("max-where-needs-initial", call_where("max"), (X, W), raises=LISTED),
    Case("nanmax-initial", call("nanmax", axis=0, initial=1.0), (X,)),
    Case("var-ddof", call("var", ddof=1, axis=0, keepdims=True), (X,)),
    Case("var-correction", call("var", correction=1), (X,)),
    Case("var-mean", call("var", mean=np.float32(1)), (X,)),
    Case("std-ddof", call("std", ddof=1.5), (X,)),
    Case("nanvar-ddof", call("nanvar", ddof=1, axis=0), (X,)),
    Case("nanstd-keep", call("nanstd", axis=1, keepdims=True), (H,)),
    Case("var-complex-to-real", call("var", dtype="float32"), (array(2, dtype="complex64"),), raises=LISTED),
    Case("average-returned", call("average", returned=True, axis=0), (X,)),
    Case("average-weights", lambda jnp: lambda x, w: jnp.average(x, weights=w), (X, X + 3)),
    Case("average-axis", lambda jnp: lambda x, w: jnp.average(x, 1, w), (X, array(3))),
    Case("average-both", lambda jnp: lambda x, w: jnp.average(x, 1, w, returned=True), (X, array(3))),
    Case("average-int", lambda jnp: lambda x, w: jnp.average(x, -1, w, keepdims=True),
         (array(2, 3, dtype="int32"), array(3, dtype="int32"))),
    Case("average-bad", lambda jnp: lambda x, w: jnp.average(x, 1, w), (X, array(2)), raises=LISTED),
    Case("matmul", lambda jnp: jnp.matmul, (array(2, 3), array(3, 4))),
    *(Case(f"matmul-{a}-{b}", lambda jnp: lambda x, y: x @ y, (array(*a), array(*b)), raises=LISTED)
      for a, b in [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((5, 2, 3), (3, 4)), ((5, 2, 3), (5, 3, 4)),
                   ((1, 2, 3), (5, 3, 4)), ((7, 1, 2, 3), (5, 3, 4)), ((2, 3), (5, 3, 4)), ((3,), (5, 3, 4)),
                   ((5, 2, 3), (3,)), ((0, 3), (3, 4)), ((5, 2, 3), (1, 3, 4)), ((1, 2, 3), (1, 3, 4)),
                   ((4, 1, 2, 3), (1, 5, 3, 4)), ((1, 4, 2, 3), (4, 3, 4)), ((1, 1, 2, 3), (1, 3, 4)),
                   ((3,), ()), ((2, 2, 3), (3, 3, 4)), ((2, 3), (2, 3))]),
    Case("matmul-mixed", lambda jnp: jnp.matmul, (array(2, 3, dtype="int32"), array(3, 4))),
    Case("matmul-precision", lambda jnp: lambda x: jnp.matmul(
        x, x.T, precision="highest", preferred_element_type="float32"), (H,)),
    *(Case(f"dot-{a}-{b}", lambda jnp: jnp.dot, (array(*a), array(*b)), raises=LISTED)
      for a, b in [((3,), (3,)), ((2, 3), (3, 4)), ((5, 2, 3), (6, 3, 4)), ((2, 3), ()), ((3,), (2,))]),
]  # fmt: skip


def test_further_arguments_agree(tier):
    sweep(WITH_ARGUMENTS, tier)


def test_reductions_run_eagerly():
    for case in WITH_ARGUMENTS[::6]:
        check_eager(case)
    with_nan = np.array([[1, np.nan, 3], [np.nan] * 3], np.float32)
    for name in ("nansum", "nanmax", "nanmean", "nanvar", "nanargmin", "max", "argmax"):
        check_eager(Case(name, call(name, axis=1), (with_nan,)))


@pytest.mark.parametrize("transform", ["jvp", "vjp", "vmap", "vmap_of_grad"])
def test_transformed_reductions_agree(transform, tier):
    names = ("sum", "mean", "max", "prod", "var", "std", "nansum", "nanmean", "average", "ptp")
    x = array(2, 3) * np.float32(0.5)
    sweep([transformed(Case(n, call(n, axis=-1), (x,)), transform) for n in names], tier)


CUMULATIVE = [
    *(
        Case(f"{n}-{d}", call(n), (array(2, 3, dtype=d),))
        for n in ("cumsum", "cumprod", "nancumsum", "nancumprod")
        for d in DTYPES
    ),
    *(Case(f"{n}-axis", call(n, axis=-1, dtype="bfloat16"), (X,)) for n in ("cumsum", "nancumprod")),
    *(
        Case(f"{n}-{d}", call(n, axis=1, include_initial=True), (array(2, 3, dtype=d),))
        for n in ("cumulative_sum", "cumulative_prod")
        for d in DTYPES
    ),
    Case("cumulative_sum-vector", call("cumulative_sum", dtype="float32"), (array(3, dtype="int32"),)),
    Case("cumulative_sum-no-axis", call("cumulative_sum"), (X,), raises=LISTED),
    Case("cumulative_prod-scalar", call("cumulative_prod"), (array(),), raises=LISTED),
    Case("cumsum-scalar", call("cumsum"), (3.0,)),
    Case("cumsum-bad-axis", call("cumsum", axis=3), (X,), raises=LISTED),
    Case("cumsum-out", call("cumsum", out=1), (X,), raises=LISTED),
]


def test_cumulative_functions_agree(tier):
    sweep(CUMULATIVE, tier)


ERRORS = {
    "list": (lambda jnp: jnp.sum([1, 2]), "sum requires ndarray or scalar arguments, got <class 'list'>"),
    "none": (lambda jnp: jnp.mean(None), "requires ndarray or scalar arguments"),
    "axis": (lambda jnp: jnp.sum(jnp.ones((2, 3)), axis=5), "axis 5 is out of bounds for array of dimension 2"),
    "axes": (lambda jnp: jnp.sum(jnp.ones((2, 3)), axis=(0, 0)), "duplicate value in 'axis'"),
    "float-axis": (lambda jnp: jnp.sum(jnp.ones((2, 3)), axis=1.0), ""),
    "out": (lambda jnp: jnp.sum(jnp.ones(3), out=1), "The 'out' argument to jnp.sum is not supported"),
    "keyword": (lambda jnp: jnp.sum(jnp.ones(3), foo=1), "foo"),
    "empty": (lambda jnp: jnp.max(jnp.ones((0, 3))), "zero-size array to reduction operation max"),
    "empty-place": (lambda jnp: jnp.argmax(jnp.ones((0, 3))), "attempt to get argmax of an empty sequence"),
    "place-axis": (lambda jnp: jnp.argmax(jnp.ones((2, 3)), axis=3), ""),
    "corrections": (lambda jnp: jnp.var(jnp.ones(3), ddof=1, correction=1), "ddof and correction"),
    "where": (lambda jnp: jnp.sum(jnp.ones(3), where=jnp.ones(3)), "jnp.sum: where must be None or a boolean array"),
    "where-int": (
        lambda jnp: jnp.std(jnp.ones(3), where=jnp.arange(3)),
        "jnp.std: where must be None or a boolean array",
    ),
    "where-nan": (lambda jnp: jnp.nanmax(jnp.ones(3), where=1, initial=0), "jnp.nanmax: where must be"),
    "where-list": (lambda jnp: jnp.nanmean(jnp.ones(3), where=[True]), "nanmean requires ndarray or scalar"),
    "weights-shape": (lambda jnp: jnp.average(jnp.ones((2, 3)), 0, jnp.ones((3, 2))), "Shape of weights must be consi"),
    "weights-length": (
        lambda jnp: jnp.average(jnp.ones((2, 3)), 0, jnp.ones(3)),
        "Shape of weights must be consistent",
    ),
    "weights": (lambda jnp: jnp.average(jnp.ones((2, 3)), weights=jnp.ones(3)), "Axis must be specified"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_of_jaxs_class(name):
    jax = pytest.importorskip("jax")
    program, phrase = ERRORS[name]
    same_error(lambda: program(minijax.numpy), lambda: program(jax.numpy), [phrase] if phrase else [])


def test_a_traced_axis_is_refused():
    with pytest.raises(minijax.errors.ConcretizationTypeError, match="axis argument must be known statically"):
        minijax.jit(lambda x, axis: minijax.numpy.sum(x, axis=axis))(minijax.numpy.ones(3), 0)


@pytest.mark.parametrize("axis", [(0, 1), (1, 0), (2, 1), (-1, 0), (2, 0, 1), (1,), -2])
def test_weights_of_several_axes_are_in_their_order(axis, tier):
    shape = tuple((2, 3, 4)[i] for i in (axis if isinstance(axis, tuple) else (axis,)))
    program = lambda jnp: lambda x, w: jnp.average(x, axis, w)  # noqa: E731
    sweep([Case(f"average-{axis}", program, (array(2, 3, 4), 1 + np.abs(array(*shape))))], tier)
