"""Making meshes, and asking for the one that is set."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.ir import meshes, state
from minijax.ir.meshes import AbstractMesh, AxisType, Mesh
from minijax.ir.shardings import empty_abstract_mesh
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
