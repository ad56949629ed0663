"""jax.experimental.key_reuse: the option `jax_debug_key_reuse` refuses keys that are used twice; no names are here."""
