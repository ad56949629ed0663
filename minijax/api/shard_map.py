"""`shard_map` for users: functions of shards, as functions of global arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from math import prod
from typing import Any, NamedTuple, Never, NoReturn, ParamSpec, TypeVar, overload

from minijax.base import source, tree
from minijax.base.mask import Mask
from minijax.higher.eager_shard_map import EagerBody
from minijax.higher.shard_map import ManualRegion, inside, shard_map_p, varying_names
from minijax.ir import state
from minijax.ir.body import Body, Flat, function_name, signature_of, source_of, trace_flat, wrapping
from minijax.ir.hitypes import HiPspec
from minijax.ir.jaxpr import DebugInfo
from minijax.ir.refs import AbstractRef
from minijax.ir.trace import close_over, constants_to_inputs
from minijax.ir.types import ManualAxisType, ShapedArray, is_value, typeof, varying_axes
from minijax.partition import meshes
from minijax.partition.explicit import restrict, sharding_in_type
from minijax.partition.meshes import AbstractMesh, AxisType, Mesh, P, axes_of
from minijax.partition.shardings import NamedSharding
from minijax.primitives.varying import in_mesh_order, pvary_p, vary_unreduced_cast_p
from minijax.run.arrays.array import ArrayImpl


class Infer:
    """The type of `INFER`: specs are taken from the arguments' types."""

    def __repr__(self):
        return "Infer"


INFER = Infer()


class _Call(NamedTuple):
    """A call of `shard_map`."""

    fun: Callable
    region: ManualRegion
    in_specs: Any
    out_specs: Any  # or a function that returns them, called after the body is traced

    @property
    def mesh(self) -> Any:
        return self.region.mesh

    @property
    def name(self) -> str:
        return function_name(self.fun)

    @property
    def title(self) -> str:
        return f"shard_map applied to the function '{self.name}'"


Args = ParamSpec("Args")
R = TypeVar("R")


# For mypy, as the overloads of `jit`.
@overload
def shard_map(f: Callable[..., Any], /, *, in_partial: Never, **options: Any) -> Any: ...
@overload
def shard_map(
    f: Callable[Args, R], /, *, out_specs: Any, in_specs: Any = ..., mesh: Mesh | AbstractMesh | None = ...,
    axis_names: set | frozenset = ..., check_vma: bool = ...,
) -> Callable[Args, R]: ...  # fmt: skip
@overload
def shard_map(
    f: None = None, /, *, out_specs: Any, in_specs: Any = ..., mesh: Mesh | AbstractMesh | None = ...,
    axis_names: set | frozenset = ..., check_vma: bool = ...,
) -> Callable[[Callable[Args, R]], Callable[Args, R]]: ...  # fmt: skip
def shard_map(
    f: Callable | None = None,
    /,
    *,
    out_specs: Any,
    in_specs: Any = INFER,
    mesh: Mesh | AbstractMesh | None = None,
    axis_names: set | frozenset = frozenset(),
    check_vma: bool = True,
) -> Any:
    """Maps a function over the shards of its arguments, with one call for each device of a mesh.

    Inside, arrays are the shards of one device, and communication is explicit: by collectives such as `jax.lax.psum`
    over the names of the mesh axes. Outside, the arguments and results are whole arrays. Compare `jax.jit` with
    sharded arguments, where the compiler decides about communication.

    Args:
        f: The function of shards. If it is omitted, the result is a decorator with the options given.
        out_specs: A `PartitionSpec` for each result, or a pytree prefix of them: over which mesh axes the shards are
            joined along each array axis. A mesh axis that a spec omits must have equal results on its devices.
        in_specs: A `PartitionSpec` for each argument, or a pytree prefix of them: over which mesh axes each array axis
            is split. Over a mesh axis that a spec omits the argument is replicated. Over Explicit mesh axes the
            specs must be those of the arguments' types; they are inferred from these by default.
        mesh: The mesh. By default, the context mesh that `jax.set_mesh` sets.
        axis_names: The mesh axes that are Manual inside `f`. The others keep their types. By default, all.
        check_vma: Whether types state over which mesh axes a value varies. With it, gradients are efficient, and
            results that `out_specs` declares replicated are checked.

    Returns:
        A function of the same positional arguments as `f`.

    Raises:
        ValueError: By the returned function, if sizes of axes are not divisible by those of the mesh, if specs do not
            fit the trees of arguments or results, or if a result varies over an axis that its spec omits.

    See also: `jax.make_mesh`, `jax.sharding.PartitionSpec`, `jax.lax.pcast`.

    Example:
        >>> mesh = jax.make_mesh((1,), ("data",))
        >>> x = jax.device_put(jnp.arange(8.0), jax.NamedSharding(mesh, jax.P("data")))
        >>> @jax.shard_map(mesh=mesh, in_specs=jax.P("data"), out_specs=jax.P())
        ... def total(x):
        ...     return jax.lax.psum(jnp.sum(x), "data")
        >>> float(total(x))
        28.0
    """
    if f is None:
        return functools.partial(
            shard_map, out_specs=out_specs, in_specs=in_specs, mesh=mesh, axis_names=axis_names, check_vma=check_vma
        )
    if not callable(f):
        raise TypeError(f"shard_map requires a callable for its first argument, but got {f} of type {type(f)}")

    @wrapping(f)
    @source.boundary
    def wrapped(*args):
        region = ManualRegion(*_checked_mesh(mesh, axis_names), check_vma)
        return _call(_Call(f, region, in_specs, out_specs), args)

    return wrapped


