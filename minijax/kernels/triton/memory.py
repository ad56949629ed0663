"""References in Triton: a pointer to an array, and where in it the block begins. Views and indices become offsets."""

from collections.abc import Callable, Sequence
from itertools import accumulate
from math import prod
from operator import mul
from typing import Any, NamedTuple

import numpy as np

from minijax.composed.ref_views import Bitcast, Reshaped, Transposed
from minijax.indexing.language import Index, Slot, Span, Window
from minijax.kernels.text import Value
from minijax.kernels.triton.verbs import I8, I32, I64, Number, Tiles, bits, kind

Tile = Value | Number
_LARGEST = 2**32  # bytes of an array that offsets of 32 bits reach


class Block(NamedTuple):
    """A reference: a pointer to an array of `array_shape`, and the first element of the block along each axis.

    `squeezed` are the axes of the array that the reference does not have.
    """

    pointer: Value
    array_shape: tuple[int, ...]
    starts: tuple[Value, ...]
    squeezed: frozenset[int]
    shape: tuple[int, ...]

    dtype = property(lambda self: self.pointer.dtype)


class Access(NamedTuple):
    """Elements of an array in memory; those of four bits share bytes, by pairs if `is_packed`, else by `parity`."""

    pointers: Value
    dtype: Any
    is_packed: bool = False
    parity: Value | None = None


Coordinate = Callable[[], Value]  # writes where elements are along an axis, in the shape of the result


def access(k: Tiles, block: Block, path: Sequence, arrays: Sequence[Tile]) -> Access:
    """Writes the addresses of elements of a reference."""
    path = list(path)
    dtype = next((np.dtype(view.dtype) for view in reversed(path) if type(view) is Bitcast), block.dtype)
    if not path or type(path[-1]) is not Index:
        path.append(Index(_view_shape(block.shape, path), (Ellipsis,)))
    is_small = bits(block.dtype) == 4
    wide = I64 if prod(block.array_shape) * dtype.itemsize > _LARGEST else I32
    is_packed = is_small and len(path) == 1 and _is_pairs(path[0], block)
    if is_packed:
        block, path = _halved(k, block), [_half(path[0])]
    shape, coordinates = _last(k, path[-1], arrays, wide)
    for before, view in reversed(list(zip(_shapes(block.shape, path), path[:-1], strict=True))):
        coordinates = _through(k, view, before, coordinates, arrays, wide, shape)
    offsets = _offsets(k, block, coordinates, shape, wide)
    if is_small and not is_packed:
        pointers = k.pointers(block.pointer, k.like("arith.divui", offsets, k.full_like(2, offsets)))
        return Access(pointers, dtype, parity=offsets)
    pointers = k.pointers(block.pointer, offsets)
    return Access(pointers if dtype == block.dtype else k.pointers_to(pointers, dtype), dtype, is_packed)


def _offsets(k: Tiles, block: Block, coordinates: Sequence[Coordinate], shape: tuple, wide: Any) -> Value:
    offsets = k.full(0, wide, shape)
    strides = _strides(block.array_shape)
    own = iter(coordinates)
    for axis, (start, stride) in enumerate(zip(block.starts, strides, strict=True)):
        place = k.full(0, wide, shape) if axis in block.squeezed else next(own)()
        place = k.arith("add", place, k.splat(_widened(k, start, wide), shape))
        offsets = k.arith("add", offsets, k.arith("mul", place, k.full(stride, wide, shape)))
    return offsets


def _strides(shape: Sequence[int]) -> list[int]:
    return [1, *accumulate(reversed(shape[1:]), mul)][: len(shape)][::-1]


def _widened(k: Tiles, x: Value, wide: Any) -> Value:
    """An index as an offset, whose bits are those of a number without sign."""
    if bits(x.dtype) == bits(wide):
        return x._replace(dtype=wide)
    op = "arith.extui" if bits(x.dtype) < bits(wide) else "arith.trunci"
    return k.make(op, [x], x.shape, wide)


# ---- the last index of a path ---------------------------------------------------------------------------


