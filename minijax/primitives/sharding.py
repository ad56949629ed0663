"""Sharding and layout constraints, and resharding in types."""

from collections.abc import Callable, Sequence
from typing import Any, cast

from minijax.base import source, tree
from minijax.hlo.shardy import constraining
from minijax.ir import state
from minijax.ir.primitive import Linear1
from minijax.ir.types import ShapedArray, is_value, typeof
from minijax.partition import meshes
from minijax.partition.explicit import batched_spec, check_even, check_rank, joined_entry, restrict, sharding_in_type
from minijax.partition.layouts import Format, Layout, check_layout
from minijax.partition.meshes import UNCONSTRAINED, AbstractMesh, AxisType, Mesh, P, axes_of
from minijax.partition.shardings import DuplicateSpecError, NamedSharding, Sharding, check_sharding_of_type, unsharded
from minijax.run.arrays import transfer
from minijax.run.arrays.array import ArrayImpl
from minijax.run.arrays.reshard import check_complex_unreduced


class ShardingConstraint(Linear1):
    """Constrains a value to `sharding`, except in `unconstrained_dims`."""

    name = "sharding_constraint"
    same_memory_space = False
    constrain_results = False

    def infer(self, x, *, sharding, layout, context_mesh, unconstrained_dims):
        sharding.check_compatible_aval(x.shape)  # inside a program XLA pads axes that are not divisible
        return [x]

    def lower(self, e, ins, outs, x, *, sharding, layout, **params):
        x = e.sharding_constraint(x, ins[0], _with_explicit_axes(sharding, ins[0]))
        return [x] if layout is None else emit_layout_constraint(e, x, ins[0], layout)

    def transposed(self, ct, aval, **params):
        return self.bind(ct, **params)

    def batch(self, axis, operands, dims, *, sharding, layout, unconstrained_dims, **params):
        (x,), (d,) = operands, dims
        names = () if axis.spmd_name is None else axes_of(axis.spmd_name)
        wider = with_batch_dim(sharding, d, names, UNCONSTRAINED, "with_sharding_constraint")
        unconstrained = {i + (i >= d) for i in unconstrained_dims} | (set() if names else {d})
        layout = layout and with_batch_axis(layout, d)
        return [self.bind(x, sharding=wider, layout=layout, unconstrained_dims=frozenset(unconstrained), **params)], [d]

    def shardings(self, params):
        return (params["sharding"],)


def _with_explicit_axes(sharding: Sharding, aval: ShapedArray) -> Sharding:
    """A sharding over Auto axes of a mesh; the Explicit axes of a type come before them in each entry."""
    if not aval.has_mesh or not isinstance(sharding, NamedSharding):
        return sharding
    entries = zip(aval.entries, sharding.spec.padded(aval.ndim), strict=True)
    joined = [auto if auto is UNCONSTRAINED else joined_entry(explicit, auto) for explicit, auto in entries]
    return sharding.update(spec=sharding.spec.update(partitions=joined))


