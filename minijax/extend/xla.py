"""jax.extend.xla: callbacks that rewrite programs during XLA's compilation."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    """
minijax.run.watching.hlo_transforms: PipelineStage clear_hlo_module_transformation register_hlo_module_transformation
""",
)
