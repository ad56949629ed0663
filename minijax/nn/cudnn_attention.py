"""Scaled dot-product attention by cuDNN's fused kernels, with their derivatives."""

from __future__ import annotations

import functools
import re
from typing import Any, NamedTuple

import numpy as np

import minijax.numpy as jnp
from minijax.api.custom import custom_vjp
from minijax.base import dtypes
from minijax.composed.attention import MaskType, attention_bwd_p, attention_fwd_p
from minijax.primitives.varying import match_varying
from minijax.run.clients import client, plugins

_DTYPES = (dtypes.bfloat16, np.dtype(np.float16))
_OPERANDS = 10


class _Options(NamedTuple):
    """The parameters of both operations but `is_training`."""

    scale: float
    seed: int
    dropout_rate: float
    variadic_args: tuple[bool, bool]
    mask_type: MaskType
    layout: int
    sliding_window_length: int | None


def check_cudnn() -> None:
    """Raises RuntimeError if no CUDA plugin, which brings cuDNN, is installed."""
    if plugins.find_cuda() is None:
        raise RuntimeError("dot_product_attention: cuDNN is not detected.")


def check_compute_capability(capability: str) -> bool:
    """Returns whether all devices of this process are GPUs of at least this compute capability, such as "8.0"."""
    have = [_numbers(getattr(d, "compute_capability", "")) for d in client.local_devices()]
    return min(have) >= _numbers(capability)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)))


def cudnn_attention(
    query: Any, key: Any, value: Any, bias: Any, mask: Any, masking: Any, scale: float, with_sums: bool
) -> tuple[Any, Any]:
    """Attention of arrays of rank 4, and the logsumexp of the logits if `with_sums`. See `nn.dot_product_attention`.

    Raises NotImplementedError for dtypes and sizes that cuDNN has no kernels for, ValueError for a bias or mask without
    both sequence axes and for a window that is open to the right.
    """
    bias = _joined(bias, mask, query.dtype)
    is_causal, *lengths, _ = masking
    if is_padded := lengths != [None, None]:
        lengths = [
            jnp.full((x.shape[0],), x.shape[1], np.int32) if n is None else n
            for x, n in zip((query, key), lengths, strict=True)
        ]
    mask_type = MaskType(is_padded + 2 * is_causal)
    options = _Options(scale, 42, 0.0, (bias is not None,) * 2, mask_type, 0, _window(masking.window, mask_type))
    check_operands(query, key, bias)
    check_sizes(query, key, is_training=False)
    # Outside of the custom rule, so that the cotangents of operands that vary less are summed.
    query, key, value, bias = match_varying(given := (query, key, value, bias), given)
    absent = jnp.zeros(0, query.dtype)
    rest = [absent if x is None else x for x in (bias, *lengths)]
    found = _dot_product_attention(query, key, value, *rest, *[absent] * 4, options, with_sums)
    if not with_sums:
        return found, None
    encoded, sums = found
    return encoded, jnp.transpose(sums, (0, 2, 1)).astype(key.dtype)


def _joined(bias: Any, mask: Any, dtype: np.dtype) -> Any:
    """The bias with a large negative number, of which two can be added, where the mask is false."""
    if mask is None:
        return bias
    lowest = -(2.0**41) if dtype == dtypes.bfloat16 else -(2.0**15)
    masked = jnp.where(mask, jnp.asarray(0, dtype), jnp.asarray(lowest, dtype))
    return masked if bias is None else bias + masked


def _window(window: tuple[int, int] | None, mask_type: MaskType) -> int | None:
    """The number of keys up to the query's own."""
    if window is None:
        return None
    left, right = window
    if right and mask_type is not MaskType.CAUSAL:
        raise ValueError(
            f"dot_product_attention: cuDNN doesn't support right window: {right} when causal mask is not used."
        )
    if left < 0:
        raise ValueError(f"dot_product_attention: Require sliding_window_length > 0, got {left + 1}")
    return left + 1


def check_operands(query: Any, key: Any, bias: Any) -> None:
    """Raises NotImplementedError for another dtype, ValueError for a bias without both sequence axes."""
    if query.dtype not in _DTYPES:
        raise NotImplementedError(f"dot_product_attention: cuDNN's Q must be fp16/bf16, got {query.dtype}")
    t, s = query.shape[1], key.shape[1]
    for length, wanted in zip(bias.shape[2:], (t, s), strict=True) if bias is not None else ():
        if length != wanted:
            raise ValueError(
                f"dot_product_attention: Bias must have same seq length as QKV, got {bias.shape[2]} and {bias.shape[3]}"
            )


def check_sizes(query: Any, key: Any, is_training: bool) -> None:
    """Raises NotImplementedError for features, and for derivatives for lengths, that cuDNN's kernels do not take."""
    largest, (t, _, features), s = 256 if check_compute_capability("9.0") else 128, query.shape[1:], key.shape[1]
    if features > largest or features % 8:
        raise NotImplementedError(
            f"dot_product_attention: The head dim must be <= {largest} and a multiple of 8, but got {features}."
        )
    if is_training and (t % 2 or s % 2):
        raise NotImplementedError(f"dot_product_attention: Unsupported sequence length Q {t}, KV {s}.")


def _forward(operands: tuple, is_training: bool, options: _Options) -> list:
    return attention_fwd_p.bind(*operands, is_training=is_training, **options._asdict())


@functools.partial(custom_vjp, nondiff_argnums=(_OPERANDS, _OPERANDS + 1))
def _dot_product_attention(
    query, key, value, bias, query_lengths, key_lengths, query_offsets, key_offsets, key_pages, value_pages,
    options, with_sums,
):  # fmt: skip
    operands = (
        query, key, value, bias, query_lengths, key_lengths, query_offsets, key_offsets, key_pages, value_pages,
    )  # fmt: skip
    found = _forward(operands, with_sums, options)
    return found if with_sums else found[0]


def _dot_product_attention_fwd_rule(*args):
    *operands, options, with_sums = args
    check_sizes(*operands[:2], is_training=True)
    encoded, sums = _forward(tuple(operands), True, options)
    return [encoded, sums] if with_sums else encoded, (*operands, sums, encoded)


def _dot_product_attention_bwd_rule(options, with_sums, kept, cts):
    found = attention_bwd_p.bind(*kept, cts[0] if with_sums else cts, **options._asdict())
    return (*found, *[None] * (_OPERANDS - len(found)))


_dot_product_attention.defvjp(_dot_product_attention_fwd_rule, _dot_product_attention_bwd_rule)
