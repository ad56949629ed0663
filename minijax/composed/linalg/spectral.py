"""Eigenvalues of large Hermitian matrices by spectral divide and conquer (Nakatsukasa & Higham 2013).

The polar factor of A - s is 1 on the invariant subspace of the eigenvalues above s, and -1 on that of those below. In
a basis of both subspaces, A has two diagonal blocks, which are divided in turn until they are small. All blocks are on
the diagonal of one matrix. Shapes are static: a block is processed within a part of a known size, with unit vectors
around it.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from minijax.base import dtypes
from minijax.composed.arrays.selecting import where
from minijax.composed.linalg.lu import qr
from minijax.composed.linalg.matrices import adjoint, along, diagonal, dot_highest, symmetrized, take_columns, typed
from minijax.composed.linalg.polar import norm, qdwh
from minijax.higher.cond import switch
from minijax.higher.while_loop import while_loop
from minijax.ir.types import typeof
from minijax.primitives import elementwise as lax, moving
from minijax.primitives.convert import convert
from minijax.primitives.counting import eye, iota
from minijax.primitives.dynamic_slice import dynamic_index_in_dim, dynamic_slice, dynamic_update_slice
from minijax.primitives.families import is_complex, scalar_like
from minijax.primitives.moving import sum_axis
from minijax.primitives.random_bits import threefry_2x32
from minijax.primitives.reduce import reduce_max
from minijax.primitives.sort import sort
from minijax.primitives.structural import slice_in_dim

_FLOAT = np.dtype(np.float32)
_FIRST_SHIFT, _LARGEST_SHIFT, _NEXT_SHIFT = 0.01, 0.1, -1.7


class _Work(NamedTuple):
    """Blocks `h` in the basis `v`, which are diagonal before the row `at`.

    Rows before `skipped` are not diagonal, because their eigenvalues are not wanted. `sizes[i]` is the size of the
    block that begins at row i.
    """

    at: Any
    skipped: Any
    sizes: Any
    h: Any
    v: Any


class _Part(NamedTuple):
    """The part `around` of a matrix, from row `start` on, and its `block` among zeros, on `rows`, from row `at` on."""

    start: Any
    at: Any
    rows: Any
    block: Any
    around: Any


class _Division(NamedTuple):
    """The next shift, the number of eigenvalues below, the basis `q`, the matrix `h` in it.

    `rest` is the norm of the off-diagonal blocks, or infinite as long as that is too large.
    """

    shift: Any
    below: Any
    q: Any
    h: Any
    rest: Any


def spectral_eigh(
    a: Any, small: Callable, leaf: int, subset: tuple[int, int] | None = None, sort_eigenvalues: bool = True
) -> list:
    """Eigenvectors and eigenvalues of one Hermitian matrix with more than `leaf` rows; NaN without convergence.

    `subset` is a range of eigenvalues. `small` computes eigenvectors and ascending eigenvalues of `leaf` rows.
    """
    n, dtype = typeof(a).shape[0], typeof(a).dtype
    x = a if dtype.itemsize > 2 else convert(a, _FLOAT)  # half precision cannot count eigenvalues
    scale = reduce_max(lax.abs(x), (0, 1))
    scale = where(scale == 0, scalar_like(scale, 1), scale)
    work = _diagonalize_blocks(x / typed(scale, x), small, leaf, subset or (0, n))
    v, w = work.v, _real_diagonal(work.h) * scale
    ok = lax.is_finite(scale + sum_axis(w, 0))
    if sort_eigenvalues or subset is not None:
        places = iota(np.int32, n)
        key = where(places < work.skipped, -np.inf, where(places >= work.at, np.inf, w))
        _, w, order = sort((key, w, places), 0, num_keys=1)
        v = take_columns(v, order)
    if subset is not None:
        v, w = (slice_in_dim(y, *subset, axis=-1) for y in (v, w))
    v, w = (where(ok, y, scalar_like(y, np.nan)) for y in (v, w))
    return [typed(v, a), convert(w, dtypes.to_floating_dtype(dtype))]


def _diagonalize_blocks(a: Any, small: Callable, leaf: int, wanted: tuple[int, int]) -> _Work:
    """Diagonalizes the blocks that have wanted eigenvalues."""
    n, dtype = typeof(a).shape[0], typeof(a).dtype
    limits = _sizes_of_parts(n, leaf)
    eps = float(dtypes.finfo(dtypes.to_floating_dtype(dtype)).eps)
    size = norm(a)
    rounding = size * eps
    mixing = convert(_random(n), dtype)

    def skip(work, size):
        end = work.at + size
        return work._replace(at=end, skipped=end)

    steps = [skip, partial(_solve_block, small=small, n=leaf)]
    steps += [partial(_divide_block, mixing=mixing, rounding=rounding, n=m) for m in limits[1:]]

    def step(work):
        size = dynamic_index_in_dim(work.sizes, work.at, keepdims=False)
        step_index = sum((convert(size > np.int32(m), size.dtype) for m in limits[:-1]), np.int32(1))
        is_wanted = work.at + size > np.int32(wanted[0])
        return switch(where(is_wanted, step_index, np.int32(0)), steps, work, size)

    start = _Work(np.int32(0), np.int32(0), moving.filled((n,), np.int32(n)), a, eye(n, n, dtype))
    return while_loop(lambda work: work.at < np.int32(wanted[1]), step, start)


def _sizes_of_parts(n: int, leaf: int) -> list[int]:
    """The sizes of parts from `leaf` up to n, each with some room for half of the next."""
    sizes, unit = [], max(leaf // 8, 1)
    while n > leaf:
        sizes.append(n)
        n = -(-n // (2 * unit)) * unit
    return [leaf, *reversed(sizes)]


def _random(n: int) -> Any:
    """A matrix of uniform numbers between -1 and 1."""
    bits = threefry_2x32(np.zeros(2, np.uint32), moving.reshape_to(iota(np.uint32, n * n), (n, n)))
    uniform = convert(lax.shift_right_logical(bits, np.uint32(8)), _FLOAT) * _FLOAT.type(2.0 ** (-23))
    return uniform - _FLOAT.type(1)


def _real_diagonal(x: Any) -> Any:
    d = diagonal(x)
    return lax.real(d) if is_complex(d) else d


# ---- parts -------------------------------------------------------------------------------------------


def _square(rows: Any, columns: Any) -> Any:
    n = typeof(rows).shape[0]
    wide = [moving.broadcast_in_dim(x, (n, n), (i,)) for i, x in enumerate((rows, columns))]
    return lax.bitwise_and(*wide)


def _part(work: _Work, size: Any, n: int) -> _Part:
    """The block of that size at the row `work.at`, within a part of n rows and columns."""
    start = lax.min(work.at, np.int32(typeof(work.h).shape[0] - n))
    places = iota(np.int32, n) + start
    rows = (places >= work.at) & (places < work.at + size)
    around = dynamic_slice(work.h, (start, start), (n, n))
    block = where(_square(rows, rows), around, scalar_like(around, 0))
    return _Part(start, work.at - start, rows, block, around)


def _diagonal_matrix(n: int, dtype: Any, values: Any) -> Any:
    """A matrix with `values`, a vector or one scalar, on its diagonal."""
    values = along(values, -2) if typeof(values).ndim else values
    return eye(n, n, dtype) * convert(values, dtype)


def _pad_block(part: _Part, x: Any, values: Any) -> Any:
    """`x` on the block, and a diagonal matrix of `values` around it."""
    return where(_square(part.rows, part.rows), x, _diagonal_matrix(typeof(x).shape[0], typeof(x).dtype, values))


def _replace_block(work: _Work, part: _Part, q: Any, h: Any) -> tuple:
    """The blocks with one replaced by `h`, and the basis multiplied by `q`."""
    n, zero = typeof(h).shape[0], np.int32(0)
    h = where(_square(part.rows, part.rows), h, part.around)
    v = dynamic_slice(work.v, (zero, part.start), (typeof(work.v).shape[0], n))
    v = dynamic_update_slice(work.v, dot_highest(v, q), (zero, part.start))
    return dynamic_update_slice(work.h, h, (part.start, part.start)), v


def _solve_block(work: _Work, size: Any, small: Callable, n: int) -> _Work:
    """Diagonalizes a block that is small enough."""
    part = _part(work, size, n)
    # The diagonal around the block has eigenvalues beyond the block's on either side, which keep their positions.
    far = norm(part.block)
    far = where(far == 0, scalar_like(far, 1), far * 2)
    before = iota(np.int32, n) < part.at
    v, w = small(_pad_block(part, part.block, where(before, -far, far)))
    q = _pad_block(part, v, scalar_like(v, 1))
    h, v = _replace_block(work, part, q, _diagonal_matrix(n, typeof(v).dtype, w))
    return work._replace(at=work.at + size, h=h, v=v)


# ---- splitting ---------------------------------------------------------------------------------------


def _divide_block(work: _Work, size: Any, mixing: Any, rounding: Any, n: int) -> _Work:
    """Divides a block in two, or skips it if it is diagonal."""
    part = _part(work, size, n)
    division = _find_division(part, size, mixing[:n, :n], rounding)
    # If the division failed, the eigenvalues are NaN.
    h = where(lax.is_finite(division.rest), division.h, scalar_like(division.h, np.nan))
    h, v = _replace_block(work, part, division.q, h)
    is_diagonal = division.below >= size
    places, middle = iota(np.int32, typeof(work.h).shape[0]), work.at + division.below
    sizes = where(places == work.at, division.below, work.sizes)
    sizes = where(places == where(is_diagonal, np.int32(-1), middle), size - division.below, sizes)
    return work._replace(at=where(is_diagonal, middle, work.at), sizes=sizes, h=h, v=v)


def _find_division(part: _Part, size: Any, mixing: Any, rounding: Any) -> _Division:
    """The first division with small off-diagonal blocks. A diagonal block is not divided."""
    a, n = part.block, typeof(part.block).shape[0]
    unit, tolerance = eye(n, n, a.dtype), rounding * (8 + 2 * n**0.5)
    off_diagonal = a - _diagonal_matrix(n, a.dtype, diagonal(a))
    middle = _median(_real_diagonal(a), part.rows, size)
    spread = norm(_pad_block(part, a - _diagonal_matrix(n, a.dtype, middle), scalar_like(middle, 0)))
    spread = spread / lax.sqrt(convert(size, spread.dtype))

    def attempt(division):
        # Eigenvalues at the point of division belong to neither side. Another attempt uses another point.
        at = middle + division.shift * spread
        shifted = a - _diagonal_matrix(n, a.dtype, at)
        u, *_ = qdwh(_pad_block(part, shifted, spread))
        projector = where(_square(part.rows, part.rows), (unit - u) * 0.5, 0)
        below = convert(lax.round(sum_axis(_real_diagonal(projector), 0)), np.dtype(np.int32))
        q, h, rest = _in_basis_of(part, projector, below, mixing)
        is_proper = (below > np.int32(0)) & (below < size)
        rest = where(is_proper & (rest <= tolerance), rest, scalar_like(rest, np.inf))
        return _Division(division.shift * _NEXT_SHIFT, below, q, h, rest)

    def again(division):
        in_bounds = lax.abs(division.shift) < _LARGEST_SHIFT
        return (division.rest == np.inf) & in_bounds

    rest = norm(off_diagonal)
    is_diagonal = rest <= rounding * 4
    rest = where(is_diagonal, rest, rest * np.inf)  # NaN stays
    division = while_loop(again, attempt, _Division(scalar_like(spread, _FIRST_SHIFT), size, unit, a, rest))
    return division._replace(below=where(lax.is_finite(division.rest), division.below, size))


def _median(x: Any, flags: Any, count: Any) -> Any:
    """The median of the `count` elements that are marked by `flags`."""
    x = sort(where(flags, x, scalar_like(x, np.inf)), 0)
    sides = (lax.div(count - 1, np.int32(2)), lax.div(count, np.int32(2)))
    low, high = (dynamic_index_in_dim(x, i, keepdims=False) for i in sides)
    return (low + high) * 0.5


def _in_basis_of(part: _Part, projector: Any, below: Any, mixing: Any) -> tuple:
    """A basis of the projector's range and of its complement, the block in it, the norm of its off-diagonal blocks.

    Random mixing makes the first columns span the range. One step of subspace iteration corrects their conditioning.
    """
    n = typeof(projector).shape[0]
    before = iota(np.int32, n) < part.at + below
    lower, upper = part.rows & before, part.rows & ~before

    def orthonormal(x):
        q, _ = qr(_pad_block(part, x, scalar_like(x, 1)), full_matrices=False)
        return _pad_block(part, q, scalar_like(q, 1))

    q = orthonormal(dot_highest(projector, mixing))
    kept = dot_highest(projector, q)
    q = orthonormal(where(moving.broadcast_in_dim(lower, (n, n), (1,)), kept, q - kept))
    h = symmetrized(dot_highest(adjoint(q), dot_highest(part.block, q)))
    off_diagonal = _square(lower, upper) | _square(upper, lower)
    zero = scalar_like(h, 0)
    return q, where(off_diagonal, zero, h), norm(where(off_diagonal, h, zero))
