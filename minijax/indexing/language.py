"""The internal representation of an index, and the parser of a user's index."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.base import dtypes, errors, tree
from minijax.base.dims import as_index
from minijax.base.symbolic.dimension import Dim, SymbolicDim, is_int, max_dim, min_dim
from minijax.ir.concrete import concrete_value
from minijax.ir.trace import Tracer
from minijax.ir.types import is_value, typeof
from minijax.primitives.as_array import as_array
from minijax.primitives.gather_dims import Slice
from minijax.run.arrays.array import Array

LARGEST_INT32 = np.iinfo(np.int32).max


class Span(NamedTuple):
    """A slice resolved against its axis: `size` elements from `start`, with stride `step`."""

    start: int
    size: int
    step: int
    limit: int

    ready = True

    def is_whole(self, size: int) -> bool:
        """Returns whether it selects all of an axis of `size`."""
        return self[:3] == (0, size, 1)

    def positive(self, size: int) -> tuple[int, int, int]:
        """(start, limit, stride) of the same elements in ascending order, on an axis of `size`."""
        if self.step > 0:
            return self.start, max(self.start, self.limit), self.step
        low = min(self.limit + 1 + (self.start - self.limit - 1) % -self.step, size)
        return low, max(self.start + 1, low), -self.step

    def item(self, operands: Sequence) -> slice:
        """The corresponding item of a user's index."""
        return slice(self.start, self.limit if self.limit >= 0 else None, self.step)


class Slot(NamedTuple):
    """An index that is operand number `place`; `ready` means that it is known to be in bounds."""

    place: int
    shape: tuple[int, ...]
    ready: bool = False

    def item(self, operands: Sequence) -> Any:
        """The corresponding item of a user's index."""
        return operands[self.place]


class Listed(NamedTuple):
    """Indices of a kernel's copies: the elements that `path` selects from operand `place`, a reference or an array.

    The arrays of `path` are the `count` operands after it; elements that are `ignored` are left out.
    """

    place: int
    shape: tuple[int, ...]
    path: tuple = ()
    count: int = 0
    ignored: int | None = None

    ready = False


class Window(NamedTuple):
    """`size` elements from the start in operand `place`, with stride `step`; `ready` means known to be in bounds."""

    place: int
    size: int
    ready: bool = True
    step: int = 1
    apart: None = None  # a fifth field, by which a Window never equals a Span as a cache key

    def is_whole(self, size: int) -> bool:
        """Returns whether it is known to select all of an axis of `size`."""
        return False

    def item(self, operands: Sequence) -> Slice:
        """The corresponding item of a user's index."""
        return Slice(operands[self.place], self.size, self.step)


class Stretch(NamedTuple):
    """Elements whose number is known when a kernel runs, at most `limit`, from `start`, or from operand `place`.

    The number is operand `place`, or the one after it if the start is an operand (`start` is None).
    """

    place: int
    start: int | None
    limit: int

    def is_whole(self, size: int) -> bool:
        """Returns whether it is known to select all of an axis of `size`."""
        return False

    def bounded(self, size: int) -> "Span | Window":
        """The same, of `size` elements."""
        return Window(self.place, size) if self.start is None else Span(self.start, size, 1, self.start + size)

    def size(self, operands: Sequence) -> Any:
        """The number of elements."""
        return operands[self.place + (self.start is None)]


def keeps_axis(entry: Any) -> bool:
    """Returns whether an entry of an index keeps its axis in the result."""
    return type(entry) in (Span, Window, Stretch)


def of_operands(entry: Any) -> bool:
    """Returns whether an entry of an index has operands."""
    return type(entry) in (Slot, Window, Listed, Stretch)


class Options(NamedTuple):
    """The options of `at[...].get` and its updates."""

    mode: Any = None
    fill_value: Any = None
    indices_are_sorted: bool = False
    unique_indices: bool = False
    wrap_negative_indices: bool = True


PLAIN = Options()


class Index(NamedTuple):
    """The static part of an index on an array of `shape`, in which axes of size 1 were inserted at `expanded`.

    Its entries are ints, `Span`, `Slot`, `Window`, None and Ellipsis.
    """

    shape: tuple[int, ...]
    entries: tuple
    expanded: tuple[int, ...] = ()

    def on_axes(self) -> list[tuple[int, Any]]:
        """The entries that index an axis, each with its axis."""
        return list(enumerate(e for e in self.entries if e is not None and e is not Ellipsis))

    def after(self, count: int) -> "Index":
        """The same index, whose operands come after `count` others."""
        entries = [e._replace(place=e.place + count) if of_operands(e) else e for e in self.entries]
        return self._replace(entries=tuple(entries))

    def places(self) -> list[tuple[int, Any]]:
        """All entries, each with the axis that it indexes; for None and Ellipsis, the axis before it."""
        places, axis = [], -1
        for e in self.entries:
            axis += e is not None and e is not Ellipsis
            places.append((axis, e))
        return places

    def has_arrays(self) -> bool:
        """Returns whether an entry is an operand of rank above 0, which requires a gather."""
        return any(type(e) in (Slot, Listed) and e.shape for e in self.entries)

    def is_whole(self) -> bool:
        """Returns whether the index selects all elements."""
        return all(keeps_axis(e) and e.is_whole(self.shape[a]) for a, e in self.on_axes())


