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
