"""What an index means, and the operations that read and update by it."""

from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

import numpy as np

from minijax.base import cache, dtypes, errors, tree
from minijax.ir.trace import Tracer
from minijax.ir.types import ShapedArray, is_value, typeof, unwrapped
from minijax.numpy import creation
from minijax.numpy.promote import as_type
from minijax.ops import moving, scatter as lax_scatter, shape as lax_shape
from minijax.ops.convert import convert
from minijax.ops.elementwise import add, lt, mul, select_n
from minijax.ops.index import dynamic_slice
from minijax.ops.indexing import Slice
from minijax.ops.scatter import FILL_OR_DROP, PROMISE_IN_BOUNDS, GatherDimensionNumbers, GatherScatterMode
from minijax.run.array import Array

_LARGEST_INT32 = np.iinfo(np.int32).max


# ---- what an index says ------------------------------------------------------------------------------


class Span(NamedTuple):
    """A slice resolved against its axis: `size` elements from `start`, by `step`."""

    start: int
    size: int
    step: int
    limit: int

    def positive(self, size: int) -> tuple[int, int, int]:
        """Start, limit and stride of the same elements in ascending order, on an axis of `size`."""
        if self.step > 0:
            return self.start, max(self.start, self.limit), self.step
        low = min(self.limit + 1 + (self.start - self.limit - 1) % -self.step, size)
        return low, max(self.start + 1, low), -self.step


class Slot(NamedTuple):
    """An operand of the index; a `ready` one is known to lie in bounds."""

    place: int
    shape: tuple[int, ...]
    ready: bool = False


class Window(NamedTuple):
    """`size` elements from where an operand says, by `step`; a `ready` one is known to lie in bounds."""

    place: int
    size: int
    ready: bool = True
    step: int = 1


class Options(NamedTuple):
    """How a user wants an index to be taken."""

    mode: Any = None
    fill_value: Any = None
    indices_are_sorted: bool = False
    unique_indices: bool = False
    wrap_negative_indices: bool = True


PLAIN = Options()


class Index(NamedTuple):
    """The static part of an index on an array of `shape`, with axes of size 1 put in at `expanded`."""

    shape: tuple[int, ...]
    entries: tuple
    expanded: tuple[int, ...] = ()

    def on_axes(self) -> list[tuple[int, Any]]:
        """The entries that stand for an axis each, with its number."""
        return list(enumerate(e for e in self.entries if e is not None and e is not Ellipsis))

    def is_whole(self) -> bool:
        """Whether the index leaves nothing out."""
        wholes = ((0, n, 1) for n in self.shape)
        return all(type(e) is Span and e[:3] == next(wholes) for _, e in self.on_axes())


def _items(index: Any) -> tuple:
    if isinstance(index, list):
        raise TypeError(
            "Using a non-tuple sequence for multidimensional indexing is not allowed; use `arr[array(seq)]` "
            "instead of `arr[seq]`. See https://github.com/jax-ml/jax/issues/4564 for more information."
        )
    return index if isinstance(index, tuple) else (index,)


def parse(index: Any, shape: tuple[int, ...]) -> tuple[Index, list]:
    """An index on an array of `shape` as its static part and its array operands.

    Raises IndexError or TypeError for what is no index, or does not fit the shape.
    """
    items, expanded, operands = [], [], []
    for i, item in enumerate(_items(index)):
        found = _read(item)
        if type(found) is bool:
            expanded.append(i)
            found = np.arange(int(found))
        is_mask = isinstance(found, np.ndarray) and found.dtype == np.bool_
        items += _nonzero(found, i) if is_mask else [found]
    for i in expanded:
        shape = (*shape[:i], 1, *shape[i:])
    used = sum(x is not None and x is not Ellipsis for x in items)
    if used > len(shape):
        raise IndexError(
            f"Too many indices: array is {len(shape) - len(expanded)}-dimensional, but "
            f"{used - len(expanded)} were indexed"
        )
    dots = [i for i, x in enumerate(items) if x is Ellipsis]
    if len(dots) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    at = dots[0] + 1 if dots else len(items)
    items[at:at] = [slice(None)] * (len(shape) - used)
    entries, axis = [], 0
    for item in items:
        entries.append(_entry(item, axis, shape, operands))
        axis += item is not None and item is not Ellipsis
    found = Index(shape, tuple(entries), tuple(expanded))
    if 0 in shape:
        _check_scalars(found)
    return found, operands


