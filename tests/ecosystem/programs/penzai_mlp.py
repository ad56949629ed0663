"""A network of penzai on arrays with named axes."""

import jax
import jax.numpy as jnp
from penzai import pz
from penzai.models import simple_mlp

model = simple_mlp.MLP.from_config(name="mlp", init_base_rng=jax.random.key(0), feature_sizes=[4, 8, 2])
x = pz.nx.wrap(jnp.ones((3, 4)), "batch", "features")
print(model(x).unwrap("batch", "features").round(4))
