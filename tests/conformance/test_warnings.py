"""Warnings of dtypes that are narrowed: how many three calls give, as in jax, which warns where it traces."""

import warnings

import numpy as np
import pytest
from compare import same
from given import given

pytestmark = pytest.mark.oracle

CALLS = [
    lambda jnp, x: jnp.mean(x, dtype="float64"),
    lambda jnp, x: jnp.cumsum(x, dtype="float64"),
    lambda jnp, x: jnp.cumprod(x, dtype="float64"),
    lambda jnp, x: jnp.var(x, dtype="float64"),
    lambda jnp, x: jnp.std(x, dtype="float64"),
    lambda jnp: jnp.linspace(0, 1, 3, dtype="float64"),
    lambda jnp: jnp.logspace(0, 1, 3, dtype="float64"),
    lambda jnp: jnp.geomspace(1, 2, 3, dtype="float64"),
    lambda jnp: jnp.zeros(3, "float64"),
    lambda jnp: jnp.ones(3, "int64"),
    lambda jnp: jnp.full(3, 1, "float64"),
    lambda jnp: jnp.arange(3, dtype="int64"),
    lambda jnp, x: jnp.asarray(x, "float64"),
    lambda jnp: jnp.array([1], "int64"),
    lambda x: x.astype("float64"),
    lambda jnp, x: jnp.astype(x, "float64"),
    lambda jnp: jnp.eye(3, dtype="float64"),
    lambda jnp: jnp.tri(3, dtype="float64"),
    lambda jnp, x: jnp.zeros_like(x, dtype="float64"),
    lambda jnp, x: jnp.full_like(x, 1, dtype="float64"),
    lambda jnp: jnp.empty(3, "float64"),
    lambda lax, x: lax.convert_element_type(x, "float64"),
    lambda lax: lax.iota("int64", 3),
    lambda lax: lax.full((2,), 1, "float64"),
    lambda jax: jax.random.normal(jax.random.key(0), (2,), dtype="float64"),
    lambda jax, jnp: jax.nn.one_hot(jnp.arange(2), 3, dtype="float64"),
    lambda jax: jax.random.randint(jax.random.key(0), (2,), 0, 3, dtype="int64"),
    lambda jnp: jnp.float64(1),
    lambda jnp: jnp.int64(1),
    lambda jnp, x: jnp.sum(x),
    lambda lax: lax.broadcasted_iota("int64", (2,), 0),
    lambda jnp: jnp.indices((2, 2), dtype="int64"),
    lambda jnp: jnp.asarray(np.ones(2)),
    lambda jnp, x: jnp.einsum("ij,kj->ik", x, x, preferred_element_type="float64"),
    lambda jnp, x: jnp.einsum("ij->i", x, preferred_element_type="float64"),
    lambda jnp, x: jnp.tensordot(x, x.T, 1, preferred_element_type="float64"),
    lambda jnp, x: jnp.dot(x, x.T, preferred_element_type="float64"),
    lambda jnp, x: jnp.matmul(x, x.T, preferred_element_type="float64"),
    lambda lax, x: lax.dot(x, x.T, preferred_element_type="float64"),
    lambda jnp, x: jnp.vdot(x, x, preferred_element_type="float64"),
    lambda jnp, x: jnp.inner(x, x, preferred_element_type="float64"),
    lambda jnp, x: jnp.concatenate([x, x, x], dtype="float64"),
    lambda jnp, x: jnp.concatenate(x, dtype="float64"),
    lambda jnp, x: jnp.stack([x, x], dtype="float64"),
    lambda jnp, x: jnp.concatenate([x, x], None, dtype="float64"),
    lambda jnp, x: jnp.hstack([x, x], dtype="float64"),
    lambda jnp, x: jnp.vstack([x], dtype="float64"),
    lambda jnp, x: jnp.cumulative_sum(x[0], dtype="float64"),
    lambda jnp, x: jnp.cumulative_prod(x[0], dtype="float64"),
    lambda jnp, x: jnp.trace(x, dtype="float64"),
    lambda jnp, x: jnp.nanmean(x, dtype="float64"),
    lambda jnp, x: jnp.nanstd(x, dtype="float64"),
    lambda jnp, x: jnp.result_type(jnp.float64, x),
    lambda jnp, x: jnp.result_type("float64", x),
    lambda jnp: jnp.promote_types(jnp.float64, "float32"),
]


