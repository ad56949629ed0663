"""Masking, indexing, expanding and multiplying batches of matrices."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.base import dtypes
from minijax.indexing.reading import from_front
from minijax.ir.primitive import Axis
from minijax.ir.types import typeof
from minijax.primitives import moving
from minijax.primitives.convert import convert
from minijax.primitives.counting import diagonal_mask, iota
from minijax.primitives.dot import Precision, batch_matmul, dot_general
from minijax.primitives.elementwise import add, bitwise_or, conj, ge, select
from minijax.primitives.families import full_of, is_complex, scalar_like
from minijax.primitives.gather_dims import GatherDimensionNumbers, GatherScatterMode
from minijax.primitives.gather_scatter import gather
from minijax.primitives.structural import concatenate
from minijax.transforms.batch import batch_flat, move_batch_dim


def _masked(x: Any, offset: int, upper: bool) -> Any:
    shape = typeof(x).shape
    mask = diagonal_mask(*shape[-2:], offset, ge, dtypes.default_int_dtype())
    mask, zeros = moving.broadcast_to_shape(mask, shape), full_of(x, 0)
    return select(mask, zeros, x) if upper else select(mask, x, zeros)


def tril(x: Any, k: int = 0) -> Any:
    """`x` with zeros above the diagonal `k`."""
    return _masked(x, k, False)


def triu(x: Any, k: int = 0) -> Any:
    """`x` with zeros below the diagonal `k`."""
    return _masked(x, k - 1, True)


def transposed(x: Any) -> Any:
    """The transposes of matrices."""
    n = typeof(x).ndim
    return moving.transpose(x, (*range(n - 2), n - 1, n - 2))


def adjoint(x: Any) -> Any:
    """The conjugate transposes of matrices."""
    x = transposed(x)
    return conj(x) if is_complex(x) else x


def matmul(x: Any, y: Any) -> Any:
    return batch_matmul(x, y, Precision.HIGHEST)


def symmetrized(x: Any, name: str = "") -> Any:
    """The Hermitian part of matrices. Raises TypeError in the name of a function unless they are square."""
    is_bool = typeof(x).dtype == np.bool_
    try:
        total = (bitwise_or if is_bool else add)(x, adjoint(x))
    except TypeError as error:
        shape = typeof(x).shape
        if shape[-1:] == shape[-2:-1]:
            raise
        what = f"{str(error).partition('. ')[0].rstrip('.')}. {name} takes square matrices, of shape (..., n, n)"
        raise TypeError(f"{what}; for others there are jnp.linalg.svd and jnp.linalg.qr.") from None
    dtype = dtypes.to_inexact_dtype(typeof(x).dtype)
    total = total if dtype == typeof(x).dtype else convert(total, dtype, weak_type=is_bool)
    is_weak = typeof(total).weak_type and dtype.kind == "f"
    return total / (2.0 if is_bool or is_weak else scalar_like(total, 2))


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


def dot_highest(x: Any, y: Any) -> Any:
    """As `dot`, in the highest precision."""
    return dot(x, y, Precision.HIGHEST)


def take_rows(x: Any, indices: Any) -> Any:
    """The rows of a matrix selected by a vector of indices."""
    rows, columns = typeof(x).shape
    indices = moving.expand_dims(from_front(indices, rows), (1,))
    if not rows * columns:
        return moving.filled((typeof(indices).shape[0], columns), scalar_like(x, 0))
    return gather(
        x, indices, GatherDimensionNumbers((1,), (0,), (0,)), (1, columns), mode=GatherScatterMode.PROMISE_IN_BOUNDS
    )


def take_columns(x: Any, indices: Any) -> Any:
    """The columns of a matrix selected by a vector of indices."""
    rows, columns = typeof(x).shape
    indices = moving.expand_dims(from_front(indices, columns), (1,))
    return gather(
        x, indices, GatherDimensionNumbers((0,), (1,), (1,)), (rows, 1), mode=GatherScatterMode.PROMISE_IN_BOUNDS
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
        return moving.filled((*batch, n), scalar_like(x, 0))
    numbers = GatherDimensionNumbers(tuple(range(d)), (d, d + 1), (d, d + 1))
    return gather(x, indices, numbers, (*batch, 1, 1), mode=GatherScatterMode.PROMISE_IN_BOUNDS)


def map_over_batch(fun: Callable, sizes: Sequence[int], dims: Sequence[int | None] | None = None) -> Callable:
    """Maps a flat function over leading batch axes of `sizes`, which all operands have, or those whose dim is 0."""

    def wrap(inner: Callable, size: int) -> Callable:
        def run(*xs):
            axis = Axis(None, size)
            results, out_dims = batch_flat(inner, axis, xs, dims or [0] * len(xs))
            return [move_batch_dim(x, d, 0, axis) for x, d in zip(results, out_dims, strict=True)]

        return run

    for size in reversed(sizes):
        fun = wrap(fun, size)
    return fun
