"""`pmap`: maps a function over an axis, with one device for each element."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, NamedTuple, ParamSpec

from minijax.api.shard_map import mapped_over
from minijax.api.stages import PjitFunction
from minijax.base import tree
from minijax.base.dims import canonical_axis
from minijax.base.source import boundary
from minijax.dispatch.jit import JitOptions
from minijax.dispatch.jitted import Arguments, Engine, Resolved, TracedFunction
from minijax.higher.shard_map import shard_map_p
from minijax.ir.body import check_callable, function_name, signature_of, wrapping
from minijax.ir.types import typeof
from minijax.partition.meshes import Mesh, P
from minijax.partition.shardings import NamedSharding
from minijax.primitives.host_local import global_to_local_p, local_to_global_p
from minijax.primitives.moving import expand_dims
from minijax.primitives.structural import squeeze
from minijax.run.arrays import transfer
from minijax.run.clients import client, distributed

_UNNAMED = "_internal_pmap_axis_name"


class _Mapping(NamedTuple):
    """The options of `pmap`."""

    fun: Callable
    axis_name: Any
    in_axes: Any
    out_axes: Any
    static: tuple[int, ...]
    devices: tuple | None
    backend: str | None
    axis_size: int | None

    @property
    def name(self) -> str:
        return function_name(self.fun)


class _Engine(Engine):
    """The engine of a `shard_map` over a mesh of one axis; eager calls reshard their arguments to its specs."""

    __slots__ = ("mapping",)

    def __init__(self, mapping: _Mapping, donated: tuple[int, ...]):
        self.mapping = mapping

        @wrapping(mapping.fun)
        def fun(*args, **kwargs):
            return _call(mapping, *args, **kwargs)

        resolved = Resolved(mapping.static, donate_nums=donated)
        super().__init__(fun, JitOptions(), resolved, "_fun", signature_of(mapping.fun), by_user=True)

    def __reduce__(self):
        return type(self), (self.mapping, self.resolved.donate_nums)

    def flatten(self, args, kwargs):
        n, static = len(args), self.mapping.static
        if any(i >= n or i < -n for i in static):
            raise ValueError(
                f"pmapped function has static_broadcasted_argnums={static} but was called with only {n} "
                f"positional argument{'s' * (n != 1)}. All static broadcasted arguments must be passed positionally. "
                f"The function is {self.mapping.name}."
            )
        call = super().flatten(args, kwargs)
        if not any(getattr(x, "shape", ()) for x in call.leaves):
            raise ValueError("pmap requires at least one argument with a mapped axis.")
        return call

    def _compile(self, operands, call):
        shardings, _ = self.shardings(self.traced(call._replace(leaves=operands)), call)
        to_move = [_is_on_other_devices(x, s) for x, s in zip(operands, shardings, strict=True)]
        if not any(to_move):
            return super()._compile(operands, call)

        def resharded(operands):
            rows = zip(operands, shardings, to_move, strict=True)
            return [transfer.to_device(x, s) if moves else x for x, s, moves in rows]

        run = super()._compile(resharded(operands), call)
        return None if run is None else lambda operands: run(resharded(operands))

    def shardings(self, traced: TracedFunction, call: Arguments) -> tuple[tuple, tuple]:
        """Returns the shardings of arguments and results, from the specs of the traced function's `shard_map`."""
        (eqn,) = (eqn for eqn in traced.closed.eqns if eqn.primitive is shard_map_p)
        mesh, count = eqn.params["mesh"], call.treedef.num_leaves
        ins = eqn.params["in_specs"][len(eqn.invars) - count :]
        return tuple([NamedSharding(mesh, s) for s in ins]), tuple(
            [NamedSharding(mesh, s) for s in eqn.params["out_specs"]]
        )


def _is_on_other_devices(x: Any, sharding: NamedSharding) -> bool:
    """Returns whether a committed array is partitioned like `sharding`, but over other devices or in another order."""
    have, ndim = x._sig.sharding, x.ndim
    if not x._sig.committed or have._device_assignment == sharding._device_assignment:
        return False
    return client.hlo_sharding(have, ndim) == client.hlo_sharding(sharding, ndim)


Args = ParamSpec("Args")


