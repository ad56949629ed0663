"""The class of sparse arrays in batched coordinate format."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

import minijax.numpy as jnp
from minijax.base import dtypes, tree
from minijax.base.naming import known_as
from minijax.experimental.sparse._base import BatchedFormat, register_batched
from minijax.experimental.sparse.util import Shape
from minijax.higher.cond import cond

# The dtypes that cuSPARSE products support.
CUSPARSE_DATA_DTYPES = [np.float32, np.float64, np.complex64, np.complex128]
CUSPARSE_INDEX_DTYPES = [np.int32]


class Buffer(Protocol):
    """An array, tracer or abstract value: anything with a shape and a dtype."""

    @property
    def shape(self) -> Shape: ...

    @property
    def dtype(self) -> Any: ...


class BCOOProperties(NamedTuple):
    """The number of axes of each kind of a BCOO, and of stored elements of each batch."""

    n_batch: int
    n_sparse: int
    n_dense: int
    nse: int


def validated(data: Buffer, indices: Buffer, shape: Sequence[int]) -> BCOOProperties:
    """Returns the properties of a BCOO with these buffers. Raises ValueError for incompatible shapes."""
    if not dtypes.issubdtype(indices.dtype, np.integer):
        raise AssertionError(f"BCOO: indices must be integers, not of dtype {np.dtype(indices.dtype).name}")
    if len(indices.shape) < 2:
        raise ValueError(f"BCOO: indices of shape {tuple(indices.shape)}, (*batch, nse, n_sparse) is needed")
    *_, nse, n_sparse = indices.shape
    n_batch = len(indices.shape) - 2
    n_dense = len(shape) - n_batch - n_sparse
    if n_dense < 0:
        raise AssertionError(f"BCOO: indices.shape={indices.shape} has more axes than shape={shape} has")

    check_shapes(shape, n_batch, n_dense, nse, data=data, indices=indices)
    return BCOOProperties(n_batch=n_batch, n_sparse=n_sparse, n_dense=n_dense, nse=nse)


def check_shapes(shape: Sequence[int], n_batch: int, n_dense: int, nse: int, **buffers: Buffer) -> None:
    """Raises ValueError unless buffers have the batch axes of `shape`, or of size one, and data its dense axes."""
    for name, buffer in buffers.items():
        batch = tuple(buffer.shape[:n_batch])
        if len(batch) != n_batch or not all(b in (1, n) for b, n in zip(batch, shape, strict=False)):
            raise ValueError(f"{name} batch dimensions not compatible for {name}.shape={buffer.shape}, shape={shape}")
    data = buffers["data"]
    if tuple(data.shape[n_batch:]) != (nse, *shape[len(shape) - n_dense :]):
        raise ValueError(f"Invalid data.shape={data.shape} for nse={nse}, n_batch={n_batch}, n_dense={n_dense}")


@tree.register_pytree_node_class
@known_as("jax.experimental.sparse.bcoo.BCOO")
class BCOO(BatchedFormat):
    """Is a sparse array in batched coordinate format.

    `args` are data of shape (*batch, nse, *dense) and indices of shape (*batch, nse, n_sparse). Batch axes of
    size one are broadcast. Rows of indices that are out of bounds are padding. `indices_sorted` and
    `unique_indices` are promises of the caller that are not checked. `BCOO.fromdense` converts an array, `todense`
    back.

    Example:
        >>> from minijax.experimental import sparse
        >>> x = sparse.BCOO.fromdense(jnp.array([[0.0, 2.0], [3.0, 0.0]]))
        >>> x.nse, x.data
        (2, Array([2., 3.], dtype=float32))
        >>> x @ jnp.ones(2)
        Array([2., 3.], dtype=float32)
    """

    _names = ("data", "indices")
    _validated = staticmethod(validated)
    nse = property(lambda self: self.indices.shape[-2])
    n_batch = property(lambda self: self.indices.ndim - 2)
    n_sparse = property(lambda self: self.indices.shape[-1])
    n_dense = property(lambda self: self.data.ndim - 1 - self.n_batch)
    # `sparse.methods` sets these, `_fromdense`, `_todense` and the operators.
    transpose: Callable[..., "BCOO"]
    sort_indices: Callable[[], "BCOO"]
    sum_duplicates: Callable[..., "BCOO"]
    update_layout: Callable[..., "BCOO"]

    @staticmethod
    def _scipy_buffers(mat, index_dtype):
        mat = mat.tocoo()
        return mat.data, jnp.column_stack((mat.row, mat.col)).astype(index_dtype)

    @classmethod
    def _empty(cls, shape, *, dtype=None, index_dtype="int32", n_dense=0, n_batch=0, nse=0):
        """All zeros, with `nse` padding elements stored for each batch."""
        shape = tuple(shape)
        n_sparse = len(shape) - n_dense - n_batch
        if n_sparse < 0 or n_dense < 0 or n_batch < 0 or nse < 0:
            raise ValueError(
                f"Invalid inputs: shape={shape}, n_dense={n_dense}, n_batch={n_batch}, nse={nse} for BCOO.empty"
            )
        batch, sparse, dense = shape[:n_batch], shape[n_batch : n_batch + n_sparse], shape[n_batch + n_sparse :]
        data = jnp.zeros((*batch, nse, *dense), dtype)
        indices = jnp.full((*batch, nse, n_sparse), jnp.array(sparse, index_dtype))
        return cls((data, indices), shape=shape, indices_sorted=True, unique_indices=True)

    @classmethod
    def _eye(cls, N, M, k, *, dtype=None, index_dtype="int32", n_batch=0, n_dense=0):
        n_sparse = 2 - n_batch - n_dense
        if n_sparse < 0 or n_dense < 0 or n_batch < 0:
            raise ValueError(f"Invalid inputs: shape={(N, M)}, n_dense={n_dense}, n_batch={n_batch}")
        if n_sparse == 0 or n_dense:
            return cls.fromdense(
                jnp.eye(N, M, k, dtype=dtype), n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype
            )
        count = min(N, M - k) if k > 0 else min(M, N + k)
        if count <= 0:  # the diagonal is outside the matrix
            return cls._empty((N, M), dtype=dtype, index_dtype=index_dtype, n_batch=n_batch, nse=int(n_batch > 0))
        if n_batch:
            data, indices = cls._eye_of_rows(N, M, k, dtype, index_dtype)
        else:
            data, along = jnp.ones(count, dtype), jnp.arange(count, dtype=index_dtype)
            number = along.dtype.type
            row = along - cond(k >= 0, lambda: number(0), lambda: number(k))
            column = along + cond(k <= 0, lambda: number(0), lambda: number(k))
            indices = jnp.column_stack([row, column])
        return cls((data, indices), shape=(N, M), indices_sorted=True, unique_indices=True)

    @staticmethod
    def _eye_of_rows(N, M, k, dtype, index_dtype):
        """Buffers with the rows as a batch axis; rows that the diagonal does not cross hold padding."""
        data = jnp.ones(N, dtype)
        column = jnp.arange(N, dtype=index_dtype)
        if k:
            column = column + k
        if k < 0:
            data, column = data.at[:-k].set(0), column.at[:-k].set(M)
        elif M - k < N:
            data, column = data.at[M - k :].set(0), column.at[M - k :].set(M)
        return data[:, None], column[:, None, None]


register_batched(BCOO)


def by_kind(mat: BCOO, axes: Iterable[int]) -> tuple[list[int], list[int], list[int]]:
    """Splits axes of a BCOO into batch axes, columns of its indices, and dense axes as axes of its data."""
    axes, n, m = list(axes), mat.n_batch, mat.n_batch + mat.n_sparse
    sparse, dense = [axis - n for axis in axes if n <= axis < m], [axis - m + n + 1 for axis in axes if axis >= m]
    return [axis for axis in axes if axis < n], sparse, dense
