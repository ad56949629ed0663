"""Products of BCOO, and sampled products of dense arrays at the indices of a BCOO."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import minijax.numpy as jnp
from minijax import lax
from minijax.api.autodiff import linear_transpose
from minijax.api.jit import eval_shape
from minijax.api.vmap import vmap
from minijax.base import dtypes
from minijax.experimental.sparse.bcoo_array import BCOO, validated
from minijax.experimental.sparse.bcoo_dense import OfFormat, bcoo_todense_p, sum_of_batches
from minijax.experimental.sparse.bcoo_layout import bcoo_sum_duplicates_p, bcoo_transpose_p, bcoo_update_layout
from minijax.experimental.sparse.matrices import Batched, Composed
from minijax.experimental.sparse.util import SparseInfo, broadcasting_vmap, inverse, is_padding, nfold_vmap, row
from minijax.ir.primitive import is_undefined_primal
from minijax.ir.types import ShapedArray, Zero, typeof
from minijax.primitives import moving
from minijax.primitives.convert import as_type
from minijax.primitives.promote import promote_dtypes
from minijax.primitives.zeros import instantiate
from minijax.run.arrays.array import Array

Dims = tuple[tuple[tuple[int, ...], tuple[int, ...]], tuple[tuple[int, ...], tuple[int, ...]]]


def as_tuples(dimension_numbers: Any) -> Dims:
    """Dimension numbers as tuples of ints."""
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    as_ints = lambda axes: tuple(map(int, axes))  # noqa: E731
    return (as_ints(lhs_contract), as_ints(rhs_contract)), (as_ints(lhs_batch), as_ints(rhs_batch))


def remaining(ndim: int, *taken: Sequence[int]) -> tuple[int, ...]:
    """The axes that are not in any of `taken`."""
    return tuple(axis for axis in range(ndim) if not any(axis in axes for axes in taken))


def _product_dtype(lhs: Any, rhs: Any) -> Any:
    """The dtype to which the factors promote; a narrow one, which has no promotion, takes the other's dtype."""
    try:
        return dtypes.result_type(lhs.dtype, rhs.dtype)
    except dtypes.TypePromotionError:
        return max(lhs.dtype, rhs.dtype, key=lambda dtype: (dtypes.is_inexact(dtype), dtype.itemsize))


def _of_product_dtype(lhs: Any, rhs: Any) -> list:
    dtype = _product_dtype(lhs, rhs)
    return [as_type(x, dtype) for x in (lhs, rhs)]


def product_type(lhs: Any, rhs: Any, dimension_numbers: Dims, preferred: Any) -> ShapedArray:
    """The abstract value of a `dot_general` of arrays of these shapes and dtypes, after its checks."""
    dtype = _product_dtype(lhs, rhs)
    types = (ShapedArray(tuple(x.shape), dtype) for x in (lhs, rhs))
    params = dict(dimension_numbers=dimension_numbers, precision=None, preferred_element_type=preferred)
    (out,) = lax.dot_general_p.infer(*types, out_sharding=None, **params)
    return out


# ---- a BCOO and an array ----------------------------------------------------------------------------


