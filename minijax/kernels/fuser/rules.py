"""Blocks of the arrays inside of a function, as functions of the numbers of a step, and the rules of operations for
blocks: the blocks of operands from those of results, the reverse, and values of blocks.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from minijax.base.dtypes import KeyType
from minijax.ir.jaxpr import JaxprEqn
from minijax.kernels.blocks import BlockDim, Blocked, BlockSpec, Buffered, Squeezed, no_block_spec
from minijax.kernels.fuser.axes import Axis, axes_of
from minijax.kernels.memory import MemorySpace
from minijax.primitives import elementwise
from minijax.primitives.convert import convert
from minijax.primitives.counting import broadcasted_iota
from minijax.primitives.families import scalar_like
from minijax.primitives.moving import broadcast_in_dim, expand_dims, reshape, transpose
from minijax.primitives.structural import concatenate, pad, rev, stack, tile
from minijax.random.keys import fold_in


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


Block = BlockIndexTransform


class Site(NamedTuple):
    """An equation whose results are computed on blocks: its results' and its operands' blocks, None for no block."""

    eqn: JaxprEqn
    outs: Sequence[Any]
    ins: Sequence[Any]
    arguments: tuple[Any, ...]  # of index maps in this step

    @property
    def out(self) -> Block:
        """The block of the first result that has one."""
        return next(block for block in self.outs if block is not None)

    @property
    def avals_in(self) -> list[Any]:
        """The types of the whole operands."""
        return [a.aval for a in self.eqn.invars]

    @property
    def avals_out(self) -> list[Any]:
        """The types of the whole results."""
        return [v.aval for v in self.eqn.outvars]

    def number(self, axis: int) -> Any:
        """The number of the result's block on an axis."""
        return self.out.block_index_transform(*self.arguments)[axis]

    def places(self, axes: Sequence[int], of_operand: bool = False) -> tuple[int, ...]:
        """The axes of the result, or of the first operand, as the kernel counts them."""
        block = self.ins[0] if of_operand else self.out
        kept = list(range(self.avals_in[0].ndim)) if block is None else seen(block.dims)
        return tuple([kept.index(axis) for axis in axes if axis in kept])

    def bind(self, operands: Sequence, **changes: Any) -> list:
        """The operation on values of blocks."""
        return self.eqn.primitive.bind_all(list(operands), {**self.eqn.params, **changes})


class Rule(NamedTuple):
    """How blocks go through an operation; None for what the axes of the operands say."""

    evaluate: Callable[..., list] | None = None
    pull: Callable[[JaxprEqn, Block], Sequence[Block | None]] | None = None
    push: Callable[[JaxprEqn, Sequence[Block | None]], Block | None] | None = None


# ---- operations that follow axes -----------------------------------------------------------------------


def pulled(eqn: JaxprEqn, out: Block) -> Sequence[Block | None]:
    """The blocks of the operands that a block of the results is computed from."""
    rule = RULES.get(eqn.primitive.name)
    if rule is not None and rule.pull is not None:
        return rule.pull(eqn, out)
    places = axes_of(eqn)
    if places is None:
        raise NotImplementedError(f"{eqn.primitive.name}: there is no rule for the blocks of its operands")
    shape = eqn.outvars[0].aval.shape
    return [_operand_block(eqn, out, shape, a.aval.shape, own) for a, own in zip(eqn.invars, places, strict=True)]


def _operand_block(eqn: JaxprEqn, out: Block, shape: Sequence, own_shape: Sequence, places: Sequence) -> Block:
    parts: list[tuple[Any, Any]] = []
    for n, place in zip(own_shape, places, strict=True):
        if place is Axis.GONE:
            parts.append((None, 0))
        elif place is Axis.REDUCED:
            parts.append((Blocked(n), 0))
        elif place is Axis.WHOLE:
            parts.append((n, 0))
        elif place is Axis.ALONG:
            axis = len(parts)
            if size(out.dims[axis]) != n:
                raise NotImplementedError(f"{eqn.primitive.name} over partial blocks not supported yet: {out.dims}")
            parts.append((out.dims[axis], out.numbers[axis]))
        elif n == shape[place]:
            parts.append((out.dims[place], out.numbers[place]))
        else:
            parts.append((None if is_squeezed(out.dims[place]) else 1, 0))
    return out.to(parts)


