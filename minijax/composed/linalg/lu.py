"""The LU and QR decompositions, linear solves, and products of Householder reflectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax.base import cache, dtypes
from minijax.base.symbolic.dimension import min_dim
from minijax.composed.linalg.matrices import adjoint, dot, map_over_batch, take_columns, take_rows, tril, triu, typed
from minijax.composed.linalg.routines import GPU, INT32, Linalg, nan_unless_succeeded, status_type
from minijax.composed.linalg.triangular import triangular_solve
from minijax.dispatch.jitted import jitted
from minijax.higher.custom_solve import linear_solve
from minijax.higher.fori_loop import fori_loop
from minijax.indexing.reading import from_front
from minijax.ir.jaxpr import ClosedJaxpr, DebugInfo
from minijax.ir.primitive import Axis
from minijax.ir.trace import trace_to_jaxpr
from minijax.ir.types import ShapedArray, Zero, typeof
from minijax.primitives import moving
from minijax.primitives.convert import stop_gradient
from minijax.primitives.counting import eye, iota
from minijax.primitives.dot import Precision, dot_general
from minijax.primitives.dynamic_slice import dynamic_index_in_dim
from minijax.primitives.elementwise import add, conj, mul, real, sub
from minijax.primitives.families import Kinds, emit, is_complex, scalar_like
from minijax.primitives.gather_dims import ScatterDimensionNumbers
from minijax.primitives.gather_scatter import scatter
from minijax.primitives.sort import sort_key_val
from minijax.primitives.structural import concatenate, pad, squeeze
from minijax.run.arrays.array import Array, ArrayLike
from minijax.transforms.batch import batch_flat, move_batch_dim


class LUPivotsToPermutation(Linalg):
    """The permutation that is equal to a sequence of transpositions."""

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
        (aval,), (out,) = ins, outs
        if e.platform in GPU:
            routine = "_lu_pivots_to_permutation", {}
            return self.routine(e, [pivots], ins, outs, gpu=routine, batch=aval.ndim - 1)
        start = e.iota(out.ndim - 1, out)
        if not aval.shape[-1]:
            return [start]
        unit = ShapedArray((), INT32)
        closed = _transposition(aval, out)

        def again(pivots, step, i, permutation):
            return [e.compare("LT", step, e.size_as(aval.shape[-1], unit), unit)]

        def body(pivots, step, i, permutation):
            i, permutation = e.call_jaxpr(closed, "closed_call", [pivots, i, permutation])
            return [pivots, e.binary("add", step, e.constant(1, unit), unit), i, permutation]

        inits = [pivots, e.constant(0, unit), e.constant(0, unit), start]
        return e.while_(inits, [aval, unit, unit, out], again, body)[3:]


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
        after = add(i, scalar_like(i, 1))
        return [after, *map_over_batch(inner, typeof(pivots).shape[:-1])(pivots, permutation)]

    jaxpr, _ = trace_to_jaxpr(step, [pivots, ShapedArray((), INT32), permutation], DebugInfo("scan", "body"))
    return ClosedJaxpr(jaxpr)


class LU(Linalg):
    """The factors L and U of matrices with permuted rows, in one matrix; the pivots; the permutation."""

    name = "lu"
    multiple_results = True

    def results(self, x):
        m, n = x.shape[-2:]
        return [((m, n), x.dtype), ((min_dim(m, n),), INT32), ((m,), INT32)]

    def lower(self, e, ins, outs, x):
        if e.platform == "tpu":
            return e.custom_call("LuDecomposition", [x], ins, outs, api_version=2)
        status_aval, routines = status_type(ins[0]), dict(cpu=("getrf", {}), gpu=("solver_getrf_ffi", {}))
        types = [*outs[:2], status_aval]
        factors, pivots, status = self.routine(e, [x], ins, types, aliases={0: 0}, **routines)
        pivots = e.binary("subtract", pivots, e.full(1, outs[1]), outs[1])
        factors = nan_unless_succeeded(e, status, status_aval, [factors], outs[:1], "GE")
        size = outs[2].shape[-1]
        permutation = lu_pivots_to_permutation_p.lower(e, outs[1:2], outs[2:], pivots, permutation_size=size)
        return [*factors, pivots, *permutation]

    def jvp(self, primals, tangents):
        factors, pivots, permutation = self.bind(*primals)
        push = map_over_batch(_push_lu, typeof(factors).shape[:-2])
        (pushed,) = push(tangents[0], factors, permutation)
        zeros = map(Zero.from_primal_value, (pivots, permutation))
        return [factors, pivots, permutation], [pushed, *zeros]


def _push_lu(da: Any, lu: Any, permutation: Any) -> list:
    """The tangent of both factors in one matrix."""
    dtype, (m, n) = typeof(lu).dtype, typeof(lu).shape
    k = min_dim(m, n)
    zero = scalar_like(lu, 0)
    product = lambda x, y: dot(x, y, Precision.HIGHEST)  # noqa: E731
    lower = add(pad(tril(lu[:, :k], -1), zero, ((0, 0, 0), (0, m - k, 0))), eye(m, m, dtype))
    corner = pad(eye(n - k, n - k, dtype), zero, ((k, 0, 0), (k, 0, 0)))
    upper = add(pad(triu(lu[:k]), zero, ((0, n - k, 0), (0, 0, 0))), corner)
    inner = triangular_solve(lower, take_rows(da, permutation), left_side=True, lower=True, unit_diagonal=True)
    inner = triangular_solve(upper, inner, left_side=False)
    return [add(product(lower, tril(inner, -1)), product(triu(inner), upper))]


lu_p, lu_pivots_to_permutation_p = LU(), LUPivotsToPermutation()


def lu(x: ArrayLike) -> tuple[Array, Array, Array]:
    """Computes the LU decomposition with pivots: L and U in one matrix, pivots, and the permutation of rows.

    L has ones on its diagonal, which are not stored. `jax.scipy.linalg.lu` returns the factors.

    Example:
        >>> lu, pivots, permutation = jax.lax.linalg.lu(jnp.array([[1.0, 2.0], [4.0, 4.0]]))
        >>> lu, pivots, permutation
        (Array([[4.  , 4.  ],
               [0.25, 1.  ]], dtype=float32), Array([1, 1], dtype=int32), Array([1, 0], dtype=int32))
    """
    return lu_p.bind(x)


def lu_pivots_to_permutation(pivots: ArrayLike, permutation_size: int) -> Array:
    """Converts pivots to a permutation of `permutation_size` rows: for each i, row i is exchanged with `pivots[i]`.

    Example:
        >>> jax.lax.linalg.lu_pivots_to_permutation(jnp.array([2, 2, 2]), 3)
        Array([2, 0, 1], dtype=int32)
    """
    return lu_pivots_to_permutation_p.bind(pivots, permutation_size=int(permutation_size))


# ---- solving ----------------------------------------------------------------------------------------


@jitted("_lu_solve", static=("trans",))
def lu_solve(lu: Any, permutation: Any, b: Any, trans: int) -> Any:
    """Solves a x = b (or aᵀ x = b with `trans` 1, aᴴ x = b with 2) for vectors b (one axis less than a) or
    matrices, by the LU decomposition of a.
    """
    of_vectors = typeof(b).ndim == typeof(lu).ndim - 1

    def single(lu, permutation, b):
        x = moving.expand_dims(b, (1,)) if of_vectors else b
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
        return [squeeze(x, (1,)) if of_vectors else x]

    return map_over_batch(single, typeof(lu).shape[:-2])(lu, permutation, b)[0]


def apply(a: Any, x: Any) -> Any:
    """The products of matrices and vectors, of the same batch axes."""
    n = typeof(a).ndim
    batch = tuple(range(n - 2))
    return dot_general(a, x, (((n - 1,), (n - 2,)), (batch, batch)), Precision.HIGHEST)


def solve(a: Any, b: Any) -> Any:
    """Solves a x = b for vectors b (one axis less than a) or matrices, by LU; the batch axes are the same."""
    factors, _, permutation = lu(stop_gradient(a))
    n = typeof(a).ndim
    batch = tuple(range(n - 2))

    def vecmat(ct):
        product = dot_general(ct, a, (((n - 2,), (n - 2,)), (batch, batch)), Precision.HIGHEST)
        units = tuple(i for i, size in enumerate(typeof(product).shape) if size == 1)
        total = moving.reduce_sum_p.bind(product, axes=units, out_sharding=None)
        return moving.expand_dims(total, units)

    def solve(trans):
        return lambda _, x: lu_solve(factors, permutation, x, trans)

    def single(b):
        return linear_solve(lambda x: apply(a, x), b, solve(0), solve(1), vecmat=vecmat)

    if typeof(b).ndim == n - 1:
        return single(b)
    columns = Axis(None, typeof(b).shape[-1])
    (x,), (d,) = batch_flat(lambda b: [single(b)], columns, [b], [typeof(b).ndim - 1])
    return move_batch_dim(x, d, n - 1, columns)


# ---- reflectors -------------------------------------------------------------------------------------


class HouseholderProduct(Linalg):
    """The leading columns of products of reflectors, whose vectors are stored below the diagonal of matrices."""

    name = "householder_product"
    ranks = (2, 1)

    def results(self, a, taus):
        m, n = a.shape[-2:]
        if m < n:
            raise ValueError(
                "The first argument to householder_product must have at least as many rows as columns, got "
                f"shape {a.shape}"
            )
        if taus.shape[-1] > n:
            raise ValueError(
                "The second argument to householder_product must not have more rows than the minimum of the "
                f"first argument's rows and columns, got shapes {a.shape} and {taus.shape}."
            )
        return [((m, n), a.dtype)]

    def lower(self, e, ins, outs, a, taus):
        routines = dict(cpu=("orgqr", {}), gpu=("solver_orgqr_ffi", {}))
        routines["tpu"] = "ProductOfElementaryHouseholderReflectors", {"api_version": 1}
        return self.routine(e, [a, taus], ins, outs, aliases={0: 0}, **routines)


class Ormqr(Linalg):
    """Products of matrices with a product of reflectors, or its adjoint."""

    name = "ormqr"
    ranks = (2, 1, 2)

    def results(self, a, taus, c, *, left, transpose):
        if c.shape[-2 if left else -1] != a.shape[-2]:
            side = "rows" if left else "columns"
            raise ValueError(
                f"ormqr with left={left} expects c to have the same number of {side} as the Householder "
                f"matrix a has rows. Got a shape {a.shape} and c shape {c.shape}."
            )
        return [(c.shape[-2:], c.dtype)]

    def lower(self, e, ins, outs, a, taus, c, *, left, transpose):
        if e.platform == "tpu":
            return emit(e, _reflected, ins, [a, taus, c], left=left, transpose=transpose)
        config = {"left": left, "transpose": transpose}
        routines = dict(cpu=("ormqr", config), gpu=("solver_ormqr_ffi", config))
        return self.routine(e, [a, taus, c], ins, outs, aliases={2: 0}, **routines)


def _reflected(a: Any, taus: Any, c: Any, left: bool, transpose: bool) -> list:
    """Applies the reflectors to `c` one after the other."""
    ndim, (m, n) = typeof(a).ndim, typeof(a).shape[-2:]
    count, batch = typeof(taus).shape[-1], tuple(range(ndim - 2))
    vectors = add(tril(a, -1), moving.broadcast_to_shape(eye(m, n, typeof(a).dtype, ndim), typeof(a).shape))
    taus = conj(taus) if transpose and is_complex(taus) else taus
    last = dtypes.default_int_dtype().type(count - 1)

    def column(x, axis):
        return moving.expand_dims(x, (axis,))

    def apply(i, c):
        i = i if left == transpose else sub(last, i)
        tau = dynamic_index_in_dim(taus, i, ndim - 2, keepdims=False)
        v = dynamic_index_in_dim(vectors, i, ndim - 1, keepdims=False)
        conjugated = conj(v) if is_complex(v) else v
        if left:
            w = dot_general(conjugated, c, (((ndim - 2,), (ndim - 2,)), (batch, batch)), Precision.HIGHEST)
            outer = mul(column(v, ndim - 1), column(w, ndim - 2))
        else:
            w = dot_general(c, v, (((ndim - 1,), (ndim - 2,)), (batch, batch)), Precision.HIGHEST)
            outer = mul(column(w, ndim - 1), column(conjugated, ndim - 2))
        return sub(c, mul(moving.expand_dims(tau, (ndim - 2, ndim - 1)), outer))

    return [fori_loop(0, count, apply, c)]


householder_product_p, ormqr_p = HouseholderProduct(), Ormqr()


def householder_product(a: ArrayLike, taus: ArrayLike) -> Array:
    """Computes the leading columns of the product of the reflectors 1 - tau v vᴴ.

    Their vectors v are stored below the diagonal of `a`; on the diagonal, v is 1.

    Example:
        >>> a, taus = jnp.array([[1.0], [1.0]]), jnp.array([1.0])  # 1 - v vᵀ with v = (1, 1)
        >>> jax.lax.linalg.householder_product(a, taus)
        Array([[ 0.],
               [-1.]], dtype=float32)
    """
    return householder_product_p.bind(a, taus)


def ormqr(a: ArrayLike, taus: ArrayLike, c: ArrayLike, *, left: bool = True, transpose: bool = False) -> Array:
    """Computes Q c (or c Q unless `left`; Qᴴ for Q if `transpose`) for the full product Q of the reflectors in `a`.

    `householder_product` computes the leading columns of Q.

    Example:
        >>> a, taus = jnp.array([[1.0], [1.0]]), jnp.array([1.0])  # 1 - v vᵀ with v = (1, 1)
        >>> jax.lax.linalg.ormqr(a, taus, jnp.array([[2.0], [3.0]]))
        Array([[-3.],
               [-2.]], dtype=float32)
    """
    return ormqr_p.bind(a, taus, c, left=left, transpose=transpose)


# ---- QR ---------------------------------------------------------------------------------------------


class Geqrf(Linalg):
    """The factor R with the reflectors of Q below its diagonal, and their scales."""

    name = "geqrf"
    multiple_results = True

    def results(self, x):
        return [(x.shape[-2:], x.dtype), ((min_dim(*x.shape[-2:]),), x.dtype)]

    def lower(self, e, ins, outs, x):
        routines = dict(cpu=("geqrf", {}), gpu=("solver_geqrf_ffi", {}), tpu=("Qr", {"api_version": 1}))
        return self.routine(e, [x], ins, outs, aliases={0: 0}, **routines)


class Geqp3(Linalg):
    """As `geqrf`, with column pivoting, and the permutation of columns, counted from 1."""

    name = "geqp3"
    multiple_results = True
    ranks = (2, 1)

    def check(self, avals):
        return avals[0].shape[:-2]

    def results(self, x, free, *, use_magma):
        return [(x.shape[-2:], x.dtype), (free.shape[-1:], INT32), ((min_dim(*x.shape[-2:]),), x.dtype)]

    def lower(self, e, ins, outs, x, free, *, use_magma):
        magma = {None: "auto", True: "on", False: "off"}[use_magma]
        routines = dict(cpu=("geqp3", {}), gpu=("hybrid_geqp3", {"magma": magma}))
        return self.routine(e, [x, free], ins, outs, aliases={0: 0, 1: 1}, **routines)


geqrf_p, geqp3_p = Geqrf(), Geqp3()


class QR(Linalg):
    """The orthonormal and the upper triangular factor; with pivoting, also the order of columns."""

    name = "qr"
    multiple_results = True

    def results(self, x, *, pivoting, full_matrices, use_magma):
        m, n = x.shape[-2:]
        k = m if full_matrices else min_dim(m, n)
        factors = [((m, k), x.dtype), ((k, n), x.dtype)]
        return [*factors, ((n,), INT32)] if pivoting else factors

    def lower(self, e, ins, outs, x, **how):
        return emit(e, _factored, ins, [x], **how)

    def jvp(self, primals, tangents, *, pivoting, full_matrices, **how):
        x, dx = moving.as_array_or_constant(primals[0]), moving.as_array_or_constant(tangents[0])
        m, n = typeof(x).shape[-2:]
        q, r, *order = self.bind(x, pivoting=pivoting, full_matrices=full_matrices, **how)
        if pivoting:
            (dx,) = map_over_batch(lambda *xs: [take_columns(*xs)], typeof(x).shape[:-2])(dx, order[0])
        if m < n:
            pushed = _push_wide(x, dx, q, r)
        else:
            pushed = (_push_full if m > n and full_matrices else _push_thin)(dx, q, r)
        return [q, r, *order], [*pushed, *map(Zero.from_primal_value, order)]


def _factored(x: Any, pivoting: bool, full_matrices: bool, use_magma: bool | None) -> list:
    (*batch, m, n), dtype = typeof(x).shape, typeof(x).dtype
    k = m if full_matrices else min_dim(m, n)
    if not m or not n:
        unit = moving.broadcast_to_shape(eye(m, k, dtype, typeof(x).ndim), (*batch, m, k))
        empty = [unit, moving.filled((*batch, k, n), scalar_like(x, 0))]
        return [*empty, moving.filled((*batch, n), 0, INT32)] if pivoting else empty
    if pivoting:
        free = moving.filled((*batch, n), 0, INT32)
        packed, order, taus = geqp3_p.bind(x, free, use_magma=use_magma)
        order = sub(order, scalar_like(order, 1))
    else:
        packed, taus = geqrf_p.bind(x)
    if m < n:
        q = householder_product(packed[..., :m], taus)
    elif full_matrices:
        growth = [(0, 0, 0)] * (len(batch) + 1) + [(0, m - n, 0)]
        q = householder_product(pad(packed, scalar_like(x, 0), growth), taus)
    else:
        q = householder_product(packed, taus)
        packed = packed[..., :n, :]
    factors = [q, triu(packed)]
    return [*factors, order] if pivoting else factors


def _push_thin(dx: Any, q: Any, r: Any) -> tuple:
    """Tangents of the factors of matrices with at least as many rows as columns (Walter & Lehmann 2010)."""
    ndim, n = typeof(q).ndim, typeof(r).shape[-1]
    ratio = triangular_solve(r, dx)
    inner = dot(adjoint(q), ratio)
    lower = tril(inner, -1)
    rotation = sub(lower, adjoint(lower))
    unit = eye(n, n, typeof(inner).dtype, ndim)
    # The imaginary part of the diagonal belongs to q, because the diagonal of r is real.
    rest = sub(inner, typed(real(inner), inner) if is_complex(inner) else inner)
    rotation = add(rotation, mul(unit, rest))
    dq = add(dot(q, sub(rotation, inner)), ratio)
    return dq, dot(sub(inner, rotation), r)


def _push_wide(x: Any, dx: Any, q: Any, r: Any) -> tuple:
    """Tangents of the factors of matrices with more columns than rows."""
    m = typeof(x).shape[-2]
    rest, first, more = x[..., m:], dx[..., :m], dx[..., m:]
    dq, dr = _push_thin(first, q, r[..., :m])
    dr_rest = add(dot(adjoint(dq), rest), dot(adjoint(q), more))
    return dq, concatenate([dr, dr_rest], typeof(x).ndim - 1)


def _push_full(dx: Any, q: Any, r: Any) -> tuple:
    """Tangents of the full factors of matrices with more rows than columns, where q has columns orthogonal to x."""
    ndim, m, n = typeof(dx).ndim, *typeof(dx).shape[-2:]
    thin = q[..., :n]
    dq, dr = _push_thin(dx, thin, r[..., :n, :])
    upper, lower = thin[..., :n, :], thin[..., n:, :]
    more = q[..., n:]
    d_upper, d_lower = dq[..., :n, :], dq[..., n:, :]
    factors, _, order = lu(sub(upper, eye(n, n, typeof(q).dtype, ndim)))
    y = lu_solve(factors, order, adjoint(lower), 2)
    yt = adjoint(y)
    dq_y = dot(dq, y)
    slope = add(thin, dot(more, yt))
    change = sub(d_lower, dot(yt, d_upper))
    d_more = sub(dq_y, dot(slope, adjoint(change)))
    dq = concatenate([dq, d_more], ndim - 1)
    zeros = moving.filled((*typeof(dx).shape[:-2], m - n, n), scalar_like(dx, 0))
    return dq, concatenate([dr, zeros], ndim - 2)


qr_p = QR()


def qr(x: ArrayLike, *, pivoting: bool = False, full_matrices: bool = True, use_magma: bool | None = None) -> tuple:
    """Computes the QR decomposition x = q r, with orthonormal columns of q and upper triangular r.

    With the columns of x in the order p, x[:, p] = q r and the diagonal of r decreases in absolute value. Without
    `full_matrices`, q has as many columns as the smaller side of x. `use_magma` selects MAGMA for pivoting on GPUs.

    Example:
        >>> x = jnp.array([[3.0, 1.0], [4.0, 2.0]])
        >>> q, r = jax.lax.linalg.qr(x)
        >>> jnp.allclose(q @ r, x), r[1, 0]
        (Array(True, dtype=bool), Array(0., dtype=float32))
    """
    return tuple(qr_p.bind(x, pivoting=pivoting, full_matrices=full_matrices, use_magma=use_magma))
