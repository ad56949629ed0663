"""Exported programs, and calls of them."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.api.custom import custom_vjp
from minijax.api.export import serialized
from minijax.api.export.checks import DisabledSafetyCheck
from minijax.base import source, tree
from minijax.calls.call_exported import call_exported_p, check_types
from minijax.ir.effects import Effect
from minijax.ir.types import ShapedArray, typeof
from minijax.partition.meshes import AbstractMesh, Mesh, PartitionSpec
from minijax.partition.shardings import NamedSharding, Sharding, empty_abstract_mesh
from minijax.run.programs import portable


@dataclasses.dataclass(frozen=True)
class Exported:
    """Holds a program that can be serialized and run by other processes; `jax.export.export` creates it.

    `mlir_module_serialized` is a portable artifact; `module_kept_var_idx` are the numbers of the flat arguments that
    it takes. Shardings that are None were not specified; `_in_named_shardings` are over abstract meshes.

    Example:
        >>> exported = jax.export.export(jax.jit(jnp.sin))(jax.ShapeDtypeStruct((2,), jnp.float32))
        >>> exported.in_avals, exported.call(jnp.zeros(2))
        ((ShapedArray(float32[2]),), Array([0., 0.], dtype=float32))
    """

    fun_name: str
    in_tree: tree.PyTreeDef
    in_avals: tuple[ShapedArray, ...]
    out_tree: tree.PyTreeDef
    out_avals: tuple[ShapedArray, ...]
    _has_named_shardings: bool
    _in_named_shardings: tuple[NamedSharding | None, ...]
    _out_named_shardings: tuple[NamedSharding | None, ...]
    in_shardings_hlo: tuple[Any, ...]
    out_shardings_hlo: tuple[Any, ...]
    nr_devices: int
    platforms: tuple[str, ...]
    ordered_effects: tuple[Effect, ...]
    unordered_effects: tuple[Effect, ...]
    disabled_safety_checks: Sequence[DisabledSafetyCheck]
    mlir_module_serialized: bytes
    calling_convention_version: int
    module_kept_var_idx: tuple[int, ...]
    uses_global_constants: bool
    _get_vjp: Callable[["Exported"], "Exported"] | None

    def __str__(self):
        return f"Exported(fun_name={self.fun_name}, ...)"

    def mlir_module(self, serialized: bool = True) -> Any:
        """The program's StableHLO as text with locations; unless `serialized`, as an MLIR module."""
        artifact = self.mlir_module_serialized
        return portable.text_of(artifact) if serialized else portable.module_of(artifact)

    def in_shardings_jax(self, mesh: Mesh | AbstractMesh) -> Sequence[Sharding | None]:
        """The shardings of the flat arguments, over a mesh with the axes of the exported one."""
        return tuple([_with_mesh(mesh, s) for s in self._in_named_shardings])

    def out_shardings_jax(self, mesh: Mesh | AbstractMesh) -> Sequence[Sharding | None]:
        """As `in_shardings_jax`, for the results."""
        return tuple([_with_mesh(mesh, s) for s in self._out_named_shardings])

    def has_vjp(self) -> bool:
        """Returns whether the program has a reverse derivative."""
        return self._get_vjp is not None

    def vjp(self) -> "Exported":
        """The program (flat arguments, cotangents of results) -> cotangents of arguments.

        Raises ValueError if the program was serialized without it.
        """
        if self._get_vjp is None:
            raise ValueError(f"No VJP is available for {self.fun_name}: it was serialized with too low a vjp_order")
        return self._get_vjp(self)

    def serialize(self, vjp_order: int = 0) -> bytearray:
        """The program as bytes in jax's format, with derivatives up to that order.

        Raises ImportError without the package flatbuffers, ValueError if such derivatives do not exist, or if trees
        hold types of nodes without a serialization.
        """
        return serialized.serialize(self, vjp_order)

    @source.boundary
    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the program; under a trace, as an operation. It has a reverse derivative, and no other rules.

        Raises ValueError for arguments of another tree, or of other shapes or dtypes, than the function was exported
        with, and if the program cannot run on the platform or on the number of devices.
        """
        leaves, in_tree = tree.flatten((args, kwargs))
        if in_tree != self.in_tree:
            raise ValueError(_different_trees(self, (args, kwargs)))
        check_types(self, [typeof(x) for x in leaves])
        return self.out_tree.unflatten(_differentiable(self)(*leaves))


def deserialize(blob: bytes | bytearray) -> Exported:
    """Reads an exported program from the bytes that `Exported.serialize` returned, here or in jax.

    Raises ValueError for bytes that are damaged or of a version that is not supported.

    Example:
        >>> blob = jax.export.export(jax.jit(lambda x: 2 * x))(1.0).serialize()
        >>> jax.export.deserialize(blob).call(3.0)
        Array(6., dtype=float32)
    """
    return serialized.deserialize(blob, Exported)


def _differentiable(exported: Exported) -> Callable[..., Any]:
    """The program as a function of leaves, whose reverse derivative is `exported.vjp()`."""

    def f_flat(*leaves):
        return call_exported_p.bind(*leaves, exported=exported)

    def f_flat_vjp_fwd(*leaves):
        return custom(*leaves), leaves

    def f_flat_vjp_bwd(leaves, out_cts):
        return tuple(exported.vjp().call(*leaves, *out_cts))

    custom = custom_vjp(f_flat)
    custom.defvjp(f_flat_vjp_fwd, f_flat_vjp_bwd)
    return custom


def _different_trees(exported: Exported, called: tuple) -> str:
    wanted = exported.in_tree.unflatten([0] * exported.in_tree.num_leaves)
    lines = []
    for path, one, two, reason in tree.equality_errors(called, wanted):
        where = f"{('args', 'kwargs')[path[0].idx]}{tree.keystr(path[1:])}" if path else "(args, kwargs)"
        lines.append(f"   - {where} is {one} in the invocation and {two} when exported, so {reason}.\n")
    return (
        "The invocation args and kwargs must have the same pytree structure as when the function "
        f"'{exported.fun_name}' was exported, but they have the following structural differences:\n{''.join(lines)}"
    )


def _with_mesh(mesh: Mesh | AbstractMesh, sharding: NamedSharding | None) -> NamedSharding | None:
    """A sharding over an abstract mesh, moved to this mesh. Raises ValueError if the axes or sizes differ."""
    if sharding is None:
        return None
    if mesh.shape_tuple != sharding.mesh.shape_tuple:
        raise ValueError(f"NamedSharding new mesh {mesh} does not match the mesh used for export {sharding.mesh}.")
    return sharding.update(mesh=mesh)


def abstract_sharding(sharding: Sharding | None, ndim: int, mesh: Mesh | AbstractMesh | None) -> NamedSharding | None:
    """The sharding over an abstract mesh; replicated values get `mesh`, that of the program."""
    if sharding is None:
        return None
    kind = sharding.memory_kind
    if isinstance(sharding, NamedSharding):
        abstract = sharding.mesh if isinstance(sharding.mesh, AbstractMesh) else sharding.mesh.abstract_mesh
        return NamedSharding(abstract, sharding.spec, memory_kind=kind)
    grid: np.ndarray | None = None if sharding.is_fully_replicated else getattr(sharding, "grid", None)
    if grid is not None:
        axes = {f"_axis_{i}": n for i, n in enumerate(grid.shape) if n > 1}
        spec = [f"_axis_{i}" if n > 1 else None for i, n in enumerate(grid.shape[:ndim])]
        while spec and spec[-1] is None:
            spec.pop()
        return NamedSharding(AbstractMesh(tuple(axes.values()), tuple(axes)), PartitionSpec(*spec), memory_kind=kind)
    if mesh is not None and mesh.size > 1:
        return NamedSharding(mesh.abstract_mesh, PartitionSpec(), memory_kind=kind)
    return NamedSharding(empty_abstract_mesh, PartitionSpec(*[None] * ndim), memory_kind=kind)