@pytest.mark.parametrize("call", CALLS)
def test_narrowed_dtypes_are_warned_of_as_often_as_by_jax(call):
    def program(jax, jnp, lax):
        jax.clear_caches()
        x = jnp.arange(6.0).reshape(2, 3)
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            for _ in range(3):
                given(call, dict(jax=jax, jnp=jnp, lax=lax, x=x))
        return [str(w.category.__name__) for w in found]

    same(program)


# Uses, outside `enable_x64`, of arrays of 64 bits: floats `f`, integers `i`, complex numbers `c`, a weak `w`.
USES = [
    lambda f: f * 2,
    lambda f: 2 * f,
    lambda f: f > 1,
    lambda f: f == 1.5,
    lambda f: f % 2,
    lambda i: i + 1,
    lambda i: i // 2,
    lambda i: i * 1.5,
    lambda c: c * 2,
    lambda w: w * 2,
    lambda jnp, f: f + jnp.ones(3),
    lambda f: f + np.arange(3.0),
    lambda f: f.sum(),
    lambda i: i.sum(),
    lambda f: f.mean(),
    lambda jnp, f: jnp.cumsum(f),
    lambda jnp, f: jnp.where(f > 1, f, 0),
    lambda jnp, f: jnp.clip(f, 0, 1),
    lambda jnp, f: jnp.maximum(f, 0),
    lambda jnp, i: jnp.ones(5)[i],
    lambda jnp, i: jnp.take(jnp.ones(5), i),
    lambda jnp, f, i: jnp.ones(5).at[i].add(f),
    lambda jnp, i: jnp.ones((5, 5))[i, 0],
    lambda jnp, i: jnp.ones(5)[i[1]],
    lambda jax, f: jax.vmap(lambda x: x * 2)(f),
    lambda jax, f: jax.tree.map(lambda x: x + 1, {"a": f}),
    lambda jax, jnp, f: jax.jit(lambda x: x + f)(jnp.ones(3)),
    lambda f: -f,
    lambda f: f + f,
    lambda f: f[0],
    lambda f: f[1:],
    lambda f: f.T,
    lambda f: f.reshape(3, 1),
    lambda jnp, f: jnp.sin(f),
    lambda jnp, f: jnp.exp(f),
    lambda jnp, f: jnp.sort(f),
    lambda jnp, f: jnp.stack([f, f]),
    lambda jnp, f: jnp.concatenate([f, f]),
    lambda f: f.astype(int),
    lambda f: f.astype("float32"),
    lambda f: f**2,
    lambda jnp, f: jnp.isnan(f),
    lambda jnp, f: jnp.pad(f, 1),
    lambda lax, f: lax.add(f, f),
    lambda jnp, f: jnp.zeros_like(f),
    lambda f: f.copy(),
    lambda jnp, f: jnp.asarray(f),
    lambda jax, f: jax.device_put(f),
    lambda f: float(f[1]),
    lambda lax, f: lax.cond(True, lambda x: x, lambda x: -x, f),
    lambda jax, f: jax.jit(lambda x: x)(f),
    lambda jax, jnp, f: jax.grad(lambda x: jnp.sin(x)[0])(f),
    lambda jax, jnp, f: jax.jvp(jnp.sin, (f,), (f,)),
]


@pytest.mark.parametrize("call", USES)
def test_arrays_of_64_bits_outside_enable_x64_are_narrowed_with_a_warning_where_jax_narrows_them(call):
    def program(jax, jnp, lax):
        jax.clear_caches()
        with jax.enable_x64(True):
            f, i, c, w = jnp.arange(3.0), jnp.arange(3), jnp.ones(3, "complex128"), jnp.asarray(2.0)
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            try:
                result = given(call, dict(jax=jax, jnp=jnp, lax=lax, f=f, i=i, c=c, w=w))
            except TypeError:
                return "TypeError"
        messages = {str(w.message).split(" requested")[0] for w in found if "truncated" in str(w.message)}
        return sorted(messages), [(str(x.dtype), x.weak_type) for x in jax.tree.leaves(result) if hasattr(x, "dtype")]

    same(program)
