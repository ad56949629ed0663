"""`vmap`: vectorises a function over an axis of its arguments."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, NamedTuple, ParamSpec, TypeVar

from minijax.base import config, source, tree
from minijax.base.dims import canonical_axis
from minijax.composed.refs import freeze
from minijax.ir import body, context, state
from minijax.ir.primitive import Axis
from minijax.ir.refs import Ref
from minijax.ir.types import Aval, ShapedArray, typeof
from minijax.partition.explicit import joined_entry
from minijax.partition.meshes import axes_of
from minijax.primitives.counting import iota
from minijax.transforms.batch import BatchTracer, batch_flat, move_batch_dim

P = ParamSpec("P")
R = TypeVar("R")


class Vmappable(NamedTuple):
    """The handlers that `register_vmappable` stores for a type."""

    spec_type: type
    axis_size_type: type
    to_elt: Callable
    from_elt: Callable
    make_iota: Callable | None


_vmappables: dict[type, Vmappable] = {}


def register_vmappable(
    data_type: type,
    spec_type: type,
    axis_size_type: type,
    to_elt: Callable,
    from_elt: Callable,
    make_iota: Callable | None,
) -> None:
    """Registers a type other than arrays for `vmap`, with axis specs of the type `spec_type`.

    `to_elt(part, index, value, spec)` returns the element that the function gets; it calls `part(array, axis)` for
    arrays inside, and `index()` for the element's index, an element of `make_iota(axis_size)`.
    `from_elt(whole, axis_size, element, spec)` returns a result; it calls `whole(axis_size, array, axis)`.
    """
    _vmappables[data_type] = Vmappable(spec_type, axis_size_type, to_elt, from_elt, make_iota)


def unregister_vmappable(data_type: type) -> None:
    """Undoes `register_vmappable`."""
    _vmappables.pop(data_type, None)


def _is_spec(axis: Any) -> bool:
    return any(type(axis) is v.spec_type for v in _vmappables.values()) and not hasattr(axis, "__index__")


def _is_vmappable(x: Any) -> bool:
    return type(x) in _vmappables


def _element(axis: Axis, x: Any, spec: Any) -> Any:
    """Returns the element of an argument that the mapped function gets; called inside its trace."""
    trace = state.current_trace()

    def index():
        iotas = (v.make_iota for v in _vmappables.values() if v.axis_size_type is type(axis.size))
        make_iota = next(filter(None, iotas), functools.partial(iota, "int32"))
        return BatchTracer(trace, make_iota(axis.size), 0)

    def part(x, spec):
        if _is_vmappable(x):
            return _vmappables[type(x)].to_elt(part, index, x, spec)
        return x if spec is None else BatchTracer(trace, x, _canonical(spec, x))

    return part(x, spec)


def _sizes_of(elements: Iterable[tuple[Any, Any]]) -> set:
    """The sizes of vmappable values that have a shape."""
    return {x.shape[spec] for x, spec in elements if type(spec) is int and hasattr(x, "shape")}


def _pop_vmappables(leaves: list, axes: list) -> dict[int, tuple]:
    """Pops the vmappable leaves: position -> (value, axis spec); replaces them by 0, not mapped."""
    values = {i: (x, axes[i]) for i, x in enumerate(leaves) if _is_vmappable(x)}
    for i in values:
        leaves[i], axes[i] = 0, None
    return values


def _from_element(fun: Callable, axis: Axis, x: Any, spec: Any) -> Any:
    """Returns the result that consists of these elements; called inside the function's trace."""
    trace = state.current_trace()

    def whole(size, x, spec):
        if _is_vmappable(x):
            return _vmappables[type(x)].from_elt(whole, size, x, spec)
        (value,), (dim,) = trace.split([x])
        with state.set_current_trace(trace.parent):
            return _place_result(fun, value, dim, spec, axis._replace(size=size), "result")

    return whole(axis.size, x, spec)


