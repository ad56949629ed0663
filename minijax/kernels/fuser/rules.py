"""Rules of operations for blocks: the blocks of operands from those of results, the reverse, and values of blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.base.dtypes import KeyType
from minijax.ir.jaxpr import JaxprEqn
from minijax.kernels.blocks import Blocked
from minijax.kernels.fuser.axes import Axis, axes_of
from minijax.kernels.fuser.blocks import (
    KEY,
    BlockIndexTransform,
    clamped,
    counts_blocks,
    is_squeezed,
    plus,
    quotient,
    remainder,
    reshaped,
    seen,
    shape_in_kernel,
    size,
    times,
)
from minijax.primitives import elementwise
from minijax.primitives.convert import convert
from minijax.primitives.counting import broadcasted_iota
from minijax.primitives.moving import broadcast_in_dim, expand_dims, reshape, transpose
from minijax.primitives.structural import concatenate, pad, rev, stack, tile
from minijax.random.keys import fold_in

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


def _joined(eqn: JaxprEqn, out: Block) -> list[Block]:
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
    "concatenate": Rule(_join, _joined, _push_joined),
    "stack": Rule(_stack, _stacked),
    "tile": Rule(_tile, _tiled),
    "pad": Rule(_pad, _padded),
}
