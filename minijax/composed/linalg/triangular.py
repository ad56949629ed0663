"""The Cholesky decomposition, and triangular systems."""

from __future__ import annotations

from minijax.base.errors import ShardingTypeError
from minijax.composed.linalg.matrices import matmul, symmetrized, transposed, tril, triu
from minijax.composed.linalg.routines import LAPACK, Linalg, solve_with_merged_batch
from minijax.ir.primitive import is_undefined_primal
from minijax.ir.types import Zero, typeof
from minijax.partition.explicit import merged_entries
from minijax.primitives import moving
from minijax.primitives.counting import eye
from minijax.primitives.elementwise import add, conj, div, neg
from minijax.primitives.families import is_complex, scalar_like
from minijax.primitives.structural import squeeze
from minijax.primitives.zeros import add_tangents
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
        halves = add(scalar_like(factor, 1), eye(n, n, typeof(factor).dtype))
        halves = moving.expand_dims(halves, tuple(range(ndim - 2)))
        return [factor], [matmul(factor, div(lower, halves))]


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
    da = neg(tril(da, -k) if params["lower"] else triu(da, k))
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
    """
    conjugate_a = conjugate_a and is_complex(a)
    single = typeof(b).ndim == typeof(a).ndim - 1
    at = typeof(b).ndim if left_side else typeof(b).ndim - 1
    if single:
        b = moving.expand_dims(b, (at,))
    of_matrix = dict(lower=lower, transpose_a=transpose_a, conjugate_a=conjugate_a, unit_diagonal=unit_diagonal)
    x = triangular_solve_p.bind(a, b, left_side=left_side, **of_matrix)
    return squeeze(x, (at,)) if single else x
