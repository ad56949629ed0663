"""Eigenvalues, and the Hessenberg, Schur and tridiagonal forms of matrices."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax.base import dtypes, errors
from minijax.base.mask import Mask
from minijax.base.symbolic.dimension import is_int
from minijax.composed.linalg.lu import solve
from minijax.composed.linalg.matrices import (
    adjoint,
    along,
    diagonal,
    is_complex,
    matmul,
    symmetrized,
    transposed,
    tril,
    triu,
    typed,
)
from minijax.composed.linalg.routines import Linalg, is_partial, nan_unless_succeeded, status_type
from minijax.composed.linalg.spectral import spectral_eigh
from minijax.higher import mapping
from minijax.ir.types import ShapedArray, typeof
from minijax.primitives import moving
from minijax.primitives.convert import convert
from minijax.primitives.counting import broadcasted_iota, eye
from minijax.primitives.elementwise import abs as abs_, complex as complex_, conj, imag, integer_pow, real
from minijax.primitives.families import emit
from minijax.primitives.moving import sum_axes, sum_axis
from minijax.primitives.reduce import argmax
from minijax.primitives.structural import slice_in_dim
from minijax.run.arrays.array import Array, ArrayLike

# ---- general eigenvalues ----------------------------------------------------------------------------


class EigImplementation(enum.Enum):
    """Names the libraries that compute eigenvalues. CPUs support only LAPACK.

    Example:
        >>> lapack = jax.lax.linalg.EigImplementation.LAPACK
        >>> jax.lax.linalg.eig(jnp.diag(jnp.array([1.0, 2.0])), implementation=lapack)[0]
        Array([1.+0.j, 2.+0.j], dtype=complex64)
    """

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"


_DTYPES = ("float32", "float64", "complex64", "complex128")  # of the routines for GPUs
_MAGMA = {None: "auto", EigImplementation.MAGMA: "on", EigImplementation.LAPACK: "off"}


class Eig(Linalg):
    """Eigenvalues of general matrices, and left and right eigenvectors if requested."""

    name = "eig"
    multiple_results = True
    square = True

    def results(self, x, *, compute_left_eigenvectors, compute_right_eigenvectors, **how):
        n, dtype = x.shape[-1], dtypes.to_complex_dtype(x.dtype)
        return [((n,), dtype)] + [((n, n), dtype)] * (compute_left_eigenvectors + compute_right_eigenvectors)

    def lower(self, e, ins, outs, x, *, compute_left_eigenvectors, compute_right_eigenvectors, implementation, **how):
        if e.platform == "cpu" and implementation not in (None, EigImplementation.LAPACK):
            raise ValueError("Only the lapack implementation is supported on CPU.")
        if implementation is EigImplementation.CUSOLVER:
            raise NotImplementedError("eig: EigImplementation.CUSOLVER is not implemented yet")
        (aval,), (*batch, n, _) = ins, ins[0].shape
        if e.platform != "cpu" and aval.dtype.name not in _DTYPES:
            raise ValueError(f"eig: Unsupported dtype: {aval.dtype}")
        is_real = aval.dtype.kind != "c"
        status_aval, vectors = status_type(aval), ShapedArray((*batch, n, n), outs[0].dtype)
        values = [ShapedArray((*batch, n), aval.dtype)] * (1 + is_real)
        sides = {"left": compute_left_eigenvectors, "right": compute_right_eigenvectors}
        cpu = ("geev", {f"compute_{side}": "V" if computed else "N" for side, computed in sides.items()})
        gpu = (f"hybrid_eig_{'real' if is_real else 'comp'}", sides | {"magma": _MAGMA[implementation]})
        types = [*values, vectors, vectors, status_aval]
        *parts, left, right, status = self.routine(e, [x], ins, types, cpu=cpu, gpu=gpu)
        w = e.complex(*parts, values[0], outs[0]) if is_real else parts[0]
        results = [w, *Mask(sides.values()).marked((left, right))]
        return nan_unless_succeeded(e, status, status_aval, results, outs)

    def jvp(self, primals, tangents, *, compute_right_eigenvectors, **how):
        w, *left, v = self.bind(*primals, compute_right_eigenvectors=True, **how)
        if not (left or compute_right_eigenvectors):
            inner = solve(v, typed(tangents[0], v))
            return [w], [sum_axis(inner * transposed(v), typeof(w).ndim)]
        if not how["enable_eigvec_derivs"]:
            raise NotImplementedError(
                "eig: derivatives of non-symmetric eigenvectors hold only under assumptions on the input "
                "that cannot be checked; pass enable_eigvec_derivs=True to jax.lax.linalg.eig to opt in. "
                "See https://github.com/jax-ml/jax/issues/2748 for discussion."
            )
        da = typed(tangents[0], v)
        dw, dv = _push_eigenvectors(da, w, v)
        results, pushed = [w, *left], [dw]
        if left:
            conjugates = conj(w)
            pushed.append(_push_eigenvectors(conj(transposed(da)), conjugates, left[0])[1])
        if compute_right_eigenvectors:
            results.append(v)
            pushed.append(dv)
        return results, pushed


def gaps(w: Any) -> Any:
    """For i and j: 1 / (w_j - w_i), zero where i = j."""
    n, ndim = typeof(w).shape[-1], typeof(w).ndim
    ones, row = eye(n, n, typeof(w).dtype), along(w, -2)
    wide = moving.expand_dims(ones, tuple(range(ndim - 1)))
    inverse = integer_pow(wide + row - along(w, -1), -1)
    return inverse - moving.expand_dims(ones, tuple(range(ndim - 1)))


def _push_eigenvectors(da: Any, w: Any, v: Any) -> tuple:
    """Tangents of eigenvalues and of right eigenvectors of norm 1, whose largest element stays real."""
    ndim = typeof(v).ndim
    weights = gaps(w)
    inner = matmul(solve(v, da), v)
    dw = diagonal(inner)
    dv = matmul(v, weights * inner)
    largest = argmax(abs_(v), ndim - 2, np.int32)
    rows = broadcasted_iota(np.int32, typeof(v).shape, ndim - 2)
    mask = convert(rows == along(largest, -2), typeof(v).dtype)
    total = lambda x: sum_axes(x, (ndim - 2,))  # noqa: E731
    shrink = -real(total(conj(v) * dv))
    phase = -imag(total(mask * dv))
    phase = phase / real(total(mask * v))
    return dw, dv + v * along(complex_(shrink, phase), -2)


eig_p = Eig()


def eig(
    x: ArrayLike,
    *,
    compute_left_eigenvectors: bool = True,
    compute_right_eigenvectors: bool = True,
    enable_eigvec_derivs: bool = False,
    implementation: EigImplementation | None = None,
    use_magma: bool | None = None,
) -> list[Array]:
    """Computes eigenvalues of general matrices, then left and right eigenvectors as columns, if requested.

    NaN where the computation did not converge.

    Example:
        >>> rotation = jnp.array([[0.0, -1.0], [1.0, 0.0]])
        >>> jax.lax.linalg.eig(rotation, compute_left_eigenvectors=False)[0]
        Array([0.+1.j, 0.-1.j], dtype=complex64)
    """
    if use_magma is not None:
        errors.warn(
            "eig: use_magma is deprecated, use implementation=EigImplementation.MAGMA instead.", DeprecationWarning
        )
        implementation = EigImplementation.MAGMA if use_magma else EigImplementation.CUSOLVER
    left, right = compute_left_eigenvectors, compute_right_eigenvectors
    how = dict(enable_eigvec_derivs=enable_eigvec_derivs, implementation=implementation)
    return eig_p.bind(x, compute_left_eigenvectors=left, compute_right_eigenvectors=right, **how)


# ---- Hermitian eigenvalues --------------------------------------------------------------------------


class EighImplementation(enum.Enum):
    """Names the algorithms that compute Hermitian eigenvalues. CPUs support only QR.

    Example:
        >>> jax.lax.linalg.eigh(jnp.diag(jnp.array([1.0, 2.0])), implementation=jax.lax.linalg.EighImplementation.QR)[1]
        Array([1., 2.], dtype=float32)
    """

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


_LARGEST_JACOBI = 256  # rows, by default on TPU
_SOLVERS = {None: 0, EighImplementation.QR: 1, EighImplementation.JACOBI: 2}


class Eigh(Linalg):
    """Eigenvectors and eigenvalues of Hermitian matrices. Only one triangle of them is read."""

    name = "eigh"
    multiple_results = True
    square = "symmetric eigendecomposition"

    def results(self, x, *, subset_by_index, **how):
        n = x.shape[-1]
        first, last = subset_by_index or (0, n)
        return [((n, last - first), x.dtype), ((last - first,), dtypes.to_floating_dtype(x.dtype))]

    def lower(self, e, ins, outs, x, *, lower, sort_eigenvalues, subset_by_index, algorithm):
        if e.platform == "tpu":
            return _on_tpu(e, x, ins[0], lower, sort_eigenvalues, subset_by_index, algorithm)
        if is_partial(subset_by_index, ins[0].shape[-1]):
            raise NotImplementedError("eigh: subset_by_index not supported on CPU and GPU")
        if algorithm is EighImplementation.QDWH:
            raise NotImplementedError("eigh: the QDWH implementation is only supported on TPU")
        if e.platform == "cpu" and algorithm is EighImplementation.JACOBI:
            raise NotImplementedError("eigh: the Jacobi implementation is not supported on CPU")
        cpu = ("syevd", {"mode": "V", "uplo": "L" if lower else "U"})
        gpu = ("solver_syevd_ffi", {"algorithm": np.uint8(_SOLVERS[algorithm]), "lower": lower})
        return self.checked_routine(e, [x], ins, outs, aliases={0: 0}, cpu=cpu, gpu=gpu)

    def jvp(self, primals, tangents, *, subset_by_index, **how):
        (a,), (da,) = primals, tangents
        if is_partial(subset_by_index, typeof(a).shape[-1]):
            raise NotImplementedError("Derivatives not defined for partial eigen decomposition.")
        v, w = self.bind(symmetrized(a, "eigh"), subset_by_index=subset_by_index, **how)
        weights = gaps(typed(w, v))
        inner = matmul(matmul(adjoint(v), da), v)
        dv = matmul(v, weights * inner)
        return [v, w], [dv, diagonal(real(inner) if is_complex(inner) else inner)]


def _on_tpu(e, x, aval, lower, sort, subset, algorithm):
    n = aval.shape[-1]
    if algorithm is EighImplementation.QR:
        raise NotImplementedError("eigh: the QR algorithm is not supported on TPU")
    if not is_int(n):
        raise NotImplementedError(f"eigh: on TPU the number of rows must be static, got a matrix of shape {aval.shape}")
    if subset is not None:
        _check_subset(subset, n)
    if n > _LARGEST_JACOBI and algorithm is not EighImplementation.JACOBI:
        return emit(e, _by_splitting, [aval], [x], lower=lower, sort_eigenvalues=sort, subset=subset)
    is_part = is_partial(subset, n)
    types = [aval, ShapedArray(aval.shape[:-1], dtypes.to_floating_dtype(aval.dtype))]
    if not n:
        return [x, e.zeros(types[1])]
    config = f"{int(lower)},{int(sort or is_part)},100,1e-6"
    results = e.custom_call("Eigh", [x], [aval], types, api_version=1, backend_config=config)
    return emit(e, _subset, types, results, subset=subset) if is_part else results


def mirrored(x: Any, lower: bool) -> Any:
    """The Hermitian matrices with one triangle equal to that of `x`."""
    half, d = tril(x, -1) if lower else triu(x, 1), diagonal(x)
    d = typed(real(d), d) if is_complex(d) else d
    n = typeof(x).shape[-1]
    return half + adjoint(half) + eye(n, n, typeof(d).dtype, typeof(x).ndim) * along(d, -2)


def _by_splitting(x: Any, lower: bool, sort_eigenvalues: bool, subset: tuple[int, int] | None) -> list:
    """Eigenvectors and eigenvalues of large matrices, one after the other. Only one triangle of them is read."""
    *batch, n, _ = typeof(x).shape

    def small(x):
        how = dict(lower=True, sort_eigenvalues=True, subset_by_index=None)
        return eigh_p.bind(x, algorithm=EighImplementation.JACOBI, **how)

    def one(x):
        return spectral_eigh(x, small, _LARGEST_JACOBI, subset, sort_eigenvalues)

    x = mirrored(x, lower)
    if not batch:
        return one(x)
    results = mapping.map(one, moving.reshape_to(x, (math.prod(batch), n, n)))
    return [moving.reshape_to(y, (*batch, *typeof(y).shape[1:])) for y in results]


def _check_subset(subset: tuple[int, int], n: int) -> None:
    first, last = subset
    if first < 0:
        raise ValueError(f"eigh: Indices in subset_by_index must be non-negative, got {subset}.")
    if last > n:
        raise ValueError(f"eigh: Index in subset_by_index[1] exceeds matrix size: {subset} of {n} eigenvalues.")
    if first >= last:
        raise ValueError(f"eigh: Got empty index range in subset_by_index, {subset}.")


def _subset(v: Any, w: Any, subset: tuple[int, int]) -> list:
    return [slice_in_dim(x, *subset, axis=-1) for x in (v, w)]


eigh_p = Eigh()


def eigh(
    x: Array,
    *,
    lower: bool = True,
    symmetrize_input: bool = True,
    sort_eigenvalues: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    implementation: EighImplementation | None = None,
) -> tuple[Array, Array]:
    """Computes eigenvectors and eigenvalues of Hermitian matrices; NaN without convergence.

    Args:
        x: An array of shape (..., n, n).
        lower: Which triangle is read, if the input is not symmetrized.
        symmetrize_input: If true, the mean of `x` and its adjoint is used.
        sort_eigenvalues: If true, eigenvalues ascend.
        subset_by_index: A pair: the first eigenvalue to return, and the one after the last.
        implementation: An `EighImplementation`.

    Returns:
        A pair (eigenvectors as columns, eigenvalues). `jax.numpy.linalg.eigh` has the other order.

    Example:
        >>> vectors, values = jax.lax.linalg.eigh(jnp.array([[2.0, 0.0], [0.0, 1.0]]))
        >>> values
        Array([1., 2.], dtype=float32)
    """
    x = symmetrized(x, "eigh") if symmetrize_input else x
    how = dict(lower=lower, sort_eigenvalues=sort_eigenvalues, subset_by_index=subset_by_index)
    return tuple(eigh_p.bind(x, **how, algorithm=implementation))


# ---- reduced forms ----------------------------------------------------------------------------------


class Hessenberg(Linalg):
    """The Hessenberg form of matrices, with the reflectors that reduce to it below, and their scales."""

    name = "hessenberg"
    multiple_results = True
    square = "Hessenberg reduction"

    def results(self, x):
        return [(x.shape[-2:], x.dtype), ((max(x.shape[-1] - 1, 0),), x.dtype)]

    def lower(self, e, ins, outs, x):
        cpu = ("gehrd", {"low": np.int32(1), "high": np.int32(ins[0].shape[-1])})
        return self.checked_routine(e, [x], ins, outs, aliases={0: 0}, cpu=cpu)


class Schur(Linalg):
    """The Schur form of matrices, and the unitary matrices of the transformation if requested."""

    name = "schur"
    multiple_results = True
    square = True

    def results(self, x, *, compute_schur_vectors, **how):
        return [(x.shape[-2:], x.dtype)] * (1 + compute_schur_vectors)

    def lower(self, e, ins, outs, x, *, compute_schur_vectors, sort_eig_vals, select_callable):
        if sort_eig_vals:
            raise NotImplementedError("schur: sorting eigenvalues is not implemented")
        aval, (*batch, n, _) = ins[0], ins[0].shape
        values = [ShapedArray((*batch, n), aval.dtype)] * (1 if aval.dtype.kind == "c" else 2)
        cpu = ("gees", {"mode": "V" if compute_schur_vectors else "N", "sort": "N"})
        num_selected = status_type(aval)
        results = [aval, aval, *values, num_selected]
        return self.checked_routine(e, [x], ins, results, len(outs), aliases={0: 0}, cpu=cpu)


class Tridiagonal(Linalg):
    """The tridiagonal form of Hermitian matrices: reflectors, diagonal, off-diagonal, reflectors' scales."""

    name = "tridiagonal"
    multiple_results = True
    square = True

    def results(self, x, *, lower):
        n, real_dtype = x.shape[-1], dtypes.to_floating_dtype(x.dtype)
        if not n:
            raise ValueError(f"The input to tridiagonal must be a square matrix. Got shape {x.shape}.")
        return [(x.shape[-2:], x.dtype), ((n,), real_dtype), ((n - 1,), real_dtype), ((n - 1,), x.dtype)]

    def lower(self, e, ins, outs, x, *, lower):
        cpu, gpu = ("sytrd", {"uplo": "L" if lower else "U"}), ("solver_sytrd_ffi", {"lower": lower})
        return self.checked_routine(e, [x], ins, outs, aliases={0: 0}, cpu=cpu, gpu=gpu)


