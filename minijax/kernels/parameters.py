"""Options of the compilers of kernels."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, ClassVar, Protocol, runtime_checkable


@runtime_checkable
class CompilerParams(Protocol):
    """Is the type of a compiler's options, a dataclass: `pl.triton.CompilerParams`, `pl.tpu.CompilerParams`.

    Example:
        >>> isinstance(pl.tpu.CompilerParams(), pl.CompilerParams), isinstance(3, pl.CompilerParams)
        (True, False)
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]


@dataclasses.dataclass(frozen=True)
class TritonParams:
    """Sets options of the compiler of kernels for GPUs.

    Args:
      num_warps: number of warps that run a step of the grid; 4 by default.
      num_stages: number of stages into which loops are pipelined; 3 by default.

    Example:
        >>> options = pl.triton.CompilerParams(num_warps=8, num_stages=2)
        >>> how, out = dict(compiler_params=options, interpret=True), jax.ShapeDtypeStruct((4,), jnp.float32)
        >>> f = pl.pallas_call(lambda o: o.set(jnp.ones(4)), out, **how)
        >>> print(f())
        [1. 1. 1. 1.]
    """

    BACKEND: ClassVar[str] = "triton"
    num_warps: int | None = None
    num_stages: int | None = None


class GridDimensionSemantics(enum.Enum):
    """Says how the steps of an axis of the grid may run.

    Members:
      PARALLEL: in any order.
      CORE_PARALLEL: divided among the cores.
      SUBCORE_PARALLEL: divided among the subcores of a SparseCore.
      ARBITRARY: one after the other.

    Example:
        >>> pltpu.CompilerParams(dimension_semantics=(pltpu.GridDimensionSemantics.PARALLEL,)).dimension_semantics
        (<GridDimensionSemantics.PARALLEL: 'parallel'>,)
    """

    PARALLEL = "parallel"
    CORE_PARALLEL = "core_parallel"
    SUBCORE_PARALLEL = "subcore_parallel"
    ARBITRARY = "arbitrary"


PARALLEL, CORE_PARALLEL, SUBCORE_PARALLEL, ARBITRARY = GridDimensionSemantics


class SideEffectType(enum.Enum):
    """Says whether a kernel does more than its results tell, so that it must not be left out, or moved.

    Example:
        >>> pltpu.CompilerParams(has_side_effects=pltpu.SideEffectType.SIDE_EFFECTING).has_side_effects
        <SideEffectType.SIDE_EFFECTING: 'side_effecting'>
    """

    PURE = "pure"
    DATAFLOW_SIDE_EFFECTING = "dataflow_side_effecting"
    SIDE_EFFECTING = "side_effecting"


class Tiling(enum.Enum):
    """Names the tilings of arrays in a TPU's memory.

    Example:
        >>> pltpu.Tiling.COMPACT.shape, pltpu.Tiling.SPARSE_CORE.shape
        ((8, 128), (8,))
    """

    COMPACT = 1
    SPARSE_CORE = 2

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a tile of 32-bit elements."""
        return (8, 128) if self is Tiling.COMPACT else (8,)


class CoreType(enum.Enum):
    """Names the kinds of cores of a TPU.

    Example:
        >>> pltpu.create_tensorcore_mesh('core', num_cores=1).core_type
        TC
    """

    TC = "tc"
    SC_SCALAR_SUBCORE = "sc_scalar_subcore"
    SC_VECTOR_SUBCORE = "sc_vector_subcore"

    def __repr__(self):
        return self.name

    def __str__(self):
        return self.value


@dataclasses.dataclass(frozen=True)
class TpuParams:
    """Sets options of the compiler of kernels for TPUs.

    Args:
      dimension_semantics: for each axis of the grid "parallel", "arbitrary" or "core_parallel".
      allow_input_fusion: for each operand, whether XLA may compute it within the kernel.
      vmem_limit_bytes: how much vector memory the kernel may use.
      collective_id: number of the barrier that all devices share, for kernels that copy between devices.
      has_side_effects: whether the kernel must run even if its results are not used.
      flags: flags of the compiler.
      internal_scratch_in_bytes: how much memory the compiler may use itself.
      serialization_format: version of the format of the module.
      disable_bounds_checks: whether indices are not checked.
      disable_semaphore_checks: whether semaphores are not checked.
      skip_device_barrier: whether the devices need not wait for each other.
      allow_collective_id_without_custom_barrier: whether a `collective_id` is allowed without a use of the barrier.
      shape_invariant_numerics: whether results must not depend on the shapes of blocks.
      use_tc_tiling_on_sc: whether SparseCores use the tiling of TensorCores.
      needs_layout_passes: whether the compiler chooses layouts.
      fuse_transposed_lhs_in_matmul: whether a transposed left side is fused with a product.

    Example:
        >>> out = jax.ShapeDtypeStruct((8, 128), jnp.float32)
        >>> options = pltpu.CompilerParams(dimension_semantics=['parallel'], vmem_limit_bytes=2**20)
        >>> how = dict(grid=(1,), compiler_params=options, interpret=True)
        >>> f = pl.pallas_call(lambda o: o.set(jnp.ones((8, 128))), out, **how)
        >>> f().sum()
        Array(1024., dtype=float32)
    """

    BACKEND: ClassVar[str] = "mosaic_tpu"
    dimension_semantics: Sequence[Any] | None = None
    allow_input_fusion: Sequence[bool] | None = None
    vmem_limit_bytes: int | None = None
    collective_id: int | None = None
    has_side_effects: bool | SideEffectType = False
    flags: Mapping[str, Any] | None = None
    internal_scratch_in_bytes: int | None = None
    serialization_format: int = 1
    disable_bounds_checks: bool = False
    disable_semaphore_checks: bool = False
    skip_device_barrier: bool = False
    allow_collective_id_without_custom_barrier: bool = False
    shape_invariant_numerics: bool = True
    use_tc_tiling_on_sc: bool | None = None
    needs_layout_passes: bool = True
    fuse_transposed_lhs_in_matmul: bool = False

    def __post_init__(self):
        for name in ("dimension_semantics", "allow_input_fusion"):
            value = getattr(self, name)
            object.__setattr__(self, name, None if value is None else tuple(value))

    def replace(self, **changes: Any) -> TpuParams:
        """The options with some changed."""
        return dataclasses.replace(self, **changes)


shared_memory_limit: ContextVar[int | None] = ContextVar("shared_memory_limit", default=None)


@contextmanager
def artificial_shared_memory_limit(limit: int) -> Iterator[None]:
    """Context manager: sets how many bytes of shared memory kernels of Mosaic for GPUs may use.

    Nothing reads the limit, since Mosaic does not lower kernels for GPUs here.
    """
    token = shared_memory_limit.set(limit)
    try:
        yield
    finally:
        shared_memory_limit.reset(token)


TritonParams.__name__ = TritonParams.__qualname__ = TpuParams.__name__ = TpuParams.__qualname__ = "CompilerParams"
