"""Convolution and correlation of vectors, and window functions."""

from __future__ import annotations

from collections.abc import Callable
from math import pi
from typing import Any

from minijax.base.dtypes import DTypeLike
from minijax.dispatch.jitted import jitted
from minijax.ir.types import typeof
from minijax.numpy import creation, custom_rules, ranges, shaping, ufuncs
from minijax.primitives.conv import conv_general_dilated
from minijax.primitives.dot import PrecisionLike
from minijax.primitives.moving import broadcast_in_dim
from minijax.primitives.promote import arrays, promote_dtypes, promote_dtypes_inexact
from minijax.primitives.structural import rev, squeeze
from minijax.run.arrays.array import Array, ArrayLike

_STATIC = ("mode", "precision", "preferred_element_type")
_MODES = ("full", "same", "valid")


@jitted("_conv", static=("name", *_STATIC))
def _conv(x: Any, y: Any, mode: str, name: str, precision: Any, preferred_element_type: Any) -> Any:
    shapes = typeof(x).shape, typeof(y).shape
    if len(shapes[0]) != 1 or len(shapes[1]) != 1:
        raise ValueError(
            f"{name}() only support 1-dimensional inputs, got shapes {shapes[0]} and {shapes[1]}. "
            f"`jax.scipy.signal.{name}` takes any rank."
        )
    x, y = (promote_dtypes_inexact if preferred_element_type is None else promote_dtypes)(x, y)
    is_swapped = shapes[0][0] < shapes[1][0]
    if name == "correlate":
        y = ufuncs.conjugate(y)
    x, y = (y, x) if is_swapped else (x, y)
    if name == "convolve":
        y = shaping.flip(y)
    n = typeof(y).shape[0]
    padding = {"full": (n - 1, n - 1), "same": (n // 2, n - n // 2 - 1), "valid": (0, 0)}[mode]
    x, y = (broadcast_in_dim(z, (1, 1, *typeof(z).shape), (2,)) for z in (x, y))
    out = conv_general_dilated(
        x, y, (1,), [padding], precision=precision, preferred_element_type=preferred_element_type
    )
    return squeeze(rev(out, (2,)) if is_swapped and name == "correlate" else out, (0, 1))


def _checked(name: str, a: Any, v: Any, mode: str) -> list:
    a, v = arrays(name, a, v)
    if not typeof(a).size or not typeof(v).size:
        raise ValueError(f"{name}: inputs cannot be empty, got shapes {typeof(a).shape} and {typeof(v).shape}.")
    if mode not in _MODES:
        raise ValueError(f"{name}: mode must be one of {list(_MODES)}, got {mode!r}")
    return [a, v]


@jitted("convolve", static=_STATIC)
def convolve(
    a: ArrayLike,
    v: ArrayLike,
    mode: str = "full",
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Computes the convolution of two vectors.

    `mode` is "full" for all overlaps, "same" for as many as the longer vector has elements, or "valid" for complete
    overlaps. Integers become floats. `precision` is that of the multiplications, and `preferred_element_type` the dtype
    of the sums. Raises ValueError for other ranks and for vectors without elements.

    Example:
      >>> jnp.convolve(jnp.array([1.0, 2.0, 3.0]), jnp.array([1.0, 1.0]))
      Array([1., 3., 5., 3.], dtype=float32)
    """
    return _conv(*_checked("convolve", a, v, mode), mode, "convolve", precision, preferred_element_type)


@jitted("correlate", static=_STATIC)
def correlate(
    a: ArrayLike,
    v: ArrayLike,
    mode: str = "valid",
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Computes the cross-correlation of two vectors, conjugating the second.

    `mode` is "valid" (the default), "same" or "full". Integers become floats. `precision` is that of the
    multiplications, and `preferred_element_type` the dtype of the sums. Raises ValueError for other ranks and for
    vectors without elements.

    Example:
      >>> jnp.correlate(jnp.array([1, 2, 3]), jnp.array([1, 1]))
      Array([3., 5.], dtype=float32)
    """
    return _conv(*_checked("correlate", a, v, mode), mode, "correlate", precision, preferred_element_type)


# ---- windows -----------------------------------------------------------------------------------------


def _window(name: str, of: Callable, M: Any, *shape: Any) -> Any:
    size = int(creation.concrete(M, name, "M"))
    return creation.ones(size) if size <= 1 else of(ranges.arange(size, dtype=float), size, *shape)


def _cosine(turns: float, n: Any, size: int) -> Any:
    angle = ufuncs.divide(ufuncs.multiply(turns * pi, n), size - 1)
    return ufuncs.cos(angle)


def bartlett(M: int) -> Array:
    """Returns the Bartlett window, a triangle of `M` points that is zero at both ends.

    `M` is static. The result has the default floating dtype.

    Example:
      >>> jnp.bartlett(5)
      Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float32)
    """
    return _window("bartlett", lambda n, size: 1 - ufuncs.absolute(2 * n + 1 - size) / (size - 1), M)


def blackman(M: int) -> Array:
    """Returns the Blackman window of `M` points, a sum of three cosines.

    `M` is static. The result has the default floating dtype.

    Example:
      >>> jnp.blackman(5).round(3)
      Array([-0.  ,  0.34,  1.  ,  0.34, -0.  ], dtype=float32)
    """
    return _window("blackman", lambda *n: 0.42 - 0.5 * _cosine(2, *n) + 0.08 * _cosine(4, *n), M)


def hamming(M: int) -> Array:
    """Returns the Hamming window of `M` points, a raised cosine that does not reach zero.

    `M` is static. The result has the default floating dtype.

    Example:
      >>> jnp.hamming(5).round(3)
      Array([0.08000001, 0.54      , 1.        , 0.54      , 0.08000001],      dtype=float32)
    """
    return _window("hamming", lambda *n: 0.54 - 0.46 * _cosine(2, *n), M)


def hanning(M: int) -> Array:
    """Returns the Hann window of `M` points, a raised cosine that is zero at both ends.

    `M` is static. The result has the default floating dtype.

    Example:
      >>> jnp.hanning(5).round(3)
      Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float32)
    """
    return _window("hanning", lambda *n: 0.5 * (1 - _cosine(2, *n)), M)


def _kaiser(n: Any, size: int, beta: Any) -> Any:
    middle = 0.5 * (size - 1)
    return custom_rules.i0(ufuncs.multiply(beta, ufuncs.sqrt(1 - ((n - middle) / middle) ** 2))) / custom_rules.i0(beta)


def kaiser(M: int, beta: ArrayLike) -> Array:
    """Returns the Kaiser window of `M` points, made with the Bessel function `i0`.

    `M` is static. `beta` is the shape parameter, which may be traced: the larger, the narrower. The result has the
    default floating dtype.

    Example:
      >>> jnp.kaiser(5, 0.0)
      Array([1., 1., 1., 1., 1.], dtype=float32)
    """
    return _window("kaiser", _kaiser, M, beta)