class Reshard(Linear1):
    """Reshards a value to `dst_sharding` over the Explicit axes of its mesh.

    `src_mesh`: the mesh of an operand that XLA shards, whose type need not have a mesh; also that of its cotangent.
    """

    name = "reshard"
    constrain_results = False  # the context mesh is another one if axes become Auto or Explicit
    same_memory_space = False

    def infer(self, x, *, dst_sharding, **meshes):
        check_even(x.shape, dst_sharding)
        return [x.update(sharding=sharding_in_type(dst_sharding, x.ndim))]

    def lower(self, e, ins, outs, x, *, dst_sharding, **meshes):
        mesh = constraining(dst_sharding.mesh)
        if e.num_partitions == 1 or mesh is None or (e.manual is not None and e.explicit is None):
            return [x]
        check_complex_unreduced(ins[0], outs[0])
        return [e.constrained(x, ins[0], e.meshes.type_sharding_text(mesh, outs[0]))]

    def transposed(self, ct, aval, *, dst_sharding, concrete_mesh, src_mesh=None):
        if aval.has_mesh:
            return reshard_like(ct, aval)
        if src_mesh is None:
            return self.bind(ct, dst_sharding=unsharded(aval.ndim), concrete_mesh=None)
        if state.is_eager() and type(ct) is ArrayImpl:
            return _drop_auto_axes(ct, src_mesh, dst_sharding.mesh)
        replicated = NamedSharding(src_mesh, P(*[None] * aval.ndim))
        return self.bind(ct, dst_sharding=replicated, concrete_mesh=None, src_mesh=dst_sharding.mesh)

    def batch(self, axis, operands, dims, *, dst_sharding, **meshes):
        (x,), (d,) = operands, dims
        names = axes_of(axis.explicit_mesh_axis)
        wider = with_batch_dim(dst_sharding, d, names, None)
        return [self.bind(x, dst_sharding=wider, **meshes)], [d]

    def shardings(self, params):
        return (params["dst_sharding"],)

    def show_params(self, eqn):
        return []


reshard_p = Reshard()


def reshard_like(x: Any, aval: Any) -> Any:
    """`x`, resharded to the sharding of the type `aval`."""
    have = typeof(x)
    if type(aval) is not ShapedArray or have.own_sharding == aval.own_sharding:
        return x
    if aval.has_mesh:
        return reshard_p.bind(x, dst_sharding=aval.own_sharding, concrete_mesh=None)
    if not any(have.reduction_state) and not any(have.entries):
        return x
    replicated = have.own_sharding.update(spec=P(*[None] * have.ndim))
    return reshard_p.bind(x, dst_sharding=replicated, concrete_mesh=None)


def replicated_over_mesh(x: Any, sharding: NamedSharding | None) -> Any:
    """A scalar constant, replicated over the mesh of `sharding`."""
    if sharding is None or not sharding.mesh.explicit_axes:
        return x
    return reshard_p.bind(x, dst_sharding=sharding.update(spec=P()), concrete_mesh=None)


class LayoutConstraint(Linear1):
    """Constrains the order of a value's axes in memory."""

    name = "layout_constraint"

    def infer(self, x, *, layout):
        return [x]

    def at_once(self, x, *, layout):
        x = transfer.to_device(x)
        return [transfer.to_device(x, Format(layout, x.sharding))]

    def lower(self, e, ins, outs, x, *, layout):
        return emit_layout_constraint(e, x, ins[0], layout)

    def transposed(self, ct, aval, *, layout):
        return self.bind(ct, layout=layout)

    def batch(self, axis, operands, dims, *, layout):
        return [self.bind(operands[0], layout=with_batch_axis(layout, dims[0]))], list(dims)


def with_batch_axis(layout: Layout, dim: int) -> Layout:
    """The layout that jax gives batched values, with one more axis."""
    order = [i + 1 for i in layout.major_to_minor]
    return Layout((*order[:dim], 0, *order[dim:]))


def emit_layout_constraint(e: Any, x: Any, aval: Any, layout: Layout) -> list:
    """Emits a layout constraint."""
    order = [list(reversed(layout.major_to_minor))]
    how = dict(api_version=1, operand_layouts=order, result_layouts=order)
    return e.custom_call("LayoutConstraint", [x], [aval], [aval], **how)


layout_constraint_p = LayoutConstraint()


def with_layout_constraint(x: Any, layouts: Any) -> Any:
    """Constrains the memory layouts of the values of `x` to `layouts`, a prefix of its tree.

    Raises ValueError for a leaf that is not a concrete layout, or a layout of another rank than its value.
    """
    leaves, treedef = tree.flatten(x)
    orders = tree.flatten_axes("with_layout_constraint layouts", treedef, layouts)
    if wrong := [type(order) for order in orders if not isinstance(order, Layout)]:
        raise ValueError(f"layouts passed to `with_layout_constraint` must be of type `Layout`. Got {wrong}")
    for leaf, order in zip(leaves, orders, strict=True):
        check_layout(order, typeof(leaf), "with_layout_constraint arguments")
    pairs = zip(leaves, orders, strict=True)
    return treedef.unflatten([layout_constraint_p.bind(leaf, layout=order) for leaf, order in pairs])


