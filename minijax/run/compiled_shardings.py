"""How the arguments and results of a program on several devices lie: as the compiler chose, and as it expects."""

from typing import Any

import numpy as np
from jaxlib import _hlo

from minijax.base.native import replicated
from minijax.ir.types import ShapedArray
from minijax.partition.meshes import PartitionSpec, axes_of
from minijax.partition.shardings import GSPMDSharding, NamedSharding, Sharding
from minijax.run.array import Signature, signature
from minijax.run.compile import Loaded


def chosen_shardings(loaded: Loaded, ins: int, outs: int, tokens: int) -> tuple[list, list]:
    """The HLO shardings of arguments and results, behind so many tokens, as the compiler has settled them."""

    def parsed(protos, count):
        shardings = list(map(_hlo.HloSharding.from_proto, protos or ()))
        return shardings[tokens:] if shardings else [replicated()] * count

    executable = loaded.executable
    return parsed(executable.get_parameter_shardings(), ins), parsed(executable.get_output_shardings(), outs)


def get_op_sharding_from_serialized_proto(sharding: bytes) -> Any:
    """XLA's description of a sharding, of its bytes."""
    proto = _hlo.OpSharding()
    proto.ParseFromString(sharding)
    return proto


def get_hlo_sharding_from_serialized_proto(sharding: bytes) -> Any:
    """The HLO sharding of the bytes of its description."""
    return _hlo.HloSharding.from_proto(get_op_sharding_from_serialized_proto(sharding))


def get_serialized_proto_from_hlo_sharding(sharding: Any) -> bytes:
    """The bytes of the description of an HLO sharding."""
    return sharding.to_proto().SerializeToString()


def sharding_of_result(mesh: Any, hlo: Any, aval: Any) -> Sharding:
    """As `named_sharding`, of a value whose type says how it lies over the Explicit axes, of size 1 too."""
    sharding = named_sharding(mesh, hlo, aval.ndim)
    if not mesh.explicit_axes or not isinstance(sharding, NamedSharding):
        return sharding
    if any(axis in mesh.auto_axes for axis in sharding.spec.mesh_axes):
        return sharding
    split = aval._sharding if type(aval) is ShapedArray else None
    if split is None:
        return sharding.update(spec=sharding.spec.padded(aval.ndim)) if mesh.auto_axes else sharding
    # XLA may have laid out otherwise what no constraint says.
    alike = _cut_over(mesh, split.spec, aval.ndim) == _cut_over(mesh, sharding.spec, aval.ndim)
    return sharding.update(spec=split.spec) if alike else sharding


def _cut_over(mesh: Any, spec: PartitionSpec, ndim: int) -> list:
    """Over which mesh axes of more than one device each axis of an array is cut."""
    return [[axis for axis in axes_of(e) if mesh.shape[axis] > 1] for e in spec.padded(ndim)[:ndim]]


def named_sharding(mesh: Any, hlo: Any, ndim: int) -> Sharding:
    """The sharding over `mesh` that places parts as the HLO sharding does; axes of size 1 are not named."""
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
    """The mesh axes whose coordinates, read as digits, give each device's tile; None if no axes do."""
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
    """Whether each device holds the part of an array that `sharding` puts there."""
    return sig.sharding is sharding or (
        sig.sharding._device_assignment == sharding._device_assignment
        and sig.sharding.memory_kind == sharding.memory_kind
        and sig.native is signature(sig.aval, sharding, sig.committed).native
    )
