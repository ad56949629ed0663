"""Modes, dimension numbers and checks of gather and scatter."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.base import dtypes, tree
from minijax.base.naming import known_as
from minijax.ir.types import ShapedArray
from minijax.primitives.moving import other_axes
from minijax.run.arrays.array import Array


class GatherScatterMode(enum.Enum):
    """Says what gather and scatter do where indices are out of bounds.

    `CLIP` moves them inside, `FILL_OR_DROP` reads a fill value and drops writes, `PROMISE_IN_BOUNDS` leaves the result
    unspecified, `ONE_HOT` gathers by a product with one-hot vectors. Functions accept the names in lower case:
    `"clip"`, `"fill"`, `"drop"`, `"promise_in_bounds"`, `"one_hot"`.

    Example:
        >>> x, far = jnp.array([10.0, 20.0]), jnp.array([1, 5])
        >>> x.at[far].get(mode="clip"), x.at[far].get(mode="fill", fill_value=0)
        (Array([20., 20.], dtype=float32), Array([20.,  0.], dtype=float32))
    """

    CLIP = 1
    FILL_OR_DROP = 2
    PROMISE_IN_BOUNDS = 3
    ONE_HOT = 4

    @staticmethod
    def from_any(s: str | GatherScatterMode | None) -> GatherScatterMode:
        """Converts a user's string to a mode. Raises ValueError for an unknown one."""
        if isinstance(s, GatherScatterMode):
            return s
        if s is not None and not isinstance(s, str) or s not in _MODES:
            modes = ", ".join(sorted(filter(None, _MODES)))
            raise ValueError(f'Unknown gather mode "{s}". Use None or one of: {modes}.')
        return _MODES[s]


CLIP, FILL_OR_DROP = GatherScatterMode.CLIP, GatherScatterMode.FILL_OR_DROP
PROMISE_IN_BOUNDS, ONE_HOT = GatherScatterMode.PROMISE_IN_BOUNDS, GatherScatterMode.ONE_HOT
_MODES = {
    "clip": CLIP,
    "fill": FILL_OR_DROP,
    "drop": FILL_OR_DROP,
    None: FILL_OR_DROP,
    "promise_in_bounds": PROMISE_IN_BOUNDS,
    "one_hot": ONE_HOT,
}


@known_as("jax._src.lax.slicing.GatherDimensionNumbers")
class GatherDimensionNumbers(NamedTuple):
    """Relates the axes of operand, indices and result of a gather; the last axis of the indices is the index vector.

    `offset_dims` are the axes of the result along which windows extend; `collapsed_slice_dims` the axes of the operand
    of size 1 in a window, which are dropped; `start_index_map` the operand's axis for each entry of an index vector.
    The batching axes of operand and indices belong together.

    Example:
        >>> columns = jax.lax.GatherDimensionNumbers((0,), (1,), (1,))  # a window is a column
        >>> x = jnp.array([[1, 2, 3], [4, 5, 6]])
        >>> jax.lax.gather(x, jnp.array([[2], [0]]), columns, (2, 1))
        Array([[3, 1],
               [6, 4]], dtype=int32)
    """

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()


@known_as("jax._src.lax.slicing.ScatterDimensionNumbers")
class ScatterDimensionNumbers(NamedTuple):
    """Relates the axes of operand, indices and updates of a scatter; the last axis of the indices is the index vector.

    `update_window_dims` are the axes of the updates along which windows extend; `inserted_window_dims` the axes of the
    operand of size 1 in a window, which updates lack; `scatter_dims_to_operand_dims` the operand's axis for each entry
    of an index vector. The batching axes of operand and indices belong together.

    Example:
        >>> columns = jax.lax.ScatterDimensionNumbers((0,), (1,), (1,))  # a window is a column
        >>> jax.lax.scatter(jnp.zeros((2, 3)), jnp.array([[2]]), jnp.array([[5.0], [6.0]]), columns)
        Array([[0., 0., 5.],
               [0., 0., 6.]], dtype=float32)
    """

    update_window_dims: Sequence[int]
    inserted_window_dims: Sequence[int]
    scatter_dims_to_operand_dims: Sequence[int]
    operand_batching_dims: Sequence[int] = ()
    scatter_indices_batching_dims: Sequence[int] = ()


def gather_numbers(numbers: ScatterDimensionNumbers) -> GatherDimensionNumbers:
    """The dimension numbers of the gather that reads the elements that a scatter writes."""
    return GatherDimensionNumbers._make(numbers)


def scatter_numbers(numbers: GatherDimensionNumbers) -> ScatterDimensionNumbers:
    """The dimension numbers of the scatter that writes the elements that a gather reads."""
    return ScatterDimensionNumbers(*numbers)


# ---- checks -----------------------------------------------------------------------------------------


def check_axes(op: str, name: str, axes: Sequence[int], rank: int) -> None:
    """Raises TypeError unless axes are sorted, distinct and in bounds."""
    check_sorted(op, name, axes)
    _check_distinct(op, name, axes, rank)


