"""Conversion between each process's own array and a global array that spans the processes."""

from typing import Any

from minijax.ir.primitive import Linear1
from minijax.ir.types import ShapedArray
from minijax.partition.meshes import P
from minijax.partition.shardings import NamedSharding
from minijax.run.arrays import transfer
from minijax.run.arrays.array import ArrayImpl, joined


class _BetweenProcesses(Linear1):
    """Converts between host-local and global arrays; inside a jitted program it is the identity."""

    same_memory_space = False

    def lower(self, e, ins, outs, x, *, global_mesh, pspec):
        if ins[0].shape != outs[0].shape:
            raise ValueError(f"{self.name}: inside jit all arrays are global; convert before or after the call")
        return [x]

    def batch(self, axis, operands, dims, *, global_mesh, pspec):
        ((x,), (d,)) = operands, dims
        entries = list(pspec.padded(d))
        entries.insert(d, None if axis.spmd_name is None else axis.spmd_name)
        return [self.bind(x, global_mesh=global_mesh, pspec=P(*entries))], [d]


class LocalToGlobal(_BetweenProcesses):
    """The global array over a mesh whose local part is the operand."""

    name = "host_local_array_to_global_array"

    def infer(self, x, *, global_mesh, pspec):
        return [x.update(shape=_shape_on_mesh(x, global_mesh.local_mesh, global_mesh, pspec))]

    def at_once(self, x, *, global_mesh, pspec):
        if isinstance(x, ArrayImpl) and not x.is_fully_addressable:
            return [x]
        new = NamedSharding(global_mesh, pspec)
        if new.is_fully_addressable:
            return [transfer.to_device(x, new)]
        x = transfer.to_device(x, NamedSharding(global_mesh.local_mesh, pspec))
        aval = x.aval.update(shape=_shape_on_mesh(x.aval, global_mesh.local_mesh, global_mesh, pspec), sharding=None)
        return [joined(aval, new, [s.data for s in x.addressable_shards], True)]

    def transposed(self, ct, aval, *, global_mesh, pspec):
        return global_to_local_p.bind(ct, global_mesh=global_mesh, pspec=pspec)


class GlobalToLocal(_BetweenProcesses):
    """This process's local part of a global array over a mesh."""

    name = "global_array_to_host_local_array"

    def infer(self, x, *, global_mesh, pspec):
        return [x.update(shape=_shape_on_mesh(x, global_mesh, global_mesh.local_mesh, pspec))]

    def at_once(self, x, *, global_mesh, pspec):
        if isinstance(x, ArrayImpl) and x.is_fully_addressable:
            return [x]
        x = transfer.to_device(x, NamedSharding(global_mesh, pspec))
        if x.is_fully_addressable:
            return [x]
        local = NamedSharding(global_mesh.local_mesh, pspec)
        aval = x.aval.update(shape=_shape_on_mesh(x.aval, global_mesh, local.mesh, pspec), sharding=None)
        return [joined(aval, local, [s.data for s in x.addressable_shards], True)]

    def transposed(self, ct, aval, *, global_mesh, pspec):
        return local_to_global_p.bind(ct, global_mesh=global_mesh, pspec=pspec)


local_to_global_p, global_to_local_p = LocalToGlobal(), GlobalToLocal()


def _shape_on_mesh(aval: ShapedArray, old: Any, new: Any, spec: P) -> tuple[int, ...]:
    """The shape of the array over the mesh `new` that has the same shards as `aval` has over the mesh `old`."""
    part = NamedSharding(old, spec).shard_shape(aval.shape)
    return tuple([size * count for size, count in zip(part, NamedSharding(new, spec).tiling(aval.ndim), strict=True)])
