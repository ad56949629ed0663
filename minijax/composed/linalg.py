"""Decompositions of matrices whose rules solve systems or loop: LU, eigenvalues; and solving by LU."""

import enum
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.base import cache, dtypes
from minijax.control.custom_solve import linear_solve
from minijax.control.jitted import jitted
from minijax.ir.jaxpr import ClosedJaxpr, DebugInfo
from minijax.ir.primitive import Axis
from minijax.ir.trace import trace_to_jaxpr
from minijax.ir.types import ShapedArray, Zero, typeof
from minijax.ops import moving
from minijax.ops.convert import convert, stop_gradient
from minijax.ops.dot import Precision, dot_general
from minijax.ops.elementwise import (
    abs as abs_,
    add,
    complex as complex_,
    conj,
    div,
    eq,
    imag,
    integer_pow,
    lt,
    mul,
    neg,
    real,
    select,
    sub,
)
from minijax.ops.families import Kinds, literal
from minijax.ops.index import dynamic_index_in_dim
from minijax.ops.indexing import GatherDimensionNumbers, GatherScatterMode, ScatterDimensionNumbers
from minijax.ops.linalg import (
    INT32,
    Linalg,
    adjoint,
    cholesky as cholesky,
    cholesky_p as cholesky_p,
    eye,
    is_complex,
    lapack,
    matmul,
    nan_unless,
    succeeded,
    symmetrized,
    transposed,
    triangular_solve,
    triangular_solve_p as triangular_solve_p,
    tril,
    triu,
)
from minijax.ops.moving import sum_axes, sum_axis
from minijax.ops.reduce import argmax
from minijax.ops.scatter import gather, scatter
from minijax.ops.shape import broadcasted_iota, concatenate, iota, pad, slice as slice_, squeeze
from minijax.ops.sort import sort_key_val
from minijax.transforms.batch import batch_flat, place

# ---- indexing matrices ------------------------------------------------------------------------------


def from_front(indices: Any, size: int) -> Any:
    """Indices counted from the front."""
    return select(lt(indices, literal(indices, 0)), add(indices, literal(indices, size)), indices)


def take_rows(x: Any, indices: Any) -> Any:
    """The rows of a matrix that a vector of indices names."""
    rows, columns = typeof(x).shape
    indices = moving.expand_dims(from_front(indices, rows), (1,))
    if not rows * columns:
        return moving.full((typeof(indices).shape[0], columns), literal(x, 0))
    return gather(x, indices, GatherDimensionNumbers((1,), (0,), (0,)), (1, columns),
                  mode=GatherScatterMode.PROMISE_IN_BOUNDS)  # fmt: skip


def _on_diagonal(at: Any, n: int) -> Any:
    """The index vectors (i, i)."""
    sides = [from_front(at, n) for _ in range(2)]
    return concatenate([moving.expand_dims(i, (1,)) for i in sides], 1)


def diagonal(x: Any) -> Any:
    """The diagonals of square matrices."""
    *batch, n, _ = typeof(x).shape
    indices, d = _on_diagonal(iota(np.int32, n), n), len(batch)
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


# ---- LU ---------------------------------------------------------------------------------------------


class LUPivotsToPermutation(Linalg):
    """The permutation that a sequence of transpositions makes."""

    name = "lu_pivots_to_permutation"
    accepts = Kinds((np.int32,))
    ranks = (1,)

    def results(self, pivots, *, permutation_size):
        if permutation_size < pivots.shape[-1]:
            raise ValueError(
                f"Output permutation size {permutation_size} has to exceed the trailing dimension of the "
                f"pivots. Got pivots size {pivots.shape[-1]}"
            )
        return [((permutation_size,), INT32)]

    def lower(self, e, ins, outs, pivots, *, permutation_size):
        return [_emit_permutation(e, pivots, ins[0], outs[0])]


