"""Sparse arrays in batched compressed row format: two sparse axes after batch axes and before dense ones.

Each operation expands the row pointers to BCOO indices and applies the operation of BCOO.
"""

from __future__ import annotations

import operator as operators
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

import minijax.numpy as jnp
from minijax import lax
from minijax.base import dtypes, tree
from minijax.base.dtypes import DTypeLike
from minijax.base.faces import listing
from minijax.base.naming import known_as
from minijax.experimental.sparse import bcoo_dense, bcoo_dot, bcoo_layout, bcoo_shapes
from minijax.experimental.sparse._base import BatchedFormat, JAXSparse, register_batched
from minijax.experimental.sparse.bcoo_array import BCOO, Buffer, check_shapes
from minijax.experimental.sparse.csr import _csr_to_coo, pointers
from minijax.experimental.sparse.util import Shape, SparseInfo, count_stored, nfold_vmap
from minijax.ir.concrete import concrete_or_error
from minijax.ir.types import ShapedArray, typeof
from minijax.run.arrays.array import Array, ArrayLike

__all__, __dir__ = listing(
    __name__,
    """
    BCSR BCSRProperties bcsr_broadcast_in_dim bcsr_concatenate bcsr_dot_general bcsr_dot_general_p
    bcsr_eliminate_zeros bcsr_extract bcsr_extract_p bcsr_fromdense bcsr_fromdense_p bcsr_sum_duplicates
    bcsr_todense bcsr_todense_p
""",
)


class BCSRProperties(NamedTuple):
    """The number of axes of each kind of a BCSR, and of stored elements of each batch."""

    n_batch: int
    n_dense: int
    nse: int


def validated(data: Buffer, indices: Buffer, indptr: Buffer, shape: Sequence[int]) -> BCSRProperties:
    """Returns the properties of a BCSR with these buffers. Raises ValueError for incompatible shapes."""
    n_batch, n_dense = len(indices.shape) - 1, len(data.shape) - len(indices.shape)
    nse = indices.shape[-1]
    if not all(dtypes.issubdtype(x.dtype, np.integer) for x in (indices, indptr)) or n_batch < 0 or n_dense < 0:
        raise AssertionError(f"BCSR: indices and indptr must be integers of fewer axes than data, not {indices}")
    if len(shape) != n_batch + 2 + n_dense:
        raise ValueError(f"BCSR: shape={tuple(shape)} does not fit n_batch={n_batch} and n_dense={n_dense}")
    check_shapes(shape, n_batch, n_dense, nse, data=data, indices=indices, indptr=indptr)
    if indptr.shape[-1] != shape[n_batch] + 1:
        raise ValueError(f"indptr.shape={indptr.shape} does not fit the {shape[n_batch]} rows of shape={shape}")
    return BCSRProperties(n_batch=n_batch, n_dense=n_dense, nse=nse)


def coordinates(indices: Any, indptr: Any) -> Any:
    """The indices of a BCOO: the row and column of each stored element."""
    rows, columns = nfold_vmap(_csr_to_coo, typeof(indices).ndim - 1)(indices, indptr)
    return jnp.stack([rows, columns], -1)


def compressed(indices: Any, rows: int) -> tuple[Any, Any]:
    """The columns and row pointers of a BCSR, from the sorted indices of a BCOO."""
    columns, row = indices[..., 1], indices[..., 0]
    return columns, nfold_vmap(lambda r: pointers(r, rows), typeof(row).ndim - 1)(row)


# ---- operations --------------------------------------------------------------------------------------


class _OfRows(bcoo_dense.OfFormat):
    """The rules in which BCSR's primitives differ from BCOO's: their index buffers are (indices, indptr)."""

    unbatched = 1
    validated = staticmethod(validated)

    def indices_type(self, indices, indptr):
        return ShapedArray((*indices.shape, 2), indices.dtype)

    def elements(self, mat, *index_buffers):
        return bcsr_extract_p.bind(*index_buffers, mat)

    def dense(self, data, *index_buffers, shape):
        return bcsr_todense_p.bind(data, *index_buffers, spinfo=SparseInfo(shape))