def _check_scalars(index: Index) -> None:
    # Beside an array of indices, a scalar is one of them, and may lie out of bounds.
    on_axes = index.on_axes()
    if not any(type(entry) is Slot and entry.shape for _, entry in on_axes):
        for axis, entry in on_axes:
            if index.shape[axis] == 0 and type(entry) is not Span:
                raise IndexError(f"index is out of bounds for axis {axis} with size 0")


class _MaskAxis(NamedTuple):
    """Where a mask is true along one of its axes; the axis is number `k` of the mask, item `at` of the
    index.
    """

    indices: np.ndarray
    mask_shape: tuple
    k: int
    at: int


def _nonzero(mask: np.ndarray, at: int) -> list:
    return [_MaskAxis(found, mask.shape, k, at) for k, found in enumerate(np.nonzero(mask))]


def _read(item: Any) -> Any:
    """One item of an index: None, Ellipsis, a slice, an int, a bool, a mask or an array of integers."""
    if type(item) is int and item.bit_length() > 31:
        dtypes.check_int_fits(item, dtypes.default_int_dtype())
    if item is None or item is Ellipsis or type(item) in (int, bool, slice, Slice):
        return item
    if isinstance(item, np.bool_):
        return bool(item)
    if isinstance(item, int | np.integer):
        return int(item)
    if isinstance(item, str):
        raise TypeError(f"JAX does not support string indexing; got idx={item!r}")
    if isinstance(item, list | tuple):
        item = _listed(item)
    item = unwrapped(item)
    if isinstance(item, Array | np.ndarray | float | complex | np.generic):
        return _array(item)
    if is_value(item):
        return _array(creation.asarray(item))
    if hasattr(item, "__index__"):
        return item.__index__()
    raise IndexError(
        "only integers, slices (`:`), ellipsis (`...`), newaxis (`None`) and integer or boolean arrays are "
        f"valid indices. Got {item!r}"
    )


def _listed(item: Any) -> Any:
    """A list inside an index as an array; a mask stays on the host."""
    leaves = tree.tree_leaves(item)
    if leaves and not all(type(x) in (bool, np.bool_) for x in leaves):
        return creation.asarray(item)
    return np.asarray(item, np.int32 if not leaves else np.bool_)


def _array(item: Any) -> Any:
    dtype = np.dtype(type(item)) if isinstance(item, float | complex) else item.dtype
    if dtype == np.bool_:
        value = _concrete(item)
        return value if value.ndim else bool(value)
    if not dtypes.issubdtype(dtype, np.integer):
        raise TypeError(f"Indexer must have integer or boolean type, got indexer with type {dtype}")
    if isinstance(item, np.ndarray):
        return item.astype(dtypes.canonicalize_dtype(dtype))
    return item


def _concrete(mask: Any) -> np.ndarray:
    """The value of a boolean index, which decides the result's shape."""
    if isinstance(mask, Tracer):
        value = mask.concrete_value()
        if value is None:
            raise errors.NonConcreteBooleanIndexError(typeof(mask).str_short(True))
        mask = value
    return np.asarray(mask)


