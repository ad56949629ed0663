"""Partition specs and meshes: the vocabulary of shardings, in plain Python without jaxlib."""

import collections
import contextlib
import copyreg
import dataclasses
import enum
import functools
import math
import threading
import warnings
import weakref
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from minijax.base import config, html
from minijax.base.naming import known_as
from minijax.base.thread import entered, thread
from minijax.base.util import ByKey, Immutable, dir_without, put


@known_as("jax._src.mesh.AxisType")
class AxisType(enum.Enum):
    """Says who decides how arrays are sharded over a mesh axis.

    `Auto`: the compiler. `Explicit`: the types of arrays state it, and operations follow from them. `Manual`: the
    program, which is written for one device at a time, as inside `jax.shard_map`.

    Example:
        >>> explicit = jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Explicit,))
        >>> jax.typeof(jax.device_put(jnp.ones(2), jax.NamedSharding(explicit, jax.P("i"))))
        ShapedArray(float32[2@i])
    """

    Auto = 1
    Explicit = 2
    Manual = 3

    def __repr__(self):
        return self.name


# ---- partition specs --------------------------------------------------------------------------------


class _Unconstrained(Immutable):
    __slots__ = ()

    def __repr__(self):
        return "UNCONSTRAINED"

    def __reduce__(self):
        return default_unconstrained, ()


UNCONSTRAINED = _Unconstrained()


@known_as("jax._src.partition_spec._get_default_unconstrained")
def default_unconstrained() -> _Unconstrained:
    """Returns `UNCONSTRAINED`; its pickles call this."""
    return UNCONSTRAINED


def _canonical_partition(partition: Any) -> Any:
    if not isinstance(partition, tuple | list):
        return partition
    for axis in partition:
        if isinstance(axis, tuple | list):
            raise ValueError(
                "A tuple inside PartitionSpec cannot contain a nested tuple. Got partition: "
                f"{partition} and the nested tuple: {axis}"
            )
    if not partition:
        return None
    return partition[0] if len(partition) == 1 else tuple(partition)


def _axis_set(axes: Any, name: str) -> frozenset:
    if not isinstance(axes, frozenset | set):
        raise TypeError(f"{name} argument of PartitionSpec should be of type `frozenset` or `set`. Got {axes!r}")
    if None in axes:
        raise ValueError(f"{name} cannot contain None: its elements are names of mesh axes.")
    return frozenset(axes)


# Equal specs are one object.
_specs: weakref.WeakValueDictionary[tuple, "PartitionSpec"] = weakref.WeakValueDictionary()