@overload
def smap(
    f: Callable[Args, R], /, *, in_axes: Any = ..., out_axes: Any, axis_name: Hashable
) -> Callable[Args, R]: ...  # fmt: skip
@overload
def smap(
    f: None = None, /, *, in_axes: Any = ..., out_axes: Any, axis_name: Hashable
) -> Callable[[Callable[Args, R]], Callable[Args, R]]: ...  # fmt: skip
def smap(f: Callable | None = None, /, *, in_axes: Any = INFER, out_axes: Any, axis_name: Hashable) -> Any:
    """Maps a function over the shards of its arguments along one axis of the context mesh.

    Args:
        f: The function of shards. If it is omitted, the result is a decorator.
        in_axes: The array axis that is sharded, for each argument, as for `jax.vmap`; None: replicated.
        out_axes: The array axis along which the results are joined.
        axis_name: The mesh axis.

    Raises:
        TypeError: If `axis_name` is not one name, or `in_axes` not an int, None or a tuple.

    Example:
        >>> with jax.set_mesh(jax.make_mesh((1,), ("x",))):
        ...     x = jax.device_put(jnp.arange(3.0), jax.P("x"))
        ...     print(jax.smap(lambda x: 2 * x, in_axes=0, out_axes=0, axis_name="x")(x))
        [0. 2. 4.]
    """
    if f is None:
        return functools.partial(smap, in_axes=in_axes, out_axes=out_axes, axis_name=axis_name)
    if isinstance(axis_name, tuple | list | set | frozenset):
        raise TypeError(f"smap axis_name should be a `str` or a `Hashable`, but got {axis_name}")
    if not (in_axes is None or isinstance(in_axes, int | tuple | Infer)):
        raise TypeError(
            "smap in_axes must be an int, None, jax.sharding.Infer, or a tuple of entries corresponding to "
            f"the positional arguments passed to the function, but got {in_axes}."
        )

    def specs(which: str, axes: Any) -> Any:
        if not all(isinstance(axis, int) for axis in tree.tree_leaves(axes)):
            raise TypeError(
                f"smap {which} must be an int, None, or (nested) container with those types as leaves, but got {axes}."
            )
        return tree.tree_map(
            lambda axis: P() if axis is None else P(*[None] * axis, axis_name), axes, is_leaf=lambda x: x is None
        )

    in_specs = INFER if in_axes is INFER else specs("in_axes", in_axes)
    return shard_map(f, in_specs=in_specs, out_specs=specs("out_axes", out_axes), axis_names=frozenset((axis_name,)))


def mapped_over(fun: Callable, mesh: Mesh, in_specs: Sequence[P], out_specs: Callable[[], Any], args: tuple) -> Any:
    """As `shard_map(fun, ..., check_vma=False)(*args)`; `out_specs` is called after the body is traced."""
    context = meshes.abstract_context()
    if context is not None and context.manual_axes:
        raise ValueError(f"The context mesh {context} should match the mesh that a function is mapped over, {mesh}")
    return _call(_Call(fun, ManualRegion(mesh, frozenset(mesh.axis_names), False), tuple(in_specs), out_specs), args)