class DotGeneral(OfFormat, Batched):
    name = "bcoo_dot_general"
    linear = (0, 2)

    def infer(self, data, *operands, dimension_numbers, preferred_element_type, lhs_spinfo):
        *index_buffers, rhs = operands
        lhs = ShapedArray(lhs_spinfo.shape, data.dtype)
        out = product_type(lhs, rhs, dimension_numbers, preferred_element_type)
        props = self.validated(data, *index_buffers, lhs_spinfo.shape)
        (contract, _), (batch, _) = dimension_numbers
        if any(axis >= props.n_batch for axis in batch):
            raise NotImplementedError(
                f"{self.name} batch dimensions must be among the batch dimensions in the sparse representation.\n"
                f"got lhs_batch={batch}, n_batch={props.n_batch}"
            )
        if any(axis >= len(lhs.shape) - props.n_dense for axis in contract):
            raise NotImplementedError(f"{self.name}: contracting over dense dimensions.")
        return [out]

    def compute(self, data, indices, rhs, *, dimension_numbers, preferred_element_type, lhs_spinfo):
        (contract, rhs_contract), (batch, rhs_batch) = dimension_numbers
        n, shape = indices.ndim - 2, lhs_spinfo.shape
        data, rhs = _of_product_dtype(data, rhs)
        partner = dict(zip((*batch, *contract), (*rhs_batch, *rhs_contract), strict=True))  # {axis of lhs: axis of rhs}
        contracted = [axis for axis in contract if axis >= n]
        order = [*sorted(axis for axis in partner if axis < n), *contracted]
        rhs = jnp.transpose(rhs, [*map(partner.__getitem__, order), *remaining(rhs.ndim, rhs_contract, rhs_batch)])
        kept = [axis for axis in range(n, n + indices.shape[-1]) if axis not in contract]

        def product(d, i, r):
            taken = tuple(i[:, axis - n] for axis in contracted)
            return _of_one_batch(d, r, i, taken, [axis - n for axis in kept], [shape[axis] for axis in kept])

        for axis in reversed(range(n)):
            product = broadcasting_vmap(product, in_axes=(0, 0, 0 if axis in partner else None))
        out = _batches_in_order(product(data, indices, rhs), shape[:n], contract, batch)
        return [out if preferred_element_type is None else out.astype(preferred_element_type)]

    def transpose(self, cts, data, indices, rhs, *, dimension_numbers, **params):
        (ct,) = cts
        if is_undefined_primal(indices) or is_undefined_primal(data) == is_undefined_primal(rhs):
            raise ValueError("bcoo_dot_general: can be transposed with respect to either data or rhs")
        if type(ct) is Zero:
            return [Zero(x.aval) if is_undefined_primal(x) else None for x in (data, indices, rhs)]
        (contract, rhs_contract), (batch, rhs_batch) = dimension_numbers
        lhs_kept = remaining(len(params["lhs_spinfo"].shape), contract, batch)
        rhs_ndim = rhs.aval.ndim if is_undefined_primal(rhs) else typeof(rhs).ndim
        rhs_kept = remaining(rhs_ndim, rhs_contract, rhs_batch)
        ct_batch, ct_lhs, ct_rhs = _ranges(len(batch), len(lhs_kept), len(rhs_kept))
        lhs_contract = [axis for _, axis in sorted(zip(rhs_contract, contract, strict=True))]
        order = (*batch, *lhs_kept, *lhs_contract)
        n, end = typeof(indices).ndim - 2, typeof(indices).ndim - 2 + typeof(indices).shape[-1]
        keeps_layout = all((k < n) == (axis < n) and (k < end) == (axis < end) for k, axis in enumerate(order))
        if not keeps_layout or (is_undefined_primal(rhs) and end < len(order)):
            return self.transposed(ct, (data, indices, rhs), dimension_numbers=dimension_numbers, **params)
        if is_undefined_primal(rhs):
            ordered = [axis for _, axis in sorted(zip(contract, rhs_contract, strict=True))]
            out = self.bind(data, indices, ct, dimension_numbers=((lhs_kept, ct_lhs), (batch, ct_batch)), **params)
            order = [*rhs_batch, *ordered, *rhs_kept]
            return [None, None, lax.transpose(out, inverse(order)).astype(rhs.aval.dtype)]
        inner = ((ct_rhs, rhs_kept), (ct_batch, rhs_batch))
        return [self._data_cotangent(ct, rhs, indices, data.aval, order, inner, params["lhs_spinfo"]), None, None]

    @staticmethod
    def _data_cotangent(ct, rhs, indices, aval, order, dimension_numbers, spinfo):
        """The cotangent of data of type `aval`: the product `ct @ rhs`, whose axes are in `order`, at the indices."""
        n_batch, nse = typeof(indices).ndim - 2, typeof(indices).shape[-2]
        empty = jnp.empty((1,) * n_batch + (nse,) + aval.shape[n_batch + 1 :], aval.dtype)
        is_permuted = order != tuple(range(len(order)))
        n_sparse = typeof(indices).shape[-1]
        sizes = (*spinfo.shape[:n_batch], *[1] * n_sparse, *spinfo.shape[n_batch + n_sparse :])
        if is_permuted:
            indices = bcoo_transpose_p.bind(empty, indices, permutation=order, spinfo=SparseInfo(sizes))[1]
        out = bcoo_dot_general_sampled_p.bind(ct, rhs, indices, dimension_numbers=dimension_numbers)
        if is_permuted:
            shape = tuple(sizes[axis] for axis in order)
            out = bcoo_transpose_p.bind(out, indices, permutation=inverse(order), spinfo=SparseInfo(shape))[0]
        return sum_of_batches(out, aval.shape).astype(aval.dtype)

    def batch(self, axis, operands, dims, *, lhs_spinfo, **params):
        buffers, info = self.batched(axis, operands[:-1], dims[:-1], lhs_spinfo)
        params["dimension_numbers"], out = batched_numbers(dims[-1], params["dimension_numbers"])
        return [self.bind(*buffers, operands[-1], lhs_spinfo=info, **params)], [out]


