"""Telling the compiler how values lie on a mesh."""

from typing import Any

from minijax.base import tree
from minijax.ir import meshes
from minijax.ir.meshes import UNCONSTRAINED, AxisType, P, axes_of
from minijax.ir.shardings import NamedSharding, Sharding
from minijax.ops.moving import Linear1


class ShardingConstraint(Linear1):
    """The same value, laid out as `sharding` says but for `unconstrained_dims`."""

    name = "sharding_constraint"
    in_one_memory = False

    def infer(self, x, *, sharding, layout, context_mesh, unconstrained_dims):
        sharding.shard_shape(x.shape)
        return [x]

    def lower(self, e, ins, outs, x, *, sharding, **params):
        return [e.sharding_constraint(x, ins[0], sharding)]

    def transposed(self, ct, aval, **params):
        return self.bind(ct, **params)

    def batch(self, axis, operands, dims, *, sharding, unconstrained_dims, **params):
        (x,), (d,) = operands, dims
        names = () if axis.spmd_name is None else axes_of(axis.spmd_name)
        wider = widened(sharding, d, names, UNCONSTRAINED, "with_sharding_constraint")
        free = {i + (i >= d) for i in unconstrained_dims} | (set() if names else {d})
        return [self.bind(x, sharding=wider, unconstrained_dims=frozenset(free), **params)], [d]

    def shardings(self, params):
        return (params["sharding"],)


def widened(sharding: Sharding, dim: int, names: tuple, free: Any, function: str = "") -> Sharding:
    """The sharding of values with one more dimension, over the mesh axes `names`, or if none as `free` says.

    Raises ValueError if the mesh axes are in use already; `function` says whose sharding it is.
    """
    if not isinstance(sharding, NamedSharding):
        return sharding
    if function and any(n in axes_of(e) for e in sharding.spec for n in names):
        raise ValueError(
            f"vmap spmd_axis_name {names} cannot appear in {function} spec, but got spec {sharding.spec}"
        )
    entries = list(sharding.spec.padded(dim))
    entries.insert(dim, free if not names else names[0] if len(names) == 1 else names)
    return sharding.update(spec=sharding.spec.update(partitions=tuple(entries)))


sharding_constraint_p = ShardingConstraint()


def concrete_sharding(function: str, argument: str, spec: Any) -> Sharding:
    """A sharding, or a partition spec on the mesh that is set (a constraint also: entered), as a sharding.

    Raises TypeError for anything else, RuntimeError for a spec where no mesh is set.
    """
    if isinstance(spec, Sharding):
        return spec
    if not isinstance(spec, P):
        raise TypeError(
            f"{argument} leaf specifications are expected to be PartitionSpec instances or None, but got "
            f"{spec}"
        )
    mesh = meshes.context_mesh()
    if mesh is None and function == "with_sharding_constraint":
        mesh = meshes.entered_mesh()
    if mesh is None:
        raise RuntimeError(
            f"{function} requires a non-empty mesh in context if you are passing `PartitionSpec`s to "
            f"{argument}. You can define a context mesh via `jax.set_mesh(mesh)`. Alternatively, provide "
            f"`Sharding`s to {argument} and then the mesh context manager is not required."
        )
    return NamedSharding(mesh, spec)


def explicit_sharding(function: str, out_sharding: Any) -> None:
    """Checks an argument `out_sharding` and gives the parameter: None, since types do not name shardings.

    Raises NotImplementedError where they should: over Explicit axes of the mesh that is set.
    """
    if out_sharding is None:
        return None
    if not isinstance(out_sharding, (NamedSharding, P)):
        raise TypeError(
            f"`out_sharding` argument of {function} only supports instances of `NamedSharding` or "
            f"`PartitionSpec`. Got {out_sharding} of type: {type(out_sharding)}"
        )
    mesh = meshes.context_mesh()
    if isinstance(out_sharding, P):
        if mesh is None:
            raise ValueError(
                f"{function}: Using PartitionSpec when you are not under a mesh context is not allowed. "
                f"Pass a NamedSharding, or set a mesh with `jax.set_mesh`. Got {out_sharding}"
            )
        out_sharding = NamedSharding(mesh, out_sharding)
    found = out_sharding.mesh
    if mesh is not None and found.abstract_mesh != mesh.abstract_mesh:
        raise ValueError(
            f"Context mesh {mesh} should match the mesh of sharding {found} passed to {function}."
        )
    kinds = dict(zip(found.axis_names, found.axis_types, strict=True))
    named = [axis for entry in out_sharding.spec for axis in axes_of(entry)]
    for axis in named:
        if kinds[axis] is not AxisType.Explicit:
            raise ValueError(
                f"PartitionSpec passed to {function} cannot contain axis names that are of type Auto or "
                f"Manual. Got {out_sharding.spec} with axis name: {axis} of type: {kinds[axis]}."
            )
    if mesh is not None and named:
        raise NotImplementedError(
            f"{function}: out_sharding over Explicit mesh axes, which types do not name"
        )


def with_sharding_constraint(x: Any, shardings: Any) -> Any:
    """The values of `x`, which the compiler lays out as `shardings`, a prefix of its tree, say.

    Leaves are shardings, or specs on the mesh that is set; what a spec leaves UNCONSTRAINED the compiler
    chooses. Raises ValueError if a value cannot lie so.
    """
    leaves, treedef = tree.flatten(x)
    wanted = tree.flatten_axes("with_sharding_constraint shardings", treedef, shardings)
    return treedef.unflatten([
        _constrained(leaf, s) for leaf, s in zip(leaves, wanted, strict=True)
    ])  # fmt: skip


def _constrained(x: Any, spec: Any) -> Any:
    mesh = meshes.context_mesh()
    sharding = concrete_sharding("with_sharding_constraint", "shardings", spec)
    free = frozenset()
    if isinstance(sharding, NamedSharding):
        free = frozenset(i for i, entry in enumerate(sharding.spec) if entry is UNCONSTRAINED)
        if mesh is not None and sharding.mesh is mesh:
            sharding = NamedSharding(mesh.abstract_mesh, sharding.spec)
    return sharding_constraint_p.bind(
        x, sharding=sharding, layout=None, unconstrained_dims=free,
        context_mesh=meshes.empty_mesh() if mesh is None else mesh.abstract_mesh,
    )  # fmt: skip
