"""Blackjax's no-U-turn sampler for the mean and the scale of a normal distribution."""

import blackjax
import jax
import jax.numpy as jnp

data = 2 * jnp.linspace(-1, 1, 30) + 0.5


def log_density(position):
    mean, log_scale = position["mean"], position["log_scale"]
    residuals = (data - mean) / jnp.exp(log_scale)
    return -0.5 * (mean**2 + log_scale**2) - jnp.sum(0.5 * residuals**2 + log_scale)


kernel = blackjax.nuts(log_density, step_size=0.1, inverse_mass_matrix=jnp.ones(2))


@jax.jit
def sample(key, state):
    def step(state, key):
        state, _ = kernel.step(key, state)
        return state, state.position

    return jax.lax.scan(step, state, jax.random.split(key, 50))


start = kernel.init({"mean": jnp.zeros(()), "log_scale": jnp.zeros(())})
_, positions = sample(jax.random.key(0), start)
for name, values in positions.items():
    print(name, f"{float(values[:10].mean()):.3f}")
