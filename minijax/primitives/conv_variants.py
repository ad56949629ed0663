"""Functions on top of conv_general_dilated: simpler and transposed convolutions, patches, and result shapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from minijax.base.dtypes import DTypeLike
from minijax.base.util import named
from minijax.ir.types import typeof
from minijax.primitives import moving
from minijax.primitives.conv import (
    ConvGeneralDilatedDimensionNumbers,
    Padding,
    Shape,
    conv_dimension_numbers,
    conv_general_dilated,
    conv_general_permutations,
    conv_result_shape,
    dilate_shape,
    permuted,
)
from minijax.primitives.counting import eye
from minijax.primitives.dot import Precision, PrecisionLike, canonical_precision, dot_general, permute_axes
from minijax.primitives.structural import rev
from minijax.primitives.window import padtype_to_pads
from minijax.run.arrays.array import Array, ArrayLike


def conv(
    lhs: Array,
    rhs: Array,
    window_strides: Sequence[int],
    padding: str,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Computes a convolution without dilation and groups, with the axes in the default order.

    See `jax.lax.conv_general_dilated` for the arguments. `padding` is a string.
    """
    return conv_general_dilated(
        lhs, rhs, window_strides, padding, precision=precision, preferred_element_type=preferred_element_type
    )


def conv_with_general_padding(
    lhs: Array,
    rhs: Array,
    window_strides: Sequence[int],
    padding: Padding,
    lhs_dilation: Sequence[int] | None,
    rhs_dilation: Sequence[int] | None,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Computes a convolution without groups, with the axes in the default order.

    See `jax.lax.conv_general_dilated` for the arguments.
    """
    types: Any = dict(precision=precision, preferred_element_type=preferred_element_type)
    return conv_general_dilated(lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation, **types)


_DEFAULTS = (("NC", "IO", "NC"), ("NHC", "HIO", "NHC"), ("NHWC", "HWIO", "NHWC"), ("NHWDC", "HWDIO", "NHWDC"))


def _transpose_pads(k: int, s: int, padding: str) -> tuple[int, int]:
    """The padding with which the result has `s` times as many elements (SAME), or every element (VALID)."""
    if padding == "SAME":
        total = k + s - 2
        low = k - 1 if s > k - 1 else -(-total // 2)
        return low, total - low
    return k - 1, s - 1 + max(k - s, 0)


def conv_transpose(
    lhs: Array,
    rhs: Array,
    strides: Sequence[int],
    padding: Padding,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    transpose_kernel: bool = False,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    use_consistent_padding: bool = False,
) -> Array:
    """Computes a fractionally strided convolution: the transpose of a convolution with these strides.

    Axes are (batch, *spatial, feature) and (*spatial, in, out) by default. `transpose_kernel` flips the
    kernel and swaps its features, which makes this the gradient of a convolution. Explicit padding pairs are
    those of that convolution if `use_consistent_padding`, and pad the dilated `lhs` if not.

    Example:
        >>> x, kernel = jnp.ones((1, 4, 3)), jnp.ones((2, 3, 5))
        >>> jax.lax.conv_transpose(x, kernel, (2,), "SAME").shape
        (1, 8, 5)
    """
    left, right = typeof(lhs).shape, typeof(rhs).shape
    assert len(left) == len(right), f"conv_transpose: lhs and rhs must have equal ranks, got {left} and {right}"
    if dimension_numbers is None:
        if not 2 <= len(left) <= 5:
            raise ValueError(f"conv_transpose: No 4+ dimensional dimension_number defaults, got shape {left}.")
        dimension_numbers = _DEFAULTS[len(left) - 2]
    numbers = conv_dimension_numbers(left, right, dimension_numbers)
    sizes = permuted(right, numbers.rhs_spec)
    windows = (dilate_shape(sizes, (1,) * (len(sizes) - 2) if rhs_dilation is None else rhs_dilation))[2:]
    if isinstance(padding, str) and padding in ("SAME", "VALID"):
        padding = [_transpose_pads(k, s, padding) for k, s in zip(windows, strides, strict=False)]
    elif not isinstance(padding, str) and use_consistent_padding:
        padding = [(k - 1 - low, k - 1 - high) for k, (low, high) in zip(windows, padding, strict=False)]
    if transpose_kernel:
        for axis in numbers.rhs_spec[2:]:
            rhs = rev(rhs, (axis,))
        rhs = moving.swap_axes(rhs, *numbers.rhs_spec[:2])
    types: Any = dict(precision=precision, preferred_element_type=preferred_element_type)
    ones = (1,) * (len(left) - 2)
    return conv_general_dilated(lhs, rhs, ones, padding, strides, rhs_dilation, numbers, **types)


def conv_general_dilated_patches(
    lhs: ArrayLike,
    filter_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Padding,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    precision: Any = None,
    preferred_element_type: np.dtype | None = None,
) -> Array:
    """Returns the patch of `lhs` under each window, flattened from (feature, *window) into the feature axis.

    The other arguments are those of `jax.lax.conv_general_dilated`.
    """
    aval, filter_shape = typeof(lhs), tuple(filter_shape)
    numbers = conv_dimension_numbers(aval.shape, (1, 1, *filter_shape), dimension_numbers)
    size, features = int(np.prod(filter_shape)), aval.shape[numbers.lhs_spec[1]]
    rhs = moving.broadcast_in_dim(eye(size, size, aval.dtype), (features, size, size), (1, 2))
    rhs = moving.reshape(rhs, (features * size, 1, *filter_shape))
    rhs = permute_axes(rhs, moving.inverse(numbers.rhs_spec))
    precisions = None if precision is None else (precision, Precision.DEFAULT)
    how: Any = dict(feature_group_count=features, precision=precisions, preferred_element_type=preferred_element_type)
    image = cast("Array", lhs)
    return conv_general_dilated(image, rhs, window_strides, padding, lhs_dilation, rhs_dilation, numbers, **how)


def conv_general_dilated_local(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: Padding,
    filter_shape: Sequence[int],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    precision: PrecisionLike = None,
) -> Array:
    """Computes a convolution with a separate kernel at each position of the window.

    The input feature axis of `rhs` holds (feature, *filter_shape) flattened, and the spatial axes of `rhs` are
    those of the result.
    """
    how = canonical_precision(precision)
    if how is not None and not (isinstance(how, tuple) and isinstance(how[0], Precision)):
        raise ValueError(f"Unsupported precision for conv_general_dilated_local: {precision}")
    numbers = conv_dimension_numbers(typeof(lhs).shape, typeof(rhs).shape, dimension_numbers)
    patches = conv_general_dilated_patches(
        lhs, filter_shape, window_strides, padding, lhs_dilation, rhs_dilation, numbers, how and how[0]
    )
    _, rhs_spec, out_spec = numbers
    contract, batch = ((out_spec[1],), (rhs_spec[1],)), (tuple(out_spec[2:]), tuple(rhs_spec[2:]))
    out = dot_general(patches, rhs, (contract, batch), how)
    # [*spatial, batch, feature] -> the order of `out_spec`
    spatial = len(out_spec) - 2
    return moving.transpose(out, moving.inverse((*out_spec[2:], *out_spec[:2])) if spatial else (0, 1))


def conv_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    strides: Sequence[int],
    pads: Padding,
    batch_group_count: int = 1,
) -> Shape:
    """Returns the result shape of a convolution of arrays of these shapes, whose axes are in the default order."""
    if isinstance(pads, str):
        pads = padtype_to_pads(lhs_shape[2:], rhs_shape[2:], strides, pads)
    assert lhs_shape[0] % batch_group_count == 0, (
        f"conv_shape_tuple: batch_group_count {batch_group_count} does not divide {lhs_shape[0]}"
    )
    return conv_result_shape(tuple(lhs_shape), tuple(rhs_shape), strides, pads, batch_group_count)


def _transposed_shape(lhs: Shape, rhs: Shape, strides: Sequence[int], padding: Padding) -> Shape:
    if isinstance(padding, str):
        padding = [_transpose_pads(k, s, padding) for k, s in zip(rhs[2:], strides, strict=False)]
    return conv_result_shape(dilate_shape(lhs, strides), rhs, (1,) * len(rhs[2:]), padding)


def _shape_function(name: str, shape_of: Callable, modes: Sequence[str], operation: str) -> Callable[..., Shape]:
    """Returns the function `name` of operand shapes; `shape_of` computes it for axes in the default order."""

    def shape_tuple(
        lhs_shape: Sequence[int],
        rhs_shape: Sequence[int],
        window_strides: Sequence[int],
        padding: Padding,
        dimension_numbers: Sequence[str],
    ) -> Shape:
        if isinstance(padding, str) and modes and padding not in modes:
            raise ValueError(f"{name}: Invalid padding mode: {padding}")
        lhs, rhs, out = conv_general_permutations(dimension_numbers)
        shape = shape_of(permuted(lhs_shape, lhs), permuted(rhs_shape, rhs), window_strides, padding)
        return permuted(shape, moving.inverse(out))

    return named(shape_tuple, name, f"Returns the shape of a {operation} of arrays of these shapes; strings name axes.")


conv_general_shape_tuple = _shape_function("conv_general_shape_tuple", conv_shape_tuple, (), "convolution")
conv_transpose_shape_tuple = _shape_function(
    "conv_transpose_shape_tuple", _transposed_shape, ("SAME", "VALID"), "transposed convolution"
)
