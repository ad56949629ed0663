"""Updates of symmetric matrices by products, and of Cholesky factors."""

from __future__ import annotations

from typing import Any

from minijax.composed.linalg.matrices import matmul, transposed, tril
from minijax.composed.linalg.routines import INT32, Linalg
from minijax.higher.cond import cond
from minijax.ir.types import ShapedArray, typeof
from minijax.primitives import moving
from minijax.primitives.elementwise import abs as abs_, gt, select, sqrt
from minijax.primitives.families import FLOAT, emit, scalar_like
from minijax.primitives.gather_dims import ScatterDimensionNumbers
from minijax.primitives.gather_scatter import scatter
from minijax.run.arrays.array import Array, ArrayLike


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
    """
    product = symmetric_product_p.bind(a_matrix, c_matrix, alpha=alpha, beta=beta)
    if not symmetrize_output:
        return product
    above = transposed(tril(product, -1))
    return tril(product) + above


def cholesky_update(r_matrix: ArrayLike, w_vector: ArrayLike) -> Array:
    """Computes the upper triangular R' with R'ᵀ R' = rᵀ r + w wᵀ, for real upper triangular r."""
    return cholesky_update_p.bind(r_matrix, w_vector)
