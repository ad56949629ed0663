"""Which blocks of its mask splash attention computes."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    """
minijax.kernels.ops.splash_mask_info: MaskInfo _check_mask=check_mask process_dynamic_mask process_dynamic_mask_dkv
    process_mask process_mask_dkv
""",
)
