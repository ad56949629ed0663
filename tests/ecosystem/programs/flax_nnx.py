"""A network of flax.nnx with state, trained by optax, saved and restored by orbax."""

import os
import tempfile

import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp
from flax import nnx


class MLP(nnx.Module):
    def __init__(self, rngs):
        self.first = nnx.Linear(4, 16, rngs=rngs)
        self.norm = nnx.BatchNorm(16, rngs=rngs)
        self.dropout = nnx.Dropout(0.1, rngs=rngs)
        self.last = nnx.Linear(16, 1, rngs=rngs)

    def __call__(self, x):
        return self.last(self.dropout(nnx.relu(self.norm(self.first(x)))))


model = MLP(nnx.Rngs(0))
optimizer = nnx.Optimizer(model, optax.adam(1e-2), wrt=nnx.Param)
x = np.random.RandomState(0).randn(32, 4).astype(np.float32)
y = x.sum(1, keepdims=True)


@nnx.jit
def step(model, optimizer):
    value, grads = nnx.value_and_grad(lambda model: ((model(x) - y) ** 2).mean())(model)
    optimizer.update(model, grads)
    return value


for _ in range(5):
    print(f"{float(step(model, optimizer)):.4f}")

_, state = nnx.split(model)
with tempfile.TemporaryDirectory() as folder, ocp.StandardCheckpointer() as checkpointer:
    path = os.path.join(folder, "state")
    checkpointer.save(path, state)
    checkpointer.wait_until_finished()
    restored = checkpointer.restore(path, jax.tree.map(jnp.zeros_like, state))
    for (name, a), b in zip(jax.tree.leaves_with_path(state), jax.tree.leaves(restored), strict=True):
        print(
            jax.tree_util.keystr(name), a.shape, a.dtype, jnp.issubdtype(a.dtype, jnp.number) and bool((a == b).all())
        )
