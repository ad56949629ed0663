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
from minijax.api.vmap import register_vmappable
from minijax.base import dtypes, tree
from minijax.base.dtypes import DTypeLike
from minijax.base.faces import listing
from minijax.base.naming import known_as
from minijax.experimental.sparse._base import JAXSparse, operator
from minijax.experimental.sparse.bcoo_array import BCOO, Buffer
from minijax.experimental.sparse.bcoo_dense import bcoo_extract_p, bcoo_fromdense_p, bcoo_todense_p
from minijax.experimental.sparse.bcoo_dot import as_tuples, batched_numbers, bcoo_dot_general_p, product_type
from minijax.experimental.sparse.bcoo_layout import bcoo_eliminate_zeros as eliminated, bcoo_sum_duplicates
from minijax.experimental.sparse.bcoo_shapes import bcoo_broadcast_in_dim, bcoo_concatenate
from minijax.experimental.sparse.composed import Composed, batch_axis_in_front
from minijax.experimental.sparse.csr import _csr_to_coo, pointers
from minijax.experimental.sparse.util import Shape, SparseInfo, count_stored, nfold_vmap
from minijax.interop.introspection import concrete_or_error
from minijax.ir.primitive import is_undefined_primal
from minijax.ir.types import ShapedArray, Zero, typeof
from minijax.run.array import Array, ArrayLike

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
    for name, buffer in (("data", data), ("indices", indices), ("indptr", indptr)):
        batch = tuple(buffer.shape[:n_batch])
        if not all(b in (1, n) for b, n in zip(batch, shape, strict=False)):
            raise ValueError(f"{name} batch dimensions not compatible for {name}.shape={buffer.shape}, shape={shape}")
    if tuple(data.shape[n_batch:]) != (nse, *shape[n_batch + 2 :]):
        raise ValueError(f"Invalid data.shape={data.shape} for nse={nse}, n_batch={n_batch}, n_dense={n_dense}")
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


def _in_front(name: str, axis: Any, buffers: Sequence, dims: Sequence) -> list:
    n_batch = typeof(buffers[-1]).ndim - 1 - (dims[len(buffers) - 1] is not None)
    return [batch_axis_in_front(name, x, d, n_batch) for x, d in zip(buffers, dims, strict=False)]


class ToDense(Composed):
    """Converts (data, indices, indptr) to a dense array."""

    name = "bcsr_todense"

    def infer(self, data, indices, indptr, *, spinfo):
        validated(data, indices, indptr, spinfo.shape)
        return [ShapedArray(spinfo.shape, data.dtype)]

    def compute(self, data, indices, indptr, *, spinfo):
        return [bcoo_todense_p.bind(data, coordinates(indices, indptr), spinfo=SparseInfo(spinfo.shape))]

    def jvp(self, primals, tangents, *, spinfo):
        pushed = lambda t, data, *others, spinfo: self.bind(t, *others, spinfo=spinfo)  # noqa: E731
        return self.jvp_by_parts((pushed, None, None), primals, tangents, dict(spinfo=spinfo))

    def transpose(self, cts, data, indices, indptr, *, spinfo):
        if is_undefined_primal(indices) or is_undefined_primal(indptr):
            raise ValueError("bcsr_todense: cannot be transposed with respect to indices")
        (ct,) = cts
        return [Zero(data.aval) if type(ct) is Zero else bcsr_extract_p.bind(indices, indptr, ct), None, None]

    def batch(self, axis, operands, dims, *, spinfo):
        buffers = _in_front(self.name, axis, operands, dims)
        return [self.bind(*buffers, spinfo=spinfo._replace(shape=(axis.size, *spinfo.shape)))], [0]


