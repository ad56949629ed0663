"""The Cholesky decomposition, updates by products, and triangular and tridiagonal systems."""

from __future__ import annotations

from typing import Any

from minijax.base.errors import ShardingTypeError
from minijax.composed.linalg.matrices import along, matmul, symmetrized, transposed, tril, triu
from minijax.composed.linalg.routines import (
    GPU,
    INT32,
    LAPACK,
    Linalg,
    nan_unless_succeeded,
    solve_with_merged_batch,
    status_type,
)
from minijax.higher.cond import cond
from minijax.higher.scan import scan
from minijax.ir.primitive import is_undefined_primal
from minijax.ir.types import ShapedArray, Zero, typeof
from minijax.partition.explicit import merged_entries
from minijax.primitives import moving
from minijax.primitives.counting import eye
from minijax.primitives.elementwise import abs as abs_, conj, gt, select, sqrt
from minijax.primitives.families import FLOAT, emit, is_complex, scalar_like
from minijax.primitives.gather_dims import ScatterDimensionNumbers
from minijax.primitives.gather_scatter import scatter, scatter_add
from minijax.primitives.structural import concatenate, slice as slice_, squeeze
from minijax.primitives.zeros import add_tangents, add_zeros, instantiate
from minijax.run.arrays.array import Array, ArrayLike

# ---- Cholesky ---------------------------------------------------------------------------------------


class Cholesky(Linalg):
    """The lower Cholesky factor of positive definite matrices. Elements above the diagonal are undefined."""

    name = "cholesky"
    square = True

    def results(self, x):
        return [(x.shape[-2:], x.dtype)]

    def lower(self, e, ins, outs, x):
        if e.platform == "tpu":
            return [e.cholesky(x, ins[0])]
        routines = dict(cpu=("potrf", {"uplo": "L"}), gpu=("solver_potrf_ffi", {"lower": True}))
        return self.checked_routine(e, [x], ins, outs, aliases={0: 0}, **routines)

    def jvp(self, primals, tangents):
        factor = tril(self.bind(*primals))
        if type(tangents[0]) is Zero:
            return [factor], [Zero.from_primal_value(factor)]
        right = triangular_solve(factor, tangents[0], left_side=False, transpose_a=True, conjugate_a=True, lower=True)
        inner = triangular_solve(factor, right, left_side=True, transpose_a=False, lower=True)
        n, ndim = typeof(factor).shape[-1], typeof(factor).ndim
        lower = tril(inner)
        halves = scalar_like(factor, 1) + eye(n, n, typeof(factor).dtype)
        halves = moving.expand_dims(halves, tuple(range(ndim - 2)))
        return [factor], [matmul(factor, lower / halves)]


# ---- triangular systems -----------------------------------------------------------------------------


