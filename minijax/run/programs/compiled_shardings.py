"""The shardings of a compiled program's arguments and results, as the compiler chose them and as it expects them."""

from typing import Any

import numpy as np
from jaxlib import _hlo

from minijax.base import dtypes
from minijax.base.native import replicated
from minijax.partition.meshes import PartitionSpec, axes_of
from minijax.partition.shardings import GSPMDSharding, NamedSharding, Sharding
from minijax.run.arrays.array import Signature, signature
from minijax.run.programs.compile import Loaded


def chosen_shardings(loaded: Loaded, ins: int, outs: int, tokens: int) -> tuple[list, list]:
    """The HLO shardings that the compiler chose for arguments and results, without those of the leading `tokens`."""

    def parsed(protos, count):
        shardings = list(map(_hlo.HloSharding.from_proto, protos or ()))
        return shardings[tokens:] if shardings else [replicated()] * count

    executable = loaded.executable
    return parsed(executable.get_parameter_shardings(), ins), parsed(executable.get_output_shardings(), outs)


def get_op_sharding_from_serialized_proto(sharding: bytes) -> Any:
    """The OpSharding message from its bytes."""
    proto = _hlo.OpSharding()
    proto.ParseFromString(sharding)
    return proto


def get_hlo_sharding_from_serialized_proto(sharding: bytes) -> Any:
    """The HLO sharding from the bytes of its OpSharding message."""
    return _hlo.HloSharding.from_proto(get_op_sharding_from_serialized_proto(sharding))


def get_serialized_proto_from_hlo_sharding(sharding: Any) -> bytes:
    """The bytes of the OpSharding message of an HLO sharding."""
    return sharding.to_proto().SerializeToString()


def sharding_of_result(mesh: Any, hlo: Any, aval: Any) -> Sharding:
    """As `named_sharding`, for a result with type `aval`: uses the type's spec over Explicit axes, also of size 1."""
    sharding = named_sharding(mesh, hlo, aval.ndim)
    if isinstance(sharding, NamedSharding) and dtypes.is_extended(aval.dtype):
        return sharding.update(spec=sharding.spec.padded(aval.ndim))
    if not mesh.explicit_axes or not isinstance(sharding, NamedSharding):
        return sharding
    if any(axis in mesh.auto_axes for axis in sharding.spec.mesh_axes):
        return sharding
    declared = aval.own_sharding
    if declared is None:
        return sharding.update(spec=sharding.spec.padded(aval.ndim)) if mesh.auto_axes else sharding
    # XLA may have chosen another sharding for a value without a sharding constraint.
    are_equal = _sharded_axes(mesh, declared.spec, aval.ndim) == _sharded_axes(mesh, sharding.spec, aval.ndim)
    return sharding.update(spec=declared.spec) if are_equal else sharding


def _sharded_axes(mesh: Any, spec: PartitionSpec, ndim: int) -> list:
    """For each array axis, the mesh axes of size greater than 1 over which it is sharded."""
    return [[axis for axis in axes_of(e) if mesh.shape[axis] > 1] for e in spec.padded(ndim)[:ndim]]


def named_sharding(mesh: Any, hlo: Any, ndim: int) -> Sharding:
    """The sharding over `mesh` that is equivalent to an HLO sharding; its spec omits mesh axes of size 1."""
    if hlo.is_replicated() or not hlo.is_tiled():
        return NamedSharding(mesh, PartitionSpec())
    dims = list(hlo.tile_assignment_dimensions())
    devices = np.asarray(hlo.tile_assignment_devices())
    tile_of = np.empty(devices.size, np.int64)
    tile_of[devices] = np.arange(devices.size)
    places = np.stack(np.unravel_index(tile_of, dims), -1).reshape(*mesh.axis_sizes, len(dims))
    entries = [_axes_along(mesh, places[..., d]) for d in range(ndim)]
    unreduced = [
        _axes_along(mesh, places[..., d])
        for d, kind in enumerate(hlo.subgroup_types(), ndim)
        if kind == _hlo.OpSharding_Type.UNREDUCED
    ]
    if None in entries or None in unreduced:
        return GSPMDSharding(mesh._flat_devices_tuple, hlo)
    while entries and not entries[-1]:
        entries.pop()
    spec = [None if not e else e[0] if len(e) == 1 else e for e in entries]
    return NamedSharding(mesh, PartitionSpec(*spec, unreduced=frozenset(sum(unreduced, ()))))


def _axes_along(mesh, tiles):
    """The mesh axes whose coordinates, read as digits, are each device's tile number; None if no axes are."""
    total, steps = np.zeros_like(tiles), []
    origin = (0,) * tiles.ndim
    for k, (name, size) in enumerate(mesh.shape_tuple):
        if size > 1:
            step = int(tiles[tuple([int(i == k) for i in range(tiles.ndim)])] - tiles[origin])
            if step:
                steps.append((step, name))
                total = total + step * np.indices(mesh.axis_sizes, sparse=True)[k]
    steps.sort(key=lambda pair: -pair[0])
    return tuple([name for _, name in steps]) if np.array_equal(total, tiles) else None


def has_sharding(sig: Signature, sharding: Sharding) -> bool:
    """Returns whether an array has a sharding equivalent to `sharding`: each device holds the same shard."""
    return sig.sharding is sharding or (
        sig.sharding._device_assignment == sharding._device_assignment
        and sig.sharding.memory_kind == sharding.memory_kind
        and sig.native is signature(sig.aval, sharding, sig.committed).native
    )
