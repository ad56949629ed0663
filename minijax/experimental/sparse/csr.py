"""Sparse matrices in compressed row format (CSR) and compressed column format (CSC), transposes of each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

import minijax.numpy as jnp
from minijax.base import dtypes, tree
from minijax.base.dtypes import DTypeLike
from minijax.base.faces import listing
from minijax.dispatch.jitted import jitted
from minijax.experimental.sparse import matrices
from minijax.experimental.sparse.util import Shape
from minijax.ir.types import ShapedArray
from minijax.run.arrays.array import Array

__all__, __dir__ = listing(
    __name__,
    """
    CSC CSR Shape csr_fromdense csr_fromdense_p csr_matmat csr_matmat_p csr_matvec csr_matvec_p csr_todense
    csr_todense_p
""",
)


def rows_of(indices: Any, indptr: Any) -> Any:
    """The row of each stored element; `indptr[i]` is the number of the first element of row i."""
    return jnp.cumsum(jnp.zeros_like(indices).at[indptr].add(1)) - 1


def pointers(rows: Any, count: int) -> Any:
    """The `indptr` of `count` rows, from the sorted row of each stored element."""
    return jnp.zeros(count + 1, rows.dtype).at[1:].set(jnp.cumsum(jnp.bincount(rows, length=count).astype(rows.dtype)))


@jitted("_csr_to_coo")
def _csr_to_coo(indices: Any, indptr: Any) -> tuple[Any, Any]:
    """The row and column of each stored element."""
    return rows_of(indices, indptr), indices


class _Rows(matrices.Stored):
    def coordinates(self, first, second):
        return _csr_to_coo(first, second)


class CsrToDense(_Rows, matrices.ToDense):
    name = "csr_todense"


class CsrMatVec(_Rows, matrices.Multiply):
    name = "csr_matvec"


class CsrMatMat(_Rows, matrices.Multiply):
    name = "csr_matmat"
    rank = 2


class CsrFromDense(_Rows, matrices.ElementsOfDense):
    name = "csr_fromdense"

    def infer(self, mat, *, nse, index_dtype):
        data = ShapedArray((nse,), mat.dtype)
        return [data, *(ShapedArray((n,), index_dtype) for n in (nse, mat.shape[0] + 1))]

    def compute(self, mat, *, nse, index_dtype):
        (rows, _) = mat.shape
        data, row, col, is_stored = matrices.stored_elements(mat, nse)
        row = jnp.where(is_stored, row, rows)
        return [data, col.astype(index_dtype), pointers(row.astype(index_dtype), rows)]


csr_todense_p, csr_fromdense_p = CsrToDense(), CsrFromDense()
csr_matvec_p, csr_matmat_p = CsrMatVec(), CsrMatMat()


class CSRInfo(NamedTuple):
    """The metadata of a CSR or CSC."""

    shape: Shape


class _Compressed(matrices.Matrix):
    """The base class of CSR and CSC, which differ in the axis that is compressed."""

    indices: Any
    indptr: Any
    _names, _Info = ("data", "indices", "indptr"), CSRInfo
    _todense, _products = csr_todense_p, (csr_matvec_p, csr_matmat_p)
    _by_columns = False

    def _params(self) -> dict[str, Any]:
        return {"shape": self.shape}

    @classmethod
    def _empty(cls, shape: Sequence[int], *, dtype: Any = None, index_dtype: Any = "int32") -> Any:
        shape = cls._check_shape(shape)
        pointers = jnp.zeros(shape[cls._by_columns] + 1, index_dtype)
        return cls((jnp.empty(0, dtype), jnp.empty(0, index_dtype), pointers), shape=shape)

    @classmethod
    def _eye(cls, N: int, M: int, k: int, *, dtype: Any = None, index_dtype: Any = "int32") -> Any:
        data, *coordinates = matrices.diagonal(N, M, k, dtype, index_dtype)
        compressed, index = coordinates[::-1] if cls._by_columns else coordinates
        counts = jnp.bincount(compressed, length=(N, M)[cls._by_columns]).astype(index.dtype)
        return cls((data, index, jnp.concatenate([jnp.zeros(1, index.dtype), jnp.cumsum(counts)])), shape=(N, M))

    def _transposed(self) -> Any:
        return (CSR if self._by_columns else CSC)(self._bufs, shape=self.shape[::-1])


@tree.register_pytree_node_class
class CSR(_Compressed):
    """Is a sparse matrix of data, columns, and the number of the first stored element of each row.

    Example:
        >>> from minijax.experimental import sparse
        >>> sparse.CSR((jnp.array([5, 7]), jnp.array([1, 0]), jnp.array([0, 1, 2])), shape=(2, 2)).todense()
        Array([[0, 5],
               [7, 0]], dtype=int32)
    """


@tree.register_pytree_node_class
class CSC(_Compressed):
    """Is a sparse matrix of data, rows, and the number of the first stored element of each column.

    Example:
        >>> from minijax.experimental import sparse
        >>> sparse.CSC((jnp.array([5, 7]), jnp.array([0, 1]), jnp.array([0, 1, 2])), shape=(2, 2)).todense()
        Array([[5, 0],
               [0, 7]], dtype=int32)
    """

    _by_columns = True

    @staticmethod
    def _fromdense(mat, **params):
        return csr_fromdense(jnp.asarray(mat).T, **params).T

    def todense(self) -> Array:
        return self.T.todense().T

    def _product(self, product: matrices.Multiply, x: Any, transpose: bool) -> Any:
        return self.T._product(product, x, not transpose)


def csr_todense(mat: CSR) -> Array:
    """Converts a CSR to a dense matrix.

    Example:
        >>> from minijax.experimental import sparse
        >>> sparse.csr_todense(sparse.csr_fromdense(jnp.array([[0, 5], [7, 0]])))
        Array([[0, 5],
               [7, 0]], dtype=int32)
    """
    return mat.todense()


def csr_fromdense(mat: Array, *, nse: int | None = None, index_dtype: DTypeLike = np.int32) -> CSR:
    """Converts a dense matrix with `nse` nonzero elements to a CSR; traced code must specify `nse`.

    Example:
        >>> jax.experimental.sparse.csr_fromdense(jnp.array([[0, 5], [7, 0]])).data
        Array([5, 7], dtype=int32)
    """
    return CSR._convert(csr_fromdense_p, mat, nse, dtypes.canonicalize_dtype(index_dtype))


CSR._fromdense = csr_fromdense


def csr_matvec(mat: CSR, v: Array, transpose: bool = False) -> Array:
    """Multiplies a CSR, transposed if `transpose`, by a vector.

    Example:
        >>> from minijax.experimental import sparse
        >>> sparse.csr_matvec(sparse.csr_fromdense(jnp.array([[0, 5], [7, 0]])), jnp.array([1, 10]))
        Array([50,  7], dtype=int32)
    """
    return mat._product(csr_matvec_p, v, transpose)


def csr_matmat(mat: CSR, B: Array, *, transpose: bool = False) -> Array:
    """Multiplies a CSR, transposed if `transpose`, by a matrix.

    Example:
        >>> from minijax.experimental import sparse
        >>> sparse.csr_matmat(sparse.csr_fromdense(jnp.array([[0, 5], [7, 0]])), jnp.array([[1], [10]]))
        Array([[50],
               [ 7]], dtype=int32)
    """
    return mat._product(csr_matmat_p, B, transpose)
