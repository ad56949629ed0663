# The names of this module's table, written by tests/write_stubs.py.

from minijax.kernels.ops.gpu_rows import rms_norm_backward_kernel_dw_db as rms_norm_backward_kernel_dw_db
from minijax.kernels.ops.gpu_rows import rms_norm_backward_kernel_dx as rms_norm_backward_kernel_dx
from minijax.kernels.ops.gpu_rows import rms_norm_forward_kernel as rms_norm_forward_kernel
from minijax.run.arrays.array import Array
from typing import Any

__all__ = [
    "rms_norm", "rms_norm_backward", "rms_norm_backward_kernel_dw_db", "rms_norm_backward_kernel_dx",
    "rms_norm_forward", "rms_norm_forward_kernel", "rms_norm_reference"
]

def rms_norm(
    x: Array,
    weight: Array,
    bias: Array,
    num_warps: int | None = None,
    num_stages: int | None = 3,
    eps: float = 1e-05,
    backward_pass_impl: str = 'triton',
    interpret: bool = False,
) -> Array: ...
def rms_norm_backward(
    num_warps: int | None,
    num_stages: int | None,
    eps: float,
    backward_pass_impl: str,
    interpret: bool,
    res: Any,
    do: Array,
) -> tuple[Array, Array, Array]: ...
def rms_norm_forward(
    x: Array,
    weight: Array,
    bias: Array,
    num_warps: int | None = None,
    num_stages: int | None = 3,
    eps: float = 1e-05,
    backward_pass_impl: str = 'triton',
    interpret: bool = False,
) -> tuple[Array, Any]: ...
def rms_norm_reference(x: Array, weight: Array, bias: Array, *, eps: float = 1e-05) -> Array: ...
