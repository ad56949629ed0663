"""Decompositions of matrices: eigenvalues, singular values, Cholesky and QR."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, overload

import numpy as np

from minijax.base.naming import known_as
from minijax.composed.linalg.matrices import adjoint, transposed, typed
from minijax.composed.linalg.qr import geqrf_p
from minijax.dispatch.jitted import jitted
from minijax.ir.types import typeof
from minijax.lax import linalg as lax_linalg
from minijax.numpy import taking, ufuncs
from minijax.numpy.matrices import (  # noqa: F401 (public names)
    corners,
    count_exchanges,
    cross,
    det_3x3,
    diagonal,
    element,
    matmul,
    matrix_transpose,
    multi_dot,
    outer,
    parity_sign,
    product_of_elements,
    split_ratio,
    tensordot,
    trace,
    trace_of_transposed,
    vecdot,
)
from minijax.primitives import counting, elementwise as lax, moving, structural
from minijax.primitives.promote import arrays, promote_dtypes_inexact
from minijax.primitives.sort import sort
from minijax.run.arrays.array import Array, ArrayLike


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
