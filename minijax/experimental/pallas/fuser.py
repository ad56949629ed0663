"""jax.experimental.pallas.fuser: functions around a kernel become part of it."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    """
minijax.kernels.fuser.rules: BlockIndexTransform
minijax.kernels.fuser.custom: custom_fusion
minijax.kernels.fuser.evaluate: evaluate
minijax.kernels.fuser.fuse: fuse
minijax.kernels.fuser.fusion: Fusion fusible
minijax.kernels.fuser.specs: make_scalar_prefetch_handler pull_block_spec push_block_spec
minijax.kernels.fuser.values: get_fusion_values get_stateful_input_fusion_values get_stateful_output_fusion_values
""",
)
