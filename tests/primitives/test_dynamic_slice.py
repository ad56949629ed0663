"""Dynamic slices, gather and the scatters, against jax: programs, texts and values."""

import numpy as np
import pytest
from compare import LISTED, Case, same, sweep
from transform_matrix import transformed

import minijax

pytestmark = pytest.mark.oracle

TRANSFORMS = ("plain", "jvp", "vjp", "linearize", "vmap", "vmap_of_grad", "grad_of_vmap", "jvp_of_grad")


def array(*sizes, dtype=np.float32):
    return (np.arange(np.prod(sizes), dtype=np.int64).reshape(sizes) % 7 - 2).astype(dtype)


X, CUBE = array(4, 3), array(2, 3, 4)
ROWS, OUTSIDE = np.array([[0], [3]], np.int32), np.array([[2], [-1], [4], [2]], np.int32)
PLACES = np.array([[0, 1], [3, 2], [0, 1], [9, 9]], np.int32)
WINDOW, ONE, ROW = array(2, 2), np.int32(1), array(3)
MODES = ("clip", "fill", "promise_in_bounds", None)
SCATTERS = ("scatter", "scatter_add", "scatter_sub", "scatter_mul", "scatter_min", "scatter_max")

DYNAMIC = [
    Case("slice", lambda lax: lambda x, i, j: lax.dynamic_slice(x, (i, j), (2, 2)), (X, ONE, ONE)),
    Case("slice-part", lambda lax: lambda x, i: lax.dynamic_slice(x, (i, -1), (4, 1)), (X, ONE)),
    Case("slice-vector", lambda lax: lambda x, i: lax.dynamic_slice(x, i, (2, 2)), (X, np.array([-1, 5], np.int32))),
    Case("slice-uint8", lambda lax: lambda x, i: lax.dynamic_slice(x, (i, i), (2, 2)), (X, np.uint8(1))),
    Case("slice-narrow", lambda lax: lambda x, i: lax.dynamic_slice(x, (i,), (2,)), (array(300), np.int8(-1))),
    Case(
        "slice-as-is",
        lambda lax: lambda x, i: lax.dynamic_slice(x, (i, i), (2, 2), allow_negative_indices=(False, True)),
        (X, ONE),
    ),
    Case("in_dim", lambda lax: lambda x, i: lax.dynamic_slice_in_dim(x, i, 2, -1), (X, ONE)),
    Case("update", lambda lax: lambda x, u, i: lax.dynamic_update_slice(x, u, (i, -2)), (X, WINDOW, ONE)),
    Case(
        "update-alone",
        lambda lax: lambda u, i: lax.dynamic_update_slice(lax.full((4, 3), 1.0), u, (i, i)),
        (WINDOW, ONE),
    ),
    Case("update-under", lambda lax: lambda x, i: lax.dynamic_update_slice(x, lax.full((2, 2), 1.0), (i, i)), (X, ONE)),
    Case("update-in-dim", lambda lax: lambda x, i: lax.dynamic_update_slice_in_dim(x, x, i, 0), (X, ONE)),
]


def row_gather(lax, **how):
    numbers = lax.GatherDimensionNumbers((1,), (0,), (0,))
    return lambda x, i: lax.gather(x, i, numbers, (1, 3), **how)


def rows_in_mode(mode):
    return lambda lax: row_gather(lax, mode=mode)


def scatter_by_name(name):
    return lambda lax: lambda x, u: row_scatter(lax, name)(x, ROWS, u)


def in_batches(lax):
    return lax.GatherDimensionNumbers((1,), (), (0,), (1,), (0,))


