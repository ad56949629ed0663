"""Meshes of the subcores of a device's SparseCores."""

from __future__ import annotations

import collections
import dataclasses
from typing import Any

from minijax.kernels.chips import SparseCoreInfo, get_tpu_info, is_tpu_device
from minijax.kernels.cores import TensorCoreMesh
from minijax.kernels.memory import TpuMemorySpace
from minijax.kernels.parameters import CORE_PARALLEL, SUBCORE_PARALLEL, CoreType, GridDimensionSemantics

_CORES, _SUBCORES = 2, 16  # of a device that is not known


def get_sparse_core_info() -> SparseCoreInfo:
    """Returns what the SparseCores of the device are made of: that of the context's abstract mesh if it has one.

    Raises ValueError for a device without SparseCores.
    """
    info = get_tpu_info()
    if info.sparse_core is None:
        raise ValueError(f"get_sparse_core_info: no SparseCore info for TPU {info.chip_version}")
    return info.sparse_core


def _limits() -> tuple[int, int]:
    """The numbers of SparseCores and of vector subcores of each."""
    if not is_tpu_device():
        return _CORES, _SUBCORES
    info = get_sparse_core_info()
    return info.num_cores, info.num_subcores


class _SubcoreMesh:
    """The base class of meshes of both kinds of subcores."""

    shape: Any
    _kinds_of_axes: tuple[str, ...]
    axis_names = property(lambda self: tuple(self.shape))
    default_memory_space = property(lambda self: TpuMemorySpace.HBM)

    @property
    def size(self) -> int:
        """The number of subcores."""
        count = 1
        for n in self.shape.values():
            count *= n
        return count

    def check_is_compatible_with(self, other_mesh: Any) -> bool:
        """Returns True. Raises ValueError for a mesh that one kernel cannot run over together with this one."""
        if type(other_mesh) is type(self):
            raise ValueError(f"You can't use two different {type(self).__name__}es.")
        if isinstance(other_mesh, _SubcoreMesh):
            (name, count), (other, number) = (next(iter(mesh.shape.items())) for mesh in (self, other_mesh))
            if (name, count) != (other, number):
                raise ValueError(
                    f"{self} should have the same core axis name and number of cores as the "
                    f"{type(other_mesh).__name__} {other_mesh}."
                )
            return True
        if not isinstance(other_mesh, TensorCoreMesh):
            raise ValueError(f"Mesh {self=} is not compatible with {other_mesh=}.")
        for name, kind in zip(self.axis_names, self._kinds_of_axes, strict=True):
            if name in other_mesh.axis_names:
                raise ValueError(
                    f"{self} should have a different {kind}axis name from the TensorCoreMesh {other_mesh}."
                )
        return True

    def _check_cores(self, count: int) -> None:
        most = _limits()[0]
        if count > most:
            raise ValueError(f"Mesh has {count} cores, but the current TPU chip has only {most} SparseCores")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ScalarSubcoreMesh(_SubcoreMesh):
    """Is a mesh of the scalar subcores of a device, over which `pl.kernel` runs a function.

    Args:
      axis_name: name of its axis.
      num_cores: number of SparseCores. By default, all of the device.

    Raises ValueError for more cores than there are.
    """

    axis_name: str
    num_cores: int = dataclasses.field(default_factory=lambda: _limits()[0])

    def __post_init__(self):
        self._check_cores(self.num_cores)

    core_type = property(lambda self: CoreType.SC_SCALAR_SUBCORE)
    _kinds_of_axes = ("",)

    @property
    def shape(self) -> collections.OrderedDict[str, int]:
        """The sizes of the axes by name."""
        return collections.OrderedDict({self.axis_name: self.num_cores})

    @property
    def supported_memory_spaces(self) -> list[TpuMemorySpace]:
        """The memory spaces of a core."""
        return [TpuMemorySpace.VMEM_SHARED, TpuMemorySpace.SMEM, TpuMemorySpace.SEMAPHORE]

    @property
    def dimension_semantics(self) -> list[GridDimensionSemantics]:
        """How the steps on each axis may run."""
        return [CORE_PARALLEL]


@dataclasses.dataclass(frozen=True, kw_only=True)
class VectorSubcoreMesh(_SubcoreMesh):
    """Is a mesh of the vector subcores of a device, over which `pl.kernel` runs a function.

    Args:
      core_axis_name: name of the axis of the SparseCores.
      subcore_axis_name: name of the axis of the subcores of each.
      num_cores: number of SparseCores. By default, all of the device.
      num_subcores: number of subcores of each. By default, all.

    Raises ValueError for more cores or subcores than there are.
    """

    core_axis_name: str
    subcore_axis_name: str
    num_cores: int = dataclasses.field(default_factory=lambda: _limits()[0])
    num_subcores: int = dataclasses.field(default_factory=lambda: _limits()[1])

    def __post_init__(self):
        self._check_cores(self.num_cores)
        most = _limits()[1]
        if self.num_subcores > most:
            raise ValueError(
                f"Mesh has {self.num_subcores} subcores, but the current TPU chip has only {most} subcores"
            )

    core_type = property(lambda self: CoreType.SC_VECTOR_SUBCORE)
    _kinds_of_axes = "core ", "subcore "

    @property
    def shape(self) -> collections.OrderedDict[str, int]:
        """The sizes of the axes by name."""
        return collections.OrderedDict({self.core_axis_name: self.num_cores, self.subcore_axis_name: self.num_subcores})

    @property
    def supported_memory_spaces(self) -> list[TpuMemorySpace]:
        """The memory spaces of a core."""
        spaces = TpuMemorySpace
        return [spaces.VMEM, spaces.VMEM_SHARED, spaces.SMEM, spaces.SEMAPHORE]

    @property
    def dimension_semantics(self) -> list[GridDimensionSemantics]:
        """How the steps on each axis may run."""
        return [CORE_PARALLEL, SUBCORE_PARALLEL]
