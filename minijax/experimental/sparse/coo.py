"""Sparse matrices in coordinate format: the value, row and column of each stored element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import minijax.numpy as jnp
from minijax import lax
from minijax.base import dtypes, tree
from minijax.base.dtypes import DTypeLike
from minijax.base.faces import listing
from minijax.experimental.sparse import matrices
from minijax.experimental.sparse.util import Shape
from minijax.ir.types import ShapedArray
from minijax.run.arrays.array import Array

__all__, __dir__ = listing(
    __name__,
    """
    COO COOInfo Dtype Shape coo_fromdense coo_fromdense_p coo_matmat coo_matmat_p coo_matvec coo_matvec_p
    coo_todense coo_todense_p
""",
)

Dtype = Any


class COOInfo(NamedTuple):
    """The metadata of a COO that its primitives take as a parameter."""

    shape: Shape
    rows_sorted: bool = False
    cols_sorted: bool = False


class _Coordinates(matrices.Stored):
    def coordinates(self, first, second):
        return first, second

    def shape(self, params):
        return params["spinfo"].shape


class CooToDense(_Coordinates, matrices.ToDense):
    name = "coo_todense"


class CooMatVec(_Coordinates, matrices.Multiply):
    name = "coo_matvec"


class CooMatMat(_Coordinates, matrices.Multiply):
    name = "coo_matmat"
    rank = 2


class CooFromDense(_Coordinates, matrices.ElementsOfDense):
    name = "coo_fromdense"

    def infer(self, mat, *, nse, index_dtype):
        index = ShapedArray((nse,), dtypes.canonicalize_dtype(index_dtype))
        return [ShapedArray((nse,), mat.dtype), index, index]

    def compute(self, mat, *, nse, index_dtype):
        data, row, col, _ = matrices.stored_elements(mat, nse)
        dtype = dtypes.canonicalize_dtype(index_dtype)
        return [data, row.astype(dtype), col.astype(dtype)]


coo_todense_p, coo_fromdense_p = CooToDense(), CooFromDense()
coo_matvec_p, coo_matmat_p = CooMatVec(), CooMatMat()


@tree.register_pytree_node_class
class COO(matrices.Matrix):
    """Is a sparse matrix of data, rows and columns. `rows_sorted` and `cols_sorted` are not checked.

    Example:
        >>> from minijax.experimental import sparse
        >>> sparse.COO((jnp.array([5, 7]), jnp.array([0, 1]), jnp.array([1, 0])), shape=(2, 2)).todense()
        Array([[0, 5],
               [7, 0]], dtype=int32)
    """

    row: Any
    col: Any
    rows_sorted: bool
    cols_sorted: bool
    _names, _Info = ("data", "row", "col"), COOInfo
    _todense, _products = coo_todense_p, (coo_matvec_p, coo_matmat_p)
    _axes_error = NotImplementedError

    def __init__(
        self, args: tuple[Any, Any, Any], *, shape: Sequence[int], rows_sorted: bool = False, cols_sorted: bool = False
    ):
        self.rows_sorted, self.cols_sorted = rows_sorted, cols_sorted
        super().__init__(args, shape=shape)

    @classmethod
    def _empty(cls, shape: Sequence[int], *, dtype: Any = None, index_dtype: Any = "int32") -> COO:
        shape = cls._check_shape(shape)
        index = jnp.empty(0, index_dtype)
        return cls((jnp.empty(0, dtype), index, index), shape=shape, rows_sorted=True, cols_sorted=True)

    @classmethod
    def _eye(cls, N: int, M: int, k: int, *, dtype: Any = None, index_dtype: Any = "int32") -> COO:
        return cls(matrices.diagonal(N, M, k, dtype, index_dtype), shape=(N, M), rows_sorted=True, cols_sorted=True)

    def _sort_indices(self) -> COO:
        """Sorts the stored elements by row, then by column."""
        row, col, data = lax.sort((self.row, self.col, self.data), num_keys=2)
        return COO((data, row, col), shape=self.shape, rows_sorted=True)

    def _transposed(self) -> COO:
        args = self.data, self.col, self.row
        return COO(args, shape=self.shape[::-1], rows_sorted=self.cols_sorted, cols_sorted=self.rows_sorted)


def coo_todense(mat: COO) -> Array:
    """Converts a COO to a dense matrix.

    Example:
        >>> from minijax.experimental import sparse
        >>> sparse.coo_todense(sparse.coo_fromdense(jnp.array([[0, 5], [7, 0]])))
        Array([[0, 5],
               [7, 0]], dtype=int32)
    """
    return mat.todense()


def coo_fromdense(mat: Array, *, nse: int | None = None, index_dtype: DTypeLike = jnp.int32) -> COO:
    """Converts a dense matrix with `nse` nonzero elements to a COO; traced code must specify `nse`.

    Example:
        >>> jax.experimental.sparse.coo_fromdense(jnp.array([[0, 5], [7, 0]])).data
        Array([5, 7], dtype=int32)
    """
    return COO._convert(coo_fromdense_p, mat, nse, index_dtype, rows_sorted=True)


COO._fromdense = coo_fromdense


def coo_matvec(mat: COO, v: Array, transpose: bool = False) -> Array:
    """Multiplies a COO, transposed if `transpose`, by a vector.

    Example:
        >>> from minijax.experimental import sparse
        >>> sparse.coo_matvec(sparse.coo_fromdense(jnp.array([[0, 5], [7, 0]])), jnp.array([1, 10]))
        Array([50,  7], dtype=int32)
    """
    return mat._product(coo_matvec_p, v, transpose)


def coo_matmat(mat: COO, B: Array, *, transpose: bool = False) -> Array:
    """Multiplies a COO, transposed if `transpose`, by a matrix.

    Example:
        >>> from minijax.experimental import sparse
        >>> sparse.coo_matmat(sparse.coo_fromdense(jnp.array([[0, 5], [7, 0]])), jnp.array([[1], [10]]))
        Array([[50],
               [ 7]], dtype=int32)
    """
    return mat._product(coo_matmat_p, B, transpose)
