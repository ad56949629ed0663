"""Removes trends from signals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import minijax.numpy as jnp
from minijax.numpy import linalg
from minijax.primitives.dot import Precision
from minijax.primitives.promote import promote_dtypes_inexact
from minijax.run.arrays.array import Array, ArrayLike


def detrend(
    data: ArrayLike,
    axis: int = -1,
    type: str = "linear",
    bp: int | Sequence[int] | np.ndarray = 0,
    overwrite_data: None = None,
) -> Array:
    """Subtracts the mean, or a least-squares line, from samples along an axis.

    `type` is "constant" or "linear". `bp` are breakpoints between lines. Raises NotImplementedError for
    `overwrite_data`, ValueError for other types and breakpoints outside of the data.

    Example:
      >>> jax.scipy.signal.detrend(jnp.array([1.0, 2.0, 3.0]), type="constant")
      Array([-1.,  0.,  1.], dtype=float32)
    """
    if overwrite_data is not None:
        raise NotImplementedError("detrend: overwrite_data argument not implemented.")
    if type not in ("constant", "linear"):
        raise ValueError(f"detrend: Trend type must be 'linear' or 'constant', got {type!r}.")
    (data,) = promote_dtypes_inexact(jnp.asarray(data))
    if type == "constant":
        return data - data.mean(axis, keepdims=True)
    size = data.shape[axis]
    ends = np.unique(np.append(np.array(bp), [0, size]))
    if ends[0] < 0 or ends[-1] > size:
        raise ValueError(
            "detrend: Breakpoints must be non-negative and less than length of data along given axis, "
            f"got {bp} for {size}."
        )
    moved = jnp.moveaxis(data, axis, 0)
    result = moved.reshape(size, -1)
    for start, end in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        count = end - start
        basis = jnp.vstack([jnp.ones(count, data.dtype), jnp.arange(1, count + 1, dtype=data.dtype) / count]).T
        coefficients = linalg.lstsq(basis, result[start:end])[0]
        result = result.at[start:end].add(-jnp.matmul(basis, coefficients, precision=Precision.HIGHEST))
    return jnp.moveaxis(result.reshape(moved.shape), 0, axis)