class TriangularSolve(Linalg):
    """The solution x of a x = b, or of x a = b, for triangular a."""

    name = "triangular_solve"
    ranks = (2, 2)
    square = True

    def sharding_rule(self, mesh, avals, outs, *, left_side, transpose_a, **params):
        a, b = avals
        summed = -2 if left_side == transpose_a else -1
        own = -1 if left_side else -2
        for name, x, axis in (("a", a, summed), ("b", b, -2 if left_side else -1)):
            if x.entries[axis] is not None:
                raise ShardingTypeError(
                    f"triangular solve input `{name}` must be unsharded on the contracting axis, but it is "
                    f"{x.str_short()} with left_side={left_side} and transpose_a={transpose_a}"
                )
        kept = a.entries[-3 - summed]
        batch = merged_entries(self.name, [x.entries[:-2] for x in avals])
        return [(*batch, kept, b.entries[own]) if left_side else (*batch, b.entries[own], kept)]

    def results(self, a, b, *, left_side, **params):
        if a.shape[-1] != b.shape[-2 if left_side else -1]:
            raise ValueError(f"Incompatible shapes for arguments to triangular_solve: {a.shape} and {b.shape}.")
        return [(b.shape[-2:], b.dtype)]

    def lower(self, e, ins, outs, a, b, *, left_side, lower, transpose_a, conjugate_a, unit_diagonal):
        if conjugate_a and not transpose_a:
            a = e.chlo("conj", [a], [ins[0]], ins[0])
            conjugate_a = False
        if e.platform == "cpu" and ins[0].dtype.name in LAPACK:
            trans = "N" if not transpose_a else "C" if conjugate_a else "T"
            side, uplo, diag = "L" if left_side else "R", "L" if lower else "U", "U" if unit_diagonal else "N"
            config = dict(side=side, uplo=uplo, trans_x=trans, diag=diag)
            return self.routine(e, [a, b], ins, outs, cpu=("trsm", config), aliases={1: 0})
        kind = "NO_TRANSPOSE" if not transpose_a else "ADJOINT" if conjugate_a else "TRANSPOSE"
        how = dict(left_side=left_side, lower=lower, transpose=kind, unit_diagonal=unit_diagonal)
        return [e.triangular_solve(a, b, *ins, **how)]

    def jvp(self, primals, tangents, **params):
        (a, b), (da, db) = primals, tangents
        x = self.bind(a, b, **params)
        terms = []
        if type(da) is not Zero:
            terms.append(_push_matrix(da, x, a, b, **params))
        if type(db) is not Zero:
            terms.append(self.bind(a, db, **params))
        return [x], [add_tangents(terms, x)]

    def transpose(self, cts, a, b, *, transpose_a, **params):
        if not is_undefined_primal(b) or is_undefined_primal(a):
            raise NotImplementedError("Transpose rule for 'triangular_solve' not implemented for the matrix")
        if type(cts[0]) is Zero:
            return [None, Zero(b.aval)]
        return [None, self.bind(a, cts[0], transpose_a=not transpose_a, **params)]

    def batch(self, axis, operands, dims, *, left_side, **params):
        (a, b), (da, db) = operands, dims
        if da is not None:
            return super().batch(axis, operands, dims, left_side=left_side, **params)
        at = typeof(b).ndim - (1 if left_side else 2)
        return solve_with_merged_batch(lambda b: self.bind(a, b, left_side=left_side, **params), b, db, at, at - 1)


def _push_matrix(da, x, a, b, **params):
    """The tangent of the solution for a tangent of the matrix. Multiplies first if that is less work."""
    rows, columns = typeof(b).shape[-2:]
    k = 1 if params["unit_diagonal"] else 0
    da = -(tril(da, -k) if params["lower"] else triu(da, k))
    da = transposed(da) if params["transpose_a"] else da
    da = conj(da) if params["conjugate_a"] else da
    solve = lambda y: triangular_solve_p.bind(a, y, **params)  # noqa: E731
    if params["left_side"]:
        return solve(matmul(da, x)) if rows > columns else matmul(solve(da), x)
    return solve(matmul(x, da)) if rows < columns else matmul(x, solve(da))


cholesky_p, triangular_solve_p = Cholesky(), TriangularSolve()


def cholesky(x: Array, *, symmetrize_input: bool = True) -> Array:
    """Computes the lower triangular L with L Lᴴ = x for positive definite x; NaN for other matrices.

    With `symmetrize_input`, the mean of x and its adjoint is used; else the lower triangle is read.

    Example:
        >>> jax.lax.linalg.cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]]))
        Array([[2., 0.],
               [1., 2.]], dtype=float32)
    """
    return tril(cholesky_p.bind(symmetrized(x, "cholesky") if symmetrize_input else x))