def _last(k: Tiles, index: Index, arrays: Sequence[Tile], wide: Any) -> tuple[tuple, list[Coordinate]]:
    """The shape of the result of an index, and where its elements are along each axis of what it indexes."""
    entries = _entries(index)
    together, places = _together(k, entries, index.shape, arrays)
    first = _place_of_arrays(list(places))
    shape: list[int] = list(together) if first == -1 else []
    at = []
    for i, e in enumerate(entries):
        at.append(len(shape))
        if i == first:
            shape += together
        elif type(e) in (Span, Window):
            shape.append(e.size)

    def coordinate(i: int, e: Any) -> Coordinate:
        if i in places:
            axis = 0 if first == -1 else at[first or 0]
            return lambda: _spread(k, _widened(k, places[i], wide), axis, tuple(shape))
        return lambda: _spread(k, _along(k, e, index.shape[i], arrays, wide), at[i], tuple(shape))

    return tuple(shape), [coordinate(i, e) for i, e in enumerate(entries)]


def _together(
    k: Tiles, entries: Sequence, sizes: Sequence[int], arrays: Sequence[Tile]
) -> tuple[tuple[int, ...], dict[int, Value]]:
    """The shape of all index arrays, and the numbers in this shape, by entry; nothing without arrays."""
    numbers = {i: e for i, e in enumerate(entries) if type(e) in (Slot, int)}
    together = np.broadcast_shapes(*[e.shape for e in numbers.values() if type(e) is Slot])
    if not together:
        return (), {}
    places = {}
    for i, e in numbers.items():
        x = k.constant(e + sizes[i] * (e < 0), I32) if type(e) is int else k.tile(arrays[e.place])
        while x.shape and len(x.shape) < len(together):
            x = k.expand(x, 0)
        places[i] = k.broadcast(x, together)
    return together, places


def _entries(index: Index) -> list:
    """The entries that index an axis, those that an ellipsis leaves out too."""
    if None in index.entries:
        raise NotImplementedError("an index of a reference with None in a Triton kernel: use reshape on the value")
    given = [e for e in index.entries if e is not Ellipsis]
    missing = range(len(given), len(index.shape))
    at = index.entries.index(Ellipsis) if Ellipsis in index.entries else len(given)
    whole = [Span(0, index.shape[axis - len(given) + at], 1, index.shape[axis - len(given) + at]) for axis in missing]
    return [*given[:at], *whole, *given[at:]]


def _place_of_arrays(numbers: Sequence[int]) -> int | None:
    """The entry where the axes of index arrays go: that of the first number, or -1 for the front, as in NumPy."""
    if not numbers:
        return None
    return numbers[0] if numbers[-1] - numbers[0] == len(numbers) - 1 else -1


def _along(k: Tiles, e: Any, size: int, arrays: Sequence[Tile], wide: Any) -> Value:
    """The indices that an entry selects along its axis."""
    if type(e) is int:
        return k.constant(e + size * (e < 0), wide)
    if type(e) is Slot:
        x = arrays[e.place]
        return k.constant(x.value, wide) if isinstance(x, Number) else _widened(k, x, wide)
    start = e.start if type(e) is Span else arrays[e.place]
    if isinstance(start, Number):
        start = int(start.value)
    if e.step == 1 and not isinstance(start, Value):
        return _widened(k, k.arange(start, start + e.size), wide)
    first = start if isinstance(start, Value) else k.constant(start, I32)
    steps = k.arange(0, e.size)
    if e.step != 1:
        steps = k.arith("mul", steps, k.full_like(e.step, steps))
    first = k.splat(_widened(k, first, I32), steps.shape)
    return _widened(k, k.arith("add", first, steps), wide)


def _spread(k: Tiles, x: Value, axis: int, shape: tuple) -> Value:
    """A value whose axes begin at an axis of a shape, in this shape."""
    if x.shape and x.shape != shape:
        before = axis
        while len(x.shape) < len(shape) - before:
            x = k.expand(x, len(x.shape))
        while len(x.shape) < len(shape):
            x = k.expand(x, 0)
    return k.broadcast(x, shape)