@source.boundary
def vmap(
    fun: Callable[P, R],
    in_axes: int | None | Sequence[Any] = 0,
    out_axes: Any = 0,
    axis_name: Hashable | None = None,
    axis_size: int | None = None,
    spmd_axis_name: Hashable | tuple[Hashable, ...] | None = None,
    sum_match: bool = False,
) -> Callable[P, R]:
    """Creates a function that maps a function over an axis of its arguments.

    The result equals a loop over the slices, with the results stacked. No loop is run: each operation gets the axis as
    a batch axis, hence a product of vectors becomes one product of matrices. `vmap` composes with `jax.grad`,
    `jax.jit` and itself. Inside, arrays have the shape of one slice.

    Args:
        fun: The function of one slice.
        in_axes: The mapped axis of each positional argument: an integer, None for an argument that all slices share,
            or a tuple with one for each argument. An entry may be a pytree prefix of its argument. Negative axes count
            from the end. Keyword arguments are always mapped over axis 0.
        out_axes: Where the mapped axis appears in the results: an integer, or a pytree prefix. None is allowed for
            results that are the same for all slices.
        axis_name: A name for the axis. Collectives such as `jax.lax.psum` then work over it.
        axis_size: The size of the axis; needed only if no argument is mapped.
        spmd_axis_name: The mesh axis, or axes, over which the mapped axis is sharded in sharding constraints inside.
        sum_match: Whether cotangents of unmapped values are summed, as in jax.

    Returns:
        A function of the same arguments as `fun`, with an additional axis.

    Raises:
        ValueError: By the returned function, if the sizes of the mapped axes differ, if an argument does not have
            its axis, or if the structure of `in_axes` is not a prefix of that of the arguments.

    See also: `jax.lax.map`, `jax.pmap`, `jax.shard_map`, `jax.numpy.vectorize`.

    Example:
        >>> x, y = jnp.arange(6.0).reshape(2, 3), jnp.ones(3)
        >>> jax.vmap(jnp.dot, in_axes=(0, None))(x, y)
        Array([ 3., 12.], dtype=float32)

        Gradients for each example of a batch:

        >>> jax.vmap(jax.grad(lambda w, x: (w * x) ** 2), in_axes=(None, 0))(1.0, jnp.array([1.0, 2.0]))
        Array([2., 8.], dtype=float32, weak_type=True)

        A collective over the mapped axis:

        >>> jax.vmap(lambda x: x / jax.lax.psum(x, "i"), axis_name="i")(jnp.array([1.0, 3.0]))
        Array([0.25, 0.75], dtype=float32)
    """
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    _check_axes(fun, in_axes, out_axes)
    spmd = spmd_axis_name if isinstance(spmd_axis_name, tuple | None) else (spmd_axis_name,)

    @source.boundary
    def mapped(*args, **kwargs):
        _check_count(in_axes, args)
        is_leaf = _is_vmappable if _vmappables else None
        leaves, treedef = tree.flatten((args, kwargs), is_leaf)
        axes = tree.flatten_axes("vmap in_axes", treedef, in_axes, of_args=True)
        elements = _pop_vmappables(leaves, axes) if is_leaf else {}
        axes = [None if a is None else _canonical(a, x) for a, x in zip(axes, leaves, strict=True)]
        size = _mapped_size(fun, leaves, axes, axis_size, treedef, _sizes_of(elements.values()))
        axis = _axis(axis_name, size, spmd, zip(map(_type_of, leaves, axes), axes, strict=True))
        flat, wholes = body.Flat(fun, treedef, lambda pair: pair, is_leaf), {}
        run = functools.partial(context.under, context.VMAP, flat)
        if is_leaf:
            run = _on_elements(run, flat, axis, elements, out_axes, wholes)
        refs = [i for i, x in enumerate(leaves) if isinstance(x, Ref) and axes[i] is not None]
        if refs:
            body.check_aliases(fun, "vmap", leaves, lambda: body.argument_names(body.signature_of(fun), treedef, ()))
            results, dims = _batch_refs(run, refs, axis, leaves, axes)
        else:
            results, dims = batch_flat(run, axis, leaves, axes)
        specs = tree.flatten_axes("vmap out_axes", flat.out_tree, out_axes)
        placed = [
            wholes[i] if i in wholes else _place_result(fun, x, d, spec, axis, body.result_paths(flat.out_tree)[i])
            for i, (x, d, spec) in enumerate(zip(results, dims, specs, strict=True))
        ]
        return flat.out_tree.unflatten(placed)

    name, original = body.function_name(fun), getattr(fun, "__doc__", None)
    doc = f"Vectorized version of {name}. It takes arguments with an axis more, over which {name} is mapped."
    return body.named_after(mapped, fun, f"{doc}\n\nOriginal documentation:\n\n{original}" if original else doc)


