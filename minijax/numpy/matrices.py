"""Products and views of matrices, as the array API has them, and parts of determinants."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np

from minijax.base.dtypes import DTypeLike
from minijax.composed.arrays.selecting import where
from minijax.composed.linalg.matrices import transposed
from minijax.dispatch.jitted import jitted
from minijax.ir.types import typeof
from minijax.numpy import contractions, creation, products, ranges, reductions, shaping, subscripts, taking, ufuncs
from minijax.primitives import elementwise as lax, moving
from minijax.primitives.convert import convert
from minijax.primitives.dot import PrecisionLike
from minijax.primitives.families import is_complex, scalar_like
from minijax.primitives.promote import arrays
from minijax.run.arrays.array import Array, ArrayLike, ShardingLike


@jitted("trace")
def trace_of_transposed(a: Any) -> Any:
    """The traces of matrices, given transposed."""
    a = transposed(a)
    n = typeof(a).shape[-1]
    mask = ranges.eye(n, dtype=bool)
    return reductions.sum(where(mask, a, creation.zeros_like(a)), axis=(-2, -1))


def element(a: Any, i: int, j: int) -> Any:
    return subscripts.getitem(a, (..., i, j))


def product_of_elements(a: Any, *places: tuple[int, int]) -> Any:
    return reduce(lax.mul, (element(a, i, j) for i, j in places))


def det_3x3(a: Any) -> Any:
    total = product_of_elements(a, (0, 0), (1, 1), (2, 2))
    total = lax.add(total, product_of_elements(a, (0, 1), (1, 2), (2, 0)))
    total = lax.add(total, product_of_elements(a, (0, 2), (1, 0), (2, 1)))
    total = lax.sub(total, product_of_elements(a, (0, 2), (1, 1), (2, 0)))
    total = lax.sub(total, product_of_elements(a, (0, 0), (1, 2), (2, 1)))
    return lax.sub(total, product_of_elements(a, (0, 1), (1, 0), (2, 2)))


def count_exchanges(pivots: Any) -> Any:
    """The number of row exchanges of an LU decomposition."""
    at = ranges.arange(typeof(pivots).shape[-1], dtype=np.int32)
    at = moving.expand_dims(at, range(typeof(pivots).ndim - 1))
    return reductions.count_nonzero(ufuncs.not_equal(pivots, at), axis=-1)


def parity_sign(count: Any) -> Any:
    half = ufuncs.remainder(count, 2)
    return lax.add(lax.mul(scalar_like(half, -2), half), scalar_like(half, 1))


def corners(a: Any) -> list:
    """The elements of a 2 by 2 matrix, row by row, and its determinant."""
    w, x, y, z = (element(a, i, j) for i in range(2) for j in range(2))
    return [w, x, y, z, lax.sub(lax.mul(w, z), lax.mul(x, y))]


def split_ratio(ratio: Any, sign: Any) -> tuple:
    """The tangents of sign and log|det|, from the ratio of the determinant's tangent to the determinant."""
    if not is_complex(ratio):
        return creation.zeros_like(sign), ratio
    turn = lax.mul(lax.sub(ratio, convert(lax.real(ratio), typeof(ratio).dtype)), sign)
    return turn, lax.real(ratio)


def matrix_transpose(x: ArrayLike, /) -> Array:
    """Exchanges the last two axes of an array.

    Raises ValueError if the rank is less than 2.
    """
    return shaping.matrix_transpose(x)


def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Array:
    """Returns a diagonal of each matrix in the last two axes.

    `offset` is static: above the main diagonal if positive, below it if negative.
    """
    return taking.diagonal(*arrays("jnp.linalg.diagonal", x), offset, -2, -1)


def trace(x: ArrayLike, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Array:
    """Sums the elements on a diagonal of each matrix in the last two axes.

    `offset` is the diagonal, and `dtype` that of the sum.
    """
    return contractions.trace(*arrays("jnp.linalg.trace", x), offset, -2, -1, dtype)


def outer(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Multiplies each element of one vector with each of another.

    Raises ValueError for other ranks than 1.
    """
    ranks = [typeof(x).ndim for x in arrays("jnp.linalg.outer", x1, x2)]
    if ranks != [1, 1]:
        raise ValueError(f"outer: Input arrays must be one-dimensional, but they have {ranks} dimensions")
    return contractions.outer(x1, x2)


def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis=-1) -> Any:
    """Computes the cross product of vectors of three components.

    `axis` is the axis of the components; others broadcast. Raises ValueError for other numbers of components.
    """
    sizes = [typeof(x).shape[axis] for x in arrays("jnp.linalg.cross", x1, x2)]
    if sizes != [3, 3]:
        raise ValueError(
            "cross: Both input arrays must be (arrays of) 3-dimensional vectors, but they have "
            f"{sizes[0]} and {sizes[1]} components"
        )
    return contractions.cross(x1, x2, axis=axis)


def matmul(
    x1: ArrayLike, x2: ArrayLike, /, *, precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None
) -> Array:
    """Computes the matrix product of two arrays.

    It is `jax.numpy.matmul` without `out_sharding`; both arguments are positional.
    """
    return products.matmul(x1, x2, precision=precision, preferred_element_type=preferred_element_type)


def vecdot(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    axis: int = -1,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Computes the dot products of vectors along an axis, conjugating the first.

    It is `jax.numpy.vecdot`.
    """
    return contractions.vecdot(x1, x2, axis=axis, precision=precision, preferred_element_type=preferred_element_type)


def tensordot(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    axes: int | tuple = 2,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Sums the products of elements of two arrays over pairs of axes.

    It is `jax.numpy.tensordot`; both arrays are positional.
    """
    options = dict(preferred_element_type=preferred_element_type, out_sharding=out_sharding)
    return contractions.tensordot(x1, x2, axes, precision=precision, **options)


def multi_dot(arrays: Sequence, *, precision: PrecisionLike = None) -> Array:
    """Computes a product of two or more matrices in the order of least work.

    The first and the last may be vectors. The order is found from shapes when the function is traced. `precision` is
    that of the multiplications. It does not take `out`.

    Example:
      >>> jnp.linalg.multi_dot([jnp.ones((2, 5)), jnp.ones((5, 9)), jnp.ones(9)])
      Array([45., 45.], dtype=float32)
    """
    arrays = creation.values("jnp.linalg.multi_dot", *arrays)
    shapes = [np.shape(x) for x in arrays]
    if len(shapes) < 2:
        raise ValueError(f"multi_dot requires at least two arrays; got len(arrays)={len(shapes)}")
    if any(len(s) != 2 for s in shapes[1:-1]) or any(len(s) not in (1, 2) for s in (shapes[0], shapes[-1])):
        raise ValueError(
            "multi_dot: input arrays must all be two-dimensional, except for the first and last array which "
            f"may be 1 or 2 dimensional. Got array shapes {shapes}"
        )
    if any(x[-1] != y[0] for x, y in pairwise(shapes)):
        raise ValueError(
            "multi_dot: last dimension of each array must match first dimension of following array. Got "
            f"array shapes {shapes}"
        )
    # Axis i + 1 of the chain is the last one of array i, and the first one of the next.
    axes = [list(range(i, i + 2)) for i in range(len(shapes))]
    axes[0], axes[-1] = axes[0][2 - len(shapes[0]) :], axes[-1][: len(shapes[-1])]
    ends = [*axes[0][:-1], *axes[-1][1:]]
    operands = [part for pair in zip(arrays, axes, strict=True) for part in pair]
    return contractions.einsum(*operands, ends, optimize="auto", precision=precision)