# ---- views ----------------------------------------------------------------------------------------------


def _view_shape(shape: Sequence[int], path: Sequence) -> tuple[int, ...]:
    """The shape of a view of a reference of a shape."""
    for view in path:
        shape = _after(view, shape)
    return tuple(shape)


def _shapes(shape: Sequence[int], path: Sequence) -> list[tuple]:
    """The shapes that all views but the last apply to."""
    return [_view_shape(shape, path[:i]) for i in range(len(path) - 1)]


def _after(view: Any, shape: Sequence[int]) -> Sequence[int]:
    if type(view) is Index:
        return [e.size for e in _entries(view) if type(e) in (Span, Window)]
    if type(view) is Transposed:
        return [shape[i] for i in view.permutation]
    return view.shape if type(view) is Reshaped else shape


def _through(
    k: Tiles, view: Any, before: tuple, coordinates: list[Coordinate], arrays: Sequence[Tile], wide: Any, shape: tuple
) -> list[Coordinate]:
    """Coordinates in a view as coordinates in what it views."""
    if type(view) is Index:
        return _indexed(k, view, coordinates, arrays, wide, shape)
    if type(view) is Transposed:
        return [coordinates[view.permutation.index(axis)] for axis in range(len(coordinates))]
    if type(view) is Reshaped:
        return _reshaped(k, before, view.shape, coordinates, wide, shape)
    if bits(view.dtype) != bits(view.before):
        raise NotImplementedError(
            f"a view of {view.before} as {view.dtype}, of another width, in a Triton kernel: bitcast the value"
        )
    return coordinates


def _indexed(k, index, coordinates, arrays, wide, shape):
    own, found = iter(coordinates), []

    def moved(e, size, inner):
        if inner is None:
            return lambda: k.splat(_along(k, e, size, arrays, wide), shape)
        start = Slot(e.place, ()) if type(e) is Window else e.start

        def write():
            place = inner()
            if e.step != 1:
                place = k.arith("mul", place, k.full_like(e.step, place))
            return k.arith("add", place, k.splat(_along(k, start, size, arrays, wide), shape))

        return write

    for e, size in zip(_entries(index), index.shape, strict=True):
        if type(e) is Slot and e.shape:
            raise NotImplementedError("an index of a view that an array of indices made, in a Triton kernel")
        found.append(moved(e, size, next(own) if type(e) in (Span, Window) else None))
    return found


def _reshaped(k, before, after, coordinates, wide, shape):
    """The numbers of the elements, and their coordinates in the other shape."""

    def number():
        total = k.full(0, wide, shape)
        for stride, coordinate in zip(_strides(after), coordinates, strict=True):
            total = k.arith("add", total, k.arith("mul", coordinate(), k.full(stride, wide, shape)))
        return total

    def part(stride, size):
        quotient = lambda: k.like("arith.divui", n := number(), k.full_like(stride, n))  # noqa: E731
        return lambda: k.like("arith.remui", q := quotient(), k.full_like(size, q))

    return [part(stride, size) for stride, size in zip(_strides(before), before, strict=True)]


# ---- elements of four bits ------------------------------------------------------------------------------


def _is_pairs(index: Index, block: Block) -> bool:
    """Returns whether an index selects whole bytes of an array with two elements a byte."""
    entries = _entries(index)
    last = entries[-1] if entries else None
    if type(last) is not Span or (last.start % 2, last.size % 2, last.step) != (0, 0, 1):
        return False
    axis = len(block.array_shape) - 1
    return axis not in block.squeezed and block.array_shape[axis] % 2 == 0 and not index.has_arrays()


