"""`pmap`: a function mapped over an axis, one device for each of its elements."""

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from minijax.api.shard_map import mapped_over
from minijax.api.stages import JitWrapped, Lowered
from minijax.base import cache, source, tree
from minijax.base.dims import canonical_axis
from minijax.dispatch.call import JitOptions
from minijax.dispatch.jitted import Resolved, Static
from minijax.dispatch.laid_out import shardings_of
from minijax.ir import state
from minijax.ir.body import function_name, signature_of
from minijax.ir.trace import jaxpr_as_fun
from minijax.ir.types import is_value, typeof
from minijax.partition.meshes import Mesh, P
from minijax.partition.shardings import NamedSharding
from minijax.primitives.moving import expand_dims
from minijax.primitives.structural import squeeze
from minijax.run import client

_UNNAMED = "_internal_pmap_axis_name"


class _Options(NamedTuple):
    """What `pmap` was told besides the function."""

    axis_name: Any
    in_axes: Any
    out_axes: Any
    static: tuple[int, ...]
    donated: tuple[int, ...]
    devices: tuple | None
    backend: str | None
    axis_size: int | None


class _Flat(NamedTuple):
    """The arguments of one call: dynamic leaves, their tree and axes, which are donated; static ones."""

    leaves: list
    treedef: Any
    axes: tuple[int | None, ...]
    donated: tuple[bool, ...]
    static: tuple[tuple[int, Static], ...]


class _Plan(NamedTuple):
    """What one kind of arguments needs: the traceable function, the one that lays out its arguments."""

    plain: JitWrapped
    placed: JitWrapped
    is_lasting: bool  # no value of an outer trace is captured


def pmap(
    fun: Callable,
    axis_name: Any = None,
    *,
    in_axes: Any = 0,
    out_axes: Any = 0,
    static_broadcasted_argnums: int | Iterable[int] = (),
    devices: Sequence[Any] | None = None,
    backend: str | None = None,
    axis_size: int | None = None,
    donate_argnums: int | Iterable[int] = (),
) -> Any:
    """Maps `fun` over axes of its arguments, on as many devices as the axes are long.

    `in_axes` and `out_axes`, prefixes of the trees of positional arguments and results, say which axis is
    mapped; None: every device has the whole. Keyword arguments are mapped over their first axis. Raises
    ValueError where nothing is mapped, or for sizes that do not fit the devices.
    """
    if not callable(fun):
        raise TypeError(f"Expected a callable value, got {fun}")
    _check_axes("in_axes", in_axes)
    _check_axes("out_axes", out_axes)
    numbers = [(n,) if isinstance(n, int) else tuple(n) for n in (static_broadcasted_argnums, donate_argnums)]
    told = _Options(
        _UNNAMED if axis_name is None else axis_name,
        in_axes,
        out_axes,
        *numbers,
        None if devices is None else tuple(devices),
        backend,
        axis_size,
    )
    plans = cache.BoundedDict(1024)

    def prepared(args, kwargs):
        flat = _flatten(fun, told, args, kwargs)
        avals = tuple([typeof(x) for x in flat.leaves])
        key = (avals, flat.treedef, flat.axes, flat.static, state.trace_key())
        plan = plans.get(key)
        if plan is None:
            plan = _plan(fun, told, flat, avals)
            if plan.is_lasting:
                plans[key] = plan
        return flat, plan

    @functools.wraps(fun)
    @source.boundary
    def mapped(*args, **kwargs):
        flat, plan = prepared(args, kwargs)
        call = plan.placed if state.is_eager() else plan.plain
        return call(*flat.leaves)

    def lower(*args: Any, **kwargs: Any) -> Lowered:
        """The StableHLO of the mapped function for these arguments."""
        flat, plan = prepared(args, kwargs)
        return plan.placed.lower(*flat.leaves)

    mapped.lower = source.boundary(lower)  # pyright: ignore[reportFunctionMemberAccess]
    return mapped


def _check_axes(name: str, axes: Any) -> None:
    for axis in tree.tree_leaves(axes, is_leaf=lambda x: x is None):
        if axis is not None and type(axis) is not int:
            raise TypeError(
                f"pmap {name} must be an int, None, or (nested) container with those types as leaves, but got {axes}."
            )


# ---- arguments --------------------------------------------------------------------------------------


