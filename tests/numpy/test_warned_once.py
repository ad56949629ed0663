"""Reductions that warn once of a dtype that is narrowed."""

import warnings

import pytest
from compare import same


@pytest.mark.parametrize("dtype", ["float64", "int64", "complex128"])
@pytest.mark.parametrize("name", ["nansum", "nanprod"])
def test_a_narrowed_dtype_is_warned_of_once(name, dtype):
    def program(jax, jnp):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            result = getattr(jnp, name)(jnp.arange(3), dtype=dtype)
        texts = [str(w.message) for w in seen if issubclass(w.category, UserWarning)]
        return result, ["requested in nanprod" in text for text in texts]

    same(program)


@pytest.mark.parametrize("name", ["sum", "prod"])
def test_each_kind_of_reduction_warns_once(name):
    def program(jax, jnp):
        jax.clear_caches()
        reduce, x, y = getattr(jnp, name), jnp.ones((3, 4)), jnp.ones((5, 4))

        def twice(x):
            return 2 * reduce(x, dtype="float64")

        calls = {
            "jit": lambda: jax.jit(lambda x: reduce(x, dtype="float64"))(x),
            "again": lambda: jax.jit(twice)(x),
            "eager": lambda: reduce(x, dtype="float64"),
            "grad": lambda: jax.jit(jax.grad(twice))(x),
            "other shape": lambda: reduce(y, dtype="float64"),
            "vmap": lambda: jax.jit(jax.vmap(twice, in_axes=2))(jnp.ones((5, 4, 3))),
            "axis": lambda: jax.jit(lambda x: reduce(x, axis=0, dtype="float64"))(x),
            "loop": lambda: jax.lax.fori_loop(0, 3, lambda i, x: x + reduce(x, axis=0, dtype="float64"), x),
            "initial": lambda: reduce(x, initial=1.0, dtype="float64"),
        }
        counts = {}
        for call, run in calls.items():
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                run()
            counts[call] = len(seen)
        with jax.enable_x64(True):
            wide = reduce(x, dtype="float64")
        return counts, wide.dtype.name

    same(program)
