"""Explicit axes: gathers, scatters, repeats and updates by index, and the indices that are refused."""

import numpy as np
import pytest
from mesh_language import numbers, same, same_errors

pytestmark = pytest.mark.oracle


def made(shape, *spec, dtype=np.float32):
    return lambda s: s.shard(numbers(*shape, dtype=dtype), *spec, mesh=s.explicit_mesh)


GIVEN = {"batch": made((8, 4, 4), "x")}


def test_updates_of_weak_arrays_by_plain_integers():
    same(
        [
            lambda s: s.jaxpr(lambda: s.jnp.full(8, 2).at[0].add(2)),
            lambda s: s.jaxpr(lambda: s.jnp.full(8, 2).at[s.jnp.array([0, 1])].multiply(True)),
            lambda s: s.jaxpr(lambda: s.jnp.full(8, 2).at[0].min(s.jnp.full((), 3))),
            lambda s: s.jaxpr(lambda: s.jnp.full(8, 2).at[0].set(np.int8(2))),
            lambda s: s.jaxpr(lambda: s.jnp.full(8, 2.0).at[0].set(2)),
            lambda s: s.jaxpr(lambda: s.jnp.full(8, 2).at[0].apply(lambda x: x * 2)),
            lambda s: [
                s.jnp.full(8, 2).at[0].add(2),
                s.jnp.full(8, 2).at[0].add(np.int8(2)),
                s.jnp.arange(4, dtype=np.uint8).at[0].add(300),
            ],
        ]
    )


def test_repeat_along_a_sharded_axis_needs_out_sharding():
    same(
        [
            lambda s: s.run(lambda x: s.jnp.repeat(x, 2, axis=1), s.sharded_rows),
            lambda s: s.run(s.jax.vmap(lambda x: s.jnp.repeat(x, 2, axis=0)), s.sharded_rows),
            lambda s: s.jaxpr(
                lambda x, n: s.jnp.repeat(x, n, axis=1, total_repeat_length=6),
                s.sharded_rows,
                s.jnp.array([1, 2, 1, 0]),
            ),
            lambda s: s.unwrapped_jaxpr(s.jax.vmap(lambda x: s.jnp.pad(x, 1, mode="edge")), s.batch),
            lambda s: s.unwrapped_jaxpr(s.jax.vmap(lambda x: s.jnp.pad(x, ((1, 0), (2, 1)), mode="maximum")), s.batch),
        ],
        set_mesh="explicit_mesh",
        **GIVEN,
    )
    asked = "Please pass sharding to `jnp.repeat` via `out_sharding`"
    same_errors(
        [
            (lambda s: s.jnp.repeat(s.sharded_rows, 2, axis=0), asked),
            (lambda s: s.jnp.repeat(s.sharded_rows, 0, axis=0), asked),
            (lambda s: s.jnp.repeat(s.sharded_rows, 2), asked),
            (lambda s: s.jnp.repeat(s.sharded_rows, np.arange(8), axis=0), asked),
            (lambda s: s.jnp.repeat(s.sharded_rows, np.array([2]), axis=0), asked),
        ],
        set_mesh="explicit_mesh",
    )


def test_strided_slices():
    same(
        [
            lambda s: [
                s.sharded_rows[:, ::2],
                s.sharded_rows[:, ::-1],
                s.sharded_rows[:, 1:3],
                s.sharded_columns[::2],
                s.replicated[::3],
            ],
            lambda s: s.jax.jit(lambda x: x[::2])(s.sharded_both),
        ],
        set_mesh="explicit_mesh",
        **GIVEN,
    )
    same_errors(
        [
            (lambda s: s.sharded_both[::2], ".at[...].get(out_sharding=)"),
            (lambda s: s.sharded_both[:, 1::2], ".at[...].get(out_sharding=)"),
        ],
        set_mesh="explicit_mesh",
        **GIVEN,
    )


def test_batching_dimensions_take_the_sharding_of_any_operand():
    def read(s, x, i):
        numbers = s.lax.GatherDimensionNumbers((), (1,), (1,), (0,), (0,))
        return s.types(lambda x, i: s.lax.gather(x, i, numbers, (1, 1)), x, abs(i) % 4)

    def update(s, x, i, u):
        numbers = s.lax.ScatterDimensionNumbers((), (1,), (1,), (0,), (0,))
        return s.types(lambda x, i, u: s.lax.scatter_add(x, i, u, numbers), x, abs(i) % 4, u)

    given = {
        **GIVEN,
        "indices": made((8, 1, 1), dtype=np.int32),
        "indices_over_x": made((8, 1, 1), "x", dtype=np.int32),
        "indices_over_y": made((8, 1, 1), "y", dtype=np.int32),
        "updates": made((8, 1)),
        "updates_over_x": made((8, 1), "x"),
    }
    same(
        [
            lambda s: read(s, s.sharded_rows, s.indices),
            lambda s: read(s, s.sharded_rows, s.indices_over_x),
            lambda s: read(s, s.replicated, s.indices),
            lambda s: read(s, s.replicated, s.indices_over_x),
            lambda s: update(s, s.sharded_rows, s.indices, s.updates),
            lambda s: update(s, s.sharded_rows, s.indices, s.updates_over_x),
            lambda s: update(s, s.sharded_rows, s.indices_over_x, s.updates),
            lambda s: update(s, s.sharded_rows, s.indices_over_x, s.updates_over_x),
            lambda s: update(s, s.replicated, s.indices, s.updates),
            lambda s: update(s, s.replicated, s.indices, s.updates_over_x),
            lambda s: update(s, s.replicated, s.indices_over_x, s.updates),
            lambda s: update(s, s.replicated, s.indices_over_x, s.updates_over_x),
        ],
        set_mesh="explicit_mesh",
        **given,
    )
    same_errors(
        [
            (lambda s: read(s, s.sharded_rows, s.indices_over_y), "out_sharding"),
            (lambda s: update(s, s.sharded_rows, s.indices, s.indices_over_y[:, 0] * 1.0), "out_sharding"),
        ],
        set_mesh="explicit_mesh",
        **given,
    )
    same(
        [
            lambda s: s.run(lambda x: s.jnp.take_along_axis(x, s.jnp.zeros((8, 1), int), 1), s.sharded_rows),
            lambda s: s.types(lambda x: s.jnp.take_along_axis(x, s.jnp.zeros((2, 4), int), 0), s.sharded_columns),
            lambda s: s.types(
                s.jax.grad(lambda x: (s.jnp.take_along_axis(x, s.jnp.zeros((8, 1), int), 1) ** 2).sum()), s.sharded_rows
            ),
            lambda s: s.types(s.jax.vmap(lambda x: s.jnp.take_along_axis(x, s.jnp.zeros((4, 1), int), 1)), s.batch),
        ],
        set_mesh="explicit_mesh",
        **given,
    )


def test_argsort_and_powers_keep_the_sharding():
    same(
        [
            lambda s: s.run(lambda x: s.jnp.argsort(x, axis=1, descending=True), s.sharded_rows),
            lambda s: s.types(s.jax.vmap(s.jnp.argsort), s.batch),
            lambda s: s.jaxpr(s.jax.grad(lambda x: (x ** s.jnp.arange(4)).sum()), s.sharded_rows),
            lambda s: s.types(
                s.jax.grad(lambda x: s.jax.vmap(lambda y: s.lax.pow(y, s.jnp.ones(4, np.uint32)))(x).sum()),
                s.sharded_rows,
            ),
        ],
        set_mesh="explicit_mesh",
        **GIVEN,
    )