def _emit_permutation(e: Any, pivots: str, aval: ShapedArray, out: ShapedArray) -> str:
    start = e.iota(out.ndim - 1, out)
    if not aval.shape[-1]:
        return start
    unit = ShapedArray((), INT32)
    closed = _transposition(aval, out)

    def again(pivots, step, i, permutation):
        return [e.compare("LT", step, e.constant(aval.shape[-1], unit), unit)]

    def body(pivots, step, i, permutation):
        i, permutation = e.call_jaxpr(closed, "closed_call", [pivots, i, permutation])
        return [pivots, e.binary("add", step, e.constant(1, unit), unit), i, permutation]

    inits = [pivots, e.constant(0, unit), e.constant(0, unit), start]
    return e.while_(inits, [aval, unit, unit, out], again, body)[3]


@cache.cache
def _transposition(pivots: ShapedArray, permutation: ShapedArray) -> ClosedJaxpr:
    """One step: (pivots, i, permutation) -> (i + 1, permutation with elements i and pivots[i] exchanged)."""
    size = permutation.shape[-1]
    numbers = ScatterDimensionNumbers((), (0,), (0,))

    def put(x, i, value):
        at = moving.expand_dims(from_front(i, size), (0,))
        return scatter(x, at, value, numbers, indices_are_sorted=True, unique_indices=True)

    def exchange(pivots, i, permutation):
        j = dynamic_index_in_dim(pivots, i, 0, keepdims=False)
        x, y = (dynamic_index_in_dim(permutation, k, 0, keepdims=False) for k in (i, j))
        return [put(put(permutation, i, y), j, x)]

    def step(pivots, i, permutation):
        inner = lambda p, q: exchange(p, i, q)  # noqa: E731
        after = add(i, literal(i, 1))
        return [after, *over_batch(inner, typeof(pivots).shape[:-1])(pivots, permutation)]

    jaxpr, _ = trace_to_jaxpr(step, [pivots, ShapedArray((), INT32), permutation], DebugInfo("scan", "body"))
    return ClosedJaxpr(jaxpr)


class LU(Linalg):
    """The factors of matrices with rows exchanged, both in one matrix; the pivots; the permutation."""

    name = "lu"
    multiple_results = True

    def results(self, x):
        m, n = x.shape[-2:]
        return [((m, n), x.dtype), ((min(m, n),), INT32), ((m,), INT32)]

    def lower(self, e, ins, outs, x):
        infos = ShapedArray(ins[0].shape[:-2], INT32)
        found, pivots, info = lapack(e, "getrf", [x], ins, [*outs[:2], infos], {}, {0: 0})
        pivots = e.binary("subtract", pivots, e.full(1, outs[1]), outs[1])
        found = nan_unless(e, succeeded(e, info, infos, "GE"), found, outs[0])
        return [found, pivots, _emit_permutation(e, pivots, outs[1], outs[2])]

    def jvp(self, primals, tangents):
        factors, pivots, permutation = self.bind(*primals)
        push = over_batch(_push_lu, typeof(factors).shape[:-2])
        (pushed,) = push(tangents[0], factors, permutation)
        zeros = [Zero(typeof(x).to_tangent_aval()) for x in (pivots, permutation)]
        return [factors, pivots, permutation], [pushed, *zeros]


def _push_lu(da: Any, lu: Any, permutation: Any) -> list:
    """The tangent of both factors in one matrix."""
    dtype, (m, n) = typeof(lu).dtype, typeof(lu).shape
    k = min(m, n)
    zero = literal(lu, 0)
    part = lambda rows, columns: lu if (rows, columns) == (m, n) else slice_(lu, (0, 0), (rows, columns))  # noqa: E731
    product = lambda x, y: dot_general(x, y, (((1,), (0,)), ((), ())), Precision.HIGHEST, dtype)  # noqa: E731
    lower = add(pad(tril(part(m, k), -1), zero, ((0, 0, 0), (0, m - k, 0))), eye(m, m, dtype))
    corner = pad(eye(n - k, n - k, dtype), zero, ((k, 0, 0), (k, 0, 0)))
    upper = add(pad(triu(part(k, n)), zero, ((0, n - k, 0), (0, 0, 0))), corner)
    inner = triangular_solve(
        lower, take_rows(da, permutation), left_side=True, lower=True, unit_diagonal=True
    )
    inner = triangular_solve(upper, inner, left_side=False)
    return [add(product(lower, tril(inner, -1)), product(triu(inner), upper))]


