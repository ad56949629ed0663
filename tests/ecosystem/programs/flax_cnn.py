"""A convolutional network of flax.linen, with batch normalization and dropout, trained by optax."""

import jax
import numpy as np
import optax
from flax import linen as nn
from flax.training import train_state


class CNN(nn.Module):
    @nn.compact
    def __call__(self, x, train=True):
        x = nn.relu(nn.Conv(8, (3, 3))(x))
        x = nn.BatchNorm(use_running_average=not train)(x)
        x = nn.avg_pool(x, (2, 2), (2, 2))
        x = x.reshape((x.shape[0], -1))
        x = nn.Dropout(0.1, deterministic=not train)(x)
        return nn.Dense(10)(x)


class State(train_state.TrainState):
    batch_stats: dict


random = np.random.RandomState(0)
images, labels = random.randn(64, 8, 8, 1).astype(np.float32), random.randint(0, 10, 64)
model = CNN()
variables = model.init({"params": jax.random.key(0), "dropout": jax.random.key(1)}, images)
state = State.create(
    apply_fn=model.apply, params=variables["params"], tx=optax.adam(1e-2), batch_stats=variables["batch_stats"]
)


@jax.jit
def step(state, key):
    def loss(params):
        logits, updates = state.apply_fn(
            {"params": params, "batch_stats": state.batch_stats}, images, rngs={"dropout": key}, mutable=["batch_stats"]
        )
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean(), updates

    (value, updates), grads = jax.value_and_grad(loss, has_aux=True)(state.params)
    return state.apply_gradients(grads=grads).replace(batch_stats=updates["batch_stats"]), value


for i in range(5):
    state, value = step(state, jax.random.key(i))
    print(f"{float(value):.4f}")
