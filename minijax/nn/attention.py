"""Scaled dot-product attention (Vaswani et al. 2017)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import minijax.numpy as jnp
from minijax.api.vmap import vmap
from minijax.base import dtypes
from minijax.nn.cudnn_attention import check_cudnn, cudnn_attention
from minijax.numpy.custom_rules import logsumexp
from minijax.primitives.convert import stop_gradient
from minijax.primitives.dot import DotAlgorithmPreset
from minijax.run.arrays.array import ArrayLike
from minijax.run.clients.client import default_backend


def _algorithm(dtype: np.dtype) -> DotAlgorithmPreset | None:
    """The algorithm that sums half-precision products in float32; CPUs have none for float16."""
    if dtype == np.float16:
        return None if default_backend() == "cpu" else DotAlgorithmPreset.F16_F16_F32
    return DotAlgorithmPreset.BF16_BF16_F32 if dtype == dtypes.BY_NAME["bfloat16"] else None


class _Masking(NamedTuple):
    """Which logits are used, besides the boolean mask: see `dot_product_attention`."""

    is_causal: bool
    query_lengths: Any
    key_lengths: Any
    window: tuple[int, int] | None


def dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    bias: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    query_seq_lengths: ArrayLike | None = None,
    key_value_seq_lengths: ArrayLike | None = None,
    local_window_size: int | tuple[int, int] | None = None,
    implementation: str | None = None,
    return_residual: bool = False,
) -> Any:
    """Computes attention: softmax(scale * query @ key.T + bias) @ value, over the last axes, for each head.

    Args:
        query: An array of shape (batch, length, heads, features). All arrays may lack the batch axis.
        key, value: Arrays of shape (batch, source, key_heads, features). Each key head serves heads / key_heads
            consecutive heads of the query.
        bias: Added to the logits (batch, heads, length, source), to which it broadcasts.
        mask: A boolean array that broadcasts to the logits: which of them are used.
        scale: By default 1 / sqrt(features).
        is_causal: If true, sources that are ahead are not used.
        query_seq_lengths, key_value_seq_lengths: The int32 lengths of each batch element.
        local_window_size: Only sources within this many positions, or (left, right) positions, are used.
        implementation: None or `"xla"`, or `"cudnn"` for its fused kernels on NVIDIA GPUs, which take float16 and
            bfloat16 only.
        return_residual: If true, the logsumexp of the logits, (batch, length, heads), is returned, too.

    Returns:
        An array of the shape of `query`.

    Raises:
        ValueError: For shapes and dtypes that do not fit.
        RuntimeError: For `implementation="cudnn"` without cuDNN.
        NotImplementedError: For dtypes, features and lengths that cuDNN's kernels do not take.

    Example:
        >>> x = jnp.ones((1, 4, 2, 8))
        >>> jax.nn.dot_product_attention(x, x, x, is_causal=True).shape
        (1, 4, 2, 8)
    """
    query = jnp.asarray(query)
    shape = query.shape
    query, key, value = _with_four_axes(query), _with_four_axes(jnp.asarray(key)), _with_four_axes(jnp.asarray(value))
    bias, mask = (None if x is None else _with_four_axes(jnp.asarray(x)) for x in (bias, mask))
    lengths = [None if x is None else jnp.asarray(x) for x in (query_seq_lengths, key_value_seq_lengths)]
    _check_operands(query, key, value, bias, mask, *lengths)
    window = (local_window_size,) * 2 if isinstance(local_window_size, int) else local_window_size
    if implementation not in (None, "xla", "cudnn"):
        raise ValueError(f"dot_product_attention: Unsupported implementation option: {implementation}")
    scale = 1 / np.sqrt(shape[-1]) if scale is None else scale
    masking = _Masking(is_causal, *lengths, window)
    if implementation == "cudnn":
        check_cudnn()
        attend = cudnn_attention
    else:
        attend = _by_head_groups
    encoded, sums = attend(query, key, value, bias, mask, masking, scale, return_residual)
    encoded = jnp.reshape(jnp.reshape(encoded, query.shape), shape)
    return (encoded, jnp.reshape(jnp.reshape(sums, query.shape[:-1]), shape[:-1])) if return_residual else encoded


def _with_four_axes(x: Any) -> Any:
    return jnp.expand_dims(x, tuple(range(4 - x.ndim))) if x.ndim < 4 else x


def _check_operands(query, key, value, bias, mask, query_lengths, key_lengths):
    batch, source, heads, features = key.shape
    _check("value", value, (batch, source, heads, features), key.dtype)
    _check("query", query, (batch, -1, -1, features), key.dtype)
    if query.shape[2] % heads:
        raise ValueError(
            f"The number of query heads must be a multiple of key/value heads, but got {query.shape[2]} vs {heads}"
        )
    _check("bias", bias, (-1,) * 4)
    _check("mask", mask, (-1,) * 4, np.dtype(bool))
    _check("query_seq_lengths", query_lengths, (batch,), np.dtype(np.int32))
    _check("key_value_seq_lengths", key_lengths, (batch,), np.dtype(np.int32))


def _check(name: str, x: Any, shape: tuple[int, ...], dtype: Any = None) -> None:
    """Raises ValueError unless `x` has this shape, where -1 allows any size, and this dtype."""
    if x is None:
        return
    if x.ndim != len(shape) or any(n not in (-1, m) for n, m in zip(shape, x.shape, strict=True)):
        raise ValueError(f"dot_product_attention: {name} shape should be {list(shape)}: but got {x.shape}")
    if dtype is not None and x.dtype != dtype:
        raise ValueError(f"dot_product_attention: {name} dtype should be {dtype}, but got {x.dtype}")


def _by_head_groups(query, key, value, bias, mask, masking, scale, with_sums):
    """Attention, mapped over the query heads that share a key head."""
    batch, length, heads, features = query.shape
    key_heads = key.shape[2]
    groups = heads // key_heads

    def grouped(x):
        if x is None:
            return None
        first, own, *rest = x.shape
        if own == 1:
            return jnp.broadcast_to(x[:, :, None, :, :], (first, own, groups, *rest))
        return jnp.reshape(x, (first, key_heads, groups, *rest))

    def attend(query, key, value, bias, mask):
        return _attend(query, key, value, bias, mask, masking, scale, with_sums)

    query = jnp.reshape(query, (batch, length, key_heads, groups, features))
    bias, mask = grouped(bias), grouped(mask)
    encoded, sums = vmap(attend, (3, None, None, 2, 2), 3)(query, key, value, bias, mask)
    return encoded, sums


def _attend(query, key, value, bias, mask, masking, scale, with_sums):
    accumulated = dtypes.promote_types(query.dtype, np.dtype(np.float32))
    logits = jnp.einsum(
        "BTNH,BSNH->BNTS", query, key, precision=_algorithm(query.dtype), preferred_element_type=accumulated
    )
    logits = logits * jnp.array(scale, logits.dtype)
    if bias is not None:
        logits = (logits + bias).astype(logits.dtype)
    logits = _masked(logits, mask, masking)
    logits = logits.astype(np.float32)
    largest = stop_gradient(jnp.max(logits, -1, keepdims=True, initial=-jnp.inf))
    terms = jnp.exp(logits - largest)
    weights = (terms / jnp.sum(terms, -1, keepdims=True)).astype(key.dtype)
    encoded = jnp.einsum("BNTS,BSNH->BTNH", weights, value)
    if masking.query_lengths is not None:
        is_query = jnp.arange(0, encoded.shape[1])[None, :] < masking.query_lengths[:, None]
        encoded = encoded * is_query[:, :, None, None].astype(encoded.dtype)
    if not with_sums:
        return encoded, None
    return encoded, stop_gradient(jnp.transpose(logsumexp(logits, axis=-1).astype(key.dtype), (0, 2, 1)))


def _masked(logits, mask, masking):
    """The logits, with a very negative number where they are masked out."""
    is_causal, query_lengths, key_lengths, window = masking
    if mask is None and not is_causal and query_lengths is None and key_lengths is None and window is None:
        return logits
    length, source = logits.shape[2:]
    is_used = jnp.ones(logits.shape, bool)
    if mask is not None:
        is_used = is_used & mask
    if is_causal:
        is_used = is_used & jnp.tril(jnp.ones((length, source), bool))[None, None, :, :]
    if window is not None:
        left, right = window
        at, key_at = jnp.array(np.arange(length, dtype=np.int32)), jnp.array(np.arange(source, dtype=np.int32))
        is_left = at[..., None] <= key_at[..., None, :] + left
        is_right = at[..., None] >= key_at[..., None, :] - right
        is_used = is_used & (is_right & is_left)[None, None, :, :]
    if query_lengths is not None or key_lengths is not None:
        is_query = is_key = jnp.array(True)
        if query_lengths is not None:
            is_query = jnp.arange(0, length)[None, :, None] < query_lengths[:, None, None]
        if key_lengths is not None:
            is_key = jnp.arange(0, source)[None, None, :] < key_lengths[:, None, None]
        is_used = is_used & (is_query & is_key)[:, None, :, :]
    return jnp.where(is_used, logits, np.asarray(-0.7 * np.finfo(np.float32).max, logits.dtype)[()])
