"""Discrete cosine transforms of the second type, and their inverses."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax.base import dims
from minijax.base.faces import documented
from minijax.ir.types import typeof
from minijax.numpy import fft
from minijax.primitives import elementwise as lax, structural
from minijax.primitives.convert import convert_element_type
from minijax.primitives.promote import check_arraylike, promote_args_inexact
from minijax.run.arrays.array import Array


def _checked(name: str, x: Any, type: int, norm: str | None) -> Any:
    check_arraylike(name, x)
    if type != 2:
        raise NotImplementedError(f"{name}: Only DCT type 2 is implemented.")
    if norm not in (None, "backward", "ortho"):
        raise ValueError(f"jax.scipy.fft.{name}: norm={norm!r} is not implemented")
    return jnp.asarray(x)


def _sized(x: Any, lengths: Mapping[int, int]) -> Any:
    """`x` with axes truncated or zero-padded to these lengths."""
    widths = [(0, 0, 0)] * x.ndim
    for axis, n in lengths.items():
        widths[axis] = (0, dims.as_index(n) - x.shape[axis], 0)
    return structural.pad(x, np.zeros((), typeof(x).dtype), widths) if lengths else x


def _along(x: Any, axis: int, ndim: int) -> Any:
    return jnp.expand_dims(x, [i for i in range(ndim) if i != axis])


def _indices(n: int, axis: int, dtype: Any, ndim: int) -> Any:
    return _along(jnp.arange(n, dtype=dtype), axis, ndim)


def _rotation(k: Any, n: int) -> Any:
    """exp(-i * pi * k / (2 * n)), complex, in the precision of `k`."""
    return lax.exp(-0.5j * math.pi * _complex(k) / n)


def _complex(x: Any) -> Any:
    return convert_element_type(x, np.result_type(typeof(x).dtype, np.complex64))


def _ortho(n: int, axis: int, x: Any) -> Any:
    factors = jnp.concatenate([jnp.full(1, 4, x.dtype), jnp.full(n - 1, 2, x.dtype)])
    return lax.sqrt(_along(factors, axis, x.ndim) * n)


def _in_parts(x: Any, lengths: Mapping[int, int], transform: Callable[[Any], Any]) -> Any:
    """The transform of `x` in these lengths, by real and imaginary parts."""
    if jnp.iscomplexobj(x):
        return lax.complex(*(transform(_sized(part(x), lengths)) for part in (lax.real, lax.imag)))
    return transform(_sized(x, lengths))


def _along_one(transform: Callable, x: Any, n: int | None, axis: int, norm: str | None) -> Any:
    axis = dims.canonical_axis(axis, x.ndim)
    return _in_parts(x, {} if n is None else {axis: n}, lambda part: transform(part, axis, norm))


# J. Makhoul, "A fast cosine transform in one and two dimensions", 1980.


def _even_then_odd(x: Any, axis: int) -> Any:
    """`x` with its even indices first, then its odd ones in reverse."""
    if x.shape[axis] == 0:
        raise TypeError(f"dct: a transform needs at least one element along its axis, got shape {x.shape}")
    even, odd = (x[(*(slice(None),) * axis, slice(i, None, 2))] for i in (0, 1))
    return jnp.concatenate([even, structural.rev(odd, (axis,))], axis)


def _dct(x: Any, axis: int, norm: str | None) -> Any:
    n = x.shape[axis]
    spectrum = fft.fft(_even_then_odd(x, axis), axis=axis)
    k = _indices(n, axis, typeof(lax.real(spectrum)).dtype, x.ndim)
    result = 2 * lax.real(spectrum * _rotation(k, n))
    return result / _ortho(n, axis, result) if norm == "ortho" else result


def _dct_of_planes(x: Any, axes: Sequence[int], norm: str | None) -> Any:
    """The transform along two axes at once: the second one's other half is the spectrum's mirror image."""
    first, second = axes
    spectrum = fft.fftn(_even_then_odd(_even_then_odd(x, first), second), axes=axes)
    i, j = (_indices(x.shape[axis], axis, spectrum.dtype, x.ndim) for axis in axes)
    outer = _rotation(i, x.shape[first])
    half = _rotation(j, x.shape[second]) * spectrum
    mirrored = _rotation(-j, x.shape[second]) * jnp.roll(jnp.flip(spectrum, second), 1, second)
    result = 2 * lax.real(outer * (half + mirrored))
    if norm == "ortho":
        for axis in axes:
            result = result / _ortho(x.shape[axis], axis, result)
    return result


def _idct(x: Any, axis: int, norm: str | None) -> Any:
    (x,) = promote_args_inexact("idct", x)
    n, before = x.shape[axis], (slice(None),) * axis
    for _ in range(1 if norm == "ortho" else 2):
        x = x / _ortho(n, axis, x)
    k = _indices(n, axis, typeof(x).dtype, x.ndim)
    _rotation(k, n)  # jax's jaxpr has it twice
    spectrum = _complex(x) / _rotation(k, n) * 2 * n
    order = lax.real(fft.ifft(spectrum, axis=axis, norm="backward"))
    half = -(-n // 2)
    even, odd = order[(*before, slice(half))], structural.rev(order[(*before, slice(half, None))], (axis,))
    result = jnp.zeros_like(order).at[(*before, slice(0, None, 2))].set(even)
    return result.at[(*before, slice(1, None, 2))].set(odd)


def dct(x: Array, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Computes the discrete cosine transform of type 2 along an axis.

    `n` is the length to which the axis is cut or padded with zeros. `norm` is "backward" (also `None`) or "ortho".
    Raises NotImplementedError for other types, ValueError for other norms.

    Example:
      >>> jax.scipy.fft.dct(jnp.ones(4)).round(3)
      Array([8., 0., 0., 0.], dtype=float32)
    """
    return _along_one(_dct, _checked("dct", x, type, norm), n, axis, norm)


