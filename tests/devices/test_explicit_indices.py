"""Indices, and what is made of them, over Explicit axes: how they lie, and what is refused."""

import compare
import numpy as np
import pytest
from mesh_language import numbers, same, same_errors

pytestmark = pytest.mark.oracle


def made(shape, *spec, dtype=np.float32):
    return lambda s: s.put(numbers(*shape, dtype=dtype), *spec, mesh=s.explicit)


GIVEN = {
    "e": made((8, 4), "x", "y"),
    "r": made((8, 4), "x"),
    "c": made((8, 4), None, "y"),
    "o": made((8, 4)),
    "b": made((8, 4, 4), "x"),
    "traced": lambda s: lambda f, *xs: compare._unwrapped(s.jaxpr(f, *xs)),
}


def test_updates_of_weak_arrays_by_plain_integers():
    same(
        """
        jaxpr(lambda: jnp.full(8, 2).at[0].add(2))
        jaxpr(lambda: jnp.full(8, 2).at[jnp.array([0, 1])].multiply(True))
        jaxpr(lambda: jnp.full(8, 2).at[0].min(jnp.full((), 3)))
        jaxpr(lambda: jnp.full(8, 2).at[0].set(np.int8(2)))
        jaxpr(lambda: jnp.full(8, 2.0).at[0].set(2))
        jaxpr(lambda: jnp.full(8, 2).at[0].apply(lambda x: x * 2))
        [jnp.full(8, 2).at[0].add(2), jnp.full(8, 2).at[0].add(np.int8(2)), jnp.arange(4, dtype=np.uint8).at[0].add(300)]
        """
    )


def test_repeats_along_an_axis_that_is_split_ask_for_a_sharding():
    same(
        """
        run(lambda x: jnp.repeat(x, 2, axis=1), r)
        run(jax.vmap(lambda x: jnp.repeat(x, 2, axis=0)), r)
        jaxpr(lambda x, n: jnp.repeat(x, n, axis=1, total_repeat_length=6), r, jnp.array([1, 2, 1, 0]))
        traced(jax.vmap(lambda x: jnp.pad(x, 1, mode='edge')), b)
        traced(jax.vmap(lambda x: jnp.pad(x, ((1, 0), (2, 1)), mode='maximum')), b)
        """,
        setting="explicit",
        **GIVEN,
    )
    asked = "Please pass sharding to `jnp.repeat` via `out_sharding`"
    along = ("2, axis=0", "0, axis=0", "2", "np.arange(8), axis=0", "np.array([2]), axis=0")
    same_errors([(f"jnp.repeat(r, {repeats})", asked) for repeats in along], setting="explicit", **GIVEN)


def test_an_eager_index_with_steps_gathers():
    same(
        """
        [r[:, ::2], r[:, ::-1], r[:, 1:3], c[::2], o[::3]]
        jax.jit(lambda x: x[::2])(e)
        """,
        setting="explicit",
        **GIVEN,
    )
    same_errors([(f"e[{i}]", ".at[...].get(out_sharding=)") for i in ("::2", ":, 1::2")], setting="explicit", **GIVEN)


def test_batching_axes_are_split_as_any_of_the_operands_says():
    update = "lambda x, i, u: lax.scatter_add(x, i, u, lax.ScatterDimensionNumbers((), (1,), (1,), (0,), (0,)))"
    read = "lambda x, i: lax.gather(x, i, lax.GatherDimensionNumbers((), (1,), (1,), (0,), (0,)), (1, 1))"
    column = [("i", ()), ("ix", ("x",)), ("iy", ("y",))]
    rows: dict = {name: made((8, 1, 1), *spec, dtype=np.int32) for name, spec in column}
    rows |= {"u": made((8, 1)), "ux": made((8, 1), "x")}
    given = {**GIVEN, **rows}
    operands = [(x, i) for x in "ro" for i in ("i", "ix")]
    same(
        "\n".join(f"types({read}, {x}, abs({i}) % 4)" for x, i in operands)
        + "\n".join(f"\ntypes({update}, {x}, abs({i}) % 4, {u})" for x, i in operands for u in ("u", "ux")),
        setting="explicit",
        **given,
    )
    refused = [
        (f"({read})(r, abs(iy) % 4)", "out_sharding"),
        (f"({update})(r, abs(i) % 4, iy[:, 0] * 1.0)", "out_sharding"),
    ]
    same_errors(refused, setting="explicit", **given)
    same(
        """
        run(lambda x: jnp.take_along_axis(x, jnp.zeros((8, 1), int), 1), r)
        types(lambda x: jnp.take_along_axis(x, jnp.zeros((2, 4), int), 0), c)
        types(jax.grad(lambda x: (jnp.take_along_axis(x, jnp.zeros((8, 1), int), 1) ** 2).sum()), r)
        types(jax.vmap(lambda x: jnp.take_along_axis(x, jnp.zeros((4, 1), int), 1)), b)
        """,
        setting="explicit",
        **given,
    )


def test_places_and_powers_lie_as_what_they_are_of():
    same(
        """
        run(lambda x: jnp.argsort(x, axis=1, descending=True), r)
        types(jax.vmap(jnp.argsort), b)
        jaxpr(jax.grad(lambda x: (x ** jnp.arange(4)).sum()), r)
        types(jax.grad(lambda x: jax.vmap(lambda y: lax.pow(y, jnp.ones(4, np.uint32)))(x).sum()), r)
        """,
        setting="explicit",
        **GIVEN,
    )
