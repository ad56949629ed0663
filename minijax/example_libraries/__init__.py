"""jax.example_libraries: small libraries that show how to build on JAX."""
