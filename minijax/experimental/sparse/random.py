"""Random sparse arrays."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax import random
from minijax.api.vmap import vmap
from minijax.base import dtypes
from minijax.base.dtypes import DTypeLike
from minijax.base.faces import listing
from minijax.experimental.sparse.bcoo_array import BCOO
from minijax.experimental.sparse.bcoo_layout import bcoo_sort_indices
from minijax.run.arrays.array import Array

__all__, __dir__ = listing(__name__, "random_bcoo")


def random_bcoo(
    key: Array,
    shape: Sequence[int],
    *,
    dtype: DTypeLike = np.float64,
    indices_dtype: DTypeLike | None = None,
    nse: float | int = 0.2,
    n_batch: int = 0,
    n_dense: int = 0,
    unique_indices: bool = True,
    sorted_indices: bool = False,
    generator: Callable[..., Array] = random.uniform,
    **kwds: Any,
) -> BCOO:
    """Creates a BCOO of random indices with data from `generator(key, shape, dtype, **kwds)`.

    `nse` elements are stored for each batch, a fraction of the size if below 1. Raises ValueError for a number
    larger than the size.

    Example:
        >>> jax.experimental.sparse.random_bcoo(jax.random.key(0), (4, 4), dtype="float32", nse=3).nse
        3
    """
    shape = tuple(map(operator.index, shape))
    n_batch, n_dense = operator.index(n_batch), operator.index(n_dense)
    if n_batch < 0 or n_dense < 0 or n_batch + n_dense > len(shape):
        raise ValueError(f"Invalid {n_batch=}, {n_dense=} for {shape=}")
    n_sparse = len(shape) - n_batch - n_dense
    batch, sparse, dense = shape[:n_batch], shape[n_batch : n_batch + n_sparse], shape[n_batch + n_sparse :]
    size = math.prod(sparse)
    if not 0 <= nse < max(size, 1) + 1 or (nse >= 1 and nse > size):
        raise ValueError(f"got {nse=}, expected to be between 0 and {size}")
    count = math.ceil(nse * size) if 0 <= nse < 1 else operator.index(int(nse))
    index_dtype = dtypes.canonicalize_dtype(jnp.int32 if indices_dtype is None else indices_dtype)
    keys = random.split(key, math.prod(batch) + 1)
    first, others = keys[0], keys[1:]
    data: Any = generator(first, (*batch, count, *dense), dtype, **kwds)

    def rows(key):
        if not sparse:
            return jnp.zeros((count, 0), index_dtype)
        flat = random.choice(key, size, shape=(count,), replace=not unique_indices).astype(index_dtype)
        return jnp.column_stack(jnp.unravel_index(flat, sparse))

    indices = vmap(rows)(others).astype(index_dtype).reshape(*batch, count, n_sparse)
    mat = BCOO((data, indices), shape=shape)
    return bcoo_sort_indices(mat) if sorted_indices else mat
