"""Singular values and vectors."""

from __future__ import annotations

import enum
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from minijax.base import dtypes
from minijax.base.symbolic.dimension import min_dim
from minijax.composed.arrays.selecting import where
from minijax.composed.linalg.eigen import eigh
from minijax.composed.linalg.lu import qr
from minijax.composed.linalg.matrices import (
    adjoint,
    along,
    diagonal,
    dot_highest,
    map_over_batch,
    on_diagonal,
    transposed,
    typed,
)
from minijax.composed.linalg.polar import norm, qdwh
from minijax.composed.linalg.routines import GPU, Linalg, is_partial, nan_unless_succeeded, status_type
from minijax.higher.while_loop import while_loop
from minijax.ir.types import ShapedArray, typeof
from minijax.primitives import elementwise as lax, moving
from minijax.primitives.convert import convert
from minijax.primitives.counting import eye, iota
from minijax.primitives.elementwise import add, div, eq, mul, real, sub
from minijax.primitives.families import emit, is_complex, scalar_like
from minijax.primitives.gather_dims import ScatterDimensionNumbers
from minijax.primitives.gather_scatter import scatter
from minijax.primitives.reduce import reduce_and
from minijax.primitives.structural import concatenate, index_in_dim, rev, slice_in_dim
from minijax.primitives.zeros import zeros_like_aval
from minijax.run.arrays.array import ArrayLike


class SvdAlgorithm(enum.Enum):
    """Names the algorithms of `svd`: CPUs have QR and divide-and-conquer, the default; GPUs have QR, Jacobi and polar.

    The default of GPUs is Jacobi up to 1024 rows and columns, and QR beyond.

    Example:
        >>> x = jnp.array([[3.0, 0.0], [0.0, 4.0]])
        >>> jax.lax.linalg.svd(x, compute_uv=False, algorithm=jax.lax.linalg.SvdAlgorithm.QR)
        Array([4., 3.], dtype=float32)
    """

    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"
    DIVIDE_AND_CONQUER = "divide_and_conquer"


_ON_CPU = {SvdAlgorithm.DEFAULT: "gesdd", SvdAlgorithm.QR: "gesvd", SvdAlgorithm.DIVIDE_AND_CONQUER: "gesdd"}
_ON_GPU = {SvdAlgorithm.QR: "gesvd", SvdAlgorithm.JACOBI: "gesvdj", SvdAlgorithm.POLAR: "gesvdp"}
_ON_GPU |= {SvdAlgorithm.DIVIDE_AND_CONQUER: "gesdd"}


class SVD(Linalg):
    """Singular values of matrices, and left and right singular vectors if `compute_uv`."""

    name = "svd"
    multiple_results = True

    def results(self, x, *, full_matrices, compute_uv, subset_by_index, algorithm=None):
        m, n = x.shape[-2:]
        k = min_dim(m, n)
        if subset_by_index is not None:
            if full_matrices and subset_by_index != (0, k):
                raise ValueError("svd: full_matrices and subset_by_index cannot both be set")
            k = min(k, subset_by_index[1] - subset_by_index[0])
        values = [((k,), dtypes.to_floating_dtype(x.dtype))]
        sides = [((m, m if full_matrices else k), x.dtype), ((n if full_matrices else k, n), x.dtype)]
        return values + sides if compute_uv else values

    def lower(self, e, ins, outs, x, *, full_matrices, compute_uv, subset_by_index, algorithm=None):
        m, n = ins[0].shape[-2:]
        if not m or not n:
            return emit(e, _empty_results, ins, [x], outs=tuple(outs))
        if e.platform == "tpu":
            return _on_tpu(e, x, ins[0], full_matrices, compute_uv, subset_by_index, algorithm)
        if is_partial(subset_by_index, min_dim(m, n)):
            raise NotImplementedError("svd: subset_by_index not implemented for CPU and GPU")
        algorithm = algorithm or SvdAlgorithm.DEFAULT
        on = _on_cpu if e.platform == "cpu" else _on_gpu
        status, results = on(e, _Request(x, ins[0], outs[0], full_matrices, compute_uv), algorithm)
        return nan_unless_succeeded(e, status, status_type(ins[0]), results[: len(outs)], outs)

    def jvp(self, primals, tangents, *, full_matrices, compute_uv, subset_by_index, **how):
        (a,), (da,) = primals, tangents
        (*_, m, n) = typeof(a).shape
        if is_partial(subset_by_index, min_dim(m, n)):
            raise NotImplementedError("SVD JVP: subset_by_index not implemented")
        if compute_uv and full_matrices and m != n:
            raise NotImplementedError("Singular value decomposition JVP not implemented for full matrices")
        s, u, vt = self.bind(a, full_matrices=False, compute_uv=True, subset_by_index=subset_by_index, **how)
        ut, v = adjoint(u), adjoint(vt)
        row = along(s, -2)
        inner = dot_highest(dot_highest(ut, da), v)
        ds = diagonal(real(inner) if is_complex(inner) else inner)
        if not compute_uv:
            return [s], [ds]
        du, dv = _push_singular_vectors(da, s, row, inner, (u, ut, v, vt))
        return [s, u, vt], [ds, du, adjoint(dv)]


