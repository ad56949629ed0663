"""Warnings of dtypes that are narrowed: how many three calls give, as in jax, which warns where it traces."""

import warnings

import numpy as np
import pytest
from compare import same

pytestmark = pytest.mark.oracle

CALLS = """
    jnp.mean(x, dtype='float64') | jnp.cumsum(x, dtype='float64') | jnp.cumprod(x, dtype='float64')
    jnp.var(x, dtype='float64') | jnp.std(x, dtype='float64') | jnp.linspace(0, 1, 3, dtype='float64')
    jnp.logspace(0, 1, 3, dtype='float64') | jnp.geomspace(1, 2, 3, dtype='float64') | jnp.zeros(3, 'float64')
    jnp.ones(3, 'int64') | jnp.full(3, 1, 'float64') | jnp.arange(3, dtype='int64') | jnp.asarray(x, 'float64')
    jnp.array([1], 'int64') | x.astype('float64') | jnp.astype(x, 'float64') | jnp.eye(3, dtype='float64')
    jnp.tri(3, dtype='float64') | jnp.zeros_like(x, dtype='float64') | jnp.full_like(x, 1, dtype='float64')
    jnp.empty(3, 'float64') | lax.convert_element_type(x, 'float64') | lax.iota('int64', 3) | lax.full((2,), 1, 'float64')
    jax.random.normal(jax.random.key(0), (2,), dtype='float64') | jax.nn.one_hot(jnp.arange(2), 3, dtype='float64')
    jax.random.randint(jax.random.key(0), (2,), 0, 3, dtype='int64') | jnp.float64(1) | jnp.int64(1) | jnp.sum(x)
    lax.broadcasted_iota('int64', (2,), 0) | jnp.indices((2, 2), dtype='int64') | jnp.asarray(np.ones(2))
"""


@pytest.mark.parametrize("text", [text.strip() for text in CALLS.replace("\n", "|").split("|") if text.strip()])
def test_narrowed_dtypes_are_warned_of_as_often_as_by_jax(text):
    def program(jax, jnp, lax):
        jax.clear_caches()
        x = jnp.arange(6.0).reshape(2, 3)
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            for _ in range(3):
                eval(text, dict(jax=jax, jnp=jnp, lax=lax, np=np, x=x))
        return [str(w.category.__name__) for w in found]

    same(program)
