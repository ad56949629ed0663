"""brax: an inverted pendulum is stepped, rolled out over a batch, and learned by gradients through its physics and by PPO."""

import functools

import jax
import jax.numpy as jnp
import optax
from brax import envs
from brax.training.agents.ppo import networks, train as ppo

env = envs.get_environment("inverted_pendulum", backend="positional")
reset, step = jax.jit(env.reset), jax.jit(env.step)
state = reset(jax.random.PRNGKey(0))
for _ in range(5):
    state = step(state, jnp.array([0.5]))
print(state.obs.round(4), state.reward, state.done)


def policy(w, obs):
    return jnp.tanh(obs @ w["kernel"] + w["bias"])


def rollout(w, key, length=8):
    """The observations, actions and rewards of an episode."""

    def one(state, _):
        action = policy(w, state.obs)
        after = env.step(state, action)
        return after, (state.obs, action, after.reward, after.obs)

    return jax.lax.scan(one, env.reset(key), length=length)[1]


def loss(w, keys):
    obs, action, reward, _ = jax.vmap(functools.partial(rollout, w))(keys)
    return (obs[..., 1] ** 2).mean() + 0.1 * (action**2).mean() - reward.mean()


w = {"kernel": jnp.zeros((4, 1)), "bias": jnp.ones(1)}
keys = jax.random.split(jax.random.PRNGKey(1), 4)
optimizer = optax.adam(0.1)
adam = optimizer.init(w)
for _ in range(4):
    value, grads = jax.jit(jax.value_and_grad(loss))(w, keys)
    updates, adam = optimizer.update(grads, adam)
    w = optax.apply_updates(w, updates)
    print(f"{value:.4f}", f"{optax.global_norm(grads):.4f}")

small = functools.partial(
    networks.make_ppo_networks, policy_hidden_layer_sizes=(8,), value_hidden_layer_sizes=(8,)
)


def progress(steps, metrics):
    print(steps, f"{metrics['eval/episode_reward']:.3f}")


act, params, metrics = ppo.train(
    env, 128, num_envs=4, batch_size=4, num_minibatches=2, unroll_length=4, num_updates_per_batch=2, episode_length=16,
    num_evals=2, num_eval_envs=4, normalize_observations=True, network_factory=small, progress_fn=progress,
)  # fmt: skip
action, _ = act(params)(state.obs, jax.random.PRNGKey(2))
print(action.round(3), f"{metrics['training/total_loss']:.3f}")