def _half(index: Index) -> Index:
    *others, last = _entries(index)
    halved = Span(last.start // 2, last.size // 2, 1, last.limit // 2)
    return Index((*index.shape[:-1], index.shape[-1] // 2), (*others, halved))


def _halved(k: Tiles, block: Block) -> Block:
    """The block as one of bytes."""
    *starts, last = block.starts
    start = k.like("arith.divui", last, k.constant(2, last.dtype))
    shape = (*block.array_shape[:-1], block.array_shape[-1] // 2)
    return block._replace(array_shape=shape, starts=(*starts, start))


# ---- reading and writing --------------------------------------------------------------------------------


def read(k: Tiles, at: Access, mask: Value | None = None, other: Value | None = None, **options: Any) -> Value:
    """Loads elements."""
    if bits(at.dtype) == 4:
        return _read_small(k, at, mask, other, options)
    if at.dtype != np.bool_:
        return k.load(at.pointers, mask, other, **options)
    pointers = k.pointers_to(at.pointers, I8)
    x = k.load(pointers, mask, other if other is None else k.cast(other, I8), **options)
    return k.cast(x, np.bool_)


def _read_small(k, at, mask, other, options):
    if at.is_packed and mask is not None:
        raise NotImplementedError(f"a masked load of a block of {at.dtype} in a Triton kernel")
    packed = k.load(at.pointers._replace(dtype=I8), mask, None, **options)
    if at.is_packed:
        high = k.like("arith.shrui", packed, k.full_like(4, packed))
        x = k.reshape(k.join(packed, high), (*packed.shape[:-1], 2 * packed.shape[-1]))
        return k.make("arith.trunci", [x], x.shape, at.dtype)
    odd = k.like("arith.remui", at.parity, k.full_like(2, at.parity))
    shift = k.cast(k.arith("mul", odd, k.full_like(4, odd)), I8)
    x = k.like("arith.shrui", packed, shift)
    x = k.make("arith.trunci", [x], x.shape, at.dtype)
    return x if other is None else k.select(mask, x, other)


def write(k: Tiles, at: Access, value: Value, mask: Value | None = None, evict: str | None = None) -> None:
    """Stores elements."""
    if bits(at.dtype) == 4:
        return _write_small(k, at, value, mask, evict)
    if at.dtype == np.bool_:
        at = at._replace(pointers=k.pointers_to(at.pointers, I8))
        value = k.cast(value, I8)
    return k.store(at.pointers, value, mask, evict)


def _write_small(k, at, value, mask, evict):
    if not at.is_packed or mask is not None:
        raise NotImplementedError(
            f"a store of {at.dtype} to half of a byte in a Triton kernel: write whole, even blocks"
        )
    value = k.make("arith.extui", [value], value.shape, I8)
    low, high = k.halves(k.reshape(value, (*value.shape[:-1], value.shape[-1] // 2, 2)))
    value = k.like("arith.ori", low, k.like("arith.shli", high, k.full_like(4, high)))
    k.store(at.pointers._replace(dtype=I8), value, None, evict)


# ---- atomic operations ----------------------------------------------------------------------------------


def atomic(k: Tiles, name: str, at: Access, value: Value, mask: Value | None) -> Value:
    """Changes elements at once, by an operation of atomic_rmw, and returns the old ones."""
    group = kind(value.dtype)
    if group == 0 and name in ("max", "min"):
        return _float_extremum(k, name, at, value, mask)
    signs = {("add", 0): "fadd", ("max", 2): "umax", ("min", 2): "umin"}
    return k.atomic(signs.get((name, group), name), at.pointers, value, mask)


def _float_extremum(k, name, at, value, mask):
    """By the order of the bits as integers, which is reversed for negative floats."""
    if bits(value.dtype) < 32:
        raise NotImplementedError(
            f"atomic_{name} of {value.dtype} in a Triton kernel: GPUs have it for 32 bits and more"
        )
    whole = np.dtype(f"int{bits(value.dtype)}")
    pointers, number = k.pointers_to(at.pointers, whole), k.bitcast(value, whole)
    zero = k.full_like(0, number)
    positive, negative = k.compare("ge", number, zero), k.compare("lt", number, zero)
    masks = [m if mask is None else k.like("arith.andi", mask, m) for m in (positive, negative)]
    other = {"max": "umin", "min": "umax"}[name]
    above, below = k.atomic(name, pointers, number, masks[0]), k.atomic(other, pointers, number, masks[1])
    return k.bitcast(k.select(positive, above, below), value.dtype)
