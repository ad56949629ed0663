"""Linear algebra that needs no control flow: triangular systems, Cholesky; and what the calls of LAPACK and
of the libraries for GPUs share.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from minijax.base import dtypes
from minijax.ir.primitive import Axis, Primitive, is_linear
from minijax.ir.types import ShapedArray, Zero, typeof
from minijax.ops import moving
from minijax.ops.convert import convert
from minijax.ops.dot import Precision, batch_matmul
from minijax.ops.elementwise import add, bitwise_or, conj, div, eq, ge, neg, select
from minijax.ops.families import INEXACT, Kinds, check_same_dtypes, is_complex, scalar_like as literal
from minijax.ops.shape import broadcasted_iota, squeeze
from minijax.ops.zeros import add_tangents

INT32 = np.dtype(np.int32)
_PREFIX = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
GPU = {"cuda": "cu", "rocm": "hip"}
_OF_COMPLEX = {"or": "un", "sy": "he"}

# ---- masks and products -----------------------------------------------------------------------------


def diagonal_mask(rows: int, columns: int, offset: int, compare: Any, dtype: Any = INT32) -> Any:
    """A matrix of flags: whether row + offset and column, of an integer dtype, compare."""
    shifted = add(broadcasted_iota(dtype, (rows, columns), 0), np.asarray(offset, dtype)[()])
    return compare(shifted, broadcasted_iota(dtype, (rows, columns), 1))


def eye(rows: int, columns: int, dtype: Any, ndim: int = 2) -> Any:
    """A unit matrix, behind batch axes of size 1."""
    unit = convert(diagonal_mask(rows, columns, 0, eq), dtype)
    return moving.expand_dims(unit, tuple(range(ndim - 2)))


def _masked(x: Any, offset: int, upper: bool) -> Any:
    shape = typeof(x).shape
    mask = diagonal_mask(*shape[-2:], offset, ge, dtypes.default_int_dtype())
    if len(shape) > 2:
        mask = moving.broadcast_in_dim(mask, shape, (len(shape) - 2, len(shape) - 1))
    zeros = moving.full(shape, literal(x, 0), typeof(x).weak_type)
    return select(mask, zeros, x) if upper else select(mask, x, zeros)


def tril(x: Any, k: int = 0) -> Any:
    """`x` with zeros above the diagonal `k`."""
    return _masked(x, k, False)


def triu(x: Any, k: int = 0) -> Any:
    """`x` with zeros below the diagonal `k`."""
    return _masked(x, k - 1, True)


def transposed(x: Any) -> Any:
    """The transposes of matrices."""
    n = typeof(x).ndim
    return moving.transpose(x, (*range(n - 2), n - 1, n - 2))


def adjoint(x: Any) -> Any:
    """The conjugate transposes of matrices."""
    x = transposed(x)
    return conj(x) if is_complex(x) else x


def matmul(x: Any, y: Any) -> Any:
    return batch_matmul(x, y, Precision.HIGHEST)


# ---- what the primitives share ----------------------------------------------------------------------


class Linalg(Primitive):
    """An operation on the last axes of its operands (`ranks` of them); the others are batch axes."""

    accepts: Kinds = INEXACT
    ranks: tuple[int, ...] = (2,)
    square = False

    def infer(self, *avals, **params):
        batch, weak = self.check(avals), all(a.weak_type for a in avals)
        found = self.results(*avals, **params)
        return [ShapedArray((*batch, *shape), dtype, weak) for shape, dtype in found]

    def results(self, *avals: ShapedArray, **params: Any) -> list[tuple[tuple, Any]]:
        """The shape, without batch axes, and the dtype of each result."""
        raise NotImplementedError

    def check(self, avals: Sequence[ShapedArray]) -> tuple:
        """The batch axes, if the operands' types are right."""
        for i, (a, rank) in enumerate(zip(avals, self.ranks, strict=True)):
            if not self.accepts.accepts(a.dtype):
                raise TypeError(
                    f"{self.name} does not accept dtype {a.dtype.name} at position {i}. Accepted dtypes at "
                    f"position {i} are subtypes of {self.accepts}."
                )
            if a.ndim < rank:
                raise TypeError(f"Input {i} to {self.name} must have rank at least {rank}, but got shape={a.shape}")
        if len(avals) > 1:
            check_same_dtypes(self.name, *avals)
        batch = [a.shape[: a.ndim - rank] for a, rank in zip(avals, self.ranks, strict=True)]
        if any(len(b) != len(batch[0]) for b in batch):
            raise TypeError(
                f"All inputs to {self.name} must have the same number of batch dimensions, but got "
                f"{[len(b) for b in batch]} batch dimensions for the inputs."
            )
        if any(b != batch[0] for b in batch):
            raise ValueError(f"{self.name}: the batch dimensions of the inputs must be equal, got {batch}.")
        if self.square and avals[0].shape[-1] != avals[0].shape[-2]:
            which = "first input" if len(avals) > 1 else "input"
            raise ValueError(f"The {which} to {self.name} must be a square matrix. Got shape {avals[0].shape}.")
        return batch[0]

    def batch(self, axis, operands, dims, **params):
        results = self.bind_all(batch_in_front(axis, operands, dims), params)
        return results, [0] * len(results)


