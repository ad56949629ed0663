"""Tridiagonal systems."""

from __future__ import annotations

from typing import Any

from minijax.composed.linalg.matrices import along
from minijax.composed.linalg.routines import (
    GPU,
    INT32,
    Linalg,
    nan_unless_succeeded,
    solve_with_merged_batch,
    status_type,
)
from minijax.higher.scan import scan
from minijax.ir.primitive import is_undefined_primal
from minijax.ir.types import Zero, typeof
from minijax.primitives import moving
from minijax.primitives.elementwise import div, mul, neg, sub
from minijax.primitives.families import emit, scalar_like
from minijax.primitives.gather_dims import ScatterDimensionNumbers
from minijax.primitives.gather_scatter import scatter_add
from minijax.primitives.structural import concatenate, slice as slice_, squeeze
from minijax.primitives.zeros import add_zeros, instantiate
from minijax.run.arrays.array import Array


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
            db = add_zeros(db, neg(_product(*map(instantiate, changes), x)))
        return [x], [self.bind(*diagonals, db, **how)]

    def transpose(self, cts, dl, d, du, b, **how):
        if not is_undefined_primal(b) or any(map(is_undefined_primal, (dl, d, du))):
            raise NotImplementedError("Transpose rule for 'tridiagonal_solve' not implemented for the diagonals")
        if type(cts[0]) is Zero:
            return [None, None, None, Zero(b.aval)]
        n, axis = typeof(d).shape[-1], typeof(d).ndim - 1
        if not n:
            return [None, None, None, cts[0]]
        outside = lambda part: moving.filled_by_value(typeof(part).shape, scalar_like(d, 0))  # noqa: E731
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
    y = mul(moving.reshape_to(d, (*typeof(d).shape, 1)), x)
    if not n:
        return y
    numbers = ScatterDimensionNumbers(tuple(range(axis + 2)), (), (axis,))
    for diagonal, at in ((dl, 1), (du, 0)):
        rows = along(_slice_along(diagonal, axis, at, at + n - 1), -1)
        terms = mul(rows, _slice_along(x, axis, 1 - at, n - at))
        y = scatter_add(
            y,
            moving.filled_by_value((1,), INT32.type(at)),
            terms,
            numbers,
            indices_are_sorted=True,
            unique_indices=True,
        )
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
        pivot = lambda: sub(d, mul(dl, above))  # noqa: E731
        return (div(du, pivot()), div(sub(b, mul(wide(dl), x)), wide(pivot()))), carry

    def backward(x, rows):
        above, eliminated = rows
        return sub(eliminated, mul(wide(above), x)), x

    first = div(row(du), row(d)), div(row(b), wide(row(d)))
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
    """
    return tridiagonal_solve_p.bind(dl, d, du, b, perturb_singular=perturb_singular)