def batched_numbers(rhs_dim: int | None, dimension_numbers: Any) -> tuple[Any, int]:
    """The dimension numbers with a mapped axis in front of the left operand, and the mapped axis of the result."""
    (contract, rhs_contract), (batch, rhs_batch) = dimension_numbers
    contract, batch = tuple(k + 1 for k in contract), tuple(k + 1 for k in batch)
    if rhs_dim is None:
        return ((contract, rhs_contract), (batch, rhs_batch)), len(batch)
    bump = lambda axes: tuple(k + (k >= rhs_dim) for k in axes)  # noqa: E731
    return ((contract, bump(rhs_contract)), ((0, *batch), (rhs_dim, *bump(rhs_batch)))), 0


def _batches_in_order(out: Any, sizes: Sequence[int], contract: Sequence[int], batch: Sequence[int]) -> Any:
    """Sums the contracted batch axes (of these sizes) of a product, and moves the batch dimensions to the front."""
    n = len(sizes)
    out = jnp.broadcast_to(out, (*sizes, *out.shape[n:])) if n else out
    summed = tuple(axis for axis in contract if axis < n)
    out = out.sum(summed, dtype=out.dtype) if summed else out
    left = remaining(n, contract)
    order = [*map(left.index, batch), *map(left.index, remaining(n, contract, batch))]
    return jnp.transpose(out, [*order, *range(len(order), out.ndim)])


def _ranges(*counts: int) -> list[tuple[int, ...]]:
    """Consecutive ranges of these lengths, from 0."""
    starts = [sum(counts[:k]) for k in range(len(counts))]
    return [tuple(range(start, start + count)) for start, count in zip(starts, counts, strict=True)]


def _of_one_batch(d: Any, r: Any, indices: Any, taken: tuple, kept: list[int], sizes: list[int]) -> Any:
    """The product of one batch: d (nse, *dense), r (*contracted, *free) -> (*sizes, *dense, *free).

    `taken` are the indices along the contracted axes, `kept` the columns of the other axes, `sizes` their sizes.
    """
    n_dense = d.ndim - 1
    if taken:
        r = r.at[taken].get(mode="fill", fill_value=0)
        if not kept:
            return lax.dot_general(d, r, (((0,), (0,)), ((), ())), precision=lax.Precision.HIGHEST)
        free = r.ndim - 1
        r = moving.reshape(r, (r.shape[0], *[1] * n_dense, *r.shape[1:]))
    else:
        free = r.ndim
        r = moving.reshape(r, (1,) * (n_dense + 1) + r.shape)
        d = d if kept else d.sum(0, keepdims=True, dtype=d.dtype)
    each = moving.reshape(d, (*d.shape, *[1] * free)) * r
    if not kept:
        return each[0]
    places = tuple(indices[:, k] for k in kept)
    return jnp.zeros((*sizes, *each.shape[1:]), each.dtype).at[places].add(each)


bcoo_dot_general_p = DotGeneral()