def batch_in_front(axis: Axis, operands: Sequence, dims: Sequence) -> list:
    return [moving.axis_to_front(x, d, axis.size) for x, d in zip(operands, dims, strict=True)]


Routine = tuple[str, Mapping[str, Any]]


def external(e: Any, name: str, operands: Sequence[str], ins: Sequence[ShapedArray],
             outs: Sequence[ShapedArray], *, cpu: Routine | None = None, gpu: Routine | None = None,
             aliases: Mapping[int, int] | None = None, batch: int | None = None) -> list[str]:  # fmt: skip
    """Calls a routine for the primitive `name`: of LAPACK, without the letter of the dtype, or of a library
    for GPUs, without its maker; with what configures it, where characters are strings.
    """
    if e.platform == "cpu" and cpu:
        routine, config = cpu
        config = {k: np.uint8(ord(v)) if isinstance(v, str) else v for k, v in config.items()}
        return foreign_call(e, _lapack_name(routine, ins[0].dtype), operands, ins, outs, config, aliases, batch)
    if e.platform in GPU and gpu:
        target, config = GPU[e.platform] + gpu[0], gpu[1]
        return foreign_call(e, target, operands, ins, outs, config, aliases, batch)
    text = f"MLIR translation rule for primitive '{name}' not found for platform {e.platform}"
    raise NotImplementedError(text)


def _lapack_name(routine: str, dtype: Any) -> str:
    if dtype.name not in _PREFIX:
        raise NotImplementedError(f"{routine}: Unsupported dtype {dtype.name}.")
    if dtype.kind == "c":
        routine = _OF_COMPLEX.get(routine[:2], routine[:2]) + routine[2:]
    return f"lapack_{_PREFIX[dtype.name]}{routine}_ffi"


def foreign_call(e: Any, target: str, operands: Sequence[str], ins: Sequence[ShapedArray],
                 outs: Sequence[ShapedArray], config: Mapping[str, Any],
                 aliases: Mapping[int, int] | None = None, batch: int | None = None,
                 by_column: bool = True) -> list[str]:  # fmt: skip
    """Calls a target on batches of matrices, which lie column by column or row by row."""
    batch = ins[0].ndim - 2 if batch is None else batch
    extra = {
        "mhlo.frontend_attributes": f'{{num_batch_dims = "{batch}"}}',
        "sdy.sharding_rule": _sharding_rule(ins, outs, batch),
    }
    layouts = [[_layout(a, batch if by_column else a.ndim) for a in side] for side in (ins, outs)]
    return e.custom_call(target, operands, ins, outs, backend_config=config, aliases=aliases,
                         operand_layouts=layouts[0], result_layouts=layouts[1], extra=extra)  # fmt: skip


def _layout(aval: ShapedArray, batch: int) -> list[int]:
    """Matrices column by column, all else row by row."""
    axes = list(range(aval.ndim))[::-1]
    return [axes[1], axes[0], *axes[2:]] if aval.ndim - batch == 2 else axes


def _sharding_rule(ins: Sequence[ShapedArray], outs: Sequence[ShapedArray], batch: int) -> str:
    """Batch axes may be split over devices, others not: each has a factor of its own."""
    sizes = list(ins[0].shape[:batch])

    def factor(i: int) -> str:
        return chr(ord("i") + i) if i < 18 else f"z_{i - 17}"

    def axes(aval: ShapedArray) -> str:
        first = len(sizes)
        sizes.extend(aval.shape[batch:])
        return f"[{', '.join(map(factor, [*range(min(batch, aval.ndim)), *range(first, len(sizes))]))}]"

    sides = [f"({', '.join([axes(a) for a in side])})" for side in (ins, outs)]
    listed = ", ".join([f"{factor(i)}={size}" for i, size in enumerate(sizes)])
    return f"#sdy.op_sharding_rule<{'->'.join(sides)} {{{listed}}}, custom>"