def check_ints(index: Index, wraps: bool) -> None:
    """Raises IndexError for an int out of bounds."""
    for axis, e in index.on_axes():
        size = index.shape[axis]
        if type(e) is int and not -size * wraps <= e < size:
            raise IndexError(f"index {e} out of bounds for axis {axis} with size {size}")


# ---- parsing -----------------------------------------------------------------------------------------


def _items_of(index: Any) -> tuple:
    if isinstance(index, list):
        is_many = any(isinstance(i, Sequence | slice | type(None) | type(...)) or np.ndim(i) for i in index)
        better = "tuple" if is_many else "array"
        raise TypeError(
            f"Using a non-tuple sequence for multidimensional indexing is not allowed; use `arr[{better}(seq)]` "
            "instead of `arr[seq]`. See https://github.com/jax-ml/jax/issues/4564 for more information."
        )
    return index if isinstance(index, tuple) else (index,)


def parse(index: Any, shape: tuple[int, ...]) -> tuple[Index, list]:
    """Parses an index on an array of `shape` to its static part and its array operands.

    Raises IndexError or TypeError for an object that is not an index, or that does not fit the shape.
    """
    items, booleans, operands = [], [], []
    for i, item in enumerate(_items_of(index)):
        item = _canonical_item(item)
        if type(item) is bool:
            booleans.append(len(items))
            item = np.arange(int(item))
        is_mask = isinstance(item, np.ndarray) and item.dtype == np.bool_
        items += _nonzero(item, i) if is_mask else [item]
    expanded = _axes_of_booleans(items, booleans, len(shape))
    for axis in expanded:
        shape = (*shape[:axis], 1, *shape[axis:])
    entries, axis = [], 0
    for item in _with_full_slices(items, shape, len(expanded)):
        entries.append(_entry(item, axis, shape, operands))
        axis += item is not None and item is not Ellipsis
    parsed = Index(shape, tuple(entries), expanded)
    if 0 in shape:
        _check_scalars(parsed)
    return parsed, operands


def _axes_of_booleans(items: list, booleans: list[int], ndim: int) -> tuple[int, ...]:
    """The positions of the axes that boolean scalars among the items add to an array of rank `ndim`."""
    takes_axis = [x is not None and x is not Ellipsis for x in items]
    left_out = ndim + len(booleans) - sum(takes_axis)
    return tuple(sum(takes_axis[:i]) + left_out * any(x is Ellipsis for x in items[:i]) for i in booleans)


def _with_full_slices(items: list, shape: tuple[int, ...], expanded: int) -> list:
    """The items, with full slices for the axes that they do not index."""
    used = sum(x is not None and x is not Ellipsis for x in items)
    if used > len(shape):
        raise IndexError(
            f"Too many indices: array is {len(shape) - expanded}-dimensional, but {used - expanded} were indexed. Give "
            "at most one index for each axis; `None` adds an axis."
        )
    dots = [i for i, x in enumerate(items) if x is Ellipsis]
    if len(dots) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    at = dots[0] + 1 if dots else len(items)
    return [*items[:at], *[slice(None)] * (len(shape) - used), *items[at:]]


def _check_scalars(index: Index) -> None:
    # Next to an index array, a scalar is broadcast to an index array, and may be out of bounds.
    if not index.has_arrays():
        for axis, entry in index.on_axes():
            if index.shape[axis] == 0 and type(entry) is not Span:
                raise IndexError(f"index is out of bounds for axis {axis} with size 0")


class _MaskAxis(NamedTuple):
    """The indices of a mask's true elements along its axis `k`; the mask is item `at` of the index."""

    indices: np.ndarray
    mask_shape: tuple
    k: int
    at: int


def _nonzero(mask: np.ndarray, at: int) -> list:
    return [_MaskAxis(indices, mask.shape, k, at) for k, indices in enumerate(np.nonzero(mask))]


def _canonical_item(item: Any) -> Any:
    """Canonicalises an index item to None, Ellipsis, a slice, an int, a bool, a mask or an array of integers."""
    if type(item) is int and item.bit_length() > 31:
        dtypes.check_int_fits(item, dtypes.default_int_dtype())
    if item is None or item is Ellipsis or type(item) in (int, bool, slice, Slice):
        return item
    if isinstance(item, np.bool_):
        return bool(item)
    if isinstance(item, int | np.integer):
        return int(item)
    if isinstance(item, str):
        raise TypeError(
            f"JAX does not support string indexing; got idx={item!r}. Use numbers, slices or arrays; named fields "
            "belong in a dictionary of arrays."
        )
    if isinstance(item, list | tuple):
        item = _array_from_list(item)
    if isinstance(item, Array | np.ndarray | float | complex | np.generic):
        return _canonical_array(item)
    if is_value(item) and is_int(item):
        typeof(item)  # raises for an object with `__jax_array__`
        return _canonical_array(as_array(item))
    if hasattr(item, "__index__"):
        return item.__index__()
    raise IndexError(
        "only integers, slices (`:`), ellipsis (`...`), newaxis (`None`) and integer or boolean arrays are "
        f"valid indices. Got {item!r}"
    )


