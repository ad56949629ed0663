# The names of this module's table, written by tests/write_stubs.py.

from minijax.kernels.ops.splash_mask_info import MaskInfo as MaskInfo
from minijax.kernels.ops.splash_mask_info import check_mask as _check_mask
from minijax.kernels.ops.splash_mask_info import process_dynamic_mask as process_dynamic_mask
from minijax.kernels.ops.splash_mask_info import process_mask as process_mask
from typing import Any

__all__ = [
    "MaskInfo", "process_dynamic_mask", "process_dynamic_mask_dkv", "process_mask", "process_mask_dkv"
]

def process_dynamic_mask_dkv(
    mask: Any,
    block_shape: tuple[int, int],
    *,
    is_dkv: bool = True,
    downcast_smem_data: bool = True,
    head_shards: int = 1,
    q_seq_shards: int = 1,
    shrink_grid: bool = True,
) -> Any: ...
def process_mask_dkv(
    mask: Any,
    block_shape: tuple[int, int],
    *,
    is_dkv: bool = True,
    downcast_smem_data: bool = True,
    head_shards: int = 1,
    q_seq_shards: int = 1,
    shrink_grid: bool = True,
) -> Any: ...
