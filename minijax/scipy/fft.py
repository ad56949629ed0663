"""Discrete cosine transforms of the second type, and their inverses."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax.base import dims
from minijax.base.faces import listing
from minijax.ir.types import typeof
from minijax.numpy import fft
from minijax.primitives import elementwise as lax, structural
from minijax.primitives.convert import convert_element_type
from minijax.primitives.promote import promote_args_inexact
from minijax.run.arrays.array import Array

__all__, __dir__ = listing(__name__, "dct dctn idct idctn")


def _check(name: str, type: int, norm: str | None) -> None:
    if type != 2:
        raise NotImplementedError(f"{name}: Only DCT type 2 is implemented.")
    if norm not in (None, "backward", "ortho"):
        raise ValueError(f"jax.scipy.fft.{name}: norm={norm!r} is not implemented")


def _sized(x: Any, n: int, axis: int) -> Any:
    """`x` truncated or zero-padded to the length n."""
    widths = [(0, 0)] * x.ndim
    widths[axis] = (0, max(n - x.shape[axis], 0))
    return jnp.pad(x, widths)[(slice(None),) * axis + (slice(n),)]


def _along(x: Any, axis: int, ndim: int) -> Any:
    return jnp.expand_dims(x, [i for i in range(ndim) if i != axis])


def _turns(n: int, axis: int, x: Any) -> Any:
    """exp(-i * pi * k / (2 * n)) for each k < n, complex, in the precision of `x`."""
    k = _along(jnp.arange(n, dtype=typeof(x).dtype), axis, x.ndim)
    return lax.exp(-0.5j * math.pi * _complex(k) / n)


def _complex(x: Any) -> Any:
    return convert_element_type(x, np.result_type(typeof(x).dtype, np.complex64))


def _ortho(n: int, axis: int, x: Any) -> Any:
    factors = jnp.concatenate([jnp.full(1, 4, x.dtype), jnp.full(n - 1, 2, x.dtype)])
    return lax.sqrt(_along(factors, axis, x.ndim) * n)


def _in_parts(transform: Callable, x: Any, n: int | None, axis: int, norm: str | None) -> Any:
    (x,) = promote_args_inexact("dct", jnp.asarray(x))
    axis = dims.canonical_axis(axis, x.ndim)
    if n is not None:
        x = _sized(x, n, axis)
    if jnp.iscomplexobj(x):
        return lax.complex(transform(lax.real(x), axis, norm), transform(lax.imag(x), axis, norm))
    return transform(x, axis, norm)


def _dct(x: Any, axis: int, norm: str | None) -> Any:
    n, before = x.shape[axis], (slice(None),) * axis
    # J. Makhoul, "A fast cosine transform in one and two dimensions", 1980: even indices, then odd ones in reverse.
    even, odd = (x[(*before, slice(i, None, 2))] for i in (0, 1))
    order = jnp.concatenate([even, structural.rev(odd, (axis,))], axis)
    result = 2 * lax.real(fft.fft(order, axis=axis) * _turns(n, axis, x))
    return result / _ortho(n, axis, x) if norm == "ortho" else result


def _idct(x: Any, axis: int, norm: str | None) -> Any:
    n, before = x.shape[axis], (slice(None),) * axis
    for _ in range(1 if norm == "ortho" else 2):
        x = x / _ortho(n, axis, x)
    spectrum = _complex(x) / _turns(n, axis, x) * 2 * n
    order = lax.real(fft.ifft(spectrum, axis=axis, norm="backward"))
    half = -(-n // 2)
    even, odd = order[(*before, slice(half))], structural.rev(order[(*before, slice(half, None))], (axis,))
    result = jnp.zeros_like(order).at[(*before, slice(0, None, 2))].set(even)
    return result.at[(*before, slice(1, None, 2))].set(odd)


def dct(x: Array, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """As `scipy.fft.dct`; raises NotImplementedError for other types than 2."""
    _check("dct", type, norm)
    return _in_parts(_dct, x, n, axis, norm)


def idct(x: Array, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """As `scipy.fft.idct`; raises NotImplementedError for other types than 2."""
    _check("idct", type, norm)
    return _in_parts(_idct, x, n, axis, norm)


def _over_axes(transform: Callable, x: Any, s: Any, axes: Any, norm: str | None) -> Any:
    x = jnp.asarray(x)
    s = (s,) if isinstance(s, int) else s
    if axes is None and s is not None and len(s) > x.ndim:
        raise ValueError(f"dctn: s must have at most x.ndim ({x.ndim}) elements, got {len(s)}")
    if axes is None:
        axes = range(x.ndim) if s is None else range(-len(s), 0)
    axes = (axes,) if isinstance(axes, int) else tuple(axes)
    sizes = (None,) * len(axes) if s is None else s
    if len(sizes) != len(axes):
        raise ValueError("dctn: s and axes must have the same length")
    for axis, n in zip(axes, sizes, strict=True):
        x = _in_parts(transform, x, n, axis, norm)
    return x


def dctn(
    x: Array, type: int = 2, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = None
) -> Array:
    """As `scipy.fft.dctn`; raises NotImplementedError for other types than 2."""
    _check("dctn", type, norm)
    return _over_axes(_dct, x, s, axes, norm)


def idctn(
    x: Array, type: int = 2, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = None
) -> Array:
    """As `scipy.fft.idctn`; raises NotImplementedError for other types than 2."""
    _check("idctn", type, norm)
    return _over_axes(_idct, x, s, axes, norm)