lu_p, lu_pivots_to_permutation_p = LU(), LUPivotsToPermutation()


def lu(x: Any) -> list:
    """The LU decomposition with pivots: L and U in one matrix, pivots, permutation of rows."""
    return lu_p.bind(x)


def lu_pivots_to_permutation(pivots: Any, permutation_size: int) -> Any:
    """The permutation of `permutation_size` rows that exchanging row i with row `pivots[i]`, for each i,
    makes.
    """
    return lu_pivots_to_permutation_p.bind(pivots, permutation_size=int(permutation_size))


# ---- solving ----------------------------------------------------------------------------------------


@jitted("_lu_solve", static=("trans",))
def lu_solve(lu: Any, permutation: Any, b: Any, trans: int) -> Any:
    """Solves a x = b (or aᵀ x = b with `trans` 1, aᴴ x = b with 2) for vectors b, by the LU decomposition of
    a.
    """

    def single(lu, permutation, b):
        x = moving.expand_dims(b, (1,))
        if trans == 0:
            x = take_rows(x, permutation)
            x = triangular_solve(lu, x, left_side=True, lower=True, unit_diagonal=True)
            x = triangular_solve(lu, x, left_side=True)
        else:
            how = dict(left_side=True, transpose_a=True, conjugate_a=trans == 2)
            x = triangular_solve(lu, x, **how)
            x = triangular_solve(lu, x, lower=True, unit_diagonal=True, **how)
            _, order = sort_key_val(permutation, iota(np.int32, typeof(permutation).shape[0]))
            x = take_rows(x, order)
        return [squeeze(x, (1,))]

    return over_batch(single, typeof(b).shape[:-1])(lu, permutation, b)[0]


def solve(a: Any, b: Any) -> Any:
    """Solves a x = b for vectors b (one axis less than a) or matrices, by LU; the batch axes are the same."""
    factors, _, permutation = lu(stop_gradient(a))
    n = typeof(a).ndim
    batch = tuple(range(n - 2))

    def matvec(x):
        return dot_general(a, x, (((n - 1,), (n - 2,)), (batch, batch)), Precision.HIGHEST)

    def vecmat(ct):
        product = dot_general(ct, a, (((n - 2,), (n - 2,)), (batch, batch)), Precision.HIGHEST)
        return moving.reduce_sum_p.bind(product, axes=(), out_sharding=None)

    def single(b):
        return linear_solve(matvec, b, lambda _, x: lu_solve(factors, permutation, x, 0),
                            lambda _, x: lu_solve(factors, permutation, x, 1), vecmat=vecmat)  # fmt: skip

    if typeof(b).ndim == n - 1:
        return single(b)
    columns = Axis(None, typeof(b).shape[-1])
    (x,), (d,) = batch_flat(lambda b: [single(b)], columns, [b], [typeof(b).ndim - 1])
    return place(x, d, n - 1, columns)


# ---- eigenvalues ------------------------------------------------------------------------------------


class _Implementation(enum.Enum):
    def __repr__(self):
        return str(self)


class EigImplementation(_Implementation):
    """Who computes eigenvalues; CPUs have LAPACK alone."""

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"


