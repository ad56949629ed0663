"""jax.ad_checkpoint: checkpointing and its policies."""

from minijax.api.checkpoint import checkpoint as checkpoint, checkpoint_policies as checkpoint_policies, remat as remat
from minijax.api.residuals import print_saved_residuals as print_saved_residuals
from minijax.higher.remat import checkpoint_name as checkpoint_name
from minijax.transforms.partial_eval_custom import (
    Offloadable as Offloadable,
    Recompute as Recompute,
    Saveable as Saveable,
)
