# The names of this module's table, written by tests/write_stubs.py.

from typing import Any

__all__ = [
    "BlockIndexTransform", "Fusion", "custom_fusion", "evaluate", "fuse", "fusible", "get_fusion_values",
    "get_stateful_input_fusion_values", "get_stateful_output_fusion_values", "make_scalar_prefetch_handler",
    "pull_block_spec", "push_block_spec"
]

BlockIndexTransform: Any
Fusion: Any
custom_fusion: Any
evaluate: Any
fuse: Any
fusible: Any
get_fusion_values: Any
get_stateful_input_fusion_values: Any
get_stateful_output_fusion_values: Any
make_scalar_prefetch_handler: Any
pull_block_spec: Any
push_block_spec: Any