class Eig(Linalg):
    """Eigenvalues of general matrices, and left and right eigenvectors if asked for."""

    name = "eig"
    multiple_results = True
    square = True

    def results(self, x, *, compute_left_eigenvectors, compute_right_eigenvectors, **how):
        n, dtype = x.shape[-1], dtypes.to_complex_dtype(x.dtype)
        return [((n,), dtype)] + [((n, n), dtype)] * (compute_left_eigenvectors + compute_right_eigenvectors)

    def lower(
        self, e, ins, outs, x, *, compute_left_eigenvectors, compute_right_eigenvectors, implementation, **how
    ):
        if implementation not in (None, EigImplementation.LAPACK):
            raise ValueError("Only the lapack implementation is supported on CPU.")
        (aval,), batch, n = ins, ins[0].shape[:-2], ins[0].shape[-1]
        is_real = aval.dtype.kind != "c"
        infos, vectors = ShapedArray(batch, INT32), ShapedArray((*batch, n, n), outs[0].dtype)
        values = [ShapedArray((*batch, n), aval.dtype)] * (1 + is_real)
        sides = compute_left_eigenvectors, compute_right_eigenvectors
        config = {
            f"compute_{side}": "V" if c else "N" for side, c in zip(("left", "right"), sides, strict=True)
        }
        *parts, left, right, info = lapack(e, "geev", [x], ins, [*values, vectors, vectors, infos], config)
        w = e.result(f"stablehlo.complex {', '.join(parts)}", values, outs[0]) if is_real else parts[0]
        found = [w, *(v for v, c in zip((left, right), sides, strict=True) if c)]
        ok = succeeded(e, info, infos)
        return [nan_unless(e, ok, v, out) for v, out in zip(found, outs, strict=True)]

    def jvp(self, primals, tangents, *, compute_left_eigenvectors, compute_right_eigenvectors,
            enable_eigvec_derivs, implementation):  # fmt: skip
        how = dict(enable_eigvec_derivs=enable_eigvec_derivs, implementation=implementation)
        if not (compute_left_eigenvectors or compute_right_eigenvectors):
            w, v = self.bind(
                *primals, compute_left_eigenvectors=False, compute_right_eigenvectors=True, **how
            )
            inner = solve(v, _complex(tangents[0], v))
            return [w], [sum_axis(mul(inner, transposed(v)), typeof(w).ndim)]
        if not enable_eigvec_derivs:
            raise NotImplementedError(
                "eig: derivatives of non-symmetric eigenvectors hold only under assumptions on the input "
                "that cannot be checked; pass enable_eigvec_derivs=True to jax.lax.linalg.eig to opt in. "
                "See https://github.com/jax-ml/jax/issues/2748 for discussion."
            )
        w, *left, v = self.bind(*primals, compute_left_eigenvectors=compute_left_eigenvectors,
                                compute_right_eigenvectors=True, **how)  # fmt: skip
        da = _complex(tangents[0], v)
        dw, dv = _push_eigenvectors(da, w, v)
        results, pushed = [w, *left], [dw]
        if left:
            mirrored = conj(w)
            pushed.append(_push_eigenvectors(conj(transposed(da)), mirrored, left[0])[1])
        if compute_right_eigenvectors:
            results.append(v)
            pushed.append(dv)
        return results, pushed


def _complex(x: Any, like: Any) -> Any:
    dtype = typeof(like).dtype
    return x if typeof(x).dtype == dtype else convert(x, dtype)


def _along(x: Any, d: int) -> Any:
    """Vectors as rows (d = -2) or columns (d = -1) of matrices."""
    ndim = typeof(x).ndim + 1
    return moving.expand_dims(x, (ndim + d,))


def gaps(w: Any) -> Any:
    """For i and j: 1 / (w_j - w_i), zero where i = j."""
    n, ndim = typeof(w).shape[-1], typeof(w).ndim
    ones = eye(n, n, typeof(w).dtype)
    row = _along(w, -2)
    wide = ones if ndim == 1 else moving.expand_dims(ones, tuple(range(ndim - 1)))
    inverse = integer_pow(sub(add(wide, row), _along(w, -1)), -1)
    return sub(inverse, wide if ndim == 1 else moving.expand_dims(ones, tuple(range(ndim - 1))))


