"""jax.custom_batching: functions with batching rules of their own."""

from minijax.api.custom_batching import custom_vmap as custom_vmap, sequential_vmap as sequential_vmap
