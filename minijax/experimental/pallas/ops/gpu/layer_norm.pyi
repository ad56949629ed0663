# The names of this module's table, written by tests/write_stubs.py.

from minijax.kernels.ops.gpu_rows import layer_norm_backward_kernel_dw_db as layer_norm_backward_kernel_dw_db
from minijax.kernels.ops.gpu_rows import layer_norm_backward_kernel_dx as layer_norm_backward_kernel_dx
from minijax.kernels.ops.gpu_rows import layer_norm_forward_kernel as layer_norm_forward_kernel
from minijax.run.arrays.array import Array
from typing import Any

__all__ = [
    "layer_norm", "layer_norm_backward", "layer_norm_backward_kernel_dw_db", "layer_norm_backward_kernel_dx",
    "layer_norm_forward", "layer_norm_forward_kernel", "layer_norm_reference"
]

def layer_norm(
    x: Array,
    weight: Array,
    bias: Array,
    num_warps: int | None = None,
    num_stages: int | None = 3,
    eps: float = 1e-05,
    backward_pass_impl: str = 'triton',
    interpret: bool = False,
) -> Array: ...
def layer_norm_backward(
    num_warps: int | None,
    num_stages: int | None,
    eps: float,
    backward_pass_impl: str,
    interpret: bool,
    res: Any,
    do: Array,
) -> tuple[Array, Array, Array]: ...
def layer_norm_forward(
    x: Array,
    weight: Array,
    bias: Array,
    num_warps: int | None = None,
    num_stages: int | None = 3,
    eps: float = 1e-05,
    backward_pass_impl: str = 'triton',
    interpret: bool = False,
) -> tuple[Array, Any]: ...
def layer_norm_reference(x: Array, weight: Array, bias: Array, *, eps: float = 1e-05) -> Array: ...