def _push_eigenvectors(da: Any, w: Any, v: Any) -> tuple:
    """Tangents of eigenvalues and of right eigenvectors of norm 1, whose largest element stays real."""
    ndim = typeof(v).ndim
    weights = gaps(w)
    inner = matmul(solve(v, da), v)
    dw = diagonal(inner)
    dv = matmul(v, mul(weights, inner))
    largest = argmax(abs_(v), ndim - 2, np.int32)
    rows = broadcasted_iota(np.int32, typeof(v).shape, ndim - 2)
    mask = convert(eq(rows, _along(largest, -2)), typeof(v).dtype)
    total = lambda x: sum_axes(x, (ndim - 2,))  # noqa: E731
    shrink = neg(real(total(mul(conj(v), dv))))
    turn = neg(imag(total(mul(mask, dv))))
    turn = div(turn, real(total(mul(mask, v))))
    return dw, add(dv, mul(v, _along(complex_(shrink, turn), -2)))


eig_p = Eig()


def eig(x: Any, *, compute_left_eigenvectors: bool = True, compute_right_eigenvectors: bool = True,
        enable_eigvec_derivs: bool = False, implementation: EigImplementation | None = None,
        use_magma: bool | None = None) -> list:  # fmt: skip
    """Eigenvalues of general matrices, then left and right eigenvectors as columns, where asked for.

    NaN where the computation did not converge.
    """
    if use_magma is not None:
        warnings.warn("eig: use_magma is deprecated, use implementation=EigImplementation.MAGMA instead.",
                      DeprecationWarning, stacklevel=2)  # fmt: skip
        implementation = EigImplementation.MAGMA if use_magma else EigImplementation.CUSOLVER
    return eig_p.bind(x, compute_left_eigenvectors=compute_left_eigenvectors,
                      compute_right_eigenvectors=compute_right_eigenvectors,
                      enable_eigvec_derivs=enable_eigvec_derivs, implementation=implementation)  # fmt: skip


# ---- Hermitian eigenvalues --------------------------------------------------------------------------


class EighImplementation(_Implementation):
    """How Hermitian eigenvalues are computed; CPUs have QR alone."""

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


def _real_part(dtype: Any) -> Any:
    return dtypes.to_floating_dtype(dtype)


class Eigh(Linalg):
    """Eigenvectors and eigenvalues of Hermitian matrices, of which one triangle is read."""

    name = "eigh"
    multiple_results = True
    square = True

    def results(self, x, *, subset_by_index, **how):
        n = x.shape[-1]
        first, last = subset_by_index or (0, n)
        return [((n, last - first), x.dtype), ((last - first,), _real_part(x.dtype))]

    def lower(self, e, ins, outs, x, *, lower, subset_by_index, algorithm, **how):
        if subset_by_index not in (None, (0, ins[0].shape[-1])):
            raise NotImplementedError("eigh: subset_by_index not supported on CPU and GPU")
        if algorithm not in (None, EighImplementation.QR):
            raise NotImplementedError(f"eigh: only the QR algorithm is implemented on CPU, got {algorithm}")
        infos = ShapedArray(ins[0].shape[:-2], INT32)
        routine = "heevd" if ins[0].dtype.kind == "c" else "syevd"
        config = {"mode": "V", "uplo": "L" if lower else "U"}
        v, w, info = lapack(e, routine, [x], ins, [*outs, infos], config, {0: 0})
        ok = succeeded(e, info, infos)
        return [nan_unless(e, ok, y, out) for y, out in zip((v, w), outs, strict=True)]

    def jvp(self, primals, tangents, *, subset_by_index, **how):
        (a,), (da,) = primals, tangents
        if subset_by_index not in (None, (0, typeof(a).shape[-1])):
            raise NotImplementedError("Derivatives not defined for partial eigen decomposition.")
        v, w = self.bind(symmetrized(a), subset_by_index=subset_by_index, **how)
        weights = gaps(_complex(w, v))
        inner = matmul(matmul(adjoint(v), da), v)
        dv = matmul(v, mul(weights, inner))
        return [v, w], [dv, diagonal(real(inner) if is_complex(inner) else inner)]


