"""Elementwise products of BCOO, and convolutions."""

import math
import operator
from typing import Any

import minijax.numpy as jnp
from minijax import lax
from minijax.api.jit import eval_shape
from minijax.base import dtypes
from minijax.experimental.sparse.bcoo_array import BCOO
from minijax.experimental.sparse.bcoo_layout import bcoo_update_layout
from minijax.experimental.sparse.util import is_padding, nfold_vmap, row
from minijax.ir.types import ShapedArray
from minijax.primitives.promote import promote_dtypes
from minijax.run.arrays.array import Array


def bcoo_multiply_sparse(lhs: BCOO, rhs: BCOO) -> BCOO:
    """Computes the elementwise product of two BCOO, whose axes of size one are broadcast.

    One element is stored for each pair of elements. Raises NotImplementedError for different numbers of dense axes.
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
