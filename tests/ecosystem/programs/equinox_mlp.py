"""A network of equinox, trained by optax."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

key = jax.random.key(0)
model = eqx.nn.MLP(2, 1, 16, 2, key=key)
x = jax.random.normal(key, (32, 2))
y = x.prod(1, keepdims=True)
optimizer = optax.adam(1e-2)
state = optimizer.init(eqx.filter(model, eqx.is_array))


@eqx.filter_jit
def step(model, state):
    loss = eqx.filter_value_and_grad(lambda model: jnp.mean((jax.vmap(model)(x) - y) ** 2))
    value, grads = loss(model)
    updates, state = optimizer.update(grads, state, model)
    return eqx.apply_updates(model, updates), state, value


for _ in range(5):
    model, state, value = step(model, state)
    print(f"{float(value):.5f}")
print(model.layers[0])
