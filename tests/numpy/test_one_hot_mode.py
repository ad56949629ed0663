"""Reads with `mode=GatherScatterMode.ONE_HOT`, which jax records and derives, but lowers for no platform."""

import compare
import numpy as np
import pytest
from transform_matrix import transformed

X, AT = np.arange(12, dtype=np.float32).reshape(3, 4), np.array([0, 2, 5, -1], np.int32)

READS = {
    "rows": lambda x, i, mode: x.at[i].get(mode=mode),
    "columns": lambda x, i, mode: x.at[:, i].get(mode=mode),
    "points": lambda x, i, mode: x.at[i, i].get(mode=mode),
    "one row": lambda x, i, mode: x.at[1].get(mode=mode),
    "slice": lambda x, i, mode: x.at[1:2].get(mode=mode),
    "filled": lambda x, i, mode: x.at[i].get(mode=mode, fill_value=7.0),
    "set": lambda x, i, mode: x.at[i].set(1.0, mode=mode),
}


@pytest.mark.parametrize("name", READS)
@pytest.mark.parametrize("mode", ["one_hot", None])
def test_jaxprs_of_reads_in_the_mode_and_their_transforms(name, mode):
    def function(jax, lax):
        chosen = mode or lax.GatherScatterMode.ONE_HOT

        def read(x, i):
            return READS[name](x, i, chosen)

        def gradient(x, i):
            return jax.grad(lambda x: (read(x, i) ** 2).sum())(x)

        return lambda x, i: (read(x, i), gradient(x, i), jax.vmap(read, (None, 0))(x, i[:, None]))

    compare.same_jaxpr(function, X, AT)


@pytest.mark.parametrize("name", READS)
def test_reads_in_the_mode_end_as_in_jax(name):
    compare.same(
        lambda jax, jnp, lax: READS[name](jnp.asarray(X), jnp.asarray(AT), lax.GatherScatterMode.ONE_HOT),
        raises=compare.EITHER,
    )


@pytest.mark.parametrize("take", ["take", "take_along_axis"])
def test_takes_in_the_mode_as_an_enumeration(take):
    def program(jnp, lax):
        return getattr(jnp, take)(jnp.asarray(X), jnp.asarray(AT)[None], axis=1, mode=lax.GatherScatterMode.ONE_HOT)

    compare.same(program, raises=True)


SHAPES = [
    ((3, 4), (1, 4), 0),
    ((2, 3, 4), (2, 5, 4), 1),
    ((2, 3, 4), (1, 5, 4), 1),
    ((2, 1, 4), (2, 5, 4), 2),
    ((6,), (2,), None),
    ((2, 3, 4, 5), (2, 3, 7, 1), -2),
    ((3, 0), (2, 0), 0),
]


@pytest.mark.parametrize(("shape", "index_shape", "axis"), SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "int8", "bool"])
def test_take_along_axis_by_a_product_with_ones(shape, index_shape, axis, dtype):
    random = np.random.RandomState(0)
    x, at = random.randint(0, 5, shape).astype(dtype), random.randint(-5, 9, index_shape)

    def take(jnp):
        return lambda x, i: jnp.take_along_axis(x, i, axis, mode="one_hot")

    compare.check(compare.Case(f"one_hot {shape} {dtype}", take, (x, at)), tier="full")


def test_derivatives_of_take_along_axis_by_a_product():
    def function(jax, jnp):
        def take(x, i):
            return jnp.take_along_axis(x, i, 1, mode="one_hot")

        return lambda x, i: (jax.grad(lambda x: (take(x, i) ** 2).sum())(x), jax.vmap(take, (None, 0))(x, i[None]))

    compare.check(compare.Case("one_hot gradient", function, (X, np.arange(6).reshape(3, 2))), tier="full")


def test_gathers_in_the_mode():
    def function(lax, jax):
        numbers = lax.GatherDimensionNumbers((1,), (0,), (0,))
        mode = lax.GatherScatterMode.ONE_HOT

        def gather(x, i):
            return lax.gather(x, i[:, None], numbers, (1, 4), mode=mode)

        return lambda x, i: (gather(x, i), jax.grad(lambda x: gather(x, i).sum())(x))

    compare.same_jaxpr(function, X, AT)


def test_index_take_of_a_sequence_of_indices():
    compare.same(lambda lax, jnp: lax.index_take(jnp.asarray(X), (jnp.asarray(AT), jnp.asarray(AT)), (0, 1)))
    compare.same(lambda lax, jnp: lax.index_take(jnp.asarray(X), [jnp.asarray(AT)], (1,)))


@pytest.mark.parametrize("mode", ["clip", "fill", "wrap", None])
@pytest.mark.parametrize(
    ("shape", "at", "axis"), [((0,), 0, None), ((0, 3), [0], 0), ((0, 3), [0], None), ((2, 0), [1], 0), ((0, 3), [], 0)]
)
def test_takes_from_an_empty_axis(mode, shape, at, axis):
    def take(jnp):
        return jnp.take(jnp.ones(shape), jnp.asarray(at, "int32"), axis=axis, mode=mode)

    compare.same(take, raises=compare.EITHER)
    if np.size(at) and (axis is None or not shape[axis]):
        compare.same_refusal(lambda jnp: lambda: take(jnp), phrases=["Cannot do a non-empty jnp.take()"])


@pytest.mark.parametrize(
    "shape, index_shape, axis",
    [
        ((1, 3), (2, 1), 1),
        ((1, 3), (2, 2), 1),
        ((1, 1), (3, 3), 0),
        ((1, 3, 1), (2, 1, 4), 1),
        ((2, 1, 3), (2, 4, 1), 2),
    ],
)
def test_take_along_axis_drops_axes_that_the_indices_broadcast(shape, index_shape, axis):
    rng = np.random.default_rng(0)
    x, i = rng.normal(size=shape).astype(np.float32), rng.integers(-1, 2, index_shape).astype(np.int32)
    for transform in ("plain", "grad", "vmap", "jvp"):
        case = compare.Case(f"{shape}-{index_shape}", lambda jnp: lambda x: jnp.take_along_axis(x, i, axis), (x,))
        compare.check(transformed(case, transform))