def _succeeded(e: Any, info: str, aval: ShapedArray, direction: str) -> tuple[str, ShapedArray]:
    """Flags that say where LAPACK's `info` is zero (or not below it), and their type."""
    unit = ShapedArray((), aval.dtype)
    zero = e.broadcast_in_dim(e.constant(0, unit), unit, aval, ())
    return e.compare(direction, info, zero, aval), ShapedArray(aval.shape, np.dtype(bool))


def where_found(
    e: Any, info: tuple[str, ShapedArray], found: Sequence[str], outs: Sequence[ShapedArray], direction: str = "EQ"
) -> list[str]:
    """What a routine found where its `info` says that it succeeded, NaN elsewhere."""
    ok = _succeeded(e, *info, direction)
    return [_nan_unless(e, ok, x, out) for x, out in zip(found, outs, strict=True)]


def _nan_unless(e: Any, ok: tuple[str, ShapedArray], x: str, aval: ShapedArray) -> str:
    """`x` where its matrix was factored, NaN elsewhere."""
    flags, flags_aval = ok
    batch = flags_aval.ndim
    unit = ShapedArray((*flags_aval.shape, *(1,) * (aval.ndim - batch)), flags_aval.dtype)
    wide = ShapedArray(aval.shape, flags_aval.dtype)
    flags = e.broadcast_in_dim(flags, flags_aval, unit, tuple(range(batch)))
    nan = e.full(complex(np.nan, np.nan) if aval.dtype.kind == "c" else np.nan, aval)
    if unit != wide:
        flags = e.broadcast_in_dim(flags, unit, wide, tuple(range(aval.ndim)))
    return e.select(flags, x, nan, wide, aval)


# ---- Cholesky ---------------------------------------------------------------------------------------


class Cholesky(Linalg):
    """The lower factor of positive definite matrices; what stands above the diagonal is undefined."""

    name = "cholesky"
    square = True

    def results(self, x):
        return [(x.shape[-2:], x.dtype)]

    def lower(self, e, ins, outs, x):
        if e.platform == "tpu":
            return [e.cholesky(x, ins[0])]
        infos = ShapedArray(ins[0].shape[:-2], INT32)
        found, info = external(e, self.name, [x], ins, [*outs, infos], cpu=("potrf", {"uplo": "L"}),
                               gpu=("solver_potrf_ffi", {"lower": True}), aliases={0: 0})  # fmt: skip
        return where_found(e, (info, infos), [found], outs)

    def jvp(self, primals, tangents):
        factor = tril(self.bind(*primals))
        if type(tangents[0]) is Zero:
            return [factor], [Zero(typeof(factor).to_tangent_aval())]
        right = triangular_solve(factor, tangents[0], left_side=False, transpose_a=True, conjugate_a=True, lower=True)
        inner = triangular_solve(factor, right, left_side=True, transpose_a=False, lower=True)
        n, ndim = typeof(factor).shape[-1], typeof(factor).ndim
        lower = tril(inner)
        halves = add(literal(factor, 1), eye(n, n, typeof(factor).dtype))
        halves = moving.expand_dims(halves, tuple(range(ndim - 2)))
        return [factor], [matmul(factor, div(lower, halves))]


# ---- triangular systems -----------------------------------------------------------------------------