def _entry(item: Any, axis: int, shape: tuple, operands: list) -> Any:
    if item is None or item is Ellipsis:
        return item
    if type(item) is slice:
        return _span(item, shape[axis], axis)
    if type(item) is _MaskAxis:
        first = axis - item.k
        if item.mask_shape[item.k] != shape[axis]:
            raise IndexError(
                f"boolean index did not match shape of indexed array in index {item.at}: got "
                f"{item.mask_shape}, expected {list(shape[first : first + len(item.mask_shape)])}"
            )
        item = item.indices.astype(np.int32)
    if type(item) is Slice:
        operands.append(item.start)
        return Window(len(operands) - 1, item.size.__index__(), False, item.stride)
    if isinstance(item, int):
        if item.bit_length() <= 31:
            return item
        bounds = dtypes.iinfo(_index_dtype(shape))
        return min(max(item, bounds.min), bounds.max)  # out of bounds, as it was
    operands.append(item)
    return Slot(len(operands) - 1, typeof(item).shape)


def _span(s: slice, size: int, axis: int) -> Span:
    parts = []
    for v in (s.start, s.stop, s.step):
        if isinstance(v, Tracer) and v.concrete_value() is None:
            raise IndexError(
                f"Slice entries must be static integers. Got slice({s.start}, {s.stop}, {s.step}) at position {axis}"
            )
        if isinstance(v, float):
            raise TypeError(f"{type(v).__name__!r} object cannot be interpreted as an integer")
        if isinstance(v, str):
            raise TypeError(f"slices must be of integers, got {v!r}")
        parts.append(v if v is None else v.__index__())
    start, stop, step = slice(*parts).indices(size)
    step = min(max(step, -_LARGEST_INT32), _LARGEST_INT32) if size <= _LARGEST_INT32 else step
    return Span(start, len(range(start, stop, step)), step, stop)


# ---- reading -----------------------------------------------------------------------------------------


def read(x: Any, operands: list, index: Index, options: Options) -> Any:
    """The elements of `x` that a parsed index names."""
    filling = options.mode is not None and GatherScatterMode.from_any(options.mode) is FILL_OR_DROP
    on_axes = index.on_axes()
    if index.is_whole():
        return _finished(x if isinstance(x, Array) else creation.asarray(x), index)
    if filling or any(type(e) is Slot and e.shape for _, e in on_axes):
        return _gathered(x, operands, index, options)
    if all(_is_static(e, index.shape[a], options.wrap_negative_indices) for a, e in on_axes):
        return _finished(_sliced(x, index), index)
    if any(type(e) in (Span, Window) and abs(e.step) != 1 for _, e in on_axes):
        return _gathered(x, operands, index, options)
    return _finished(_slid(x, operands, index, options), index)


def _is_static(entry: Any, size: int, wraps: bool) -> bool:
    if type(entry) is int:
        return (-size if wraps else 0) <= entry < size
    return type(entry) is Span


def _sliced(x: Any, index: Index) -> Any:
    windows = [
        e.positive(index.shape[a]) if type(e) is Span else (e % index.shape[a], e % index.shape[a] + 1, 1)
        for a, e in index.on_axes()
    ]
    if all(w == (0, n, 1) for w, n in zip(windows, index.shape, strict=True)):
        return x
    starts, limits, strides = zip(*windows, strict=True)
    return lax_shape.slice(x, starts, limits, None if all(s == 1 for s in strides) else strides)


def _slid(x: Any, operands: list, index: Index, options: Options) -> Any:
    only = index.on_axes()[0][1] if len(index.shape) == 1 else None
    if type(only) is Slot:
        wraps = options.wrap_negative_indices and not only.ready
        return dynamic_slice(x, [operands[only.place]], [1], allow_negative_indices=wraps)
    dtype = _index_dtype(index.shape)
    starts: list[Any] = []
    sizes: list[int] = []
    for a, e in index.on_axes():
        if type(e) in (Slot, Window):
            starts.append(as_type(operands[e.place], dtype))
        else:
            starts.append(np.asarray(e if type(e) is int else e.positive(index.shape[a])[0]).astype(dtype)[()])
        sizes.append(e.size if type(e) in (Span, Window) else 1)
    ready = all(type(e) not in (Slot, Window) or e.ready for _, e in index.on_axes())
    if options.wrap_negative_indices and not (ready and all(type(e) is not int for _, e in index.on_axes())):
        starts = [from_front(s, n) for s, n in zip(starts, index.shape, strict=True)]
    return dynamic_slice(x, starts, sizes, allow_negative_indices=False)


