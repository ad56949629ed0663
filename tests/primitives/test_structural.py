"""Slices, padding, joining and splitting, against jax: programs, texts and values."""

import numpy as np
import pytest
from compare import Case, same, sweep
from transform_matrix import transformed

import minijax
from minijax.primitives import structural

pytestmark = pytest.mark.oracle

TRANSFORMS = ("plain", "jvp", "vjp", "linearize", "vmap", "vmap_of_grad", "grad_of_vmap", "jvp_of_grad")


def array(*sizes, dtype=np.float32):
    return (np.arange(np.prod(sizes), dtype=np.int64).reshape(sizes) % 7 - 2).astype(dtype)


X, EMPTY, SCALAR = array(4, 3), array(0, 3), np.float32(2)

FLOATING = [
    Case("squeeze", lambda lax: lambda x: lax.squeeze(x, (0, -1)), (array(1, 3, 1),)),
    Case("squeeze-nothing", lambda lax: lambda x: lax.squeeze(x, ()), (X,)),
    Case("slice", lambda lax: lambda x: lax.slice(x, (1, 0), (3, 2)), (X,)),
    Case("slice-strides", lambda lax: lambda x: lax.slice(x, (0, 1), (3, 3), (2, 1)), (X,)),
    Case("slice-strides-short", lambda lax: lambda x: lax.slice(x, (1, 0), (4, 3), (5, 1)), (X,)),
    Case("slice-nothing", lambda lax: lambda x: lax.slice(x, (2, 0), (2, 3), (2, 1)), (X,)),
    Case("slice-scalar", lambda lax: lambda x: lax.slice(x, (), ()), (SCALAR,)),
    Case("slice_in_dim", lambda lax: lambda x: lax.slice_in_dim(x, 1, -1, 1, -1), (X,)),
    Case("index_in_dim", lambda lax: lambda x: lax.index_in_dim(x, -1, 1, False), (X,)),
    Case("pad", lambda lax: lambda x, v: lax.pad(x, v, ((1, 2, 0), (-1, 0, 1))), (X, SCALAR)),
    Case("pad-literal", lambda lax: lambda x: lax.pad(x, 0.0, ((0, 1, 2), (-1, -1, 3))), (X,)),
    Case("pad-empty", lambda lax: lambda x, v: lax.pad(x, v, ((1, 0, 2), (0, 0, 0))), (EMPTY, SCALAR)),
    Case("pad-scalar", lambda lax: lambda x, v: lax.pad(x, v, ()), (SCALAR, SCALAR)),
    Case("concatenate", lambda lax: lambda x, y: lax.concatenate([x, y, x], 0), (X, array(2, 3))),
    Case("concatenate-empty", lambda lax: lambda x, y: lax.concatenate([x, y], 0), (X, EMPTY)),
    Case("concatenate-one", lambda lax: lambda x: lax.concatenate([x], 1), (X,)),
    Case("stack", lambda lax: lambda x, y: lax.stack([x, y], 1), (X, X)),
    Case("stack-last", lambda lax: lambda x: lax.stack([x], -1), (X,)),
    Case("unstack", lambda lax: lambda x: lax.unstack(x, 1), (X,)),
    Case("split", lambda lax: lambda x: lax.split(x, (1, 3), 0), (X,)),
    Case("split-first", lambda lax: lambda x: lax.split(x, (1, 0, 2), -1)[0], (X,)),
    Case("rev", lambda lax: lambda x: lax.rev(x, (1, 0)), (X,)),
    Case("tile", lambda lax: lambda x: lax.tile(x, (2, 3)), (X,)),
    Case("tile-once", lambda lax: lambda x: lax.tile(x, (1, 1)), (X,)),
    Case("broadcast", lambda lax: lambda x: lax.broadcast(x, (2, 5)), (X,)),
    Case("broadcast_to_rank", lambda lax: lambda x: lax.broadcast_to_rank(x, 4), (X,)),
    Case("collapse", lambda lax: lambda x: lax.collapse(x, 0, 2), (array(2, 3, 2),)),
    Case("collapse-open", lambda lax: lambda x: lax.collapse(x, -2), (array(2, 3, 2),)),
    Case("collapse-scalar", lambda lax: lambda x: lax.collapse(x, 0), (SCALAR,)),
    Case("full", lambda lax: lambda x: lax.full((2, 3), x), (SCALAR,)),
    Case("full-like", lambda lax: lambda x: lax.full_like(x, 3, shape=(2,)), (X,)),
]

