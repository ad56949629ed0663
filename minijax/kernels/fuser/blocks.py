"""Blocks of the arrays inside of a function, as functions of the numbers of a step."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple, TypeAlias

from minijax.kernels.blocks import BlockDim, Blocked, BlockSpec, Buffered, Squeezed, no_block_spec
from minijax.kernels.memory import MemorySpace
from minijax.primitives import elementwise
from minijax.primitives.families import scalar_like


class At(NamedTuple):
    """The number that a function of the numbers of a step returns for one axis."""

    function: Callable[..., Any]
    axis: int


class Applied(NamedTuple):
    """A function of other numbers of blocks."""

    function: Callable[..., Any]
    operands: tuple[Any, ...]


# The number of a block on one axis. Equal numbers are equal tuples, so two ways to one array can be compared.
Number: TypeAlias = int | At | Applied


@dataclasses.dataclass(frozen=True)
class Numbers:
    """The numbers of a block on all axes, as a function of the numbers of a step and the prefetched scalars."""

    of_axes: tuple[Number, ...]

    def __call__(self, *args):
        known: dict[Callable, Any] = {}
        return tuple([_evaluated(n, args, known) for n in self.of_axes])


def _evaluated(number: Number, args: tuple, known: dict[Callable, Any]) -> Any:
    if isinstance(number, At):
        if number.function not in known:
            found = number.function(*args)
            known[number.function] = found if isinstance(found, tuple | list) else (found,)
        return known[number.function][number.axis]
    if isinstance(number, Applied):
        if number.function is OF_STEP:
            return number.operands[0](args)
        return number.function(*[_evaluated(n, args, known) for n in number.operands])
    return number


def OF_STEP(read: Callable[[tuple], Any]) -> Any:  # noqa: N802
    """Marks a number that is read from all arguments of the index map, by the one operand."""
    raise NotImplementedError


# ---- arithmetic ----------------------------------------------------------------------------------------


def _nothing(*block_indices: Any) -> None:
    return None


def plus(number: Number, other: Number) -> Number:
    """The sum."""
    return number if other == 0 else Applied(operator.add, (number, other))


def times(number: Number, count: int) -> Number:
    """The product."""
    return number if count == 1 else Applied(operator.mul, (number, count))


def quotient(number: Number, count: int) -> Number:
    """The whole part of a quotient of numbers that are not negative."""
    return number if count == 1 else Applied(_quotient, (number, count))


def remainder(number: Number, count: int) -> Number:
    """The remainder of numbers that are not negative."""
    return 0 if count == 1 else Applied(_remainder, (number, count))


def clamped(number: Number, last: int) -> Number:
    """The number, from 0 to `last`."""
    return Applied(_clamped, (number, last))


def _quotient(x: Any, n: int) -> Any:
    return x // n if isinstance(x, int) else elementwise.div(x, scalar_like(x, n))


def _remainder(x: Any, n: int) -> Any:
    return x % n if isinstance(x, int) else elementwise.rem(x, scalar_like(x, n))


def _clamped(x: Any, last: int) -> Any:
    if isinstance(x, int):
        return min(max(x, 0), last)
    return elementwise.max(elementwise.min(x, scalar_like(x, last)), scalar_like(x, 0))


# ---- blocks --------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class BlockIndexTransform:
    """Says which block of an array inside of a function belongs to a block of the function's result.

    Args:
      block_shape: for each dimension the size of the blocks, as in `pl.BlockSpec`.
      block_index_transform: function of the numbers of the result's block that returns those of this array's block.
      memory_space: where the block is.
      pipeline_mode: `pl.Buffered`, how many buffers the block has.

    See also: `fuser.custom_fusion`.

    Example:
        >>> swapped = pl.fuser.BlockIndexTransform((8, 128), lambda i, j: (j, i))
        >>> swapped.block_index_transform(1, 2)
        (2, 1)
    """

    block_shape: Sequence[BlockDim | int | None] | None
    block_index_transform: Callable[..., Any] = _nothing
    memory_space: Any | None = dataclasses.field(kw_only=True, default=None)
    pipeline_mode: Buffered | None = dataclasses.field(kw_only=True, default=None)

    def replace(self, **kwargs: Any) -> BlockIndexTransform:
        """The block with some fields changed."""
        return dataclasses.replace(self, **kwargs)

    @property
    def numbers(self) -> tuple[Number, ...]:
        """The number of the block on each axis."""
        if isinstance(self.block_index_transform, Numbers):
            return self.block_index_transform.of_axes
        return tuple([At(self.block_index_transform, axis) for axis in range(len(self.dims))])

    @property
    def dims(self) -> tuple[Any, ...]:
        """The dimensions of the block."""
        return tuple(self.block_shape or ())

    def to(self, parts: Sequence[tuple[Any, Number]]) -> BlockIndexTransform:
        """A block with other dimensions, each with the number of the block on it."""
        dims, numbers = tuple([dim for dim, _ in parts]), tuple([number for _, number in parts])
        return self.replace(block_shape=dims, block_index_transform=Numbers(numbers))


# The block of a random key, which has no elements that could be cut.
KEY = BlockIndexTransform(None, memory_space=MemorySpace.KEY)


def from_spec(spec: BlockSpec | Any, shape: tuple[int, ...]) -> BlockIndexTransform | None:
    """The block that a spec says, or None for no spec."""
    if spec is None or spec is no_block_spec:
        return None
    dims = tuple(shape if spec.block_shape is None else spec.block_shape)
    if len(dims) != len(shape):
        raise ValueError(f"Block shape {dims} must have the same number of dimensions as the array shape {shape}.")
    options = dict(memory_space=spec.memory_space, pipeline_mode=spec.pipeline_mode)
    if isinstance(spec.index_map, Numbers):
        return BlockIndexTransform(dims, spec.index_map, **options)
    numbers = [0 if spec.index_map is None else At(spec.index_map, axis) for axis in range(len(dims))]
    return BlockIndexTransform(dims, Numbers(tuple(numbers)), **options)


def to_spec(block: BlockIndexTransform | None) -> Any:
    """The spec that says a block."""
    if block is None:
        return no_block_spec
    function = None if block.block_shape is None else block.block_index_transform
    return BlockSpec(block.block_shape, function, memory_space=block.memory_space, pipeline_mode=block.pipeline_mode)


def is_squeezed(dim: Any) -> bool:
    """Returns whether the kernel does not see the dimension."""
    return dim is None or isinstance(dim, Squeezed)


def size(dim: Any) -> int:
    """The number of elements that a block has on a dimension."""
    return 1 if is_squeezed(dim) else getattr(dim, "block_size", dim)


def counts_blocks(dim: Any) -> bool:
    """Returns whether the number of a block counts blocks, not elements."""
    return isinstance(dim, int | Blocked) or is_squeezed(dim)


def seen(dims: Sequence[Any]) -> list[int]:
    """The axes that the kernel sees."""
    return [axis for axis, dim in enumerate(dims) if not is_squeezed(dim)]


def shape_in_kernel(dims: Sequence[Any]) -> tuple[int, ...]:
    """The shape of a block in the kernel."""
    return tuple([size(dims[axis]) for axis in seen(dims)])


# ---- blocks of reshaped arrays -------------------------------------------------------------------------


def reshaped(block: BlockIndexTransform, shape: Sequence[int], to: Sequence[int]) -> BlockIndexTransform:
    """The block of an array of the shape `to` whose elements are those of a block of the array of the shape `shape`.

    Raises NotImplementedError if they do not form a block.
    """
    parts: list[tuple[Any, Number]] = [(1, 0)] * len(to)  # of axes of one element
    for axes, others in _aligned(shape, to):
        own = [(block.dims[a], block.numbers[a]) for a in axes]
        if any(not counts_blocks(dim) for dim, _ in own):
            raise NotImplementedError(f"reshape not supported yet: {tuple(shape)}, {tuple(to)} with {block.dims}")
        if len(axes) == len(others) == 1:
            found = own
        elif len(axes) == 1:
            found = _divided(own[0], [to[a] for a in others])
        elif len(others) == 1:
            found = [_joined(own, [shape[a] for a in axes])]
        else:
            raise NotImplementedError(f"reshape not supported yet: {tuple(shape)}, {tuple(to)}")
        for axis, part in zip(others, found, strict=True):
            parts[axis] = part
    return block.to(parts)


def _aligned(shape: Sequence[int], to: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """The smallest groups of axes of more than one element that have the same number of elements in both shapes."""
    left, right = ([a for a, n in enumerate(s) if n != 1] for s in (shape, to))
    groups = []
    while left and right:
        mine, theirs = [left.pop(0)], [right.pop(0)]
        while (n := prod(shape[a] for a in mine)) != (m := prod(to[a] for a in theirs)):
            (mine if n < m else theirs).append((left if n < m else right).pop(0))
        groups.append((mine, theirs))
    return groups


def _divided(part: tuple[Any, Number], sizes: Sequence[int]) -> list[tuple[Any, Number]]:
    """The blocks on the axes into which an axis is divided."""
    (dim, number), found = part, []
    rest = size(dim)
    for axis in reversed(range(len(sizes))):
        n = sizes[axis]
        own = min(rest, n)
        if n % own or rest % own:
            raise NotImplementedError(f"reshape not supported yet: blocks of {size(dim)} elements on axes of {sizes}")
        rest, count = rest // own, n // own
        found.append((None if is_squeezed(dim) else own, number if axis == 0 else remainder(number, count)))
        number = quotient(number, count)
    return found[::-1]


def _joined(parts: Sequence[tuple[Any, Number]], sizes: Sequence[int]) -> tuple[Any, Number]:
    """The block on the axis that joins several: it has to be a run of elements."""
    is_whole, number = True, 0
    for (dim, _), n in zip(reversed(parts), reversed(sizes), strict=True):
        if (not is_whole and size(dim) != 1) or n % size(dim):
            raise NotImplementedError(
                f"reshape not supported yet: blocks of {[size(d) for d, _ in parts]} elements on axes of {sizes}"
            )
        is_whole = is_whole and size(dim) == n
    for (dim, own), n in zip(parts, sizes, strict=True):
        count = n // size(dim)
        if count > 1:
            number = own if number == 0 else plus(times(number, count), own)
    return (None if all(is_squeezed(d) for d, _ in parts) else prod(size(d) for d, _ in parts)), number
