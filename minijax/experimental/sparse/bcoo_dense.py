"""Conversion of BCOO from and to dense arrays."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax import lax
from minijax.base import dtypes
from minijax.base.dtypes import DTypeLike
from minijax.experimental.sparse import matrices
from minijax.experimental.sparse.bcoo_array import BCOO, validated
from minijax.experimental.sparse.util import Shape, SparseInfo, count_stored, nfold_vmap, stored_mask
from minijax.ir.concrete import concrete_or_error
from minijax.ir.primitive import is_undefined_primal
from minijax.ir.types import ShapedArray, Zero, typeof
from minijax.primitives import moving
from minijax.run.arrays.array import Array, ArrayLike

_TRACED_NSE = """
The error arose for the nse argument of bcoo_fromdense: traced code must specify the number of stored elements,
since the number of nonzero elements of a tracer is unknown."""

# `index_buffers` are (indices,) for BCOO, and (indices, indptr) for BCSR, whose primitives are subclasses of these.


class OfFormat(matrices.Composed):
    """The operations on buffers that the primitives of a format use."""

    validated: Any = staticmethod(validated)

    def indices_type(self, *index_buffers: Any) -> Any:
        """The abstract value of (*batch, nse, n_sparse) indices."""
        return index_buffers[0]

    def elements(self, mat: Any, *index_buffers: Any) -> Any:
        """The elements of a dense array at the positions in the index buffers."""
        return bcoo_extract_p.bind(*index_buffers, mat, assume_unique=True)

    def dense(self, data: Any, *index_buffers: Any, shape: Shape) -> Any:
        """Converts buffers to a dense array of this shape."""
        return bcoo_todense_p.bind(data, *index_buffers, spinfo=SparseInfo(shape))


# ---- to dense ---------------------------------------------------------------------------------------


class ToDense(OfFormat, matrices.Batched):
    """Converts (data, *index_buffers) to a dense array."""

    name = "bcoo_todense"

    def infer(self, data, *index_buffers, spinfo):
        self.validated(data, *index_buffers, spinfo.shape)
        return [ShapedArray(spinfo.shape, data.dtype)]

    def compute(self, data, indices, *, spinfo):
        props = validated(data, indices, spinfo.shape)
        batch, sizes = spinfo.shape[: props.n_batch], spinfo.shape[props.n_batch :]

        def scatter(d, i):
            if not props.n_sparse:
                return d.sum(0, dtype=d.dtype)
            update = jnp.zeros(sizes, d.dtype).at[tuple(i[:, k] for k in range(props.n_sparse))]
            return update.max(d) if d.dtype == bool else update.add(d)

        data = jnp.broadcast_to(data, (*batch, *data.shape[props.n_batch :]))
        return [nfold_vmap(scatter, props.n_batch)(data, indices)]

    def transpose(self, cts, data, *index_buffers, spinfo):
        (ct,) = cts
        if not is_undefined_primal(data):
            raise ValueError(f"{self.name}: cannot be transposed with respect to indices")
        of_data: Any = Zero(data.aval)
        if type(ct) is not Zero:
            of_data = sum_of_batches(self.elements(ct, *index_buffers), data.aval.shape)
        return [of_data, *[None] * len(index_buffers)]

    def batch(self, axis, operands, dims, *, spinfo):
        buffers, spinfo = self.batched(axis, operands, dims, spinfo)
        return [self.bind(*buffers, spinfo=spinfo)], [0]


def sum_of_batches(x: Any, shape: Shape) -> Any:
    """Sums `x` over the axes that `shape` broadcasts, for the cotangent of a broadcast operand."""
    axes = tuple(k for k, (n, want) in enumerate(zip(typeof(x).shape, shape, strict=True)) if n != want)
    return moving.reshape_to(moving.sum_axes(x, axes), shape) if axes else x


bcoo_todense_p = ToDense()


def bcoo_todense(mat: BCOO) -> Array:
    """Converts a BCOO to a dense array.

    Example:
        >>> jax.experimental.sparse.bcoo_todense(jax.experimental.sparse.eye(2))
        Array([[1., 0.],
               [0., 1.]], dtype=float32)
    """
    return mat.todense()


# ---- from dense -------------------------------------------------------------------------------------


class FromDense(OfFormat, matrices.FromDense):
    name = "bcoo_fromdense"

    def infer(self, mat, *, nse, n_batch, n_dense, index_dtype):
        n_sparse = mat.ndim - n_batch - n_dense
        batch, dense = mat.shape[:n_batch], mat.shape[n_batch + n_sparse :]
        return [
            ShapedArray((*batch, nse, *dense), mat.dtype),
            ShapedArray((*batch, nse, n_sparse), dtypes.canonicalize_dtype(index_dtype)),
        ]

    def compute(self, mat, *, nse, n_batch, n_dense, index_dtype):
        n_sparse = mat.ndim - n_batch - n_dense
        mask = stored_mask(mat, n_dense)

        def positions(m):
            if not n_sparse:
                return jnp.zeros((nse, 0), index_dtype)
            found = jnp.stack(jnp.nonzero(m, size=nse, fill_value=m.shape), -1)
            return found.astype(dtypes.canonicalize_dtype(index_dtype))

        indices = nfold_vmap(positions, n_batch, broadcasted=False)(mask)
        data = bcoo_extract_p.bind(indices, mat, assume_unique=True)
        counts = mask.sum(tuple(range(n_batch, mask.ndim)))
        stored = lax.expand_dims(jnp.arange(nse), range(n_batch)) < counts[..., None]
        stored = stored.reshape(*stored.shape, *[1] * n_dense)
        return [jnp.where(stored, data, jnp.zeros((), data.dtype)), indices]

    def batch(self, axis, operands, dims, *, n_batch, **params):
        (mat,), (d,) = operands, dims
        if d > n_batch:
            raise ValueError(f"{self.name}: Expected 0 < bdim <= n_batch; got bdim={d}, n_batch={n_batch}")
        results = self.bind(mat, n_batch=n_batch + 1, **params)
        return results, [d] * len(results)


bcoo_fromdense_p = FromDense()


def bcoo_fromdense(
    mat: Array, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0, index_dtype: DTypeLike = jnp.int32
) -> BCOO:
    """Converts a dense array to a BCOO, with `n_batch` leading batch axes and `n_dense` trailing dense axes.

    `nse` elements are stored for each batch, by default as many as are nonzero; traced arrays require a number.

    Example:
        >>> jax.experimental.sparse.bcoo_fromdense(jnp.array([[0, 5], [7, 0]])).data
        Array([5, 7], dtype=int32)
    """
    x: Any = jnp.asarray(mat)
    if nse is None:
        nse = count_stored(x, n_batch, n_dense)
    stored = concrete_or_error(operator.index, nse, _TRACED_NSE)
    if n_batch < 0 or n_dense < 0 or n_batch + n_dense > x.ndim:
        raise ValueError(f"bcoo_fromdense: invalid {n_batch=}, {n_dense=} for an array of shape {x.shape}")
    if not dtypes.issubdtype(index_dtype, np.integer):
        raise AssertionError(f"bcoo_fromdense: index_dtype must be an integer one, got {index_dtype}")
    params = dict(nse=stored, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype)
    return BCOO(bcoo_fromdense_p.bind(x, **params), shape=x.shape, indices_sorted=True, unique_indices=True)


# ---- extract ----------------------------------------------------------------------------------------


class Extract(OfFormat, matrices.Batched):
    """The elements of an array at the indices of a sparse array; 0 for padding and for repeated indices."""

    name = "bcoo_extract"
    linear = (1,)

    def infer(self, *operands, **params):
        *index_buffers, arr = operands
        *batch, nse, n_sparse = self.indices_type(*index_buffers).shape
        n_batch = len(batch)
        return [ShapedArray((*arr.shape[:n_batch], nse, *arr.shape[n_batch + n_sparse :]), arr.dtype)]

    def compute(self, indices, arr, *, assume_unique):
        *batch, nse, n_sparse = indices.shape

        def take(i, a):
            if not n_sparse:
                return jnp.broadcast_to(a, (nse, *a.shape))
            return a.at[tuple(i[:, k] for k in range(n_sparse))].get(mode="fill", fill_value=0)

        out = nfold_vmap(take, len(batch))(indices, arr)
        if assume_unique:
            return [out]
        first = nfold_vmap(first_of_equals, len(batch))(indices)
        first = first.reshape(*first.shape, *[1] * (out.ndim - first.ndim))
        return [jnp.where(first, out, jnp.zeros((), out.dtype))]

    def transpose(self, cts, *operands, assume_unique=True):
        (ct,), (*index_buffers, arr) = cts, operands
        if not assume_unique:
            raise NotImplementedError("transpose of bcoo_extract with assume_unique=False")
        if not is_undefined_primal(arr):
            raise ValueError(f"{self.name}: cannot be transposed with respect to indices")
        of_arr = Zero(arr.aval) if type(ct) is Zero else self.dense(ct, *index_buffers, shape=arr.aval.shape)
        return [*[None] * len(index_buffers), of_arr]

    def batch(self, axis, operands, dims, **params):
        n_batch = self.n_batch(operands[-2], dims[-2])
        if any(d is not None and d > n_batch for d in dims):
            raise ValueError(f"{self.name}: batch_dims={tuple(dims)} out of range for indices with n_batch={n_batch}")
        *index_buffers, arr = self.in_front(operands, dims, n_batch)
        arr = moving.broadcast_in_dim(arr, (axis.size, *typeof(arr).shape[1:]), tuple(range(typeof(arr).ndim)))
        return [self.bind(*index_buffers, arr, **params)], [0]


def first_of_equals(indices: Any) -> Any:
    """A mask of the rows of (nse, n_sparse) indices that do not repeat an earlier row."""
    nse, n_sparse = typeof(indices).shape
    if not n_sparse:
        return jnp.arange(nse) == 0
    order = jnp.lexsort(indices.T[::-1])
    ordered = indices[order]
    fresh = (ordered[1:] != ordered[:-1]).any(-1)
    fresh = jnp.concatenate([jnp.ones((min(nse, 1),), bool), fresh])
    return jnp.zeros(nse, bool).at[order].set(fresh)


bcoo_extract_p = Extract()


def bcoo_extract(sparr: BCOO, arr: ArrayLike, *, assume_unique: bool | None = None) -> BCOO:
    """Returns the elements of an array at the indices of `sparr`.

    Repeated indices get the element once and zeros after it, unless `assume_unique`, by default the promise
    `sparr.unique_indices`.

    Example:
        >>> from minijax.experimental import sparse
        >>> mask = sparse.BCOO.fromdense(jnp.array([[0, 1], [1, 0]]))
        >>> sparse.bcoo_extract(mask, jnp.array([[1, 2], [3, 4]])).todense()
        Array([[0, 2],
               [3, 0]], dtype=int32)
    """
    if not isinstance(sparr, BCOO):
        raise TypeError(f"First argument to bcoo_extract should be a BCOO array. Got type(sparr)={type(sparr)}")
    a = jnp.asarray(arr)
    if a.shape != sparr.shape:
        raise ValueError(f"shape mismatch: sparr.shape={sparr.shape} a.shape={a.shape}")
    if assume_unique is None:
        assume_unique = sparr.unique_indices
    data = bcoo_extract_p.bind(sparr.indices, a, assume_unique=assume_unique)
    return BCOO((data, sparr.indices), **sparr._info._asdict())
