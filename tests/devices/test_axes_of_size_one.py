"""Sharded axes of size 1, over mesh axes of size 1: where they are broadcast, they keep their sharding."""

import numpy as np
import pytest
from compare import outcome, same

import minijax


def _over_one_device(jax):
    mesh = jax.make_mesh((1, 1), ("x", "y"), axis_types=(jax.sharding.AxisType.Explicit,) * 2)
    put = lambda shape, *spec: jax.device_put(np.ones(shape, np.float32), jax.NamedSharding(mesh, jax.P(*spec)))  # noqa: E731
    shapes = [((1,), "x"), ((1,),), ((3,), "x"), ((1, 1), "x", "y"), ((3, 1), None, "x"), ((1, 3), "y", "x")]
    return mesh, [1.0, *(put(*s) for s in shapes)]


@pytest.mark.oracle
@pytest.mark.parametrize("function", ["broadcast_arrays", "where", "clip", "multiply"])
def test_axes_of_size_one_keep_their_sharding_where_they_are_broadcast(function):
    def types(jax, jnp):
        mesh, values = _over_one_device(jax)
        functions = {"where": lambda a, b: jnp.where(a > 0, a, b), "clip": lambda a, b: jnp.clip(a, b, b)}
        f = functions.get(function) or getattr(jnp, function)
        found = []
        with jax.set_mesh(mesh):
            for a in values:
                for b in values:
                    if function == "where" and np.shape(a) == np.shape(b):
                        continue  # a select refuses cases of one shape that are sharded otherwise; here they are moved
                    made = outcome(lambda a=a, b=b: jax.make_jaxpr(f)(a, b))
                    found.append(made.error and type(made.error).__name__)
                    found += [t.str_short(True) for t in made.value.out_avals] if made.value else []
        return found

    same(types)


@pytest.mark.oracle
def test_axes_of_size_one_that_grow_keep_their_sharding():
    def types(jax, jnp, lax):
        mesh, (_, x, *_, table, _, _) = _over_one_device(jax)
        functions = {
            "to": lambda: jnp.broadcast_to(x, (2, 3)),
            "lax": lambda: lax.broadcast_in_dim(x, (3,), (0,)),
            "both": lambda: jnp.broadcast_to(table, (3, 2)),
            "mapped": lambda: jax.vmap(lambda row: jnp.broadcast_to(row, (3,)))(table),
            "gradient of a product": lambda: jax.grad(lambda x: (x * np.ones(3, np.float32)).sum())(x),
        }
        with jax.set_mesh(mesh):
            return {name: jax.make_jaxpr(f)().out_avals[0].str_short(True) for name, f in functions.items()}

    same(types)


def test_the_gradient_by_an_axis_that_grows_is_summed():
    mesh, (_, x, *_) = _over_one_device(minijax)
    with minijax.set_mesh(mesh):
        gradient = minijax.grad(lambda x: (minijax.numpy.broadcast_to(x, (3,)) * np.arange(3.0)).sum())(x)
    assert minijax.typeof(gradient).str_short(True) == "f32[1@x]" and gradient.tolist() == [3.0]
