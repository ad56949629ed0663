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


def typed_product(
    name: str, a: Any, b: Any, numbers: tuple, precision: Any, preferred: Any, out_sharding: Any = None
) -> Any:
    """`dot_general` with a result of the dtype that `name` prefers, by default that which the operands promote to."""
    weak = False
    preferred = dtypes.requested_dtype(preferred, name)
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
    """Computes the matrix product of two arrays, for each pair of matrices in their last two axes.

    Args:
      a: array of rank 1 or more. A vector is a row.
      b: array of rank 1 or more. A vector is a column. Axis -2 must be as long as the last axis of `a`.
      precision: `None` for the default of the backend, a string such as "high" or "highest", a `jax.lax.Precision`, or
        a pair of these, one for each operand.
      preferred_element_type: dtype in which products are summed, and dtype of the result. By default the dtype that `a`
        and `b` promote to.
      out_sharding: sharding of the result, where the mesh has explicit axes.

    Returns:
      An array of shape `batch + (rows of a, columns of b)`, where `batch` is the broadcast shape of the leading axes.
      The axis that a vector lacks is absent from the result.

    Raises:
      ValueError: if an argument is a scalar, or if leading axes do not broadcast.
      TypeError: if the contracted axes have different lengths.

    Differences from NumPy:
      It does not take `out`, `dtype`, `axes` and `casting`. `a @ b` is this function with default arguments.

    See also: `jax.numpy.dot`, `jax.numpy.einsum`, `jax.lax.batch_matmul`, `jax.lax.dot_general`.

    Example:
      >>> a = jnp.arange(6).reshape(2, 3)
      >>> jnp.matmul(a, a.T)
      Array([[ 5, 14],
             [14, 50]], dtype=int32)
      >>> jnp.matmul(jnp.ones((5, 2, 3)), jnp.ones((3, 4))).shape
      (5, 2, 4)
    """
    a, b = arrays("matmul", a, b)
    check_no_float0("matmul", a, b)
    for i, x in enumerate((a, b)):
        if not typeof(x).ndim:
            raise ValueError(
                f"matmul input operand {i} must have ndim at least 1, but it has ndim 0. `*` multiplies by a scalar."
            )
    left, right = typeof(a).shape[:-2], typeof(b).shape[:-2]
    rank = len(broadcast_shapes(left, right))
    _check_batch_axes(typeof(a), typeof(b))
    check_equal_sizes("matmul", typeof(a), typeof(b), *_contracted(typeof(a).ndim, typeof(b).ndim))
    a, rows = _without_unit_axes(a, left, right, ["row", "k"], rank)
    b, columns = _without_unit_axes(b, right, left, ["k", "column"], rank)
    numbers, labels = _dimension_numbers(rows, columns)
    out = typed_product("matmul", a, b, numbers, precision, preferred_element_type, out_sharding)
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


def _check_batch_axes(a: Any, b: Any) -> None:
    """Raises ValueError if batch axes of one size are sharded otherwise."""
    left, right = (list(zip(t.shape[:-2], t.entries[:-2], strict=True))[::-1] for t in (a, b))
    if any(m == n != 1 and p != q for (m, p), (n, q) in zip(left, right, strict=False)):
        raise ValueError(
            f"matmul: batch axes must be sharded alike, got {a.str_short()} and {b.str_short()}. Use `jax.reshard`."
        )


def matmul_highest(x: Any, y: Any) -> Any:
    """The product of matrices in the highest precision."""
    return matmul(x, y, precision=Precision.HIGHEST)


def _without_unit_axes(x: Any, shape: tuple, other: tuple, matrix: list, rank: int) -> tuple[Any, list]:
    """The operand, and a label for each of its axes: an index among the batch axes, "row", "k" or "column".

    An axis of size 1 that is not sharded is dropped if the other operand, of batch shape `other`, has an axis at its
    position.
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
    """Computes the dot product of two arrays.

    Args:
      a: array or scalar, of any dtype of numbers or of booleans.
      b: array or scalar. Its axis -2 (its only axis if it is a vector) must be as long as the last axis of `a`.
      precision: `None` for the default of the backend, a string such as "high" or "highest", a `jax.lax.Precision`, or
        a pair of these, one for each operand. Accelerators multiply floats in fewer bits by default.
      preferred_element_type: dtype in which products are summed, and dtype of the result. By default the dtype that `a`
        and `b` promote to.
      out_sharding: sharding of the result, a `PartitionSpec` or `NamedSharding`, where the mesh has explicit axes.

    Returns:
      An array of shape `a.shape[:-1] + b.shape[:-2] + b.shape[-1:]`: a scalar for two vectors, the matrix product for
      two matrices. If `a` or `b` is a scalar, the elementwise product.

    Raises:
      TypeError: if the contracted axes have different lengths, or if an argument is not an array or number.

    Differences from NumPy:
      It does not take `out`. Leading axes are combined, not broadcast: for batches of matrices use `matmul`.

    See also: `jax.numpy.matmul`, `jax.numpy.einsum`, `jax.numpy.vecdot`, `jax.lax.dot_general`.

    Example:
      >>> a = jnp.array([[1, 2], [3, 4]])
      >>> jnp.dot(a, jnp.array([1, 10]))
      Array([21, 43], dtype=int32)
      >>> jnp.dot(jnp.ones(3), jnp.ones(3))
      Array(3., dtype=float32)
      >>> jnp.dot(jnp.ones((2, 3), "bfloat16"), jnp.ones(3, "bfloat16"), preferred_element_type=jnp.float32)
      Array([3., 3.], dtype=float32)
    """
    a, b = arrays("dot", a, b)
    check_no_float0("dot", a, b)
    left, right = typeof(a).ndim, typeof(b).ndim
    contracted = _contracted(left, right) if left and right else ((), ())
    check_equal_sizes("dot", typeof(a), typeof(b), *contracted)
    return typed_product("dot", a, b, (contracted, ((), ())), precision, preferred_element_type, out_sharding)
