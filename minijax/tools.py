"""jax.tools: a package that is empty in jax, but for scripts."""
