"""jax.flatten_util: trees of arrays as vectors."""

from minijax.numpy.raveling import ravel_pytree as ravel_pytree