def _checked_mesh(mesh: Any, axis_names: Any) -> tuple[Any, frozenset]:
    """The mesh, by default the context mesh, and those of its axes that become manual."""
    context = meshes.abstract_context()
    if mesh is None:
        mesh = context
    elif not isinstance(mesh, Mesh | AbstractMesh):
        raise TypeError(
            f"shard_map requires a `jax.sharding.Mesh` or a `jax.sharding.AbstractMesh` instance for "
            f"its second argument, but got {mesh} of type {type(mesh)}"
        )
    if mesh is None or mesh.empty:
        raise ValueError(
            "The context mesh cannot be empty. Either use `jax.set_mesh(mesh)` to enter into a mesh "
            "context or pass a mesh to `shard_map` via the `mesh` keyword argument."
        )
    if context is not None and mesh.abstract_mesh != context:
        raise ValueError(f"The context mesh {context} should match the mesh passed to shard_map {mesh}")
    if not isinstance(axis_names, (set, frozenset)):
        raise TypeError(
            f"`axis_names` argument of shard_map should be of type `frozenset` or `set`. Got type: {type(axis_names)}"
        )
    free = frozenset(mesh.axis_names) - frozenset([n for *_, explicit in state.thread.axes for n in axes_of(explicit)])
    if not axis_names <= free:
        raise ValueError(
            f"jax.shard_map requires axis_names={frozenset(axis_names)} to be a subset of mesh.axis_names={free}"
        )
    return mesh, frozenset(axis_names or free).difference(mesh.manual_axes)


class _Operand(NamedTuple):
    """A leaf of the arguments that is sharded."""

    value: Any
    aval: Any
    spec: P
    place: int  # among all leaves

    @property
    def array_aval(self) -> Any:
        """The type of the value, or of the contents of a reference."""
        return self.aval.inner_aval if type(self.aval) is AbstractRef else self.aval


def _call(call: _Call, args: tuple) -> Any:
    leaves, in_tree = tree.flatten(args)
    mapped, operands = _operands(call, leaves, in_tree)
    local = _Local(call, in_tree, mapped, mapped.unmarked(leaves))
    body, values, specs = _traced(call, local, operands)
    captured = [*body.closed.consts, *body.captured]
    _check_captured(call, captured)
    mesh, axes, check_vma = call.region
    params = dict(in_specs=(*(P(),) * len(captured), *specs), out_specs=local.out_specs)
    params |= dict(jaxpr=constants_to_inputs(body.jaxpr), mesh=mesh, check_vma=check_vma, newly_manual_axes=axes)
    return body.out_tree.unflatten(shard_map_p.bind_all([*captured, *values], params))


def _operands(call: _Call, leaves: Sequence, in_tree: Any) -> tuple[Mask, list[_Operand]]:
    """The sharded leaves, with their specs checked, and which leaves they are: those with spec None are not sharded."""
    infer = call.in_specs is INFER
    specs = (P(),) * len(leaves) if infer else _specs("in_specs", call, in_tree, call.in_specs)
    mapped = Mask([spec is not None for spec in specs])
    for x in mapped.marked(leaves):
        if not is_value(x):
            raise TypeError(f"{call.title}: {x!r} of type {type(x)} is not a valid JAX type")
    rows = mapped.marked(zip(leaves, specs, range(len(leaves)), strict=True))
    operands = [_Operand(x, typeof(x), spec, place) for x, spec, place in rows]
    if infer:
        _check_inferable(call.region)
        operands = [x._replace(spec=_spec_of_type(call.region, x.array_aval)) for x in operands]
    else:
        _check_types(call.region, operands)
    _check_arguments(call, operands)
    return mapped, operands


def _traced(call: _Call, local: _Local, operands: Sequence[_Operand]) -> tuple[Body, list, list[P]]:
    """The body's jaxpr, the values of its inputs and their specs; an eager body may add inputs."""
    info = DebugInfo("shard_map", source_of(call.fun))
    avals = [call.region.local_aval(x.aval, x.spec) for x in operands]
    values, specs = [x.value for x in operands], [x.spec for x in operands]
    are_arrays = not any(type(x.aval) is AbstractRef or x.aval.is_high for x in operands)
    eager = EagerBody(info, call.region, values, specs) if are_arrays and state.is_eager() else None
    with inside(call.region):
        body = trace_flat(local, avals, info, close_over, trace=eager)
    return (body, values, specs) if eager is None else (body, eager.operands, eager.specs)


def _check_captured(call: _Call, captured: Sequence) -> None:
    """Raises NotImplementedError for a captured value that is sharded over Explicit axes."""
    for x in captured:
        sharding = x.sharding if isinstance(x, ArrayImpl) else typeof(x).own_sharding
        if isinstance(sharding, NamedSharding) and sharding.mesh.explicit_axes:
            raise NotImplementedError(
                f"{call.title}: Closing over inputs to shard_map where the input is sharded on `Explicit` axes is not "
                f"implemented: pass it as an argument. It is of type {typeof(x).str_short()}"
            )


