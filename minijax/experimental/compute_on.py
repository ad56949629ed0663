"""jax.experimental.compute_on: where operations are computed."""

from minijax.api.metadata import compute_on as compute_on, compute_on2 as compute_on2
