# The names of this module's table, written by tests/write_stubs.py.

from minijax.kernels.fuser.custom import custom_fusion as custom_fusion
from minijax.kernels.fuser.evaluate import evaluate as evaluate
from minijax.kernels.fuser.fuse import fuse as fuse
from minijax.kernels.fuser.fusion import Fusion as Fusion
from minijax.kernels.fuser.fusion import fusible as fusible
from minijax.kernels.fuser.rules import BlockIndexTransform as BlockIndexTransform
from minijax.kernels.fuser.specs import make_scalar_prefetch_handler as make_scalar_prefetch_handler
from minijax.kernels.fuser.specs import pull_block_spec as pull_block_spec
from minijax.kernels.fuser.specs import push_block_spec as push_block_spec
from minijax.kernels.fuser.values import get_fusion_values as get_fusion_values
from minijax.kernels.fuser.values import get_stateful_input_fusion_values as get_stateful_input_fusion_values
from minijax.kernels.fuser.values import get_stateful_output_fusion_values as get_stateful_output_fusion_values

__all__ = [
    "BlockIndexTransform", "Fusion", "custom_fusion", "evaluate", "fuse", "fusible", "get_fusion_values",
    "get_stateful_input_fusion_values", "get_stateful_output_fusion_values", "make_scalar_prefetch_handler",
    "pull_block_spec", "push_block_spec"
]