def check_sorted(op: str, name: str, axes: Sequence[int]) -> None:
    """Raises TypeError for axes that are out of order or repeat."""
    if list(axes) != sorted(axes):
        raise TypeError(f"{name} in {op} op must be sorted, got {tuple(axes)}")
    _check_once(op, name, axes)


def _check_once(op: str, name: str, axes: Sequence[int]) -> None:
    if len(set(axes)) != len(axes):
        raise TypeError(f"{name} in {op} op must not repeat, got {tuple(axes)}")


def _check_distinct(op: str, name: str, axes: Sequence[int], rank: int, what: str = "set") -> None:
    _check_once(op, name, axes)
    wrong = [a for a in axes if not 0 <= a < rank]
    if wrong:
        raise TypeError(f"Invalid {name} {what} in {op} op; valid range is [0, {rank}), got {wrong[0]}")


def check_offsets(numbers: GatherDimensionNumbers, rank: int) -> None:
    """Checks `offset_dims`, the axes of a gather's result that index into a slice."""
    check_sorted("gather", "offset_dims", numbers.offset_dims)
    for i, d in enumerate(numbers.offset_dims):
        if not 0 <= d < rank:
            raise TypeError(f"Offset dimension {i} in gather op is out of bounds: {d} for a result of rank {rank}")


def check_indices(op: str, indices: ShapedArray) -> None:
    """Checks that the indices are integers and have an axis for the index vectors."""
    if not dtypes.issubdtype(indices.dtype, np.integer):
        raise ValueError(f"{op}: indices must have an integer type, got {indices.dtype.name}")
    if not indices.ndim:
        raise TypeError(f"{op}: indices must have a last axis, the index vector's; got a scalar")


def check_vector(op: str, name: str, index_map: Sequence[int], indices: ShapedArray, rank: int) -> None:
    """Checks the operand axes to which the entries of an index vector refer."""
    if indices.shape[-1] != len(index_map):
        raise TypeError(
            f"{op.capitalize()} op has {len(index_map)} elements in {name} and the bound of dimension "
            f"index_vector_dim={indices.ndim - 1} of indices is {indices.shape[-1]}. These two numbers must be equal."
        )
    _check_distinct(op, name, index_map, rank, "mapping")


def check_batching(op: str, names: tuple[str, ...], numbers: Sequence, x: ShapedArray, indices: ShapedArray) -> None:
    """Checks the batching axes of operand and indices: they must pair up and be disjoint from the other axes."""
    _, dropped, index_map, of_operand, of_indices = numbers
    check_axes(op, "operand_batching_dims", of_operand, x.ndim)
    for name, axes in zip(names, (dropped, index_map), strict=False):
        if set(axes) & set(of_operand):
            raise TypeError(f"{name} and operand_batching_dims in {op} op must be disjoint, got {axes}, {of_operand}")
    _check_distinct(op, names[2], of_indices, indices.ndim)
    title = f"{op.capitalize()} op"
    if indices.ndim - 1 in of_indices:
        raise TypeError(f"{title} cannot have the index vector dimension as a batching dimension, got {of_indices}")
    if len(of_operand) != len(of_indices):
        raise TypeError(
            f"{title} requires equal numbers of operand_batching_dims and {names[2]}, got {of_operand}, {of_indices}"
        )
    shapes = tuple(x.shape[i] for i in of_operand), tuple(indices.shape[i] for i in of_indices)
    if shapes[0] != shapes[1]:
        words = "operand batching dimensions and indices batching dimensions to have the same shape"
        raise TypeError(f"{title} requires {words}, got {shapes[0]} and {shapes[1]}")


def check_slices(numbers: GatherDimensionNumbers, sizes: Sequence[int], x: ShapedArray, indices: ShapedArray) -> None:
    """Checks the slice sizes of a gather; slices may be larger than the array if nothing is gathered."""
    if len(sizes) != x.ndim:
        raise TypeError(
            f"Gather op must have one slice size for every input dimension, got {len(sizes)} for rank {x.ndim}"
        )
    left_out = len(numbers.collapsed_slice_dims) + len(numbers.operand_batching_dims)
    if len(sizes) != len(numbers.offset_dims) + left_out:
        raise TypeError(
            "All components of the offset index in a gather op must either be a offset dimension or explicitly "
            f"collapsed/batching, got slice sizes {tuple(sizes)} and {numbers}"
        )
    for i, (size, bound) in enumerate(zip(sizes, x.shape, strict=True)):
        if not 0 <= size <= bound and 0 not in indices.shape[:-1]:
            raise TypeError(
                f"Slice size at index {i} in gather op is out of range, got {size} for size {bound}. Take at most "
                f"{bound} elements of axis {i}."
            )
    collapsed, batching = numbers.collapsed_slice_dims, numbers.operand_batching_dims
    for can, axes, bounds in (("collapse slice", collapsed, [1]), ("have operand batching", batching, [0, 1])):
        for at, i in enumerate(axes):
            if sizes[i] not in bounds:
                raise TypeError(
                    f"Gather op can only {can} dims with bound {'/'.join(map(str, bounds))}, but bound is {sizes[i]} "
                    f"for index {i} at position {at}."
                )


