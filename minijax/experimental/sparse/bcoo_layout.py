"""Reordering a BCOO: transposing, sorting, summing duplicates, changing the numbers of batch and dense axes."""

import math
import operator
from collections.abc import Sequence
from typing import Any

import minijax.numpy as jnp
from minijax import lax
from minijax.api.vmap import vmap
from minijax.base import errors
from minijax.experimental.sparse import util
from minijax.experimental.sparse.bcoo_array import BCOO, BCOOProperties, validated
from minijax.experimental.sparse.matrices import Batched
from minijax.experimental.sparse.util import Shape, SparseInfo, batch_sizes, inverse, is_padding, nfold_vmap, row
from minijax.ir.concrete import concrete_value
from minijax.ir.types import ShapedArray, Zero, typeof
from minijax.transforms.jvp import jvp_flat

_TRACED_NSE = (
    "bcoo_sum_duplicates: nse must be specified when using the function within jit, vmap, and other transformations "
    "requiring abstract evaluation."
)


class OfBuffers(Batched):
    """An operation on data and indices that returns data and indices and is linear in data."""

    multiple_results = True

    def jvp(self, primals, tangents, **params):
        if type(tangents[0]) is Zero:
            return super().jvp(primals, tangents, **params)
        data, indices = primals
        (out, new_indices), (t, _) = jvp_flat(lambda d: self.compute(d, indices, **params), [data], tangents[:1])
        return [out, new_indices], [t, Zero.from_primal_value(new_indices)]

    def batch(self, axis, operands, dims, *, spinfo, **params):
        buffers, spinfo = self.batched(axis, operands, dims, spinfo)
        data, indices = self.bind(*buffers, spinfo=spinfo, **params)
        # Indices that are unmapped in the operands are unmapped in the result.
        return ([data, lax.squeeze(indices, (0,))], [0, None]) if dims[1] is None else ([data, indices], [0, 0])


# ---- transpose --------------------------------------------------------------------------------------


def _parts(permutation: Sequence[int], props: BCOOProperties) -> tuple[list, list, list]:
    """Splits a permutation into those of the batch, the sparse and the dense axes."""
    bounds = 0, props.n_batch, props.n_batch + props.n_sparse, len(permutation)
    parts = []
    for kind, low, high in zip(("batch", "sparse", "dense"), bounds, bounds[1:], strict=False):
        part = list(permutation[low:high])
        if not all(low <= axis < high for axis in part):
            n_batch, n_dense = props.n_batch, props.n_dense
            kind, sizes = ("batch", f"{n_batch=}") if kind == "batch" else ("dense", f"{n_dense=}")
            raise NotImplementedError(
                f"transpose permutation cannot permute {kind} axes with non-{kind} axes; got permutation "
                f"{tuple(permutation)}, with {sizes}."
            )
        parts.append([axis - low for axis in part])
    return tuple(parts)  # pyright: ignore[reportReturnType]


class Transpose(OfBuffers):
    name = "bcoo_transpose"
    jvp = Batched.jvp

    def orders(self, data, indices, permutation, spinfo):
        """The permutations of the axes of data, of the axes of indices, and of the columns of indices."""
        props = validated(data, indices, spinfo.shape)
        batch, sparse, dense = _parts(permutation, props)
        n = props.n_batch
        return [*batch, n, *[n + 1 + axis for axis in dense]], [*batch, n, n + 1], sparse

    def infer(self, data, indices, *, permutation, spinfo):
        first, second, _ = self.orders(data, indices, permutation, spinfo)
        permuted = lambda aval, order: ShapedArray(tuple(aval.shape[axis] for axis in order), aval.dtype)  # noqa: E731
        return [permuted(data, first), permuted(indices, second)]

    def compute(self, data, indices, *, permutation, spinfo):
        first, second, columns = self.orders(data, indices, permutation, spinfo)
        return [jnp.transpose(data, first), jnp.transpose(indices[..., columns], second)]

    def transpose(self, cts, data, indices, *, permutation, spinfo):
        ct = cts[0]
        if type(ct) is Zero:
            return [Zero(data.aval), None]
        shape = tuple(spinfo.shape[axis] for axis in permutation)
        _, second, _ = self.orders(data.aval, typeof(indices), permutation, spinfo)
        zeros = jnp.zeros([typeof(indices).shape[axis] for axis in second], typeof(indices).dtype)
        return [self.bind(ct, zeros, permutation=inverse(permutation), spinfo=SparseInfo(shape))[0], None]

    def batch(self, axis, operands, dims, *, permutation, spinfo):
        return super().batch(axis, operands, dims, spinfo=spinfo, permutation=(0, *[p + 1 for p in permutation]))


