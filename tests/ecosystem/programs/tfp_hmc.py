"""Hamiltonian Monte Carlo of tensorflow-probability's jax substrate."""

import jax
import jax.numpy as jnp
from tensorflow_probability.substrates import jax as tfp


def log_density(x):
    return tfp.distributions.Normal(0.0, 1.0).log_prob(x).sum()


kernel = tfp.mcmc.HamiltonianMonteCarlo(log_density, step_size=0.3, num_leapfrog_steps=3)


@jax.jit
def sample(key):
    return tfp.mcmc.sample_chain(
        50, current_state=jnp.zeros(3), kernel=kernel, trace_fn=lambda _, results: results.is_accepted, seed=key
    )


states, is_accepted = sample(jax.random.PRNGKey(0))
print(states[-1].round(4), is_accepted.mean())
