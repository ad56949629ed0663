"""The kind of value that functions of scalars return, an array or a tracer, eagerly and under transforms, as in jax."""

from collections.abc import Callable

import numpy as np
import pytest
from compare import same

pytestmark = pytest.mark.oracle

# Functions of a scalar `x` and of constants.
CALLS = """
    lax.full_like(x, 2) | lax.full_like(x, x) | lax.full_like(x, 2, dtype='int8') | lax.full((), 2.) | lax.full((), x)
    lax.full((), np.float32(2)) | lax.full((), 2, 'int8') | jnp.zeros_like(x) | jnp.full_like(x, 2) | jnp.ones(())
    lax.broadcast(2., ()) | lax.broadcast_in_dim(2., (), ()) | lax.expand_dims(2., ()) | lax.reshape(2., ())
    lax.squeeze(2., ()) | lax.transpose(2., ()) | lax.rev(2., ()) | lax.slice(2., (), ()) | lax.tile(2., ())
    lax.pad(2., 0., ()) | lax.add(1., 2.) | lax.max(1., 2.) | lax.clamp(1., 2., 3.) | lax.select(True, 2., 3.)
    lax.real(2j) | lax.conj(2j) | lax.reduce_precision(2., 8, 23) | lax.reduce_max(2., ()) | lax.reduce_sum(2., ())
    lax.convert_element_type(2., 'int8') | lax.convert_element_type(2., float) | lax.optimization_barrier(2.)
    lax.convert_element_type(np.float32(2), np.float32) | lax.bitcast_convert_type(np.float32(2), np.float32)
    lax.cumsum(np.ones(2)) | lax.sort(np.ones(3)) | lax.concatenate([np.ones(3)], 0) | lax.iota('int8', 1)[0]
    jnp.asarray(2.) | jnp.array(2) | jnp.int8(2) | jnp.broadcast_to(2., ()) | jnp.where(True, 1., 2.) | jnp.add(1, 2)
    jnp.real(2.) | jnp.imag(2.) | jnp.conj(2.) | jnp.squeeze(2.) | jnp.sum(2.) | jnp.clip(2., 1, 3) | jnp.copy(2.)
    jnp.ravel(2.)[0] | jnp.astype(2., 'float32') | jax.device_put(2.)
"""
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
            for text in CALLS.replace("\n", "|").split("|"):
                if text.strip():
                    kinds[text.strip()] = type(eval(text.strip(), dict(jax=jax, jnp=jnp, lax=lax, np=np, x=x))).__name__
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
