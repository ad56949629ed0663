"""Samples from the geometric distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax.base import dtypes
from minijax.base.dtypes import DTypeLike
from minijax.ir.types import typeof
from minijax.primitives import elementwise as ops
from minijax.primitives.promote import promote_dtypes_inexact
from minijax.random.arguments import integer_dtype, sampler
from minijax.random.samplers import uniform
from minijax.run.arrays.array import Array, ArrayLike, Shape


def _checked_dtype(name: str, dtype: Any) -> np.dtype:
    dtype = integer_dtype(name, dtype)
    if not dtypes.issubdtype(dtype, np.integer):
        raise ValueError(f"dtype argument to `{name}` must be an int dtype, got {dtype}")
    return dtype


@sampler(_checked_dtype)
def geometric(key: ArrayLike, p: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None) -> Array:
    """Draws the number of trials up to the first success of probability `p`; `shape` defaults to that of `p`.

    Raises ValueError for a dtype that is not an integer dtype.
    """
    (p,) = promote_dtypes_inexact(p)
    drawn = uniform(key, shape, typeof(p).dtype)
    drawn = jnp.where(drawn == 0, 1, drawn)
    trials = ops.floor(ops.div(ops.log(drawn), jnp.broadcast_to(ops.log1p(-p), shape))) + 1
    return trials.astype(dtype)