def bcoo_dot_general(
    lhs: BCOO | Array,
    rhs: BCOO | Array,
    *,
    dimension_numbers: Any,
    precision: None = None,
    preferred_element_type: None = None,
    out_sharding: Any = None,
) -> BCOO | Array:
    """Computes `lax.dot_general` with BCOO operands. The result is a BCOO if both are BCOO, else a dense array.

    `precision` is ignored. Raises NotImplementedError for `out_sharding`, for contracting dense axes, and for
    batch dimensions that are not batch axes of a BCOO.

    Example:
        >>> x = jax.experimental.sparse.eye(2)
        >>> jax.experimental.sparse.bcoo_dot_general(x, jnp.array([2.0, 3.0]), dimension_numbers=(([1], [0]), ([], [])))
        Array([2., 3.], dtype=float32)
    """
    if out_sharding is not None:
        raise NotImplementedError("bcoo_dot_general: out_sharding")
    numbers = as_tuples(dimension_numbers)
    preferred: Any = preferred_element_type
    if preferred is not None:
        preferred = dtypes.check_and_canonicalize_user_dtype(preferred, "dot_general")
    params: Any = dict(preferred_element_type=preferred)
    if isinstance(lhs, BCOO) and isinstance(rhs, BCOO):
        return _spdot_general(lhs, rhs, numbers, preferred_element_type)
    if isinstance(lhs, BCOO):
        params |= dict(dimension_numbers=numbers, lhs_spinfo=lhs._info)
        return bcoo_dot_general_p.bind(*lhs._bufs, jnp.asarray(rhs), **params)
    if isinstance(rhs, BCOO):
        (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = numbers
        swapped = (rhs_contract, lhs_contract), (rhs_batch, lhs_batch)
        params |= dict(dimension_numbers=swapped, lhs_spinfo=rhs._info)
        out = bcoo_dot_general_p.bind(*rhs._bufs, jnp.asarray(lhs), **params)
        kept = rhs.ndim - len(rhs_contract) - len(rhs_batch)
        batch, right, left = _ranges(len(lhs_batch), kept, out.ndim - len(lhs_batch) - kept)
        return lax.transpose(out, (*batch, *left, *right))
    return lax.dot_general(lhs, rhs, numbers, preferred_element_type=preferred)


# ---- elements of a product --------------------------------------------------------------------------


class DotGeneralSampled(Composed):
    name = "bcoo_dot_general_sampled"
    linear = (0, 1)

    def infer(self, A, B, indices, *, dimension_numbers):
        out = product_type(A, B, dimension_numbers, None)
        *batch, nse, n_sparse = indices.shape
        n = len(batch)
        if n + n_sparse > out.ndim or any(have not in (1, want) for have, want in zip(batch, out.shape, strict=False)):
            raise ValueError(
                f"bcoo_dot_general_sampled: indices of shape {indices.shape} for a product of shape {out.shape}"
            )
        return [ShapedArray((*out.shape[:n], nse, *out.shape[n + n_sparse :]), out.dtype)]

    def compute(self, A, B, indices, *, dimension_numbers):
        (contract, b_contract), (batch, b_batch) = dimension_numbers
        n, n_sparse = indices.ndim - 2, indices.shape[-1]
        A, B = _of_product_dtype(A, B)
        a_free, b_free = remaining(A.ndim, contract, batch), remaining(B.ndim, b_contract, b_batch)
        # Einsum labels: those of the product's axes, then `rank` for stored elements, then those of contracted axes.
        shared, of_a, of_b = _ranges(len(batch), len(a_free), len(b_free))
        rank = len(shared) + len(of_a) + len(of_b)
        contracted = range(rank + 1, rank + 1 + len(contract))
        a_labels, b_labels = [*shared, *of_a, *contracted], [*shared, *of_b, *contracted]
        A = jnp.transpose(A, [*batch, *a_free, *contract])
        B = jnp.transpose(B, [*b_batch, *b_free, *b_contract])
        sparse = range(n, n + n_sparse)
        inner = lambda all_labels: [k for k in all_labels if k >= n]  # noqa: E731

        def elements(a, b, i):
            a, a_axes = _gathered(a, inner(a_labels), i, sparse, rank)
            b, b_axes = _gathered(b, inner(b_labels), i, sparse, rank)
            dense = [*range(n + n_sparse, rank)]
            stored = [rank] if rank in a_axes or rank in b_axes else []
            out = jnp.einsum(a, a_axes, b, b_axes, [*stored, *dense], precision=lax.Precision.HIGHEST)
            return out if stored else jnp.broadcast_to(out, (i.shape[0], *out.shape))

        for k in reversed(range(n)):
            elements = broadcasting_vmap(
                elements, in_axes=(*[0 if k in axes else None for axes in (a_labels, b_labels)], 0)
            )
        return [elements(A, B, indices)]

    def transpose(self, cts, A, B, indices, *, dimension_numbers):
        (ct,) = cts
        if is_undefined_primal(indices) or is_undefined_primal(A) == is_undefined_primal(B):
            raise ValueError("bcoo_dot_general_sampled: can be transposed with respect to either A or B")
        linear = A.aval if is_undefined_primal(A) else B.aval
        if type(ct) is Zero:
            return [Zero(linear) if is_undefined_primal(x) else None for x in (A, B, indices)]
        both = (linear, typeof(B)) if is_undefined_primal(A) else (typeof(A), linear)
        shape = product_type(*both, dimension_numbers, None).shape
        dense = bcoo_todense_p.bind(ct, indices, spinfo=SparseInfo(shape))
        product = lambda x: lax.dot_general(*((x, B) if is_undefined_primal(A) else (A, x)), dimension_numbers)  # noqa: E731
        (pulled,) = linear_transpose(product, linear)(instantiate(dense))
        return [pulled if is_undefined_primal(x) else None for x in (A, B, indices)]

    def batch(self, axis, operands, dims, **params):
        return vmap(lambda *xs: self.compute(*xs, **params), in_axes=tuple(dims))(*operands), [0]


def _gathered(x: Any, axes: list[int], indices: Any, sparse: range, stored: int) -> tuple[Any, list[int]]:
    """Gathers `x`, whose axes have these labels, at the indices of its sparse axes.

    These become one axis in front, labelled `stored`. Returns the array and its labels.
    """
    columns = [indices[:, k - sparse.start] for k in axes if k in sparse]
    if not columns:
        return x, axes
    order = sorted(range(len(axes)), key=lambda k: axes[k] not in sparse)
    taken = jnp.transpose(x, order).at[tuple(columns)].get(mode="fill", fill_value=0)
    return taken, [stored, *[axes[k] for k in order[len(columns) :]]]


bcoo_dot_general_sampled_p = DotGeneralSampled()


def bcoo_dot_general_sampled(A: Array, B: Array, indices: Array, *, dimension_numbers: Any) -> Array:
    """Computes the elements of `lax.dot_general(A, B)` at these indices of a BCOO, and no other ones.

    No other elements are computed.

    Example:
        >>> indices = jnp.array([[0, 1], [1, 0]])
        >>> x = jnp.array([[1.0, 2.0], [3.0, 4.0]])
        >>> numbers = (([1], [0]), ([], []))
        >>> jax.experimental.sparse.bcoo_dot_general_sampled(x, x, indices, dimension_numbers=numbers), x @ x
        (Array([10., 15.], dtype=float32), Array([[ 7., 10.],
               [15., 22.]], dtype=float32))
    """
    A, B = jnp.asarray(A), jnp.asarray(B)
    return bcoo_dot_general_sampled_p.bind(A, B, indices, dimension_numbers=as_tuples(dimension_numbers))


# ---- two BCOO ---------------------------------------------------------------------------------------


class SpDotGeneral(Batched):
    """The data and indices of the product of two BCOO: one element a pair, summed if these exceed the size."""

    name = "bcoo_spdot_general"
    multiple_results = True
    linear = (0, 2)

    def infer(self, *buffers, lhs_spinfo, rhs_spinfo, dimension_numbers, preferred_element_type):
        lhs_data, lhs_indices, rhs_data, rhs_indices = buffers
        types = ShapedArray(lhs_spinfo.shape, lhs_data.dtype), ShapedArray(rhs_spinfo.shape, rhs_data.dtype)
        out = product_type(*types, dimension_numbers, preferred_element_type)
        lhs = validated(lhs_data, lhs_indices, lhs_spinfo.shape)
        rhs = validated(rhs_data, rhs_indices, rhs_spinfo.shape)
        (contract, rhs_contract), (batch, rhs_batch) = dimension_numbers
        if lhs.n_dense or rhs.n_dense:
            raise AssertionError("bcoo_spdot_general: dense dimensions are not supported")
        if any(axis >= lhs.n_batch for axis in batch) or any(axis >= rhs.n_batch for axis in rhs_batch):
            raise NotImplementedError(
                "bcoo_spdot_general: batch_dims must correspond to batch dimensions of the sparse representation."
            )
        if any(axis < lhs.n_batch for axis in contract) or any(axis < rhs.n_batch for axis in rhs_contract):
            raise NotImplementedError("bcoo_spdot_general only supports contraction of sparse indices.")
        if rhs.n_batch > len(batch) and lhs.n_sparse > len(contract):
            raise ValueError("bcoo_spdot_general: cannot have unused batch dims on rhs with unused sparse dims on lhs.")
        n_batch = lhs.n_batch + rhs.n_batch - len(batch)
        pairs = (lhs.nse if lhs.n_sparse > len(contract) else 1) * (rhs.nse if rhs.n_sparse > len(contract) else 1)
        nse = min(pairs, math.prod(out.shape[n_batch:]))
        shape = (*out.shape[:n_batch], nse)
        return [ShapedArray(shape, out.dtype), ShapedArray((*shape, out.ndim - n_batch), lhs_indices.dtype)]

    def compute(self, *buffers, lhs_spinfo, rhs_spinfo, dimension_numbers, preferred_element_type):
        lhs_data, lhs_indices, rhs_data, rhs_indices = buffers
        (contract, rhs_contract), (batch, rhs_batch) = dimension_numbers
        n, m = lhs_indices.ndim - 2, rhs_indices.ndim - 2
        lhs_data, rhs_data = _of_product_dtype(lhs_data, rhs_data)
        taken = [axis - n for axis in contract], [axis - m for axis in rhs_contract]
        sizes = lhs_spinfo.shape[n:], rhs_spinfo.shape[m:]

        def product(d, i, e, j):
            return _of_pairs(d, i, e, j, taken, sizes)

        for _ in remaining(m, rhs_batch):
            product = broadcasting_vmap(product, in_axes=(None, None, 0, 0))
        for _ in remaining(n, batch):
            product = broadcasting_vmap(product, in_axes=(0, 0, None, None))
        for _ in batch:
            product = broadcasting_vmap(product)
        in_front = lambda axes, x, k: jnp.transpose(x, [*axes, *remaining(k, axes), *range(k, x.ndim)])  # noqa: E731
        lhs_data, lhs_indices = in_front(batch, lhs_data, n), in_front(batch, lhs_indices, n)
        rhs_data, rhs_indices = in_front(rhs_batch, rhs_data, m), in_front(rhs_batch, rhs_indices, m)
        data, indices = product(lhs_data, lhs_indices, rhs_data, rhs_indices)
        shape = [lhs_spinfo.shape[k] for k in (*batch, *remaining(n, batch))]
        shape += [rhs_spinfo.shape[k] for k in remaining(m, rhs_batch)]
        data = jnp.broadcast_to(data, (*shape, data.shape[-1]))
        indices = jnp.broadcast_to(indices, (*shape, *indices.shape[-2:])).astype(lhs_indices.dtype)
        return [data if preferred_element_type is None else data.astype(preferred_element_type), indices]

    def added(self, total, term):
        return (0 if type(total) is Zero else total) + term  # as jax, whose jaxprs have an addition to 0

    def batch(self, axis, operands, dims, *, lhs_spinfo, rhs_spinfo, dimension_numbers, **params):
        lhs, lhs_spinfo = self.batched(axis, operands[:2], dims[:2], lhs_spinfo)
        rhs, rhs_spinfo = self.batched(axis, operands[2:], dims[2:], rhs_spinfo)
        bump = lambda axes: tuple(k + 1 for k in axes)  # noqa: E731
        contract, batch = (tuple(map(bump, pair)) for pair in dimension_numbers)
        params |= dict(dimension_numbers=(contract, tuple((0, *axes) for axes in batch)))
        return self.bind(*lhs, *rhs, lhs_spinfo=lhs_spinfo, rhs_spinfo=rhs_spinfo, **params), [0, 0]


def _of_pairs(d: Any, i: Any, e: Any, j: Any, taken: tuple, sizes: tuple) -> tuple[Any, Any]:
    """The product of one batch: data `d` at indices `i` and `e` at `j`, contracting the columns `taken` of each."""
    kept = [remaining(x.shape[1], columns) for x, columns in zip((i, j), taken, strict=True)]
    out_sizes = tuple(size[k] for size, columns in zip(sizes, kept, strict=True) for k in columns)
    pairs = len(d) * len(e)
    stored = ~is_padding(i, sizes[0])[:, None] & ~is_padding(j, sizes[1])[None]
    matches = stored & (i[:, None, taken[0]] == j[None, :, taken[1]]).all(-1)
    data = jnp.where(matches, d[:, None] * e[None], jnp.zeros((), d.dtype)).reshape(pairs)
    each = [
        jnp.broadcast_to(x[..., columns], (len(d), len(e), len(columns)))
        for x, columns in zip((i[:, None], j[None].astype(i.dtype)), map(list, kept), strict=True)
    ]
    indices = jnp.where(
        matches[..., None], jnp.concatenate(each, -1), lax.expand_dims(jnp.array(out_sizes, i.dtype), (0, 1))
    )
    indices = indices.reshape(pairs, len(out_sizes))
    nse = min((len(d) if kept[0] else 1) * (len(e) if kept[1] else 1), math.prod(out_sizes))
    if pairs <= nse:
        return data, indices
    return tuple(bcoo_sum_duplicates_p.bind(data, indices, spinfo=SparseInfo(out_sizes), nse=nse))


bcoo_spdot_general_p = SpDotGeneral()


def _spdot_general(lhs: BCOO, rhs: BCOO, dimension_numbers: Dims, preferred: Any) -> BCOO:
    params = dict(lhs_spinfo=lhs._info, rhs_spinfo=rhs._info, preferred_element_type=preferred)
    buffers: Any = bcoo_spdot_general_p.bind(*lhs._bufs, *rhs._bufs, dimension_numbers=dimension_numbers, **params)
    (contract, rhs_contract), (batch, rhs_batch) = dimension_numbers
    shape = [lhs.shape[k] for k in (*batch, *remaining(lhs.ndim, contract, batch))]
    return BCOO(buffers, shape=(*shape, *[rhs.shape[k] for k in remaining(rhs.ndim, rhs_contract, rhs_batch)]))


def bcoo_multiply_sparse(lhs: BCOO, rhs: BCOO) -> BCOO:
    """Computes the elementwise product of two BCOO, whose axes of size one are broadcast.

    One element is stored for each pair of elements. Raises NotImplementedError for different numbers of dense axes.

    Example:
        >>> x = jax.experimental.sparse.BCOO.fromdense(jnp.array([0, 5]))
        >>> jax.experimental.sparse.bcoo_multiply_sparse(x, x).todense()
        Array([ 0, 25], dtype=int32)
    """
    if lhs.ndim != rhs.ndim:
        raise TypeError(
            f"bcoo_multiply_sparse: arrays must have same number of dimensions, got {lhs.shape}, {rhs.shape}"
        )
    if lhs.n_dense != rhs.n_dense:
        raise NotImplementedError(
            f"bcoo_multiply_sparse: arrays with differing numbers of dense dimensions: {lhs.n_dense}, {rhs.n_dense}"
        )
    shape = lax.broadcast_shapes(lhs.shape, rhs.shape)
    n = min(lhs.n_batch, rhs.n_batch)
    lhs, rhs = bcoo_update_layout(lhs, n_batch=n), bcoo_update_layout(rhs, n_batch=n)
    sizes = shape[n : n + lhs.n_sparse]

    def product(d, i, e, j):
        d, e = promote_dtypes(d, e)
        stored = ~is_padding(i, lhs._sparse_shape)[:, None] & ~is_padding(j, rhs._sparse_shape)[None]
        i, j = i[:, None], j[None].astype(i.dtype)
        # The index along a broadcast axis of size one is always 0: it matches every index of the other element.
        is_broadcast = lambda mat: [a == 1 != b for a, b in zip(mat._sparse_shape, sizes, strict=True)]  # noqa: E731
        ones = [row(is_broadcast(mat), i) == 1 for mat in (lhs, rhs)]
        matches = stored & ((i == j) | ones[0] | ones[1]).all(-1)
        data = d[:, None] * e[None]
        matches_data = matches.reshape(*matches.shape, *[1] * (data.ndim - 2))
        data = jnp.where(matches_data, data, jnp.zeros((), data.dtype))
        indices = jnp.where(ones[0], j, i)
        indices = jnp.where(matches[..., None], indices, row(sizes, indices))
        count = len(d) * len(e)
        return data.reshape(count, *data.shape[2:]), indices.reshape(count, len(sizes))

    buffers: Any = nfold_vmap(product, n)(*lhs._bufs, *rhs._bufs)
    return BCOO(buffers, shape=shape)


def bcoo_multiply_dense(sp_mat: BCOO, v: Array) -> Array:
    """Computes the data of the product of a BCOO and a dense array, which is broadcast.

    Raises NotImplementedError if the product does not have the shape of the BCOO.

    Example:
        >>> x = jax.experimental.sparse.BCOO.fromdense(jnp.array([0, 5]))
        >>> jax.experimental.sparse.bcoo_multiply_dense(x, jnp.array([2, 3]))
        Array([15], dtype=int32)
    """
    x: Any = jnp.asarray(v)
    shape = lax.broadcast_shapes(sp_mat.shape, x.shape)
    if shape != sp_mat.shape:
        raise NotImplementedError(
            "multiplication between sparse and dense is only implemented for cases where the output shape matches the "
            f"sparse matrix shape. Got shape={sp_mat.shape}, v.shape={x.shape}"
        )
    data, x = (sp_mat.data, x) if x.dtype == sp_mat.dtype else promote_dtypes(sp_mat.data, x)
    if not x.ndim:
        return lax.mul(data, x)
    x = lax.expand_dims(x, range(sp_mat.ndim - x.ndim))

    def product(d, i, w):
        columns = [i[:, k] for k in range(sp_mat.n_sparse)]
        index = tuple(column if w.shape[k] > 1 else 0 for k, column in enumerate(columns))
        return d * (w[index] if index else w[None])

    return nfold_vmap(product, sp_mat.n_batch)(data, sp_mat.indices, x)


def bcoo_conv_general_dilated(
    lhs: Any,
    rhs: Any,
    *,
    window_strides: Any,
    padding: Any,
    lhs_dilation: Any = None,
    rhs_dilation: Any = None,
    dimension_numbers: Any = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> BCOO:
    """Computes `lax.conv_general_dilated` of two BCOO in one dimension. One element is stored for each pair.

    Raises NotImplementedError for strides, dilations, and batches or features of a size other than one.

    Example:
        >>> from minijax.experimental import sparse
        >>> x = sparse.BCOO.fromdense(jnp.array([[[1.0, 0.0, 3.0]]]))
        >>> y = sparse.BCOO.fromdense(jnp.array([[[1.0, 10.0]]]))
        >>> sparse.bcoo_conv_general_dilated(x, y, window_strides=(1,), padding="VALID").todense()
        Array([[[ 1., 30.]]], dtype=float32)
    """
    window = dict(window_strides=window_strides, padding=padding, lhs_dilation=lhs_dilation, rhs_dilation=rhs_dilation)
    numbers: Any = dict(
        dimension_numbers=dimension_numbers,
        feature_group_count=feature_group_count,
        batch_group_count=batch_group_count,
    )
    kind: Any = dict(precision=precision, preferred_element_type=preferred_element_type)
    dtype = dtypes.result_type(lhs.dtype, rhs.dtype)
    lhs, rhs = (
        x if isinstance(x, BCOO) else BCOO.fromdense(x, nse=math.prod(x.shape[2:]), n_batch=2) for x in (lhs, rhs)
    )
    if out_sharding is not None:
        raise NotImplementedError("bcoo_conv_general_dilated: out_sharding")
    types = (ShapedArray(x.shape, dtype) for x in (lhs, rhs))
    out = eval_shape(lambda x, y: lax.conv_general_dilated(x, y, **window, **numbers, **kind), *types)
    _check_convolution(lhs, rhs, window, **numbers)
    lhs = bcoo_update_layout(lhs, n_batch=2, n_dense=0)
    if lhs.shape[:2] != (1, 1) or rhs.shape[:2] != (1, 1):
        raise NotImplementedError("bcoo convolution with leading dimensions other than (1, 1)")
    rhs = bcoo_update_layout(rhs, n_batch=2, n_dense=0)
    if isinstance(padding, str):
        padding = lax.padtype_to_pads(lhs.shape[2:], rhs.shape[2:], window_strides, padding)
    ((low, _),) = padding
    size = operator.index(out.shape[2])

    def product(d, i, e, j):
        d, e = promote_dtypes(d, e)
        stored = ~is_padding(i, lhs.shape[2:])[:, None] & ~is_padding(j, rhs.shape[2:])[None]
        place = i[:, None, 0] - j[None, :, 0].astype(i.dtype) + low
        stored &= (place >= 0) & (place < size)
        data = jnp.where(stored, d[:, None] * e[None], jnp.zeros((), d.dtype))
        return data.reshape(-1).astype(out.dtype), jnp.where(stored, place, size).reshape(-1, 1)

    buffers: Any = nfold_vmap(product, 2)(*lhs._bufs, *rhs._bufs)
    return BCOO(buffers, shape=out.shape)


def _check_convolution(
    lhs: BCOO, rhs: BCOO, window: dict[str, Any], dimension_numbers: Any, **group_counts: int
) -> None:
    if any(step != 1 for step in window["window_strides"]):
        raise NotImplementedError("bcoo convolution with non-unit window_strides.")
    if any(step != 1 for name in ("lhs_dilation", "rhs_dilation") for step in window[name] or ()):
        raise NotImplementedError("bcoo convolution with lhs_dilation.")
    numbers = lax.conv_dimension_numbers(lhs.shape, rhs.shape, dimension_numbers)
    if lhs.ndim != 3:
        raise ValueError(
            f"bcoo_conv_general_dilated: only one spatial dimension is supported, not those of {lhs.shape}"
        )
    if tuple(numbers) != ((0, 1, 2),) * 3 or any(count != 1 for count in group_counts.values()):
        raise NotImplementedError("bcoo convolution of groups, or with dimension numbers other than NCH, OIH, NCH.")