def _check_inferable(region: ManualRegion) -> None:
    """Raises TypeError if a mesh axis is not Explicit, since types have no specs over others."""
    kinds = [region.mesh._name_to_type[n] for n in region.names]
    if any(kind is not AxisType.Explicit for kind in kinds):
        raise TypeError(
            "shard_map in_specs argument must be a pytree of `jax.sharding.PartitionSpec` instances, but it was "
            f"`None` when axis_names={region.axes} are of type {', '.join(f'AxisType.{k.name}' for k in kinds)}; "
            "by smap, in_axes was not specified"
        )


def _spec_of_type(region: ManualRegion, aval: Any) -> P:
    """The spec of a type over the axes of a region. Raises ValueError if other axes precede them in an entry."""
    entries = restrict(aval.entries, region.axes)
    for entry, all_axes in zip(entries, aval.entries, strict=True):
        if axes_of(all_axes)[: len(axes_of(entry))] != axes_of(entry):
            raise ValueError(f"Invalid spec: {P(*aval.entries)}: shard_map is over {region.axes}")
    return P(*entries).update(None, *(axes & region.axes for axes in aval.reduction_state))


def _check_types(region: ManualRegion, operands: Sequence[_Operand]) -> None:
    """Raises ValueError if a spec differs from the Explicit axes of an argument's type."""
    if not region.mesh.are_all_axes_explicit:
        return
    for operand in operands:
        aval, spec = operand.array_aval, operand.spec
        if aval.is_high or len(spec) > aval.ndim:
            continue
        expected = sharding_in_type(NamedSharding(region.mesh, spec), aval.ndim)
        have = P(*restrict(aval.entries, region.axes)).update(None, *aval.reduction_state)
        if have != (P(*[None] * aval.ndim) if expected is None else expected.spec):
            raise ValueError(
                f"in_specs passed to shard_map: {spec.padded(aval.ndim)} does not match the specs of the input: "
                f"{have} for arg: {aval.str_short()}. Without `in_specs` shard_map takes those of its "
                "arguments' types; use `jax.reshard` to change an argument's sharding."
            )


class _Local(Flat):
    """The function of shards, which checks its results against their specs."""

    def __init__(self, call: _Call, in_tree: Any, mapped: Mask, others: list):
        super().__init__(call.fun, in_tree)
        self.call, self.mapped, self.others = call, mapped, others  # the other leaves are passed unchanged
        self.out_specs: tuple[P, ...] = ()

    def __call__(self, *leaves):
        return super().__call__(*self.mapped.merge(self.others, leaves))

    def flattened(self, result):
        leaves, call = super().flattened(result), self.call
        specs = call.out_specs() if callable(call.out_specs) else call.out_specs
        self.out_specs = _specs("out_specs", call, self.out_tree, specs)
        return [_checked_result(call, x, spec) for x, spec in zip(leaves, self.out_specs, strict=True)]


# ---- checks -----------------------------------------------------------------------------------------


def _specs(what: str, call: _Call, treedef: Any, prefix: Any) -> tuple:
    specs = tree.flatten_axes(f"shard_map {what}", treedef, prefix)
    for spec in specs:
        if spec is None and what == "in_specs":
            continue
        if isinstance(spec, HiPspec):
            continue
        if not isinstance(spec, P):
            raise TypeError(
                f"shard_map {what} argument must be a pytree of `jax.sharding.PartitionSpec` instances, but: "
                f"{what} is {spec} of type {type(spec).__name__}"
            )
        _check_reduction_state(what, call.region, spec)
        for axis in spec.mesh_axes:
            if axis not in call.region.axes:
                raise ValueError(
                    f"shard_map {what} argument must refer to an axis marked as manual "
                    f"({call.region.axes}), but:\n\n  {what} refers to {axis!r}\n\n"
                    f"Check the {what} values passed to shard_map."
                )
    return tuple(specs)


def _check_reduction_state(what: str, region: ManualRegion, spec: P) -> None:
    """Raises for an unreduced or reduced spec unless all mesh axes are Explicit, and all become manual."""
    if not (spec.unreduced or spec.reduced):
        return
    if region.axes != frozenset(region.mesh.axis_names):
        raise NotImplementedError(
            f"unreduced/reduced can only be passed to {what} when shard_map is in full manual mode: the mesh has the "
            f"axes {region.mesh.axis_names}, of which {set(region.axes)} are manual; the spec is {spec}"
        )
    if not region.mesh.are_all_axes_explicit:
        raise ValueError(
            f"{'unreduced' if spec.unreduced else 'reduced'} in {what} {spec} can only be used when the mesh passed to "
            f"shard_map contains axis names all of type `Explicit`, unlike {region.mesh}"
        )


