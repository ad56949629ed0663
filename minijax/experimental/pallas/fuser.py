"""jax.experimental.pallas.fuser: fusion of functions with kernels, which is not there."""

from minijax.base.faces import Face

_FACE = Face(
    __name__,
    (),
    {},
    missing={
        "jax.experimental.pallas.fuser.{0} is not there yet: pass the functions to the kernel.": """
        BlockIndexTransform Fusion custom_fusion evaluate fuse fusible get_fusion_values
        get_stateful_input_fusion_values get_stateful_output_fusion_values make_scalar_prefetch_handler
        pull_block_spec push_block_spec
    """
    },
)
__getattr__, __dir__ = _FACE.attribute, _FACE.names
