"""The class of sparse arrays in batched coordinate format."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

import minijax.numpy as jnp
from minijax import lax
from minijax.api.vmap import register_vmappable
from minijax.base import dtypes, tree
from minijax.base.naming import known_as
from minijax.experimental.sparse._base import JAXSparse, late, operator
from minijax.experimental.sparse.util import Shape, SparseInfo
from minijax.higher.cond import cond
from minijax.run.array import Array

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

    def fits(batch):
        return len(batch) == n_batch and all(b in (1, n) for b, n in zip(batch, shape, strict=False))

    if not fits(data.shape[:n_batch]):
        raise ValueError(f"data batch dimensions not compatible for data.shape={data.shape}, shape={shape}")
    if not fits(indices.shape[:n_batch]):
        raise ValueError(f"indices batch dimensions not compatible for indices.shape={indices.shape}, shape={shape}")
    if tuple(data.shape[n_batch:]) != (nse, *shape[n_batch + n_sparse :]):
        raise ValueError(f"Invalid data.shape={data.shape} for nse={nse}, n_batch={n_batch}, n_dense={n_dense}")
    return BCOOProperties(n_batch=n_batch, n_sparse=n_sparse, n_dense=n_dense, nse=nse)


@tree.register_pytree_node_class
@known_as("jax.experimental.sparse.bcoo.BCOO")
class BCOO(JAXSparse):
    """A sparse array in batched coordinate format.

    `args` are data of shape (*batch, nse, *dense) and indices of shape (*batch, nse, n_sparse). Batch axes of
    size one are broadcast. Rows of indices that are out of bounds are padding. `indices_sorted` and
    `unique_indices` are promises of the caller that are not checked.
    """

    data: Any
    indices: Any
    nse = property(lambda self: self.indices.shape[-2])
    dtype = property(lambda self: self.data.dtype)
    n_batch = property(lambda self: self.indices.ndim - 2)
    n_sparse = property(lambda self: self.indices.shape[-1])
    n_dense = property(lambda self: self.data.ndim - 1 - self.n_batch)
    indices_sorted: bool
    unique_indices: bool

    def __init__(
        self,
        args: tuple[Array, Array],
        *,
        shape: Sequence[int],
        indices_sorted: bool = False,
        unique_indices: bool = False,
    ):
        data, indices = args
        self.data, self.indices = jnp.asarray(data), jnp.asarray(indices)
        self.indices_sorted = indices_sorted
        self.unique_indices = unique_indices
        super().__init__(args, shape=tuple(shape))
        validated(self.data, self.indices, self.shape)

    _info = property(lambda self: SparseInfo(self.shape, self.indices_sorted, self.unique_indices))
    _bufs = property(lambda self: (self.data, self.indices))

    def _layout(self):
        sizes = {"n_batch": self.n_batch, "n_dense": self.n_dense}
        return "".join(f", {name}={n}" for name, n in sizes.items() if n)

    @classmethod
    def fromdense(
        cls, mat: Array, *, nse: int | None = None, index_dtype: Any = np.int32, n_dense: int = 0, n_batch: int = 0
    ) -> "BCOO":
        """Converts a dense array. `nse` is the number of nonzero elements by default; traced arrays require it."""
        return late("bcoo_fromdense")(mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch)

    @classmethod
    def from_scipy_sparse(cls, mat: Any, *, index_dtype: Any = None, n_dense: int = 0, n_batch: int = 0) -> "BCOO":
        """Converts a scipy.sparse matrix. Raises NotImplementedError for batch and dense axes."""
        if n_dense or n_batch:
            raise NotImplementedError("BCOO.from_scipy_sparse: n_dense and n_batch must be zero")
        mat = mat.tocoo()
        indices = jnp.column_stack((mat.row, mat.col)).astype(index_dtype or jnp.int32)
        return cls((jnp.asarray(mat.data), indices), shape=mat.shape)

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

    def tree_flatten(self) -> tuple:
        return (self.data, self.indices), self._info._asdict()

    @classmethod
    def tree_unflatten(cls, aux_data, children):
        self = object.__new__(cls)
        self.data, self.indices = children
        if aux_data.keys() != {"shape", "indices_sorted", "unique_indices"}:
            raise ValueError(f"BCOO.tree_unflatten: invalid {aux_data=}")
        vars(self).update(aux_data)
        return self

    def todense(self) -> Array:
        """Converts to a dense array."""
        return late("bcoo_todense")(self)

    def transpose(self, axes: Sequence[int] | None = None) -> "BCOO":
        """Permutes the axes, reversed if `axes` is None. Batch, sparse and dense axes cannot be exchanged."""
        permutation = range(self.ndim)[::-1] if axes is None else axes
        transposed = late("bcoo_transpose")(self, permutation=permutation)
        return transposed

    def sort_indices(self) -> "BCOO":
        """Sorts the stored elements by their indices."""
        return late("bcoo_sort_indices")(self)

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> "BCOO":
        """Adds elements of equal indices. `nse`, of the result, is required under transformations."""
        bcoo = late("bcoo")
        return (bcoo.bcoo_eliminate_zeros if remove_zeros else bcoo.bcoo_sum_duplicates)(self, nse=nse)

    def update_layout(
        self, *, n_batch: int | None = None, n_dense: int | None = None, on_inefficient: str = "error"
    ) -> "BCOO":
        """Changes the numbers of batch and dense axes; `on_inefficient` is 'error', 'warn' or None."""
        return late("bcoo_update_layout")(self, n_batch=n_batch, n_dense=n_dense, on_inefficient=on_inefficient)


for _name in """
    sum reshape astype __getitem__ __iter__ __pow__ __abs__ __neg__ __pos__ __matmul__ __rmatmul__ __mul__ __rmul__
    __truediv__ __rtruediv__ __add__ __radd__ __sub__ __rsub__ __rpow__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__
""".split():
    setattr(BCOO, _name, operator(_name))
BCOO.__hash__ = None  # pyright: ignore[reportAttributeAccessIssue]


def _element(part, index, mat, axis):
    """The BCOO without the mapped batch axis, as vmap passes it to a function."""
    if axis is None:
        return mat
    if not -mat.ndim <= axis < mat.ndim or axis % mat.ndim >= mat.n_batch:
        raise ValueError(
            f"Cannot map in_axis={axis} for BCOO array with n_batch={mat.n_batch}. in_axes for batched BCOO operations "
            "must correspond to a batch dimension."
        )
    axis %= mat.ndim
    data, indices = (part(x, axis) if x.shape[axis] == mat.shape[axis] else lax.squeeze(x, (axis,)) for x in mat._bufs)
    return BCOO((data, indices), **mat._info._replace(shape=mat.shape[:axis] + mat.shape[axis + 1 :])._asdict())


def _whole(whole, size, mat, axis):
    """The BCOO with the mapped axis as a new batch axis, as vmap returns it."""
    if axis is None:
        return BCOO((whole(size, mat.data, None), whole(size, mat.indices, None)), **mat._info._asdict())
    if not 0 <= axis <= mat.n_batch:
        raise ValueError(f"BCOO: out_axes={axis} of vmap for n_batch={mat.n_batch}, it must become a batch axis")
    buffers = whole(size, mat.data, axis), whole(size, mat.indices, axis)
    return BCOO(buffers, **mat._info._replace(shape=(*mat.shape[:axis], size, *mat.shape[axis:]))._asdict())


register_vmappable(BCOO, int, int, _element, _whole, None)