def _finished(x: Any, index: Index) -> Any:
    """What is left to do after a slice: turn axes round, drop those of ints, add those of None."""
    on_axes = index.on_axes()
    turned = tuple(a for a, e in on_axes if type(e) is Span and e.step < 0)
    dropped = tuple(a for a, e in on_axes if type(e) not in (Span, Window))
    x = lax_shape.rev(x, turned) if turned else x
    x = lax_shape.squeeze(x, dropped) if dropped else x
    kept = [e for e in index.entries if e is None or type(e) in (Span, Window)]
    return moving.expand_dims(x, tuple(i for i, e in enumerate(kept) if e is None))


def from_front(i: Any, size: int) -> Any:
    """An index counted from the front, by operations; a numpy value is compared at once."""
    dtype = typeof(i).dtype
    if dtypes.issubdtype(dtype, np.unsignedinteger):
        return i
    if size > dtypes.iinfo(dtype).max:
        i, dtype = convert(i, np.dtype(np.int32)), np.dtype(np.int32)
    below = i < 0 if isinstance(i, np.ndarray) else lt(i, dtype.type(0))
    return select_n(below, i, add(i, size if typeof(i).weak_type else dtype.type(size)))


def _index_dtype(shape: tuple[int, ...]) -> np.dtype:
    return np.dtype(np.int64 if any(n > _LARGEST_INT32 for n in shape) else np.int32)


# ---- gather and scatter ------------------------------------------------------------------------------


class Part(NamedTuple):
    """One column of the index vectors: the axis it is for, where its values come from, and their axes."""

    axis: int
    source: Any
    dims: tuple[int, ...]


class Plan(NamedTuple):
    """How an index is written as one gather."""

    group: tuple[tuple[int, Any], ...]
    group_shape: tuple[int, ...]
    parts: tuple[Part, ...]
    index_shape: tuple[int, ...]
    slice_sizes: tuple[int, ...]
    offset_dims: tuple[int, ...]
    collapsed: tuple[int, ...]
    gathered: tuple[int, ...]
    turned: tuple[int, ...]
    added: tuple[int, ...]

    @property
    def numbers(self) -> GatherDimensionNumbers:
        return GatherDimensionNumbers(self.offset_dims, self.collapsed, tuple(p.axis for p in self.parts))

    @property
    def result(self) -> tuple[int, ...]:
        """The shape of what the index names, axes of None included."""
        sizes = iter(self.gathered)
        return tuple(1 if i in self.added else next(sizes) for i in range(len(self.gathered) + len(self.added)))


class _Layout:
    """A plan in the making: the axes of the result, in order."""

    def __init__(self):
        self.parts: list[Part] = []
        self.out: list[tuple[str, int]] = []
        self.turned: list[int] = []

    def index_axes(self) -> int:
        return sum(kind == "index" for kind, _ in self.out)

    def put_group(self, group: list, shape: tuple) -> None:
        first = self.index_axes()
        self.parts += [Part(a, e, tuple(range(first, first + len(shape)))) for a, e in group]
        self.out += [("index", n) for n in shape]

    def put_span(self, axis: int, e: Span | Window, size: int) -> None:
        if e.step == 1:
            if type(e) is Window:
                self.parts.append(Part(axis, e, ()))
            elif (e.start, e.size) != (0, size):
                self.parts.append(Part(axis, e.start, ()))
            self.out.append(("window", e.size))
            return
        if e.step < 0:
            self.turned.append(sum(kind != "new" for kind, _ in self.out))
        self.parts.append(Part(axis, e, (self.index_axes(),)))
        self.out.append(("index", e.size))