bcoo_transpose_p = Transpose()


def bcoo_transpose(mat: BCOO, *, permutation: Sequence[int]) -> BCOO:
    """Permutes the axes.

    Raises TypeError unless it is a permutation of the axes, NotImplementedError if it exchanges batch, sparse and dense
    axes.

    Example:
        >>> x = jax.experimental.sparse.BCOO.fromdense(jnp.array([[0, 5], [7, 0]]))
        >>> jax.experimental.sparse.bcoo_transpose(x, permutation=(1, 0)).todense()
        Array([[0, 7],
               [5, 0]], dtype=int32)
    """
    permutation = tuple(map(operator.index, permutation))
    if sorted(permutation) != list(range(mat.ndim)):
        raise TypeError(
            f"transpose permutation isn't a permutation of operand dimensions, got permutation {permutation} for shape "
            f"{mat.shape}."
        )
    buffers: Any = mat._bufs
    if permutation != tuple(range(mat.ndim)):
        buffers = bcoo_transpose_p.bind(*buffers, permutation=permutation, spinfo=mat._info)
    shape = tuple(mat.shape[axis] for axis in permutation)
    sparse = range(mat.n_batch, mat.n_batch + mat.n_sparse)
    still_sorted = mat.indices_sorted and all(permutation[k] == k for k in sparse)
    return BCOO(buffers, shape=shape, indices_sorted=still_sorted, unique_indices=mat.unique_indices)


# ---- sort -------------------------------------------------------------------------------------------


class SortIndices(OfBuffers):
    name = "bcoo_sort_indices"

    def infer(self, data, indices, *, spinfo):
        n_batch = indices.ndim - 2
        return [ShapedArray((*batch_sizes((data, indices), n_batch), *data.shape[n_batch:]), data.dtype), indices]

    def compute(self, data, indices, *, spinfo):
        props = validated(data, indices, spinfo.shape)
        if not props.n_sparse:
            return [data, indices]

        def sorted_order(i):
            return jnp.lexsort(tuple(i[:, k] for k in reversed(range(props.n_sparse))))

        order = nfold_vmap(sorted_order, props.n_batch, broadcasted=False)(indices)
        indices = nfold_vmap(lambda i, o: i[o], props.n_batch)(indices, order)
        return [nfold_vmap(lambda d, o: d[o], props.n_batch)(data, order), indices]


bcoo_sort_indices_p = SortIndices()


def bcoo_sort_indices(mat: BCOO) -> BCOO:
    """Sorts the stored elements by their indices.

    Example:
        >>> x = jax.experimental.sparse.BCOO((jnp.array([1, 2]), jnp.array([[1], [0]])), shape=(2,))
        >>> jax.experimental.sparse.bcoo_sort_indices(x).data
        Array([2, 1], dtype=int32)
    """
    buffers: Any = bcoo_sort_indices_p.bind(*mat._bufs, spinfo=mat._info)
    return BCOO(buffers, shape=mat.shape, indices_sorted=True, unique_indices=mat.unique_indices)


# ---- duplicates -------------------------------------------------------------------------------------


def unique_rows(indices: Any, sizes: Shape) -> tuple[Any, Any, Any]:
    """The unique rows of (nse, n_sparse) indices in order, then padding.

    Also the position of each row among the unique ones, and the number of those that are not padding.
    """
    nse, n_sparse = typeof(indices).shape
    if not n_sparse or not nse:
        return indices, jnp.zeros(nse, int), jnp.array(min(nse, 1))
    padding = row(sizes, indices)
    indices = jnp.where(is_padding(indices, sizes)[:, None], padding, indices)
    order = jnp.lexsort(tuple(indices[:, k] for k in reversed(range(n_sparse))))
    ordered = indices[order]
    is_first = jnp.concatenate([jnp.ones(1, bool), (ordered[1:] != ordered[:-1]).any(-1)])
    rank = jnp.cumsum(is_first) - 1
    rows = jnp.broadcast_to(padding, indices.shape).at[rank].set(ordered)
    mapping = jnp.zeros_like(rank).at[order].set(rank)
    return rows, mapping, (is_first & ~is_padding(ordered, sizes)).sum()


