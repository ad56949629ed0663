"""Shardings in types: over which Explicit axes of a mesh a value is sharded, as its type states.

An *entry* names the mesh axes over which one axis of an array is sharded: None, a name, or a tuple of names.
"""

import itertools
import operator
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from minijax.base import cache, config
from minijax.base.errors import ShardingTypeError
from minijax.partition.meshes import AbstractMesh, AxisType, PartitionSpec, axes_of
from minijax.partition.shardings import NamedSharding, Sharding

Entries = tuple[Any, ...]


def sharding_in_type(sharding: Sharding, ndim: int) -> NamedSharding | None:
    """The sharding in the type of a value with this sharding: its part over Explicit axes, or None without them."""
    if not isinstance(sharding, NamedSharding) or AxisType.Explicit not in sharding.mesh.axis_types:
        return None
    names, spec = set(sharding.mesh.explicit_axes), sharding.spec.padded(ndim)
    if config.remove_size_one_mesh_axis_from_type.value:
        names = {n for n in names if sharding.mesh.shape[n] != 1}
    entries = restrict(spec[:ndim], names)
    return typed_sharding(sharding.mesh.abstract_mesh, entries, spec.unreduced & names, spec.reduced & names)


@cache.cache(maxsize=4096)
def typed_sharding(
    mesh: AbstractMesh, entries: Entries, unreduced: frozenset = frozenset(), reduced: frozenset = frozenset()
) -> NamedSharding | None:
    """The sharding of a type over a mesh; None if the mesh has no Explicit axes and no axis is named."""
    if not (mesh.explicit_axes or unreduced or reduced or any(e is not None for e in entries)):
        return None
    return NamedSharding(mesh, PartitionSpec(*entries, unreduced=unreduced, reduced=reduced))


def _entry(axes: Sequence) -> Any:
    return None if not axes else axes[0] if len(axes) == 1 else tuple(axes)


def joined_entry(*entries: Any) -> Any:
    """The entry of an axis that is the product of others, the first of them outermost."""
    return _entry([axis for e in entries for axis in axes_of(e)])


def restrict_entry(entry: Any, axes: Collection) -> Any:
    """An entry without the mesh axes that are not in `axes`."""
    return _entry([a for a in axes_of(entry) if a in axes])


def restrict(entries: Iterable, axes: Collection) -> Entries:
    """Entries without the mesh axes that are not in `axes`."""
    return tuple([restrict_entry(e, axes) for e in entries])


def batched_spec(spec: PartitionSpec, dim: int, entry: Any) -> PartitionSpec:
    """The spec of batched values: `entry` is that of the batch dimension `dim`."""
    entries = list(spec.padded(dim))
    entries.insert(dim, entry)
    return spec.update(partitions=entries)


def count_of(mesh: AbstractMesh, entry: Any) -> int:
    """The number of parts into which an entry divides an axis."""
    sizes, count = mesh.shape, 1
    for axis in axes_of(entry):
        count *= sizes[axis]
    return count


def merged_entries(name: str, specs: Sequence[Entries]) -> Entries:
    """The entries of the result of an elementwise operation: for each axis the entry that any operand has.

    Raises ShardingTypeError if two operands have different entries.
    """
    first = specs[0]
    if all(s == first for s in specs[1:]):
        return first
    merged = []
    for column in zip(*specs, strict=True):
        entries = {e for e in column if e is not None}
        if len(entries) > 1:
            texts = " and ".join(map(str, specs))
            raise ShardingTypeError(f"{name} got incompatible shardings for broadcasting: operands have specs {texts}")
        merged.append(entries.pop() if entries else None)
    return tuple(merged)