class ToDense(_OfRows, bcoo_dense.ToDense):
    name = "bcsr_todense"

    def compute(self, data, indices, indptr, *, spinfo):
        return [bcoo_dense.bcoo_todense_p.bind(data, coordinates(indices, indptr), spinfo=SparseInfo(spinfo.shape))]


class Extract(_OfRows, bcoo_dense.Extract):
    name = "bcsr_extract"
    linear = (2,)

    def compute(self, indices, indptr, arr):
        return [bcoo_dense.bcoo_extract_p.bind(coordinates(indices, indptr), arr, assume_unique=True)]


class FromDense(_OfRows, bcoo_dense.FromDense):
    name = "bcsr_fromdense"

    def infer(self, mat, *, n_batch, **params):
        data, indices = super().infer(mat, n_batch=n_batch, **params)
        shapes = indices.shape[:-1], (*mat.shape[:n_batch], mat.shape[n_batch] + 1)
        return [data, *(ShapedArray(shape, indices.dtype) for shape in shapes)]

    def compute(self, mat, *, n_batch, **params):
        data, indices = bcoo_dense.bcoo_fromdense_p.bind(mat, n_batch=n_batch, **params)
        return [data, *compressed(indices, mat.shape[n_batch])]


class DotGeneral(_OfRows, bcoo_dot.DotGeneral):
    name = "bcsr_dot_general"
    linear = (0, 3)

    def compute(self, data, indices, indptr, rhs, **params):
        return [bcoo_dot.bcoo_dot_general_p.bind(data, coordinates(indices, indptr), rhs, **params)]

    def transpose(self, cts, data, indices, indptr, rhs, **params):
        indices = coordinates(indices, indptr)
        by_data, _, by_rhs = bcoo_dot.bcoo_dot_general_p.transpose(cts, data, indices, rhs, **params)
        return [by_data, None, None, by_rhs]


bcsr_todense_p, bcsr_extract_p, bcsr_fromdense_p, bcsr_dot_general_p = ToDense(), Extract(), FromDense(), DotGeneral()


# ---- the class ---------------------------------------------------------------------------------------