def with_batch_dim(sharding: Sharding, dim: int, names: tuple, free: Any, function: str = "") -> Sharding:
    """The sharding of values with one more dimension, sharded over the mesh axes `names`, or the entry `free` if none.

    Raises ValueError if the mesh axes are in use already; `function` names the user's function in messages.
    """
    if not isinstance(sharding, NamedSharding):
        if function and names:
            raise ValueError(
                "If you are using spmd_axis_name parameter of jax.vmap, please make sure to run your jitted function "
                f"inside the mesh context manager, and {function} with a NamedSharding: got {sharding}"
            )
        return sharding
    if function and any(n in sharding.spec.mesh_axes for n in names):
        raise ValueError(f"vmap spmd_axis_name {names} cannot appear in {function} spec, but got spec {sharding.spec}")
    return sharding.update(spec=batched_spec(sharding.spec, dim, joined_entry(*names) if names else free))


sharding_constraint_p = ShardingConstraint()


def check_distinct_axes(argument: str, spec: P) -> None:
    """Raises DuplicateSpecError for a partition spec that uses a mesh axis twice."""
    for i, axis in enumerate(spec.mesh_axes):
        if axis in spec.mesh_axes[:i]:
            raise DuplicateSpecError(
                f"A single {argument} specification can map every mesh axis to at most one positional dimension, "
                f"but {spec} has duplicate entries for `{axis}`"
            )


def concrete_sharding(function: str, argument: str, spec: Any) -> Sharding:
    """A sharding, or a spec on the context mesh (in constraints and `pjit`: the one of `with mesh:`), as a sharding.

    Raises TypeError for anything else, RuntimeError for a spec without a context mesh.
    """
    if isinstance(spec, Sharding):
        return spec
    if not isinstance(spec, P):
        raise TypeError(
            f"{argument} leaf specifications are expected to be PartitionSpec instances or None, but got {spec}"
        )
    check_distinct_axes(argument, spec)
    mesh = None if function == "pjit" else meshes.mesh_for_specs()
    if mesh is None and function in ("with_sharding_constraint", "pjit"):
        mesh = meshes.legacy_context_mesh()
    if mesh is None:
        raise RuntimeError(
            f"{function} requires a non-empty mesh in context where {argument} has PartitionSpecs, as {spec}: "
            "`jax.set_mesh` sets one, and a NamedSharding holds one"
        )
    return NamedSharding(mesh, spec)


def with_out_sharding(function: str, x: Any, out_sharding: Any) -> Any:
    """`x`, resharded over Explicit axes to the `out_sharding` that the user gave to `function`."""
    sharding = explicit_sharding(function, out_sharding)
    return x if sharding is None else reshard_in_types(x, sharding)


def reshard_in_types(x: Any, sharding: NamedSharding, src_mesh: Any = None) -> Any:
    """`x` resharded to `sharding` over its Explicit axes. `src_mesh`: the mesh of `x` if it is not the context mesh."""
    if not sharding.mesh.explicit_axes:
        return x if sharding.mesh.empty else drop_auto_axes(x, sharding.mesh.abstract_mesh, None)
    ndim = typeof(x).ndim
    check_rank(sharding, ndim)
    sharding = sharding.update(spec=sharding.spec.update(partitions=sharding.spec.padded(ndim)[:ndim]))
    check_even(typeof(x).shape, sharding)
    if state.is_eager() and not isinstance(sharding.mesh, Mesh):
        here: Any = getattr(x.sharding, "mesh", None) if type(x) is ArrayImpl else meshes.context_mesh()
        if here is not None and here.shape_tuple == sharding.mesh.shape_tuple:
            sharding = NamedSharding(Mesh(here.devices, here.axis_names, sharding.mesh.axis_types), sharding.spec)
    if state.is_eager() and isinstance(sharding.mesh, Mesh):
        return transfer.to_device(x, sharding)
    sharding = NamedSharding(sharding.mesh.abstract_mesh, sharding.spec)
    return reshard_p.bind(x, dst_sharding=sharding, concrete_mesh=None, src_mesh=src_mesh)