def _on_elements(run: Callable, flat: body.Flat, axis: Axis, elements: dict, out_axes: Any, wholes: dict) -> Callable:
    """Returns `run` on the elements of vmappable arguments; it stores vmappable results in `wholes`, by position."""

    def with_elements(*xs):
        operands = [_element(axis, *elements[i]) if i in elements else x for i, x in enumerate(xs)]
        results = run(*operands)
        specs = tree.flatten_axes("vmap out_axes", flat.out_tree, out_axes)
        wholes.update((i, _from_element(flat.fun, axis, *x)) for i, x in _pop_vmappables(results, specs).items())
        return results

    return with_elements


def _batch_refs(run: Callable, refs: list[int], axis: Axis, leaves: Sequence, axes: Sequence) -> tuple[list, list]:
    """Like `batch_flat`, but passes mapped references in and out as their values."""

    def of_values(*xs):
        new_refs = [Ref(x) if i in refs else x for i, x in enumerate(xs)]
        return [*run(*new_refs), *(freeze(new_refs[i]) for i in refs)]

    values = [freeze(x) if i in refs else x for i, x in enumerate(leaves)]
    results, dims = batch_flat(of_values, axis, values, axes)
    for i in reversed(refs):
        leaves[i][...] = move_batch_dim(results.pop(), dims.pop(), axes[i], axis)
    return results, dims


def _check_count(in_axes: Any, args: tuple) -> None:
    if isinstance(in_axes, tuple) and len(in_axes) != len(args):
        raise ValueError(
            "vmap in_axes must be an int, None, or a tuple of entries corresponding to the positional "
            f"arguments passed to the function, but got len(in_axes)={len(in_axes)}, len(args)={len(args)}. "
            "Give an entry for each; arguments by keyword are mapped along axis 0."
        )


def _check_axes(fun: Callable, in_axes: Any, out_axes: Any) -> None:
    body.check_callable(fun, "jax.vmap")
    if not (in_axes is None or type(in_axes) in (int, tuple) or _is_spec(in_axes)):
        raise TypeError(
            "vmap in_axes must be an int, None, or a tuple of entries corresponding to the positional "
            f"arguments passed to the function, but got {in_axes}."
        )
    for which, axes in (("in_axes", in_axes), ("out_axes", out_axes)):
        if not all(type(leaf) is int or _is_spec(leaf) for leaf in tree.tree_leaves(axes)):
            raise TypeError(
                f"vmap {which} must be an int, None, or (nested) container with those types as leaves, but got {axes}."
            )


def _type_of(x: Any, axis: int | None) -> Aval | None:
    """Returns the type of an argument, or None if it is not a value; a mapped argument must be one."""
    if axis is not None:
        return typeof(x)
    try:
        return typeof(x)
    except (TypeError, ValueError):
        return None


def _canonical(axis: int, x: Any) -> int:
    aval = typeof(x)  # user-defined types may have no shape
    ndim = getattr(aval, "ndim", 0)
    try:
        return canonical_axis(axis, ndim)
    except ValueError:
        raise ValueError(
            f"vmap was requested to map its argument along axis {axis}, which implies that its rank should be at "
            f"least {axis + 1 if axis >= 0 else -axis}, but is only {ndim} (its shape is {getattr(aval, 'shape', ())})."
            " Use another axis, or None in in_axes for an argument that is not mapped."
        ) from None


def _place_result(fun: Callable, x: Any, d: int | None, out_axis: int | None, axis: Axis, path: str) -> Any:
    if out_axis is None:
        if d is not None:
            named = f"vmap has mapped output (axis_name={axis.name}) but out_axes is None"
            where = path.removeprefix("result")
            unnamed = f"at vmap out_axes{where}, got axis spec None but output was batched on axis {d}"
            raise ValueError(
                f"{unnamed if axis.name is None else named}: the output at {path} of {body.function_name(fun)} is "
                "mapped. Give it an axis in out_axes, or reduce it in the function."
            )
        typeof(x)  # raises if x is not a value
        return x
    try:
        ndim = typeof(x).ndim + (d is None)
    except TypeError:
        raise TypeError(
            f"Output from batched function {x!r} with type {type(x)} is not a valid JAX type. "
            f"{body.function_name(fun)} must return arrays, numbers or pytrees of them."
        ) from None
    if not -ndim <= out_axis < ndim:
        raise ValueError(
            f"axis {out_axis} is out of bounds for array of dimension {ndim}: vmap out_axes of the output at "
            f"{path} of {body.function_name(fun)}"
        )
    return move_batch_dim(x, d, out_axis % ndim, axis)


