"""jax.cloud_tpu_init: formerly set up TPUs; does nothing."""

import warnings as _warnings

_warnings.warn(
    "jax.cloud_tpu_init was deprecated in JAX v0.8.1. You should remove imports of this module.",
    DeprecationWarning,
    stacklevel=2,
)