class SumDuplicates(OfBuffers):
    name = "bcoo_sum_duplicates"

    def infer(self, data, indices, *, spinfo, nse):
        if nse is None:
            raise ValueError(_TRACED_NSE)
        props = validated(data, indices, spinfo.shape)
        data_shape = (*batch_sizes((data, indices), props.n_batch), nse, *data.shape[props.n_batch + 1 :])
        return [
            ShapedArray(data_shape, data.dtype),
            ShapedArray((*indices.shape[: props.n_batch], nse, props.n_sparse), indices.dtype),
        ]

    def compute(self, data, indices, *, spinfo, nse):
        props = validated(data, indices, spinfo.shape)
        sizes = spinfo.shape[props.n_batch :][: props.n_sparse]
        rows, mapping, _ = nfold_vmap(lambda i: unique_rows(i, sizes), props.n_batch, broadcasted=False)(indices)
        kept = rows[..., :nse, :]
        shape = (*rows.shape[:-2], max(nse - props.nse, 0), props.n_sparse)
        missing = jnp.broadcast_to(row(sizes, rows), shape)
        summed = lambda d, m: jnp.zeros((nse, *d.shape[1:]), d.dtype).at[m].add(d)  # noqa: E731
        return [nfold_vmap(summed, props.n_batch)(data, mapping), jnp.concatenate([kept, missing], -2)]


bcoo_sum_duplicates_p = SumDuplicates()


def bcoo_sum_duplicates(mat: BCOO, nse: int | None = None) -> BCOO:
    """Adds elements of equal indices and sorts them by their indices.

    `nse` elements are stored, by default as many as are needed. Raises ValueError for traced arrays without `nse`.

    Example:
        >>> x = jax.experimental.sparse.BCOO((jnp.array([1, 2]), jnp.array([[0], [0]])), shape=(2,))
        >>> jax.experimental.sparse.bcoo_sum_duplicates(x).data
        Array([3], dtype=int32)
    """
    if nse is None:
        nse = _count_unique(mat)
    buffers: Any = bcoo_sum_duplicates_p.bind(*mat._bufs, spinfo=mat._info, nse=operator.index(nse))
    return BCOO(buffers, shape=mat.shape, indices_sorted=True, unique_indices=True)


def _count_unique(mat: BCOO) -> int:
    if concrete_value(mat.indices) is None or concrete_value(mat.data) is None:
        raise ValueError(_TRACED_NSE)
    if not mat.n_sparse:
        return 1
    counts = nfold_vmap(lambda i: unique_rows(i, mat._sparse_shape)[2], mat.n_batch, broadcasted=False)(mat.indices)
    return int(counts.max()) if counts.size else 0


def bcoo_eliminate_zeros(mat: BCOO, nse: int | None = None) -> BCOO:
    """As `bcoo_sum_duplicates`, and removes elements that are zero in all batches that share their indices."""
    n = mat.n_batch
    zero = (mat.data == 0).all(tuple(range(n + 1, n + 1 + mat.n_dense)))
    shared = tuple(k for k in range(n) if mat.indices.shape[k] == 1 != mat.data.shape[k])
    zero = zero.all(shared, keepdims=True)
    padded = lambda z, i: jnp.where(z[:, None], row(mat._sparse_shape, i), i)  # noqa: E731
    indices = nfold_vmap(padded, n)(zero, mat.indices)
    return bcoo_sum_duplicates(BCOO((mat.data, indices), shape=mat.shape), nse=nse)


# ---- layout -----------------------------------------------------------------------------------------


def bcoo_update_layout(
    mat: BCOO, *, n_batch: int | None = None, n_dense: int | None = None, on_inefficient: str | None = "error"
) -> BCOO:
    """Changes the numbers of batch and dense axes.

    Raises SparseEfficiencyError if that stores more zeros, unless `on_inefficient` is 'warn' or None.

    Example:
        >>> x = jax.experimental.sparse.BCOO.fromdense(jnp.eye(3))
        >>> jax.experimental.sparse.bcoo_update_layout(x, n_batch=1, on_inefficient=None).data.shape
        (3, 3)
    """
    n_batch = int(operator.index(mat.n_batch if n_batch is None else n_batch))
    n_dense = int(operator.index(mat.n_dense if n_dense is None else n_dense))
    if (n_batch, n_dense) == (mat.n_batch, mat.n_dense):
        return mat
    for name, n in (("n_batch", n_batch), ("n_dense", n_dense)):
        if n < 0:
            raise ValueError(f"{name} must be non-negative; got {n}")
    if n_batch + n_dense > mat.ndim:
        raise ValueError(f"sum of {n_batch=} and {n_dense=} cannot be larger than mat.ndim={mat.ndim}.")
    end = mat.ndim - mat.n_dense
    converted = dict(n_dense=mat.shape[mat.ndim - n_dense : end], n_batch=mat.shape[mat.n_batch : n_batch])
    for name, have, want in (("n_dense", mat.n_dense, n_dense), ("n_batch", mat.n_batch, n_batch)):
        if math.prod(converted[name]) > 1:
            _inefficient(f"increasing {name} from {have} to {want}", mat.shape, on_inefficient)
    if n_dense < mat.n_dense:
        mat = _from_dense_axes(mat, mat.n_dense - n_dense)
    if n_batch < mat.n_batch:
        mat = _from_batch_axes(mat, mat.n_batch - n_batch)
    if n_dense > mat.n_dense:
        mat = _to_dense_axes(mat, n_dense - mat.n_dense)
    if n_batch > mat.n_batch:
        mat = _to_batch_axes(mat, n_batch - mat.n_batch)
    return mat