ANY_DTYPE = [
    lambda lax: lambda x: lax.squeeze(lax.slice(x, (1, 0), (2, 3)), (0,)),
    lambda lax: lambda x: lax.slice(x, (0, 0), (4, 2), (3, 2)),
    lambda lax: lambda x: lax.pad(x, lax.squeeze(lax.slice(x, (1, 0), (2, 1)), (0, 1)), ((-1, 2, 1), (0, 0, 1))),
    lambda lax: lambda x: lax.concatenate([x, lax.rev(x, (0,))], 1),
    lambda lax: lambda x: lax.stack(lax.unstack(x, 1), 0),
    lambda lax: lambda x: lax.split(lax.tile(x, (1, 2)), (2, 4), 1),
    lambda lax: lambda x: lax.full_like(x, 1),
    lambda lax: lambda x: lax.full((), 1, x.dtype),
]
DTYPES = ("bool", "int4", "int8", "uint8", "int32", "uint32", "float16", "bfloat16", "float8_e5m2", "complex64")


def typed(name):
    return array(4, 3, dtype=getattr(minijax.dtypes, name, None) or np.dtype(name))


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_structural_operations_are_jaxs_under_every_transform(transform):
    sweep([transformed(case, transform) for case in FLOATING])


def vmapped(program, in_axes):
    return lambda jax, lax: jax.vmap(program(lax), in_axes)


def of_shapes(lax, shapes):
    return tuple(lax.broadcast_shapes(*shapes))


@pytest.mark.parametrize("in_axes", [1, -1, (0, None), (None, 0), (1, 0)])
def test_a_batch_axis_stays_where_jax_leaves_it(in_axes):
    def cases():
        for case in FLOATING:
            axes = in_axes if len(case.args) == 2 or not isinstance(in_axes, tuple) else None
            if axes is None or any(np.ndim(a) < 2 for a in case.args[:1]) or "empty" in case.name:
                continue
            each = axes if isinstance(axes, tuple) else (axes,) * len(case.args)
            args = tuple(
                a if d is None else np.stack([a, a], min(d, np.ndim(a)) if d >= 0 else np.ndim(a))
                for a, d in zip(case.args, each, strict=True)
            )
            each = tuple(d if d is None or d < 0 else min(d, np.ndim(a)) for a, d in zip(case.args, each, strict=True))

            yield Case(f"{case.name}-{in_axes}", vmapped(case.program, each), args)

    sweep(list(cases()))


@pytest.mark.parametrize("name", DTYPES)
def test_data_moves_in_every_dtype(name):
    sweep([Case(f"{name}-{i}", program, (typed(name),)) for i, program in enumerate(ANY_DTYPE)])


def test_counting_and_filling_are_jaxs():
    def case(name, make):
        return Case(name, lambda lax: lambda x: make(lax), (SCALAR,))

    sweep(
        [
            case("iota", lambda lax: lax.iota(np.int32, 4)),
            case("iota-float", lambda lax: lax.iota(float, 3)),
            case("iota-none", lambda lax: lax.iota(np.uint8, 0)),
            case("broadcasted", lambda lax: lax.broadcasted_iota(np.complex64, (2, 3), 1)),
            case("full-weak", lambda lax: lax.full((2,), 1)),
            case("full-wrapped", lambda lax: [lax.full((2,), n) for n in (2**31, 2**40 + 5, -(2**31) - 1)]),
            case("full-scalar", lambda lax: lax.full((), 1.5)),
            case("full-cast", lambda lax: lax.full((2,), 1.5, np.int32)),
            case("full-int-shape", lambda lax: lax.full(3, True)),
            case("full-like-weak", lambda lax: lax.full_like(1, 2.5)),
            case("empty", lambda lax: lax.empty((2,), np.dtype(np.float32))),
        ],
        tier="full",
    )