hessenberg_p, schur_p, tridiagonal_p = Hessenberg(), Schur(), Tridiagonal()


def hessenberg(a: ArrayLike) -> tuple[Array, Array]:
    """Computes the Hessenberg form, with Householder vectors below its first subdiagonal, and their scales `taus`.

    The unitary factor is block diagonal, with blocks 1 and `householder_product(a[1:, :-1], taus)`.

    Example:
        >>> x = jnp.array([[1.0, 2.0, 3.0], [3.0, 5.0, 6.0], [4.0, 8.0, 9.0]])
        >>> a, taus = jax.lax.linalg.hessenberg(x)
        >>> q = jax.scipy.linalg.block_diag(1.0, jax.lax.linalg.householder_product(a[1:, :-1], taus))
        >>> jnp.allclose(q @ jnp.triu(a, -1) @ q.T, x, atol=1e-4)
        Array(True, dtype=bool)
    """
    return hessenberg_p.bind(a)


def schur(
    x: ArrayLike,
    *,
    compute_schur_vectors: bool = True,
    sort_eig_vals: bool = False,
    select_callable: Callable | None = None,
) -> tuple[Array, Array]:
    """Computes the Schur form T and, if requested, the unitary Z with x = Z T Zᴴ; NaN without convergence.

    Example:
        >>> x = jnp.array([[1.0, 2.0], [3.0, 4.0]])
        >>> t, z = jax.lax.linalg.schur(x)
        >>> t[1, 0], jnp.allclose(z @ t @ z.T, x, atol=1e-5)
        (Array(0., dtype=float32), Array(True, dtype=bool))
    """
    return schur_p.bind(
        x, compute_schur_vectors=compute_schur_vectors, sort_eig_vals=sort_eig_vals, select_callable=select_callable
    )


def tridiagonal(a: ArrayLike, *, lower: bool = True) -> tuple[Array, Array, Array, Array]:
    """Computes the tridiagonal form of Hermitian matrices: Householder vectors, diagonal, off-diagonal, scales.

    Diagonal and off-diagonal are real. Only the lower (or upper) triangle is read, where the vectors are stored.

    Example:
        >>> a = jnp.array([[1.0, 3.0, 4.0], [3.0, 2.0, 0.0], [4.0, 0.0, 5.0]])
        >>> _, diagonal, off_diagonal, _ = jax.lax.linalg.tridiagonal(a)
        >>> diagonal, abs(off_diagonal)
        (Array([1. , 3.919..., 3.08 ], dtype=float32), Array([5. , 1.440...], dtype=float32))
    """
    return tridiagonal_p.bind(a, lower=lower)
