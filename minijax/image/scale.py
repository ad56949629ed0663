"""Image resizing: each dimension is multiplied by a matrix of weights, computed from a kernel.

The kernels: R. Keys, "Cubic convolution interpolation for digital image processing", 1981, with a = -0.5, or
-0.75 as in PyTorch, which without antialiasing repeats the edge outside of the image; C. Lanczos' windowed sinc.
"""

import enum
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax.base import dims
from minijax.dispatch.jitted import jitted
from minijax.primitives.dot import Precision
from minijax.primitives.promote import promote_dtypes_inexact


class ResizeMethod(enum.Enum):
    """Names the ways in which an image is sampled between its elements.

    Example:
        >>> jax.image.resize(jnp.array([0.0, 1.0]), (4,), jax.image.ResizeMethod.NEAREST)
        Array([0., 0., 1., 1.], dtype=float32)
    """

    NEAREST = 0
    LINEAR = 1
    LANCZOS3 = 2
    LANCZOS5 = 3
    CUBIC = 4
    CUBIC_PYTORCH = 5
    AREA = 6

    @staticmethod
    def from_string(s: str) -> "ResizeMethod":
        """The method with this name. Raises ValueError for an unknown one."""
        if s not in _NAMES:
            raise ValueError(f'Unknown resize method "{s}"')
        return _NAMES[s]


_NAMES = {
    "nearest": ResizeMethod.NEAREST,
    **dict.fromkeys(("linear", "bilinear", "trilinear", "triangle"), ResizeMethod.LINEAR),
    "lanczos3": ResizeMethod.LANCZOS3,
    "lanczos5": ResizeMethod.LANCZOS5,
    **dict.fromkeys(("cubic", "bicubic", "tricubic"), ResizeMethod.CUBIC),
    **dict.fromkeys(("cubic-pytorch", "bicubic-pytorch"), ResizeMethod.CUBIC_PYTORCH),
    "area": ResizeMethod.AREA,
}


def _triangle(x: Any) -> Any:
    return jnp.maximum(0, 1 - jnp.abs(x))


def _lanczos(radius: float, x: Any) -> Any:
    product = radius * jnp.sin(np.pi * x) * jnp.sin(np.pi * x / radius)
    near = jnp.where(x > 1e-3, product / jnp.where(x != 0, np.pi**2 * x**2, 1), 1)
    return jnp.where(x > radius, 0.0, near)


def _pytorch_cubic(x: Any) -> Any:
    near = ((1.25 * x - 2.25) * x) * x + 1.0
    inner = jnp.where(x >= 1.0, ((-0.75 * x - -3.75) * x + -6.0) * x - -3.0, near)
    return jnp.where(x >= 2.0, 0.0, inner)


def _keys_cubic(x: Any) -> Any:
    near = ((1.5 * x - 2.5) * x) * x + 1.0
    inner = jnp.where(x >= 1.0, ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0, near)
    return jnp.where(x >= 2.0, 0.0, inner)


def _overlap(starts: Any, ends: Any, size: int) -> Any:
    """The length of the part of each element that is in each interval."""
    first = jnp.arange(size, dtype=starts.dtype)
    last = first + 1
    after = jnp.minimum(ends[None, :], last[:, None])
    return jnp.maximum(0, after - jnp.maximum(starts[None, :], first[:, None]))


_KERNELS: dict[ResizeMethod, Callable] = {
    ResizeMethod.LINEAR: _triangle,
    ResizeMethod.LANCZOS3: functools.partial(_lanczos, 3.0),
    ResizeMethod.LANCZOS5: functools.partial(_lanczos, 5.0),
    ResizeMethod.CUBIC: _keys_cubic,
    ResizeMethod.CUBIC_PYTORCH: _pytorch_cubic,
    ResizeMethod.AREA: _overlap,
}


def _like(number: Any, dtype: Any) -> Any:
    return dtype.type(number) if isinstance(number, float) else number.astype(dtype)


def _weights(
    sizes: tuple[int, int], scale: Any, translation: Any, kernel: Callable, antialias: bool, dtype: Any
) -> Any:
    """The weight of each input element in each output element."""
    size, new_size = sizes
    inverse = 1.0 / scale
    # Downsampling with antialiasing widens the kernel by the inverse scale.
    width = jnp.maximum(inverse, 1.0) if antialias else 1.0
    is_clamped = kernel is _pytorch_cubic and not antialias
    if kernel is _pytorch_cubic and antialias:
        kernel = _keys_cubic
    factor = _like(inverse, dtype)
    positions = (jnp.arange(new_size, dtype=dtype) + 0.5) * factor - _like(translation * inverse, dtype) - 0.5
    elements = jnp.arange(-2, size + 2, dtype=dtype) if is_clamped else jnp.arange(size, dtype=dtype)
    if kernel is _overlap:
        starts = jnp.arange(new_size, dtype=dtype) * factor - _like(translation * inverse, dtype)
        weights = _overlap(starts, starts + factor, size)
    else:
        weights = kernel(jnp.abs(positions[None, :] - elements[:, None]) / width)
    if is_clamped:
        nearest = jnp.clip(elements.astype(np.int32), 0, size - 1)
        columns = jnp.arange(new_size)
        folded = jnp.zeros((size, new_size), weights.dtype)
        columns = jnp.broadcast_to(columns, weights.shape)
        weights = folded.at[nearest[:, None], columns].add(weights)
    total = jnp.sum(weights, 0, keepdims=True)
    smallest = 1000.0 * float(np.finfo(np.float32).eps)
    weights = jnp.where(jnp.abs(total) > smallest, weights / jnp.where(total != 0, total, 1), 0)
    if is_clamped:
        return weights
    is_inside = (positions >= -0.5) & (positions <= size - 0.5)
    return jnp.where(is_inside[None, :], weights, 0)