def merged_reduction_state(
    name: str, avals: Sequence[Any], may_be_unreduced: bool = False
) -> tuple[frozenset, frozenset]:
    """The (unreduced, reduced) axes of the result of an elementwise operation.

    Raises ShardingTypeError if operands are reduced over different axes, and NotImplementedError if one is unreduced
    unless `may_be_unreduced`.
    """
    unreduced, reduced = (frozenset().union(*axes) for axes in zip(*[a.reduction_state for a in avals], strict=True))
    if unreduced and not may_be_unreduced:
        texts = " and ".join([a.text for a in avals])
        raise NotImplementedError(f"unreduced rule for {name} is not implemented: its operands are {texts}")
    for a in avals if reduced else ():
        whose = f"{name}: Inputs cannot be"
        text = f"that another input is reduced on, {set(reduced)}, but one is {a.text}"
        if any(axis in reduced for e in a.entries for axis in axes_of(e)):
            raise ShardingTypeError(f"{whose} sharded/varying on the same axes {text}; it can be resharded")
        if a.reduction_state[1] not in (reduced, frozenset()):
            raise ShardingTypeError(f"{name}: all operands should be reduced over the same mesh axes, not {text}")
        if not a.reduction_state[1] and not a.reduction_state[0] >= reduced:
            raise ShardingTypeError(f"{whose} replicated on the same axes {text}")
    return unreduced, reduced


def reduction_state_of_sum(name: str, avals: Sequence[Any]) -> tuple[frozenset, frozenset]:
    """As `merged_reduction_state`, of a sum: all operands are unreduced over the same axes, or none is unreduced."""
    unreduced, reduced = merged_reduction_state(name, avals, True)
    for side, a in zip(("lhs", "rhs"), avals, strict=False):
        if unreduced and not a.reduction_state[0]:
            other = "rhs" if side == "lhs" else "lhs"
            raise ShardingTypeError(
                f"{name}: {other} is unreduced while {side} is not, which is {a.text}: a sum over devices would be "
                "implied. `jax.sharding.reshard` reduces it"
            )
    if any(a.reduction_state[0] != unreduced for a in avals):
        texts = " and ".join([a.text for a in avals])
        raise ShardingTypeError(f"lhs and rhs to `{name}` must be unreduced along the same mesh axes, not {texts}")
    return unreduced, reduced


def reduction_state_of_product(name: str, lhs: Any, rhs: Any) -> tuple[frozenset, frozenset]:
    """As `merged_reduction_state`, of a product: one factor may be unreduced if the other is reduced over the axes."""
    unreduced, reduced = merged_reduction_state(name, (lhs, rhs), True)
    if lhs.reduction_state[0] and rhs.reduction_state[0]:
        raise ShardingTypeError(f"lhs and rhs to `{name}` cannot be unreduced both, {lhs.text} and {rhs.text}")
    for a, b, sides in ((lhs, rhs, ("LHS", "RHS")), (rhs, lhs, ("RHS", "LHS"))):
        if a.reduction_state[0] and b.reduction_state[1] != a.reduction_state[0]:
            raise ShardingTypeError(
                f"{name}: {sides[1]} should be reduced along the same axes {sides[0]} is unreduced on, but they are "
                f"{b.text} and {a.text}"
            )
    return unreduced, reduced - unreduced


def repeats_an_axis(entries: Iterable) -> bool:
    """Returns whether two entries name the same mesh axis."""
    axes = [axis for e in entries for axis in axes_of(e)]
    return len(set(axes)) < len(axes)


def check_even(shape: Sequence[int], sharding: NamedSharding) -> None:
    """Raises ValueError unless a sharding divides the axes of a shape evenly."""
    for axis, (size, entry) in enumerate(zip(shape, sharding.spec, strict=False)):
        count = count_of(sharding.mesh.abstract_mesh, entry)
        if size % count:
            raise ValueError(
                f"{sharding.spec} divides array axis {axis} of shape {tuple(shape)} into {count}, which does not "
                f"evenly divide the dimension size {size}"
            )


def check_rank(sharding: NamedSharding, ndim: int) -> None:
    """Raises ValueError if a spec names mesh axes for more array axes than there are."""
    if any(e is not None for e in sharding.spec[ndim:]):
        sharding.check_compatible_aval((0,) * ndim)


def entries_of(entries: Entries, axes: Iterable[int]) -> Entries:
    """The entries of some axes."""
    return tuple([entries[i] for i in axes])