def idct(x: Array, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Computes the inverse of the discrete cosine transform of type 2 along an axis.

    `n` is the length to which the axis is cut or padded with zeros. `norm` is "backward" (also `None`) or "ortho".
    Raises NotImplementedError for other types, ValueError for other norms.

    Example:
      >>> jax.scipy.fft.idct(jax.scipy.fft.dct(jnp.arange(3.0))).round(3)
      Array([0., 1., 2.], dtype=float32)
    """
    return _along_one(_idct, _checked("idct", x, type, norm), n, axis, norm)


def _over_axes(x: Any, s: Any, axes: Any, transform: Callable[[Any, Sequence[int]], Any]) -> Any:
    sizes = () if s is None else tuple(s) if isinstance(s, Iterable) and getattr(s, "ndim", 1) else (operator.index(s),)
    if len(sizes) > x.ndim:
        raise ValueError(f"dctn: s must have at most x.ndim ({x.ndim}) elements, got {len(sizes)}")
    if axes is None:
        axes = range(x.ndim) if s is None else range(-len(sizes), 0)
    listed = axes if isinstance(axes, (tuple, list, range)) else (operator.index(axes),)
    axes = [dims.canonical_axis(axis, x.ndim) for axis in listed]
    if len(set(axes)) < len(axes):
        raise ValueError(f"dctn: repeated axis in {listed}")
    return _in_parts(x, dict(zip(axes, sizes, strict=False)), lambda part: transform(part, axes))


def dctn(
    x: Array, type: int = 2, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = None
) -> Array:
    """Computes the discrete cosine transform of type 2 along several axes, by default all.

    `s` are the lengths to which the axes are cut or padded with zeros. `norm` is "backward" (also `None`) or "ortho".
    Raises NotImplementedError for other types.

    Example:
      >>> jax.scipy.fft.dctn(jnp.ones((2, 2))).round(3)
      Array([[16.,  0.],
             [ 0.,  0.]], dtype=float32)
    """

    def transform(x: Any, axes: Sequence[int]) -> Any:
        for i in range(0, len(axes) - 1, 2):
            x = _dct_of_planes(x, axes[i : i + 2], norm)
        return _dct(x, axes[-1], norm) if len(axes) % 2 else x

    return _over_axes(_checked("dctn", x, type, norm), s, axes, transform)


def idctn(
    x: Array, type: int = 2, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = None
) -> Array:
    """Computes the inverse of the discrete cosine transform of type 2 along several axes, by default all.

    `s` are the lengths to which the axes are cut or padded with zeros. `norm` is "backward" (also `None`) or "ortho".
    Raises NotImplementedError for other types.

    Example:
      >>> jax.scipy.fft.idctn(jax.scipy.fft.dctn(jnp.ones((2, 2)))).round(3)
      Array([[1., 1.],
             [1., 1.]], dtype=float32)
    """

    def transform(x: Any, axes: Sequence[int]) -> Any:
        for axis in axes:
            x = _idct(x, axis, norm)
        return x

    return _over_axes(_checked("idctn", x, type, norm), s, axes, transform)


__all__, __dir__ = documented(__name__, "dct dctn idct idctn")