@boundary
def pmap(
    fun: Callable[Args, Any],
    axis_name: Hashable | None = None,
    *,
    in_axes: int | None | Sequence[Any] = 0,
    out_axes: Any = 0,
    static_broadcasted_argnums: int | Iterable[int] = (),
    devices: Sequence[Any] | None = None,
    backend: str | None = None,
    axis_size: int | None = None,
    donate_argnums: int | Iterable[int] = (),
) -> Callable[Args, Any]:
    """Creates a function that maps a function over an axis of its arguments, with one device for each slice.

    The program is compiled once and runs on all devices at the same time. New programs should use `jax.shard_map`, or
    `jax.jit` with sharded arguments.

    Args:
        fun: The function of one slice.
        axis_name: A name for the axis; collectives such as `jax.lax.psum` then communicate between the devices.
        in_axes: The mapped axis of each positional argument, or None for an argument that all devices get; a pytree
            prefix is allowed. Keyword arguments are mapped over axis 0.
        out_axes: Where the mapped axis appears in the results; a pytree prefix is allowed.
        static_broadcasted_argnums: Numbers of the positional arguments that are static: hashable, and compiled in.
        devices: The devices to use, in order. By default, the first ones of the backend.
        backend: The name of a platform, such as `"cpu"`.
        axis_size: The size of the axis over all processes. By default, that of the arguments.
        donate_argnums: Numbers of the positional arguments whose memory may be used for the results.

    Returns:
        A function whose arguments and results have the mapped axis. The results are sharded over the devices.

    Raises:
        ValueError: By the returned function, if the axis is longer than the number of devices, or if sizes differ.

    Example:
        >>> double = jax.pmap(lambda x: jax.lax.psum(2 * x, "i"), axis_name="i")
        >>> double(jnp.ones((1, 3)))
        Array([[2., 2., 2.]], dtype=float32)
    """
    check_callable(fun, "jax.pmap")
    _check_axes("in_axes", in_axes)
    _check_axes("out_axes", out_axes)
    static, donated = ((n,) if isinstance(n, int) else tuple(n) for n in (static_broadcasted_argnums, donate_argnums))
    name = _UNNAMED if axis_name is None else axis_name
    chosen = None if devices is None else tuple(devices)
    if chosen == ():
        raise ValueError("'devices' argument to pmap must be non-empty, or None.")
    mapping = _Mapping(fun, name, in_axes, out_axes, static, chosen, backend, axis_size)
    mapped = PjitFunction(_Engine(mapping, donated))

    @boundary
    @wrapping(fun)
    def call(*args, **kwargs):
        if distributed.state.num_processes > 1 and len(_devices(mapping)) > 1:
            return _call_multi_process(mapped, mapping, args, kwargs)
        return mapped(*args, **kwargs)

    call.lower, call.__wrapped__ = mapped.lower, fun
    return call


def _check_axes(name: str, axes: Any) -> None:
    for axis in tree.tree_leaves(axes, is_leaf=lambda x: x is None):
        if axis is not None and type(axis) is not int:
            raise TypeError(
                f"pmap {name} must be an int, None, or (nested) container with those types as leaves, but got {axes}."
            )


def _call(mapping: _Mapping, *args: Any, **kwargs: Any) -> Any:
    """Calls the function as a `shard_map` over these arguments; static ones are passed unchanged."""
    leaves, axes, with_leaves = _split_static(mapping, args, kwargs)
    mesh = _mesh(mapping, leaves, axes)
    out_tree: Any = None
    out_specs: list = []

    def body(*xs):
        nonlocal out_tree, out_specs
        positional, by_name = with_leaves([x if a is None else squeeze(x, (a,)) for x, a in zip(xs, axes, strict=True)])
        results, out_tree = tree.flatten(mapping.fun(*positional, **by_name))
        prefix = tree.flatten_axes("pmap out_axes", out_tree, mapping.out_axes)
        out_axes = [
            None if a is None else canonical_axis(a, typeof(r).ndim + 1) for r, a in zip(results, prefix, strict=True)
        ]
        out_specs = [_spec(a, mapping.axis_name) for a in out_axes]
        return [r if a is None else expand_dims(r, (a,)) for r, a in zip(results, out_axes, strict=True)]

    in_specs = [_spec(a, mapping.axis_name) for a in axes]
    results = mapped_over(body, mesh, in_specs, lambda: out_specs, tuple(leaves))
    return out_tree.unflatten(results)


def _split_static(mapping: _Mapping, args: tuple, kwargs: dict) -> tuple[list, list, Callable[[list], tuple]]:
    """Returns the leaves of non-static arguments, the mapped axis of each, and a function from leaves to arguments."""
    static = {i % len(args): args[i] for i in mapping.static}
    leaves, treedef = tree.flatten((tuple([x for i, x in enumerate(args) if i not in static]), kwargs))

    def with_leaves(leaves):
        dynamic, by_name = treedef.unflatten(leaves)
        rest = iter(dynamic)
        return [static[i] if i in static else next(rest) for i in range(len(args))], by_name

    return leaves, _leaf_axes(mapping, leaves, treedef, len(args), static), with_leaves


