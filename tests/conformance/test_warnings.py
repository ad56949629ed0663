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
    jnp.einsum('ij,kj->ik', x, x, preferred_element_type='float64') | jnp.einsum('ij->i', x, preferred_element_type='float64')
    jnp.tensordot(x, x.T, 1, preferred_element_type='float64') | jnp.dot(x, x.T, preferred_element_type='float64')
    jnp.matmul(x, x.T, preferred_element_type='float64') | lax.dot(x, x.T, preferred_element_type='float64')
    jnp.vdot(x, x, preferred_element_type='float64') | jnp.inner(x, x, preferred_element_type='float64')
    jnp.concatenate([x, x, x], dtype='float64') | jnp.concatenate(x, dtype='float64') | jnp.stack([x, x], dtype='float64')
    jnp.concatenate([x, x], None, dtype='float64') | jnp.hstack([x, x], dtype='float64') | jnp.vstack([x], dtype='float64')
    jnp.cumulative_sum(x[0], dtype='float64') | jnp.cumulative_prod(x[0], dtype='float64') | jnp.trace(x, dtype='float64')
    jnp.nanmean(x, dtype='float64') | jnp.nanstd(x, dtype='float64') | jnp.result_type(jnp.float64, x)
    jnp.result_type('float64', x) | jnp.promote_types(jnp.float64, 'float32')
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


# Uses, outside `enable_x64`, of arrays of 64 bits: floats `f`, integers `i`, complex numbers `c`, a weak `w`.
USES = """
    f * 2 | 2 * f | f > 1 | f == 1.5 | f % 2 | i + 1 | i // 2 | i * 1.5 | c * 2 | w * 2 | f + jnp.ones(3) | f + np.arange(3.0)
    f.sum() | i.sum() | f.mean() | jnp.cumsum(f) | jnp.where(f > 1, f, 0) | jnp.clip(f, 0, 1) | jnp.maximum(f, 0)
    jnp.ones(5)[i] | jnp.take(jnp.ones(5), i) | jnp.ones(5).at[i].add(f) | jnp.ones((5, 5))[i, 0] | jnp.ones(5)[i[1]]
    jax.vmap(lambda x: x * 2)(f) | jax.tree.map(lambda x: x + 1, {'a': f}) | jax.jit(lambda x: x + f)(jnp.ones(3))
    -f | f + f | f[0] | f[1:] | f.T | f.reshape(3, 1) | jnp.sin(f) | jnp.exp(f) | jnp.sort(f) | jnp.stack([f, f])
    jnp.concatenate([f, f]) | f.astype(int) | f.astype('float32') | f ** 2 | jnp.isnan(f) | jnp.pad(f, 1) | lax.add(f, f)
    jnp.zeros_like(f) | f.copy() | jnp.asarray(f) | jax.device_put(f) | float(f[1]) | lax.cond(True, lambda x: x, lambda x: -x, f)
    jax.jit(lambda x: x)(f) | jax.grad(lambda x: jnp.sin(x)[0])(f) | jax.jvp(jnp.sin, (f,), (f,))
"""


@pytest.mark.parametrize("text", [text.strip() for text in USES.replace("\n", "|").split("|") if text.strip()])
def test_arrays_of_64_bits_outside_enable_x64_are_narrowed_with_a_warning_where_jax_narrows_them(text):
    def program(jax, jnp, lax):
        jax.clear_caches()
        with jax.enable_x64(True):
            f, i, c, w = jnp.arange(3.0), jnp.arange(3), jnp.ones(3, "complex128"), jnp.asarray(2.0)
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            try:
                result = eval(text, dict(jax=jax, jnp=jnp, lax=lax, np=np, f=f, i=i, c=c, w=w))
            except TypeError:
                return "TypeError"
        messages = {str(w.message).split(" requested")[0] for w in found if "truncated" in str(w.message)}
        return sorted(messages), [(str(x.dtype), x.weak_type) for x in jax.tree.leaves(result) if hasattr(x, "dtype")]

    same(program)
