"""`jax.numpy.linalg`: eigenvalues, systems, determinants, norms."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from functools import partial, reduce
from itertools import pairwise
from typing import Any, Literal, NamedTuple, overload

import numpy as np

from minijax.api.custom import custom_jvp
from minijax.base import dtypes
from minijax.base.dtypes import DTypeLike
from minijax.base.faces import documented
from minijax.base.naming import known_as
from minijax.composed.arrays.selecting import where
from minijax.composed.linalg import lu
from minijax.composed.linalg.lu import geqrf_p
from minijax.composed.linalg.matrices import adjoint, transposed, typed
from minijax.dispatch.jitted import jitted
from minijax.ir.trace import Tracer
from minijax.ir.types import typeof
from minijax.lax import linalg as lax_linalg
from minijax.numpy import contractions, creation, products, ranges, reductions, shaping, subscripts, taking, ufuncs
from minijax.numpy.products import matmul_highest
from minijax.numpy.reductions import cumprod
from minijax.numpy.vectorizing import mapped
from minijax.primitives import counting, elementwise as lax, moving, structural
from minijax.primitives.convert import convert, stop_gradient
from minijax.primitives.dot import PrecisionLike
from minijax.primitives.families import is_complex, scalar_like
from minijax.primitives.promote import arrays, check_ranks, promote_dtypes_inexact
from minijax.primitives.sort import sort
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


def _product_of_elements(a: Any, *columns: int) -> Any:
    """The product of one element of each row, in these columns."""
    return reduce(lax.mul, (element(a, i, j) for i, j in enumerate(columns)))


def _det_by_expansion(a: Any) -> Any:
    """The determinants of 2 by 2 or 3 by 3 matrices (Leibniz's formula)."""
    term = partial(_product_of_elements, a)
    if typeof(a).shape[-1] == 2:
        return term(0, 1) - term(1, 0)
    return term(0, 1, 2) + term(1, 2, 0) + term(2, 0, 1) - term(2, 1, 0) - term(0, 2, 1) - term(1, 0, 2)


def count_exchanges(pivots: Any) -> Any:
    """The number of row exchanges of an LU decomposition."""
    at = ranges.arange(typeof(pivots).shape[-1], dtype=np.int32)
    at = moving.expand_dims(at, range(typeof(pivots).ndim - 1))
    return reductions.count_nonzero(ufuncs.not_equal(pivots, at), axis=-1)


def parity_sign(count: Any) -> Any:
    return -2 * ufuncs.remainder(count, 2) + 1


def corners(a: Any) -> list:
    """The elements of a 2 by 2 matrix, row by row, and its determinant."""
    w, x, y, z = (element(a, i, j) for i in range(2) for j in range(2))
    return [w, x, y, z, w * z - x * y]


def split_ratio(ratio: Any, sign: Any) -> tuple:
    """The tangents of sign and log|det|, from the ratio of the determinant's tangent to the determinant."""
    if not is_complex(ratio):
        return creation.zeros_like(sign), ratio
    turn = (ratio - convert(lax.real(ratio), typeof(ratio).dtype)) * sign
    return turn, lax.real(ratio)


def matrix_transpose(x: ArrayLike, /) -> Array:
    """Exchanges the last two axes of an array.

    Raises ValueError if the rank is less than 2.

    Example:
      >>> jnp.linalg.matrix_transpose(jnp.array([[1, 2], [3, 4]]))
      Array([[1, 3],
             [2, 4]], dtype=int32)
    """
    return shaping.matrix_transpose(x)


def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Array:
    """Returns a diagonal of each matrix in the last two axes.

    `offset` is static: above the main diagonal if positive, below it if negative.

    Example:
      >>> jnp.linalg.diagonal(jnp.array([[1, 2], [3, 4]]))
      Array([1, 4], dtype=int32)
    """
    return taking.diagonal(*arrays("jnp.linalg.diagonal", x), offset, -2, -1)


def trace(x: ArrayLike, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Array:
    """Sums the elements on a diagonal of each matrix in the last two axes.

    `offset` is the diagonal, and `dtype` that of the sum.

    Example:
      >>> jnp.linalg.trace(jnp.array([[1, 2], [3, 4]]))
      Array(5, dtype=int32)
    """
    return contractions.trace(*arrays("jnp.linalg.trace", x), offset, -2, -1, dtype)


def outer(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Multiplies each element of one vector with each of another.

    Raises ValueError for other ranks than 1.

    Example:
      >>> jnp.linalg.outer(jnp.array([1, 2]), jnp.array([3, 4]))
      Array([[3, 4],
             [6, 8]], dtype=int32)
    """
    ranks = [typeof(x).ndim for x in arrays("jnp.linalg.outer", x1, x2)]
    if ranks != [1, 1]:
        raise ValueError(f"outer: Input arrays must be one-dimensional, but they have {ranks} dimensions")
    return contractions.outer(x1, x2)


def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis=-1) -> Any:
    """Computes the cross product of vectors of three components.

    `axis` is the axis of the components; others broadcast. Raises ValueError for other numbers of components.

    Example:
      >>> jnp.linalg.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0]))
      Array([0, 0, 1], dtype=int32)
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

    Example:
      >>> jnp.linalg.matmul(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 1]))
      Array([3, 7], dtype=int32)
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

    Example:
      >>> jnp.linalg.vecdot(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 1]))
      Array([3, 7], dtype=int32)
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

    Example:
      >>> jnp.linalg.tensordot(jnp.ones((2, 3)), jnp.ones((3, 4)), axes=1).shape
      (2, 4)
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