class Extract(Composed):
    """The elements of an array at the indices of a BCSR."""

    name = "bcsr_extract"

    def infer(self, indices, indptr, arr):
        n_batch = indices.ndim - 1
        return [ShapedArray((*arr.shape[:n_batch], indices.shape[-1], *arr.shape[n_batch + 2 :]), arr.dtype)]

    def compute(self, indices, indptr, arr):
        return [bcoo_extract_p.bind(coordinates(indices, indptr), arr, assume_unique=True)]

    def jvp(self, primals, tangents):
        pushed = lambda t, indices, indptr, arr: self.bind(indices, indptr, t)  # noqa: E731
        return self.jvp_by_parts((None, None, pushed), primals, tangents, {})

    def transpose(self, cts, indices, indptr, arr):
        if not is_undefined_primal(arr):
            raise ValueError("bcsr_extract: cannot be transposed with respect to indices")
        (ct,) = cts
        if type(ct) is Zero:
            return [None, None, Zero(arr.aval)]
        return [None, None, bcsr_todense_p.bind(ct, indices, indptr, spinfo=SparseInfo(arr.aval.shape))]

    def batch(self, axis, operands, dims):
        indices, indptr, arr = operands
        first, second = _in_front(self.name, axis, (indices, indptr), dims)
        arr = batch_axis_in_front(self.name, arr, dims[2], typeof(indices).ndim)
        arr = jnp.broadcast_to(arr, (axis.size, *typeof(arr).shape[1:]))
        return [self.bind(first, second, arr)], [0]


class FromDense(Composed):
    """The data, columns and row pointers of the nonzero elements of an array, padded to `nse`."""

    name = "bcsr_fromdense"
    multiple_results = True

    def infer(self, mat, *, nse, n_batch, n_dense, index_dtype):
        batch, dense = mat.shape[:n_batch], mat.shape[n_batch + 2 :]
        index = dtypes.canonicalize_dtype(index_dtype)
        shapes = (*batch, nse), (*batch, mat.shape[n_batch] + 1)
        return [ShapedArray((*batch, nse, *dense), mat.dtype), *(ShapedArray(s, index) for s in shapes)]

    def compute(self, mat, *, n_batch, **params):
        data, indices = bcoo_fromdense_p.bind(mat, n_batch=n_batch, **params)
        return [data, *compressed(indices, mat.shape[n_batch])]

    def jvp(self, primals, tangents, **params):
        data, indices, indptr = self.bind_all(primals, params)
        (t,) = tangents
        pushed = Zero.from_primal_value(data) if type(t) is Zero else bcsr_extract_p.bind(indices, indptr, t)
        return [data, indices, indptr], [pushed, *map(Zero.from_primal_value, (indices, indptr))]

    def batch(self, axis, operands, dims, *, n_batch, **params):
        (d,) = dims
        if d > n_batch:
            raise ValueError(f"bcsr_fromdense: Expected 0 < bdim <= n_batch; got bdim={d}, n_batch={n_batch}")
        return self.bind(operands[0], n_batch=n_batch + 1, **params), [d] * 3


class DotGeneral(Composed):
    """The product of a BCSR and an array."""

    name = "bcsr_dot_general"

    def infer(self, data, indices, indptr, rhs, *, dimension_numbers, preferred_element_type, lhs_spinfo):
        validated(data, indices, indptr, lhs_spinfo.shape)
        return [product_type(ShapedArray(lhs_spinfo.shape, data.dtype), rhs, dimension_numbers, preferred_element_type)]

    def compute(self, data, indices, indptr, rhs, **params):
        return [bcoo_dot_general_p.bind(data, coordinates(indices, indptr), rhs, **params)]

    def jvp(self, primals, tangents, **params):
        by_data = lambda t, data, indices, indptr, rhs, **how: self.bind(t, indices, indptr, rhs, **how)  # noqa: E731
        by_rhs = lambda t, data, indices, indptr, rhs, **how: self.bind(data, indices, indptr, t, **how)  # noqa: E731
        return self.jvp_by_parts((by_data, None, None, by_rhs), primals, tangents, params)

    def transpose(self, cts, data, indices, indptr, rhs, **params):
        by_data, _, by_rhs = bcoo_dot_general_p.transpose(cts, data, coordinates(indices, indptr), rhs, **params)
        return [by_data, None, None, by_rhs]

    def batch(self, axis, operands, dims, *, lhs_spinfo, **params):
        *buffers, rhs = operands
        buffers = _in_front(self.name, axis, buffers, dims)
        info = lhs_spinfo._replace(shape=(axis.size, *lhs_spinfo.shape))
        params["dimension_numbers"], out = batched_numbers(dims[3], params["dimension_numbers"])
        return [self.bind(*buffers, rhs, lhs_spinfo=info, **params)], [out]


bcsr_todense_p, bcsr_extract_p, bcsr_fromdense_p, bcsr_dot_general_p = ToDense(), Extract(), FromDense(), DotGeneral()


# ---- the class ---------------------------------------------------------------------------------------


