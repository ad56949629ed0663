"""Arithmetic of dimension sizes: ints, and symbolic dimensions, which are returned unchanged."""

import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from minijax.base.source import hide_frames
from minijax.base.symbolic.dimension import Dim, SymbolicDim, max_dim


def canonical_dim(size: Any) -> Any:
    """Returns `size` as an int, or unchanged if it is a symbolic dimension. Raises TypeError for anything else."""
    if isinstance(size, SymbolicDim):
        return size
    try:
        return operator.index(size)
    except TypeError:
        text = f"Shapes must be 1D sequences of concrete values of integer type, got a dimension of size {size!r}."
        if hasattr(size, "_origin_msg"):
            text += "\nIf using `jit`, try using `static_argnums` or applying `jit` to smaller subfunctions."
            text += size._origin_msg()
        else:
            text += " Use integers: `int(size)` or `//` make them."
        raise TypeError(text) from None


def as_index(size: Any) -> Any:
    """Returns `operator.index(size)`; a symbolic dimension is returned unchanged."""
    return size if isinstance(size, SymbolicDim) else operator.index(size)


def canonical_shape(shape: Sequence) -> tuple[Any, ...]:
    """Returns `shape` as a tuple of ints and symbolic dimensions. Raises TypeError for anything else."""
    try:
        try:
            return tuple(d if type(d) is int else canonical_dim(d) for d in shape)
        except TypeError as error:
            if "Shapes must be" in str(error):
                raise
            raise TypeError(f"Shapes must be 1D sequences of concrete values of integer type, got {shape!r}.") from None
    except Exception as error:
        hide_frames(error)
        raise


def shape_of(shape: Any) -> tuple[Any, ...]:
    """Returns the shape given as a sequence of sizes or as a single size; anything with `np.ndim > 0` is a sequence."""
    try:
        has_many = type(shape) in (tuple, list) or (not isinstance(shape, SymbolicDim) and np.ndim(shape) > 0)
        return canonical_shape(shape if has_many else (shape,))
    except Exception as error:
        hide_frames(error)
        raise


def shape_of_iterable(shape: Any) -> tuple[Any, ...]:
    """As `shape_of`, for any iterable."""
    return shape_of(tuple(shape) if isinstance(shape, Iterable) and getattr(shape, "ndim", 1) else shape)


def canonical_axis(axis: Any, ndim: int) -> int:
    """Returns `axis` as a nonnegative index. Raises ValueError if it is out of bounds."""
    try:
        i = operator.index(axis)
        if not -ndim <= i < ndim:
            valid = f"Use an axis from {-ndim} to {ndim - 1}." if ndim else "A scalar has no axis."
            raise ValueError(f"axis {i} is out of bounds for array of dimension {ndim}. {valid}")
        return i + ndim if i < 0 else i
    except Exception as error:
        hide_frames(error)
        raise


def stride_dim(d: Dim, window: Dim, stride: Dim) -> Dim:
    """The number of windows that fit into an axis of size `d`, at starts that are `stride` apart."""
    return max_dim((d - window) // stride + 1, 0)