GATHERS = [
    *(Case(f"rows-{m}", rows_in_mode(m), (X, ROWS)) for m in MODES),
    *(Case(f"outside-{m}", rows_in_mode(m), (X, OUTSIDE)) for m in ("clip", "fill")),
    Case("filled", lambda lax: row_gather(lax, mode="fill", fill_value=np.float32(3)), (X, OUTSIDE)),
    Case("flags", lambda lax: row_gather(lax, mode="clip", indices_are_sorted=True, unique_indices=True),
         (X, ROWS)),
    Case("windows", lambda lax: lambda x, i: lax.gather(
        x, i, lax.GatherDimensionNumbers((1, 2), (), (1, 0)), (2, 2), mode="fill"), (X, PLACES)),
    Case("elements", lambda lax: lambda x, i: lax.gather(
        x, i, lax.GatherDimensionNumbers((), (0, 1), (0, 1)), (1, 1), mode="clip"), (X, PLACES)),
    Case("batches", lambda lax: lambda x, i: lax.gather(x, i, in_batches(lax), (2, 1), mode="fill"),
         (X, np.array([[0], [2], [5]], np.int32))),
    Case("vector", lambda lax: lambda x, i: lax.gather(
        x, i, lax.GatherDimensionNumbers((0, 1), (1,), (1,)), (2, 1, 4)), (CUBE, np.array([2], np.int32))),
    Case("nowhere", lambda lax: row_gather(lax, mode="fill"), (X, np.zeros((0, 1), np.int32))),
]  # fmt: skip


def row_scatter(lax, name, **how):
    numbers = lax.ScatterDimensionNumbers((1,), (0,), (0,))
    return lambda x, i, u: getattr(lax, name)(x, i, u, numbers, **how)


def scatters(name, few=False):
    unique = dict(unique_indices=True, indices_are_sorted=True)
    once = dict(unique_indices=True) if name == "scatter_mul" else {}
    cases = [
        Case(f"{name}", lambda lax: row_scatter(lax, name, **once), (X, ROWS, array(2, 3))),
        Case(f"{name}-unique", lambda lax: row_scatter(lax, name, mode="fill", **unique),
             (X, ROWS, array(2, 3))),
        Case(f"{name}-clip", lambda lax: row_scatter(lax, name, mode="clip", **once),
             (X, OUTSIDE, array(4, 3))),
        Case(f"{name}-windows", lambda lax: lambda x, i, u: getattr(lax, name)(
            x, i, u, lax.ScatterDimensionNumbers((1, 2), (), (1, 0)), mode="drop", **once),
            (X, PLACES, array(4, 2, 2))),
        Case(f"{name}-batches", lambda lax: lambda x, i, u: getattr(lax, name)(
            x, i, u, lax.ScatterDimensionNumbers((1,), (), (0,), (1,), (0,)), **once),
            (X, ROWS[[0, 0, 1]], array(3, 2))),
        Case(f"{name}-one", lambda lax: lambda x, i, u: getattr(lax, name)(
            x, i, u, lax.ScatterDimensionNumbers((0,), (0,), (0,)), **once),
            (X, np.array([1], np.int32), ROW)),
        Case(f"{name}-operand", lambda lax: lambda x, i: row_scatter(lax, name)(
            x, i, lax.full((2, 3), np.float32(1))), (X, ROWS)),
        Case(f"{name}-weak", lambda lax: lambda i, u: row_scatter(lax, name)(
            lax.full((4, 3), 2.0), i, u), (ROWS, array(2, 3))) if name in SCATTERS[:3] else None,
        Case(f"{name}-updates", lambda lax: lambda i, u: row_scatter(lax, name, **once)(
            lax.full((4, 3), np.float32(2)), i, u), (ROWS, array(2, 3))),
    ]  # fmt: skip
    return [case for case in cases if case][: 4 if few else None]


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_dynamic_slices_are_jaxs_under_every_transform(transform):
    sweep([transformed(case, transform) for case in DYNAMIC])


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_gather_is_jaxs_under_every_transform(transform):
    sweep([transformed(case, transform) for case in GATHERS])


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("name", SCATTERS)
def test_scatters_are_jaxs_under_every_transform(name, transform):
    few = name in ("scatter_min", "scatter_max") and transform not in ("jvp", "vjp")
    # Which equations share their little program differs from jax in the second derivative.
    sweep([transformed(case, transform) for case in scatters(name, few)], jaxpr=transform != "jvp_of_grad")


