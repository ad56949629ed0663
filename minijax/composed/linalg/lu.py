"""The LU decomposition, and linear solves by it."""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax.base import cache
from minijax.base.symbolic.dimension import min_dim
from minijax.composed.linalg.matrices import dot, map_over_batch, take_rows, tril, triu
from minijax.composed.linalg.routines import GPU, INT32, Linalg, nan_unless_succeeded, status_type
from minijax.composed.linalg.triangular import triangular_solve
from minijax.dispatch.jitted import jitted
from minijax.higher.custom_solve import linear_solve
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
from minijax.primitives.elementwise import add
from minijax.primitives.families import Kinds, scalar_like
from minijax.primitives.gather_dims import ScatterDimensionNumbers
from minijax.primitives.gather_scatter import scatter
from minijax.primitives.sort import sort_key_val
from minijax.primitives.structural import pad, squeeze
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
    """
    return lu_p.bind(x)


def lu_pivots_to_permutation(pivots: ArrayLike, permutation_size: int) -> Array:
    """Converts pivots to a permutation of `permutation_size` rows: for each i, row i is exchanged with `pivots[i]`."""
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
