"""Meshes of the cores of a device, and what their cores do together."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.ir.context import extended_name_stack
from minijax.kernels.chips import get_tpu_info, is_tpu_device, kind_info
from minijax.kernels.memory import MemorySpace, TpuMemorySpace
from minijax.kernels.operations.helpers import when
from minijax.kernels.operations.semaphores import semaphore_signal, semaphore_wait
from minijax.kernels.parameters import PARALLEL, CoreType, GridDimensionSemantics
from minijax.primitives.collective import axis_index, axis_size
from minijax.primitives.elementwise import eq, ne


@dataclasses.dataclass(frozen=True)
class TensorCore:
    """Is a TensorCore of a device."""

    id: int


@dataclasses.dataclass(frozen=True)
class TensorCoreMesh:
    """Is a mesh of the TensorCores of a device, over which `pl.kernel` and `pl.core_map` run a function.

    Args:
      devices: array of `TensorCore`s.
      axis_names: names of the axes of the array.
    """

    devices: np.ndarray
    axis_names: Sequence[str]

    def __hash__(self):
        return hash((self.devices.shape, tuple(self.devices.flat), tuple(self.axis_names)))

    def __eq__(self, other: object):
        return (
            isinstance(other, TensorCoreMesh)
            and np.array_equal(self.devices, other.devices)
            and tuple(self.axis_names) == tuple(other.axis_names)
        )

    @property
    def shape(self) -> collections.OrderedDict[str, int]:
        """The sizes of the axes by name."""
        return collections.OrderedDict(zip(self.axis_names, self.devices.shape, strict=True))

    @property
    def core_type(self) -> CoreType:
        """The kind of the cores."""
        return CoreType.TC

    @property
    def default_memory_space(self) -> MemorySpace:
        """The memory space of operands and results that name none."""
        return MemorySpace.ANY

    @property
    def supported_memory_spaces(self) -> list[TpuMemorySpace]:
        """The memory spaces of a core."""
        return [TpuMemorySpace.VMEM, TpuMemorySpace.SMEM, TpuMemorySpace.CMEM, TpuMemorySpace.SEMAPHORE]

    @property
    def dimension_semantics(self) -> list[GridDimensionSemantics]:
        """How the steps on each axis may run."""
        return [PARALLEL] * self.devices.ndim

    def check_is_compatible_with(self, other_mesh: Any) -> None:
        """Raises ValueError for a mesh that one kernel cannot run over together with this one."""
        if isinstance(other_mesh, TensorCoreMesh) and self != other_mesh:
            raise ValueError("You can't use two different TensorCoreMeshes.")
        raise ValueError(f"Mesh {self=} is not compatible with {other_mesh=}.")


def create_tensorcore_mesh(
    axis_name: str, devices: Sequence[Any] | None = None, num_cores: int | None = None
) -> TensorCoreMesh:
    """Creates a mesh of the TensorCores of a device.

    Args:
      axis_name: name of its axis, for `jax.lax.axis_index`.
      devices: devices; the first one says how many cores there are.
      num_cores: number of cores. By default, that of the device; 1 without a TPU.

    Returns:
      The mesh.

    Raises ValueError for `devices` and `num_cores` together.

    See also: `pl.kernel`, `pl.core_map`.

    Example:
        >>> dict(pltpu.create_tensorcore_mesh("core", num_cores=2).shape)
        {'core': 2}
    """
    if devices is not None and num_cores is not None:
        raise ValueError("create_tensorcore_mesh: cannot specify both devices and num_cores; leave out one of them")
    if devices is not None:
        num_cores = kind_info(devices[0]).num_cores
    elif num_cores is None:
        num_cores = get_tpu_info().num_cores if is_tpu_device() else 1
    return TensorCoreMesh(np.array([TensorCore(i) for i in range(num_cores)]), (axis_name,))


def run_on_first_core(core_axis_name: str) -> Callable[[Callable[[], None]], None]:
    """Runs the decorated function at once, on the first core of a mesh.

    Args:
      core_axis_name: name of the axis of the cores.

    Raises NameError for a name that no axis has.

    See also: `pl.when`.

    Example:
        >>> mesh = pltpu.create_tensorcore_mesh('core', num_cores=2)
        >>> def kernel(x, o):
        ...     pltpu.run_on_first_core('core')(lambda: pltpu.sync_copy(x, o))
        >>> f = pl.kernel(kernel, jax.ShapeDtypeStruct((2,), jnp.int32), mesh=mesh, interpret=True)
        >>> print(f(jnp.array([1, 2])))
        [1 2]
    """
    if axis_size(core_axis_name) == 1:
        return lambda f: f()
    return when(eq(axis_index(core_axis_name), np.int32(0)))


def core_barrier(sem: Any, *, core_axis_name: str) -> None:
    """Waits until all cores of a mesh are here.

    Args:
      sem: reference to a regular semaphore, which every core has.
      core_axis_name: name of the axis of the cores.

    Raises NameError for a name that no axis has.

    See also: `pl.semaphore_signal`.

    Example:
        >>> mesh = pltpu.create_tensorcore_mesh('core', num_cores=2)
        >>> def kernel(x, o, done):
        ...     pltpu.core_barrier(done, core_axis_name='core')
        ...     i = jax.lax.axis_index('core')
        ...     pltpu.sync_copy(x.at[pl.ds(i, 1)], o.at[pl.ds(1 - i, 1)])
        >>> f = pl.kernel(kernel, jax.ShapeDtypeStruct((2,), jnp.int32), mesh=mesh, interpret=pltpu.InterpretParams(),
        ...               scratch_types=[pltpu.SemaphoreType.REGULAR])
        >>> print(f(jnp.array([1, 2])))
        [2 1]
    """
    count = axis_size(core_axis_name)
    own = axis_index(core_axis_name)
    if count == 1:
        return
    with extended_name_stack("sync_cores"):
        for core in range(count):

            @when(ne(own, np.int32(core)))
            def _(core=core):
                semaphore_signal(sem, core_index=core)

        semaphore_wait(sem, count - 1)
