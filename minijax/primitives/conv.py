"""Convolution: conv_general_dilated, its dimension numbers, and the functions on top of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from minijax.base import dtypes
from minijax.base.dims import as_index, stride_dim
from minijax.base.documentation import filled
from minijax.base.dtypes import DTypeLike
from minijax.base.errors import ShardingTypeError
from minijax.base.naming import known_as
from minijax.base.source import hide_frames
from minijax.base.util import named
from minijax.hlo.verbs.linalg import ConvWindow
from minijax.ir.types import ShapedArray, Zero, typeof
from minijax.partition.explicit import check_divides, joined_entry
from minijax.partition.meshes import axes_of
from minijax.primitives import dot, moving
from minijax.primitives.convert import convert
from minijax.primitives.counting import eye
from minijax.primitives.families import ANY, COMPLEX, FLOAT, REAL, check_kinds, check_same_dtypes
from minijax.primitives.moving import divide_axis
from minijax.primitives.sharding import cotangent_sharding, requested_sharding
from minijax.primitives.structural import rev
from minijax.primitives.window import dilated, padtype_to_pads
from minijax.run.arrays.array import Array, ArrayLike, ShardingLike

Shape = tuple[int, ...]
Padding = str | Sequence[tuple[int, int]]


@known_as("jax._src.lax.convolution.ConvDimensionNumbers")
class ConvDimensionNumbers(NamedTuple):
    """Names the axes of a convolution's arrays.

    `lhs_spec` and `out_spec` are the axes (batch, feature, *spatial), `rhs_spec` those of the kernel,
    (out, in, *spatial).

    Example:
        >>> jax.lax.conv_dimension_numbers((1, 8, 8, 3), (5, 5, 3, 4), ("NHWC", "HWIO", "NHWC"))
        ConvDimensionNumbers(lhs_spec=(0, 3, 1, 2), rhs_spec=(3, 2, 0, 1), out_spec=(0, 3, 1, 2))
    """

    lhs_spec: Sequence[int]
    rhs_spec: Sequence[int]
    out_spec: Sequence[int]


ConvGeneralDilatedDimensionNumbers = tuple[str, str, str] | ConvDimensionNumbers | None


def _check_strides(name: str, window: Sequence, strides: Sequence) -> None:
    if len(window) != len(strides):
        raise ValueError(
            f"{name} window and window_strides must have the same number of dimensions, but got {len(window)} and "
            f"{len(strides)}"
        )


class ConvGeneralDilated(dot.Product):
    """Slides the kernel `rhs` over `lhs`: each result is the sum of the products in a window."""

    name = "conv_general_dilated"
    sharding_param = "out_sharding"

    def infer(self, lhs, rhs, *, dimension_numbers, preferred_element_type, **params):
        check_kinds(self.name, ANY, lhs, rhs)
        check_same_dtypes(self.name, lhs, rhs)
        ranks = {lhs.ndim, rhs.ndim, *map(len, dimension_numbers)}
        if len(ranks) > 1:
            raise ValueError(
                f"{self.name} lhs and rhs must have the same number of dimensions, as dimension_numbers must, got "
                f"{lhs.shape}, {rhs.shape} and {dimension_numbers}"
            )
        x, kernel = (permuted(a.shape, s) for a, s in zip((lhs, rhs), dimension_numbers[:2], strict=True))
        shape = permuted(self._result_shape(x, kernel, **params), moving.inverse(dimension_numbers.out_spec))
        dtype = _result_dtype(lhs.dtype, preferred_element_type)
        return [ShapedArray(shape, dtype, lhs.weak_type and rhs.weak_type)]

    def _result_shape(self, x, kernel, *, window_strides, padding, lhs_dilation, rhs_dilation, **params):
        """The shape (batch, feature, *spatial) of the result; `x` and `kernel` are shapes in the same order."""
        _check_groups(x, kernel, params["feature_group_count"], params["batch_group_count"])
        _check_strides(self.name, kernel[2:], window_strides)
        x, kernel = dilate_shape(x, lhs_dilation), dilate_shape(kernel, rhs_dilation)
        return conv_result_shape(x, kernel, window_strides, padding, params["batch_group_count"])

    def sharding_rule(self, mesh, avals, outs, *, dimension_numbers, **params):
        (lhs, rhs), (lhs_spec, _, out_spec) = avals, dimension_numbers
        if lhs.entries[lhs_spec[1]] is not None or any(e is not None for e in rhs.entries):
            raise ShardingTypeError(
                "conv_general_dilated: features or the kernel are sharded. Please specify the output sharding: "
                "`out_sharding`"
            )
        shape = permuted(permuted(outs[0].shape, out_spec), moving.inverse(lhs_spec))
        entries = check_divides(self.name, mesh, lhs, shape)
        return [permuted(permuted(entries, lhs_spec), moving.inverse(out_spec))]

    def lower(self, e, ins, outs, lhs, rhs, *, dimension_numbers, **params):
        self._check_window(permuted(ins[1].shape, dimension_numbers.rhs_spec[2:]), params)
        for spec in dimension_numbers:
            if len(set(spec)) != len(spec):
                raise ValueError(f"{self.name}: dimension_numbers are not distinct: {tuple(spec)}.")
        dilations = params["lhs_dilation"], params["rhs_dilation"]
        window = ConvWindow(params["window_strides"], params["padding"], *dilations)
        counts = params["feature_group_count"], params["batch_group_count"]
        how: Any = dimension_numbers, window, *counts, dot.precision_pair(params["precision"])
        if dtypes.is_complex(ins[0].dtype) and e.platform != "tpu":
            return [_lower_complex(e, lhs, rhs, ins[0], ins[1], outs[0], how)]
        return [e.convolution(lhs, rhs, ins, outs[0], *how)]

    def _check_window(self, window, params):
        """Raises ValueError unless the window, its strides and dilations are positive, one for each spatial axis."""
        spatial = len(params["window_strides"])
        for name in ("window", "window_strides", "lhs_dilation", "rhs_dilation"):
            sizes = window if name == "window" else params[name]
            if len(sizes) != spatial or any(n <= 0 for n in sizes):
                raise ValueError(f"{self.name}: {name} needs {spatial} positive numbers, got {sizes}.")

    def transposed(self, ct, aval, other, side, **params):
        # The gradient of the kernel is a convolution whose kernel is `ct`, and XLA takes no empty kernel.
        if side and not typeof(ct).size:
            return Zero(aval)
        avals = (typeof(other), aval, typeof(ct)) if side else (aval, typeof(other), typeof(ct))
        dilations = params["lhs_dilation"], params["rhs_dilation"], params["window_strides"]
        sizes = [
            dilate_shape(permuted(a.shape, spec), by)[2:]
            for a, spec, by in zip(avals, params["dimension_numbers"], dilations, strict=True)
        ]
        transposed = (self._transposed_lhs, self._transposed_rhs)[side]
        return transposed(ct, aval, other, sizes, dict(params, out_sharding=cotangent_sharding(aval)))

    def _transposed_lhs(self, ct, aval, rhs, sizes, params):
        lhs_spec, rhs_spec, out_spec = params["dimension_numbers"]
        batch_group_count = params["batch_group_count"]
        groups = max(params["feature_group_count"], batch_group_count)
        if groups > 1:
            rhs = _merge_axis(rhs_spec[0], rhs_spec[1], divide_axis(rhs, rhs_spec[0], groups))
        kernel = _as_dtype(rev(rhs, tuple(rhs_spec[2:])), typeof(ct).dtype)
        pads = tuple((w - 1 - low, n - m + low) for n, w, m, (low, _) in zip(*sizes, params["padding"], strict=True))
        strides, dilation = params["lhs_dilation"], params["window_strides"]
        params |= dict(window_strides=strides, lhs_dilation=dilation, padding=pads)
        params |= dict(feature_group_count=groups, batch_group_count=1)
        params["dimension_numbers"] = ConvDimensionNumbers(out_spec, _swapped(rhs_spec), lhs_spec)
        grad = _as_dtype(self.bind(ct, kernel, **params), aval.dtype)
        if batch_group_count > 1:
            grad = _merge_axis(lhs_spec[1], lhs_spec[0], divide_axis(grad, lhs_spec[1], batch_group_count))
        return grad

    def _transposed_rhs(self, ct, aval, lhs, sizes, params):
        lhs_spec, rhs_spec, out_spec = params["dimension_numbers"]
        pads = tuple((low, w + m - 1 - n - low) for n, w, m, (low, _) in zip(*sizes, params["padding"], strict=True))
        strides, dilation = params["rhs_dilation"], params["window_strides"]
        features, batches = params["batch_group_count"], params["feature_group_count"]
        params |= dict(window_strides=strides, rhs_dilation=dilation, padding=pads)
        params |= dict(feature_group_count=features, batch_group_count=batches)
        params["dimension_numbers"] = ConvDimensionNumbers(*map(_swapped, (lhs_spec, out_spec, rhs_spec)))
        return _as_dtype(self.bind(_as_dtype(lhs, typeof(ct).dtype), ct, **params), aval.dtype)

    def batch(self, axis, operands, dims, **params):
        lhs_spec, rhs_spec, out_spec = params["dimension_numbers"]
        (lhs, rhs), (dl, dr) = operands, dims
        if not axis.size:
            (out,) = self.infer(*map(_unbatched_type, operands, dims), **params)
            return [moving.filled((0, *out.shape), 0, out.dtype)], [0]
        features, batches, groups, at = params["feature_group_count"], params["batch_group_count"], 1, out_spec[1]
        if dl is None:
            groups = max(features, batches)
            rhs = _merge_batch_axis(rhs, dr, rhs_spec[0], groups)
        elif dr is None:
            lhs, at = _merge_batch_axis(lhs, dl, lhs_spec[0], batches), out_spec[0]
        else:
            by_batch = batches > 1
            lhs = _merge_axis(dl, lhs_spec[0 if by_batch else 1], lhs)
            rhs = _merge_axis(dr, rhs_spec[0], rhs)
            features, batches = (1, batches * axis.size) if by_batch else (features * axis.size, 1)
        params |= dict(feature_group_count=features, batch_group_count=batches)
        names = axes_of(axis.entry)
        params["out_sharding"] = _batched_sharding(params["out_sharding"], at, names, groups, len(out_spec))
        out = self.bind(lhs, rhs, **params)
        if groups == 1:
            return [divide_axis(out, at, axis.size)], [at]
        # [groups * size * rest] -> [size, groups * rest]
        out = divide_axis(divide_axis(out, at, groups), at + 1, axis.size)
        return [_merge_axis(at, at + 1, out)], [at]


conv_general_dilated_p = ConvGeneralDilated()


def _batched_sharding(sharding: Any, at: int, names: tuple, groups: int, ndim: int) -> Any:
    """The out_sharding of the batched result, whose axis `at` is merged with the mapped axis, sharded over `names`."""
    if sharding is None or not names:
        return sharding
    entries = list(sharding.spec.padded(ndim))
    if groups > 1 or entries[at] is not None:
        raise NotImplementedError(
            f"conv_general_dilated: a mapped axis over {names} is merged with axis {at} of the result, "
            f"which is sharded in out_sharding {sharding.spec} or has {groups} groups"
        )
    entries[at] = joined_entry(*names)
    return sharding.update(spec=sharding.spec.update(partitions=entries))


def _as_dtype(x: Any, dtype: Any) -> Any:
    return x if typeof(x).dtype == dtype else convert(x, dtype)


def _unbatched_type(x: Any, axis: int | None) -> ShapedArray:
    """The type of `x` without its batch axis."""
    shape = typeof(x).shape
    return ShapedArray(shape if axis is None else (*shape[:axis], *shape[axis + 1 :]), typeof(x).dtype)


def _merge_axis(source: int, destination: int, x: Any) -> Any:
    """Moves one axis of `x` in front of another and merges the two."""
    shape = typeof(x).shape
    order = [i for i in range(len(shape)) if i != source]
    sizes = [shape[i] for i in order]
    sizes[destination] *= shape[source]
    order.insert(destination, source)
    return moving.reshape(x, sizes, order)


def _merge_batch_axis(x: Any, dim: int, at: int, groups: int) -> Any:
    """Merges the batch axis of `x` into axis `at` of the result, after the groups in that axis."""
    if groups == 1:
        return _merge_axis(dim, at, x)
    x = divide_axis(x, at + (dim <= at), groups)
    return _merge_axis(at, at, _merge_axis(dim + (at < dim), at + 1, x))


def _swapped(spec: Sequence[int]) -> Shape:
    return (spec[1], spec[0], *spec[2:])


def permuted(shape: Sequence[int], spec: Sequence[int]) -> Shape:
    """The sizes of a shape in the order of `spec`."""
    return tuple(shape[i] for i in spec)


def dilate_shape(shape: Shape, dilation: Sequence[int]) -> Shape:
    """A shape (batch, feature, *spatial) after dilation of as many spatial axes as there are dilations."""
    end = 2 + len(dilation)
    return (*shape[:2], *dilated(shape[2:end], dilation[: len(shape) - 2], "conv_general_dilated"), *shape[end:])


def conv_result_shape(x: Shape, kernel: Shape, strides: Sequence[int], padding: Sequence, groups: int = 1) -> Shape:
    """The shape (batch, feature, *spatial) of the result; `x` and `kernel` are dilated shapes in the same order."""
    if len(padding) != len(x) - 2:
        raise TypeError(f"Wrong number of explicit pads for convolution: expected {len(x) - 2}, got {len(padding)}.")
    padded = [n + low + high for n, (low, high) in zip(x[2:], padding, strict=True)]
    if any(n < 0 for n in padded):
        raise ValueError(
            "Negative padding is larger than the size of the corresponding dimension: got "
            f"padding={tuple(padding)} for sizes {x[2:]}"
        )
    steps = zip(padded, kernel[2:], strides, strict=False)
    # Strides that are not positive are rejected where the operation is lowered, as jax does.
    spatial: Any = (stride_dim(n, w, s) if s else 0 for n, w, s in steps)
    return (x[0] // groups, kernel[0], *spatial)


def _check_groups(x: Shape, kernel: Shape, features: int, batches: int) -> None:
    name = "conv_general_dilated"
    for what, count in (("batch", batches), ("feature", features)):
        if count <= 0:
            raise ValueError(f"{name} {what}_group_count must be a positive integer, got {count}.")
    if features > 1 and batches > 1:
        raise ValueError(
            f"At most one of batch_group_count and feature_group_count may be > 1, got "
            f"batch_group_count={batches} and feature_group_count={features}"
        )
    for what, count, size in (("feature", features, x[1]), ("batch", batches, x[0])):
        if size % count:
            raise ValueError(
                f"{name} {what}_group_count must divide lhs {what} dimension size, but {count} does not divide {size}."
            )
        if kernel[0] % count:
            raise ValueError(
                f"{name} rhs output feature dimension size must be a multiple of {what}_group_count, but "
                f"{kernel[0]} is not a multiple of {count}."
            )
    if x[1] // features != kernel[1]:
        raise ValueError(
            f"{name} lhs feature dimension size divided by feature_group_count must equal the rhs input "
            f"feature dimension size, but {x[1]} // {features} != {kernel[1]}. Give the kernel that many input "
            "features, or say where the features are, by dimension_numbers."
        )


def _result_dtype(dtype: Any, preferred: Any) -> Any:
    if preferred is None or preferred == dtype:
        return dtype
    accepted = {np.integer: REAL, np.floating: FLOAT, np.complexfloating: COMPLEX}
    name = "conv_general_dilated: `preferred_element_type`"
    for kind, kinds in accepted.items():
        if dtypes.issubdtype(dtype, kind) and not kinds.accepts(preferred):
            raise TypeError(f"{name} {preferred} is incompatible with operands of type {dtype}.")
    if np.dtype(preferred).itemsize < np.dtype(dtype).itemsize:
        raise TypeError(f"{name} must not be narrower than the original type: {preferred}, {dtype}.")
    if dtypes.issubdtype(dtype, np.signedinteger) and dtypes.issubdtype(preferred, np.unsignedinteger):
        raise TypeError(f"{name} must have the same signedness as the original type: {preferred}, {dtype}.")
    return preferred


def _lower_complex(e: Any, x: str, y: str, lhs: ShapedArray, rhs: ShapedArray, out: ShapedArray, how: tuple) -> str:
    """A complex convolution as three real ones (Gauss)."""
    left, right, real = (ShapedArray(a.shape, np.finfo(a.dtype).dtype) for a in (lhs, rhs, out))
    (a, b), (c, d) = (
        [e.map_to(part, v, aval, half) for part in ("real", "imag")]
        for v, aval, half in ((x, lhs, left), (y, rhs, right))
    )
    total = e.binary("add", a, b, left)
    first = e.convolution(total, c, (left, right), real, *how)
    second = e.convolution(a, e.binary("subtract", d, c, right), (left, right), real, *how)
    third = e.convolution(b, e.binary("add", c, d, right), (left, right), real, *how)
    parts = e.binary("subtract", first, third, real), e.binary("add", first, second, real)
    return e.binary("complex", *parts, out)


def conv_general_permutations(dimension_numbers: Sequence[str]) -> tuple[Shape, Shape, Shape]:
    """Converts three strings like ("NHWC", "HWIO", "NHWC") to axis numbers as in `ConvDimensionNumbers`.

    Raises TypeError unless each string has its letters, N and C (I and O for the kernel), once.

    Example:
        >>> jax.lax.conv_general_permutations(("NHWC", "HWIO", "NHWC"))
        ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
    """
    lhs, rhs, out = dimension_numbers
    for i, (spec, pair) in enumerate(zip((lhs, rhs, out), ("NC", "OI", "NC"), strict=True)):
        if any(spec.count(letter) != 1 for letter in pair):
            raise TypeError(
                f"convolution dimension_numbers[{i}] must contain the characters '{pair[0]}' and "
                f"'{pair[1]}' exactly once, got {spec}."
            )
        if len(set(spec)) != len(spec):
            raise TypeError(f"convolution dimension_numbers[{i}] cannot have duplicate characters, got {spec}.")
    spatial = [c for c in rhs if c not in "OI"]
    if not set(lhs) - set("NC") == set(spatial) == set(out) - set("NC"):
        raise TypeError(
            "convolution dimension_numbers elements must each have the same set of spatial characters, got "
            f"{tuple(dimension_numbers)}."
        )
    places = lambda spec, pair: tuple([spec.index(c) for c in (*pair, *spatial)])  # noqa: E731
    return places(lhs, "NC"), places(rhs, "OI"), places(out, "NC")


def conv_dimension_numbers(
    lhs_shape: Sequence[int], rhs_shape: Sequence[int], dimension_numbers: Any
) -> ConvDimensionNumbers:
    """Converts strings, or None, to a `ConvDimensionNumbers` for arrays of the given shapes.

    None means (batch, feature, *spatial), and (out, in, *spatial) for the kernel. Raises TypeError or ValueError for
    other values.

    Example:
        >>> jax.lax.conv_dimension_numbers((1, 8, 3), (5, 3, 4), ("NWC", "WIO", "NWC"))
        ConvDimensionNumbers(lhs_spec=(0, 2, 1), rhs_spec=(2, 1, 0), out_spec=(0, 2, 1))
    """
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return dimension_numbers
    ndim = len(lhs_shape)
    if ndim != len(rhs_shape):
        raise TypeError(
            f"convolution requires lhs and rhs ndim to be equal, got {ndim} and {len(rhs_shape)}. The images need axes "
            "for batch and features beside the spatial ones, the kernel axes for output and input features."
        )
    if dimension_numbers is None:
        return ConvDimensionNumbers(*[tuple(range(ndim))] * 3)
    what = "convolution dimension_numbers"
    if not isinstance(dimension_numbers, (list, tuple)):
        raise TypeError(f"{what} must be tuple/list or None, got {type(dimension_numbers)}.")
    if len(dimension_numbers) != 3:
        raise TypeError(f"{what} list/tuple must be length 3, got {len(dimension_numbers)}.")
    if not all(isinstance(spec, str) for spec in dimension_numbers):
        raise TypeError(f"{what} elements must be strings, got {tuple(map(type, dimension_numbers))}.")
    for i, spec in enumerate(dimension_numbers):
        if len(spec) != ndim:
            raise TypeError(
                f"{what}[{i}] must have len equal to the ndim of lhs and rhs, got {len(spec)} for lhs and "
                f"rhs shapes {tuple(lhs_shape)} and {tuple(rhs_shape)}."
            )
    return ConvDimensionNumbers(*conv_general_permutations(dimension_numbers))


def _pairs(padding: Any) -> tuple[tuple[int, int], ...]:
    try:
        return tuple((as_index(low), as_index(high)) for low, high in padding)
    except (TypeError, ValueError):
        raise ValueError(
            "padding argument to conv_general_dilated should be a string or a sequence of (low, high) pairs, "
            f"got {padding}"
        ) from None


def conv_general_dilated(
    lhs: Array,
    rhs: Array,
    window_strides: Sequence[int],
    padding: Padding,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: dot.PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Computes a convolution over any number of spatial axes, with strides, padding, dilation and groups.

    As in neural networks, the kernel is not flipped: each result is the sum of the products of a window of `lhs` with
    the kernel, over all features.

    Args:
        lhs: The input: an array with a batch axis, a feature axis, and n spatial axes.
        rhs: The kernel: an array with axes for the output and input features, and n spatial axes. Its dtype is that
            of `lhs`.
        window_strides: n steps between windows.
        padding: `"VALID"`, `"SAME"` (as many windows as strides fit), `"SAME_LOWER"`, or n pairs (before, after).
        lhs_dilation: n factors; d puts d - 1 zeros between the elements of `lhs`. This gives transposed convolutions.
        rhs_dilation: n factors; d puts d - 1 zeros between the elements of the kernel.
        dimension_numbers: Three strings that name the axes of `lhs`, `rhs` and the result, for example
            `("NHWC", "HWIO", "NHWC")`; or a `jax.lax.ConvDimensionNumbers`. By default the batch axis and the feature
            axis come first, and in the kernel output features and input features.
        feature_group_count: The number of groups of features, each with its own kernels. The number of input features
            makes it depthwise.
        batch_group_count: The number of groups of batch elements, each with its own kernels.
        precision: A `jax.lax.Precision`, or a pair of them.
        preferred_element_type: The dtype in which products are summed and returned.
        out_sharding: The sharding of the result over Explicit mesh axes.

    Returns:
        An array with a batch axis, a feature axis and n spatial axes.

    Raises:
        TypeError, ValueError: If shapes, dtypes or arguments do not fit together.

    See also: `jax.lax.conv`, `jax.lax.conv_transpose`, `jax.numpy.convolve`.

    Example:
        >>> images, kernel = jnp.ones((1, 5, 5, 3)), jnp.ones((3, 3, 3, 8))
        >>> axes = ("NHWC", "HWIO", "NHWC")
        >>> jax.lax.conv_general_dilated(images, kernel, (1, 1), "SAME", dimension_numbers=axes).shape
        (1, 5, 5, 8)
        >>> x = jnp.array([[[1.0, 2.0, 3.0, 4.0]]])
        >>> jax.lax.conv_general_dilated(x, jnp.array([[[1.0, -1.0]]]), (1,), "VALID")
        Array([[[-1., -1., -1.]]], dtype=float32)
    """
    try:
        name = "conv_general_dilated"
        left, right = typeof(lhs).shape, typeof(rhs).shape
        numbers = conv_dimension_numbers(left, right, dimension_numbers)
        spatial = len(numbers.lhs_spec) - 2
        lhs_dilation = (1,) * spatial if lhs_dilation is None else tuple(lhs_dilation)
        rhs_dilation = (1,) * spatial if rhs_dilation is None else tuple(rhs_dilation)
        window_strides = tuple(window_strides)
        if 0 in window_strides:
            raise ValueError(f"{name}: window_strides must be positive, got {window_strides}")
        if isinstance(padding, str):
            if any(d != 1 for d in lhs_dilation):
                raise ValueError(
                    f"{name}: String padding is not implemented for transposed convolution using this op "
                    f"(lhs_dilation={lhs_dilation}). Specify the padding as pairs, or use conv_transpose."
                )
            window = dilate_shape(permuted(right, numbers.rhs_spec), rhs_dilation)[2:]
            _check_strides(name, window, window_strides)
            padding = padtype_to_pads(permuted(left, numbers.lhs_spec)[2:], window, window_strides, padding)
        if preferred_element_type is not None:
            preferred_element_type = dtypes.check_and_canonicalize_user_dtype(preferred_element_type, name)
        strides, lhs_dilation, rhs_dilation = (
            tuple(map(as_index, sizes)) for sizes in (window_strides, lhs_dilation, rhs_dilation)
        )
        sliding = dict(window_strides=strides, padding=_pairs(padding))
        sliding |= dict(lhs_dilation=lhs_dilation, rhs_dilation=rhs_dilation, dimension_numbers=numbers)
        groups = dict(feature_group_count=feature_group_count, batch_group_count=batch_group_count)
        types = dict(precision=dot.canonical_precision(precision), preferred_element_type=preferred_element_type)
        requested = requested_sharding("dot_general", out_sharding, len(left))
        return conv_general_dilated_p.bind(lhs, rhs, **sliding, **groups, **types, out_sharding=requested)
    except Exception as error:
        hide_frames(error)
        raise


