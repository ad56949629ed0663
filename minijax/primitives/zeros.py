"""Zeros and sums of tangents: the arithmetic that differentiation needs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from minijax.base import dtypes
from minijax.base.mask import Mask
from minijax.ir.primitive import Axis, FirstOrder, Folding, Primitive, fold_as, is_undefined_primal
from minijax.ir.result_types import state_of_terms
from minijax.ir.types import ShapedArray, Zero, scalar, typeof
from minijax.partition.explicit import merged_entries
from minijax.partition.meshes import explicit_meshes
from minijax.partition.shardings import unsharded
from minijax.primitives import moving
from minijax.primitives.sharding import reshard_like
from minijax.primitives.varying import cast_replicated_to
from minijax.run.arrays.array import Array, ArrayLike


def zeros_like_aval(aval: Any) -> Any:
    """An array of zeros of type `aval`, or the zero of a user-defined type."""
    if aval.is_high:
        return aval.vspace_zero()
    if aval.dtype == dtypes.float0:
        if not aval.shape or moving.recording_trace() is None:
            return np.zeros(aval.shape, dtypes.float0)
        aval = aval.update(weak_type=False)
    if dtypes.is_extended(aval.dtype):
        zeros = moving.broadcast_to_shape(aval.dtype._rules.zero(aval.dtype), aval.shape)
    else:
        zero = scalar(np.zeros((), aval.dtype), aval.dtype)
        # A type without a mesh has zeros without a mesh, even if one is set.
        is_bare = not aval.has_mesh and aval.shape and explicit_meshes
        sharding = unsharded(aval.ndim) if is_bare else aval.own_sharding
        zeros = moving.filled(aval.shape, zero, weak_type=aval.weak_type, sharding=sharding)
    return reshard_like(cast_replicated_like(zeros, aval), aval)


def cast_replicated_like(x: Any, aval: ShapedArray) -> Any:
    """Casts a replicated `x` to be varying, unreduced or reduced over manual mesh axes as the type `aval` is."""
    return cast_replicated_to(x, aval.manual_axis_type)


def nonzero_mask(tangents: Iterable) -> Mask:
    """The mask of the tangents, or cotangents, that are not symbolic zeros."""
    return Mask([type(t) is not Zero for t in tangents])


def instantiate(tangent: Any) -> Any:
    """Replaces a symbolic `Zero` by an array of zeros."""
    return zeros_like_aval(tangent.aval) if type(tangent) is Zero else tangent


Zero.instantiate = instantiate  # pyright: ignore[reportAttributeAccessIssue]


class ZeroJvp(Primitive):
    """An operation whose derivative is zero."""

    def jvp(self, primals, tangents, **params):
        results = self.bind_all(primals, params)
        return results, [Zero.from_primal_value(x) for x in results]


class AddAny(FirstOrder):
    """The sum of two tangents or cotangents of one type."""

    name = "add_any"

    def infer(self, x, y):
        return [x]

    def sharding_rule(self, mesh, avals, outs, **params):
        return [merged_entries(self.name, [a.entries for a in avals]) if avals[0].has_mesh else avals[0].entries]

    reduction_state: Any = state_of_terms

    def lower(self, e, ins, outs, x, y):
        return [e.binary("or" if outs[0].dtype == np.bool_ else "add", x, y, outs[0])]

    def jvp(self, primals, tangents):
        out = self.bind_all(primals, {})
        if all(type(t) is Zero for t in tangents):
            return out, [tangents[0]]
        return out, self.bind_all([instantiate(t) for t in tangents], {})

    def transpose(self, cts, x, y):
        return [cts[0] if is_undefined_primal(x) else None, cts[0] if is_undefined_primal(y) else None]

    def batch(self, axis, operands, dims):
        x, y, d = aligned(axis, *operands, *dims)
        return self.bind_all([x, y], {}), [d]


def aligned(axis: Axis, x: Any, y: Any, dx: Any, dy: Any) -> tuple[Any, Any, int | None]:
    """Moves the batch axes of two operands to one position, that of `y` if it has one; returns (x, y, position)."""
    if dx == dy:
        return x, y, dx
    if dx is None:
        return moving.broadcast_axis(x, axis, dy), y, dy
    if dy is None:
        return x, moving.broadcast_axis(y, axis, dx), dx
    return moving.move_axis(x, dx, dy), y, dy


add_any_p = AddAny()
fold_as(Folding.PLAIN, add_any_p)


def add_any(x: ArrayLike, y: ArrayLike) -> Array:
    """The sum of two tangents or cotangents; extended dtypes and user-defined types define their own."""
    aval: Any = typeof(x)
    if aval.is_high:
        return aval.vspace_add(x, y)
    dtype = aval.dtype
    return dtype._rules.add(dtype, x, y) if dtypes.is_extended(dtype) else add_any_p.bind(x, y)


ShapedArray.vspace_zero = zeros_like_aval  # pyright: ignore[reportAttributeAccessIssue]
ShapedArray.vspace_add = lambda self, x, y: add_any(x, y)  # pyright: ignore[reportAttributeAccessIssue]


def add_zeros(x: Any, y: Any) -> Any:
    """The sum of two tangents; either may be a symbolic `Zero`."""
    if type(x) is Zero:
        return y
    return x if type(y) is Zero else add_any(x, y)


def add_tangents(terms: Sequence, like: Any) -> Any:
    """The sum of the tangents of one value; a symbolic `Zero` if `terms` is empty."""
    if not terms:
        return Zero.from_primal_value(like)
    total = terms[0]
    for t in terms[1:]:
        total = add_zeros(total, t)
    return total
