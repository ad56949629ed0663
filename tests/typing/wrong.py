"""A program of mistakes: checkers find one in each line that is marked, and none in any other."""

import functools

import minijax as jax
import minijax.numpy as jnp
from minijax import lax
from minijax.numpy import sinus  # noqa: F401  # wrong
from minijax.sharding import NamedSharding, PartitionSpec as P


def step(x: jax.Array, rate: float) -> jax.Array:
    return x * rate


x = jnp.ones(3)
key = jax.random.key(0)
jitted = jax.jit(step)

jnp.dot(1)  # wrong
jnp.sum(x, axs=0)  # wrong
x.sum(axiss=0)  # wrong
x.reshap(3)  # wrong
jnp.sinn(x)  # wrong
jax.random.normal("key", (3,))  # wrong
jax.random.normal(key, (3,), type=jnp.float32)  # wrong
jax.random.uniform((3,))  # wrong
jax.random.split(key, num="2")  # wrong
jitted(x)  # wrong
jitted(x, 1.0, 2.0)  # wrong
jitted(x, rates=1.0)  # wrong
jitted(x, "fast")  # wrong
jitted.lowered(x)  # wrong
jax.jit(jax.grad(step))()  # wrong
lax.scan(lambda c, x: c + x, x, x)  # wrong
jax.jit(step, static_argnumbers=1)  # wrong
jax.grad(step, argnum=0)  # wrong
jax.vmap(step)(x)  # wrong
jax.value_and_grad(step)(x, 1.0, 2.0)  # wrong
jax.checkpoint(step)(x)  # wrong
jnp.max(x, axis="rows")  # wrong
x.mean(axis=1.5)  # wrong
jnp.concatenate(x, x)  # wrong
x.at[0].sett(1.0)  # wrong
x.at[0].set()  # wrong
x + "one"  # wrong
print(x["a"].shapes)  # wrong
jax.lax.scan(step)  # wrong
lax.fori_loop(0, 3, x)  # wrong
jax.nn.softmax(x, axes=-1)  # wrong
jnp.linalg.norm(x, order=2)  # wrong
jax.tree.maps(jnp.sin, x)  # wrong
jax.device_putt(x)  # wrong
NamedSharding(P("x"))  # wrong
jnp.maximum(x)  # wrong
total: float = x.sum()  # wrong
jax.debug.prints("{x}", x=x)  # wrong
lax.add(x)  # wrong
jnp.exp(x, x)  # wrong
jax.shard_map(step, in_specs=P(), out_spec=P())  # wrong
functools.partial(jax.jit, static_argnums=1)(step)(x, 1)