def reshaped_entries(
    mesh: AbstractMesh, shape: Sequence[int], entries: Sequence, sizes: Sequence[int]
) -> Entries | None:
    """The entries after a reshape to the axis sizes `sizes` that merges or splits one axis.

    None if the result has no spec.
    """
    if all(e is None for e in entries):
        return (None,) * len(sizes)
    groups = _axis_groups(shape, sizes)
    if groups is None or sum(len(old) != 1 or len(new) != 1 for old, new in groups) > 1:
        return None
    result: list[Any] = [None] * len(sizes)
    for old, new in groups:
        # Between merged axes, those of size 1 count as well.
        merged = [entries[i] for i in range(old[0], old[-1] + 1)]
        regrouped = _regrouped(mesh, merged, [sizes[i] for i in new])
        if regrouped is None:
            return None
        for i, entry in zip(new, regrouped, strict=True):
            result[i] = entry
    return tuple(result)


def _axis_groups(shape: Sequence[int], sizes: Sequence[int]) -> list[tuple[list[int], list[int]]] | None:
    """The smallest groups of adjacent axes of two shapes with equal numbers of elements, as (old axes, new axes) pairs.

    Axes of size 1 are in no group. None if the shapes cannot be grouped.
    """
    old, new = ([i for i, n in enumerate(side) if n != 1] for side in (shape, sizes))
    groups = []
    while old or new:
        counts = _equal_prefixes([shape[i] for i in old], [sizes[i] for i in new])
        if counts is None:
            return None
        i, j = counts
        groups.append((old[:i], new[:j]))
        old, new = old[i:], new[j:]
    return groups


def _equal_prefixes(left: Sequence[int], right: Sequence[int]) -> tuple[int, int] | None:
    """The lengths of the shortest prefixes of both sides with equal products, or None."""
    lengths: dict[int, int] = {}
    for j, product in enumerate(itertools.accumulate(right, operator.mul), 1):
        lengths.setdefault(product, j)
    products = enumerate(itertools.accumulate(left, operator.mul), 1)
    return next(((i, lengths[product]) for i, product in products if product in lengths), None)


def _regrouped(mesh: AbstractMesh, entries: Sequence, sizes: Sequence[int]) -> list | None:
    """The entries of axes of the given sizes, made from axes with the given entries: one side has one axis."""
    if len(sizes) == 1:
        sharded = [e for e in entries if e is not None]
        are_outermost = entries[: len(sharded)] == sharded
        return [joined_entry(*sharded)] if are_outermost else None
    return _divided(mesh, entries[0], sizes) if len(entries) == 1 else None


def _divided(mesh: AbstractMesh, entry: Any, sizes: Sequence[int]) -> list | None:
    """The entries of the axes into which an axis is split; the outer ones are sharded first."""
    remaining, result = list(axes_of(entry)), []
    for size in sizes:
        axes: list[Any] = []
        while remaining and size != 1 and size % count_of(mesh, remaining[0]) == 0:
            axes.append(remaining.pop(0))
            size //= count_of(mesh, axes[-1])
        result.append(_entry(axes))
        if remaining and size != 1:
            return None
    return None if remaining else result


_PHRASES = {"slice": "slicing", "pad": "padding"}


def check_divides(name: str, mesh: AbstractMesh, aval: Any, shape: Sequence[int]) -> Entries:
    """The entries of a type, for a result with axes of other sizes that is sharded in the same way.

    Raises ShardingTypeError if they do not divide the sizes.
    """
    for size, new, entry in zip(aval.shape, shape, aval.entries, strict=True):
        count = count_of(mesh, entry)
        if size != new and new % count:
            raise ShardingTypeError(
                f"{_PHRASES.get(name, name)} on sharded dims of {aval.str_short(True)}, to shape {tuple(shape)}: "
                f"out dim ({new}) is not divisible by mesh axes ({count}), those of {entry!r}"
            )
    return aval.entries


def common_sharding(avals: Sequence[Any], phrase: str = "All operands should have the same sharding") -> Any:
    """The first of the types that have a mesh, or the first of all: a type without one takes any sharding.

    Raises ShardingTypeError if the shardings of two types differ.
    """
    first, *others = [a for a in avals if a.has_mesh] or avals
    if any((a.entries, a.reduction_state) != (first.entries, first.reduction_state) for a in others):
        raise ShardingTypeError(f"{phrase}, but their types are {', '.join([a.str_short() for a in avals])}")
    return first