def _inefficient(change: str, shape: Shape, on_inefficient: str | None) -> None:
    message = f"For matrix of shape {shape}, {change} results in inefficient storage."
    if on_inefficient == "error":
        raise util.SparseEfficiencyError(
            f"{message} To disable this error, set the on_inefficient argument of bcoo_update_layout to 'warn' or None."
        )
    if on_inefficient == "warn":
        errors.warn(message, util.SparseEfficiencyWarning)


def grid(sizes: Sequence[int], dtype: Any) -> Any:
    """The indices of all elements of an array of these sizes in order, one a row."""
    axes = jnp.meshgrid(*[jnp.arange(n, dtype=dtype) for n in sizes], indexing="ij")
    return jnp.stack([axis.ravel() for axis in axes], -1)


def _from_dense_axes(mat: BCOO, count: int) -> BCOO:
    """Makes the first `count` dense axes sparse."""
    data, indices, n = mat.data, mat.indices, mat.n_batch
    sizes = data.shape[n + 1 : n + 1 + count]
    total = math.prod(sizes)
    data = data.reshape(*data.shape[:n], mat.nse * total, *data.shape[n + 1 + count :])
    kept = jnp.broadcast_to(indices[..., None, :], (*indices.shape[:-1], total, indices.shape[-1]))
    new_columns = jnp.broadcast_to(grid(sizes, indices.dtype), (*indices.shape[:-1], total, count))
    joined = jnp.concatenate([kept, new_columns], -1)
    indices = joined.reshape(*indices.shape[:n], mat.nse * total, mat.n_sparse + count)
    return BCOO((data, indices), shape=mat.shape)


def _from_batch_axes(mat: BCOO, count: int) -> BCOO:
    """Makes the last `count` batch axes sparse."""
    n, nse = mat.n_batch - count, mat.nse
    sizes = mat.shape[n : n + count]
    total = math.prod(sizes)
    data = jnp.broadcast_to(mat.data, (*mat.data.shape[:n], *sizes, *mat.data.shape[n + count :]))
    indices = jnp.broadcast_to(mat.indices, (*mat.indices.shape[:n], *sizes, *mat.indices.shape[n + count :]))
    data = data.reshape(*data.shape[:n], total * nse, *data.shape[n + count + 1 :])
    indices = indices.reshape(*indices.shape[:n], total, nse, mat.n_sparse)
    new_columns = jnp.broadcast_to(grid(sizes, indices.dtype)[:, None], (*indices.shape[:-1], count))
    indices = jnp.concatenate([new_columns, indices], -1).reshape(*indices.shape[:n], total * nse, count + mat.n_sparse)
    return BCOO((data, indices), shape=mat.shape)


def _to_dense_axes(mat: BCOO, count: int) -> BCOO:
    """Makes the last `count` sparse axes dense."""
    n_sparse = mat.n_sparse - count
    start = mat.n_batch + n_sparse
    sizes = mat.shape[start : start + count]

    def scatter(d, i):
        return jnp.zeros((*sizes, *d.shape), d.dtype).at[tuple(i[n_sparse + k] for k in range(count))].set(d)

    data = nfold_vmap(vmap(scatter), mat.n_batch)(mat.data, mat.indices)
    indices = mat.indices[..., :n_sparse]
    return BCOO((data, indices), shape=mat.shape)


def _to_batch_axes(mat: BCOO, count: int) -> BCOO:
    """Makes the first `count` sparse axes batch axes: an element is stored in its batch and is padding in others."""
    n, nse = mat.n_batch, mat.nse
    sizes, left = mat.shape[n : n + count], mat.shape[n + count : n + mat.n_sparse]

    def scatter(d, i):
        places = (*(i[:, k] for k in range(count)), jnp.arange(nse))
        return (
            jnp.zeros((*sizes, *d.shape), d.dtype).at[places].set(d),
            jnp.broadcast_to(jnp.array(left, i.dtype), (*sizes, nse, len(left))).at[places].set(i[:, count:]),
        )

    data, indices = nfold_vmap(scatter, n)(mat.data, mat.indices)
    return BCOO((data, indices), shape=mat.shape)
