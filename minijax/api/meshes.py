"""Making meshes, and asking for the one that is set."""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.api.transfer import device_put
from minijax.base import tree
from minijax.ir import meshes, state
from minijax.ir.meshes import AbstractMesh, AxisType, Mesh, P, axes_of
from minijax.ir.shardings import NamedSharding, SingleDeviceSharding, empty_abstract_mesh
from minijax.ir.types import typeof
from minijax.ops.sharding import with_sharding_constraint
from minijax.run import client


def make_mesh(
    axis_shapes: Sequence[int],
    axis_names: Sequence[str],
    axis_types: tuple[AxisType, ...] | None = None,
    *,
    devices: Sequence[Any] | None = None,
) -> Mesh:
    """A mesh of the first devices, by default of the default backend.

    Its axes are Explicit by default, as jax's; types do not name shardings yet, so they behave as Auto ones.
    Raises ValueError if there are too few devices.
    """
    shape = tuple(axis_shapes)
    found = client.devices() if devices is None else list(devices)
    if len(found) < math.prod(shape):
        raise ValueError(f"Number of devices {len(found)} must be >= the product of mesh_shape {shape}")
    kinds = (AxisType.Explicit,) * len(shape) if axis_types is None else axis_types
    grid = np.array(found[: math.prod(shape)], dtype=object).reshape(shape)
    return Mesh(grid, tuple(axis_names), kinds)


def get_mesh() -> Mesh:
    """The mesh that `jax.set_mesh` made this thread's, or an empty one. Raises ValueError while tracing."""
    if not state.is_eager():
        raise ValueError(
            "`get_mesh` can only be used outside of `jax.jit`. Maybe you want "
            "`jax.sharding.get_abstract_mesh()`?"
        )
    return meshes.context_mesh() or meshes.empty_mesh()


def get_abstract_mesh() -> AbstractMesh:
    """The mesh that is set, without its devices."""
    mesh = meshes.context_mesh()
    return empty_abstract_mesh if mesh is None else mesh.abstract_mesh


def make_single_device_sharding(device: Any, *, memory_kind: str | None = None) -> SingleDeviceSharding:
    """The whole array on one device."""
    return SingleDeviceSharding(device, memory_kind=memory_kind)


def reshard(xs: Any, out_shardings: Any) -> Any:
    """The leaves of `xs` over explicit axes of a mesh, by shardings or specs on the mesh that is set.

    On a mesh without explicit axes nothing moves. Raises ValueError for axes of other kinds.
    """
    leaves, treedef = tree.flatten(xs)
    wanted = tree.flatten_axes("reshard out_shardings", treedef, out_shardings)
    wanted = [_explicit(s) for s in wanted]
    return treedef.unflatten([_laid(x, s) for x, s in zip(leaves, wanted, strict=True)])


def _explicit(sharding: Any) -> NamedSharding:
    sharding = _named(sharding)
    kinds = sharding.mesh._name_to_type
    for name in [name for entry in sharding.spec for name in axes_of(entry)]:
        if kinds[name] is not AxisType.Explicit:
            raise ValueError(
                "PartitionSpec passed to reshard cannot contain axis names that are of type Auto or Manual. "
                f"Got PartitionSpec: {sharding.spec} with axis name: {name} of type: {kinds[name]!s}."
            )
    return sharding


def _named(sharding: Any) -> NamedSharding:
    if isinstance(sharding, P):
        mesh = meshes.context_mesh()
        if mesh is None:
            raise ValueError(
                "Using PartitionSpec when you are not under a mesh context is not allowed. Please pass a "
                f"NamedSharding instance or enter into a mesh context via `jax.set_mesh`. Got {sharding}"
            )
        return NamedSharding(mesh, sharding)
    if sharding is None:
        raise ValueError(
            "Reshard should only be used with out_shardings which are non-None and have a non-empty mesh. "
            "Got sharding None."
        )
    if not isinstance(sharding, NamedSharding):
        raise TypeError(
            "`out_sharding` argument of reshard only supports instances of `NamedSharding` or "
            f"`PartitionSpec`. Got {sharding} of type: {type(sharding)}"
        )
    return sharding


def _laid(x: Any, sharding: NamedSharding) -> Any:
    if not sharding.mesh.explicit_axes:
        return x
    sharding = sharding.update(spec=sharding.spec.padded(typeof(x).ndim))
    return device_put(x, sharding) if state.is_eager() else with_sharding_constraint(x, sharding)


def auto_axes(f: Callable | None = None, /, *, axes: Any = None, out_sharding: Any = None) -> Any:
    """`f`, in which the compiler lays values out; its results lie over explicit axes as `out_sharding` says.

    Raises TypeError if that is given neither here nor in the call.
    """
    if f is None:
        return functools.partial(auto_axes, axes=axes, out_sharding=out_sharding)

    @functools.wraps(f)
    def wrapped(*args, out_sharding=out_sharding, **kwargs):
        if out_sharding is None:
            raise TypeError("Missing required keyword argument: 'out_sharding'")
        leaves, treedef = tree.flatten(f(*args, **kwargs))
        if meshes.context_mesh() is None and isinstance(out_sharding, P):
            return treedef.unflatten(leaves)
        wanted = tree.flatten_axes("auto_axes out_sharding", treedef, out_sharding)
        return treedef.unflatten([_laid(x, _named(s)) for x, s in zip(leaves, wanted, strict=True)])

    return wrapped
