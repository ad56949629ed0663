"""The base class of linear algebra primitives, and calls of LAPACK and of GPU libraries."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from minijax.base.errors import ShardingTypeError
from minijax.hlo.writer import Names
from minijax.ir.primitive import Axis, Primitive
from minijax.ir.rules import no_lowering
from minijax.ir.types import ShapedArray, typeof
from minijax.partition.explicit import merged_entries
from minijax.primitives import moving
from minijax.primitives.families import INEXACT, Kinds, check_count, check_same_dtypes

INT32 = np.dtype(np.int32)
LAPACK = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
GPU = {"cuda": "cu", "rocm": "hip"}
_OF_COMPLEX = {"or": "un", "sy": "he"}


Avals = Sequence[ShapedArray]
Aliases = Mapping[int, int] | None
Routine = tuple[str, Mapping[str, Any]]  # its name and its attributes; characters are strings


class Linalg(Primitive):
    """An operation on the last axes of its operands (`ranks` of them); the others are batch axes."""

    has_bodies = False
    accepts: Kinds = INEXACT
    ranks: tuple[int, ...] = (2,)
    square: bool | str = False  # or the operation's name in jax's error text

    def infer(self, *avals, **params):
        check_count(self.name, len(self.ranks), avals, TypeError if len(avals) < len(self.ranks) else AssertionError)
        batch, weak = self.check(avals), all(a.weak_type for a in avals)
        return [ShapedArray((*batch, *shape), dtype, weak) for shape, dtype in self.results(*avals, **params)]

    def results(self, *avals: ShapedArray, **params: Any) -> list[tuple[tuple, Any]]:
        """The shape, without batch axes, and the dtype of each result."""
        raise NotImplementedError

    def sharding_rule(self, mesh, avals, outs, **params):
        count = avals[0].ndim - self.ranks[0]
        for i, a in enumerate(avals):
            if any(e is not None for e in a.entries[count:]):
                raise ShardingTypeError(
                    f"{self.name}: operand {i}, {a.str_short()}, must be unsharded on non-batch dimensions"
                )
        batch = merged_entries(self.name, [a.entries[:count] for a in avals])
        return [(*batch, *[None] * (out.ndim - count)) for out in outs]

    def check(self, avals: Sequence[ShapedArray]) -> tuple:
        """Checks the operands' types and returns the sizes of their batch axes."""
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
            if isinstance(self.square, str):
                raise ValueError(f"Argument to {self.square} must have shape [..., n, n], got shape {avals[0].shape}")
            which = "first input" if len(avals) > 1 else "input"
            raise ValueError(f"The {which} to {self.name} must be a square matrix. Got shape {avals[0].shape}.")
        return batch[0]

    def routine(
        self,
        e: Any,
        operands: Names,
        ins: Avals,
        outs: Avals,
        aliases: Aliases = None,
        batch: int | None = None,
        **routines: Routine,
    ) -> list[str]:
        """Calls the platform's routine: `cpu` (LAPACK, without dtype letter), `gpu` (without the vendor) or `tpu`."""
        kind = "gpu" if e.platform in GPU else e.platform
        if kind not in routines:
            no_lowering(self, e.platform)
        target, config = routines[kind]
        if kind == "tpu":
            return e.custom_call(target, operands, ins, outs, **config)
        if kind == "cpu":
            target = _lapack_name(target, ins[0].dtype)
            config = {k: np.uint8(ord(v)) if isinstance(v, str) else v for k, v in config.items()}
        else:
            target = GPU[e.platform] + target
        return e.batched_call(target, operands, ins, outs, config, aliases, batch)

    def checked_routine(
        self, e: Any, operands: Names, ins: Avals, outs: Avals, count: int | None = None, **how: Any
    ) -> list[str]:
        """The first `count` results of a routine that also returns a status; NaN where it did not succeed."""
        *results, status = self.routine(e, operands, ins, [*outs, status_type(ins[0])], **how)
        return nan_unless_succeeded(e, status, status_type(ins[0]), results[:count], outs[:count])

    def batch(self, axis, operands, dims, **params):
        results = self.bind_all(batch_in_front(axis, operands, dims), params)
        return results, [0] * len(results)


def solve_with_merged_batch(solve: Callable, b: Any, d: int, at: int, first: int) -> tuple[list, list]:
    """Solves for a batch of right-hand sides of one matrix by one solve with the batch axis merged into another axis.

    The batch axis is moved to `at`. Then the axes `first` and `first + 1` are merged.
    """
    b = moving.move_axis(b, d, at)
    shape = typeof(b).shape
    x = solve(moving.reshape_to(b, (*shape[:first], shape[first] * shape[first + 1], *shape[first + 2 :])))
    return [moving.reshape_to(x, shape)], [at]


def is_partial(subset: tuple[int, int] | None, count: Any) -> bool:
    """True if a range of indices, or None for all, selects only some of `count` values."""
    return subset not in (None, (0, count))


def batch_in_front(axis: Axis, operands: Sequence, dims: Sequence) -> list:
    return [moving.axis_to_front(x, d, axis) for x, d in zip(operands, dims, strict=True)]


def _lapack_name(routine: str, dtype: Any) -> str:
    if dtype.name not in LAPACK:
        raise NotImplementedError(f"{routine}: Unsupported dtype {dtype.name}.")
    if dtype.kind == "c":
        routine = _OF_COMPLEX.get(routine[:2], routine[:2]) + routine[2:]
    return f"lapack_{LAPACK[dtype.name]}{routine}_ffi"


def status_type(aval: ShapedArray, rank: int = 2) -> ShapedArray:
    """The type of a routine's status, one number for each matrix (or vector, of rank 1) in a batch."""
    return ShapedArray(aval.shape[: aval.ndim - rank], INT32)


def nan_unless_succeeded(
    e: Any, status: str, aval: ShapedArray, results: Names, outs: Avals, direction: str = "EQ"
) -> list[str]:
    """A routine's results where its status is zero (or, for "GE", not negative), NaN elsewhere."""
    unit = ShapedArray((), aval.dtype)
    zero = e.broadcast_in_dim(e.constant(0, unit), unit, aval, ())
    ok = e.compare(direction, status, zero, aval), ShapedArray(aval.shape, np.dtype(bool))
    return [_nan_unless(e, ok, x, out) for x, out in zip(results, outs, strict=True)]


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