@cache.cache
def plan(index: Index) -> Plan:
    """The gather that an index means; arrays, with the ints beside them, broadcast together."""
    entries = index.entries
    members = [i for i, e in enumerate(entries) if type(e) in (int, Slot)]
    grouped = any(type(e) is Slot and e.shape for e in entries)
    axes = np.cumsum([e is not None and e is not Ellipsis for e in entries]) - 1
    group = [(int(axes[i]), entries[i]) for i in members] if grouped else []
    group_shape = lax_shape.broadcast_shapes(*(e.shape for _, e in group if type(e) is Slot)) if group else ()
    in_front = grouped and members[-1] - members[0] != len(members) - 1
    layout = _Layout()
    if in_front:
        layout.put_group(group, group_shape)
    for i, e in enumerate(entries):
        axis = int(axes[i])
        if e is None:
            layout.out.append(("new", 1))
        elif type(e) in (Span, Window):
            layout.put_span(axis, e, index.shape[axis])
        elif type(e) in (int, Slot) and not grouped:
            layout.parts.append(Part(axis, e, ()))
        elif grouped and not in_front and i == members[0]:
            layout.put_group(group, group_shape)
    windows = {int(axes[i]): e.size for i, e in enumerate(entries) if type(e) in (Span, Window) and e.step == 1}
    gathered = [(kind, n) for kind, n in layout.out if kind != "new"]
    return Plan(
        tuple(group),
        group_shape,
        tuple(layout.parts),
        index_shape=tuple(n for kind, n in gathered if kind == "index"),
        slice_sizes=tuple(windows.get(a, 1) for a in range(len(index.shape))),
        offset_dims=tuple(i for i, (kind, _) in enumerate(gathered) if kind == "window"),
        collapsed=tuple(a for a in range(len(index.shape)) if a not in windows),
        gathered=tuple(n for _, n in gathered),
        turned=tuple(layout.turned),
        added=tuple(i for i, (kind, _) in enumerate(layout.out) if kind == "new"),
    )


def _index_vectors(p: Plan, shape: tuple, operands: list, wraps: bool) -> Any:
    """The index vectors of a plan, along the last axis of one array."""
    dtype = _index_dtype(shape)
    pairs = p.group or [(part.axis, part.source) for part in p.parts if type(part.source) is Slot]
    values = [_member(e, shape[a], operands, wraps) for a, e in pairs]
    queue, columns = iter(values), []
    for part in p.parts:
        if p.group and part.axis == p.group[0][0]:
            spread = [(_spread(v, p.group_shape), typeof(v).ndim) for v in values]
            queue = iter([_as_index(v, dtype, rank) for v, rank in spread])
        start = as_type(operands[part.source.place], dtype) if type(part.source) is Window else None
        column = _column(part, p, shape, queue, dtype, wraps, start)
        columns.append(_as_index(column, dtype, typeof(column).ndim))
    if not columns:
        return np.zeros(0, dtype)
    wide = (*p.index_shape, 1)
    columns = [moving.broadcast_in_dim(c, wide, part.dims) for c, part in zip(columns, p.parts, strict=True)]
    return lax_shape.concatenate(columns, len(p.index_shape))


def _as_index(x: Any, dtype: Any, rank: int) -> Any:
    """`x` with this dtype; what was of a rank above 0 may stay weak."""
    return x if rank and isinstance(x, Array) and typeof(x).dtype == dtype else as_type(x, dtype)


def _member(e: Any, size: int, operands: list, wraps: bool) -> Any:
    if type(e) is int:
        return e + size if wraps and e < 0 else e
    return from_front(operands[e.place], size) if wraps and not e.ready else operands[e.place]


def _spread(value: Any, shape: tuple) -> Any:
    have = typeof(value).shape
    if have == shape:
        return value
    kept = [i for i in range(len(shape) - len(have), len(shape))]
    return moving.broadcast_in_dim(value, shape, kept)


def _column(part: Part, p: Plan, shape: tuple, values: Any, dtype: np.dtype, wraps: bool, start: Any) -> Any:
    e = part.source
    if type(e) is Window and e.step == 1:
        return start
    if type(e) in (Span, Window):
        steps = mul(dtype.type(e.step), lax_shape.iota(dtype, e.size))
        found = add(dtype.type(e.start) if start is None else start, steps)
        return lax_shape.rev(found, (0,)) if e.step < 0 else found
    if type(e) is int and (not p.group or part.dims == ()):
        return dtype.type(_member(e, shape[part.axis], [], wraps and not p.group))
    return next(values)


