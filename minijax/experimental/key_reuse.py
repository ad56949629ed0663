"""jax.experimental.key_reuse: no names. The option `jax_debug_key_reuse` raises an error for keys used twice."""
