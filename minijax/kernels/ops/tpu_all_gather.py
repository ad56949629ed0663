"""All-gather by a kernel for TPUs: each device passes on what it received, half of it each way around a ring."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from minijax import lax
from minijax.api.jit import jit
from minijax.api.shapes import ShapeDtypeStruct
from minijax.api.shard_map import shard_map
from minijax.kernels.blocks import BlockSpec
from minijax.kernels.call import pallas_call
from minijax.kernels.chips import infer_tiling
from minijax.kernels.memory import SemaphoreType, TpuMemorySpace
from minijax.kernels.operations.base import type_of
from minijax.kernels.operations.copies import async_copy, make_async_remote_copy
from minijax.kernels.operations.semaphores import get_barrier_semaphore, semaphore_signal, semaphore_wait
from minijax.kernels.parameters import TpuParams
from minijax.partition.meshes import Mesh, PartitionSpec
from minijax.primitives.gather_dims import Slice
from minijax.run.arrays.array import Array


def get_neighbor(idx: Any, mesh: Mesh, axis_name: str, *, direction: str) -> tuple[Any, ...]:
    """Returns the coordinates of the next device on an axis of a mesh, around its end.

    Args:
      idx: number of this device on the axis.
      mesh: the mesh.
      axis_name: name of the axis.
      direction: "right" for the next number, "left" for the one before.

    Example:
        >>> from minijax.experimental.pallas.ops.tpu import all_gather
        >>> mesh = jax.sharding.AbstractMesh((4,), ('x',))
        >>> (neighbour,) = all_gather.get_neighbor(3, mesh, 'x', direction='right')
        >>> print(neighbour)
        0
    """
    size = mesh.shape[axis_name]
    step = {"right": 1, "left": size - 1}[direction]
    place = lax.rem(idx + step, size)
    return tuple([place if name == axis_name else lax.axis_index(name) for name in mesh.axis_names])


def ag_kernel(x_ref: Any, o_ref: Any, send_sem: Any, recv_sem: Any, *, axis_name: str, mesh: Mesh) -> None:
    """Gathers the parts of all devices on an axis; a kernel.

    Args:
      x_ref: the part of this device.
      o_ref: reference of the parts of all devices.
      send_sem: semaphores of the copies sent each way, one a step; the last one is for the copy on this device.
      recv_sem: semaphores of what arrives.
      axis_name: name of the axis.
      mesh: the mesh.

    Example:
        >>> from minijax.experimental.pallas.ops.tpu import all_gather
        >>> mesh = jax.make_mesh((1,), ('x',), axis_types=(jax.sharding.AxisType.Auto,))
        >>> f = lambda x: all_gather.all_gather(x, mesh=mesh, axis_name='x')
        >>> 'all_gather' in str(jax.make_jaxpr(f)(jnp.ones((8, 128))))
        True
    """
    size, own = mesh.shape[axis_name], lax.axis_index(axis_name)
    left, right = (get_neighbor(own, mesh, axis_name, direction=d) for d in ("left", "right"))
    async_copy(x_ref, o_ref.at[own], send_sem.at[0, size - 1]).wait()
    # No device may write to a neighbour that has not begun.
    barrier = get_barrier_semaphore()
    for neighbour in (left, right):
        semaphore_signal(barrier, 1, device_id=neighbour)
    semaphore_wait(barrier, 2)
    rows = x_ref.shape[0]
    half = rows // 2 // (tile := infer_tiling(type_of(x_ref))[0]) * tile
    ways = [(right, -1, Slice(half, rows - half)), (left, 1, Slice(0, half))][: 1 + bool(half)]
    for step in range(size - 1):
        copies = []
        for way, (neighbour, sign, part_of_rows) in enumerate(ways):
            part = o_ref.at[lax.rem(own + (size + sign * step), size), part_of_rows]
            ends = send_sem.at[way, step], recv_sem.at[way, step]
            copies.append(make_async_remote_copy(part, part, *ends, device_id=neighbour))
            copies[-1].start()
        for copy in copies:
            copy.wait()


@functools.partial(jit, static_argnames=["mesh", "axis_name", "memory_space"])
def all_gather(
    x: Array, *, mesh: Mesh, axis_name: str | Sequence[str], memory_space: TpuMemorySpace = TpuMemorySpace.VMEM
) -> Array:
    """Gathers an array that is divided along its first axis over an axis of a mesh, by a kernel for TPUs.

    Args:
      x: the array.
      mesh: the mesh.
      axis_name: name of the axis of the mesh.
      memory_space: memory in which the parts are gathered.

    Returns:
      The array, which each device has as a whole.

    Raises:
      NotImplementedError: for several axes.
      KeyError: for an axis that the mesh lacks.

    Example:
        >>> from minijax.experimental.pallas.ops.tpu import all_gather
        >>> mesh = jax.make_mesh((1,), ('x',), axis_types=(jax.sharding.AxisType.Auto,))
        >>> f = lambda x: all_gather.all_gather(x, mesh=mesh, axis_name='x')
        >>> jax.eval_shape(f, jnp.ones((8, 128))).shape
        (8, 128)
    """
    names: tuple[str, ...] = (axis_name,) if isinstance(axis_name, str) else tuple(axis_name)
    if len(names) > 1:
        raise NotImplementedError("Only one axis supported. Gather along one axis of the mesh after the other.")
    name = next(iter(names))
    size = mesh.shape[name]

    def gather(part):
        spec = BlockSpec(memory_space=memory_space)
        call = pallas_call(
            functools.partial(ag_kernel, axis_name=name, mesh=mesh),
            ShapeDtypeStruct((size, *part.shape), part.dtype),
            in_specs=[spec],
            out_specs=spec,
            scratch_shapes=[SemaphoreType.DMA((2, size)), SemaphoreType.DMA((2, size))],
            compiler_params=TpuParams(collective_id=0),
            name="all_gather",
        )
        return call(part).reshape(size * part.shape[0], *part.shape[1:])

    specs = PartitionSpec(name), PartitionSpec(None)
    return shard_map(gather, mesh=mesh, in_specs=specs[0], out_specs=specs[1], check_vma=False)(x)
