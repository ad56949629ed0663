"""brax: an inverted pendulum, stepped, then learned by gradients through its physics and by PPO's."""

import functools

import jax
import jax.numpy as jnp
import optax
from brax import envs
from brax.envs.wrappers import training
from brax.training import acting
from brax.training.acme import running_statistics
from brax.training.agents.ppo import losses, networks

env = envs.get_environment("inverted_pendulum", backend="spring")
reset, step = jax.jit(env.reset), jax.jit(env.step)
state = reset(jax.random.PRNGKey(0))
for _ in range(5):
    state = step(state, jnp.array([0.5]))
print(state.obs.round(4), state.reward, state.done)

keys = jax.random.split(jax.random.PRNGKey(1), 4)
optimizer = optax.adam(0.05)


def learn(loss, params, steps=3):
    gradients, adam = jax.jit(jax.value_and_grad(loss)), optimizer.init(params)
    for _ in range(steps):
        value, grads = gradients(params)
        updates, adam = optimizer.update(grads, adam)
        params = optax.apply_updates(params, updates)
        print(f"{value:.4f} {optax.global_norm(grads):.4f}")


def cost(w):
    def one(state, _):
        action = jnp.tanh(state.obs @ w["kernel"] + w["bias"])
        state = env.step(state, action)
        return state, state.obs[1] ** 2 + 0.1 * action[0] ** 2

    return jax.vmap(lambda key: jax.lax.scan(one, env.reset(key), length=6)[1])(keys).mean()


learn(cost, {"kernel": jnp.zeros((4, 1)), "bias": jnp.ones(1)})

ppo = networks.make_ppo_networks(
    4, 1, running_statistics.normalize, policy_hidden_layer_sizes=(8,), value_hidden_layer_sizes=(8,)
)
params = losses.PPONetworkParams(ppo.policy_network.init(keys[0]), ppo.value_network.init(keys[1]))
normalizer = running_statistics.init_state(jnp.zeros(4))
policy = networks.make_inference_fn(ppo)((normalizer, params.policy, params.value))
batch = training.wrap(env, episode_length=8)
unroll = functools.partial(acting.generate_unroll, unroll_length=6, extra_fields=("truncation",))
_, data = jax.jit(lambda key: unroll(batch, batch.reset(keys), policy, key))(keys[2])
data = jax.tree.map(lambda x: jnp.swapaxes(x, 0, 1), data)
normalizer = running_statistics.update(normalizer, data.observation)
print(data.reward.mean(), data.action.mean().round(4), normalizer.std.round(3))
learn(lambda params: losses.compute_ppo_loss(params, normalizer, data, keys[3], ppo)[0], params)