@tree.register_pytree_node_class
@known_as("jax.experimental.sparse.bcsr.BCSR")
class BCSR(JAXSparse):
    """A sparse array in batched compressed row format.

    `args` are data of shape (*batch, nse, *dense), columns of shape (*batch, nse), and row pointers of shape
    (*batch, rows + 1). Batch axes of size one are broadcast.
    """

    data: Any
    indices: Any
    indptr: Any
    nse = property(lambda self: self.indices.shape[-1])
    dtype = property(lambda self: self.data.dtype)
    n_batch = property(lambda self: self.indices.ndim - 1)
    n_sparse = property(lambda self: 2)
    n_dense = property(lambda self: self.data.ndim - self.indices.ndim)
    indices_sorted: bool
    unique_indices: bool

    def __init__(
        self,
        args: tuple[Any, Any, Any],
        *,
        shape: Sequence[int],
        indices_sorted: bool = False,
        unique_indices: bool = False,
    ):
        self.data, self.indices, self.indptr = map(jnp.asarray, args)
        self.indices_sorted, self.unique_indices = indices_sorted, unique_indices
        super().__init__(args, shape=shape)
        validated(self.data, self.indices, self.indptr, self.shape)

    _info = property(lambda self: SparseInfo(self.shape, self.indices_sorted, self.unique_indices))
    _bufs = property(lambda self: (self.data, self.indices, self.indptr))
    _sparse_shape = property(lambda self: self.shape[self.n_batch : self.n_batch + 2])

    def _layout(self):
        sizes = {"n_batch": self.n_batch, "n_dense": self.n_dense}
        return "".join(f", {name}={n}" for name, n in sizes.items() if n)

    def tree_flatten(self) -> tuple:
        return self._bufs, self._info._asdict()

    @classmethod
    def tree_unflatten(cls, aux_data, children):
        self = object.__new__(cls)
        self.data, self.indices, self.indptr = children
        if aux_data.keys() != {"shape", "indices_sorted", "unique_indices"}:
            raise ValueError(f"BCSR.tree_unflatten: invalid {aux_data=}")
        vars(self).update(aux_data)
        return self

    @classmethod
    def fromdense(
        cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32, n_dense: int = 0, n_batch: int = 0
    ) -> BCSR:
        """Converts a dense array. `nse` is the number of nonzero elements by default; traced arrays require it."""
        return bcsr_fromdense(mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch)

    @classmethod
    def from_bcoo(cls, arr: BCOO) -> BCSR:
        """Converts a BCOO with two sparse axes, else raises NotImplementedError. Sorts its indices."""
        if arr.n_sparse != 2:
            raise NotImplementedError(f"BCSR.from_bcoo requires n_sparse=2; got n_sparse={arr.n_sparse}")
        arr = arr if arr.indices_sorted else arr.sort_indices()
        buffers = arr.data, *compressed(arr.indices, arr.shape[arr.n_batch])
        return cls(buffers, shape=arr.shape, indices_sorted=arr.indices_sorted, unique_indices=arr.unique_indices)

    @classmethod
    def from_scipy_sparse(cls, mat: Any, *, index_dtype: Any = None, n_dense: int = 0, n_batch: int = 0) -> BCSR:
        """Converts a scipy.sparse matrix. Raises NotImplementedError for batch and dense axes."""
        if n_dense or n_batch:
            raise NotImplementedError("BCSR.from_scipy_sparse: n_dense and n_batch must be zero")
        mat = mat.tocsr()
        places = (jnp.asarray(x).astype(index_dtype or jnp.int32) for x in (mat.indices, mat.indptr))
        return cls((jnp.asarray(mat.data), *places), shape=mat.shape)

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

    def todense(self) -> Array:
        """Converts to a dense array."""
        return bcsr_todense(self)

    def transpose(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("Transpose is not implemented.")

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCSR:
        """Adds elements of equal indices. `nse`, of the result, is required under transformations."""
        return (bcsr_eliminate_zeros if remove_zeros else bcsr_sum_duplicates)(self, nse=nse)


for _name in ("__getitem__", "__matmul__", "__rmatmul__"):
    setattr(BCSR, _name, operator(_name))


def _element(part, index, mat, axis):
    """The BCSR without the mapped batch axis, as vmap passes it to a function."""
    if axis is None:
        return mat
    if not -mat.ndim <= axis < mat.ndim or axis % mat.ndim >= mat.n_batch:
        raise ValueError(
            f"Cannot map in_axis={axis} for BCSR array with n_batch={mat.n_batch}. in_axes for batched BCSR operations "
            "must correspond to a batched dimension."
        )
    axis %= mat.ndim
    buffers = (part(x, axis) if x.shape[axis] == mat.shape[axis] else lax.squeeze(x, (axis,)) for x in mat._bufs)
    return BCSR(tuple(buffers), **mat._info._replace(shape=mat.shape[:axis] + mat.shape[axis + 1 :])._asdict())


def _whole(whole, size, mat, axis):
    """The BCSR with the mapped axis as a new batch axis, as vmap returns it."""
    if axis is not None and not 0 <= axis <= mat.n_batch:
        raise ValueError(f"BCSR: out_axes={axis} of vmap for n_batch={mat.n_batch}, it must become a batch axis")
    shape = mat.shape if axis is None else (*mat.shape[:axis], size, *mat.shape[axis:])
    buffers = tuple(whole(size, x, axis) for x in mat._bufs)
    return BCSR(buffers, **mat._info._replace(shape=shape)._asdict())


register_vmappable(BCSR, int, int, _element, _whole, None)


# ---- functions ---------------------------------------------------------------------------------------


def bcsr_todense(mat: BCSR) -> Array:
    """Converts a BCSR to a dense array."""
    return bcsr_todense_p.bind(*mat._bufs, spinfo=mat._info)


def bcsr_fromdense(
    mat: ArrayLike, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0, index_dtype: DTypeLike = jnp.int32
) -> BCSR:
    """Converts a dense array to a BCSR, with `n_batch` leading batch axes and `n_dense` trailing dense axes.

    `nse` elements are stored for each batch, by default as many as are nonzero; traced arrays require a number.
    """
    x: Any = jnp.asarray(mat)
    if x.ndim - n_batch - n_dense != 2:
        raise ValueError("bcsr_fromdense: must have 2 sparse dimensions.")
    nse = count_stored(x, n_batch, n_dense) if nse is None else nse
    stored = concrete_or_error(operators.index, nse, "bcsr_fromdense: traced code needs a number of stored elements")
    params = dict(nse=stored, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype)
    return BCSR(bcsr_fromdense_p.bind(x, **params), shape=x.shape)


def bcsr_extract(indices: ArrayLike, indptr: ArrayLike, mat: ArrayLike) -> Array:
    """The elements of an array at the indices of a BCSR."""
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
    """`lax.dot_general` of a BCSR and an array; `precision` is ignored.

    Raises NotImplementedError for `out_sharding` and for a sparse right operand.
    """
    if out_sharding is not None or isinstance(rhs, JAXSparse):
        raise NotImplementedError("bcsr_dot_general currently implemented for BCSR lhs and ndarray rhs.")
    if not isinstance(lhs, BCSR):
        return lax.dot_general(lhs, rhs, dimension_numbers, preferred_element_type=preferred_element_type)
    preferred: Any = preferred_element_type
    if preferred is not None:
        preferred = dtypes.check_and_canonicalize_user_dtype(preferred, "dot_general")
    params: Any = dict(dimension_numbers=as_tuples(dimension_numbers), preferred_element_type=preferred)
    return bcsr_dot_general_p.bind(*lhs._bufs, jnp.asarray(rhs), lhs_spinfo=lhs._info, **params)


def bcsr_broadcast_in_dim(
    mat: BCSR, *, shape: Shape, broadcast_dimensions: Sequence[int], sharding: Any = None
) -> BCSR:
    """`lax.broadcast_in_dim` of a BCSR."""
    wide = bcoo_broadcast_in_dim(mat.to_bcoo(), shape=shape, broadcast_dimensions=broadcast_dimensions)
    return BCSR.from_bcoo(wide)


def bcsr_concatenate(operands: Sequence[BCSR], *, dimension: int) -> BCSR:
    """`lax.concatenate` of BCSRs."""
    return BCSR.from_bcoo(bcoo_concatenate([mat.to_bcoo() for mat in operands], dimension=dimension))


def bcsr_sum_duplicates(mat: BCSR, nse: int | None = None) -> BCSR:
    """Adds elements of equal indices and stores `nse` of them."""
    return BCSR.from_bcoo(bcoo_sum_duplicates(mat.to_bcoo(), nse=nse))


def bcsr_eliminate_zeros(mat: BCSR, nse: int | None = None) -> BCSR:
    """Adds elements of equal indices and removes zeros."""
    return BCSR.from_bcoo(eliminated(mat.to_bcoo(), nse=nse))