def _call_multi_process(mapped: Callable, mapping: _Mapping, args: tuple, kwargs: dict) -> Any:
    """Like `mapped(...)`, with arguments and results that are this process's shards along the mapped axes."""
    leaves, axes, with_leaves = _split_static(mapping, args, kwargs)
    mesh = _mesh(mapping, leaves, axes, are_local=True)
    specs = [_spec(a, mapping.axis_name) for a in axes]
    pairs = zip(leaves, specs, strict=True)
    positional, by_name = with_leaves([local_to_global_p.bind(x, global_mesh=mesh, pspec=s) for x, s in pairs])
    results, out_tree = tree.flatten(mapped(*positional, **by_name))
    out_axes = tree.flatten_axes("pmap out_axes", out_tree, mapping.out_axes)
    parts = []
    for x, a in zip(results, out_axes, strict=True):
        spec = _spec(None if a is None else canonical_axis(a, typeof(x).ndim), mapping.axis_name)
        parts.append(global_to_local_p.bind(x, global_mesh=mesh, pspec=spec))
    return out_tree.unflatten(parts)


def _devices(mapping: _Mapping) -> dict[int, list]:
    """Returns the devices that the function may be mapped over, by process."""
    by_process: dict[int, list] = {}
    for device in mapping.devices or client.devices(mapping.backend):
        by_process.setdefault(device.process_index, []).append(device)
    return by_process


def _spec(axis: int | None, name: Any) -> P:
    return P() if axis is None else P(*[None] * axis, name)


def _leaf_axes(
    mapping: _Mapping, leaves: Sequence, treedef: Any, count: int, static: Iterable[int]
) -> list[int | None]:
    """Returns the mapped axis of each leaf."""
    _, by_name = treedef.children()
    prefix = mapping.in_axes
    if isinstance(prefix, tuple):
        prefix = tuple([a for i, a in enumerate(prefix) if i not in static] if len(prefix) == count else prefix)
    try:
        axes = tree.flatten_axes("pmap in_axes", treedef, (prefix, 0))
    except ValueError as error:
        if not by_name.num_leaves:
            raise
        raise ValueError(
            f"{error}\nin_axes is for positional arguments: each argument passed by keyword is mapped over axis 0."
        ) from None
    return [_positive_axis(mapping.name, x, a) for x, a in zip(leaves, axes, strict=True)]


def _positive_axis(name: str, x: Any, axis: int | None) -> int | None:
    if axis is None:
        return None
    ndim = typeof(x).ndim
    if ndim == 0:
        raise ValueError(
            "pmap requires at least one argument with a mapped axis. An argument of rank 0 has none: "
            f"{name} was given {typeof(x).str_short()} to map over axis {axis}."
        )
    return canonical_axis(axis, ndim)


def _mesh(mapping: _Mapping, leaves: Sequence, axes: Sequence[int | None], are_local: bool = False) -> Mesh:
    """Returns a mesh of as many devices as the mapped axes are long, equally many of each process.

    With `are_local`, the axes are only this process's shards.
    """
    sizes = {typeof(x).shape[a] for x, a in zip(leaves, axes, strict=True) if a is not None}
    if not sizes:
        raise ValueError("pmap requires at least one argument with a mapped axis.")
    name = mapping.name
    if len(sizes) > 1:
        raise ValueError(
            f"pmap got inconsistent sizes for array axes to be mapped: {sorted(sizes)}, of {name}. Slice to "
            "one size, or use None in in_axes for arguments that are not mapped."
        )
    by_process = _devices(mapping)
    size = sizes.pop() * (len(by_process) if are_local else 1)
    if mapping.axis_size not in (None, size):
        raise ValueError(f"Specified axis_size {mapping.axis_size} doesn't match received axis_size {size}.")
    count = sum(map(len, by_process.values()))
    each, rest = divmod(size, len(by_process))
    if rest or not 0 < each <= min(map(len, by_process.values())):
        raise ValueError(
            f"pmap of {name} maps over an axis of size {size}, which requires {size} logical devices, but "
            f"only {count} XLA devices are available. Map over as many, or use jax.vmap for the rest of the axis."
        )
    return Mesh([d for devices in by_process.values() for d in devices[:each]], (mapping.axis_name,))