def _flags(p: Plan, options: Options) -> dict:
    """Index vectors made of scalars and slices alone are sorted and unique."""
    return dict(
        indices_are_sorted=not p.group or options.indices_are_sorted,
        unique_indices=not p.group or options.unique_indices,
    )


def _gathered(x: Any, operands: list, index: Index, options: Options) -> Any:
    p = plan(index)
    vectors = _index_vectors(p, index.shape, operands, options.wrap_negative_indices)
    x = moving.expand_dims(x, index.expanded)
    if prod(p.gathered) == 0:
        aval = typeof(x)
        return moving.full(p.result, np.zeros((), aval.dtype)[()], aval.weak_type)
    mode = PROMISE_IN_BOUNDS if options.mode is None else options.mode
    found = lax_scatter.gather(
        x, vectors, p.numbers, p.slice_sizes, mode=mode, fill_value=options.fill_value, **_flags(p, options)
    )
    found = lax_shape.rev(found, p.turned) if p.turned else found
    return moving.expand_dims(found, p.added)


def scatter(x: Any, operands: list, values: Any, index: Index, options: Options, update: Callable) -> Any:
    """`x` with what an index names updated by `update`, a scatter of lax."""
    aval, p = typeof(x), plan(index)
    vectors = _index_vectors(p, index.shape, operands, options.wrap_negative_indices)
    if prod(p.gathered) == 0:
        return x
    mode = FILL_OR_DROP if options.mode is None else GatherScatterMode.from_any(options.mode)
    values = moving.full(p.result, np.zeros((), aval.dtype)[()]) if values is None else values
    x, values = _one_type(x, values)
    values = _broadcast_values(values, p.result)
    values = lax_shape.squeeze(values, p.added) if p.added else values
    values = lax_shape.rev(values, p.turned) if p.turned else values
    numbers = lax_scatter.scatter_numbers(p.numbers)
    x = moving.expand_dims(x, index.expanded)
    found = update(x, vectors, values, numbers, mode=mode, **_flags(p, options))
    found = lax_shape.squeeze(found, index.expanded) if index.expanded else found
    return convert(found, aval.dtype, aval.weak_type)


def _one_type(x: Any, values: Any) -> tuple[Any, Any]:
    aval, given = typeof(x), typeof(values)
    if dtypes.is_extended(aval.dtype):
        if given.dtype != aval.dtype:
            raise TypeError(f"at[].set: an array of {aval.dtype} cannot take values of {given.dtype}")
        return x, values
    dtype, weak = dtypes.promote((aval.dtype, aval.weak_type), (given.dtype, given.weak_type))
    if dtype != aval.dtype:
        errors.warn(
            f"scatter inputs have incompatible types: cannot safely cast value from dtype={given.dtype} to "
            f"dtype={aval.dtype} with "
            f"jax_numpy_dtype_promotion={dtypes.config.state().numpy_dtype_promotion}. In "
            "future JAX releases this will result in an error.",
            FutureWarning,
        )
    return as_type(x, dtype, weak), as_type(values, dtype, weak)


def _broadcast_values(values: Any, shape: tuple) -> Any:
    have = typeof(values).shape
    if len(have) > len(shape):
        raise ValueError(f"Cannot broadcast to shape with fewer dimensions: arr_shape={have} shape={shape}")
    if any(n not in (1, m) for n, m in zip(have, shape[len(shape) - len(have) :], strict=True)):
        raise ValueError(
            "Incompatible types for broadcasting: at[] was given values of "
            f"type={typeof(values).str_short()} and "
            f"requested type={ShapedArray(shape, typeof(values).dtype).str_short()}"
        )
    return creation.broadcast_shape_to(values, shape)