def _check_length(call: _Call, which: str, spec: P, aval: ShapedArray, name: str, advice: str = "") -> None:
    if len(spec) > aval.ndim:
        raise ValueError(
            f"{call.title} was given an {which}_specs entry which is too long to be compatible with the corresponding "
            f"{which}put value from the function:\n\n{which}_specs is {spec} which has length {len(spec)}, but {name}"
            f"has shape {aval.str_short()}, which has rank {aval.ndim} (and {aval.ndim} < {len(spec)}){advice}"
            f"\n\nFor scalar values (rank 0), consider using an {which}_specs entry of `P()`"
        )


_SHORTER = ". Leave out entries of the spec: there is at most one for each axis of the argument."


def _check_arguments(call: _Call, operands: Sequence[_Operand]) -> None:
    sizes, signature = call.mesh.shape, signature_of(call.fun)
    names = list(signature.parameters) if signature is not None else []
    for _, aval, spec, i in operands:
        if aval.is_high:
            continue
        whose = f"where args[{i}] is bound to {call.name}'s parameter {names[i]!r}, " if i < len(names) else ""
        _check_length(call, "in", spec, aval, f"the passed args[{i}], {whose}", _SHORTER)
        for axis, entry in enumerate(spec):
            count = prod(sizes[name] for name in axes_of(entry))
            if aval.shape[axis] % count:
                raise ValueError(
                    f"{call.title} was given argument arrays with axis sizes that are not evenly divisible by the "
                    f"corresponding mesh axis sizes:\n\nThe mesh given has shape {call.mesh.axis_sizes} with "
                    f"corresponding axis names {call.mesh.axis_names}.\n\nthe passed args[{i}] of shape "
                    f"{aval.str_short()}, {whose}corresponds to in_specs of value {spec}, which maps array axis "
                    f"{axis} (of size {aval.shape[axis]}) to mesh axis {entry!r} (of size {count}), but {count} does "
                    f"not evenly divide {aval.shape[axis]}"
                )


def _checked_result(call: _Call, x: Any, spec: P) -> Any:
    if not is_value(x):
        raise TypeError(f"{call.title} returned {x!r} of type {type(x)}, which is not a valid JAX type")
    aval = typeof(x)
    if aval.is_high:
        return x
    advice = (
        "\n\nEntries in out_specs must be of length no greater than the number of axes in the "
        "corresponding output value."
    )
    _check_length(call, "out", spec, aval, f"{call.name}(*args) ", advice)
    if not call.region.check_vma:
        return x
    own = ManualAxisType.of(axes & call.region.axes for axes in aval.manual_axis_type.sets)
    named, varies, to_cast = frozenset(spec.mesh_axes), varying_axes(aval), spec.unreduced - own.unreduced
    if not own.varying <= named | to_cast or not own.unreduced | own.reduced <= spec.unreduced | spec.reduced:
        _not_replicated(call, spec, named, varies)
    if own.reduced != spec.reduced:
        raise ValueError(
            "out_specs passed to shard_map should be equal to the reduced present on the out_aval. Got "
            f"out_specs={spec} and out_aval={aval.text}"
        )
    x = vary_unreduced_cast_p.bind(x, axes=in_mesh_order(to_cast)) if to_cast else x
    missing = tuple([n for n in call.mesh.axis_names if n in varying_names(spec, call.mesh) - varies])
    return pvary_p.bind(x, axes=missing) if missing else x


def _not_replicated(call: _Call, spec: P, named: frozenset, varies: frozenset) -> NoReturn:
    def text(axes):
        return "{" + ",".join(sorted(map(str, axes))) + "}"

    raise ValueError(
        f"{call.title} was given out_specs which require replication which can't be statically inferred given the "
        f"mesh:\n\nThe mesh given has shape {call.mesh.axis_sizes} with corresponding axis names "
        f"{call.mesh.axis_names}.\n\nout_specs is {spec} which implies that the corresponding output value is only "
        f"varying across mesh axes {text(named)} and not {text(varies - named)}, but it was inferred to be possibly "
        f"varying over {text(varies)}\n\nCheck if these output values are meant to be replicated over those mesh "
        "axes. If not, consider revising the corresponding out_specs entries. If so, consider disabling the check by "
        "passing the check_vma=False argument to `jax.shard_map`."
    )
