"""Products of matrices and vectors."""

from __future__ import annotations

from typing import Any

from minijax.base import dtypes
from minijax.base.dtypes import DTypeLike
from minijax.dispatch.jitted import jitted
from minijax.ir.types import typeof
from minijax.primitives.convert import as_type
from minijax.primitives.dot import Precision, PrecisionLike, check_equal_sizes, dot_general
from minijax.primitives.moving import expand_dims, transpose
from minijax.primitives.promote import arrays, check_no_float0
from minijax.primitives.structural import broadcast_shapes, squeeze
from minijax.run.arrays.array import Array, ArrayLike, ShardingLike


def typed_product(a: Any, b: Any, numbers: tuple, precision: Any, preferred: Any, out_sharding: Any = None) -> Any:
    """`dot_general` with a result of the preferred dtype, by default that which the operands promote to."""
    weak = False
    if preferred is None:
        preferred, weak = dtypes.result_type(a, b, return_weak_type_flag=True)
    out = dot_general(a, b, numbers, precision, preferred, out_sharding=out_sharding)
    return as_type(out, preferred, weak)


PRODUCT_STATIC = ("precision", "preferred_element_type", "out_sharding")


@jitted(static=PRODUCT_STATIC, inline=True)
def matmul(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """As `numpy.matmul`, with a precision and an accumulation dtype."""
    a, b = arrays("matmul", a, b)
    check_no_float0("matmul", a, b)
    for i, x in enumerate((a, b)):
        if not typeof(x).ndim:
            raise ValueError(f"matmul input operand {i} must have ndim at least 1, but it has ndim 0")
    check_equal_sizes("matmul", typeof(a), typeof(b), *_contracted(typeof(a).ndim, typeof(b).ndim))
    left, right = typeof(a).shape[:-2], typeof(b).shape[:-2]
    rank = len(broadcast_shapes(left, right))
    a, rows = _without_unit_axes(a, left, right, ["row", "k"], rank)
    b, columns = _without_unit_axes(b, right, left, ["k", "column"], rank)
    numbers, labels = _dimension_numbers(rows, columns)
    out = typed_product(a, b, numbers, precision, preferred_element_type, out_sharding)
    ordered = sorted(p for p in labels if type(p) is int) + [p for p in ("row", "column") if p in labels]
    out = transpose(out, [labels.index(p) for p in ordered]) if labels != ordered else out
    return expand_dims(out, tuple(p for p in range(rank) if p not in labels))


def _contracted(left: int, right: int) -> tuple[tuple[int], tuple[int]]:
    """The axes that a product contracts of operands of these ranks."""
    return (left - 1,), (right - 2 if right > 1 else 0,)


def _dimension_numbers(left: list, right: list) -> tuple[tuple, list]:
    """The dimension numbers of a product of operands with these axis labels, and the axis labels of the result."""
    shared = [p for p in left if p in right and p != "k"]
    contracted = ((left.index("k"),), (right.index("k"),))
    batched = tuple(left.index(p) for p in shared), tuple(right.index(p) for p in shared)
    free = [p for side in (left, right) for p in side if p != "k" and p not in shared]
    return (contracted, batched), shared + free


def matmul_highest(x: Any, y: Any) -> Any:
    """The product of matrices in the highest precision."""
    return matmul(x, y, precision=Precision.HIGHEST)


def _without_unit_axes(x: Any, shape: tuple, other: tuple, matrix: list, rank: int) -> tuple[Any, list]:
    """The operand, and a label for each of its axes: an index among the batch axes, "row", "k" or "column".

    An axis of size 1 that is not sharded is dropped if the other operand, of batch shape `other`, has an axis at
    its position.
    """
    places, entries = [i + rank - len(shape) for i in range(len(shape))], typeof(x).entries
    unit = tuple(i for i, p in enumerate(places) if shape[i] == 1 and entries[i] is None and p >= rank - len(other))
    axes = [p for i, p in enumerate(places) if i not in unit]
    return squeeze(x, unit) if unit else x, axes + (matrix if typeof(x).ndim > 1 else ["k"])


@jitted(static=PRODUCT_STATIC, inline=True)
def dot(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: Any = None,
) -> Array:
    """As `numpy.dot`, with a precision and an accumulation dtype."""
    a, b = arrays("dot", a, b)
    check_no_float0("dot", a, b)
    left, right = typeof(a).ndim, typeof(b).ndim
    contracted = _contracted(left, right) if left and right else ((), ())
    check_equal_sizes("dot", typeof(a), typeof(b), *contracted)
    return typed_product(a, b, (contracted, ((), ())), precision, preferred_element_type, out_sharding)