def triangular_solve(
    a: ArrayLike,
    b: ArrayLike,
    *,
    left_side: bool = False,
    lower: bool = False,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Array:
    """Solves op(a) x = b (or x op(a) = b unless `left_side`) for triangular a; b may be a vector.

    op transposes a if `transpose_a`, and conjugates it if `conjugate_a`. `lower` selects the triangle that is read;
    with `unit_diagonal` its diagonal counts as ones.

    Example:
        >>> a, b = jnp.array([[2.0, 0.0], [1.0, 4.0]]), jnp.array([[2.0], [9.0]])
        >>> jax.lax.linalg.triangular_solve(a, b, left_side=True, lower=True)
        Array([[1.],
               [2.]], dtype=float32)
    """
    conjugate_a = conjugate_a and is_complex(a)
    single = typeof(b).ndim == typeof(a).ndim - 1
    at = typeof(b).ndim if left_side else typeof(b).ndim - 1
    if single:
        b = moving.expand_dims(b, (at,))
    of_matrix = dict(lower=lower, transpose_a=transpose_a, conjugate_a=conjugate_a, unit_diagonal=unit_diagonal)
    x = triangular_solve_p.bind(a, b, left_side=left_side, **of_matrix)
    return squeeze(x, (at,)) if single else x


class TridiagonalSolve(Linalg):
    """The solution x of a x = b, for a given by its lower, main and upper diagonal."""

    name = "tridiagonal_solve"
    ranks = (1, 1, 1, 2)

    def results(self, dl, d, du, b, *, perturb_singular):
        if not dl.shape == d.shape == du.shape:
            raise TypeError(
                "tridiagonal_solve requires that all diagonal arguments have the same shape, got "
                f"{dl.shape}, {d.shape} and {du.shape}."
            )
        if b.shape[:-1] != d.shape:
            raise TypeError(
                "tridiagonal_solve requires that the leading ndim-1 dimensions of b equal the "
                f"dimensions of the diagonals, got {b.shape} and {d.shape}."
            )
        return [(b.shape[-2:], b.dtype)]

    def lower(self, e, ins, outs, *operands, perturb_singular):
        batch, gpu = ins[0].ndim - 1, GPU.get(e.platform)
        if perturb_singular:
            if e.platform == "tpu":
                raise NotImplementedError("tridiagonal_solve: perturb_singular=True is not supported on this platform.")
            target = f"{gpu}_tridiagonal_solve_perturbed" if gpu else "tridiagonal_solve_perturbed_ffi"
            return e.batched_call(target, operands, ins, outs, {}, batch=batch)
        if e.platform == "tpu":
            return emit(e, _thomas, ins, operands)
        if gpu:
            return e.batched_call(f"{gpu}sparse_gtsv2_ffi", operands, ins, outs, {}, {3: 0}, batch)
        status_aval, aliases = status_type(ins[0], 1), {i: i for i in range(4)}
        *_, x, status = self.routine(e, operands, ins, [*ins, status_aval], aliases, batch, cpu=("gtsv", {}))
        return nan_unless_succeeded(e, status, status_aval, [x], outs)

    def jvp(self, primals, tangents, **how):
        *diagonals, b = primals
        *changes, db = tangents
        x = self.bind(*primals, **how)
        if any(type(t) is not Zero for t in changes):
            db = add_zeros(db, -_product(*map(instantiate, changes), x))
        return [x], [self.bind(*diagonals, db, **how)]

    def transpose(self, cts, dl, d, du, b, **how):
        if not is_undefined_primal(b) or any(map(is_undefined_primal, (dl, d, du))):
            raise NotImplementedError("Transpose rule for 'tridiagonal_solve' not implemented for the diagonals")
        if type(cts[0]) is Zero:
            return [None, None, None, Zero(b.aval)]
        n, axis = typeof(d).shape[-1], typeof(d).ndim - 1
        if not n:
            return [None, None, None, cts[0]]
        outside = lambda part: moving.filled(typeof(part).shape, scalar_like(d, 0))  # noqa: E731
        lower = concatenate([outside(_slice_along(du, axis, n - 1, n)), _slice_along(du, axis, 0, n - 1)], axis)
        inner = _slice_along(dl, axis, 1, n)
        upper = concatenate([inner, outside(_slice_along(dl, axis, 0, 1))], axis)
        return [None, None, None, self.bind(lower, d, upper, cts[0], **how)]

    def batch(self, axis, operands, dims, **how):
        *diagonals, b = operands
        if any(d is not None for d in dims[:3]):
            return super().batch(axis, operands, dims, **how)
        at = typeof(b).ndim - 2
        return solve_with_merged_batch(lambda b: self.bind(*diagonals, b, **how), b, dims[3], at, at)


def _slice_along(x: Any, axis: int, start: int, stop: int) -> Any:
    shape = typeof(x).shape
    if (start, stop) == (0, shape[axis]):
        return x
    starts = [start if i == axis else 0 for i in range(len(shape))]
    return slice_(x, starts, [stop if i == axis else size for i, size in enumerate(shape)])


def _product(dl: Any, d: Any, du: Any, x: Any) -> Any:
    """The product of the tridiagonal matrix and x."""
    n, axis = typeof(d).shape[-1], typeof(d).ndim - 1
    y = moving.reshape_to(d, (*typeof(d).shape, 1)) * x
    if not n:
        return y
    numbers = ScatterDimensionNumbers(tuple(range(axis + 2)), (), (axis,))
    for diagonal, at in ((dl, 1), (du, 0)):
        rows = along(_slice_along(diagonal, axis, at, at + n - 1), -1)
        terms = rows * _slice_along(x, axis, 1 - at, n - at)
        y = scatter_add(y, moving.filled((1,), at, INT32), terms, numbers, indices_are_sorted=True, unique_indices=True)
    return y


def _thomas(dl: Any, d: Any, du: Any, b: Any) -> list:
    """Solves by elimination without exchanging rows (Thomas' algorithm)."""
    axis = typeof(d).ndim - 1
    row = lambda x: squeeze(_slice_along(x, axis, 0, 1), (axis,))  # noqa: E731
    to_front = lambda x: moving.move_axis(x, axis, 0)  # noqa: E731
    shape = typeof(row(b)).shape
    wide = lambda x: moving.broadcast_in_dim(x, shape, range(axis))  # noqa: E731

    def forward(carry, rows):
        (above, x), (dl, d, du, b) = carry, rows
        pivot = lambda: d - dl * above  # noqa: E731
        return (du / pivot(), (b - wide(dl) * x) / wide(pivot())), carry

    def backward(x, rows):
        above, eliminated = rows
        return eliminated - wide(above) * x, x

    first = row(du) / row(d), row(b) / wide(row(d))
    n = typeof(d).shape[-1]
    rest = tuple(to_front(_slice_along(v, axis, 1, n)) for v in (dl, d, du, b))
    (_, last), rows = scan(forward, first, rest, unroll=32)
    x, xs = scan(backward, last, rows, reverse=True, unroll=32)
    return [concatenate([moving.expand_dims(x, (axis,)), moving.move_axis(xs, 0, axis)], axis)]


tridiagonal_solve_p = TridiagonalSolve()


def tridiagonal_solve(dl: Array, d: Array, du: Array, b: Array, *, perturb_singular: bool = False) -> Array:
    """Solves tridiagonal systems a x = b, where a[i, i - 1] = dl[i], a[i, i] = d[i] and a[i, i + 1] = du[i].

    dl[0] and du[-1] are not read. b has one axis more than d, for right-hand sides. The solution of a singular system
    is NaN or, with `perturb_singular`, that of a slightly perturbed system.

    Example:
        >>> below, diagonal, above = jnp.array([[0.0, 1.0], [2.0, 2.0], [1.0, 0.0]])
        >>> jax.lax.linalg.tridiagonal_solve(below, diagonal, above, jnp.array([[4.0], [5.0]]))
        Array([[1.],
               [2.]], dtype=float32)
    """
    return tridiagonal_solve_p.bind(dl, d, du, b, perturb_singular=perturb_singular)


class SymmetricProduct(Linalg):
    """alpha a aᵀ + beta c for symmetric c. Elements of the result above the diagonal are undefined."""

    name = "symmetric_product"
    accepts = FLOAT
    ranks = (2, 2)

    def results(self, a, c, **how):
        if not a.shape[-2] == c.shape[-2] == c.shape[-1]:
            raise ValueError(
                f"symmetric_product expects matrices of shapes (n, k) and (n, n). Got shapes {a.shape} and {c.shape}."
            )
        return [(c.shape[-2:], c.dtype)]

    def lower(self, e, ins, outs, a, c, *, alpha, beta):
        if e.platform != "cuda":
            return emit(e, _symmetric_product, ins, [a, c], alpha=alpha, beta=beta)
        unit = ShapedArray((), ins[0].dtype)
        factors = [e.broadcast_in_dim(e.constant(x, unit), unit, unit, ()) for x in (alpha, beta)]
        avals = [*ins, unit, unit]
        return _by_row(e, "cusolver_syrk_ffi", [a, c, *factors], avals, outs, {"transpose": False}, {1: 0})


def _by_row(e, target, operands, ins, outs, config, aliases):
    operand_layouts, result_layouts = ([list(range(a.ndim))[::-1] for a in side] for side in (ins, outs))
    layouts = dict(operand_layouts=operand_layouts, result_layouts=result_layouts)
    return e.custom_call(target, operands, ins, outs, backend_config=config, aliases=aliases, **layouts)


def _scaled(x: Any, factor: float) -> Any:
    return moving.filled(typeof(x).shape, scalar_like(x, factor)) * x


def _symmetric_product(a: Any, c: Any, alpha: float, beta: float) -> list:
    return [_scaled(matmul(a, transposed(a)), alpha) + _scaled(c, beta)]


class CholeskyUpdate(Linalg):
    """The upper Cholesky factor of rᵀ r + w wᵀ, by a Givens rotation for each row."""

    name = "cholesky_update"
    accepts = FLOAT
    ranks = (2, 1)
    batch = None

    def check(self, avals):
        super().check(avals)
        for i, (a, rank) in enumerate(zip(avals, self.ranks, strict=True)):
            if a.ndim != rank:
                raise TypeError(
                    f"Input {i} to cholesky_update must have a rank of exactly {rank}, but got shape={a.shape}"
                )
        return ()

    def results(self, r, w):
        if r.shape != (*w.shape, *w.shape):
            raise ValueError(
                "cholesky_update takes a square matrix and a vector of the same size as input. "
                f"Got shapes {r.shape} and {w.shape} instead"
            )
        return [(r.shape, r.dtype)]

    def lower(self, e, ins, outs, r, w):
        if e.platform != "cuda":
            return emit(e, _cholesky_update, ins, [r, w])
        return _by_row(e, "cu_cholesky_update_ffi", [r, w], ins, list(ins), {}, {0: 0, 1: 1})[:1]


def _cholesky_update(r: Any, w: Any) -> list:
    n = typeof(w).shape[0]
    numbers = ScatterDimensionNumbers((0,), (0,), (0,))
    for k in range(n):
        x, y = r[k, k], w[k]
        c, s = cond(y == 0, lambda x, y: (scalar_like(x, 1), scalar_like(x, 0)), _rotation, x, y)
        row = r[k]
        by = lambda factor, v: moving.broadcast_to_shape(factor, (n,)) * v  # noqa: E731
        rotated = by(c, row) - by(s, w)
        w = by(c, w) + by(s, row)
        at = moving.filled((1,), k, INT32)
        r = scatter(r, at, rotated, numbers, indices_are_sorted=True, unique_indices=True)
    return [r]


def _rotation(x: Any, y: Any) -> tuple:
    """Cosine and sine of the rotation that takes (x, y) to the first axis."""
    sizes = abs_(x), abs_(y)
    size = select(gt(*sizes), *sizes)
    x, y = x / size, y / size
    inverse = 1 / sqrt(x * x + y * y)
    return x * inverse, -y * inverse


symmetric_product_p, cholesky_update_p = SymmetricProduct(), CholeskyUpdate()


def symmetric_product(
    a_matrix: ArrayLike, c_matrix: ArrayLike, *, alpha: float = 1.0, beta: float = 0.0, symmetrize_output: bool = False
) -> Any:
    """Computes alpha a aᵀ + beta c for symmetric c.

    Elements above the diagonal are undefined unless `symmetrize_output`.

    Example:
        >>> a = jnp.array([[1.0], [2.0]])
        >>> jax.lax.linalg.symmetric_product(a, jnp.eye(2), beta=10.0, symmetrize_output=True)
        Array([[11.,  2.],
               [ 2., 14.]], dtype=float32)
    """
    product = symmetric_product_p.bind(a_matrix, c_matrix, alpha=alpha, beta=beta)
    if not symmetrize_output:
        return product
    above = transposed(tril(product, -1))
    return tril(product) + above


def cholesky_update(r_matrix: ArrayLike, w_vector: ArrayLike) -> Array:
    """Computes the upper triangular R' with R'ᵀ R' = rᵀ r + w wᵀ, for real upper triangular r.

    Example:
        >>> jax.lax.linalg.cholesky_update(jnp.array([[3.0, 0.0], [0.0, 1.0]]), jnp.array([4.0, 0.0]))
        Array([[5., 0.],
               [0., 1.]], dtype=float32)
    """
    return cholesky_update_p.bind(r_matrix, w_vector)