def check_scatter(x: ShapedArray, indices: ShapedArray, updates: ShapedArray, numbers: ScatterDimensionNumbers) -> None:
    """Checks the operands of a scatter against each other."""
    window, dropped, index_map, of_operand, _ = numbers
    check_indices("scatter", indices)
    rank = len(window) + indices.ndim - 1
    if updates.ndim != rank:
        raise TypeError(f"Updates tensor must be of rank {rank}; got {updates.ndim}.")
    check_axes("scatter", "update_window_dims", window, updates.ndim)
    check_axes("scatter", "inserted_window_dims", dropped, x.ndim)
    names = ("inserted_window_dims", "scatter_dims_to_operand_dims", "scatter_indices_batching_dims")
    check_batching("scatter", names, numbers, x, indices)
    size = len(window) + len(dropped) + len(of_operand)
    if x.ndim != size:
        raise TypeError(f"Scatter op has window of size {size}; doesn't match operand of rank {x.ndim}.")
    check_vector("scatter", names[1], index_map, indices, x.ndim)
    for d, i in zip(window, other_axes(x.ndim, dropped, of_operand), strict=True):
        if updates.shape[d] > x.shape[i]:
            raise TypeError(
                f"Bounds of the window dimensions of updates must not exceed those of the operand in scatter op; "
                f"got {updates.shape[d]} at {d} of updates and {x.shape[i]} at {i} of the operand"
            )
    for d, bound in zip(other_axes(updates.ndim, window), indices.shape[:-1], strict=True):
        if updates.shape[d] != bound:
            raise TypeError(
                f"Bounds of the scatter dimensions of updates and indices must agree in scatter op; "
                f"got shapes {updates.shape} and {indices.shape}, which differ at {d} of updates"
            )


# ---- windows -------------------------------------------------------------------------------------------


def window_sizes(numbers: ScatterDimensionNumbers, rank: int, update_shape: tuple) -> tuple[int, ...]:
    """The sizes of a scatter's windows in the operand; 1 along axes that the updates lack."""
    sizes = iter([update_shape[i] for i in numbers.update_window_dims])
    missing = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
    return tuple(1 if i in missing else next(sizes) for i in range(rank))


def index_bounds(index_map: Sequence[int], sizes: Sequence[int], x: ShapedArray) -> list[int]:
    """The greatest index that keeps a window of these sizes in bounds, for each entry of an index vector."""
    return [x.shape[i] - sizes[i] for i in index_map]


_INT = int | np.integer


@tree.register_pytree_node_class
@dataclasses.dataclass
class Slice:
    """Selects `size` elements from `start`, which may be an array, with step `stride`.

    Example:
        >>> x = jax.new_ref(jnp.arange(8))
        >>> x[pl.Slice(1, 3, stride=2)]
        Array([1, 3, 5], dtype=int32)
    """

    start: Any
    size: Any
    stride: int = 1

    def __post_init__(self):
        if self.stride < 0:
            raise ValueError(f"`stride` must be >= 0, got {self.stride}")

    @property
    def is_dynamic_start(self) -> bool:
        return not isinstance(self.start, _INT)

    @property
    def is_dynamic_size(self) -> bool:
        return not isinstance(self.size, _INT)

    @classmethod
    def from_slice(cls, slc: slice, size: int) -> Slice:
        """Converts a Python slice of an axis of size `size`."""
        start, stop, step = slc.indices(size)
        return cls(start, len(range(start, stop, step)), step)

    def tree_flatten(self) -> tuple:
        """Returns (the arrays among start and size, the rest)."""
        ends = self.start, self.size
        return [x for x in ends if not isinstance(x, _INT)], (
            *(x if isinstance(x, _INT) else None for x in ends),
            self.stride,
        )

    @classmethod
    def tree_unflatten(cls, aux: tuple, arrays: Sequence) -> Slice:
        """Rebuilds the slice with other arrays."""
        leaves = iter(arrays)
        start, size = (next(leaves) if x is None else x for x in aux[:2])
        return cls(start, size, aux[2])


def dslice(start: int | Array | None, size: int | Array | None = None, stride: int | None = None) -> slice | Slice:
    """Creates an index of `size` elements from `start`, which may be an array, with step `stride`.

    With None for `start`, all elements; without `size`, the elements before `start`.

    Example:
        >>> ref = jax.new_ref(jnp.arange(5))
        >>> ref[jax.ds(1, 3)]
        Array([1, 2, 3], dtype=int32)
    """
    if start is None:
        return slice(None)
    if size is None:
        start, size = 0, start
    return Slice(start, size, 1 if stride is None else stride)