@known_as("jax._src.numpy.linalg.EigResult")
class EigResult(NamedTuple):
    """Eigenvalues and right eigenvectors, by `eig`."""

    eigenvalues: Any
    eigenvectors: Any


@known_as("jax._src.numpy.linalg.EighResult")
class EighResult(NamedTuple):
    """Eigenvalues and eigenvectors of a Hermitian matrix, by `eigh`."""

    eigenvalues: Any
    eigenvectors: Any


@known_as("jax._src.numpy.linalg.QRResult")
class QRResult(NamedTuple):
    """An orthonormal and a triangular factor, by `qr`."""

    Q: Any
    R: Any


@known_as("jax._src.numpy.linalg.SVDResult")
class SVDResult(NamedTuple):
    """Left singular vectors, singular values and right singular vectors, by `svd`."""

    U: Any
    S: Any
    Vh: Any


def as_inexact(name: str, *args: Any) -> list:
    return promote_dtypes_inexact(*arrays(f"jnp.linalg.{name}", *args))


_SQUARE = "For other matrices there are `jnp.linalg.pinv`, `lstsq` and `svd`."


def check_square(what: str, a: Any) -> None:
    shape = typeof(a).shape
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise ValueError(f"Argument to {what} must have shape [..., n, n], got {shape}. {_SQUARE}")


def eig(a: ArrayLike) -> EigResult:
    """Computes eigenvalues and right eigenvectors of square matrices in the last two axes.

    The result is a named tuple: `eigenvalues`, and `eigenvectors` as columns, both always complex, where NumPy's may be
    real. Eigenvectors are differentiable where eigenvalues are distinct. For Hermitian matrices use `eigh`.

    Example:
      >>> jnp.linalg.eig(jnp.array([[2.0, 0.0], [0.0, 3.0]])).eigenvalues
      Array([2.+0.j, 3.+0.j], dtype=complex64)
    """
    (a,) = as_inexact("eig", a)
    return EigResult(*lax_linalg.eig(a, compute_left_eigenvectors=False))


@jitted("eigvals")
def eigvals(a: ArrayLike) -> Array:
    """Computes eigenvalues of square matrices in the last two axes.

    They are always complex, where NumPy's may be real, and in no particular order.

    Example:
      >>> jnp.linalg.eigvals(jnp.array([[2.0, 0.0], [0.0, 3.0]]))
      Array([2.+0.j, 3.+0.j], dtype=complex64)
    """
    (a,) = as_inexact("eigvals", a)
    return lax_linalg.eig(a, compute_left_eigenvectors=False, compute_right_eigenvectors=False)[0]


@jitted("eigh", static=("UPLO", "symmetrize_input"))
def eigh(a: ArrayLike, UPLO: str | None = None, symmetrize_input: bool = True) -> EighResult:
    """Computes eigenvalues and eigenvectors of Hermitian matrices in the last two axes.

    The result is a named tuple: `eigenvalues`, ascending and real, and `eigenvectors` as columns. `UPLO` is the
    triangle that is read, "L" (the default) or "U". Unless `symmetrize_input` is false, `a` is first replaced by the
    mean of it and its conjugate transpose. Derivatives are infinite or NaN where eigenvalues are equal.

    Example:
      >>> values, vectors = jnp.linalg.eigh(jnp.array([[2.0, 0.0], [0.0, 1.0]]))
      >>> values
      Array([1., 2.], dtype=float32)
    """
    (a,) = as_inexact("eigh", a)
    if UPLO not in (None, "L", "U"):
        raise ValueError(f"UPLO must be one of None, 'L', or 'U', got {UPLO}")
    vectors, values = lax_linalg.eigh(a, lower=UPLO != "U", symmetrize_input=symmetrize_input)
    return EighResult(values, vectors)


