"""jax.ad_checkpoint: checkpointing and its policies."""

from minijax.base.faces import Face

_FACE = Face(
    __name__,
    (),
    """
minijax.api.checkpoint: checkpoint checkpoint_policies remat
minijax.api.residuals: print_saved_residuals
minijax.higher.remat: checkpoint_name
minijax.transforms.partial_eval_custom: Offloadable Recompute Saveable
""",
)
__getattr__, __dir__ = _FACE.attribute, _FACE.names