def vmapped(program, in_axes):
    return lambda jax, lax: jax.vmap(program(lax), in_axes)


@pytest.mark.parametrize("in_axes", [(0, None, None), (1, 0, None), (None, 0, 1), (None, None, 0), (2, 1, 1)])
def test_any_operand_may_be_batched_along_any_axis(in_axes):
    chosen = [*DYNAMIC[:2], DYNAMIC[8], *GATHERS[:3], GATHERS[6], *GATHERS[7:10], *scatters("scatter_add")[:6]]

    def cases():
        for case in chosen:
            axes = tuple(None if d is None else min(d, np.ndim(a)) for d, a in zip(in_axes, case.args, strict=False))
            if all(d is None for d in axes):
                continue
            args = tuple(a if d is None else np.stack([a, a], d) for d, a in zip(axes, case.args, strict=True))
            yield Case(f"{case.name}-{axes}", vmapped(case.program, axes), args)

    sweep(list(cases()))


@pytest.mark.parametrize(
    "name", ["bool", "int4", "int8", "uint8", "uint32", "float16", "bfloat16", "float8_e4m3fn", "complex64"]
)
def test_indexing_moves_every_dtype(name):
    dtype = getattr(minijax.dtypes, name, None) or np.dtype(name)
    x, u = array(4, 3, dtype=dtype), array(2, 3, dtype=dtype)
    cases = [
        Case("slice", lambda lax: lambda x, u: lax.dynamic_slice(x, (1, 2), (2, 1)), (x, u)),
        Case("update", lambda lax: lambda x, u: lax.dynamic_update_slice(x, u, (1, 2)), (x, u)),
        Case("fill", lambda lax: lambda x, u: row_gather(lax, mode="fill")(x, OUTSIDE), (x, u)),
        *(Case(n, scatter_by_name(n), (x, u)) for n in ("scatter", "scatter_max", "scatter_min")),
    ]
    if name != "bool":
        cases += [Case(n, scatter_by_name(n), (x, u)) for n in ("scatter_add", "scatter_mul")]
    sweep(cases)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint32])
def test_indices_may_be_of_any_integer_dtype(dtype):
    i, wide = ROWS.astype(dtype), array(300, 3)
    sweep(
        [
            Case("fill", lambda lax: row_gather(lax, mode="fill"), (wide, i)),
            Case("clip", lambda lax: row_gather(lax, mode="clip"), (wide, i)),
            Case("scatter", lambda lax: row_scatter(lax, "scatter", mode="clip"), (wide, i, array(2, 3))),
        ]
    )


def test_a_function_can_be_applied_to_windows():
    def apply(lax, **how):
        numbers = lax.ScatterDimensionNumbers((1,), (0,), (0,))
        return lambda x, i: lax.scatter_apply(x, i, lax.sin, numbers, update_shape=(2, 3), **how)

    case = Case("apply", lambda lax: apply(lax, unique_indices=True), (X, ROWS))
    sweep([case, transformed(case, "vmap"), transformed(case, "vjp")])


