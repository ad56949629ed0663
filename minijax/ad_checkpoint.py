"""jax.ad_checkpoint: checkpointing and its policies."""

from minijax.api.checkpoint import (
    checkpoint as checkpoint,
    checkpoint_policies as checkpoint_policies,
    remat as remat,
)
from minijax.control.checkpoint import checkpoint_name as checkpoint_name
