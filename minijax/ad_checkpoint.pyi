# The names of this module's table, written by tests/write_stubs.py.

from minijax.api.checkpoint import print_saved_residuals as print_saved_residuals
from minijax.calls.remat import checkpoint_name as checkpoint_name
from minijax.transforms.partial_eval_custom import Offloadable as Offloadable
from minijax.transforms.partial_eval_custom import RecomputeType
from minijax.transforms.partial_eval_custom import SaveableType
from types import SimpleNamespace

__all__ = [
    "Offloadable", "Recompute", "Saveable", "checkpoint_name", "checkpoint_policies", "print_saved_residuals"
]

checkpoint_policies: SimpleNamespace
Recompute: RecomputeType
Saveable: SaveableType
