"""Products of arrays of narrow floats with a scale for each block (microscaling)."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from minijax.base import cache, dtypes
from minijax.base.dtypes import DTypeLike
from minijax.ir.jaxpr import ClosedJaxpr, DebugInfo
from minijax.ir.primitive import Primitive
from minijax.ir.trace import trace_to_jaxpr
from minijax.ir.types import ShapedArray, typeof
from minijax.primitives import moving
from minijax.primitives.convert import convert
from minijax.primitives.dot import DotDimensionNumbers, dot_general_p
from minijax.primitives.elementwise import mul
from minijax.run.arrays.array import Array

_BF16 = np.dtype(ml_dtypes.bfloat16)
_SCALE = np.dtype(ml_dtypes.float8_e8m0fnu)


class ScaledDot(Primitive):
    """`dot_general` of scaled operands; one scale applies to each block along contracted axes."""

    has_bodies = False
    name = "scaled_dot"

    def infer(self, lhs, rhs, lhs_scale, rhs_scale, *, dimension_numbers, preferred_element_type):
        ranks = [a.ndim for a in (lhs, rhs, lhs_scale, rhs_scale)]
        if len(set(ranks)) > 1:
            raise TypeError(
                "scaled_dot: All input tensors must have the same rank. Got lhs, rhs, lhs_scale and "
                f"rhs_scale of ranks {ranks}."
            )
        if ranks[0] < 2:
            raise TypeError("scaled_dot does not support 0-rank and 1-rank operands.")
        contract, batch = dimension_numbers
        for dims in zip(*batch, strict=True):
            if lhs.shape[dims[0]] != rhs.shape[dims[1]]:
                raise TypeError(
                    f"scaled_dot: All input tensors must have the same batch dimension size for batch dims {dims}."
                )
        for i, j in zip(*contract, strict=True):
            if lhs.shape[i] != rhs.shape[j]:
                raise TypeError(
                    f"scaled_dot: LHS contracting dim {i} of size {lhs.shape[i]} does not match RHS contracting dim "
                    f"{j} of size {rhs.shape[j]}."
                )
        _check_scale("LHS", lhs.shape, lhs_scale.shape, contract[0])
        _check_scale("RHS", rhs.shape, rhs_scale.shape, contract[1])
        how = _product(dimension_numbers, preferred_element_type)
        return dot_general_p.infer(*[ShapedArray(a.shape, _BF16) for a in (lhs, rhs)], **how)

    def lower(self, e, ins, outs, *operands, dimension_numbers, preferred_element_type):
        closed = _decomposed(tuple(ins), dimension_numbers, preferred_element_type)
        numbers = [[list(side) for side in pair] for pair in dimension_numbers]
        attributes = dict(dimension_numbers=numbers, preferred_element_type=np.dtype(preferred_element_type))
        return e.composite_jaxpr(closed, "xla.scaled_dot", operands, attributes)

    def batch(self, axis, operands, dims, *, dimension_numbers, **params):
        fronted = [moving.axis_to_front(x, d, axis) for x, d in zip(operands, dims, strict=True)]
        contract, batch = (tuple(tuple(i + 1 for i in side) for side in pair) for pair in dimension_numbers)
        numbers = (contract, tuple((0, *side) for side in batch))
        return [self.bind(*fronted, dimension_numbers=numbers, **params)], [0]


scaled_dot_p = ScaledDot()


def _check_scale(side: str, shape: tuple, scale: tuple, contracted: Any) -> None:
    for i, (size, parts) in enumerate(zip(shape, scale, strict=True)):
        if i not in contracted:
            if size != parts:
                raise TypeError(f"scaled_dot: {side} dim {i} of size {size} does not match scale dim size {parts}.")
        elif not parts or size % parts:
            raise TypeError(
                f"scaled_dot: {side} contracting dim {i} of size {size} must be divisible by its scale's "
                f"dim size {parts}."
            )
        elif size // parts < 2:
            raise TypeError(
                f"scaled_dot: The ratio of {side} contracting dim {i} to its scale's dim size ({parts}) must "
                "be at least 2."
            )


def _product(dimension_numbers: DotDimensionNumbers, preferred: Any) -> dict:
    return dict(
        dimension_numbers=dimension_numbers, preferred_element_type=preferred, precision=None, out_sharding=None
    )


@cache.cache
def _decomposed(ins: tuple[ShapedArray, ...], dimension_numbers: Any, preferred: Any) -> ClosedJaxpr:
    def scaled(x, scale, axes):
        for axis in axes:
            scale = _repeated(scale, axis, typeof(x).shape[axis])
        return mul(*(y if typeof(y).dtype == _BF16 else convert(y, _BF16) for y in (x, scale)))

    def run(lhs, rhs, lhs_scale, rhs_scale):
        (left, right), _ = dimension_numbers
        operands = scaled(lhs, lhs_scale, left), scaled(rhs, rhs_scale, right)
        return dot_general_p.bind_all(operands, _product(dimension_numbers, preferred))

    jaxpr, _ = trace_to_jaxpr(run, list(ins), DebugInfo("jit", "scaled_dot"))
    return ClosedJaxpr(jaxpr)


def _repeated(x: Any, axis: int, size: int) -> Any:
    """Repeats each element along `axis` to make the axis of size `size`."""
    shape = typeof(x).shape
    x = moving.expand_dims(x, (axis + 1,))
    apart = (*shape[: axis + 1], size // shape[axis], *shape[axis + 1 :])
    x = moving.broadcast_in_dim(x, apart, tuple(range(len(apart))))
    return moving.reshape(x, (*shape[:axis], size, *shape[axis + 1 :]))


def scaled_dot(
    lhs: Array,
    rhs: Array,
    *,
    lhs_scale: Array | None = None,
    rhs_scale: Array | None = None,
    dimension_numbers: DotDimensionNumbers | None = None,
    preferred_element_type: DTypeLike | None = None,
) -> Any:
    """Multiplies `lhs * lhs_scale` by `rhs * rhs_scale`; an operand without a scale is not scaled.

    Along contracted axes a scale has fewer elements; each applies to a block of the operand. By default the last
    axis is contracted with the last but one, the others are batch axes, and the result is bfloat16.
    Raises TypeError for scales that do not fit. Not differentiable.

    Example:
        >>> x, scale = jnp.ones((1, 4)), jnp.array([[2.0, 10.0]])  # a scale for each half of the row
        >>> jax.lax.scaled_dot(x, jnp.ones((4, 1)), lhs_scale=scale, preferred_element_type=jnp.float32)
        Array([[24.]], dtype=float32)
    """
    left, right = typeof(lhs), typeof(rhs)
    if dimension_numbers is None:
        batch = tuple(range(left.ndim - 2))
        dimension_numbers = (((left.ndim - 1,), (max(right.ndim - 2, 0),)), (batch, batch))
    (contract, _), preferred = dimension_numbers, preferred_element_type
    preferred = _BF16 if preferred is None else dtypes.check_and_canonicalize_user_dtype(preferred, "scaled_dot")
    scales = [
        _ones(aval, axes) if scale is None else scale
        for aval, scale, axes in zip((left, right), (lhs_scale, rhs_scale), contract, strict=True)
    ]
    return scaled_dot_p.bind(lhs, rhs, *scales, dimension_numbers=dimension_numbers, preferred_element_type=preferred)


def _ones(aval: ShapedArray, contracted: Any) -> Any:
    shape = tuple(1 if i in contracted else n for i, n in enumerate(aval.shape))
    return convert(moving.filled(shape, 1, _BF16), _SCALE)
