"""qwix: a flax model, trained with quantized products and quantized after it was trained."""

import jax
import jax.numpy as jnp
import qwix
from flax import linen as nn


class MLP(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(4)(nn.relu(nn.Dense(8)(x)))


x = jax.random.normal(jax.random.key(0), (5, 6))
model = MLP()
params = model.init(jax.random.key(1), x)["params"]
print(model.apply({"params": params}, x).sum().round(4))

rules = [qwix.QuantizationRule(module_path=".*", weight_qtype=jnp.int8, act_qtype=jnp.int8)]
trained = qwix.quantize_model(model, qwix.QtProvider(rules))


def loss(params):
    return (trained.apply({"params": params}, x) ** 2).mean()


value, grads = jax.jit(jax.value_and_grad(loss))(params)
print(value.round(4), jax.tree.map(lambda g: jnp.abs(g).sum().round(4), grads))

after = qwix.quantize_model(model, qwix.PtqProvider(rules))
shapes = jax.eval_shape(after.init, jax.random.key(1), x)["params"]
quantized = qwix.quantize_params(params, shapes)
print(jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), quantized["Dense_0"]))
print(after.apply({"params": quantized}, x).sum().round(4))
