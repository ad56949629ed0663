"""jax.experimental.xla_metadata: attributes of operations that XLA passes on."""

from minijax.api.metadata import set_xla_metadata as set_xla_metadata
