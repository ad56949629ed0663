"""The base classes of COO, CSR and CSC: primitives on stored elements, and the class of matrices."""

import operator
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np

import minijax.numpy as jnp
from minijax.api.autodiff import linear_transpose
from minijax.base import dtypes
from minijax.experimental.sparse._base import Format, JAXSparse
from minijax.experimental.sparse.util import Shape
from minijax.ir.concrete import concrete_or_error
from minijax.ir.primitive import Axis, Primitive, is_undefined_primal
from minijax.ir.types import ShapedArray, Zero, typeof
from minijax.primitives import moving
from minijax.primitives.families import emit
from minijax.primitives.promote import promote_dtypes
from minijax.primitives.zeros import add_zeros, instantiate


class Composed(Primitive):
    """A primitive that is lowered by tracing `compute(*operands, **params)`, which returns a sequence.

    The first result is linear in each of the operands with the numbers `linear`; other results have no tangents.
    """

    linear: tuple[int, ...] = (0,)

    def compute(self, *operands: Any, **params: Any) -> Sequence:
        raise NotImplementedError

    def lower(self, e, ins, outs, *operands, **params):
        return emit(e, self.compute, ins, operands, **params)

    def jvp(self, primals, tangents, **params):
        results = self.bind_all(primals, params)
        total: Any = Zero.from_primal_value(results[0])
        for k in self.linear:
            if type(tangents[k]) is not Zero:
                operands = [*primals[:k], tangents[k], *primals[k + 1 :]]
                total = self.added(total, self.bind_all(operands, params)[0])
        return results, [total, *map(Zero.from_primal_value, results[1:])]

    def added(self, total: Any, term: Any) -> Any:
        """The sum of two tangents; the first may be a symbolic zero."""
        return add_zeros(total, term)

    def transposed(self, ct: Any, operands: Sequence, **params: Any) -> list:
        """The cotangents of operands with one linear operand, by transposing `compute`."""
        (k,) = (k for k, x in enumerate(operands) if is_undefined_primal(x))
        of_linear = lambda x: self.compute(*operands[:k], x, *operands[k + 1 :], **params)[0]  # noqa: E731
        (pulled,) = linear_transpose(of_linear, operands[k].aval)(ct)
        return [pulled if j == k else None for j in range(len(operands))]


class FromDense(Composed):
    """The data and the index buffers of the nonzero elements of a dense array, padded to `nse` elements."""

    multiple_results = True

    def elements(self, mat: Any, *index_buffers: Any) -> Any:
        """The elements of `mat` at the positions in the index buffers `index_buffers`."""
        raise NotImplementedError

    def jvp(self, primals, tangents, **params):
        data, *index_buffers = self.bind_all(primals, params)
        (t,) = tangents
        pushed = Zero.from_primal_value(data) if type(t) is Zero else self.elements(t, *index_buffers)
        return [data, *index_buffers], [pushed, *map(Zero.from_primal_value, index_buffers)]


class Batched(Composed):
    """A primitive of buffers with batch axes in front; the last index buffer has `unbatched` other axes."""

    unbatched = 2

    def n_batch(self, buffer: Any, dim: int | None) -> int:
        """The number of batch axes of the last index buffer, which is mapped over `dim`, without that axis."""
        return typeof(buffer).ndim - self.unbatched - (dim is not None)

    def in_front(self, buffers: Sequence, dims: Sequence, n_batch: int) -> list:
        """Moves the mapped axis of each buffer to the front, or adds one of size one to unmapped buffers.

        Raises NotImplementedError if a mapped axis is not among the batch axes.
        """
        moved = []
        for x, dim in zip(buffers, dims, strict=True):
            if dim is not None and dim > n_batch:
                raise NotImplementedError(
                    f"{self.name}: batch_dims must be None or satisfy 0 < dim < n_batch: axis {dim} of "
                    f"{typeof(x).str_short()} is mapped, with n_batch={n_batch}."
                )
            moved.append(moving.expand_dims(x, (0,)) if dim is None else moving.move_axis(x, dim, 0))
        return moved

    def batched(self, axis: Axis, buffers: Sequence, dims: Sequence, spinfo: Any) -> tuple[list, Any]:
        """Buffers with the mapped axis in front, and `spinfo` with one batch axis more."""
        buffers = self.in_front(buffers, dims, self.n_batch(buffers[-1], dims[-1]))
        return buffers, spinfo._replace(shape=(axis.size, *spinfo.shape))


class Stored(Composed):
    """An operation on data and two index buffers, which a format converts to rows and columns."""

    def coordinates(self, first: Any, second: Any) -> tuple[Any, Any]:
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
        row, col = self.coordinates(first, second)
        return [jnp.zeros(self.shape(params), data.dtype).at[row, col].add(data)]

    def transpose(self, cts, data, first, second, **params):
        if is_undefined_primal(first) or is_undefined_primal(second):
            raise ValueError(f"{self.name}: cannot be transposed with respect to indices")
        row, col = self.coordinates(first, second)
        return [instantiate(cts[0])[row, col], None, None]