ERRORS = [
    lambda lax: lax.dynamic_slice(X, (ONE,), (2, 2)),
    lambda lax: lax.dynamic_slice(X, (ONE, ONE), (2,)),
    lambda lax: lax.dynamic_slice(X, (ONE, ONE), (5, 2)),
    lambda lax: lax.dynamic_slice(X, (ONE, ONE), (-1, 2)),
    lambda lax: lax.dynamic_slice(X, (1.0, ONE), (1, 2)),
    lambda lax: lax.dynamic_slice(X, (np.int8(1), ONE), (1, 2)),
    lambda lax: lax.dynamic_slice(X, np.zeros((2, 2), np.int32), (1, 2)),
    lambda lax: lax.dynamic_update_slice(X, np.float32(1), (ONE, ONE)),
    lambda lax: lax.dynamic_update_slice(X, array(2, 2, dtype=np.int32), (ONE, ONE)),
    lambda lax: lax.dynamic_update_slice(X, array(5, 1), (ONE, ONE)),
    lambda lax: row_gather(lax)(X, ROWS.astype(np.float32)),
    lambda lax: row_gather(lax)(X, ROWS[0]),
    lambda lax: row_gather(lax)(X, ONE),
    lambda lax: row_gather(lax, mode="bad")(X, ROWS),
    lambda lax: row_gather(lax)(X, PLACES),
    lambda lax: lax.gather(X, ROWS, lax.GatherDimensionNumbers((1,), (0,), (0,)), (1, 4)),
    lambda lax: lax.gather(X, ROWS, lax.GatherDimensionNumbers((1,), (0,), (0,)), (1,)),
    lambda lax: lax.gather(X, ROWS, lax.GatherDimensionNumbers((1,), (0,), (0,)), (2, 3)),
    lambda lax: lax.gather(X, ROWS, lax.GatherDimensionNumbers((2, 1), (), (0,)), (1, 3)),
    lambda lax: lax.gather(X, ROWS, lax.GatherDimensionNumbers((1, 1), (), (0,)), (1, 3)),
    lambda lax: lax.gather(X, ROWS, lax.GatherDimensionNumbers((5,), (0,), (0,)), (1, 3)),
    lambda lax: lax.gather(X, ROWS, lax.GatherDimensionNumbers((1,), (0,), (3,)), (1, 3)),
    lambda lax: lax.gather(X, PLACES, lax.GatherDimensionNumbers((1,), (0,), (0, 0)), (1, 3)),
    lambda lax: lax.gather(X, ROWS, lax.GatherDimensionNumbers((), (1, 0), (0,)), (1, 1)),
    lambda lax: lax.gather(X, ROWS, lax.GatherDimensionNumbers((1,), (4,), (0,)), (1, 1)),
    lambda lax: lax.gather(X, ROWS, lax.GatherDimensionNumbers((1, 2), (0,), (0,)), (1, 3)),
    lambda lax: lax.gather(X, ROWS, in_batches(lax), (1, 1)),
    lambda lax: row_scatter(lax, "scatter")(X, ROWS.astype(np.float32), array(2, 3)),
    lambda lax: row_scatter(lax, "scatter")(X, ROWS, array(2, 3, dtype=np.int32)),
    lambda lax: row_scatter(lax, "scatter")(X, ROWS, ROW),
    lambda lax: row_scatter(lax, "scatter")(X, ROWS, array(2, 4)),
    lambda lax: row_scatter(lax, "scatter")(X, ROWS, array(3, 3)),
    lambda lax: row_scatter(lax, "scatter_add")(X > 0, ROWS, array(2, 3) > 0),
    lambda lax: lax.scatter(X, ROWS, array(2, 3), lax.ScatterDimensionNumbers((1,), (), (0,))),
    lambda lax: lax.scatter(X, ROWS, array(2, 3), lax.ScatterDimensionNumbers((1,), (0,), (0, 1))),
    lambda lax: lax.scatter(X, ROWS, array(2, 3), lax.ScatterDimensionNumbers((1,), (0,), (5,))),
    lambda lax: lax.scatter(X, ROWS, array(2, 3), lax.ScatterDimensionNumbers((3,), (0,), (0,))),
    lambda lax: lax.scatter(X, ROWS, array(2, 3), lax.ScatterDimensionNumbers((1,), (7,), (0,))),
]


@pytest.mark.parametrize("number", range(len(ERRORS)))
def test_calls_that_jax_rejects_are_rejected(number):
    same(ERRORS[number], raises=True)


def test_a_scalar_has_one_slice():
    same(lambda lax: lax.dynamic_slice(np.float32(2), (), ()))
    same(lambda lax: lax.dynamic_update_slice(np.float32(2), np.float32(3), ()))


