"""jax.extend.xla: functions that rewrite programs while XLA compiles them."""

from minijax.base.faces import Face

_FACE = Face(
    __name__,
    (),
    """
minijax.run.hlo_transforms: PipelineStage clear_hlo_module_transformation register_hlo_module_transformation
""",
)
__getattr__, __dir__ = _FACE.attribute, _FACE.names