def _empty_results(x: Any, outs: tuple[ShapedArray, ...]) -> list:
    """The results for empty matrices, which have no singular values, and unit vectors as singular vectors."""

    def unit(out):
        if not out.size:
            return zeros_like_aval(out)
        return moving.broadcast_to_shape(eye(*out.shape[-2:], out.dtype, out.ndim), out.shape)

    values = zeros_like_aval(outs[0])
    return [values, *[unit(out) for out in outs[:0:-1]][::-1]]


class _Request(NamedTuple):
    """The operand of a routine and its type, the type of the singular values, and which vectors are computed."""

    x: str
    aval: ShapedArray
    values: ShapedArray
    full_matrices: bool
    compute_uv: bool

    def vectors(self) -> tuple[tuple, tuple]:
        """The shapes of U and Vᴴ of one matrix."""
        (m, n), k = self.aval.shape[-2:], self.values.shape[-1]
        return ((m, m), (n, n)) if self.full_matrices else ((m, k), (k, n))

    def result_types(self, left: tuple, right: tuple) -> list[ShapedArray]:
        """The types of overwritten matrix, singular values, vectors of these shapes for one matrix, and status."""
        *batch, _, _ = self.aval.shape
        sides = [ShapedArray((*batch, *shape) if shape else (), self.aval.dtype) for shape in (left, right)]
        return [self.aval, self.values, *sides, status_type(self.aval)]


def _on_cpu(e, request, algorithm):
    if algorithm not in _ON_CPU:
        raise NotImplementedError("The SVD Jacobi and Polar algorithms are not implemented on CPU.")
    types = request.result_types(*request.vectors())
    mode = "N" if not request.compute_uv else "A" if request.full_matrices else "S"
    routine = _ON_CPU[algorithm], {"mode": mode}
    _, *results, status = svd_p.routine(e, [request.x], [request.aval], types, cpu=routine, aliases={0: 0})
    return status, results


def _on_gpu(e, request, algorithm):
    m, n = request.aval.shape[-2:]
    if algorithm is SvdAlgorithm.DEFAULT:
        algorithm = SvdAlgorithm.JACOBI if max(m, n) <= 1024 else SvdAlgorithm.QR
    if algorithm is SvdAlgorithm.DIVIDE_AND_CONQUER and e.platform == "cuda":
        raise NotImplementedError(
            "Divide-and-conquer SVD (SvdAlgorithm.DIVIDE_AND_CONQUER) is only supported on AMD (ROCm) GPUs, "
            "not on NVIDIA CUDA."
        )
    target = f"{GPU[e.platform]}solver_{_ON_GPU[algorithm]}_ffi"
    if algorithm in (SvdAlgorithm.JACOBI, SvdAlgorithm.POLAR):
        is_small = algorithm is SvdAlgorithm.JACOBI and request.values.shape[-1] <= 32
        return _with_right_vectors(e, target, request, is_small)
    return _with_adjoint_vectors(e, target, request, is_transposed=algorithm is SvdAlgorithm.QR and m < n)


