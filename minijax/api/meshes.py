"""Creates meshes, returns the context mesh, and moves between Explicit and Auto axes."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from minijax.api import device_order
from minijax.base import tree
from minijax.ir import state
from minijax.ir.body import wrapping
from minijax.ir.types import is_value, typeof
from minijax.partition import meshes
from minijax.partition.meshes import AbstractMesh, AxisType, Mesh
from minijax.partition.shardings import NamedSharding, SingleDeviceSharding, empty_abstract_mesh
from minijax.primitives.sharding import check_explicit, drop_auto_axes, named_sharding, reshard_in_types
from minijax.run.clients import client


def make_mesh(
    axis_shapes: Sequence[int],
    axis_names: Sequence[str] | str,
    axis_types: tuple[AxisType, ...] | None = None,
    *,
    devices: Sequence[Any] | None = None,
) -> Mesh:
    """Creates a mesh: devices in a grid whose axes have names.

    The devices are ordered such that neighbours on the mesh are well connected; CPUs keep their order. Specs
    (`jax.sharding.PartitionSpec`) then name the mesh axes over which an array is split.

    Args:
        axis_shapes: The sizes of the mesh axes. Their product may be smaller than the number of devices.
        axis_names: The names of the mesh axes, as many as sizes.
        axis_types: For each axis a `jax.sharding.AxisType`. By default all are Explicit: the types of arrays state
            how they are sharded over them. Auto leaves that to the compiler.
        devices: The devices. By default, those of the default backend.

    Returns:
        A `jax.sharding.Mesh`.

    Raises:
        ValueError: If there are too few devices, or the numbers of sizes and names differ.

    See also: `jax.set_mesh`, `jax.NamedSharding`, `jax.shard_map`.

    Example:
        >>> mesh = jax.make_mesh((1, 1), ("data", "model"))
        >>> dict(mesh.shape)
        {'data': 1, 'model': 1}
        >>> x = jax.device_put(jnp.zeros((4, 2)), jax.NamedSharding(mesh, jax.P("data", None)))
        >>> print(jax.typeof(x))
        float32[4@data,2]
    """
    try:
        shape = tuple(map(operator.index, axis_shapes))
    except TypeError:
        kind = ValueError if isinstance(axis_shapes, Iterable) else TypeError
        raise kind(f"`axis_shapes` passed to `make_mesh` should be a sequence of ints, got {axis_shapes!r}") from None
    devices_there = client.devices() if devices is None else list(devices)
    if min(shape, default=0) < 0:
        raise ValueError(f"Number of devices {len(devices_there)} must equal the product of mesh_shape {shape}")
    if len(devices_there) < math.prod(shape):
        raise ValueError(
            f"Number of devices {len(devices_there)} must be >= the product of mesh_shape {shape}. Use a smaller "
            "shape; the option jax_num_cpu_devices makes more devices of the CPU."
        )
    kinds = (AxisType.Explicit,) * len(shape) if axis_types is None else axis_types
    taken = devices_there[: math.prod(shape)]
    grid = device_order.for_mesh(shape, taken) if taken else np.empty(shape, object)
    return Mesh(grid, axis_names if isinstance(axis_names, str) else tuple(axis_names), kinds)


def create_device_mesh(
    mesh_shape: Sequence[int],
    devices: Sequence[Any] | None = None,
    *,
    contiguous_submeshes: bool = False,
    allow_split_physical_axes: bool = False,
) -> np.ndarray:
    """Arranges the devices, by default all, in a grid: CPUs in their order, GPUs by id, TPUs along their wires.

    The last axes should be those with the most communication: they get the best connections. In a grid with
    `contiguous_submeshes` the devices of each host are contiguous; with `allow_split_physical_axes` an axis of the
    TPUs' torus may be split between several axes. Raises ValueError if the number of devices is not the product of
    `mesh_shape`, or hosts cannot be contiguous; NotImplementedError if the torus does not have the axes;
    AssertionError if the TPUs do not fill one.

    Example:
        >>> jax.experimental.mesh_utils.create_device_mesh((1, 1), jax.devices()[:1]).shape
        (1, 1)
    """
    shape = tuple(int(n) for n in mesh_shape)
    all_devices = client.devices() if devices is None else devices
    if len(all_devices) != math.prod(shape):
        raise ValueError(f"Number of devices {len(all_devices)} must equal the product of mesh_shape {shape}")
    if not len(all_devices):
        return np.empty(shape, object)
    return device_order.arranged(shape, all_devices, contiguous_submeshes, allow_split_physical_axes)


def create_hybrid_device_mesh(
    mesh_shape: Sequence[int],
    dcn_mesh_shape: Sequence[int],
    devices: Sequence[Any] | None = None,
    *,
    process_is_granule: bool = False,
    should_sort_granules_by_key: bool = True,
    allow_split_physical_axes: bool = False,
) -> np.ndarray:
    """Arranges devices in a grid of grids: `mesh_shape` within a process or slice, `dcn_mesh_shape` over those.

    Raises ValueError if the number of processes or slices is wrong, or devices have no `slice_index`.

    Example:
        >>> from minijax.experimental import mesh_utils
        >>> mesh_utils.create_hybrid_device_mesh((1,), (1,), jax.devices()[:1], process_is_granule=True).shape
        (1,)
    """
    kind = "process_index" if process_is_granule else "slice_index"
    granules: dict[int, list] = {}
    for device in client.devices() if devices is None else devices:
        if not hasattr(device, kind):
            raise ValueError(f"Device {device} does not have attribute {kind}. See `process_is_granule` option.")
        granules.setdefault(getattr(device, kind), []).append(device)
    order = sorted(granules) if should_sort_granules_by_key else granules
    if len(granules) != math.prod(dcn_mesh_shape):
        raise ValueError(
            f"Number of slices {len(granules)} must equal the product of dcn_mesh_shape {tuple(dcn_mesh_shape)}"
        )
    split = allow_split_physical_axes
    grids = iter([create_device_mesh(mesh_shape, granules[g], allow_split_physical_axes=split) for g in order])
    blocks = np.empty(tuple(dcn_mesh_shape), object)
    for place in np.ndindex(*dcn_mesh_shape):
        blocks[place] = next(grids)
    return np.block(blocks.tolist())


def get_mesh() -> Mesh:
    """Returns the mesh that `jax.set_mesh` set in this thread, or an empty one. Raises ValueError during tracing.

    Example:
        >>> with jax.set_mesh(jax.make_mesh((1,), ("i",))):
        ...     jax.sharding.get_mesh().shape
        OrderedDict([('i', 1)])
    """
    if not state.is_eager():
        raise ValueError(
            "`get_mesh` can only be used outside of `jax.jit`. Maybe you want `jax.sharding.get_abstract_mesh()`?"
        )
    return meshes.context_mesh() or meshes.empty_mesh()


def get_abstract_mesh() -> AbstractMesh:
    """Returns the context mesh without its devices: names, sizes and types of axes. It works during tracing, too.

    Example:
        >>> with jax.set_mesh(jax.make_mesh((1,), ("i",))):
        ...     jax.jit(lambda: print(jax.sharding.get_abstract_mesh().axis_names))()
        ('i',)
    """
    return meshes.abstract_context() or empty_abstract_mesh


def make_single_device_sharding(device: Any, *, memory_kind: str | None = None) -> SingleDeviceSharding:
    """Creates the sharding that places an array on one device, in the memory of `memory_kind` if that is given.

    Example:
        >>> jax.sharding.make_single_device_sharding(jax.devices()[0]).device_set == {jax.devices()[0]}
        True
    """
    return SingleDeviceSharding(device, memory_kind=memory_kind)


def reshard(xs: Any, out_shardings: Any) -> Any:
    """Reshards arrays over Explicit mesh axes, as their types shall state it.

    `out_shardings` are shardings, or specs on the context mesh, or a pytree prefix of them. On a mesh without Explicit
    axes it does nothing; use `jax.lax.with_sharding_constraint` there.

    Example:
        >>> mesh = jax.make_mesh((1,), ("i",))
        >>> jax.typeof(jax.reshard(jnp.ones((2, 3)), jax.NamedSharding(mesh, jax.P(None, "i"))))
        ShapedArray(float32[2,3@i])
    """
    leaves, treedef = tree.flatten(xs)
    shardings = tree.flatten_axes("reshard out_shardings", treedef, out_shardings)
    shardings = [_explicit(s) for s in shardings]
    return treedef.unflatten([reshard_in_types(x, s) for x, s in zip(leaves, shardings, strict=True)])


def _explicit(sharding: Any) -> NamedSharding:
    if sharding is None:
        raise ValueError(
            "Reshard should only be used with out_shardings which are non-None and have a non-empty mesh. "
            "Got sharding None."
        )
    sharding = named_sharding("reshard", sharding)
    check_explicit("reshard", sharding)
    return sharding


def auto_axes(
    f: Callable | None = None, /, *, axes: str | tuple[str, ...] | None = None, out_sharding: Any = None
) -> Any:
    """Returns `f` with the mesh axes `axes` (None: all) as Auto inside it; its results are sharded as `out_sharding`.

    Raises TypeError if that is given neither here nor in the call.

    Example:
        >>> mesh = jax.make_mesh((1,), ("i",))
        >>> with jax.set_mesh(mesh):
        ...     f = jax.sharding.auto_axes(jnp.sin, out_sharding=jax.P("i"))
        ...     jax.typeof(f(jnp.ones(2)))
        ShapedArray(float32[2@i])
    """
    if f is None:
        return functools.partial(auto_axes, axes=axes, out_sharding=out_sharding)

    def run(args, kwargs, out_sharding, outer, inner):
        if inner == outer:
            return f(*args, **kwargs)
        with meshes.use_abstract_mesh(inner):
            args, kwargs = drop_auto_axes((args, kwargs), inner, outer)
            results = f(*args, **kwargs)
        with meshes.use_abstract_mesh(outer):
            return _reshard_over(outer, results, "auto_axes", "out_sharding", out_sharding, inner)

    return _under_axes(f, axes, AxisType.Auto, run, "out_sharding", out_sharding)


def explicit_axes(
    f: Callable | None = None, /, *, axes: str | tuple[str, ...] | None = None, in_sharding: Any = None
) -> Any:
    """Returns `f` with the mesh axes `axes` (None: all) as Explicit inside it; arguments are sharded as `in_sharding`.

    Raises TypeError if that is given neither here nor in the call.

    Example:
        >>> mesh = jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
        >>> with jax.set_mesh(mesh):
        ...     f = jax.sharding.explicit_axes(lambda x: print(jax.typeof(x)), in_sharding=jax.P("i"))
        ...     jax.jit(f)(jnp.ones(2))
        float32[2@i]
    """
    if f is None:
        return functools.partial(explicit_axes, axes=axes, in_sharding=in_sharding)

    def run(args, kwargs, in_sharding, outer, inner):
        with meshes.use_abstract_mesh(inner):
            results = f(*_reshard_over(inner, args, "explicit_axes", "in_sharding", in_sharding), **kwargs)
        with meshes.use_abstract_mesh(outer):
            return drop_auto_axes(results, outer, inner)

    return _under_axes(f, axes, AxisType.Explicit, run, "in_sharding", in_sharding)


def _under_axes(f: Callable, axes: Any, kind: AxisType, run: Callable, argument: str, default: Any) -> Callable:
    """Returns `f` as `run(args, kwargs, shardings, outer mesh, inner mesh)`; on the inner mesh, `axes` are of a type.

    The shardings are the keyword `argument` of a call, or the default. Without any mesh, `f` is called directly.
    """

    @wrapping(f)
    def wrapped(*args, **kwargs):
        shardings = kwargs.pop(argument, default)
        if shardings is None:
            raise TypeError(f"Missing required keyword argument: {argument!r}")
        mesh = _mesh_of(args, kwargs, shardings)
        if mesh is None:
            return f(*args, **kwargs)
        return run(args, kwargs, shardings, mesh, _with_axes(mesh, axes, kind))

    return wrapped


def _mesh_of(args: tuple, kwargs: dict, shardings: Any) -> AbstractMesh | None:
    """Returns the context mesh, else the mesh of the first sharding or argument type that has one."""
    mesh = meshes.abstract_context()
    if mesh is not None:
        return mesh
    for s in tree.tree_leaves(shardings):
        if isinstance(s, NamedSharding):
            return s.mesh.abstract_mesh
    for x in tree.tree_leaves((args, kwargs)):
        if is_value(x) and (have := typeof(x).own_sharding) is not None:
            return have.mesh
    return None


def _with_axes(mesh: AbstractMesh, axes: Any, kind: AxisType) -> AbstractMesh:
    names = mesh.axis_names if axes is None else (axes,) if isinstance(axes, str) else axes
    if unknown := [n for n in names if n not in mesh.axis_names]:
        raise KeyError(f"{unknown} are not axes of {mesh}")
    if manual := [n for n in names if n in mesh.manual_axes]:
        raise NotImplementedError(
            f"Going from `Manual` AxisType to `Auto` or `Explicit` AxisType is not allowed: {manual} of {mesh}"
        )
    return mesh.update_axis_types(dict.fromkeys(names, kind))


def _reshard_over(
    mesh: AbstractMesh, values: Any, function: str, argument: str, prefix: Any, src: AbstractMesh | None = None
) -> Any:
    """Reshards the leaves of `values` over Explicit axes of `mesh`; `prefix` is a tree prefix of shardings.

    `src` is the mesh of the values if it is not the context mesh.
    """
    leaves, treedef = tree.flatten(values)
    shardings = [named_sharding(function, s) for s in tree.flatten_axes(f"{function} {argument}", treedef, prefix)]
    pairs = zip(leaves, shardings, strict=True)
    return treedef.unflatten([reshard_in_types(x, NamedSharding(mesh, s.spec), src) for x, s in pairs])
