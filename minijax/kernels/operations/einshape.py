"""`einshape`: splits, reorders and merges the axes of an array by an equation."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

from minijax.base.thread import thread
from minijax.ir.primitive import FirstOrder, Linear1
from minijax.ir.types import typeof
from minijax.kernels.grid import Grid
from minijax.primitives.moving import as_array_or_constant, reshape, transpose
from minijax.transforms.batch import batch_flat

Groups = tuple[tuple[str, ...], ...]


class Plan(NamedTuple):
    """The names of axes in groups, each of which is an axis of the array, on both sides, and the sizes of all names."""

    before: Groups
    after: Groups
    sizes: tuple[tuple[str, int], ...]

    @property
    def split(self) -> tuple[int, ...]:
        """The shape of the array with an axis for each name."""
        return tuple([size for _, size in self.sizes])

    @property
    def order(self) -> tuple[int, ...]:
        """The numbers of the names, in the order of the result."""
        names = [name for name, _ in self.sizes]
        return tuple([names.index(name) for group in self.after for name in group])

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the result."""
        sizes = dict(self.sizes)
        return tuple([prod(sizes[name] for name in group) for group in self.after])

    def of(self, x: Any) -> Any:
        """The result for an array."""
        x = reshape(as_array_or_constant(x), self.split)
        return reshape(transpose(x, self.order) if self.order != tuple(range(len(self.order))) else x, self.shape)

    def inverse(self) -> Plan:
        """The plan of the way back."""
        sizes = dict(self.sizes)
        return Plan(self.after, self.before, tuple([(n, sizes[n]) for group in self.after for n in group]))


class EinshapeInKernel(FirstOrder, Linear1):
    """`einshape` of a value in a kernel."""

    name = "einshape_lo"

    def infer(self, x, *, plan, assert_is_tile_preserving):
        return [x.update(shape=plan.shape)]

    def evaluate_in_kernel(self, operands: Sequence, params: dict, step: Any) -> list:
        """The result where a kernel is interpreted."""
        return [params["plan"].of(*operands)]

    def transposed(self, ct, aval, *, plan, assert_is_tile_preserving):
        return plan.inverse().of(ct)

    def batch(self, axis, operands, dims, *, plan, assert_is_tile_preserving):
        return batch_flat(lambda x: [plan.of(x)], axis, operands, dims)


einshape_p = EinshapeInKernel()


def einshape(equation: str, x: Any, assert_is_tile_preserving: bool = False, **sizes: int) -> Any:
    """Splits, reorders and merges the axes of an array by an equation.

    Args:
      equation: such as "ab(cd)->cabd", with a letter for each axis. On the left, parentheses around letters split an
        axis; on the right, they merge axes.
      x: array.
      assert_is_tile_preserving: in kernels for TPUs, whether it is an error that elements move within tiles.
      **sizes: sizes of letters, all but one of each pair of parentheses on the left.

    Returns:
      The array with its axes as on the right.

    Raises:
      ValueError: for an equation that does not fit the shape.
      NotImplementedError: if a letter is on one side only.

    Example:
        >>> pltpu.einshape("a(bc)->bac", jnp.zeros((8, 256)), b=2).shape
        (2, 8, 128)
    """
    plan = _planned(equation, typeof(x).shape, sizes)
    if not any(type(axis) is Grid for axis, *_ in thread.axes):
        return plan.of(x)
    return einshape_p.bind(x, plan=plan, assert_is_tile_preserving=bool(assert_is_tile_preserving))


def _planned(equation: str, shape: tuple[int, ...], known: dict[str, int]) -> Plan:
    sides = equation.split("->")
    if len(sides) != 2:
        raise ValueError(f"Equation must contain exactly one '->', got {equation!r}")
    before, after = map(_groups, sides)
    if len(before) != len(shape):
        raise ValueError(
            f"Equation LHS has {len(before)} groups but input has {len(shape)} dims. LHS: {list(map(list, before))}, "
            f"Input shape: {shape}"
        )
    sizes: dict[str, int] = {}
    for group, size in zip(before, shape, strict=True):
        sizes |= _sizes_of(group, size, known)
    names = [name for group in after for name in group]
    for name in names:
        if name not in sizes:
            raise ValueError(f"Unknown dimension {name} in RHS of {equation!r}")
    if sorted(names) != sorted(sizes):
        raise NotImplementedError(
            f"Only reordering/splitting/merging supported (no broadcast yet): each letter of {equation!r} must be on "
            "both sides once"
        )
    return Plan(before, after, tuple(sizes.items()))


def _groups(side: str) -> Groups:
    """The letters of one side, those in parentheses together."""
    groups: list[tuple[str, ...]] = []
    text = side.replace(" ", "")
    while text:
        if text[0] != "(":
            groups.append((text[0],))
            text = text[1:]
            continue
        inner, closed, rest = text[1:].partition(")")
        if not closed:
            raise ValueError(f"Unmatched parenthesis in {side!r}")
        groups.append(tuple(inner))
        text = rest
    return tuple(groups)


def _sizes_of(group: tuple[str, ...], size: int, known: dict[str, int]) -> dict[str, int]:
    """The sizes of the letters of an axis. Raises ValueError if they are ambiguous or do not fit."""
    if len(group) == 1:
        return {group[0]: size}
    unknown = [name for name in group if name not in known]
    rest = prod(known[name] for name in group if name in known)
    if len(unknown) > 1:
        raise ValueError(
            f"Ambiguous split for {list(group)} with size {size}. Unknowns: {unknown}. Provide sizes via kwargs."
        )
    if not unknown and rest != size:
        raise ValueError(f"Size mismatch for group {list(group)}: expected {size}, got {rest}")
    if unknown and (not rest or size % rest):
        raise ValueError(f"Cannot split size {size} with known sizes {rest}")
    return {name: known[name] if name in known else size // rest for name in group}