@known_as("jax.P")
class PartitionSpec(ByKey, Immutable):
    """Says for each array axis over which mesh axes it is sharded; `jax.P` is its short name.

    An entry is the name of a mesh axis, a tuple of names (the array axis is split over their product, the first
    name varying slowest), None (not split), or `PartitionSpec.UNCONSTRAINED` (the compiler decides). Array axes
    after the last entry are not split; `P()` replicates an array. A mesh axis appears in one entry at most. Equal specs
    are one object; specs are hashable and can be iterated over.

    Args:
        *partitions: The entries.
        unreduced: Names of mesh axes over whose devices the array is a sum of what each device holds.
        reduced: Names of mesh axes over which cotangents are unreduced.

    Raises:
        ValueError: If `unreduced`, `reduced` and the entries name the same axis.

    See also: `jax.NamedSharding`, `jax.shard_map`.

    Example:
        >>> jax.P("data", None, ("x", "y"))
        P('data', None, ('x', 'y'))
        >>> jax.P("data") == jax.sharding.PartitionSpec("data")
        True
    """

    __slots__ = ("_partitions", "unreduced", "reduced", "__weakref__")
    UNCONSTRAINED = UNCONSTRAINED
    __dir__ = dir_without("identify mesh_axes padded")

    def __new__(cls, *partitions, unreduced=frozenset(), reduced=frozenset()):
        axes = _axis_set(unreduced, "unreduced"), _axis_set(reduced, "reduced")
        key = (tuple([_canonical_partition(p) for p in partitions]), *axes)
        known = _specs.get(key)
        return known if known is not None else _specs.setdefault(key, cls._interned(key))

    @classmethod
    def _interned(cls, key):
        self = object.__new__(cls)
        put(self, _partitions=key[0], unreduced=key[1], reduced=key[2])
        self.identify(*key)
        if self.unreduced & self.reduced:
            raise ValueError(
                "`unreduced` and `reduced` argument to PartitionSpec cannot overlap. "
                f"Got unreduced: {self.unreduced} and reduced: {self.reduced}"
            )
        for name, axes in (("unreduced", self.unreduced), ("reduced", self.reduced)):
            if axes and not axes.isdisjoint(self.mesh_axes):
                raise ValueError(
                    f"partitions cannot overlap with {name} axes passed to PartitionSpec. "
                    f"Got partitions: {self._partitions} and {name} axes: {axes}"
                )
        return self

    def __init_subclass__(cls):
        raise TypeError("Subclassing `jax.P` is prohibited: equal specs are one object")

    partitions = property(lambda self: self._partitions)

    @property
    def mesh_axes(self) -> tuple:
        """The mesh axes in the entries, in order."""
        return tuple([axis for entry in self._partitions for axis in axes_of(entry)])

    def __iter__(self):
        return iter(self._partitions)

    def __len__(self):
        return len(self._partitions)

    def __getitem__(self, index):
        return self._partitions[index]

    def __add__(self, other):
        if isinstance(other, PartitionSpec):
            return self.update((*self, *other), self.unreduced | other.unreduced, self.reduced | other.reduced)
        return self.update(partitions=(*self, *self._addable(other, "__add__")))

    def __radd__(self, other):
        return self.update(partitions=(*self._addable(other, "__radd__"), *self))

    def _addable(self, other: Any, method: str) -> tuple:
        if not isinstance(other, tuple):
            raise NotImplementedError(f"PartitionSpec and {type(other).__name__}: only specs and tuples can be added")
        for name, axes in (("unreduced", self.unreduced), ("reduced", self.reduced)):
            if axes:
                raise TypeError(f"{self} has {name} in `{method}` of PartitionSpec, where {other} is a plain tuple")
        return other

    def __repr__(self):
        inner = ", ".join(map(repr, self._partitions)) + ("," if len(self) == 1 else "")
        for name, axes in (("unreduced", self.unreduced), ("reduced", self.reduced)):
            if axes:
                text = "{" + ", ".join(map(repr, sorted(axes, key=str))) + "}"
                inner = f"{inner.removesuffix(',')}{', ' if inner else ''}{name}={text}"
        return f"P({inner})"

    def __reduce__(self):
        axes = dict(unreduced=self.unreduced, reduced=self.reduced)
        return copyreg.__newobj_ex__, (PartitionSpec, tuple(self), axes)

    def index(self, value):
        return self._partitions.index(_canonical_partition(value))

    def count(self, value):
        return self._partitions.count(_canonical_partition(value))

    def update(self, partitions=None, unreduced=None, reduced=None) -> "PartitionSpec":
        """This spec with some fields changed."""
        return PartitionSpec(
            *(self._partitions if partitions is None else partitions),
            unreduced=self.unreduced if unreduced is None else unreduced,
            reduced=self.reduced if reduced is None else reduced,
        )

    def padded(self, ndim: int) -> "PartitionSpec":
        """This spec padded with None up to `ndim` entries."""
        missing = ndim - len(self)
        return self if missing <= 0 else self.update(partitions=(*self._partitions, *[None] * missing))

    _normalized_spec_for_aval = padded


P = PartitionSpec
PartitionSpec.__name__ = "P"


def axes_of(partition: Any) -> tuple:
    """The mesh axes in one entry of a spec."""
    if partition is None or partition is UNCONSTRAINED:
        return ()
    return partition if isinstance(partition, tuple) else (partition,)


# ---- meshes -----------------------------------------------------------------------------------------


@known_as("jax._src.mesh.AbstractDevice")
@dataclasses.dataclass(frozen=True, slots=True)
class AbstractDevice:
    """Describes the kind of the devices of an abstract mesh: `device_kind`, `num_cores` and `platform`.

    Example:
        >>> jax.sharding.AbstractMesh((2,), ("i",), abstract_device=jax.sharding.AbstractDevice("TPU v5", 2))
        AbstractMesh('i': 2, axis_types=(Auto,), device_kind=TPU v5, num_cores=2, platform=None)
    """

    device_kind: str
    num_cores: int | None
    platform: str | None = None

    def __repr__(self):
        return f"AbstractDevice({self.text})"

    @property
    def text(self) -> str:
        return f"device_kind={self.device_kind}, num_cores={self.num_cores}, platform={self.platform}"


