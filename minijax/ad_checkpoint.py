"""jax.ad_checkpoint: checkpointing and its policies."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    """
minijax.api.checkpoint: checkpoint_policies print_saved_residuals
minijax.calls.remat: checkpoint_name
minijax.transforms.partial_eval_custom: Offloadable Recompute Saveable
""",
    removed={
        "jax.ad_checkpoint.{0} was deprecated in JAX v0.8.2 and removed in JAX v0.10.0; use "
        "jax.{0} instead.": "checkpoint remat"
    },
)
