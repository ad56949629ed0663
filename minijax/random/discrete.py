"""Samples from the geometric distribution."""

from __future__ import annotations

import numpy as np

import minijax.numpy as jnp
from minijax.base import dtypes
from minijax.base.dtypes import DTypeLike
from minijax.dispatch.jitted import jitted
from minijax.ir.types import typeof
from minijax.primitives import elementwise as ops
from minijax.random.samplers import check_shape, checked_key, drawn_shape, takes_out_sharding, uniform
from minijax.run.array import Array, ArrayLike, Shape, ShardingLike


@takes_out_sharding
def geometric(
    key: ArrayLike,
    p: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """The number of trials up to the first success of probability `p`; `shape` defaults to that of `p`.

    Raises ValueError for a dtype that is not an integer dtype.
    """
    key = checked_key("geometric", key)
    dtype = dtypes.requested_dtype(dtype, "geometric", int)
    if not dtypes.issubdtype(dtype, np.integer):
        raise ValueError(f"dtype argument to `geometric` must be an int dtype, got {dtype}")
    return _geometric(key, p, None if shape is None else drawn_shape(shape), dtype)


@jitted("_geometric", static=("shape", "dtype"))
def _geometric(key, p, shape, dtype):
    if shape is None:
        shape = typeof(p).shape
    else:
        check_shape("geometric", shape, p)
    drawn = uniform(key, shape, typeof(p).dtype)
    drawn = jnp.where(drawn == 0, 1, drawn)
    trials = ops.floor(ops.div(ops.log(drawn), jnp.broadcast_to(ops.log1p(-p), shape))) + 1
    return trials.astype(dtype)