def pushed(eqn: JaxprEqn, ins: Sequence[Any]) -> Block | None:
    """The block of the results that is computed from blocks of the operands."""
    rule = RULES.get(eqn.primitive.name, Rule())
    if rule.push is not None:
        return rule.push(eqn, ins)
    places = axes_of(eqn)
    if places is None:
        raise NotImplementedError(f"{eqn.primitive.name}: there is no rule for the blocks of its results")
    known = [x for x in zip(eqn.invars, ins, places, strict=True) if x[1] is not None]
    shape = eqn.outvars[0].aval.shape
    if not known or not shape:
        return None
    parts: dict[int, Any] = {}
    for atom, block, own in known:
        for axis, part in _result_parts(eqn, atom.aval.shape, block, own).items():
            if parts.setdefault(axis, part) != part:
                raise ValueError(
                    "Illegal binary push. One of the block specs must be no_block_spec. The operands of "
                    f"{eqn.primitive.name} have different blocks on axis {axis}"
                )
    return known[0][1].to([parts.get(axis, (n, 0)) for axis, n in enumerate(shape)])


def _result_parts(eqn: JaxprEqn, own_shape: Sequence, block: Block, places: Sequence) -> dict[int, Any]:
    """The dimensions of the result's block that follow from the block of one operand."""
    shape, parts = eqn.outvars[0].aval.shape, {}
    for axis, (n, place) in enumerate(zip(own_shape, places, strict=True)):
        part = block.dims[axis], block.numbers[axis]
        if isinstance(place, Axis) and place is not Axis.GONE and size(part[0]) != n:
            raise NotImplementedError(
                f"{eqn.primitive.name} over partial blocks not supported yet: shape {own_shape}, blocks {block.dims}"
            )
        place = axis if place is Axis.ALONG else place
        if isinstance(place, int) and n == shape[place]:
            parts[place] = part
    return parts


def evaluated(site: Site, *operands: Any) -> list:
    """The blocks of an operation's results from those of its operands."""
    rule = RULES.get(site.eqn.primitive.name)
    if rule is None or rule.evaluate is None:
        return site.bind(operands)
    return rule.evaluate(site, *operands)


def _broadcast(site: Site, x: Any) -> list:
    axes = site.eqn.params["broadcast_dimensions"]
    if site.ins[0] is not None:
        axes = [axes[axis] for axis in seen(site.ins[0].dims)]
    shape = shape_in_kernel(site.out.dims)
    if np.shape(x) == shape:
        return [x]
    return [broadcast_in_dim(x, shape, site.places(axes))]


def _transposed(site: Site, x: Any) -> list:
    kept = seen(site.ins[0].dims)
    order = [kept.index(axis) for axis in site.eqn.params["permutation"] if axis in kept]
    return [x if order == sorted(order) else transpose(x, order)]


def _product(site: Site, x: Any, y: Any) -> list:
    contracted, batch = site.eqn.params["dimension_numbers"]
    kept = [seen(block.dims) for block in site.ins]
    renumbered = lambda axes: tuple(  # noqa: E731
        [tuple([k.index(a) for a in own if a in k]) for own, k in zip(axes, kept, strict=True)]
    )
    return site.bind((x, y), dimension_numbers=(renumbered(contracted), renumbered(batch)))


def _with_axes(name: str) -> Callable[..., list]:
    """Evaluates an operation whose parameter `name` has axes of the first operand."""

    def evaluate(site, *operands):
        axes = site.eqn.params[name]
        if isinstance(axes, int):
            return site.bind(operands, **{name: site.places((axes,), True)[0]})
        return site.bind(operands, **{name: site.places(axes, True)})

    return evaluate


def _iota(site: Site) -> list:
    axis, dims, dtype = site.eqn.params["dimension"], site.out.dims, site.eqn.params["dtype"]
    shape, dim = shape_in_kernel(dims), dims[axis]
    first = site.number(axis)
    if counts_blocks(dim):
        first = first * size(dim)
    if is_squeezed(dim):
        return [broadcast_in_dim(convert(np.int32(first) if isinstance(first, int) else first, dtype), shape, ())]
    inner = broadcasted_iota(dtype, shape, site.places((axis,))[0])
    offset = np.asarray(first, dtype)[()] if isinstance(first, int) else convert(first, dtype)
    return [elementwise.add(inner, offset)]


# ---- slices --------------------------------------------------------------------------------------------


