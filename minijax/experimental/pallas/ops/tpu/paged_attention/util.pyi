# The names of this module's table, written by tests/write_stubs.py.

from minijax.kernels.ops.tpu_paged import grouped_query_attention_reference as grouped_query_attention_reference

__all__ = [
    "grouped_query_attention_reference"
]
