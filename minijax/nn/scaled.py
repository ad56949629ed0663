"""Products of arrays in low precision with a scale for each block: the formats MXFP8 and NVFP4.

Rouhani et al., "Microscaling Data Formats for Deep Learning", 2023.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

import minijax.numpy as jnp
from minijax.api.custom import custom_vjp
from minijax.base import dtypes
from minijax.base.dtypes import DTypeLike
from minijax.composed.scaled_matmul import scaled_matmul_p
from minijax.dispatch.jitted import jitted
from minijax.primitives.barriers import optimization_barrier
from minijax.primitives.convert import bitcast_convert_type
from minijax.primitives.dot import DotDimensionNumbers, dot_general
from minijax.run.arrays.array import Array


@dataclasses.dataclass
class BlockScaleConfig:
    """How an operand is quantized: in blocks of `block_size`; `global_scale` is of shape (1,) and float32."""

    mode: str
    block_size: int
    data_type: Any
    scale_type: Any
    global_scale: Any
    infer_only: bool


def get_scaled_dot_general_config(mode: str, global_scale: Array | None = None) -> BlockScaleConfig:
    """Returns the configuration of "mxfp8" or "nvfp4"; the latter divides by `global_scale`, by default [1.0].

    Raises ValueError for another mode.

    Example:
        >>> jax.nn.get_scaled_dot_general_config("mxfp8").block_size
        32
    """
    if mode == "mxfp8":
        return BlockScaleConfig(mode, 32, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e8m0fnu, None, False)
    if mode == "nvfp4":
        global_scale = jnp.ones((1,), np.float32) if global_scale is None else global_scale
        return BlockScaleConfig(mode, 16, ml_dtypes.float4_e2m1fn, ml_dtypes.float8_e4m3fn, global_scale, False)
    raise ValueError(f"get_scaled_dot_general_config: Unsupported mode: {mode}")


@jitted("_scaled_matmul", static=("preferred_element_type",))
def _scaled_matmul(lhs: Any, rhs: Any, lhs_scales: Any, rhs_scales: Any, preferred_element_type: Any) -> Any:
    return scaled_matmul_p.bind(lhs, rhs, lhs_scales, rhs_scales, preferred_element_type=preferred_element_type)


def scaled_matmul(
    lhs: Array, rhs: Array, lhs_scales: Array, rhs_scales: Array, preferred_element_type: DTypeLike = np.float32
) -> Array:
    """Multiplies operands (B, M, K) and (B, N, K) times their scales (B, M, S) and (B, N, S), to (B, M, N).

    A scale applies to K / S elements. Raises ValueError for shapes that do not fit. Lowering raises
    NotImplementedError for any platform but CUDA.

    Example:
        >>> x, scales = jnp.ones((1, 8, 32), jnp.float8_e4m3fn), jnp.ones((1, 8, 1), jnp.float8_e8m0fnu)
        >>> jax.eval_shape(jax.nn.scaled_matmul, x, x, scales, scales)
        ShapeDtypeStruct(shape=(1, 8, 8), dtype=float32)
    """
    if not all(x.ndim == 3 for x in (lhs, rhs, lhs_scales, rhs_scales)):
        raise ValueError("scaled_matmul requires all inputs to be 3-dimensional arrays")
    for what, x, y in (("inputs a and b", lhs, rhs), ("scales", lhs_scales, rhs_scales)):
        if x.shape[::2] != y.shape[::2]:
            fit = "to have matching batch (B) and contract (K) dimensions"
            raise ValueError(f"scaled_matmul requires {what} {fit}, but got shapes {x.shape} and {y.shape}")
    if (lhs.shape[:2], rhs.shape[:2]) != (lhs_scales.shape[:2], rhs_scales.shape[:2]):
        shapes = f"a: {lhs.shape}, b: {rhs.shape}, a_scales: {lhs_scales.shape}, b_scales: {rhs_scales.shape}"
        raise ValueError(f"scaled_matmul requires scales to match non-contract dimensions of inputs, but got {shapes}")
    dtype = dtypes.check_and_canonicalize_user_dtype(preferred_element_type, "scaled_matmul")
    return _scaled_matmul(lhs, rhs, lhs_scales, rhs_scales, preferred_element_type=dtype)


def _largest(dtype: Any, like: np.dtype) -> Any:
    return dtypes.finfo(dtype).max.astype(like)


def _exponents(x: Any) -> Any:
    """The least powers of two that are not less than x, as the bits of float8_e8m0fnu."""
    bits = bitcast_convert_type(x.astype(np.float32), np.uint32)
    exponent, mantissa = bits >> 23, bits & 0x7FFFFF
    above = ((mantissa > 0) & (exponent != 0xFE)) & ~((exponent == 0) & (mantissa <= 0x400000))
    return jnp.where(above, exponent + 1, exponent).astype(np.uint8)


def _quantize(x: Any, config: BlockScaleConfig) -> tuple[Any, Any]:
    """Quantizes blocks along the last axis of x; returns them in low precision, and their scales."""
    shape, size = x.shape, config.block_size
    if shape[-1] % size:
        raise AssertionError(f"scaled_dot_general: contracted size {shape[-1]} is not a multiple of block size {size}")
    blocks = jnp.reshape(x, (*shape[:-1], shape[-1] // size, size))
    largest = _largest(config.data_type, x.dtype)
    if config.mode == "nvfp4":
        if config.global_scale.dtype != np.float32:
            raise AssertionError(f"scaled_dot_general: global scale has dtype {config.global_scale.dtype}, not float32")
        blocks = blocks.astype(np.float32) / config.global_scale
        scales = jnp.max(jnp.abs(blocks), axis=-1, keepdims=True) / largest
        scales = jnp.clip(scales, 0, _largest(config.scale_type, x.dtype)).astype(config.scale_type)
        # XLA would otherwise remove the rounding.
        rounded = optimization_barrier(scales)
        divisors = rounded.astype(blocks.dtype)
    else:
        rounded = _exponents(jnp.max(jnp.abs(blocks), axis=-1, keepdims=True) / largest)
        divisors = bitcast_convert_type(rounded.astype(np.uint32) << 23, np.float32)
        smallest = np.float32(float(dtypes.finfo(x.dtype).tiny) / 2)
        divisors = jnp.where(divisors == 0, smallest, divisors).astype(x.dtype)
    quantized = jnp.clip(blocks / divisors, -largest, largest).astype(config.data_type)
    quantized, rounded = jnp.reshape(quantized, shape), jnp.reshape(rounded, rounded.shape[:-1])
    if config.mode != "nvfp4":
        rounded = bitcast_convert_type(rounded, config.scale_type)
    return quantized, rounded


def _product(lhs: Any, rhs: Any, configs: Sequence[BlockScaleConfig], preferred: np.dtype) -> Any:
    """The product (B, M, N) of operands (B, M, K) and (B, N, K), which are quantized first."""
    (lhs, lhs_scales), (rhs, rhs_scales) = (_quantize(x, c) for x, c in zip((lhs, rhs), configs, strict=True))
    globals_ = [c.global_scale for c in configs if c.global_scale is not None]
    out = scaled_matmul(lhs, rhs, lhs_scales, rhs_scales, np.float32 if globals_ else preferred)
    return (out * math.prod(globals_[1:], start=globals_[0])).astype(preferred) if globals_ else out


def _merge_axes(x: Any, *groups: Sequence[int]) -> Any:
    """`x` with each group of its axes merged into one axis."""
    order = [axis for group in groups for axis in group]
    if order != list(range(x.ndim)):
        x = jnp.transpose(x, order)
    shape = tuple(math.prod(x.shape[order.index(axis)] for axis in group) for group in groups)
    return x if shape == x.shape else jnp.reshape(x, shape)


def _unmerge_axes(x: Any, like: Any, *groups: Sequence[int]) -> Any:
    """Undoes `_merge_axes` for an array with the shape of `like`."""
    order = [axis for group in groups for axis in group]
    shape = tuple(like.shape[axis] for axis in order)
    x = x if shape == x.shape else jnp.reshape(x, shape)
    places = [order.index(axis) for axis in range(len(order))]
    return jnp.transpose(x, places) if places != sorted(places) else x


def _gradient(ct: Any, other: Any, configs: Sequence[BlockScaleConfig]) -> Any:
    """The product of cotangents (B, M, N) and an operand (B, K, N); not quantized with NVFP4, which is too coarse."""
    if configs[0].mode == "nvfp4":
        return jnp.matmul(ct, jnp.transpose(other, (0, 2, 1)), preferred_element_type=np.float32)
    return _product(ct, other, configs, np.dtype(np.float32))


def _zero_outside_range(gradient: Any, x: Any, config: BlockScaleConfig) -> Any:
    if config.global_scale is None:
        return gradient
    largest, scale = (_largest(t, x.dtype) for t in (config.data_type, config.scale_type))
    return jnp.where(jnp.abs(x) <= config.global_scale * largest * scale, gradient, 0)


def _free(x: Any, *used: Sequence[int]) -> list[int]:
    return [axis for axis in range(x.ndim) if not any(axis in group for group in used)]


def _quantized(lhs: Any, rhs: Any, numbers: Any, preferred: np.dtype, configs: Sequence[BlockScaleConfig]) -> Any:
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = numbers
    lhs_free, rhs_free = _free(lhs, lhs_contract, lhs_batch), _free(rhs, rhs_contract, rhs_batch)
    shape = tuple(x.shape[a] for x, axes in ((lhs, [*lhs_batch, *lhs_free]), (rhs, rhs_free)) for a in axes)

    def scaled_dot_general_fn(lhs, rhs):
        rows = _merge_axes(lhs, lhs_batch, lhs_free, lhs_contract)
        columns = _merge_axes(rhs, rhs_batch, rhs_free, rhs_contract)
        out = _product(rows, columns, (configs[0], configs[1]), preferred)
        return out if out.shape == shape else jnp.reshape(out, shape)

    def scaled_dot_fwd(lhs, rhs):
        return scaled_dot_general_fn(lhs, rhs), (lhs, rhs)

    def scaled_dot_bwd(operands, ct):
        lhs, rhs = operands
        rows = (lhs_batch, lhs_free, lhs_contract)
        columns = (rhs_batch, rhs_free, rhs_contract)
        by_free = [len(lhs_batch), len(lhs_batch) + len(lhs_free), len(shape)]
        batch, m, n = (list(range(a, b)) for a, b in zip([0, *by_free], by_free, strict=False))
        by_columns = _merge_axes(rhs, rhs_batch, rhs_contract, rhs_free)
        lhs_ct = _gradient(_merge_axes(ct, batch, m, n), by_columns, (configs[2], configs[1]))
        lhs_ct = _unmerge_axes(lhs_ct, lhs, *rows)
        by_rows = _merge_axes(lhs, lhs_batch, lhs_contract, lhs_free)
        rhs_ct = _gradient(_merge_axes(ct, batch, n, m), by_rows, (configs[2], configs[0]))
        rhs_ct = _unmerge_axes(rhs_ct, rhs, *columns)
        cts = (_zero_outside_range(g, x, c) for g, x, c in zip((lhs_ct, rhs_ct), operands, configs, strict=False))
        return tuple(g.astype(x.dtype) for g, x in zip(cts, operands, strict=True))

    function = custom_vjp(scaled_dot_general_fn)
    function.defvjp(scaled_dot_fwd, scaled_dot_bwd)
    return function(lhs, rhs)


def scaled_dot_general(
    lhs: Any,
    rhs: Any,
    dimension_numbers: DotDimensionNumbers,
    preferred_element_type: Any = np.float32,
    configs: list[BlockScaleConfig] | None = None,
    implementation: str | None = None,
) -> Any:
    """Computes `lax.dot_general` of operands quantized by `configs`: those of lhs, rhs, and cotangents.

    Contracted sizes are multiples of the block size, for gradients the other sizes too. `implementation` is
    ignored. Raises TypeError unless the preferred type is float32, bfloat16 or float16. Lowering raises
    NotImplementedError for any platform but CUDA.

    Example:
        >>> numbers = (((2,), (2,)), ((0,), (0,)))
        >>> config = jax.nn.get_scaled_dot_general_config("mxfp8")
        >>> f = lambda x, y: jax.nn.scaled_dot_general(x, y, numbers, configs=[config] * 3)
        >>> jax.eval_shape(f, jnp.ones((1, 4, 32)), jnp.ones((1, 8, 32))).shape
        (1, 4, 8)
    """
    if configs is None:
        return dot_general(lhs, rhs, dimension_numbers, preferred_element_type=preferred_element_type)
    preferred = np.dtype(preferred_element_type)
    if preferred.name not in ("float32", "bfloat16", "float16"):
        raise TypeError(
            f"scaled_dot_general: Only support preferred_element_type in (f32, bf16, f16), but got {preferred}"
        )
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    if not lhs_batch:
        numbers = ((lhs_contract, rhs_contract), ((lhs.ndim,), (rhs.ndim,)))
        lhs, rhs = jnp.expand_dims(lhs, lhs.ndim), jnp.expand_dims(rhs, rhs.ndim)
        return jnp.squeeze(_quantized(lhs, rhs, numbers, preferred, configs), 0)
    return _quantized(lhs, rhs, dimension_numbers, preferred, configs)