def conv(
    lhs: Array,
    rhs: Array,
    window_strides: Sequence[int],
    padding: str,
    precision: dot.PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Computes a convolution without dilation and groups, with the axes in the default order.

    See `jax.lax.conv_general_dilated` for the arguments. `padding` is a string. Raises TypeError or ValueError for
    arrays that do not fit.

    Example:
        >>> x, kernel = jnp.array([[[1.0, 2.0, 3.0, 4.0]]]), jnp.array([[[1.0, 1.0]]])
        >>> jax.lax.conv(x, kernel, window_strides=(1,), padding="VALID")
        Array([[[3., 5., 7.]]], dtype=float32)
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
    precision: dot.PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Computes a convolution without groups, with the axes in the default order.

    See `jax.lax.conv_general_dilated` for the arguments.

    Example:
        >>> x, kernel = jnp.array([[[1.0, 2.0, 3.0, 4.0]]]), jnp.array([[[1.0, 1.0]]])
        >>> jax.lax.conv_with_general_padding(x, kernel, (1,), [(1, 0)], None, rhs_dilation=(2,))
        Array([[[2., 4., 6.]]], dtype=float32)
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
    precision: dot.PrecisionLike = None,
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

    Example:
        >>> jax.lax.conv_general_dilated_patches(jnp.array([[[1.0, 2.0, 3.0, 4.0]]]), (2,), (1,), "VALID")
        Array([[[1., 2., 3.],
                [2., 3., 4.]]], dtype=float32)
    """
    aval, filter_shape = typeof(lhs), tuple(filter_shape)
    numbers = conv_dimension_numbers(aval.shape, (1, 1, *filter_shape), dimension_numbers)
    size, features = int(np.prod(filter_shape)), aval.shape[numbers.lhs_spec[1]]
    rhs = moving.broadcast_in_dim(eye(size, size, aval.dtype), (features, size, size), (1, 2))
    rhs = moving.reshape(rhs, (features * size, 1, *filter_shape))
    rhs = dot.permute_axes(rhs, moving.inverse(numbers.rhs_spec))
    precisions = None if precision is None else (precision, dot.Precision.DEFAULT)
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
    precision: dot.PrecisionLike = None,
) -> Array:
    """Computes a convolution with a separate kernel at each position of the window.

    The input feature axis of `rhs` holds (feature, *filter_shape) flattened, and the spatial axes of `rhs` are
    those of the result.

    Example:
        >>> x = jnp.array([[[1.0, 2.0, 3.0]]])
        >>> kernels = jnp.array([[[1.0, 10.0], [1.0, 10.0]]])  # one column for each of the two positions
        >>> jax.lax.conv_general_dilated_local(x, kernels, (1,), "VALID", filter_shape=(2,))
        Array([[[ 3., 50.]]], dtype=float32)
    """
    how = dot.canonical_precision(precision)
    if how is not None and not (isinstance(how, tuple) and isinstance(how[0], dot.Precision)):
        raise ValueError(f"Unsupported precision for conv_general_dilated_local: {precision}")
    numbers = conv_dimension_numbers(typeof(lhs).shape, typeof(rhs).shape, dimension_numbers)
    patches = conv_general_dilated_patches(
        lhs, filter_shape, window_strides, padding, lhs_dilation, rhs_dilation, numbers, how and how[0]
    )
    _, rhs_spec, out_spec = numbers
    contract, batch = ((out_spec[1],), (rhs_spec[1],)), (tuple(out_spec[2:]), tuple(rhs_spec[2:]))
    out = dot.dot_general(patches, rhs, (contract, batch), how)
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
    """Returns the result shape of a convolution of arrays of these shapes, whose axes are in the default order.

    Example:
        >>> jax.lax.conv_shape_tuple((1, 3, 8, 8), (4, 3, 5, 5), (1, 1), ((0, 0), (2, 2)))
        (1, 4, 4, 8)
    """
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


def _shape_function(name: str, shape_of: Callable, modes: Sequence[str], kind: str, size: int) -> Callable[..., Shape]:
    """Returns the function `name` of operand shapes; `shape_of` computes it for axes in the default order."""

    def shape_tuple(
        lhs_shape: Sequence[int],
        rhs_shape: Sequence[int],
        window_strides: Sequence[int],
        padding: Padding,
        dimension_numbers: Sequence[str],
    ) -> Shape:
        """Returns the shape of a {kind} of arrays of these shapes; strings name axes.

        Example:
            >>> jax.lax.{name}((1, 8, 8, 3), (5, 5, 3, 4), (2, 2), "SAME", ("NHWC", "HWIO", "NHWC"))
            (1, {size}, {size}, 4)
        """
        if isinstance(padding, str) and modes and padding not in modes:
            raise ValueError(f"{name}: Invalid padding mode: {padding}")
        lhs, rhs, out = conv_general_permutations(dimension_numbers)
        shape = shape_of(permuted(lhs_shape, lhs), permuted(rhs_shape, rhs), window_strides, padding)
        return permuted(shape, moving.inverse(out))

    return named(shape_tuple, name, filled(shape_tuple, dict(name=name, kind=kind, size=size)))


conv_general_shape_tuple = _shape_function("conv_general_shape_tuple", conv_shape_tuple, (), "convolution", 4)
conv_transpose_shape_tuple = _shape_function(
    "conv_transpose_shape_tuple", _transposed_shape, ("SAME", "VALID"), "transposed convolution", 16
)