def test_mode_names_are_jaxs():
    words = ("clip", "fill", "drop", "promise_in_bounds", "one_hot", None)
    same(lambda lax: [repr(lax.GatherScatterMode.from_any(w)) for w in words])
    same(lambda lax: lax.GatherScatterMode.from_any("CLIP"), raises=True)


def test_gathers_of_nothing_may_have_slices_larger_than_the_array():
    def gather(size):
        return lambda lax: lambda x, i: lax.gather(x, i, lax.GatherDimensionNumbers((1,), (0,), (0,)), size)

    x, indices = np.ones((0, 3), np.float32), [np.zeros((n, 1), np.int32) for n in (0, 2)]
    sizes = ((1, 3), (1, 0), (1, 5), (0, 3))
    sweep([Case(f"{size}-{len(i)}", gather(size), (x, i), raises=LISTED) for size in sizes for i in indices])
    empty = Case("sort", lambda lax: lambda x: lax.sort((x, x), num_keys=1)[1], (np.ones((0, 3), np.float32),))
    sweep([transformed(empty, t) for t in ("jvp", "vjp", "vmap_of_grad")])


def test_slices_along_an_axis_are_jitted_as_jax_s():
    rows = array(3, 4)
    sweep(
        [
            Case("index", lambda lax: lambda x: lax.dynamic_index_in_dim(x, -1, 1), (rows,)),
            Case("dropped", lambda lax: lambda x, i: lax.dynamic_index_in_dim(x, i, keepdims=False), (rows, 1)),
            Case("update", lambda lax: lambda x, i: lax.dynamic_update_index_in_dim(x, x[0], i, 0), (rows, np.int8(1))),
        ]
    )


def test_stop_gradient_is_recorded_for_integers_too():
    sweep([Case("int", lambda lax: lax.stop_gradient, (np.arange(3, dtype=np.int32),))])


@pytest.mark.parametrize("x", [1, 2.5, 1j, True, 2**40], ids=str)
def test_stop_gradient_leaves_numbers_as_they_are(x):
    def kinds(jax):
        found = jax.lax.stop_gradient(x), jax.lax.stop_gradient([x])[0]
        return [
            isinstance(found[0], int),
            isinstance(found[0], float),
            isinstance(found[0], complex),
            found[0] == found[1] == x,
            str(jax.jit(jax.lax.stop_gradient)(x).dtype),
        ]

    same(kinds, raises=LISTED)


def test_stop_gradient_of_a_numpy_number_has_its_dtype_as_an_array():
    for x in (np.float64(1.5), np.complex128(1j), np.int64(3), np.float16(2)):
        found = minijax.lax.stop_gradient(x)
        assert isinstance(found, minijax.Array) and found.dtype == minijax.dtypes.canonicalize_dtype(x.dtype)


@pytest.mark.parametrize("axis", [3, -3, 2, -2, 0])
def test_an_axis_that_is_out_of_range_is_an_index_error(axis):
    calls = [
        lambda lax, x: lax.dynamic_slice_in_dim(x, 0, 1, axis=axis),
        lambda lax, x: lax.dynamic_index_in_dim(x, 0, axis=axis),
        lambda lax, x: lax.slice_in_dim(x, 0, 1, axis=axis),
        lambda lax, x: lax.dynamic_update_slice_in_dim(x, x, 0, axis=axis),
        lambda lax, x: lax.dynamic_update_index_in_dim(x, x, 0, axis=axis),
        lambda lax, x: lax.index_in_dim(x, 0, axis=axis),
    ]

    def program(jax, jnp, lax):
        found = []
        for x in (jnp.ones(()), jnp.ones((2, 3))):
            for call in calls:
                try:
                    found.append(call(lax, x).shape)
                except Exception as error:
                    found.append(type(error).__name__)
        return found

    assert "IndexError" in same(program)
