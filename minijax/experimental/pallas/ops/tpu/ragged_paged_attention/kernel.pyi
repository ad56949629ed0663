# The names of this module's table, written by tests/write_stubs.py.

from minijax.kernels.ops.tpu_ragged import dynamic_validate_inputs as dynamic_validate_inputs
from minijax.kernels.ops.tpu_ragged import ref_ragged_paged_attention as ref_ragged_paged_attention
from minijax.kernels.ops.tpu_ragged import static_validate_inputs as static_validate_inputs
from minijax.run.arrays.array import Array

__all__ = [
    "dynamic_validate_inputs", "ragged_paged_attention", "ref_ragged_paged_attention", "static_validate_inputs"
]

def ragged_paged_attention(
    q: Array,
    kv_pages: Array,
    kv_lens: Array,
    page_indices: Array,
    cu_q_lens: Array,
    num_seqs: Array,
    *,
    sm_scale: float = 1.0,
    sliding_window: int | None = None,
    soft_cap: float | None = None,
    mask_value: float | None = -2.381976426469702e+38,
    k_scale: float | None = None,
    v_scale: float | None = None,
    num_kv_pages_per_block: int | None = None,
    num_queries_per_block: int | None = None,
    vmem_limit_bytes: int | None = None,
) -> Array: ...