def _flatten(fun: Callable, told: _Options, args: tuple, kwargs: dict) -> _Flat:
    n, name = len(args), function_name(fun)
    if any(i >= n or i < -n for i in told.static):
        raise ValueError(
            f"pmapped function has static_broadcasted_argnums={told.static} but was called with only {n} "
            f"positional argument{'s' * (n != 1)}: {name}. All static broadcasted arguments must be passed "
            "positionally."
        )
    at = sorted({i % n for i in told.static})
    static = tuple([(i, _static(name, i, args[i])) for i in at])
    dynamic = tuple([x for i, x in enumerate(args) if i not in at])
    leaves, treedef = tree.flatten((dynamic, kwargs))
    args_def, kwargs_def = treedef.children()
    axes = told.in_axes
    if isinstance(axes, (tuple, list)):
        axes = tuple([a for i, a in enumerate(axes) if i not in at]) if len(axes) == n else tuple(axes)
    given = [*tree.flatten_axes("pmap in_axes", args_def, axes), *[0] * kwargs_def.num_leaves]
    wanted = {i % n for i in told.donated if -n <= i < n}
    donated: list[bool] = []
    for i, child in zip([i for i in range(n) if i not in at], args_def.children(), strict=True):
        donated += [i in wanted] * child.num_leaves
    donated += [False] * kwargs_def.num_leaves
    mapped = [_positive_axis(name, x, a) for x, a in zip(leaves, given, strict=True)]
    return _Flat(leaves, treedef, tuple(mapped), tuple(donated), static)


def _static(name: str, i: int, value: Any) -> Static:
    try:
        return Static(value)
    except TypeError:
        raise ValueError(
            "Non-hashable static arguments are not supported, as this can lead to unexpected cache-misses. "
            f"Static argument (index {i}) of type {type(value)} for function {name} is non-hashable."
        ) from None


def _positive_axis(name: str, x: Any, axis: int | None) -> int | None:
    if axis is None:
        return None
    if not is_value(x):
        raise ValueError(f"pmap of {name}: {x!r} of type {type(x)} cannot be mapped, for it is no array")
    ndim = typeof(x).ndim
    if ndim == 0:
        raise ValueError(
            "pmap requires at least one argument with a mapped axis. An argument of rank 0 has none: "
            f"{name} was given {typeof(x).str_short()} to map over axis {axis}."
        )
    return canonical_axis(axis, ndim)


def _mesh(fun: Callable, told: _Options, flat: _Flat, avals: Sequence) -> Mesh:
    sizes = {aval.shape[a] for aval, a in zip(avals, flat.axes, strict=True) if a is not None}
    if not sizes:
        raise ValueError("pmap requires at least one argument with a mapped axis.")
    name = function_name(fun)
    if len(sizes) > 1:
        raise ValueError(f"pmap got inconsistent sizes for array axes to be mapped: {sorted(sizes)}, of {name}")
    (size,) = sizes
    if told.axis_size not in (None, size):
        raise ValueError(f"Specified axis_size {told.axis_size} doesn't match received axis_size {size}.")
    devices = told.devices or tuple(client.local_devices(backend=told.backend))
    if not 0 < size <= len(devices):
        raise ValueError(
            f"pmap of {name} maps over an axis of size {size}, which requires {size} logical devices, but "
            f"only {len(devices)} XLA devices are available"
        )
    return Mesh(list(devices[:size]), (told.axis_name,))


# ---- programs ---------------------------------------------------------------------------------------


def _spec(axis: int | None, name: Any) -> P:
    return P() if axis is None else P(*[None] * axis, name)


def _plan(fun: Callable, told: _Options, flat: _Flat, avals: tuple) -> _Plan:
    mesh = _mesh(fun, told, flat, avals)
    in_specs = tuple([_spec(a, told.axis_name) for a in flat.axes])
    found: dict[str, Any] = {}

    def body(*xs):
        parts = [x if a is None else squeeze(x, (a,)) for x, a in zip(xs, flat.axes, strict=True)]
        args, kwargs = flat.treedef.unflatten(parts)
        args = list(args)
        for i, s in flat.static:
            args.insert(i, s.value)
        results, out_tree = tree.flatten(fun(*args, **kwargs))
        axes = tree.flatten_axes("pmap out_axes", out_tree, told.out_axes)
        axes = [
            None if a is None else canonical_axis(a, typeof(r).ndim + 1) for r, a in zip(results, axes, strict=True)
        ]
        found.update(out_tree=out_tree, specs=[_spec(a, told.axis_name) for a in axes])
        return [r if a is None else expand_dims(r, (a,)) for r, a in zip(results, axes, strict=True)]

    def _fun(*flat_args):
        results = mapped_over(body, mesh, in_specs, lambda: found["specs"], flat_args)
        return found["out_tree"].unflatten(results)

    donated = tuple([i for i, d in enumerate(flat.donated) if d])
    plain = JitWrapped(_fun, JitOptions(), Resolved(donate_nums=donated), None, signature_of(_fun))
    traced = plain.traced_for(avals, tree.tree_structure(((0,) * len(avals), {})), ())
    ins = tuple([NamedSharding(mesh, s) for s in in_specs])
    out_tree = found["out_tree"]
    outs = out_tree.unflatten([NamedSharding(mesh, s) for s in found["specs"]])
    options = JitOptions(
        in_shardings=shardings_of("in_shardings", ins), out_shardings=shardings_of("out_shardings", outs)
    )
    run = jaxpr_as_fun(traced.closed)
    placed = JitWrapped(
        lambda *flat_args: out_tree.unflatten(run(*flat_args)),
        options,
        Resolved(donate_nums=donated),
        "_fun",
        plain.signature,
    )
    return _Plan(plain, placed, not traced.captured)
