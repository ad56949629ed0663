"""jax.flatten_util: flattens pytrees of arrays to vectors."""

from minijax.numpy.raveling import ravel_pytree as ravel_pytree
