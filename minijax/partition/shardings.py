"""Shardings of arrays over devices, in plain Python without jaxlib.

Devices are objects of the client; only their attributes are read here.
"""

import functools
import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from minijax.base import cache, html
from minijax.base.naming import known_as
from minijax.base.native import replicated, tiles_of
from minijax.base.source import hide_frames
from minijax.base.util import ByKey, dir_without, put
from minijax.partition.memory import MemorySpace
from minijax.partition.meshes import (
    UNCONSTRAINED,
    AbstractDevice as AbstractDevice,
    AbstractMesh,
    AxisType as AxisType,
    Mesh,
    P as P,
    PartitionSpec,
    axes_of,
)


class Unspecified:
    """Represents a sharding that the user did not specify."""

    def __repr__(self):
        return "UnspecifiedValue"


UNSPECIFIED = Unspecified()


@known_as("jax._src.sharding.IndivisibleError")
class IndivisibleError(ValueError):
    """A dimension is not divisible by the number of shards."""


@known_as("jax._src.named_sharding.DuplicateSpecError")
class DuplicateSpecError(Exception):
    """A partition spec uses a mesh axis twice."""


def _check_memory_kind(device: Any, kind: str | None) -> str | None:
    """Returns `kind`, or the default memory kind of `device`. Raises ValueError if the device lacks it.

    The default is None for a device that programs are only compiled for.
    """
    memories = getattr(device, "addressable_memories", None)
    if memories is None:
        return kind
    try:
        default = device.default_memory().kind
    except RuntimeError:
        return None
    if kind is None:
        return default
    kinds = [memory.kind for memory in memories()]
    if kind not in kinds:
        raise ValueError(
            f"Could not find memory addressable by device {device.device_kind}. Device {device.device_kind} "
            f"can address the following memory kinds: {', '.join(sorted(kinds))}. Got memory kind: {kind}"
        )
    return kind


MEMORY_KINDS = {MemorySpace.Device: "device", MemorySpace.Host: "pinned_host"}


