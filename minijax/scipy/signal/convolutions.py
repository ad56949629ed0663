"""Convolutions and correlations of arrays, over all dimensions or some."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax.api.vmap import vmap
from minijax.base import dims
from minijax.numpy import fft
from minijax.primitives.conv import conv_general_dilated
from minijax.primitives.dot import PrecisionLike
from minijax.primitives.dynamic_slice import dynamic_slice
from minijax.primitives.moving import broadcast_in_dim
from minijax.primitives.promote import check_arraylike, promote_dtypes_inexact
from minijax.run.arrays.array import Array, ArrayLike

_MODES = ("full", "same", "valid")
_METHODS = ("auto", "direct", "fft")


def _check_mode(name: str, mode: str) -> None:
    if mode not in _MODES:
        raise ValueError(f"{name}: mode must be one of {list(_MODES)}, got {mode!r}")


def _is_covered(inner: Any, outer: Any) -> bool:
    return all(m <= n for m, n in zip(inner.shape, outer.shape, strict=True))


def _larger_first(refusal: str, in1: Any, in2: Any) -> tuple[Any, Any]:
    if _is_covered(in1, in2):
        return in2, in1
    if not _is_covered(in2, in1):
        raise ValueError(f"{refusal} Got shapes {in1.shape} and {in2.shape}.")
    return in1, in2


def _part(mode: str, first: Sequence[int], second: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(start, shape) of the part of the full convolution that a mode returns."""
    full = tuple(m + n - 1 for m, n in zip(first, second, strict=True))
    if mode == "valid":
        shape = tuple(abs(m - n) + 1 for m, n in zip(first, second, strict=True))
    else:
        shape = full if mode == "full" else tuple(first)
    return tuple((m - n) // 2 for m, n in zip(full, shape, strict=True)), shape


def _direct(name: str, in1: Any, in2: Any, mode: str, precision: Any) -> Any:
    _check_mode(name, mode)
    if in1.ndim != in2.ndim:
        raise ValueError(f"{name}: in1 and in2 must have the same number of dimensions, got {in1.ndim} and {in2.ndim}")
    if not in1.size or not in2.size:
        raise ValueError(
            f"{name}: zero-size arrays not supported in convolutions, got shapes {in1.shape} and {in2.shape}."
        )
    in1, in2 = promote_dtypes_inexact(in1, in2)
    starts, shape = _part(mode, in1.shape, in2.shape)
    in1, in2 = _larger_first(f"{name}: One input must be smaller than the other in every dimension.", in1, in2)
    in2 = jnp.flip(in2)
    padding = []
    for m, n, start, size in zip(in1.shape, in2.shape, starts, shape, strict=True):
        padding.append((n - 1 - start, n - 1 - (m + n - 1 - size - start)))
    axes = tuple(range(2, in1.ndim + 2))
    in1, in2 = (broadcast_in_dim(x, (1, 1, *x.shape), axes) for x in (in1, in2))
    out = conv_general_dilated(in1, in2, (1,) * len(axes), padding, precision=precision)
    return jnp.squeeze(out, (0, 1))


def _fft_whole(in1: Any, in2: Any, mode: str) -> Any:
    full = tuple(m + n - 1 for m, n in zip(in1.shape, in2.shape, strict=True))
    starts, shape = _part(mode, in1.shape, in2.shape)
    if 1 in (in1.size, in2.size):
        return dynamic_slice(in1 * in2, starts, shape)
    there, back = (fft.fftn, fft.ifftn) if jnp.iscomplexobj(in1) else (fft.rfftn, fft.irfftn)
    return dynamic_slice(back(there(in1, full) * there(in2, full), full), starts, shape)


def fftconvolve(in1: ArrayLike, in2: ArrayLike, mode: str = "full", axes: int | Sequence[int] | None = None) -> Array:
    """Computes the convolution of two arrays by Fourier transforms.

    `mode` is "full", "same" (the shape of `in1`) or "valid". `axes` are the axes to convolve along, by default all;
    other axes must have equal lengths.
    """
    check_arraylike("fftconvolve", in1, in2)
    in1, in2 = promote_dtypes_inexact(in1, in2)
    in1, in2 = jnp.asarray(in1), jnp.asarray(in2)
    if in1.ndim != in2.ndim:
        raise ValueError(
            f"fftconvolve: in1 and in2 should have the same dimensionality, got shapes {in1.shape} and {in2.shape}"
        )
    _check_mode("fftconvolve", mode)
    own = (
        range(in1.ndim)
        if axes is None
        else [dims.canonical_axis(axis, in1.ndim) for axis in np.atleast_1d(axes).tolist()]
    )
    mapped = [axis for axis in range(in1.ndim) if axis not in own]
    if any(in1.shape[axis] != in2.shape[axis] for axis in mapped):
        raise ValueError(
            "fftconvolve: mapped axes must have same shape; "
            f"got in1.shape={in1.shape} in2.shape={in2.shape} axes={axes}"
        )
    if mode == "valid":
        refusal = "fftconvolve: For 'valid' mode, One input must be at least as large as the other in every dimension."
        in1, in2 = _larger_first(refusal, in1, in2)
    function = functools.partial(_fft_whole, mode=mode)
    for axis in mapped:
        function = vmap(function, (axis, axis), axis)
    return function(in1, in2)


def convolve(
    in1: Array, in2: Array, mode: str = "full", method: str = "auto", precision: PrecisionLike = None
) -> Array:
    """Computes the convolution of two arrays of one rank.

    `mode` is "full", "same" (the shape of `in1`) or "valid". `method` is "direct", which "auto" selects, or "fft".
    `precision` is that of the multiplications. Integers become floats.
    """
    if method not in _METHODS:
        raise ValueError(f"convolve: Got method={method!r}; expected 'auto', 'fft', or 'direct'.")
    if method == "fft":
        return fftconvolve(in1, in2, mode)
    return _direct("convolve", in1, in2, mode, precision)


def correlate(
    in1: Array, in2: Array, mode: str = "full", method: str = "auto", precision: PrecisionLike = None
) -> Array:
    """Computes the cross-correlation of two arrays of one rank, conjugating the second.

    `mode` is "full", "same" (the shape of `in1`) or "valid". `method` is "direct", which "auto" selects, or "fft".
    `precision` is that of the multiplications. Integers become floats.
    """
    return convolve(in1, jnp.flip(jnp.conj(in2)), mode, method, precision)


def _check_planes(name: str, in1: Any, in2: Any, boundary: str, fillvalue: float) -> None:
    if boundary != "fill" or fillvalue != 0:
        raise NotImplementedError(f"{name}() only supports boundary='fill', fillvalue=0")
    if jnp.ndim(in1) != 2 or jnp.ndim(in2) != 2:
        raise ValueError(f"{name}() only supports 2-dimensional inputs.")


def convolve2d(
    in1: Array,
    in2: Array,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: float = 0,
    precision: PrecisionLike = None,
) -> Array:
    """Computes the convolution of two matrices.

    `mode` is "full", "same" (the shape of `in1`) or "valid". Beyond its ends `in1` is zero: raises NotImplementedError
    for another `boundary` or `fillvalue`. `precision` is that of the multiplications.
    """
    _check_planes("convolve2d", in1, in2, boundary, fillvalue)
    return _direct("convolve2d", in1, in2, mode, precision)


def correlate2d(
    in1: Array,
    in2: Array,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: float = 0,
    precision: PrecisionLike = None,
) -> Array:
    """Computes the cross-correlation of two matrices, conjugating the second.

    `mode` is "full", "same" (the shape of `in1`) or "valid". Beyond its ends `in1` is zero: raises NotImplementedError
    for another `boundary` or `fillvalue`. `precision` is that of the multiplications.
    """
    _check_planes("correlate2d", in1, in2, boundary, fillvalue)
    if (mode == "full" and _is_covered(in1, in2)) or (mode == "valid" and not _is_covered(in2, in1)):
        # As in jax: with "valid" the result is the conjugate of scipy's.
        result = _direct("correlate2d", jnp.flip(in2), jnp.conj(in1), mode, precision)
        return jnp.conj(result) if mode == "full" else result
    return jnp.flip(_direct("correlate2d", jnp.flip(in1), jnp.conj(in2), mode, precision))