def _with_right_vectors(e, target, request, is_small):
    """Calls a routine that returns V instead of Vᴴ. For small matrices, it always computes all vectors."""
    (m, n), k = request.aval.shape[-2:], request.values.shape[-1]
    is_full = request.full_matrices or is_small
    types = request.result_types(*(((m, m), (n, n)) if is_full else ((m, k), (n, k))))
    config = {"compute_uv": request.compute_uv, "full_matrices": is_full}
    _, s, u, v, status = e.batched_call(target, [request.x], [request.aval], types, config, {0: 0})
    if not request.compute_uv:
        return status, [s]
    count = k if is_full and not request.full_matrices else None
    return status, [s, *emit(e, _thin_factors, types[2:4], [u, v], count=count)]


def _with_adjoint_vectors(e, target, request, is_transposed):
    """Calls a routine that returns Vᴴ, and needs at least as many rows as columns.

    Other matrices are passed transposed, in row-major order.
    """
    left, right = request.vectors() if request.compute_uv else ((), ())
    types = request.result_types(right, left) if is_transposed else request.result_types(left, right)
    config = {"compute_uv": request.compute_uv, "full_matrices": request.full_matrices, "transposed": is_transposed}
    _, s, u, vt, status = e.batched_call(
        target, [request.x], [request.aval], types, config, {0: 0}, by_column=not is_transposed
    )
    return status, [s, vt, u] if is_transposed else [s, u, vt]


def _on_tpu(e, x, aval, full_matrices, compute_uv, subset_by_index, algorithm):
    if algorithm not in (None, SvdAlgorithm.DEFAULT, SvdAlgorithm.POLAR):
        raise NotImplementedError("Only the POLAR (which is also DEFAULT on TPU) SVD algorithm is supported on TPU.")
    how = dict(full_matrices=full_matrices, compute_uv=compute_uv, subset_by_index=subset_by_index)
    return emit(e, _by_polar, [aval], [x], **how)


def _by_polar(x: Any, **how: Any) -> list:
    return map_over_batch(partial(qdwh_svd, **how), typeof(x).shape[:-2])(x)


def _thin_factors(u: Any, v: Any, count: int | None) -> list:
    """u and vᴴ, or only their first `count` columns and rows."""
    vt = adjoint(v)
    if count is None:
        return [u, vt]
    return [slice_in_dim(u, 0, count, axis=-1), slice_in_dim(vt, 0, count, axis=-2)]


def _push_singular_vectors(da: Any, s: Any, row: Any, inner: Any, sides: tuple) -> tuple:
    """Tangents of the left and right singular vectors, as columns."""
    u, ut, v, vt = sides
    ndim, k = typeof(u).ndim, typeof(s).shape[-1]
    one = scalar_like(s, 1)
    squares = mul(add(row, transposed(row)), sub(row, transposed(row)))
    same = eye(k, k, typeof(s).dtype, ndim)
    weights = sub(div(one, add(squares, same)), same)
    right, left = mul(typed(row, u), inner), mul(transposed(typed(row, u)), inner)
    zero = convert(eq(s, scalar_like(s, 0)), typeof(s).dtype)
    inverse = _diagonal_matrix(sub(div(one, add(s, zero)), zero))
    # An array: where the derivative is linearized, it is a residual, as in jax's jaxprs.
    half = moving.as_array_or_constant(scalar_like(inner, 0.5))
    turn = mul(mul(half, sub(inner, adjoint(inner))), typed(inverse, u))
    du = dot_highest(u, add(mul(typed(weights, u), add(right, adjoint(right))), turn))
    dv = dot_highest(v, mul(typed(weights, u), add(left, adjoint(left))))
    m, n = typeof(da).shape[-2:]
    if m > n:
        product = dot_highest(da, v)
        du = add(du, div(sub(product, dot_highest(u, dot_highest(ut, product))), typed(row, u)))
    if n > m:
        product = dot_highest(adjoint(da), u)
        dv = add(dv, div(sub(product, dot_highest(v, dot_highest(vt, product))), typed(row, u)))
    return du, dv


