"""Singular values by the polar decomposition, as TPUs compute them (Nakatsukasa & Higham 2013).

For A = U H, the eigenvalues of H are the singular values, its eigenvectors V are the right singular vectors, and U V
are the left ones.
"""

from typing import Any

from minijax.base import dtypes
from minijax.composed.arrays.selecting import where
from minijax.composed.linalg.eigen import eigh
from minijax.composed.linalg.lu import qr
from minijax.composed.linalg.matrices import adjoint, along, diagonal, dot_highest, typed
from minijax.composed.linalg.polar import norm, qdwh
from minijax.higher.while_loop import while_loop
from minijax.ir.types import typeof
from minijax.primitives import elementwise as lax
from minijax.primitives.families import is_complex, scalar_like
from minijax.primitives.reduce import reduce_and
from minijax.primitives.structural import concatenate, index_in_dim, rev


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
