"""Indexing, stretching and multiplying batches of matrices."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.indexing.reading import from_front
from minijax.ir.primitive import Axis
from minijax.ir.types import typeof
from minijax.ops import moving
from minijax.ops.convert import convert
from minijax.ops.dot import Precision, dot_general
from minijax.ops.families import literal
from minijax.ops.indexing import GatherDimensionNumbers, GatherScatterMode
from minijax.ops.scatter import gather
from minijax.ops.shape import concatenate, iota
from minijax.transforms.batch import batch_flat, place


def along(x: Any, d: int) -> Any:
    """Vectors as rows (d = -2) or columns (d = -1) of matrices."""
    return moving.expand_dims(x, (typeof(x).ndim + 1 + d,))


def typed(x: Any, like: Any) -> Any:
    """`x` with the dtype of `like`."""
    dtype = typeof(like).dtype
    return x if typeof(x).dtype == dtype else convert(x, dtype)


def dot(x: Any, y: Any, precision: Precision | None = None) -> Any:
    """Products of matrices, accumulated in their dtype."""
    n = typeof(x).ndim
    batch = tuple(range(n - 2))
    return dot_general(x, y, (((n - 1,), (n - 2,)), (batch, batch)), precision, typeof(x).dtype)


def take_rows(x: Any, indices: Any) -> Any:
    """The rows of a matrix that a vector of indices names."""
    rows, columns = typeof(x).shape
    indices = moving.expand_dims(from_front(indices, rows), (1,))
    if not rows * columns:
        return moving.full((typeof(indices).shape[0], columns), literal(x, 0))
    return gather(
        x, indices, GatherDimensionNumbers((1,), (0,), (0,)), (1, columns), mode=GatherScatterMode.PROMISE_IN_BOUNDS
    )


def on_diagonal(at: Any, n: int) -> Any:
    """The index vectors (i, i)."""
    sides = [from_front(at, n) for _ in range(2)]
    return concatenate([moving.expand_dims(i, (1,)) for i in sides], 1)


def diagonal(x: Any) -> Any:
    """The diagonals of square matrices."""
    *batch, n, _ = typeof(x).shape
    indices, d = on_diagonal(iota(np.int32, n), n), len(batch)
    if not typeof(x).size:
        return moving.full((*batch, n), literal(x, 0))
    numbers = GatherDimensionNumbers(tuple(range(d)), (d, d + 1), (d, d + 1))
    return gather(x, indices, numbers, (*batch, 1, 1), mode=GatherScatterMode.PROMISE_IN_BOUNDS)


def over_batch(fun: Callable, sizes: Sequence[int]) -> Callable:
    """A flat function of arrays without batch axes, on arrays with these in front."""

    def wrap(inner: Callable, size: int) -> Callable:
        def run(*xs):
            results, dims = batch_flat(inner, Axis(None, size), xs, [0] * len(xs))
            return [place(x, d, 0, Axis(None, size)) for x, d in zip(results, dims, strict=True)]

        return run

    for size in reversed(sizes):
        fun = wrap(fun, size)
    return fun