def _diagonal_matrix(x: Any) -> Any:
    *batch, n = typeof(x).shape
    at, d = iota(np.int32, n), len(batch)
    zeros = moving.filled((*batch, n, n), scalar_like(x, 0))
    numbers = ScatterDimensionNumbers(tuple(range(d)), (d, d + 1), (d, d + 1))
    return scatter(zeros, on_diagonal(at, n), x, numbers)


svd_p = SVD()


def svd(
    x: ArrayLike,
    *,
    full_matrices: bool = True,
    compute_uv: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    algorithm: SvdAlgorithm | None = None,
) -> Any:
    """Computes the singular value decomposition of matrices: (U, descending singular values, Vᴴ), or only the values.

    Args:
        x: An array of shape (..., m, n).
        full_matrices: If true, U is (..., m, m) and Vᴴ (..., n, n); else both have min(m, n) columns or rows.
        compute_uv: If false, only the values are returned.
        subset_by_index: A pair: the first value to return, and the one after the last.
        algorithm: An `SvdAlgorithm`.

    Example:
        >>> jax.lax.linalg.svd(jnp.diag(jnp.array([3.0, -2.0])), compute_uv=False)
        Array([3., 2.], dtype=float32)
    """
    values, *sides = svd_p.bind(
        x, full_matrices=full_matrices, compute_uv=compute_uv, subset_by_index=subset_by_index, algorithm=algorithm
    )
    return (sides[0], values, sides[1]) if compute_uv else values


def qdwh_svd(a: Any, full_matrices: bool, compute_uv: bool, subset_by_index: tuple[int, int] | None) -> list:
    """The singular values of one nonempty matrix and, if `compute_uv`, U and Vᴴ; NaN if `a` is not finite."""
    m, n = typeof(a).shape
    if m < n:
        s, *sides = qdwh_svd(adjoint(a), full_matrices, compute_uv, subset_by_index)
        return [s, *map(adjoint, sides[::-1])]
    if m == n:
        s, *sides = _square_svd(a, compute_uv, subset_by_index)
        return _nan_unless_finite(a, [s, *sides])
    q, r = qr(a, full_matrices=full_matrices and compute_uv)
    r = r[:n]
    s, *sides = _square_svd(r, compute_uv, subset_by_index)
    if sides:
        u = dot_highest(q[:, :n], sides[0])
        sides[0] = concatenate([u, q[:, n:]], 1) if full_matrices else u
    return _nan_unless_finite(r, [s, *sides])


def _nan_unless_finite(a: Any, results: list) -> list:
    ok = reduce_and(lax.is_finite(lax.abs(a) if is_complex(a) else a), (0, 1))
    return [where(ok, x, scalar_like(x, float("nan"))) for x in results]


def _square_svd(a: Any, compute_uv: bool, subset: tuple[int, int] | None) -> list:
    """As `qdwh_svd`, for a square matrix."""
    n = typeof(a).shape[0]
    unitary, h, _, _ = qdwh(a)
    # Eigenvalues are ascending, and singular values are descending.
    rising = None if subset is None else (n - subset[1], n - subset[0])
    v, w = eigh(h, symmetrize_input=False, subset_by_index=rising)
    s, v = rev(lax.max(w, scalar_like(w, 0)), (0,)), rev(v, (1,))
    if not compute_uv:
        return [s]
    # For singular values that are 0 up to rounding, the columns of the polar factor need not be orthonormal.
    eps = n * float(dtypes.finfo(typeof(s).dtype).eps)
    last = index_in_dim(s, -1, keepdims=False)
    deficient = last <= scalar_like(last, eps) * norm(h, 0)
    # A loop of at most one iteration, which a batch skips if none of its matrices needs it.
    _, u = while_loop(
        lambda state: state[0], lambda state: (False, _orthonormalized(state[1])), (deficient, dot_highest(unitary, v))
    )
    return [s, u, adjoint(v)]


def _orthonormalized(u: Any) -> Any:
    """Orthonormalizes columns. Those orthogonal to the previous ones do not change."""
    q, r = qr(u, full_matrices=False)
    d = diagonal(r)
    d = lax.real(d) if is_complex(d) else d
    return q * typed(along(where(d < 0, scalar_like(d, -1), scalar_like(d, 1)), -2), q)