def _scaled(
    x: Any,
    shape: Sequence[int],
    axes: Sequence[int],
    scale: Any,
    translation: Any,
    kernel: Callable,
    antialias: bool,
    precision: Any,
) -> Any:
    operands: list = [x, list(range(x.ndim))]
    labels = list(range(x.ndim))
    dtype = np.dtype(np.float64 if x.dtype in (np.float64, np.complex128) else np.float32)
    for i, axis in enumerate(axes):
        labels[axis] = x.ndim + axis
        weights = _weights((x.shape[axis], shape[axis]), scale[i], translation[i], kernel, antialias, dtype)
        operands += [weights.astype(x.dtype), [axis, x.ndim + axis]]
    return jnp.einsum(*operands, labels, precision=precision)


def _nearest(x: Any, shape: Sequence[int]) -> Any:
    for axis, (size, new_size) in enumerate(zip(x.shape, shape, strict=True)):
        if size == new_size:
            continue
        indices = jnp.floor((jnp.arange(new_size, dtype=np.float32) + 0.5) * size / new_size).astype(np.int32)
        x = x[(slice(None),) * axis + (indices,)]
    return x


def _method(method: str | ResizeMethod) -> ResizeMethod:
    if isinstance(method, str):
        return ResizeMethod.from_string(method)
    if not isinstance(method, ResizeMethod):
        raise AssertionError(f"jax.image: method must be a string or a ResizeMethod, got {method!r}")
    return method


def _shape(shape: Any) -> tuple[int, ...]:
    return dims.canonical_shape((shape,) if isinstance(shape, int) else tuple(shape))


def _check_rank(x: Any, shape: Sequence[int]) -> None:
    if len(shape) != x.ndim:
        raise ValueError(
            f"jax.image: shape must have length equal to the number of dimensions of x;  {shape} vs {x.shape}"
        )


def scale_and_translate(
    image: Any,
    shape: Sequence[int],
    spatial_dims: Sequence[int],
    scale: Any,
    translation: Any,
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: Any = Precision.HIGHEST,
) -> Any:
    """Resamples an image to `shape`; position i of a spatial axis moves to i * scale + translation.

    `scale` and `translation` have an element for each spatial dimension. Raises AssertionError if they do not, and
    ValueError for the method "nearest".

    Example:
        >>> one, zero = jnp.ones(1), jnp.zeros(1)
        >>> jax.image.scale_and_translate(jnp.array([0.0, 4.0]), (4,), (0,), 2 * one, zero, "linear")
        Array([0., 1., 3., 4.], dtype=float32)
    """
    shape = _shape(shape)
    _check_rank(image, shape)
    method = _method(method)
    if method == ResizeMethod.NEAREST:
        raise ValueError("Nearest neighbor resampling is not currently supported for scale_and_translate.")
    scale, translation = promote_dtypes_inexact(scale, translation)
    if len(spatial_dims) != len(scale) or len(spatial_dims) != len(translation):
        raise AssertionError(
            f"scale_and_translate: {len(spatial_dims)} spatial dims, {len(scale)} scales, "
            f"{len(translation)} translations"
        )
    axes = [dims.canonical_axis(axis, image.ndim) for axis in spatial_dims]
    (image,) = promote_dtypes_inexact(image)
    return _scaled(image, shape, axes, scale, translation, _KERNELS[method], antialias, precision)


@jitted("_resize", static=("shape", "method", "antialias", "precision"))
def _resize(image: Any, shape: tuple[int, ...], method: str | ResizeMethod, antialias: bool, precision: Any) -> Any:
    _check_rank(image, shape)
    method = _method(method)
    if method == ResizeMethod.NEAREST:
        return _nearest(image, shape)
    (image,) = promote_dtypes_inexact(image)
    axes = [axis for axis in range(image.ndim) if shape[axis] != image.shape[axis]]
    scale = [1.0 if shape[axis] == 0 else shape[axis] / image.shape[axis] for axis in axes]
    return _scaled(image, shape, axes, scale, [0.0] * len(axes), _KERNELS[method], antialias, precision)


def resize(
    image: Any,
    shape: Sequence[int],
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: Any = Precision.HIGHEST,
) -> Any:
    """Resizes an image.

    Args:
        image: An array of any rank; axes whose size does not change are not resampled.
        shape: The size of each axis of the result.
        method: A `jax.image.ResizeMethod` or its name: `"nearest"`, `"linear"` (also `"bilinear"`, `"trilinear"`),
            `"cubic"` (also `"bicubic"`), `"lanczos3"` or `"lanczos5"`.
        antialias: For downsampling, whether the kernel is widened so that all elements contribute.
        precision: The precision of products.

    Raises:
        ValueError: For an unknown method, and unless `shape` has a size for each axis.

    Example:
        >>> jax.image.resize(jnp.array([0.0, 4.0]), (4,), "linear")
        Array([0., 1., 3., 4.], dtype=float32)
    """
    return _resize(image, _shape(shape), method, antialias, precision)