def _axis_names(names: Any) -> tuple:
    names = (names,) if isinstance(names, str) else tuple(names)
    if None in names:
        raise ValueError(f"Mesh axis names cannot be None. Got: {names}")
    return names


explicit_meshes: list[bool] = []  # empty until a mesh with Explicit axes is made: until then no mesh is looked up


def _axis_types(axis_types: Any, axis_names: tuple, what: str) -> tuple[AxisType, ...]:
    if axis_types is None:
        return (AxisType.Auto,) * len(axis_names)
    axis_types = (axis_types,) if isinstance(axis_types, AxisType) else tuple(axis_types)
    if not all(isinstance(kind, AxisType) for kind in axis_types):
        raise TypeError(
            f"axis_types passed to {what} must be of type `jax.sharding.AxisType`. Got {axis_types} of type "
            f"{tuple(type(kind) for kind in axis_types)}"
        )
    if len(axis_types) != len(axis_names):
        raise ValueError(
            f"Number of axis names should match the number of axis_types. Got {axis_names=} and {axis_types=}"
        )
    if AxisType.Explicit in axis_types and not explicit_meshes:
        explicit_meshes.append(True)
    return axis_types


_context_mesh = config.make_user_context(None)
_abstract_context = config.make_user_context(None)
_entered_meshes = config.make_user_context(())


class BaseMesh(Immutable):
    """The base of concrete and abstract meshes: named axes with sizes and types."""

    axis_names: tuple
    axis_sizes: tuple[int, ...]
    axis_types: tuple[AxisType, ...]
    size: Any
    __dir__ = dir_without("has_axes_of identify")

    @property
    def shape(self) -> collections.OrderedDict:
        return collections.OrderedDict(self.shape_tuple)

    @property
    def shape_tuple(self) -> tuple[tuple[Hashable, int], ...]:
        return tuple(zip(self.axis_names, self.axis_sizes, strict=True))

    def has_axes_of(self, other: Any) -> bool:
        """Returns whether the axes of both have the same names, sizes and types."""
        return self.shape_tuple == other.shape_tuple and self.axis_types == other.axis_types

    def _axes_of_type(self, kind: AxisType) -> tuple:
        return tuple(n for n, k in zip(self.axis_names, self.axis_types, strict=True) if k is kind)

    manual_axes = property(lambda self: self._axes_of_type(AxisType.Manual))
    auto_axes = property(lambda self: self._axes_of_type(AxisType.Auto))
    explicit_axes = property(lambda self: self._axes_of_type(AxisType.Explicit))

    def _all_axes_are(self, kind: AxisType) -> bool:
        return bool(self.axis_types) and all(k is kind for k in self.axis_types)

    are_all_axes_manual = property(lambda self: self._all_axes_are(AxisType.Manual))
    are_all_axes_auto = property(lambda self: self._all_axes_are(AxisType.Auto))
    are_all_axes_explicit = property(lambda self: self._all_axes_are(AxisType.Explicit))
    _any_axis_manual = property(lambda self: AxisType.Manual in self.axis_types)
    _any_axis_auto = property(lambda self: AxisType.Auto in self.axis_types)
    _any_axis_explicit = property(lambda self: AxisType.Explicit in self.axis_types)
    _name_to_type = property(lambda self: dict(zip(self.axis_names, self.axis_types, strict=True)))

    def _text(self) -> str:
        axes = ", ".join(f"'{name}': {size}" for name, size in self.shape_tuple) or "()"
        return f"{axes}, axis_types={self.axis_types}"

    def __enter__(self):
        warnings.warn(
            "`with mesh:` context manager has been deprecated. Please use `with jax.set_mesh(mesh):` instead.",
            DeprecationWarning,
            stacklevel=2,
        )
        _entered_meshes.override((*_entered_meshes.value, self))
        return self

    def __exit__(self, *exception):
        _entered_meshes.override(_entered_meshes.value[:-1] or config.UNSET)
        return False