def _axis(name: Any, size: Any, spmd: tuple | None, avals: Iterable[tuple[Aval | None, int | None]]) -> Axis:
    """Returns the mapped axis, with the Explicit mesh axes over which the arguments' types are sharded along it.

    Raises ValueError if these differ between arguments, or from `spmd_axis_name`.
    """
    arrays = [(t, a) for t, a in avals if type(t) is ShapedArray]
    if not any(t.has_mesh for t, _ in arrays):
        return Axis(name, size, spmd)
    entry = _mapped_entry([t.entries[a] for t, a in arrays if a is not None])
    if entry is None:
        return Axis(name, size, spmd)
    mesh = next(t.own_sharding.mesh for t, a in arrays if a is not None and t.has_mesh)
    _check_unmapped([t for t, a in arrays if a is None], axes_of(entry))
    if spmd is not None and config.remove_size_one_mesh_axis_from_type.value:
        spmd = tuple([n for n in spmd if mesh.shape[n] != 1])
    if spmd is not None and joined_entry(*spmd) != entry:
        raise ValueError(
            "vmap: Only one of spmd_axis_name or arrays sharded on `Explicit` mesh axis type is allowed: either gives "
            f"the sharding of the mapped axis. That of the arrays is {entry}, spmd_axis_name={spmd}"
        )
    return Axis(name, size, None, entry, mesh)


def _mapped_entry(entries: Sequence) -> Any:
    """Returns the mesh axes over which all arguments are sharded along the mapped axis, or None."""
    if len(set(entries)) > 1:
        raise ValueError(
            "Mapped away dimension of inputs passed to vmap should be sharded the same everywhere, not "
            f"{' vs '.join(sorted(map(str, set(entries))))}"
        )
    return entries[0] if entries else None


def _check_unmapped(avals: Sequence[Any], mesh_axes: Sequence[Any]) -> None:
    for aval in avals:
        if not set(mesh_axes).isdisjoint(axes_of(joined_entry(*aval.entries))):
            raise ValueError(
                "Unmapped values passed to vmap cannot be sharded along the mesh axes of the mapped axis, which are "
                f"{mesh_axes}; one is {aval.text}"
            )


def _described_leaves(fun: Callable, treedef: Any) -> list[str]:
    """For each leaf of the arguments its name in messages."""
    names, positional = body.argument_names(body.signature_of(fun), treedef, ()), treedef.children()[0].num_leaves
    named = [re.split(r"(?=[\[.])", name, maxsplit=1) for name in names[positional:]]
    by_name = [f"kwargs['{root}']{''.join(rest)}" for root, *rest in named]
    return [*[f"argument {name}" for name in names[:positional]], *by_name]


def _mapped_size(
    fun: Callable, leaves: Sequence, axes: Sequence, axis_size: int | None, treedef: Any, known: set[int]
) -> int:
    sizes = known | {typeof(x).shape[a] for x, a in zip(leaves, axes, strict=True) if a is not None}
    if axis_size is not None:
        sizes.add(axis_size)
    if len(sizes) == 1:
        return sizes.pop()
    if not leaves and not sizes:
        args, kwargs = treedef.unflatten(leaves)
        raise ValueError(
            "vmap wrapped function must be passed at least one argument containing an array or axis_size must be "
            f"specified, got empty *{args=} and **{kwargs=}"
        )
    if not sizes:
        raise ValueError("vmap must have at least one non-None value in in_axes or axis_size must be specified")
    by_size: dict[int, list[str]] = {}
    for name, x, a in zip(_described_leaves(fun, treedef), leaves, axes, strict=True):
        if a is not None:
            one = f"axis {a} of {name} of type {typeof(x).str_short()}"
            by_size.setdefault(typeof(x).shape[a], []).append(one)
    where = [f"the `axis_size` argument was {axis_size}"] if axis_size is not None else []
    for i, (size, same_size) in enumerate(sorted(by_size.items(), key=lambda item: -len(item[1]))):
        several = f"{'some' if i else 'most'} axes ({len(same_size)} of them) had size {size}, e.g."
        where.append(f"{several if len(same_size) > 1 else f'one axis had size {size}:'} {same_size[0]}")
    raise ValueError(
        "vmap got inconsistent sizes for array axes to be mapped:\n"
        + ";\n".join(f"  * {line}" for line in where)
        + f"\nin a call of {body.function_name(fun)}. Slice the arguments to one size, or use None in in_axes for "
        "those that are not mapped."
    )