def _array_from_list(item: Any) -> Any:
    """A list inside an index as an array; a mask becomes a NumPy array."""
    leaves = tree.tree_leaves(item)
    if leaves and not all(type(x) in (bool, np.bool_) for x in leaves):
        return as_array(item)
    return np.asarray(item, np.int32 if not leaves else np.bool_)


def _canonical_array(item: Any) -> Any:
    dtype = np.dtype(type(item)) if isinstance(item, float | complex) else item.dtype
    if dtype == np.bool_:
        value = _concrete(item)
        return value if value.ndim else bool(value)
    if not dtypes.issubdtype(dtype, np.integer):
        raise TypeError(
            f"Indexer must have integer or boolean type, got indexer with type {dtype}. Convert it with `int(i)` or "
            "`i.astype(int)`."
        )
    return item


def _concrete(mask: Any) -> np.ndarray:
    """The value of a boolean index, which decides the result's shape."""
    value = concrete_value(mask)
    if value is None:
        raise errors.NonConcreteBooleanIndexError(typeof(mask).str_short(True))
    return np.asarray(value)


def _entry(item: Any, axis: int, shape: tuple, operands: list) -> Any:
    if item is None or item is Ellipsis:
        return item
    if type(item) is slice:
        return _span(item, shape[axis], axis)
    if type(item) is _MaskAxis:
        first = axis - item.k
        if item.mask_shape[item.k] not in (shape[axis], 0):
            raise IndexError(
                f"boolean index did not match shape of indexed array in index {item.at}: got "
                f"{item.mask_shape}, expected {list(shape[first : first + len(item.mask_shape)])}. Make the mask from "
                "the axes that it indexes."
            )
        item = item.indices.astype(np.int32)
    if type(item) is Slice:
        operands.append(item.start)
        return Window(len(operands) - 1, as_index(item.size), False, item.stride)
    if isinstance(item, int):
        if item.bit_length() <= 31:
            return item
        bounds = dtypes.iinfo(index_dtype(shape))
        return min(max(item, bounds.min), bounds.max)  # still out of bounds
    operands.append(item)
    return Slot(len(operands) - 1, typeof(item).shape)


def index_dtype(shape: tuple[int, ...]) -> np.dtype:
    """An integer dtype that holds the indices of all axes."""
    return np.dtype(np.int64 if any(is_int(n) and n > LARGEST_INT32 for n in shape) else np.int32)


def _span(s: slice, size: int, axis: int) -> Span:
    parts = []
    for v in (s.start, s.stop, s.step):
        if isinstance(v, Tracer) and v.concrete_value() is None:
            raise IndexError(
                f"Slice entries must be static integers. Got slice({s.start}, {s.stop}, {s.step}) at position {axis}. "
                "`lax.dynamic_slice` takes a traced start and a static size."
            )
        if isinstance(v, float):
            raise TypeError(
                f"{type(v).__name__!r} object cannot be interpreted as an integer. The bounds of a slice are integers: "
                "convert them with `int`, or divide with `//`."
            )
        if isinstance(v, str):
            raise TypeError(f"slices must be of integers, got {v!r}")
        parts.append(v if v is None else v if isinstance(v, SymbolicDim) else v.__index__())
    if not all(map(is_int, (size, *[v for v in parts if v is not None]))):
        return _symbolic_span(*parts, size)
    start, stop, step = slice(*parts).indices(size)
    step = min(max(step, -LARGEST_INT32), LARGEST_INT32) if size <= LARGEST_INT32 else step
    return Span(start, len(range(start, stop, step)), step, stop)


def _symbolic_span(start: Any, stop: Any, step: Any, size: Dim) -> Span:
    """Resolves a slice as Python does, for symbolic dimensions."""
    step = 1 if step is None else step
    if step == 0:
        raise ValueError("slice step cannot be zero")
    low, high = (0, size) if step > 0 else (-1, size - 1)

    def place(v: Any, default: Dim) -> Dim:
        return default if v is None else max_dim(v + size, low) if v < 0 else min_dim(high, v)

    first, last = (low, high) if step > 0 else (high, low)
    first, last = place(start, first), place(stop, last)
    length = (last - first + step - 1) // step if step > 0 else (first - last - step - 1) // -step
    return Span(first, max_dim(length, 0), step, last)