def explicit_sharding(function: str, out_sharding: Any) -> NamedSharding | None:
    """An argument `out_sharding`, checked; None if it names no axis.

    Raises TypeError for an argument of another type, ValueError for axes that are not Explicit, and for a spec
    without a context mesh.
    """
    if out_sharding is None:
        return None
    sharding, mesh = named_sharding(function, out_sharding), meshes.abstract_context()
    if sharding.mesh.empty:
        return None
    if mesh is not None and sharding.mesh.abstract_mesh != mesh.abstract_mesh:
        raise ValueError(f"{function}: Context mesh {mesh} should match the mesh of sharding {sharding}")
    return sharding if check_explicit(function, sharding) else None


def requested_sharding(function: str, out_sharding: Any, ndim: int | None = None) -> NamedSharding | None:
    """As `explicit_sharding`, over the abstract mesh: a parameter of an operation whose result has rank `ndim`."""
    sharding = explicit_sharding(function, out_sharding)
    if sharding is None:
        return None
    sharding = NamedSharding(sharding.mesh.abstract_mesh, sharding.spec)
    if ndim is not None:
        check_rank(sharding, ndim)
    return sharding


def cotangent_sharding(aval: ShapedArray) -> NamedSharding | None:
    """`out_sharding` for an operation whose result is a cotangent of type `aval`; None without a mesh."""
    if aval.has_mesh:
        return aval.own_sharding
    mesh = meshes.abstract_context()
    return None if mesh is None or mesh.explicit_axes else NamedSharding(mesh, P(*[None] * aval.ndim))


def with_auto_axes(function: str, compute: Callable, operands: Sequence, out_sharding: Any) -> Any:
    """`compute(*operands)` with axes that XLA shards, resharded to `out_sharding`."""
    requested = explicit_sharding(function, out_sharding)
    if requested is None:
        return compute(*operands)
    auto = requested.mesh.abstract_mesh.update_axis_types(dict.fromkeys(requested.mesh.axis_names, AxisType.Auto))
    with meshes.use_abstract_mesh(auto):
        result = compute(*drop_auto_axes(operands, auto, requested.mesh.abstract_mesh))
    return reshard_in_types(result, requested, auto)


def drop_auto_axes(values: Any, mesh: Any, outer: Any) -> Any:
    """Removes the axes that are Auto in `mesh` from the types of a tree's leaves: XLA shards over those.

    The leaves have the mesh `outer` or none; `outer` None: they may have any mesh.
    """
    return tree.tree_map(lambda x: _drop_auto_axes(x, mesh, outer) if is_value(x) else x, values)


def _drop_auto_axes(x: Any, mesh: Any, outer: Any) -> Any:
    have = typeof(x)
    if type(have) is not ShapedArray or mesh == outer:
        return x
    if not have.has_mesh:
        if state.is_eager() or outer is None:
            return x
        replicated = NamedSharding(mesh, P(*[None] * have.ndim))
        return reshard_p.bind(x, dst_sharding=replicated, concrete_mesh=None, src_mesh=outer)
    if state.is_eager() and type(x) is ArrayImpl:
        types, own = mesh._name_to_type, cast("NamedSharding", x.sharding)
        concrete: Any = own.mesh
        kinds = tuple([types[n] for n in concrete.axis_names])
        inner, spec = Mesh(concrete.devices, concrete.axis_names, kinds), own.spec
        last = max((i for i, e in enumerate(spec, 1) if e is not None), default=0)
        spec = spec if inner.explicit_axes else spec.update(spec.partitions[:last])
        return transfer.to_device(x, NamedSharding(inner, spec))
    explicit, spec = set(mesh.explicit_axes), have.own_sharding.spec
    spec = spec.update(restrict(spec, explicit), spec.unreduced & explicit, spec.reduced & explicit)
    return reshard_p.bind(x, dst_sharding=NamedSharding(mesh, spec), concrete_mesh=None)


