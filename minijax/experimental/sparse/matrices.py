"""The base classes of COO, CSR and CSC: primitives on stored elements, and the class of matrices."""

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax.base import dtypes
from minijax.experimental.sparse._base import JAXSparse
from minijax.experimental.sparse.composed import Composed
from minijax.experimental.sparse.util import Shape
from minijax.interop.introspection import concrete_or_error
from minijax.ir.primitive import is_undefined_primal
from minijax.ir.types import ShapedArray
from minijax.primitives.promote import promote_dtypes
from minijax.primitives.zeros import instantiate


class Stored(Composed):
    """An operation on data and two index buffers, which a format converts to rows and columns."""

    def places(self, first: Any, second: Any) -> tuple[Any, Any]:
        """The row and the column of each stored element."""
        raise NotImplementedError

    def shape(self, params: dict) -> Shape:
        """The shape of the matrix, from the parameters."""
        return params["shape"]


class ToDense(Stored):
    """Converts stored elements to a dense matrix."""

    def infer(self, data, first, second, **params):
        return [ShapedArray(self.shape(params), data.dtype)]

    def compute(self, data, first, second, **params):
        row, col = self.places(first, second)
        return [jnp.zeros(self.shape(params), data.dtype).at[row, col].add(data)]

    def jvp(self, primals, tangents, **params):
        pushed = lambda t, data, *indices, **params: self.bind(t, *indices, **params)  # noqa: E731
        return self.jvp_by_parts((pushed, None, None), primals, tangents, params)

    def transpose(self, cts, data, first, second, **params):
        if is_undefined_primal(first) or is_undefined_primal(second):
            raise ValueError(f"{self.name}: cannot be transposed with respect to indices")
        row, col = self.places(first, second)
        return [instantiate(cts[0])[row, col], None, None]


class Multiply(Stored):
    """The product of the matrix, transposed if `transpose`, and a vector or a matrix."""

    rank = 1

    def infer(self, data, first, second, x, *, transpose, **params):
        rows, cols = self.shape(params)[:: -1 if transpose else 1]
        if x.ndim != self.rank or x.shape[0] != cols or data.dtype != x.dtype:
            raise AssertionError(
                f"{self.name}: a matrix of shape {(rows, cols)} and dtype {data.dtype} does not fit {x.str_short()}"
            )
        return [ShapedArray((rows, *x.shape[1:]), data.dtype)]

    def compute(self, data, first, second, x, *, transpose, **params):
        row, col = self.places(first, second)
        row, col = (col, row) if transpose else (row, col)
        terms = (data if self.rank == 1 else data[:, None]) * x[col]
        rows = self.shape(params)[transpose]
        return [jnp.zeros((rows, *x.shape[1:]), terms.dtype).at[row].add(terms)]

    def jvp(self, primals, tangents, **params):
        by_data = lambda t, data, first, second, x, **params: self.bind(t, first, second, x, **params)  # noqa: E731
        by_x = lambda t, data, first, second, x, **params: self.bind(data, first, second, t, **params)  # noqa: E731
        return self.jvp_by_parts((by_data, None, None, by_x), primals, tangents, params)

    def transpose(self, cts, data, first, second, x, *, transpose, **params):
        ct = instantiate(cts[0])
        if is_undefined_primal(x):
            return [None, None, None, self.bind(data, first, second, ct, transpose=not transpose, **params)]
        row, col = self.places(first, second)
        row, col = (col, row) if transpose else (row, col)
        products = ct[row] * x[col]
        return [products if self.rank == 1 else products.sum(1), None, None, None]


def stored_elements(mat: Any, nse: int) -> tuple[Any, Any, Any, Any]:
    """Data, rows and columns of the nonzero elements, padded to `nse`, and a mask of those that are not padding."""
    row, col = jnp.nonzero(mat, size=nse)
    data = mat[row, col]
    is_stored = jnp.arange(nse) < (mat != 0).sum()
    return jnp.where(is_stored, data, 0), row, col, is_stored


def count_nonzero(name: str, mat: Any, nse: int | None) -> int:
    """The number of elements to store: `nse`, or of nonzero elements if None. Raises an error for a traced number."""
    if mat.ndim != 2:
        raise AssertionError(f"{name}: a matrix is needed, not an array of shape {mat.shape}")
    nse = (mat != 0).sum() if nse is None else nse
    return concrete_or_error(operator.index, nse, f"{name}: traced code needs a number of stored elements, nse")


class SparseMatrix(JAXSparse):
    """A sparse array of two axes whose buffers, the leaves of the pytree, are data and two arrays of indices."""

    data: Any
    nse = property(lambda self: self.data.size)
    dtype = property(lambda self: self.data.dtype)
    _names: tuple[str, str]
    _axes_error: type[Exception] = AssertionError

    def __init__(self, args: tuple[Any, Any, Any], *, shape: Sequence[int]):
        self.data, first, second = map(jnp.asarray, args)
        for name, buffer in zip(self._names, (first, second), strict=True):
            setattr(self, name, buffer)
        super().__init__(args, shape=shape)

    def _indices_of(self) -> tuple[Any, Any]:
        """The two arrays of indices."""
        first, second = self._names
        return getattr(self, first), getattr(self, second)

    def tree_flatten(self) -> tuple:
        return (self.data, *self._indices_of()), self._metadata()

    def _metadata(self) -> dict[str, Any]:
        """The attributes that are not buffers, by name."""
        return {"shape": self.shape}

    @classmethod
    def tree_unflatten(cls, aux_data: Any, children: Sequence) -> Any:
        obj = object.__new__(cls)
        obj.data, first, second = children
        for name, value in zip(cls._names, (first, second), strict=True):
            setattr(obj, name, value)
        for name, value in aux_data.items():
            setattr(obj, name, value)
        return obj

    @classmethod
    def _check_shape(cls, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape as a tuple. Raises ValueError unless it has two axes."""
        shape = tuple(shape)
        if len(shape) != 2:
            raise ValueError(f"{cls.__name__} must have ndim=2; got shape={shape}")
        return shape

    def _multiply(self, data: Any, x: Any) -> Any:
        """The product of the matrix with its data replaced by `data`, and a vector or a matrix."""
        raise NotImplementedError

    def transpose(self, axes: Sequence[int] | None = None) -> Any:
        if axes is not None:
            raise self._axes_error(f"{type(self).__name__}.transpose: axes argument to transpose()")
        return self._transposed()

    def _transposed(self) -> Any:
        raise NotImplementedError

    def __matmul__(self, other: Any) -> Any:
        if isinstance(other, JAXSparse):
            raise NotImplementedError("matmul between two sparse objects.")
        other = jnp.asarray(other)
        if other.ndim not in (1, 2):
            raise NotImplementedError(f"matmul with object of shape {other.shape}")
        return self._multiply(*promote_dtypes(self.data, other))


def diagonal(N: int, M: int, k: int, dtype: Any, index_dtype: Any) -> tuple[Any, Any, Any]:
    """Data, rows and columns of ones on the k-th diagonal."""
    size = max(0, min(N, M - k) if k > 0 else min(N + k, M))
    index = jnp.arange(size, dtype=dtypes.canonicalize_dtype(index_dtype))
    one = jnp.ones(size, np.float32 if dtype is None else dtype)
    return one, index - min(k, 0) if k < 0 else index, index + k if k > 0 else index