eigh_p = Eigh()


def eigh(x: Any, *, lower: bool = True, symmetrize_input: bool = True, sort_eigenvalues: bool = True,
         subset_by_index: tuple[int, int] | None = None,
         implementation: EighImplementation | None = None) -> tuple:  # fmt: skip
    """Eigenvectors, as columns, and rising eigenvalues of Hermitian matrices; NaN without convergence."""
    return tuple(
        eigh_p.bind(
            symmetrized(x) if symmetrize_input else x,
            lower=lower,
            sort_eigenvalues=sort_eigenvalues,
            subset_by_index=subset_by_index,
            algorithm=implementation,
        )
    )


# ---- singular values --------------------------------------------------------------------------------


class SvdAlgorithm(enum.Enum):
    """How singular values are computed."""

    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"
    DIVIDE_AND_CONQUER = "divide_and_conquer"

    def __repr__(self):
        return f"SvdAlgorithm.{self.name}"


_ROUTINES = {None: "gesdd", SvdAlgorithm.DEFAULT: "gesdd", SvdAlgorithm.QR: "gesvd",
             SvdAlgorithm.DIVIDE_AND_CONQUER: "gesdd"}  # fmt: skip


class SVD(Linalg):
    """Singular values of matrices, and both sides' singular vectors if asked for."""

    name = "svd"
    multiple_results = True

    def results(self, x, *, full_matrices, compute_uv, subset_by_index, algorithm):
        m, n = x.shape[-2:]
        k = min(m, n)
        if subset_by_index is not None:
            if full_matrices and subset_by_index != (0, k):
                raise ValueError("svd: full_matrices and subset_by_index cannot both be set")
            k = min(k, subset_by_index[1] - subset_by_index[0])
        values = [((k,), _real_part(x.dtype))]
        sides = [((m, m if full_matrices else k), x.dtype), ((n if full_matrices else k, n), x.dtype)]
        return values + sides if compute_uv else values

    def lower(self, e, ins, outs, x, *, full_matrices, compute_uv, subset_by_index, algorithm):
        (*batch, m, n), dtype = ins[0].shape, ins[0].dtype
        k = min(m, n)
        if subset_by_index not in (None, (0, k)):
            raise NotImplementedError("svd: subset_by_index not implemented for CPU and GPU")
        if algorithm not in _ROUTINES:
            raise NotImplementedError("The SVD Jacobi and Polar algorithms are not implemented on CPU.")
        if not m or not n:
            return self._of_nothing(e, outs, compute_uv)
        wide = full_matrices or not compute_uv
        found = [
            ins[0],
            ShapedArray((*batch, k), _real_part(dtype)),
            ShapedArray((*batch, m, m if wide else k), dtype),
            ShapedArray((*batch, n if wide else k, n), dtype),
            ShapedArray(tuple(batch), INT32),
        ]
        mode = "N" if not compute_uv else "A" if full_matrices else "S"
        _, *values, info = lapack(e, _ROUTINES[algorithm], [x], ins, found, {"mode": mode}, {0: 0})
        ok = succeeded(e, info, found[-1])
        return [nan_unless(e, ok, y, out) for y, out in zip(values, outs, strict=False)]

    def _of_nothing(self, e, outs, compute_uv):
        """Of empty matrices there are no values, and the vectors are unit vectors."""
        if not compute_uv:
            return [e.zeros(outs[0])]
        values, right, left = e.zeros(outs[0]), _emit_eye(e, outs[2]), _emit_eye(e, outs[1])
        return [values, left, right]

    def jvp(self, primals, tangents, *, full_matrices, compute_uv, subset_by_index, algorithm):
        (a,), (da,) = primals, tangents
        (*_, m, n) = typeof(a).shape
        if subset_by_index not in (None, (0, min(m, n))):
            raise NotImplementedError("SVD JVP: subset_by_index not implemented")
        if compute_uv and full_matrices and m != n:
            raise NotImplementedError("Singular value decomposition JVP not implemented for full matrices")
        s, u, vt = self.bind(a, full_matrices=False, compute_uv=True, subset_by_index=subset_by_index,
                             algorithm=algorithm)  # fmt: skip
        ut, v = adjoint(u), adjoint(vt)
        row = _along(s, -2)
        inner = _dot(_dot(ut, da), v)
        ds = diagonal(real(inner) if is_complex(inner) else inner)
        if not compute_uv:
            return [s], [ds]
        du, dv = _push_singular_vectors(da, s, row, inner, (u, ut, v, vt))
        return [s, u, vt], [ds, du, adjoint(dv)]