def shifted(name: str, out: Block, starts: Sequence[Any], shape: Sequence[int], of: Sequence[int]) -> Block:
    """The block of an array that a slice of the shape `shape` of an array of the shape `of` takes, from `starts` on."""
    parts = []
    for dim, number, start, n, m in zip(out.dims, out.numbers, starts, shape, of, strict=True):
        if n == m:
            parts.append((dim, number))
        elif not counts_blocks(dim) or size(dim) == 1:
            parts.append((dim, plus(number, start)))
        elif isinstance(start, int):
            if start % size(dim):
                raise NotImplementedError(f"{name}: start {start} is not a multiple of the block's size {size(dim)}")
            parts.append((dim, plus(number, start // size(dim))))
        else:
            parts.append((dim, plus(number, quotient(start, size(dim)))))
    return out.to(parts)


def _sliced(eqn: JaxprEqn, out: Block) -> list[Block]:
    if eqn.params["strides"] is not None:
        raise NotImplementedError("slice: strides are not supported yet; take the elements outside of the fusion")
    return [shifted("slice", out, eqn.params["start_indices"], eqn.outvars[0].aval.shape, eqn.invars[0].aval.shape)]


def _same(site: Site, x: Any, *_: Any) -> list:
    return [x]


def _reversed(eqn: JaxprEqn, out: Block) -> list[Block]:
    parts = []
    for axis, (dim, number, n) in enumerate(zip(out.dims, out.numbers, eqn.invars[0].aval.shape, strict=True)):
        if axis in eqn.params["dimensions"] and size(dim) != n:
            if not counts_blocks(dim) or n % size(dim):
                raise NotImplementedError(f"rev: blocks {dim} do not divide an axis of {n} elements")
            number = plus(times(number, -1), n // size(dim) - 1)
        parts.append((dim, number))
    return [out.to(parts)]


# ---- joined arrays -------------------------------------------------------------------------------------


def _bounds(eqn: JaxprEqn, axis: int, dim: Any) -> list[tuple[int, int]] | None:
    """The first block of each operand on the axis, and the number of its blocks. None: one block has them all."""
    sizes = [a.aval.shape[axis] for a in eqn.invars]
    if size(dim) == sum(sizes):
        return None
    if not counts_blocks(dim) or any(n % size(dim) for n in sizes):
        raise NotImplementedError(f"{eqn.primitive.name}: blocks {dim} do not divide the operands' sizes {sizes}")
    counts = [n // size(dim) for n in sizes]
    return [(sum(counts[:i]), count) for i, count in enumerate(counts)]


def _joined_blocks(eqn: JaxprEqn, out: Block) -> list[Block]:
    axis = eqn.params["dimension"]
    bounds, found = _bounds(eqn, axis, out.dims[axis]), []
    for i, a in enumerate(eqn.invars):
        parts = list(zip(out.dims, out.numbers, strict=True))
        if bounds is None:
            parts[axis] = (a.aval.shape[axis], 0)
        else:
            first, count = bounds[i]
            parts[axis] = (parts[axis][0], clamped(plus(parts[axis][1], -first), count - 1))
        found.append(out.to(parts))
    return found


def _join(site: Site, *operands: Any) -> list:
    axis = site.eqn.params["dimension"]
    bounds = _bounds(site.eqn, axis, site.out.dims[axis])
    if bounds is None:
        return [concatenate(operands, site.places((axis,))[0])]
    return [_chosen(site.number(axis), [first for first, _ in bounds], operands)]


def _chosen(number: Any, firsts: Sequence[int], operands: Sequence) -> Any:
    """The last operand whose first block is not after the block with the number."""
    found = operands[0]
    for first, x in zip(firsts[1:], operands[1:], strict=True):
        found = elementwise.select_n(elementwise.ge(*_pair(number, first)), found, x)
    return found


def _pair(number: Any, first: int) -> tuple[Any, Any]:
    number = np.int32(number) if isinstance(number, int) else number
    return number, np.asarray(first, number.dtype)[()]


def _push_joined(eqn: JaxprEqn, ins: Sequence[Any]) -> Block | None:
    axis = eqn.params["dimension"]
    shapes = [a.aval.shape for a in eqn.invars]
    if any(block is None or size(block.dims[axis]) != s[axis] for block, s in zip(ins, shapes, strict=True)):
        raise NotImplementedError(f"concatenate over partial blocks not supported yet: shapes {shapes}, axis {axis}")
    parts = list(zip(ins[0].dims, ins[0].numbers, strict=True))
    parts[axis] = (sum(s[axis] for s in shapes), 0)
    return ins[0].to(parts)


def _stacked(eqn: JaxprEqn, out: Block) -> list[Block]:
    axis, parts = eqn.params["axis"], list(zip(out.dims, out.numbers, strict=True))
    if size(out.dims[axis]) not in (1, len(eqn.invars)):
        raise NotImplementedError(f"stack: blocks of {size(out.dims[axis])} among {len(eqn.invars)} operands")
    return [out.to(parts[:axis] + parts[axis + 1 :])] * len(eqn.invars)


def _stack(site: Site, *operands: Any) -> list:
    axis = site.eqn.params["axis"]
    dim = site.out.dims[axis]
    at = len([a for a in seen(site.out.dims) if a < axis])
    if size(dim) == len(operands) and not is_squeezed(dim):
        return [stack(operands, at)]
    found = _chosen(site.number(axis), range(len(operands)), operands)
    return [found if is_squeezed(dim) else expand_dims(found, (at,))]


def _tiled(eqn: JaxprEqn, out: Block) -> list[Block]:
    parts = []
    for dim, number, n, count in zip(out.dims, out.numbers, eqn.invars[0].aval.shape, eqn.params["reps"], strict=True):
        if count == 1:
            parts.append((dim, number))
        elif counts_blocks(dim) and n % size(dim) == 0:
            parts.append((dim, remainder(number, n // size(dim))))
        elif counts_blocks(dim) and size(dim) % n == 0:
            parts.append((n, 0))
        else:
            raise NotImplementedError(f"tile: blocks {dim} do not divide an axis of {n} elements")
    return [out.to(parts)]


def _tile(site: Site, x: Any) -> list:
    kept = seen(site.out.dims)
    counts = [size(site.out.dims[a]) // size(site.ins[0].dims[a]) for a in kept]
    return [tile(x, counts) if any(n != 1 for n in counts) else x]


def _padded(eqn: JaxprEqn, out: Block) -> list[Block | None]:
    parts = []
    shape, of = eqn.outvars[0].aval.shape, eqn.invars[0].aval.shape
    for dim, number, n, m, padding in zip(out.dims, out.numbers, shape, of, eqn.params["padding_config"], strict=True):
        if padding != (0, 0, 0) and size(dim) != n:
            raise NotImplementedError(f"pad over partial blocks not supported yet: shape {shape}, blocks {out.dims}")
        parts.append((dim, number) if padding == (0, 0, 0) else (m, 0))
    return [out.to(parts), None]


def _pad(site: Site, x: Any, value: Any) -> list:
    return [pad(x, value, [site.eqn.params["padding_config"][a] for a in seen(site.out.dims)])]


def _reshape(site: Site, x: Any) -> list:
    shape = shape_in_kernel(site.out.dims)
    return [x if np.shape(x) == shape else reshape(x, shape)]


# ---- random numbers ------------------------------------------------------------------------------------


def _keyed(eqn: JaxprEqn, out: Block) -> list[Block | None]:
    if any(a.aval.ndim for a in eqn.invars):
        raise NotImplementedError(f"{eqn.primitive.name}: keys must be scalars; take one of them outside of the fusion")
    return [KEY if type(a.aval.dtype) is KeyType else None for a in eqn.invars]


def _bits(site: Site, key: Any) -> list:
    for number in site.out.block_index_transform(*site.arguments):
        key = fold_in(key, np.uint32(number) if isinstance(number, int) else convert(number, np.dtype(np.uint32)))
    return site.bind((key,), shape=shape_in_kernel(site.out.dims))


RULES: dict[str, Rule] = {
    "random_bits": Rule(_bits, _keyed),
    "random_fold_in": Rule(None, _keyed),
    "broadcast_in_dim": Rule(_broadcast),
    "transpose": Rule(_transposed),
    "squeeze": Rule(_same),
    "dot_general": Rule(_product),
    "iota": Rule(_iota),
    "sort": Rule(_with_axes("dimension")),
    **dict.fromkeys([f"reduce_{n}" for n in "sum max min prod and or xor".split()], Rule(_with_axes("axes"))),
    **dict.fromkeys("argmax argmin".split(), Rule(_with_axes("axes"))),
    **dict.fromkeys("cumsum cumprod cummax cummin cumlogsumexp".split(), Rule(_with_axes("axis"))),
    "reshape": Rule(
        _reshape,
        lambda eqn, out: [reshaped(out, eqn.outvars[0].aval.shape, eqn.invars[0].aval.shape)],
        lambda eqn, ins: ins[0] and reshaped(ins[0], eqn.invars[0].aval.shape, eqn.outvars[0].aval.shape),
    ),
    "slice": Rule(_same, _sliced),
    "dynamic_slice": Rule(_same),
    "rev": Rule(lambda site, x: [rev(x, site.places(site.eqn.params["dimensions"]))], _reversed),
    "concatenate": Rule(_join, _joined_blocks, _push_joined),
    "stack": Rule(_stack, _stacked),
    "tile": Rule(_tile, _tiled),
    "pad": Rule(_pad, _padded),
}