def named_sharding(function: str, sharding: Any) -> NamedSharding:
    """A sharding, or a spec over the context mesh, as a sharding. Raises TypeError or ValueError for other values."""
    if isinstance(sharding, P):
        mesh = meshes.mesh_for_specs()
        if mesh is None:
            raise ValueError(
                f"{function}: Using PartitionSpec when you are not under a mesh context is not allowed: {sharding} "
                "needs a mesh: call `jax.set_mesh(mesh)`, or pass `NamedSharding(mesh, spec)`"
            )
        return NamedSharding(mesh, sharding)
    if not isinstance(sharding, NamedSharding):
        raise TypeError(
            f"{function}: out_sharding is a NamedSharding or a PartitionSpec, got {sharding!r} of type {type(sharding)}"
        )
    if sharding._memory_kind is None:
        return sharding
    if not isinstance(sharding.mesh, Mesh):
        raise ValueError(
            f"{function}: out_sharding as a sharding with memory_kind is not allowed, `jax.device_put` transfers to "
            f"other memories. Got {sharding}"
        )
    return NamedSharding(sharding.mesh, sharding.spec)


def check_explicit(function: str, sharding: NamedSharding) -> bool:
    """Returns whether the mesh of a sharding has Explicit axes. Raises ValueError if the spec names others."""
    kinds = dict(zip(sharding.mesh.axis_names, sharding.mesh.axis_types, strict=True))
    for axis in sharding.spec.mesh_axes:
        if kinds[axis] is not AxisType.Explicit:
            raise ValueError(
                f"PartitionSpec passed to {function} cannot contain axis names that are of type Auto or "
                f"Manual, but in {sharding.spec} {axis!r} is {kinds[axis]!s}"
            )
    return AxisType.Explicit in sharding.mesh.axis_types


@source.boundary
def with_sharding_constraint(x: Any, shardings: Any) -> Any:
    """Constrains the shardings of the values of `x` to `shardings`, a prefix of its tree.

    Leaves are shardings, or specs on the context mesh; the compiler shards dimensions that are UNCONSTRAINED. Raises
    ValueError if a value cannot have its sharding.

    Example:
        >>> rows = jax.NamedSharding(jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Auto,)), jax.P("i"))
        >>> double = jax.jit(lambda x: jax.lax.with_sharding_constraint(2 * x, rows))
        >>> "sdy.sharding_constraint" in double.lower(jnp.ones(2)).as_text()
        True
    """
    leaves, treedef = tree.flatten(x)
    specs = tree.flatten_axes("with_sharding_constraint shardings", treedef, shardings)
    return treedef.unflatten([_constrained(leaf, s) for leaf, s in zip(leaves, specs, strict=True)])


def _assert_sharding(x: Any, sharding: NamedSharding) -> Any:
    have = typeof(x)
    if have.update(sharding=sharding_in_type(sharding, have.ndim)).normalize() != have.normalize():
        raise AssertionError(
            "`with_sharding_constraint` acts as an assert when all axes of mesh are of type `Explicit`: the value "
            f"has spec {have.sharding.spec}, not {sharding.spec.padded(have.ndim)}. `jax.sharding.reshard` changes it"
        )
    return x


