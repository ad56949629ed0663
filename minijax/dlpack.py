"""jax.dlpack: arrays shared with other libraries."""

from minijax.api.transfer import from_dlpack as from_dlpack, is_supported_dtype as is_supported_dtype