class Multiply(Stored):
    """The product of the matrix, transposed if `transpose`, and a vector or a matrix."""

    rank = 1
    linear = (0, 3)

    def infer(self, data, first, second, x, *, transpose, **params):
        rows, cols = self.shape(params)[:: -1 if transpose else 1]
        if x.ndim != self.rank or x.shape[0] != cols or data.dtype != x.dtype:
            raise AssertionError(
                f"{self.name}: a matrix of shape {(rows, cols)} and dtype {data.dtype} does not fit {x.str_short()}"
            )
        return [ShapedArray((rows, *x.shape[1:]), data.dtype)]

    def positions(self, first: Any, second: Any, transpose: bool) -> tuple[Any, Any]:
        """For each stored element the position in the result and the position in `x`."""
        row, col = self.coordinates(first, second)
        return (col, row) if transpose else (row, col)

    def compute(self, data, first, second, x, *, transpose, **params):
        row, col = self.positions(first, second, transpose)
        terms = (data if self.rank == 1 else data[:, None]) * x[col]
        rows = self.shape(params)[transpose]
        return [jnp.zeros((rows, *x.shape[1:]), terms.dtype).at[row].add(terms)]

    def transpose(self, cts, data, first, second, x, *, transpose, **params):
        ct = instantiate(cts[0])
        if is_undefined_primal(x):
            return [None, None, None, self.bind(data, first, second, ct, transpose=not transpose, **params)]
        row, col = self.positions(first, second, transpose)
        products = ct[row] * x[col]
        return [products if self.rank == 1 else products.sum(1), None, None, None]


class ElementsOfDense(FromDense, Stored):
    """Converts a dense matrix to data and index buffers."""

    def elements(self, mat, *index_buffers):
        return mat[self.coordinates(*index_buffers)]


def stored_elements(mat: Any, nse: int) -> tuple[Any, Any, Any, Any]:
    """Data, rows and columns of the nonzero elements, padded to `nse`, and a mask of those that are not padding."""
    row, col = jnp.nonzero(mat, size=nse)
    data = mat[row, col]
    is_stored = jnp.arange(nse) < (mat != 0).sum()
    return jnp.where(is_stored, data, 0), row, col, is_stored


class Matrix(Format):
    """The base class of COO, CSR and CSC: a sparse array of two axes with data and two index buffers."""

    data: Any
    nse = property(lambda self: self.data.size)
    _products: ClassVar[tuple[Multiply, Multiply]]  # with a vector, with a matrix
    _axes_error: type[Exception] = AssertionError

    @classmethod
    def fromdense(cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> Self:
        """Converts a dense matrix with `nse` nonzero elements; traced code must specify `nse`."""
        return cls._fromdense(mat, nse=nse, index_dtype=index_dtype)

    @classmethod
    def _check_shape(cls, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape as a tuple. Raises ValueError unless it has two axes."""
        shape = tuple(shape)
        if len(shape) != 2:
            raise ValueError(f"{cls.__name__} must have ndim=2; got shape={shape}")
        return shape

    @classmethod
    def _convert(cls, primitive: FromDense, mat: Any, nse: int | None, index_dtype: Any, **flags: bool) -> Self:
        """Converts a dense matrix by a primitive. `nse` is the number of nonzero elements if None."""
        mat, name = jnp.asarray(mat), primitive.name
        if mat.ndim != 2:
            raise AssertionError(f"{name}: a matrix is needed, not an array of shape {mat.shape}")
        nse = (mat != 0).sum() if nse is None else nse
        stored = concrete_or_error(operator.index, nse, f"{name}: traced code needs a number of stored elements, nse")
        return cls(primitive.bind(mat, nse=stored, index_dtype=index_dtype), shape=mat.shape, **flags)

    def _product(self, product: Multiply, x: Any, transpose: bool) -> Any:
        """Binds a product of the matrix and `x`, with their dtypes promoted."""
        data, x = promote_dtypes(self.data, x)
        return product.bind(data, *self._bufs[1:], x, transpose=transpose, **self._params())

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
        return self._product(self._products[other.ndim - 1], other, transpose=False)


def diagonal(N: int, M: int, k: int, dtype: Any, index_dtype: Any) -> tuple[Any, Any, Any]:
    """Data, rows and columns of ones on the k-th diagonal."""
    size = max(0, min(N, M - k) if k > 0 else min(N + k, M))
    index = jnp.arange(size, dtype=dtypes.canonicalize_dtype(index_dtype))
    one = jnp.ones(size, np.float32 if dtype is None else dtype)
    return one, index - min(k, 0) if k < 0 else index, index + k if k > 0 else index
