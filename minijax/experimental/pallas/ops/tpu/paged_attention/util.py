"""Paged attention by operations of XLA."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(__name__, "minijax.kernels.ops.tpu_paged: grouped_query_attention_reference")