@jitted("eigvalsh", static=("UPLO", "symmetrize_input"))
def eigvalsh(a: ArrayLike, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Array:
    """Computes eigenvalues of Hermitian matrices in the last two axes.

    They are real and ascend. `UPLO` is the triangle that is read, "L" or "U". Unless `symmetrize_input` is false, `a`
    is first replaced by the mean of it and its conjugate transpose.

    Example:
      >>> jnp.linalg.eigvalsh(jnp.array([[2.0, 0.0], [0.0, 1.0]]))
      Array([1., 2.], dtype=float32)
    """
    return eigh(*as_inexact("eigvalsh", a), UPLO, symmetrize_input).eigenvalues


@overload
def svd(
    a: ArrayLike, full_matrices: bool = ..., compute_uv: Literal[True] = ..., hermitian: bool = ...,
    subset_by_index: tuple[int, int] | None = ...,
) -> SVDResult: ...  # fmt: skip


@overload
def svd(
    a: ArrayLike, full_matrices: bool = ..., *, compute_uv: Literal[False], hermitian: bool = ...,
    subset_by_index: tuple[int, int] | None = ...,
) -> Array: ...  # fmt: skip


@jitted("svd", static=("full_matrices", "compute_uv", "hermitian", "subset_by_index"))
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Any:
    """Computes singular value decompositions of matrices in the last two axes.

    The result is a named tuple: `U`, `S` (descending) and `Vh`, with `a = (U * S) @ Vh` unless `full_matrices`; or
    without `compute_uv` the singular values only. With `hermitian`, eigenvalues are used. `subset_by_index`, a pair of
    ints, selects a range of the singular values; only TPUs have it. Flags are static. Vectors are differentiable where
    singular values are distinct, unless `full_matrices` gives more of them.

    Example:
      >>> result = jnp.linalg.svd(jnp.diag(jnp.array([3.0, 2.0])))
      >>> result.S
      Array([3., 2.], dtype=float32)
    """
    (a,) = as_inexact("svd", a)
    if hermitian:
        return _svd_hermitian(a, compute_uv, subset_by_index)
    factors = lax_linalg.svd(a, full_matrices=full_matrices, compute_uv=compute_uv, subset_by_index=subset_by_index)
    return SVDResult(*factors) if compute_uv else factors


def _svd_hermitian(a: Any, compute_uv: bool, subset_by_index: tuple[int, int] | None) -> Any:
    """Singular values from eigenvalues, whose signs are moved to the right singular vectors."""
    vectors, values = lax_linalg.eigh(a, subset_by_index=subset_by_index)
    axis = typeof(values).ndim - 1
    sizes = lax.abs(values)
    if not compute_uv:
        return structural.rev(sort(sizes, axis), (axis,))
    signs = lax.sign(values)
    at = counting.broadcasted_iota(np.uint32, typeof(values).shape, axis)
    sizes, at, signs = (structural.rev(x, (axis,)) for x in sort((sizes, at, signs), axis))
    u = taking.take_along_axis(vectors, moving.expand_dims(at, (axis,)), axis=-1)
    return SVDResult(u, sizes, adjoint(u * typed(moving.expand_dims(signs, (axis,)), u)))


def svdvals(x: ArrayLike, /) -> Array:
    """Computes singular values of matrices in the last two axes.

    They descend. The result has a real floating dtype.

    Example:
      >>> jnp.linalg.svdvals(jnp.diag(jnp.array([2.0, 3.0])))
      Array([3., 2.], dtype=float32)
    """
    return svd(*arrays("jnp.linalg.svdvals", x), compute_uv=False)


@jitted("cholesky", static=("upper", "symmetrize_input"))
def cholesky(a: ArrayLike, *, upper: bool = False, symmetrize_input: bool = True) -> Array:
    """Computes the Cholesky factor of Hermitian positive definite matrices in the last two axes.

    The result is the lower triangular `L` with `a = L @ L.T.conj()`, or with `upper` its conjugate transpose. Unless
    `symmetrize_input` is false, `a` is first replaced by the mean of it and its conjugate transpose. A matrix that is
    not positive definite gives NaN, where NumPy raises.

    Example:
      >>> jnp.linalg.cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]]))
      Array([[2., 0.],
             [1., 2.]], dtype=float32)
    """
    (a,) = as_inexact("cholesky", a)
    lower = lax_linalg.cholesky(a, symmetrize_input=symmetrize_input)
    return adjoint(lower) if upper else lower


@overload
def qr(a: ArrayLike, mode: Literal["reduced", "complete", "full", "raw"] = ...) -> QRResult: ...


@overload
def qr(a: ArrayLike, mode: str) -> Any: ...


@jitted("qr", static=("mode",))
def qr(a: ArrayLike, mode: str = "reduced") -> Any:
    """Computes QR factorizations of matrices in the last two axes.

    `mode` is "reduced" or "complete" for a named tuple `Q`, `R`, "r" for `R` only, or "raw" for Householder vectors and
    their factors. It is static.

    Example:
      >>> q, r = jnp.linalg.qr(jnp.ones((4, 2)))
      >>> q.shape, r.shape
      ((4, 2), (2, 2))
    """
    (a,) = as_inexact("qr", a)
    if mode == "raw":
        packed, taus = geqrf_p.bind(a)
        return QRResult(transposed(packed), taus)
    if mode not in ("reduced", "r", "full", "complete"):
        raise ValueError(f"qr: Unsupported QR decomposition mode '{mode}'")
    q, r = lax_linalg.qr(a, full_matrices=mode == "complete")
    return r if mode == "r" else QRResult(q, r)


Axis = int | Sequence[int] | None


@known_as("jax._src.numpy.linalg.SlogdetResult")
class SlogdetResult(NamedTuple):
    """The sign of a determinant, and the logarithm of its absolute value, by `slogdet`."""

    sign: Any
    logabsdet: Any


# ---- systems ----------------------------------------------------------------------------------------


@jitted("solve")
def solve(a: ArrayLike, b: ArrayLike) -> Array:
    """Solves systems of linear equations `a x = b` for square matrices in the last two axes.

    `b` is one vector, or has columns of right-hand sides in its last two axes; leading axes broadcast. A singular
    matrix gives infinities or NaN, where NumPy raises. The result is differentiable in both arguments.

    Example:
      >>> jnp.linalg.solve(jnp.array([[2.0, 0.0], [1.0, 4.0]]), jnp.array([2.0, 9.0]))
      Array([1., 2.], dtype=float32)
    """
    a, b = as_inexact("solve", a, b)
    shape, right = typeof(a).shape, typeof(b).shape
    if len(shape) < 2:
        raise ValueError(f"left hand array must be at least two dimensional; got a.shape={shape}")
    if len(right) > 1 and right == shape[:-1] and right[-2] != shape[-1]:
        raise ValueError(
            f"Invalid shapes for solve: {shape}, {right}: a batch of vectors is ambiguous; "
            f"use solve(a, b[..., None]).squeeze(-1)."
        )
    rank = 1 if len(right) == 1 else 2
    if len(right) < rank:
        raise ValueError(f"solve: input with shape {right} does not have enough dimensions for a right-hand side")
    if not shape[-1] == shape[-2] == right[-rank]:
        raise ValueError(
            f"solve: inconsistent size for core dimension: a.shape={shape} and b.shape={right}. The matrices must be "
            "square, and b have as many rows; `jnp.linalg.lstsq` takes others."
        )
    check_ranks("jnp.linalg.solve", (shape, right), (2, rank))
    return mapped(lu.solve, [a, b], [shape[:-2], right[: len(right) - rank]])


def lstsq(
    a: ArrayLike, b: ArrayLike, rcond: float | None = None, *, numpy_resid: bool = False
) -> tuple[Array, Array, Array, Array]:
    """Solves systems of linear equations by least squares.

    Returns a tuple: solution, sums of squared residuals, rank, and singular values of `a`. `rcond` is the ratio to the
    largest singular value below which singular values count as zero. Residuals are always given; with `numpy_resid`,
    which needs concrete arrays, they are empty if the rank is deficient or the system is not overdetermined, as in
    NumPy.

    Example:
      >>> a = jnp.array([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]])
      >>> x, *_ = jnp.linalg.lstsq(a, jnp.array([1.0, 4.0, 5.0]))
      >>> x.round(3)
      Array([1., 2.], dtype=float32)
    """
    a, b = arrays("jnp.linalg.lstsq", a, b)
    return _lstsq_impl(a, b, rcond, True) if numpy_resid else _lstsq(a, b, rcond)


def _lstsq_by_svd(a: Any, b: Any, rcond: Any) -> tuple:
    u, s, vt = svd(a, full_matrices=False)
    is_positive = s > 0
    mask = is_positive & (s >= creation.array(rcond, typeof(s).dtype) * s[0])
    rank = reductions.sum(mask)
    inverse = where(mask, 1 / typed(where(mask, s, 1), u), 0)[:, None]
    projected = matmul_highest(transposed(ufuncs.conjugate(u)), b)
    return matmul_highest(transposed(ufuncs.conjugate(vt)), inverse * projected), rank, s


def _lstsq_impl(a: Any, b: Any, rcond: Any, numpy_resid: bool = False) -> tuple:
    a, b = as_inexact("lstsq", a, b)
    shape, right, dtype = typeof(a).shape, typeof(b).shape, typeof(a).dtype
    if not (shape and right):
        raise IndexError(f"lstsq: a and b must have at least one axis, got {shape} and {right}")
    if shape[:1] != right[:1]:
        raise ValueError(f"lstsq: Leading dimensions of input arrays must match, got {shape} and {right}")
    for x, ranks in ((shape, (2,)), (right, (1, 2))):
        if len(x) not in ranks:
            raise TypeError(f"lstsq: {len(x)}-dimensional array given. Array must be one or two-dimensional")
    (m, n), of_vector = shape, len(right) == 1
    b = b[:, None] if of_vector else b
    eps = dtypes.finfo(dtype).eps
    rcond = eps * max(n, m) if rcond is None else where(ufuncs.less(rcond, 0), eps, rcond)
    if m and n:
        x, rank, s = _lstsq_by_svd(a, b, rcond)
    else:
        s = creation.zeros((0,), dtypes.to_floating_dtype(dtype))
        rank = creation.array(0, dtypes.default_int_dtype())
        x = creation.zeros((n, *typeof(b).shape[1:]), dtype)
    if numpy_resid and (rank < n or m <= n):
        residuals = creation.zeros((0,), typeof(s).dtype)
    else:
        residuals = norm(b - matmul_highest(a, x), axis=0) ** 2
    return shaping.ravel(x) if of_vector else x, residuals, rank, s


_lstsq = jitted("_lstsq", static=("numpy_resid",))(_lstsq_impl)


def pinv(
    a: ArrayLike, rtol: ArrayLike | None = None, hermitian: bool = False, *, rcond: ArrayLike | None = None
) -> Array:
    """Computes Moore-Penrose inverses of matrices in the last two axes, by singular values.

    Singular values of at most `rtol` times the largest count as zero; `rcond` is another name of it. With `hermitian`,
    eigenvalues are used. The result is differentiable where the rank is constant (Golub and Pereyra, 1973).

    Example:
      >>> jnp.linalg.pinv(jnp.array([[2.0, 0.0], [0.0, 0.0]]))
      Array([[0.5, 0. ],
             [0. , 0. ]], dtype=float32)
    """
    if rcond is not None:
        if rtol is not None:
            raise ValueError("pinv: only one of rtol and rcond may be specified.")
        rtol = rcond
    return _pinv(a, stop_gradient(rtol) if isinstance(rtol, Tracer) else rtol, hermitian)


@partial(custom_jvp, nondiff_argnums=(1, 2))
@jitted("_pinv", static=("hermitian",))
def _pinv(a: Any, rtol: Any, hermitian: bool) -> Any:
    (a,) = as_inexact("pinv", a)
    *batch, m, n = typeof(a).shape
    if not m or not n:
        return creation.zeros((*batch, n, m), typeof(a).dtype)
    a = lax.conj(a) if is_complex(a) else a
    if rtol is None:
        eps = creation.array(dtypes.finfo(typeof(a).dtype).eps)
        rtol = 10.0 * max(m, n) * eps
    u, s, vh = svd(a, full_matrices=False, hermitian=hermitian)
    rtol = creation.asarray(rtol)[..., None]
    rtol = moving.expand_dims(rtol, range(typeof(s).ndim - typeof(rtol).ndim))
    low = rtol * s[..., 0:1]
    s = convert(where(s > low, s, np.inf), typeof(u).dtype)  # strongly typed, as the result
    v, uh = transposed(vh), transposed(u)
    return matmul_highest(v, uh / s[..., None])


@_pinv.defjvp
def _pinv_jvp(rtol, hermitian, primals, tangents):
    """Golub & Pereyra 1973; products are evaluated in the order of least work."""
    (a,), (da,) = primals, tangents
    m, n = typeof(a).shape[-2:]
    p = _pinv(a, rtol, hermitian)
    if hermitian:  # the value is that of the Hermitian part
        a, da = ((x + adjoint(x)) / 2 for x in (a, da))
    dot = matmul_highest
    if m >= n:
        s = dot(dot(p, adjoint(p)), adjoint(da))
        t = dot(dot(adjoint(da), adjoint(p)), p)
        return p, dot(-dot(p, da), p) + s - dot(dot(s, a), p) + t - dot(dot(p, a), t)
    s = dot(p, dot(adjoint(p), adjoint(da)))
    t = dot(adjoint(da), dot(adjoint(p), p))
    return p, dot(-p, dot(da, p)) + s - dot(s, dot(a, p)) + t - dot(p, dot(a, t))


@jitted("inv")
def inv(a: ArrayLike) -> Array:
    """Computes the inverse of a square matrix, or of each in an array.

    Args:
      a: array of rank 2 or more; matrices are in the last two axes.

    Returns:
      An array of the shape of `a` and of its floating or complex dtype. Integers become floats.

    Raises:
      ValueError: if matrices are not square.

    Differences from NumPy:
      A singular matrix is not an error: the result has infinities or NaN. To solve a system, `jnp.linalg.solve` is more
      accurate.

    See also: `jax.numpy.linalg.solve`, `jax.numpy.linalg.pinv`, `jax.scipy.linalg.inv`.

    Example:
      >>> jnp.linalg.inv(jnp.array([[2.0, 0.0], [0.0, 4.0]]))
      Array([[0.5 , 0.  ],
             [0.  , 0.25]], dtype=float32)
    """
    (a,) = arrays("jnp.linalg.inv", a)
    check_square("inv", a)
    shape = typeof(a).shape
    return solve(a, shaping.broadcast_to(ranges.eye(shape[-1], dtype=typeof(a).dtype), shape))


@jitted("matrix_power", static=("n",))
def matrix_power(a: ArrayLike, n: int) -> Array:
    """Raises square matrices in the last two axes to an integer power.

    `n` is static. The power is computed by repeated squaring; for a negative one the inverse is raised. Raises
    TypeError if `n` is not an integer.

    Example:
      >>> jnp.linalg.matrix_power(jnp.array([[1, 1], [0, 1]]), 5)
      Array([[1, 5],
             [0, 1]], dtype=int32)
    """
    (a,) = creation.arraylike("jnp.linalg.matrix_power", a)
    shape = typeof(a).shape
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise TypeError("Last 2 dimensions of the array must be square")
    try:
        n = operator.index(n)
    except TypeError:
        raise TypeError(f"exponent must be an integer, got {n}") from None
    if n == 0:
        return shaping.broadcast_to(ranges.eye(shape[-1], dtype=typeof(a).dtype), shape)
    a, n = (inv(a), -n) if n < 0 else (a, n)
    if n == 3:
        return products.matmul(products.matmul(a, a), a)
    power = result = None
    while n:
        power = a if power is None else products.matmul(power, power)
        n, bit = divmod(n, 2)
        if bit:
            result = power if result is None else products.matmul(result, power)
    return result


# ---- determinants -----------------------------------------------------------------------------------


@jitted("det")
def det(a: ArrayLike) -> Array:
    """Computes determinants of matrices in the last two axes.

    Matrices of up to three rows are expanded, larger ones are factored by LU. Integers become floats. The result is
    differentiable also where a matrix is singular.

    Example:
      >>> jnp.linalg.det(jnp.array([[1.0, 2.0], [3.0, 4.0]]))
      Array(-2., dtype=float32)
    """
    (a,) = as_inexact("det", a)
    check_square("_det()", a)
    return _det_by_expansion(a) if typeof(a).shape[-1] in (2, 3) else _det(a)


@custom_jvp
def _det(a: Any) -> Any:
    sign, logdet = slogdet(a)
    return sign * typed(lax.exp(logdet), sign)


@_det.defjvp
def _det_jvp(primals, tangents):
    value, product = _cofactor_solve(primals[0], tangents[0])
    return value, trace_of_transposed(product)


def _slogdet_lu(a: Any) -> tuple:
    dtype = typeof(a).dtype
    lu, pivots, _ = lax_linalg.lu(a)
    on_diagonal = taking.diagonal(lu, axis1=-2, axis2=-1)
    is_zero = reductions.any(on_diagonal == 0, axis=-1)
    count, sign = count_exchanges(pivots), scalar_like(lu, 1)
    if is_complex(a):
        sign = reductions.prod(on_diagonal / convert(lax.abs(on_diagonal), dtype), axis=-1)
    else:
        count = count + reductions.count_nonzero(on_diagonal < 0, axis=-1)
    sign = ufuncs.multiply(sign, convert(creation.array(parity_sign(count)), dtype))
    sign = where(is_zero, scalar_like(lu, 0), sign)
    logs = typed(lax.log(lax.abs(on_diagonal)), lu)
    logdet = where(is_zero, scalar_like(lu, -np.inf), reductions.sum(logs, axis=-1))
    return sign, ufuncs.real(logdet)


def _slogdet_qr(a: Any) -> tuple:
    if is_complex(a):
        raise NotImplementedError("slogdet method='qr' not implemented for complex inputs")
    r, taus = geqrf_p.bind(a)
    on_diagonal = taking.diagonal(r, axis1=-2, axis2=-1)
    logdet = reductions.sum(lax.log(lax.abs(on_diagonal)), axis=-1)
    sign = reductions.prod(lax.sign(on_diagonal), axis=-1)
    reflections = where(taus[..., : typeof(a).shape[-1] - 1] != 0, -1, 1)
    return sign * convert(reductions.prod(reflections, axis=-1), typeof(a).dtype), logdet


def _slogdet_small(a: Any) -> tuple:
    value = element(a, 0, 0) if typeof(a).shape[-1] == 1 else corners(a)[-1]
    size = lax.abs(value)
    return lax.sign(value), lax.log(size)


_slogdet_lu, _slogdet_qr, _slogdet_small = map(custom_jvp, (_slogdet_lu, _slogdet_qr, _slogdet_small))


@_slogdet_qr.defjvp
@_slogdet_lu.defjvp
def _slogdet_jvp(primals, tangents):
    sign, logdet = slogdet(primals[0])
    return (sign, logdet), split_ratio(trace_of_transposed(solve(primals[0], tangents[0])), sign)


@_slogdet_small.defjvp
def _slogdet_small_jvp(primals, tangents):
    (a,), (t,) = primals, tangents
    sign, logdet = _slogdet_small(a)
    if typeof(a).shape[-1] == 1:
        ratio = element(t, 0, 0) / element(a, 0, 0)
    else:
        w, x, y, z, value = corners(a)
        change = element(t, 0, 0) * z - element(t, 0, 1) * y - element(t, 1, 0) * x + element(t, 1, 1) * w
        ratio = change / value
    return (sign, logdet), split_ratio(ratio, sign)


@jitted("slogdet", static=("method",))
def slogdet(a: ArrayLike, *, method: str | None = None) -> SlogdetResult:
    """Computes signs and logarithms of absolute values of determinants of matrices in the last two axes.

    The result is a named tuple: `sign`, `logabsdet`. `method` is "lu" (also `None`) or, for real matrices, "qr". A
    singular matrix gives 0 and minus infinity.

    Example:
      >>> sign, logdet = jnp.linalg.slogdet(-jnp.eye(3))
      >>> sign
      Array(-1., dtype=float32)
    """
    (a,) = as_inexact("slogdet", a)
    check_square("slogdet()", a)
    if method not in (None, "lu", "qr"):
        raise ValueError(f"Unknown slogdet method '{method}'. Supported methods are 'lu' (`None`), and 'qr'.")
    small = method is None and typeof(a).shape[-1] in (1, 2)
    compute = _slogdet_small if small else _slogdet_qr if method == "qr" else _slogdet_lu
    return SlogdetResult(*compute(a))


def _cofactor_solve(a: Any, b: Any) -> tuple:
    """The determinant of a, and det(a) a⁻¹ b, finite where a has rank n - 1."""
    shape, dtype = typeof(a).shape, typeof(a).dtype
    if shape[-1] == 1:
        return element(a, 0, 0), b
    get = subscripts.getitem
    lu, pivots, permutation = lax_linalg.lu(a)
    on_diagonal = taking.diagonal(lu, axis1=-2, axis2=-1)
    sign = convert(parity_sign(count_exchanges(pivots)), dtype)
    products = cumprod(on_diagonal, -1) * moving.expand_dims(sign, (len(shape) - 2,))
    lu = subscripts.update(lu, (..., -1, -1), 1 / get(products, (..., -2)), "set")
    batch = taking.ix_(*(ranges.arange(size, dtype=np.int32) for size in (*shape[:-2], 1)))
    probe = lax_linalg.triangular_solve(lu, creation.ones(shape[:-1], dtype), left_side=True)
    is_singular = reductions.any(ufuncs.isnan(probe) | ufuncs.isinf(probe), axis=-1)
    is_singular = shaping.tile(
        moving.expand_dims(is_singular, (len(shape) - 2, len(shape) - 1)), (*(1,) * (len(shape) - 2), *shape[-2:])
    )
    x = where(is_singular, creation.zeros_like(b), b)
    x = get(x, (*batch[:-1], permutation, slice(None)))
    x = lax_linalg.triangular_solve(lu, x, left_side=True, lower=True, unit_diagonal=True)
    determinant = moving.expand_dims(get(products, (..., -1)), (len(shape) - 2, len(shape) - 1))
    upper = get(x, (..., slice(None, -1), slice(None))) * determinant
    x = shaping.concatenate((upper, get(x, (..., slice(-1, None), slice(None)))), axis=-2)
    x = lax_linalg.triangular_solve(lu, x, left_side=True)
    x = where(is_singular, creation.zeros_like(b), x)
    return get(products, (..., -1)), x


# ---- rank and condition -----------------------------------------------------------------------------


@jitted("matrix_rank", static=("hermitian",))
def matrix_rank(
    M: ArrayLike, rtol: ArrayLike | None = None, *, hermitian: bool = False, tol: ArrayLike | None = None
) -> Array:
    """Returns ranks of matrices in the last two axes: the numbers of singular values above a tolerance.

    The tolerance is absolute, also under the name `rtol`, unlike in NumPy; `tol` is another name of it. By default it
    is the largest singular value times the larger dimension and the precision of the dtype. With `hermitian`,
    eigenvalues are used.

    Example:
      >>> jnp.linalg.matrix_rank(jnp.ones((2, 2)))
      Array(1, dtype=int32)
    """
    (a,) = as_inexact("matrix_rank", M)
    if tol is not None:
        if rtol is not None:
            raise ValueError("matrix_rank: only one of tol or rtol may be specified.")
        rtol = tol
    if typeof(a).ndim < 2:
        return reductions.any(ufuncs.not_equal(a, 0)).astype(np.int32)
    s = svd(a, full_matrices=False, hermitian=hermitian, compute_uv=False)
    if rtol is None:
        eps = dtypes.finfo(typeof(s).dtype).eps
        rtol = reductions.max(s, axis=-1) * max(typeof(a).shape[-2:]) * eps
    return reductions.sum(ufuncs.greater(s, moving.expand_dims(creation.asarray(rtol), (-1,))), axis=-1)


@jitted("cond", static=("p",))
def cond(x: ArrayLike, p: int | str | None = None) -> Any:
    """Computes condition numbers of matrices in the last two axes.

    `p` is the order of the norm, as in `norm`; `None` and 2 give the ratio of the largest and the smallest singular
    value. A singular matrix gives infinity, or a large number because of rounding.

    Example:
      >>> jnp.linalg.cond(jnp.diag(jnp.array([4.0, 2.0])))
      Array(2., dtype=float32)
    """
    (x,) = arrays("jnp.linalg.cond", x)
    shape = typeof(x).shape
    if len(shape) < 2:
        raise ValueError(f"jnp.linalg.cond: input array must be at least 2D; got arr.shape={shape}")
    if 0 in shape:
        raise ValueError(f"jnp.linalg.cond: input array must not be empty; got arr.shape={shape}")
    if p is None or p == 2:
        s = svd(x, compute_uv=False)
        return s[..., 0] / s[..., -1]
    if p == -2:
        s = svd(x, compute_uv=False)
        ratio = s[..., -1] / s[..., 0]
    else:
        if shape[-1] != shape[-2]:
            raise ValueError(f"jnp.linalg.cond: for {p=}, array must be square; got arr.shape={shape}")
        ratio = norm(x, p, axis=(-2, -1)) * norm(inv(x), p, axis=(-2, -1))
    is_nan, has_nan = ufuncs.isnan(ratio), reductions.any(ufuncs.isnan(x), axis=(-2, -1))
    return where(is_nan & ~has_nan, np.inf, ratio)


# ---- norms ------------------------------------------------------------------------------------------


def _euclidean(x: Any, axis: Axis, keepdims: bool) -> Any:
    squares = lax.real(x * lax.conj(x)) if is_complex(x) else ufuncs.multiply(x, x)
    return ufuncs.sqrt(reductions.sum(squares, axis=axis, keepdims=keepdims))


@jitted("norm", static=("ord", "axis", "keepdims"))
def norm(x: ArrayLike, ord: int | float | str | None = None, axis: Axis = None, keepdims: bool = False) -> Array:
    """Computes the norm of a vector or a matrix, or of those along given axes.

    Args:
      x: array.
      ord: for vectors: number `p` for the p-norm, `jnp.inf` or `-jnp.inf` for the largest or smallest absolute value, 0
        for the number of nonzero elements. For matrices: "fro", "nuc", 1, -1, 2, -2, `jnp.inf` or `-jnp.inf`. `None`
        for the Euclidean or Frobenius norm. It must be static.
      axis: axis of vectors, or pair of axes of matrices. By default all axes; with `ord`, `x` must be a vector or
        matrix then.
      keepdims: whether these axes stay, with length 1.

    Returns:
      An array without these axes, of a real floating dtype.

    Raises:
      ValueError: if there are more than two axes and `ord` is given, or if the norm does not exist.

    Differences from NumPy:
      The gradient at zero is NaN: guard it with `jnp.where`, or use the square. Norms of order 2, -2 and "nuc" of
      matrices compute singular values.

    See also: `jax.numpy.linalg.vector_norm`, `jax.numpy.linalg.matrix_norm`.

    Example:
      >>> x = jnp.array([[3.0, 4.0], [0.0, 0.0]])
      >>> jnp.linalg.norm(x)
      Array(5., dtype=float32)
      >>> jnp.linalg.norm(x, axis=1)
      Array([5., 0.], dtype=float32)
      >>> jnp.linalg.norm(x, ord=jnp.inf)
      Array(7., dtype=float32)
    """
    (x,) = as_inexact("norm", x)
    if axis is None and ord is None:
        return _euclidean(x, None, keepdims)
    axes = shaping.nonnegative_axes(axis, typeof(x).ndim)
    if len(axes) == 1:
        return vector_norm(x, axis=axes[0], keepdims=keepdims, ord=2 if ord is None else ord)
    if len(axes) == 2:
        return _matrix_norm(x, axes, "fro" if ord is None else ord, keepdims)
    raise ValueError(
        f"Improper number of axes for norm: {axis=}. Pass one axis to compute a vector-norm, or two axes to "
        "compute a matrix-norm."
    )


def vector_norm(x: ArrayLike, /, *, axis: Axis = None, keepdims: bool = False, ord: int | str = 2) -> Array:
    """Computes norms of vectors along axes, or of all elements.

    `axis` may be a tuple, whose elements are taken as one vector. `ord` is a norm for vectors, as in `norm`. Norms of
    integers but the Euclidean one are integers.

    Example:
      >>> jnp.linalg.vector_norm(jnp.array([[3.0, 4.0], [0.0, 5.0]]), axis=1)
      Array([5., 5.], dtype=float32)
    """
    (x,) = arrays("jnp.linalg.vector_norm", x)
    if isinstance(ord, str):
        raise ValueError(f"Invalid order '{ord}' for vector norm. For infinity use jax.numpy.inf.")
    if ord == 2:
        return _euclidean(x, axis, keepdims)
    options = dict(axis=axis, keepdims=keepdims)
    if ord == 0:
        dtype = dtypes.finfo(typeof(x).dtype).dtype
        return reductions.sum(ufuncs.not_equal(x, scalar_like(x, 0)), dtype=dtype, **options)
    size = ufuncs.absolute(x)
    if ord == math.inf:
        return reductions.max(size, initial=0, **options)
    if ord == -math.inf:
        return reductions.min(size, **options)
    if ord == 1:
        return reductions.sum(size, **options)
    power = scalar_like(size, ord)
    return ufuncs.power(reductions.sum(ufuncs.power(size, power), **options), scalar_like(size, 1 / power))


def matrix_norm(x: ArrayLike, /, *, keepdims: bool = False, ord: str | int = "fro") -> Array:
    """Computes norms of matrices in the last two axes.

    `ord` is a norm for matrices, as in `norm`, and static. With `keepdims` the axes stay, with length 1.

    Example:
      >>> jnp.linalg.matrix_norm(jnp.array([[3.0, 0.0], [0.0, 4.0]]))
      Array(5., dtype=float32)
    """
    return norm(*arrays("jnp.linalg.matrix_norm", x), ord=ord, keepdims=keepdims, axis=(-2, -1))


def _matrix_norm(x: Any, axes: tuple[int, int], ord: Any, keepdims: bool) -> Any:
    if axes[0] == axes[1]:
        raise ValueError(f"norm: duplicate value in 'axis': {axes}")
    extremum = {1: max, 2: max, math.inf: max}.get(ord) or {-1: min, -2: min, -math.inf: min}.get(ord)
    if ord == "fro":
        return _euclidean(x, axes, keepdims)
    if ord != "nuc" and (isinstance(ord, str) or extremum is None):
        raise ValueError(f"Invalid order '{ord}' for matrix norm. Use 'fro', 'nuc', 1, -1, 2, -2, jnp.inf or -jnp.inf.")
    reducer = partial(reductions.max, initial=0) if extremum is max else reductions.min
    if ord in ("nuc", 2, -2):
        values = svd(shaping.moveaxis(x, axes, (-2, -1)), compute_uv=False)
        extreme = reductions.sum(values, axis=-1) if ord == "nuc" else reducer(values, axis=-1)
        return shaping.expand_dims(extreme, axes) if keepdims else extreme
    summed, over = axes if abs(ord) == 1 else axes[::-1]
    over -= not keepdims and over > summed
    return reducer(reductions.sum(lax.abs(x), axis=summed, keepdims=keepdims), axis=over, keepdims=keepdims)


# ---- tensors ----------------------------------------------------------------------------------------


def tensorinv(a: ArrayLike, ind: int = 2) -> Array:
    """Computes the inverse of an array as a linear map between arrays.

    The first `ind` axes are those of the results of the map, the others those of its arguments; both have one number of
    elements. `ind` is static.

    Example:
      >>> jnp.linalg.tensorinv(jnp.eye(6).reshape(6, 2, 3), ind=1).shape
      (2, 3, 6)
    """
    (a,) = arrays("jnp.linalg.tensorinv", a)
    shape, ind = typeof(a).shape, operator.index(ind)
    if ind <= 0:
        raise ValueError(f"ind must be a positive integer; got {ind=}")
    rows, columns = shape[:ind], shape[ind:]
    if math.prod(rows) != math.prod(columns):
        raise ValueError(
            "tensorinv is only possible when the product of the first `ind` dimensions equals that of the "
            f"remaining dimensions. got arr.shape={shape} with ind={ind}."
        )
    return inv(shaping.reshape(a, (math.prod(rows), -1))).reshape(*columns, *rows)


def tensorsolve(a: ArrayLike, b: ArrayLike, axes: tuple[int, ...] | None = None) -> Array:
    """Solves `tensordot(a, x, x.ndim) = b` for `x`.

    The first axes of `a` have the shape of `b`. `axes` are axes of `a` to move to its end first.

    Example:
      >>> jnp.linalg.tensorsolve(2 * jnp.eye(4).reshape(4, 2, 2), jnp.arange(4.0))
      Array([[0. , 0.5],
             [1. , 1.5]], dtype=float32)
    """
    a, b = arrays("jnp.linalg.tensorsolve", a, b)
    if axes is not None:
        a = shaping.moveaxis(a, axes, range(typeof(a).ndim - len(axes), typeof(a).ndim))
    columns = typeof(a).shape[typeof(b).ndim :]
    if math.prod(typeof(a).shape[: typeof(b).ndim]) != math.prod(columns):
        raise ValueError(
            "After moving axes to end, leading shape of a must match shape of b. got a.shape="
            f"{typeof(a).shape}, b.shape={typeof(b).shape}"
        )
    size = math.prod(columns)
    return solve(shaping.reshape(a, (size, size)), shaping.ravel(b)).reshape(columns)


__all__, __dir__ = documented(
    __name__,
    """
    cholesky cond cross det diagonal eig eigh eigvals eigvalsh inv lstsq matmul matrix_norm matrix_power
    matrix_rank matrix_transpose multi_dot norm outer pinv qr slogdet solve svd svdvals tensordot tensorinv
    tensorsolve trace vecdot vector_norm
""",
)
