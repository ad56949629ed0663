"""jax.extend: what libraries that extend JAX use."""

from minijax.extend import core as core