class TriangularSolve(Linalg):
    """The solution x of a x = b, or of x a = b, for triangular a."""

    name = "triangular_solve"
    ranks = (2, 2)
    square = True

    def results(self, a, b, *, left_side, **params):
        if a.shape[-1] != b.shape[-2 if left_side else -1]:
            raise ValueError(f"Incompatible shapes for arguments to triangular_solve: {a.shape} and {b.shape}.")
        return [(b.shape[-2:], b.dtype)]

    def lower(self, e, ins, outs, a, b, *, left_side, lower, transpose_a, conjugate_a, unit_diagonal):
        if conjugate_a and not transpose_a:
            a = e.chlo("conj", [a], [ins[0]], ins[0])
            conjugate_a = False
        if e.platform == "cpu" and ins[0].dtype.name in _PREFIX:
            trans = "N" if not transpose_a else "C" if conjugate_a else "T"
            config = {
                "side": "L" if left_side else "R",
                "uplo": "L" if lower else "U",
                "trans_x": trans,
                "diag": "U" if unit_diagonal else "N",
            }
            return external(e, self.name, [a, b], ins, outs, cpu=("trsm", config), aliases={1: 0})
        kind = "NO_TRANSPOSE" if not transpose_a else "ADJOINT" if conjugate_a else "TRANSPOSE"
        return [
            e.triangular_solve(
                a, b, *ins, left_side=left_side, lower=lower, transpose=kind, unit_diagonal=unit_diagonal
            )
        ]

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
        if not is_linear(b) or is_linear(a):
            raise NotImplementedError("Transpose rule for 'triangular_solve' not implemented for the matrix")
        if type(cts[0]) is Zero:
            return [None, Zero(b.aval)]
        return [None, self.bind(a, cts[0], transpose_a=not transpose_a, **params)]

    def batch(self, axis, operands, dims, *, left_side, **params):
        (a, b), (da, db) = operands, dims
        if da is not None:
            return super().batch(axis, operands, dims, left_side=left_side, **params)
        # One matrix for all: the systems become columns (or rows) of one right-hand side.
        ndim = typeof(b).ndim
        at = ndim - 1 if left_side else ndim - 2
        b = moving.move_axis(b, db, at)
        shape = typeof(b).shape
        joined = (*shape[:-2], shape[-2] * shape[-1]) if left_side else (*shape[:-3], shape[-3] * shape[-2], shape[-1])
        x = self.bind(a, moving.reshape_to(b, joined), left_side=left_side, **params)
        return [moving.reshape_to(x, shape)], [at]


def _push_matrix(da, x, a, b, *, left_side, lower, transpose_a, conjugate_a, unit_diagonal):
    """The tangent of the solution along that of the matrix; multiplies first where that is less work."""
    rows, columns = typeof(b).shape[-2:]
    k = 1 if unit_diagonal else 0
    da = neg(tril(da, -k) if lower else triu(da, k))
    da = transposed(da) if transpose_a else da
    da = conj(da) if conjugate_a else da
    how = dict(
        left_side=left_side, lower=lower, transpose_a=transpose_a, conjugate_a=conjugate_a, unit_diagonal=unit_diagonal
    )
    solve = lambda y: triangular_solve_p.bind(a, y, **how)  # noqa: E731
    if left_side:
        return solve(matmul(da, x)) if rows > columns else matmul(solve(da), x)
    return solve(matmul(x, da)) if rows < columns else matmul(x, solve(da))


cholesky_p, triangular_solve_p = Cholesky(), TriangularSolve()


def symmetrized(x: Any) -> Any:
    """The Hermitian part of matrices."""
    is_bool = typeof(x).dtype == np.bool_
    total = (bitwise_or if is_bool else add)(x, adjoint(x))
    dtype = dtypes.to_inexact_dtype(typeof(x).dtype)
    total = total if dtype == typeof(x).dtype else convert(total, dtype, weak_type=is_bool)
    return div(total, 2.0 if is_bool else literal(total, 2))


def cholesky(x: Any, *, symmetrize_input: bool = True) -> Any:
    """The lower triangular L with L Lᴴ = x, of positive definite matrices; NaN where x is not."""
    return tril(cholesky_p.bind(symmetrized(x) if symmetrize_input else x))


def triangular_solve(
    a: Any,
    b: Any,
    *,
    left_side: bool = False,
    lower: bool = False,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Any:
    """Solves op(a) x = b (or x op(a) = b unless `left_side`) for triangular a; b may lack the axis of right
    sides.
    """
    conjugate_a = conjugate_a and is_complex(a)
    single = typeof(b).ndim == typeof(a).ndim - 1
    at = typeof(b).ndim if left_side else typeof(b).ndim - 1
    if single:
        b = moving.expand_dims(b, (at,))
    x = triangular_solve_p.bind(a, b, left_side=left_side, lower=lower, transpose_a=transpose_a,
                                conjugate_a=conjugate_a, unit_diagonal=unit_diagonal)  # fmt: skip
    return squeeze(x, (at,)) if single else x