@tree.register_pytree_node_class
@known_as("jax.experimental.sparse.bcsr.BCSR")
class BCSR(BatchedFormat):
    """Is a sparse array in batched compressed row format.

    `args` are data of shape (*batch, nse, *dense), columns of shape (*batch, nse), and row pointers of shape
    (*batch, rows + 1). Batch axes of size one are broadcast.

    Example:
        >>> from minijax.experimental import sparse
        >>> sparse.BCSR((jnp.array([5, 7]), jnp.array([1, 0]), jnp.array([0, 1, 2])), shape=(2, 2)).todense()
        Array([[0, 5],
               [7, 0]], dtype=int32)
    """

    indptr: Any
    _names = ("data", "indices", "indptr")
    _validated = staticmethod(validated)
    _todense, _batch_axis = bcsr_todense_p, "batched dimension"
    nse = property(lambda self: self.indices.shape[-1])
    n_batch = property(lambda self: self.indices.ndim - 1)
    n_sparse = property(lambda self: 2)
    n_dense = property(lambda self: self.data.ndim - self.indices.ndim)

    @classmethod
    def from_bcoo(cls, arr: BCOO) -> BCSR:
        """Converts a BCOO with two sparse axes, else raises NotImplementedError. Sorts its indices."""
        if arr.n_sparse != 2:
            raise NotImplementedError(f"BCSR.from_bcoo requires n_sparse=2; got n_sparse={arr.n_sparse}")
        arr = arr if arr.indices_sorted else arr.sort_indices()
        buffers = arr.data, *compressed(arr.indices, arr.shape[arr.n_batch])
        return cls(buffers, shape=arr.shape, indices_sorted=arr.indices_sorted, unique_indices=arr.unique_indices)

    @staticmethod
    def _scipy_buffers(mat, index_dtype):
        mat = mat.tocsr()
        return jnp.asarray(mat.data), *(jnp.asarray(x).astype(index_dtype) for x in (mat.indices, mat.indptr))

    @classmethod
    def _empty(
        cls,
        shape: Shape,
        *,
        dtype: Any = None,
        index_dtype: Any = "int32",
        n_dense: int = 0,
        n_batch: int = 0,
        nse: int = 0,
    ) -> BCSR:
        """All zeros, with `nse` padding elements stored for each batch."""
        shape = tuple(shape)
        if n_dense < 0 or n_batch < 0 or nse < 0 or len(shape) - n_dense - n_batch != 2:
            raise ValueError(f"BCSR must have two sparse axes; got shape={shape}, {n_dense=}, {n_batch=}, {nse=}")
        batch, dense = shape[:n_batch], shape[n_batch + 2 :]
        data = jnp.zeros((*batch, nse, *dense), dtype)
        indices = jnp.full((*batch, nse), jnp.array(shape[n_batch + 1], index_dtype))
        return cls((data, indices, jnp.zeros((*batch, shape[n_batch] + 1), index_dtype)), shape=shape)

    @classmethod
    def _eye(cls, N: int, M: int, k: int, *, dtype: Any = None, index_dtype: Any = "int32", **axes: int) -> BCSR:
        """Ones on the k-th diagonal."""
        return bcsr_fromdense(jnp.eye(N, M, k, dtype=dtype), index_dtype=index_dtype, **axes)

    def to_bcoo(self) -> BCOO:
        """Converts to a BCOO."""
        indices = coordinates(self.indices, self.indptr)
        return BCOO((self.data, indices), **self._info._asdict())

    def transpose(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("Transpose is not implemented.")

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCSR:
        """Adds elements of equal indices. `nse`, of the result, is required under transformations."""
        return (bcsr_eliminate_zeros if remove_zeros else bcsr_sum_duplicates)(self, nse=nse)


register_batched(BCSR)


# ---- functions ---------------------------------------------------------------------------------------


def bcsr_todense(mat: BCSR) -> Array:
    """Converts a BCSR to a dense array.

    Example:
        >>> x = jax.experimental.sparse.BCSR.fromdense(jnp.array([[0, 5], [7, 0]]))
        >>> jax.experimental.sparse.bcsr_todense(x)
        Array([[0, 5],
               [7, 0]], dtype=int32)
    """
    return mat.todense()


def bcsr_fromdense(
    mat: ArrayLike, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0, index_dtype: DTypeLike = jnp.int32
) -> BCSR:
    """Converts a dense array to a BCSR, with `n_batch` leading batch axes and `n_dense` trailing dense axes.

    `nse` elements are stored for each batch, by default as many as are nonzero; traced arrays require a number.

    Example:
        >>> jax.experimental.sparse.bcsr_fromdense(jnp.array([[0, 5], [7, 0]])).indptr
        Array([0, 1, 2], dtype=int32)
    """
    x: Any = jnp.asarray(mat)
    if x.ndim - n_batch - n_dense != 2:
        raise ValueError("bcsr_fromdense: must have 2 sparse dimensions.")
    nse = count_stored(x, n_batch, n_dense) if nse is None else nse
    stored = concrete_or_error(operators.index, nse, "bcsr_fromdense: traced code needs a number of stored elements")
    params = dict(nse=stored, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype)
    return BCSR(bcsr_fromdense_p.bind(x, **params), shape=x.shape)


BCSR._fromdense = bcsr_fromdense


def bcsr_extract(indices: ArrayLike, indptr: ArrayLike, mat: ArrayLike) -> Array:
    """Returns the elements of an array at the indices of a BCSR.

    Example:
        >>> x = jnp.array([[1, 2], [3, 4]])
        >>> jax.experimental.sparse.bcsr_extract(jnp.array([1, 0]), jnp.array([0, 1, 2]), x)
        Array([2, 3], dtype=int32)
    """
    return bcsr_extract_p.bind(*map(jnp.asarray, (indices, indptr, mat)))


def bcsr_dot_general(
    lhs: BCSR | Array,
    rhs: Array,
    *,
    dimension_numbers: Any,
    precision: None = None,
    preferred_element_type: None = None,
    out_sharding: Any = None,
) -> Array:
    """Computes `lax.dot_general` of a BCSR and an array; `precision` is ignored.

    Raises NotImplementedError for `out_sharding` and for a sparse right operand.

    Example:
        >>> from minijax.experimental import sparse
        >>> x = sparse.BCSR.fromdense(jnp.array([[0, 5], [7, 0]]))
        >>> sparse.bcsr_dot_general(x, jnp.array([1, 10]), dimension_numbers=(([1], [0]), ([], [])))
        Array([50,  7], dtype=int32)
    """
    if out_sharding is not None or isinstance(rhs, JAXSparse):
        raise NotImplementedError("bcsr_dot_general currently implemented for BCSR lhs and ndarray rhs.")
    if not isinstance(lhs, BCSR):
        return lax.dot_general(lhs, rhs, dimension_numbers, preferred_element_type=preferred_element_type)
    preferred: Any = preferred_element_type
    if preferred is not None:
        preferred = dtypes.check_and_canonicalize_user_dtype(preferred, "dot_general")
    params: Any = dict(dimension_numbers=bcoo_dot.as_tuples(dimension_numbers), preferred_element_type=preferred)
    return bcsr_dot_general_p.bind(*lhs._bufs, jnp.asarray(rhs), lhs_spinfo=lhs._info, **params)


def bcsr_broadcast_in_dim(
    mat: BCSR, *, shape: Shape, broadcast_dimensions: Sequence[int], sharding: Any = None
) -> BCSR:
    """Broadcasts a BCSR, as `lax.broadcast_in_dim`.

    Example:
        >>> from minijax.experimental import sparse
        >>> x = sparse.BCSR.fromdense(jnp.array([[0, 5], [7, 0]]))
        >>> sparse.bcsr_broadcast_in_dim(x, shape=(2, 2, 2), broadcast_dimensions=(1, 2)).todense()[1]
        Array([[0, 5],
               [7, 0]], dtype=int32)
    """
    wide = bcoo_shapes.bcoo_broadcast_in_dim(mat.to_bcoo(), shape=shape, broadcast_dimensions=broadcast_dimensions)
    return BCSR.from_bcoo(wide)


def bcsr_concatenate(operands: Sequence[BCSR], *, dimension: int) -> BCSR:
    """Concatenates BCSRs, as `lax.concatenate`.

    Example:
        >>> from minijax.experimental import sparse
        >>> x = sparse.BCSR.fromdense(jnp.array([[0, 5], [7, 0]]))
        >>> sparse.bcsr_concatenate([x, x], dimension=0).todense()
        Array([[0, 5],
               [7, 0],
               [0, 5],
               [7, 0]], dtype=int32)
    """
    return BCSR.from_bcoo(bcoo_shapes.bcoo_concatenate([mat.to_bcoo() for mat in operands], dimension=dimension))


def bcsr_sum_duplicates(mat: BCSR, nse: int | None = None) -> BCSR:
    """Adds elements of equal indices and stores `nse` of them.

    Example:
        >>> from minijax.experimental import sparse
        >>> x = sparse.BCSR((jnp.array([1, 2, 5]), jnp.array([0, 0, 1]), jnp.array([0, 2, 3])), shape=(2, 2))
        >>> sparse.bcsr_sum_duplicates(x).data
        Array([3, 5], dtype=int32)
    """
    return BCSR.from_bcoo(bcoo_layout.bcoo_sum_duplicates(mat.to_bcoo(), nse=nse))


def bcsr_eliminate_zeros(mat: BCSR, nse: int | None = None) -> BCSR:
    """Adds elements of equal indices and removes zeros."""
    return BCSR.from_bcoo(bcoo_layout.bcoo_eliminate_zeros(mat.to_bcoo(), nse=nse))
