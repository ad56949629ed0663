"""Products, views and decompositions of matrices, as the array API has them, and parts of determinants."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import pairwise
from typing import Any, Literal, NamedTuple, overload

import numpy as np

from minijax.base.dtypes import DTypeLike
from minijax.base.naming import known_as
from minijax.composed.arrays.selecting import where
from minijax.composed.linalg.lu import geqrf_p
from minijax.composed.linalg.matrices import adjoint, transposed, typed
from minijax.dispatch.jitted import jitted
from minijax.ir.types import typeof
from minijax.lax import linalg as lax_linalg
from minijax.numpy import contractions, creation, products, ranges, reductions, shaping, subscripts, taking, ufuncs
from minijax.primitives import counting, elementwise as lax, moving, structural
from minijax.primitives.convert import convert
from minijax.primitives.dot import PrecisionLike
from minijax.primitives.families import is_complex, scalar_like
from minijax.primitives.promote import arrays, promote_dtypes_inexact
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
    return SVDResult(u, sizes, adjoint(ufuncs.multiply(u, typed(moving.expand_dims(signs, (axis,)), u))))


def svdvals(x: ArrayLike, /) -> Array:
    """Computes singular values of matrices in the last two axes.

    They descend. The result has a real floating dtype.
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
