"""The kind of value that functions of scalars return, an array or a tracer, eagerly and under transforms, as in jax."""

from collections.abc import Callable

import numpy as np
import pytest
from compare import same
from given import given

pytestmark = pytest.mark.oracle

# Functions of a scalar `x` and of constants.
CALLS = [
    lambda lax, x: lax.full_like(x, 2),
    lambda lax, x: lax.full_like(x, x),
    lambda lax, x: lax.full_like(x, 2, dtype="int8"),
    lambda lax: lax.full((), 2.0),
    lambda lax, x: lax.full((), x),
    lambda lax: lax.full((), np.float32(2)),
    lambda lax: lax.full((), 2, "int8"),
    lambda jnp, x: jnp.zeros_like(x),
    lambda jnp, x: jnp.full_like(x, 2),
    lambda jnp: jnp.ones(()),
    lambda lax: lax.broadcast(2.0, ()),
    lambda lax: lax.broadcast_in_dim(2.0, (), ()),
    lambda lax: lax.expand_dims(2.0, ()),
    lambda lax: lax.reshape(2.0, ()),
    lambda lax: lax.squeeze(2.0, ()),
    lambda lax: lax.transpose(2.0, ()),
    lambda lax: lax.rev(2.0, ()),
    lambda lax: lax.slice(2.0, (), ()),
    lambda lax: lax.tile(2.0, ()),
    lambda lax: lax.pad(2.0, 0.0, ()),
    lambda lax: lax.add(1.0, 2.0),
    lambda lax: lax.max(1.0, 2.0),
    lambda lax: lax.clamp(1.0, 2.0, 3.0),
    lambda lax: lax.select(True, 2.0, 3.0),
    lambda lax: lax.real(2j),
    lambda lax: lax.conj(2j),
    lambda lax: lax.reduce_precision(2.0, 8, 23),
    lambda lax: lax.reduce_max(2.0, ()),
    lambda lax: lax.reduce_sum(2.0, ()),
    lambda lax: lax.convert_element_type(2.0, "int8"),
    lambda lax: lax.convert_element_type(2.0, float),
    lambda lax: lax.optimization_barrier(2.0),
    lambda lax: lax.convert_element_type(np.float32(2), np.float32),
    lambda lax: lax.bitcast_convert_type(np.float32(2), np.float32),
    lambda lax: lax.cumsum(np.ones(2)),
    lambda lax: lax.sort(np.ones(3)),
    lambda lax: lax.concatenate([np.ones(3)], 0),
    lambda lax: lax.iota("int8", 1)[0],
    lambda jnp: jnp.asarray(2.0),
    lambda jnp: jnp.array(2),
    lambda jnp: jnp.int8(2),
    lambda jnp: jnp.broadcast_to(2.0, ()),
    lambda jnp: jnp.where(True, 1.0, 2.0),
    lambda jnp: jnp.add(1, 2),
    lambda jnp: jnp.real(2.0),
    lambda jnp: jnp.imag(2.0),
    lambda jnp: jnp.conj(2.0),
    lambda jnp: jnp.squeeze(2.0),
    lambda jnp: jnp.sum(2.0),
    lambda jnp: jnp.clip(2.0, 1, 3),
    lambda jnp: jnp.copy(2.0),
    lambda jnp: jnp.ravel(2.0)[0],
    lambda jnp: jnp.astype(2.0, "float32"),
    lambda jax: jax.device_put(2.0),
]
AROUND: dict[str, Callable] = {
    "eager": lambda jax, f: f(1.0),
    "recorded": lambda jax, f: jax.make_jaxpr(f)(1.0),
    "constants recorded": lambda jax, f: jax.make_jaxpr(lambda y: f(1.0))(1.0),
    "jvp": lambda jax, f: jax.jvp(f, (1.0,), (1.0,)),
    "vmap": lambda jax, f: jax.vmap(f)(np.ones(3)),
    "linearize": lambda jax, f: jax.linearize(f, 1.0),
}


@pytest.mark.parametrize("around", AROUND)
def test_functions_of_scalars_return_arrays_or_tracers_where_jax_does(around):
    def program(jax, jnp, lax):
        kinds = {}

        def calls(x):
            for number, call in enumerate(CALLS):
                kinds[number] = type(given(call, dict(jax=jax, jnp=jnp, lax=lax, x=x))).__name__
            return x

        AROUND[around](jax, calls)
        return sorted(kinds.items())

    assert len(same(program)) > 50


def test_operations_on_filled_scalars_are_recorded():
    def program(jax, jnp, lax):
        half = jnp.bfloat16(1)
        return [
            str(jax.make_jaxpr(lambda x: (lax.full_like(x, 2) / 0.5, lax.full_like(x, 2).at[None].set(0)))(x))
            for x in (half, 1.0, 2, np.int8(3))
        ]

    same(program)