ERRORS = [
    lambda lax: lax.squeeze(X, (0,)),
    lambda lax: lax.squeeze(array(1, 1), (0, 0)),
    lambda lax: lax.squeeze(array(1, 1), (2,)),
    lambda lax: lax.slice(X, (0, 0), (5, 1), (1, 1)),
    lambda lax: lax.slice(X, (2, 0), (1, 1), (1, 1)),
    lambda lax: lax.slice(X, (0, 0), (1, 1), (1,)),
    lambda lax: lax.slice_in_dim(X, -10, None),
    lambda lax: lax.slice_in_dim(X, 3, 1),
    lambda lax: lax.slice_in_dim(X, 1, 3, axis=5),
    lambda lax: lax.index_in_dim(X, 4),
    lambda lax: lax.index_in_dim(X, -5),
    lambda lax: lax.pad(X, 0, ((0, 0, 0), (0, 0, 0))),
    lambda lax: lax.pad(X, SCALAR, ((0, 0, 0),)),
    lambda lax: lax.pad(X, SCALAR, ((0, 0, -1), (0, 0, 0))),
    lambda lax: lax.pad(X, SCALAR, ((-3, -3, 0), (0, 0, 0))),
    lambda lax: lax.pad(X, X, ((0, 0, 0), (0, 0, 0))),
    lambda lax: lax.concatenate([], 0),
    lambda lax: lax.concatenate([SCALAR, SCALAR], 0),
    lambda lax: lax.concatenate([X, array(3)], 0),
    lambda lax: lax.concatenate([X, array(2, 2)], 0),
    lambda lax: lax.concatenate([X, X], -1),
    lambda lax: lax.concatenate([X, array(4, 3, dtype=np.int32)], 0),
    lambda lax: lax.stack([]),
    lambda lax: lax.stack([X, EMPTY]),
    lambda lax: lax.stack([X, X], 5),
    lambda lax: lax.unstack(SCALAR),
    lambda lax: lax.split(X, (1, 2)),
    lambda lax: lax.split(X, (-1, 5)),
    lambda lax: lax.split(X, (4,), 2),
    lambda lax: lax.rev(X, (0, 0)),
    lambda lax: lax.rev(X, (2,)),
    lambda lax: lax.rev(X, (-1,)),
    lambda lax: lax.iota(np.bool_, 2),
    lambda lax: lax.iota(np.int32, -2),
    lambda lax: lax.iota(np.int32, 2.0),
    lambda lax: lax.broadcasted_iota(np.int32, (2,), 1),
    lambda lax: lax.tile(X, (2,)),
    lambda lax: lax.broadcast_shapes((2,), (3,)),
    lambda lax: lax.collapse(X, 1, 0),
    lambda lax: lax.full((2,), X),
    lambda lax: lax.full((-1,), 1.5),
    lambda lax: lax.full_like([1, 2], 1),
    lambda lax: lax.broadcast(X, (-1,)),
]


@pytest.mark.parametrize("number", range(len(ERRORS)))
def test_calls_that_jax_rejects_are_rejected(number):
    same(ERRORS[number], raises=True)


def test_shapes_broadcast_as_in_jax():
    same(lambda lax: [of_shapes(lax, s) for s in ([(2, 1), (3,), ()], [(0,), (1,)], [(2, 3)], [(), ()])])


def test_eager_slices_of_one_size_share_a_program():
    x = minijax.numpy.asarray(X)
    pieces = [np.asarray(structural.slice(x, (i, 0), (i + 2, 3))) for i in range(3)]
    assert all((piece == X[i : i + 2]).all() for i, piece in enumerate(pieces))
    with pytest.raises(TypeError):
        structural.slice(x, (3, 0), (5, 3))


def test_operand_axes_can_be_broadcast_in_any_order():
    x = array(2, 3)

    def turned(x, lax):
        return lax.broadcast_in_dim(x, (3, 4, 2), (2, 0))

    same(lambda lax: turned(x, lax))
    same(lambda jax, lax: jax.vmap(lambda x: turned(x, lax), 1)(array(2, 5, 3)))
    same(lambda jax, lax: jax.grad(lambda x: (turned(x, lax) ** 2).sum())(x[:1]))
    # jax gets the order of the cotangent's axes wrong.
    cotangent = minijax.grad(lambda x: (turned(x, minijax.lax) ** 2).sum())(x)
    assert np.array_equal(cotangent, 8 * x)