def _check_mesh_of(x: Any, sharding: Sharding) -> None:
    """Raises TypeError or ValueError if an eager value is not on a mesh of the shape of the abstract one."""
    mesh = getattr(sharding, "mesh", None)
    if not isinstance(mesh, AbstractMesh):
        return
    if not isinstance(x, ArrayImpl):
        raise ValueError(
            f"with_sharding_constraint: {mesh} has no devices, which requires the input passed should be a "
            f"`jax.Array`, got {x!r} of type {type(x)}"
        )
    if not isinstance(x.sharding, NamedSharding):
        raise TypeError(
            f"with_sharding_constraint: The sharding on the input must be a `NamedSharding` where {mesh} has no "
            f"devices, got {x.sharding} of {x.aval.str_short()}"
        )
    if x.sharding.mesh.shape_tuple != mesh.shape_tuple:
        raise ValueError(
            f"with_sharding_constraint: Mesh shape of the input {x.sharding.mesh.shape_tuple} does not match the mesh "
            f"shape of the target sharding {mesh.shape_tuple} for {x.aval.str_short()}"
        )


def _check_not_manual(sharding: Sharding) -> None:
    """Raises ValueError if a constraint names axes that `shard_map` has made manual."""
    mesh = meshes.abstract_context()
    if mesh is None or not isinstance(sharding, NamedSharding):
        return
    if manual := [a for a in sharding.spec.mesh_axes if a in mesh.manual_axes]:
        raise ValueError(
            f"The spec of NamedSharding passed to with_sharding_constraint contains a manual axes, {manual}, of mesh "
            f"{mesh}: it can only refer to Auto axes of the mesh. Got spec={sharding.spec}"
        )


def _check_auto(sharding: Sharding) -> None:
    """Raises ValueError if a constraint names an Explicit axis of a mesh that also has Auto axes."""
    if isinstance(sharding, NamedSharding):
        if named := [a for a in sharding.spec.mesh_axes if a in sharding.mesh.explicit_axes]:
            raise ValueError(
                "The spec of NamedSharding passed to with_sharding_constraint can only refer to Auto axes of the mesh, "
                f"but in {sharding.spec} {named} of {sharding.mesh} are Explicit: `jax.sharding.reshard` takes those"
            )


def _constrained(x: Any, spec: Any) -> Any:
    mesh: Any = meshes.context_mesh()
    layout = None
    if isinstance(spec, Format):
        spec, layout = spec.sharding, spec.layout
        check_layout(layout, typeof(x), "with_sharding_constraint arguments")
    if spec is None:
        raise ValueError("One of with_sharding_constraint arguments got sharding None which is not allowed")
    sharding = requested = concrete_sharding("with_sharding_constraint", "shardings", spec)
    if layout is not None and state.is_eager():
        return transfer.to_device(x, Format(layout, sharding))
    unconstrained = frozenset()
    if state.is_eager() and typeof(x).memory_space is not sharding._memory_space:
        return transfer.to_device(x, sharding)
    if isinstance(sharding, NamedSharding):
        if getattr(mesh, "are_all_axes_explicit", False):
            check_sharding_of_type(sharding, typeof(x), "with_sharding_constraint arguments", evenly=False)
            return _assert_sharding(x, sharding)
        unconstrained = frozenset(i for i, entry in enumerate(sharding.spec) if entry is UNCONSTRAINED)
        if sharding is not spec and sharding.mesh is mesh:
            sharding = NamedSharding(mesh.abstract_mesh, sharding.spec)
    _check_not_manual(sharding)
    context = meshes.legacy_context_mesh() or meshes.empty_mesh() if mesh is None else mesh.abstract_mesh
    if state.is_eager():
        _check_mesh_of(x, requested)
    _check_auto(sharding)
    check_sharding_of_type(sharding, typeof(x), "with_sharding_constraint arguments", evenly=state.is_eager())
    params = dict(sharding=sharding, layout=layout, unconstrained_dims=unconstrained, context_mesh=context)
    return sharding_constraint_p.bind(x, **params)