def context_mesh() -> "Mesh | None":
    """This thread's mesh, set by `set_mesh`, or None."""
    return _context_mesh.value


def abstract_context() -> "AbstractMesh | None":
    """The abstract mesh of the equation that is replayed, or the thread's, set by `use_abstract_mesh` or `set_mesh`."""
    abstract, mesh = thread.context.cur_abstract_mesh or _abstract_context.value, _context_mesh.value
    return abstract if abstract is not None else None if mesh is None else mesh.abstract_mesh


def mesh_for_specs() -> "Mesh | AbstractMesh | None":
    """The mesh of specs without a mesh: the context mesh, with the current types of its axes."""
    abstract, mesh = thread.context.cur_abstract_mesh or _abstract_context.value, _context_mesh.value
    if abstract is None or mesh is not None and mesh.abstract_mesh == abstract:
        return mesh
    if mesh is not None and mesh.size == abstract.size:
        return Mesh(mesh.devices.reshape(abstract.axis_sizes), abstract.axis_names, abstract.axis_types)
    return abstract


class use_abstract_mesh:  # noqa: N801
    """Sets the abstract mesh of this thread in a `with` statement, to change types of axes in a part of a program.

    Example:
        >>> with jax.sharding.use_abstract_mesh(jax.sharding.AbstractMesh((2,), ("i",))):
        ...     jax.sharding.get_abstract_mesh().shape
        OrderedDict([('i', 2)])
    """

    def __init__(self, mesh: "AbstractMesh"):
        if not isinstance(mesh, AbstractMesh):
            raise ValueError(f"Expected mesh of type `jax.sharding.AbstractMesh`. Got type: {type(mesh)}")
        self._mesh = mesh

    def __enter__(self) -> "AbstractMesh":
        around = abstract_context()
        if around is not None and not self._mesh.empty and around.size != self._mesh.size:
            raise ValueError(
                f"use_abstract_mesh cannot change the size of the mesh: {self._mesh} is for {self._mesh.size} devices, "
                f"the mesh that is set, {around}, for {around.size}"
            )
        self._saved = _abstract_context.value
        self._context = entered(thread.context._replace(cur_abstract_mesh=self._mesh))
        _abstract_context.override(self._mesh)
        self._context.__enter__()
        return self._mesh

    def __exit__(self, *exception: object) -> None:
        self._context.__exit__(*exception)
        _abstract_context.override(config.UNSET if self._saved is None else self._saved)


def empty_mesh() -> "Mesh":
    """The mesh without axes and devices."""
    return Mesh(np.empty((), dtype=object), ())


class set_mesh(contextlib.ContextDecorator):  # noqa: N801
    """Sets the context mesh of this thread: in a `with` statement until the end of the block, else from now on.

    Specs without a mesh, for example in `jax.device_put` and `jax.lax.with_sharding_constraint`, refer to it. Raises
    ValueError during tracing.

    Example:
        >>> with jax.set_mesh(jax.make_mesh((1,), ("x",))):
        ...     print(jax.sharding.get_mesh().axis_names)
        ('x',)
    """

    def __init__(self, mesh: "Mesh | None"):
        if mesh is not None and not isinstance(mesh, Mesh):
            raise ValueError(f"Expected mesh of type `jax.sharding.Mesh`. Got {type(mesh)}")
        if mesh is not None and mesh.manual_axes:
            raise ValueError(f"set_mesh: mesh {mesh} contains manual axes, which only `jax.shard_map` can introduce")
        if thread.trace is not None:
            raise ValueError("`set_mesh` can only be used outside of `jax.jit`, and not while something else is traced")
        self._saved = _context_mesh.value
        _context_mesh.override(None if mesh is None or mesh.empty else mesh)

    def __enter__(self):
        return None

    def __exit__(self, *exception):
        _context_mesh.override(config.UNSET if self._saved is None else self._saved)
        return False


def legacy_context_mesh() -> Any:
    """The mesh that this thread entered last by `with mesh:`, or None."""
    return _entered_meshes.value[-1] if _entered_meshes.value else None