def _dot(x: Any, y: Any) -> Any:
    n = typeof(x).ndim
    batch = tuple(range(n - 2))
    return dot_general(x, y, (((n - 1,), (n - 2,)), (batch, batch)), Precision.HIGHEST, typeof(x).dtype)


def _push_singular_vectors(da: Any, s: Any, row: Any, inner: Any, sides: tuple) -> tuple:
    """Tangents of the left and right singular vectors, as columns."""
    u, ut, v, vt = sides
    ndim, k = typeof(u).ndim, typeof(s).shape[-1]
    one = literal(s, 1)
    squares = mul(add(row, transposed(row)), sub(row, transposed(row)))
    same = eye(k, k, typeof(s).dtype)
    same = moving.expand_dims(same, tuple(range(ndim - 2)))
    weights = sub(div(one, add(squares, same)), same)
    right, left = mul(_complex(row, u), inner), mul(transposed(_complex(row, u)), inner)
    zero = convert(eq(s, literal(s, 0)), typeof(s).dtype)
    inverse = _diagonal_matrix(sub(div(one, add(s, zero)), zero))
    turn = mul(mul(literal(inner, 0.5), sub(inner, adjoint(inner))), _complex(inverse, u))
    du = _dot(u, add(mul(_complex(weights, u), add(right, adjoint(right))), turn))
    dv = _dot(v, mul(_complex(weights, u), add(left, adjoint(left))))
    m, n = typeof(da).shape[-2:]
    if m > n:
        moved = _dot(da, v)
        du = add(du, div(sub(moved, _dot(u, _dot(ut, moved))), _complex(row, u)))
    if n > m:
        moved = _dot(adjoint(da), u)
        dv = add(dv, div(sub(moved, _dot(v, _dot(vt, moved))), _complex(row, u)))
    return du, dv


def _diagonal_matrix(x: Any) -> Any:
    *batch, n = typeof(x).shape
    d = len(batch)
    at = iota(np.int32, n)
    zeros = moving.full((*batch, n, n), literal(x, 0))
    numbers = ScatterDimensionNumbers(tuple(range(d)), (d, d + 1), (d, d + 1))
    return scatter(zeros, _on_diagonal(at, n), x, numbers)


def _emit_eye(e: Any, out: ShapedArray) -> str:
    if not out.size:
        return e.zeros(out)
    at = ShapedArray(out.shape, INT32)
    row = e.binary("add", e.iota(out.ndim - 2, at), e.full(0, at), at)
    flags = e.compare("EQ", row, e.iota(out.ndim - 1, at), at)
    return e.convert(flags, ShapedArray(out.shape, np.dtype(bool)), out)


svd_p = SVD()


def svd(
    x: Any,
    *,
    full_matrices: bool = True,
    compute_uv: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    algorithm: SvdAlgorithm | None = None,
) -> Any:
    """The singular value decomposition: (U, falling singular values, Vᴴ), or the values alone."""
    values, *sides = svd_p.bind(
        x,
        full_matrices=full_matrices,
        compute_uv=compute_uv,
        subset_by_index=subset_by_index,
        algorithm=algorithm,
    )
    return (sides[0], values, sides[1]) if compute_uv else values
