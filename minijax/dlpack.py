"""jax.dlpack: arrays shared with other libraries."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(__name__, "minijax.api.transfer: from_dlpack is_supported_dtype")