@known_as("jax._src.mesh.AbstractMesh")
class AbstractMesh(ByKey, BaseMesh):
    """Describes a mesh without devices: the names, sizes and types of its axes.

    Programs can be traced for it where devices are not known, for example inside `jax.shard_map`.

    Example:
        >>> mesh = jax.sharding.AbstractMesh((4,), ("i",))
        >>> f = jax.shard_map(lambda x: x.sum(0, keepdims=True), mesh=mesh, in_specs=jax.P("i"), out_specs=jax.P("i"))
        >>> jax.eval_shape(f, jax.ShapeDtypeStruct((8,), jnp.float32)).shape
        (4,)
    """

    # Pickles of jax call only `__new__`, without arguments.
    def __new__(cls, *args, **kwargs):
        new = object.__new__(cls)
        if args:
            new.__init__(*args, **kwargs)
        return new

    def __init__(
        self,
        axis_sizes: tuple[int, ...],
        axis_names: Any,
        axis_types: Any = None,
        *,
        abstract_device: AbstractDevice | None = None,
    ):
        put(self, axis_sizes=tuple(axis_sizes), axis_names=_axis_names(axis_names))
        if len(self.axis_sizes) != len(self.axis_names):
            raise ValueError(
                f"AbstractMesh: axis_sizes has length {len(self.axis_sizes)} "
                f"but axis_names has length {len(self.axis_names)}"
            )
        size = math.prod(self.axis_sizes) if self.axis_names else 0
        axis_types = _axis_types(axis_types, self.axis_names, "AbstractMesh")
        put(self, axis_types=axis_types, abstract_device=abstract_device, size=size)
        self.identify(self.axis_sizes, self.axis_names, self.axis_types, abstract_device)

    abstract_mesh = property(lambda self: self)
    empty = property(lambda self: self.size == 0 or not self.axis_names)
    is_multi_process = property(lambda self: self._not_implemented("is_multi_process"))
    devices = property(lambda self: self._not_implemented("devices"))
    device_ids = property(lambda self: self._not_implemented("device_ids"))
    local_devices = property(lambda self: self._not_implemented("local_devices"))
    local_mesh = property(lambda self: self._not_implemented("local_mesh"))

    def _not_implemented(self, name):
        raise ValueError(f"AbstractMesh does not implement {name}")

    def __repr__(self):
        return f"AbstractMesh({self._text()}{f', {self.abstract_device.text}' if self.abstract_device else ''})"

    def __reduce__(self):
        return functools.partial(AbstractMesh, *self._key[:3], abstract_device=self.abstract_device), ()

    def __enter__(self):
        raise RuntimeError("AbstractMesh is not a context manager: use `jax.sharding.use_abstract_mesh`")

    def update(self, axis_sizes=None, axis_names=None, axis_types=None, **kwargs) -> "AbstractMesh":
        """This mesh with some fields changed."""
        return AbstractMesh(
            self.axis_sizes if axis_sizes is None else axis_sizes,
            self.axis_names if axis_names is None else axis_names,
            self.axis_types if axis_types is None else axis_types,
            abstract_device=kwargs.pop("abstract_device", self.abstract_device),
            **kwargs,
        )

    def update_axis_types(self, name_to_type: dict) -> "AbstractMesh":
        """This mesh with the types of some axes changed."""
        new = [name_to_type.get(n, k) for n, k in zip(self.axis_names, self.axis_types, strict=True)]
        return self.update(axis_types=tuple(new))


_meshes: dict[tuple, "Mesh"] = {}
_meshes_lock = threading.Lock()