class Sharding:
    """Describes how an array is distributed over devices; the base class of `NamedSharding` and the others.

    `shard_shape(shape)` returns the shape of a shard, `devices_indices_map(shape)` the part of each device, and
    `is_equivalent_to(other, ndim)` whether two shardings distribute arrays of a rank in the same way.

    Example:
        >>> isinstance(jnp.ones(2).sharding, jax.sharding.Sharding), jnp.ones(2).sharding.shard_shape((2,))
        (True, (2,))
    """

    # Subclasses define `_device_assignment` (devices in order), `memory_kind` and `_positions`.
    is_fully_replicated: Any  # a property
    __dir__ = dir_without("axis_numbers grid_of identify tiling")

    def _positions(self, ndim: int) -> Iterator[tuple[Any, tuple[tuple[int, int], ...]]]:
        """For each device in order: for each dimension, (index of its shard, number of shards)."""
        raise NotImplementedError(f"{type(self).__name__} does not define the positions of shards")

    def tiling(self, ndim: int) -> tuple[int, ...]:
        """The number of shards along each dimension."""
        raise NotImplementedError(f"{type(self).__name__} does not define the number of shards")

    @property
    def _device_assignment(self) -> tuple:
        raise NotImplementedError(f"{type(self).__name__} has no devices")

    _memory_kind: str | None = None
    memory_kind = property(lambda self: self._memory_kind)
    _memory_space = property(lambda self: MemorySpace.Host if self.memory_kind == "pinned_host" else MemorySpace.Device)

    _in_default_memory = property(lambda self: self.memory_kind in (None, "device"))
    device_set = property(lambda self: set(self._device_assignment))
    num_devices = property(lambda self: len(self._device_assignment))

    @property
    def _addressable_device_assignment(self) -> tuple:
        return tuple(d for d in self._device_assignment if d.process_index == d.client.process_index())

    addressable_devices = property(lambda self: set(self._addressable_device_assignment))
    has_addressable_devices = property(lambda self: bool(self._addressable_device_assignment))
    is_fully_addressable = property(lambda self: len(self.addressable_devices) == len(self.device_set))

    def grid_of(self, shape: tuple[int, ...]) -> str:
        """A grid in HTML of the shards of an array of this shape, of rank 1 or 2: the devices that hold each."""
        holders: dict[tuple, list] = {}
        for device, places in self._positions(len(shape)):
            holders.setdefault(tuple(index for index, _ in places), []).append(str(device.id))
        rows, columns = ((1,) + self.tiling(len(shape)))[-2:]
        cells = [[",".join(holders[(i, k)[2 - len(shape) :]]) for k in range(columns)] for i in range(rows)]
        return html.grid(cells)

    def check_compatible_aval(self, aval_shape: tuple[int, ...]) -> None:
        """Raises ValueError if an array of this shape cannot have this sharding."""

    def shard_shape(self, global_shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of one device's shard."""
        return _shard_shape(self, tuple(global_shape))

    def devices_indices_map(self, global_shape: tuple[int, ...]) -> dict:
        """For each device the index, a tuple of slices, of its shard."""
        return dict(_indices(self, tuple(global_shape)))

    def addressable_devices_indices_map(self, global_shape: tuple[int, ...]) -> dict:
        """As `devices_indices_map`, for the devices of this process."""
        mine = self.addressable_devices
        return {d: index for d, index in self.devices_indices_map(global_shape).items() if d in mine}

    def is_equivalent_to(self, other: "Sharding", ndim: int) -> bool:
        """Returns whether each device has the same shard of an array of rank `ndim` under both."""
        return self is other or (
            self.memory_kind == other.memory_kind and list(self._positions(ndim)) == list(other._positions(ndim))
        )

    @property
    def _memory_text(self) -> str:
        return "" if self.memory_kind is None else f", memory_kind={self.memory_kind}"


@cache.cache(maxsize=4096)
def _shard_shape(sharding: Sharding, shape: tuple[int, ...]) -> tuple[int, ...]:
    if any(entry is not None for entry in getattr(sharding, "spec", ())[len(shape) :]):
        sharding.check_compatible_aval(shape)
    counts = sharding.tiling(len(shape))
    for axis, (size, count) in enumerate(zip(shape, counts, strict=True)):
        if size % count:
            raise IndivisibleError(
                f"Sharding {sharding} implies that array axis {axis} is partitioned {count} times, but the "
                f"dimension size is {size} (full shape: {shape}, per-dimension tiling factors: {list(counts)} should "
                "evenly divide the shape)"
            )
    return tuple([size // count for size, count in zip(shape, counts, strict=True)])


@cache.cache(maxsize=4096)
def _indices(sharding: Sharding, shape: tuple[int, ...]) -> list[tuple[Any, tuple[slice, ...]]]:
    """Each device, with the index of its shard of an array of this shape."""
    part = sharding.shard_shape(shape)

    def along(size: int, k: int, count: int) -> slice:
        return slice(None) if count == 1 else slice(k * size, (k + 1) * size)

    return [
        (device, tuple([along(size, *place) for size, place in zip(part, places, strict=True)]))
        for device, places in sharding._positions(len(shape))
    ]


@known_as("jax.sharding.SingleDeviceSharding")
class SingleDeviceSharding(ByKey, Sharding):
    """Places the whole array on one device, in the memory of `memory_kind` if that is given.

    Example:
        >>> sharding = jax.sharding.SingleDeviceSharding(jax.devices()[0])
        >>> jax.device_put(np.ones(2), sharding).sharding == sharding
        True
    """

    __slots__ = ("_device", "_memory_kind")

    def __init__(self, device: Any, *, memory_kind: str | None = None):
        self._device = device
        self._memory_kind = _check_memory_kind(device, memory_kind)
        self.identify(device, self._memory_kind)

    _device_assignment = property(lambda self: (self._device,))
    is_fully_replicated = True

    def tiling(self, ndim: int) -> tuple[int, ...]:
        return (1,) * ndim

    def _positions(self, ndim):
        yield self._device, ((0, 1),) * ndim

    def with_memory_kind(self, kind: str) -> "SingleDeviceSharding":
        """This sharding in another kind of memory."""
        return SingleDeviceSharding(self._device, memory_kind=kind)

    def __reduce__(self):
        return functools.partial(SingleDeviceSharding, self._device, memory_kind=self._memory_kind), ()

    def __repr__(self):
        return f"SingleDeviceSharding(device={self._device!r}{self._memory_text})"


_ABSTRACT_KINDS = ("device", "pinned_host", "unpinned_host")


@known_as("jax.sharding.NamedSharding")
class NamedSharding(ByKey, Sharding):
    """Describes how an array is distributed over a mesh: a mesh, and a spec that names mesh axes for array axes.

    Args:
        mesh: A `jax.sharding.Mesh` or `AbstractMesh`.
        spec: A `jax.sharding.PartitionSpec` with names of axes of the mesh.
        memory_kind: The memory of the devices, for example `"pinned_host"`. By default, that of the device.

    Attributes:
        mesh, spec, memory_kind: As above.
        device_set: The set of devices.
        is_fully_replicated: Whether each device has the whole array.

    Its method `shard_shape(shape)` returns the shape of one shard, and `devices_indices_map(shape)` which part of an
    array each device has.

    Raises:
        ValueError: If the spec names an axis that the mesh does not have, or one axis twice.
        TypeError: If the spec is None.

    See also: `jax.device_put`, `jax.make_mesh`, `jax.jit` (its `in_shardings` and `out_shardings`).

    Example:
        >>> sharding = jax.NamedSharding(jax.make_mesh((1,), ("x",)), jax.P("x"))
        >>> jax.device_put(jnp.arange(4), sharding).sharding == sharding
        True
        >>> sharding.shard_shape((4, 2))
        (4, 2)
    """

    __slots__ = ("mesh", "spec", "_memory_kind", "_logical_device_ids")

    def __init__(
        self,
        mesh: Any,
        spec: PartitionSpec,
        *,
        memory_kind: str | None = None,
        _logical_device_ids: tuple | None = None,
    ):
        if spec is None:
            raise TypeError(f"NamedSharding: Unexpected None as the spec over {mesh}; replicated is PartitionSpec()")
        if not isinstance(spec, PartitionSpec):
            raise AttributeError(f"NamedSharding: spec must be a PartitionSpec, got {spec!r}")
        try:
            _check_spec(mesh, spec)
        except Exception as error:
            hide_frames(error)
            raise
        put(self, mesh=mesh, spec=spec, _logical_device_ids=_logical_device_ids)
        if self._is_concrete:
            self._memory_kind = _check_memory_kind(mesh._flat_devices_tuple[0], memory_kind)
        else:
            self._memory_kind = memory_kind
            if memory_kind is not None and memory_kind not in _ABSTRACT_KINDS:
                raise ValueError(
                    f"Got invalid memory kind: {memory_kind}. Valid ones are: {', '.join(_ABSTRACT_KINDS)}"
                )
        self.identify(mesh, spec, self._memory_kind, _logical_device_ids)

    # Other attributes can be set, as in jax.
    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("mesh", "spec"):
            raise AttributeError(f"property {name!r} of 'NamedSharding' object has no setter")
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        if name in ("mesh", "spec"):
            raise AttributeError(f"property {name!r} of 'NamedSharding' object has no deleter")
        super().__delattr__(name)

    _is_concrete = property(lambda self: type(self.mesh) is Mesh and not self.mesh.empty)

    def _concrete(self, name: str) -> Mesh:
        if type(self.mesh) is not Mesh:
            raise ValueError(f"{name} is not implemented for `jax.sharding.AbstractMesh`.")
        return self.mesh

    _device_assignment = property(lambda self: self._concrete("_device_assignment")._flat_devices_tuple)
    device_set = property(lambda self: set(self._concrete("device_set")._flat_devices_tuple))
    num_devices = property(lambda self: self.mesh.size)

    @property
    def is_fully_addressable(self) -> bool:
        return not self._concrete("is_fully_addressable").is_multi_process

    @property
    def addressable_devices(self) -> set:
        return set(self._concrete("addressable_devices").local_devices)

    @property
    def is_fully_replicated(self) -> bool:
        sizes = self.mesh.shape
        return all(sizes[axis] == 1 for axis in self.spec.mesh_axes) and not self.spec.unreduced

    @property
    def replicated_axes(self) -> frozenset:
        return frozenset(self.mesh.axis_names).difference(self.spec.mesh_axes, self.spec.unreduced)

    def tiling(self, ndim: int) -> tuple[int, ...]:
        sizes = self.mesh.shape
        counts = [math.prod(sizes[a] for a in axes_of(entry)) for entry in self.spec.padded(ndim)]
        return tuple(counts[:ndim])

    def axis_numbers(self, ndim: int) -> list[list[int]]:
        """For each array dimension, the positions in the mesh of the axes that it is sharded over."""
        return [[self.mesh.axis_names.index(a) for a in axes_of(entry)] for entry in self.spec.padded(ndim)[:ndim]]

    def _positions(self, ndim):
        mesh = self.mesh
        entries = self.axis_numbers(ndim)
        devices = self._device_assignment if type(mesh) is Mesh else range(mesh.size)
        for device, place in zip(devices, np.ndindex(*mesh.axis_sizes), strict=True):
            parts = []
            for axes in entries:
                k, count = 0, 1
                for a in axes:
                    k, count = k * mesh.axis_sizes[a] + place[a], count * mesh.axis_sizes[a]
                parts.append((k, count))
            yield device, tuple(parts)

    def check_compatible_aval(self, aval_shape: tuple[int, ...]) -> None:
        if len(aval_shape) < len(self.spec):
            scalar = " For scalars the PartitionSpec should be P()" if not aval_shape else ""
            raise ValueError(
                f"Sharding {self} is only valid for values of rank at least {len(self.spec)}, but was "
                f"applied to a value of rank {len(aval_shape)}.{scalar or ' Leave out entries of the spec.'}"
            )

    def devices_indices_map(self, global_shape: tuple[int, ...]) -> dict:
        self._concrete("_device_assignment")
        return super().devices_indices_map(global_shape)

    def update(self, **kwargs) -> "NamedSharding":
        """This sharding with some of `mesh`, `spec`, `memory_kind` changed."""
        fields = dict(memory_kind=self._memory_kind, _logical_device_ids=self._logical_device_ids)
        return NamedSharding(kwargs.pop("mesh", self.mesh), kwargs.pop("spec", self.spec), **{**fields, **kwargs})

    def with_memory_kind(self, kind: str) -> "NamedSharding":
        """This sharding in another kind of memory."""
        return self.update(memory_kind=kind)

    def __reduce__(self):
        return named_sharding_of, (self.mesh, self.spec, self._memory_kind, self._logical_device_ids)

    @html.bundled
    def _repr_mimebundle_(self):
        shown = html.code(repr(self))
        return shown if isinstance(self.mesh, AbstractMesh) else shown + self.mesh._repr_mimebundle_()["text/html"]

    def __repr__(self):
        return f"NamedSharding(mesh={self.mesh}, spec={self.spec}{self._memory_text})"


@known_as("jax._src.named_sharding._unpickle_named_sharding")
def named_sharding_of(mesh: Any, spec: PartitionSpec, memory_kind: Any, logical_device_ids: Any) -> NamedSharding:
    """Unpickles a sharding."""
    return NamedSharding(mesh, spec, memory_kind=memory_kind, _logical_device_ids=logical_device_ids)


@cache.cache(maxsize=1024)
def _check_spec(mesh: Any, spec: PartitionSpec) -> None:
    if UNCONSTRAINED in spec.partitions and not mesh.auto_axes:
        raise ValueError(
            f"{spec} cannot contain `P.UNCONSTRAINED` when no mesh axis_types are `Auto`. Those of the mesh are "
            f"{mesh.axis_types}"
        )
    names, used = set(mesh.axis_names), set()
    for axis in spec.mesh_axes:
        if axis not in names:
            raise ValueError(
                f"Resource axis: {axis} of {spec} is not found in mesh: {mesh.axis_names}. Use these names, or another "
                "mesh."
            )
        if axis in used:
            raise DuplicateSpecError(
                "A single NamedSharding spec specification can map every mesh axis to at most one positional "
                f"dimension, but {spec} has duplicate entries for `{axis}`. Keep one of them."
            )
        used.add(axis)
    for name, axes in (("Unreduced", spec.unreduced), ("Reduced", spec.reduced)):
        if axes & names - {*mesh.explicit_axes}:
            raise ValueError(
                f"{name} axes can only refer to mesh axes that is of type `Explicit`. Got {name.lower()} axes: "
                f"{axes} and mesh: {mesh}"
            )
        if missing := axes - names:
            raise ValueError(
                f"{name} axes {', '.join(map(str, missing))} is not found in mesh.axis_names="
                f"{mesh.axis_names}. Got pspec={spec}"
            )


class GSPMDSharding(ByKey, Sharding):
    """A sharding that XLA chose and no spec can express; `tiles` is jaxlib's description of it."""

    __slots__ = ("_devices", "tiles", "_memory_kind")

    def __init__(
        self, devices: Iterable, op_sharding: Any, *, memory_kind: str | None = None, _device_list: Any = None
    ):
        self._devices = tuple(devices)
        self.tiles = tiles_of(op_sharding) if hasattr(op_sharding, "SerializeToString") else op_sharding
        self._memory_kind = _check_memory_kind(self._devices[0], memory_kind)
        self.identify(self._devices, self.tiles, self._memory_kind)

    _device_assignment = property(lambda self: self._devices)
    is_fully_replicated = property(lambda self: self.tiles.is_replicated())

    @classmethod
    def get_replicated(cls, device_assignment: Iterable, *, memory_kind: str | None = None) -> "GSPMDSharding":
        """A sharding that replicates arrays on these devices."""
        return cls(device_assignment, replicated(), memory_kind=memory_kind)

    def with_memory_kind(self, kind: str) -> "GSPMDSharding":
        """This sharding in another kind of memory."""
        return GSPMDSharding(self._devices, self.tiles, memory_kind=kind)

    def _to_xla_hlo_sharding(self, num_dimensions: int) -> Any:
        return self.tiles

    def tiling(self, ndim: int) -> tuple[int, ...]:
        return (1,) * ndim if self.tiles.is_replicated() else tuple(self.grid.shape[:ndim])

    @property
    def grid(self) -> np.ndarray:
        """The positions of devices in a grid of tiles: one axis per array dimension, then one for replicas."""
        return np.asarray(self.tiles.tile_assignment_devices()).reshape(self.tiles.tile_assignment_dimensions())

    def _positions(self, ndim):
        counts = self.tiling(ndim)
        grid = self.grid.reshape(*counts, -1) if max(counts, default=1) > 1 else None
        for k, device in enumerate(self._devices):
            place = (0,) * ndim if grid is None else np.argwhere(grid == k)[0][:ndim].tolist()
            yield device, tuple(zip(place, counts, strict=True))

    def __reduce__(self):
        return _with_tiles_of, (self._devices, self.tiles.to_proto(), self._memory_kind)

    def __repr__(self):
        return f"GSPMDSharding({self.tiles}{self._memory_text})"


def _with_tiles_of(devices: tuple, proto: Any, memory_kind: str | None) -> GSPMDSharding:
    return GSPMDSharding(devices, proto, memory_kind=memory_kind)


def check_sharding_of_type(sharding: Sharding, aval: Any, what: str, evenly: bool = True) -> None:
    """Raises ValueError if a value of this type cannot have this sharding; `what` describes the values in the error."""
    try:
        sharding.check_compatible_aval(aval.shape)
    except ValueError as error:
        raise ValueError(f"One of {what} is incompatible with its sharding annotation {sharding}: {error}") from None
    if evenly:
        sharding.shard_shape(aval.shape)


def sharding_of_rank(sharding: Any, ndim: int) -> Any:
    """A sharding whose spec has no trailing None entries beyond `ndim`."""
    spec = getattr(sharding, "spec", ())
    if len(spec) <= ndim or any(entry is not None for entry in spec[ndim:]):
        return sharding
    return sharding.update(spec=spec.update(partitions=spec[:ndim]))


empty_abstract_mesh = AbstractMesh((), ())


@cache.cache(maxsize=1024)
def unsharded(ndim: int, mesh: AbstractMesh | None = None) -> NamedSharding:
    """The replicated sharding that the type of an array reports if it has none; `mesh` is the context mesh, if any."""
    return NamedSharding(mesh or empty_abstract_mesh, PartitionSpec(*[None] * ndim))