@known_as("jax._src.mesh.Mesh")
class Mesh(BaseMesh, contextlib.ContextDecorator):
    """Arranges devices in a grid whose axes have names.

    It is also a context manager, which makes it the context mesh for specs; `jax.set_mesh` does this too and is
    preferred. Equal meshes are one object. `jax.make_mesh` chooses the order of devices for you.

    Args:
        devices: An array of `jax.Device`s, of any rank, or nested lists of them.
        axis_names: A name for each axis of `devices`.
        axis_types: A `jax.sharding.AxisType` for each axis. By default all are Auto.

    Attributes:
        devices, axis_names, axis_types: As above.
        shape: A mapping from names to sizes.
        size: The number of devices.
        abstract_mesh: The mesh without its devices.

    Raises:
        ValueError: If the rank of `devices` is not the number of names.

    See also: `jax.make_mesh`, `jax.set_mesh`, `jax.NamedSharding`.

    Example:
        >>> mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]).reshape(1, 1), ("data", "model"))
        >>> mesh.axis_names, mesh.size
        (('data', 'model'), 1)
    """

    def __new__(cls, devices: Any, axis_names: Any, axis_types: Any = None):
        devices = np.array(devices) if isinstance(devices, Sequence) else np.asarray(devices)
        axis_names = _axis_names(axis_names)
        if devices.size == 0 or (devices.ndim == 0 and devices.item() is None):
            devices, axis_names, axis_types = np.empty((), dtype=object), (), None
        if devices.ndim != len(axis_names):
            raise ValueError(
                "Mesh requires the ndim of its first argument (`devices`) to equal the length of its second "
                f"argument (`axis_names`), but got devices.ndim == {devices.ndim} and "
                f"len(axis_names) == {len(axis_names)}. Reshape the array of devices, or name each of its axes."
            )
        axis_types = _axis_types(axis_types, axis_names, "Mesh")
        key = (devices.shape, tuple(devices.flat), axis_names, axis_types)
        with _meshes_lock:
            mesh = _meshes.get(key)
            if mesh is None:
                mesh = object.__new__(cls)
                put(mesh, devices=devices.astype(object), axis_names=axis_names, axis_types=axis_types, _hash=hash(key))
                mesh.devices.flags.writeable = False
                put(mesh, _flat_devices_tuple=() if mesh.empty else tuple(mesh.devices.flat))
                _meshes[key] = mesh
            return mesh

    def __reduce__(self):
        return Mesh, (self.devices, self.axis_names, self.axis_types)

    def __hash__(self):
        return self._hash

    axis_sizes: Any = property(lambda self: self.devices.shape)
    empty = property(lambda self: self.devices.ndim == 0 and self.devices.item() is None)
    size = property(lambda self: len(self._flat_devices_tuple))
    is_scalar = property(lambda self: self.devices.ndim == 0)

    @property
    def device_ids(self) -> np.ndarray:
        return np.array([d.id for d in self._flat_devices_tuple], dtype=int).reshape(self.devices.shape)

    @property
    def local_devices(self) -> list:
        return [d for d in self._flat_devices_tuple if d.process_index == d.client.process_index()]

    is_multi_process = functools.cached_property(lambda self: len(self.local_devices) != self.size)

    @property
    def local_mesh(self) -> "Mesh":
        """The part of this mesh with the devices of this process."""
        if not self.is_multi_process:
            return self
        mine = np.vectorize(lambda d: d.process_index == d.client.process_index(), otypes=[bool])(self.devices)
        block = tuple(slice(i.min(), i.max() + 1) for i in np.nonzero(mine))
        if not mine[block].all():
            raise ValueError("the devices of this process do not form a block of the mesh")
        return Mesh(self.devices[block], self.axis_names, self.axis_types)

    @property
    def abstract_mesh(self) -> AbstractMesh:
        first = self._flat_devices_tuple[0] if self._flat_devices_tuple else None
        device = first and AbstractDevice(first.device_kind, getattr(first, "num_cores", None), first.platform)
        return AbstractMesh(self.axis_sizes, self.axis_names, self.axis_types, abstract_device=device)

    def update(self, devices=None, axis_names=None, axis_types=None) -> "Mesh":
        """This mesh with some fields changed."""
        return Mesh(
            self.devices if devices is None else devices,
            self.axis_names if axis_names is None else axis_names,
            self.axis_types if axis_types is None else axis_types,
        )

    @html.bundled
    def _repr_mimebundle_(self):
        rows = self.device_ids.reshape(-1, self.devices.shape[-1] if self.devices.ndim else 1)
        return html.code(repr(self)) + html.grid([[str(i) for i in row] for row in rows])

    def __repr__(self):
        if self.empty:
            return "Mesh(axis_sizes=(), axis_names=())"
        return f"Mesh(axis_sizes={self.axis_sizes}, axis_names={self.axis_names}, axis_types={self.axis_types})"

    def __str__(self):
        return "Mesh()" if self.empty else f"Mesh({self._text()})"
