"""Spectra of segments of signals: P. Welch, "The use of fast Fourier transform for the estimation of power
spectra", 1967; and the inverse, D. Griffin and J. Lim, "Signal estimation from modified short-time Fourier
transform", 1984."""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax.api.vmap import vmap
from minijax.base import dims, dtypes
from minijax.base.lazy import defer
from minijax.numpy import fft
from minijax.primitives.dynamic_slice import dynamic_slice_in_dim
from minijax.primitives.promote import check_arraylike, promote_dtypes_inexact
from minijax.primitives.structural import slice_in_dim
from minijax.run.array import Array, ArrayLike
from minijax.scipy.signal.trends import detrend as without_trend

# Imported for windows other than jax's default.
_scipy = defer("scipy.signal")
_BOUNDARIES = ("even", "odd", "constant", "zeros", None)
_Detrend = str | bool | Callable


def _extended(x: Any, count: int, boundary: str | None) -> Any:
    """The signal extended by `count` elements at both ends of the last axis."""
    if boundary is None or not count:
        return x
    if boundary != "odd":
        kind = {"zeros": {"constant_values": 0.0}, "constant": {"mode": "edge"}, "even": {"mode": "reflect"}}[boundary]
        return jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(count, count)], **kind)
    size = x.shape[-1]
    first = slice_in_dim(x, 0, 1, axis=-1)
    left = jnp.flip(slice_in_dim(x, 1, count + 1, axis=-1), -1)
    last = slice_in_dim(x, size - 1, size, axis=-1)
    right = jnp.flip(slice_in_dim(x, size - count - 1, size - 1, axis=-1), -1)
    return jnp.concatenate([2 * first - left, x, 2 * last - right], -1)


def _named_window(window: Any, size: int) -> Any:
    if window == "hann":
        return jnp.sin(jnp.linspace(0, np.pi, size, endpoint=False)) ** 2
    return _scipy.get_window(window, size)


def _window(name: str, window: Any, nperseg: int | None, length: int, dtype: Any) -> tuple[Any, int]:
    """The window as an array, and its size."""
    if isinstance(window, str | tuple):
        size = 256 if nperseg is None else nperseg
        if size > length:
            if nperseg is not None:
                message = f"nperseg={size} is greater than input_length={length}, using nperseg={length}"
                warnings.warn(message, stacklevel=4)
            size = length
        return jnp.array(_named_window(window, size), dtype), size
    win = jnp.asarray(window, dtype)
    if win.ndim != 1:
        raise ValueError(f"{name}: window must be 1-D, got shape {win.shape}")
    size = win.shape[0]
    if length < size:
        raise ValueError(f"{name}: window is longer than input signal, {size} and {length}")
    if nperseg not in (None, size):
        raise ValueError(
            f"{name}: value specified for nperseg is different from length of window, {nperseg} and {size}"
        )
    return win, size


@dataclasses.dataclass(frozen=True)
class _Segments:
    """The segmentation of a signal: segment `size`, `step` between starts of segments, transform size `nfft`."""

    size: int
    step: int
    nfft: int

    @classmethod
    def of(cls, name: str, size: int, noverlap: int | None, nfft: int | None) -> _Segments:
        noverlap = size // 2 if noverlap is None else noverlap
        if nfft is not None and nfft < size:
            raise ValueError(f"{name}: nfft must be greater than or equal to nperseg. Got {nfft} and {size}.")
        if noverlap >= size:
            raise ValueError(f"{name}: noverlap must be less than nperseg. Got {noverlap} and {size}.")
        return cls(size, size - noverlap, size if nfft is None else nfft)

    def spectra(self, x: Any, win: Any, trend: Callable, is_onesided: bool) -> Any:
        """The spectra of the segments of the last axis: (..., segments, frequencies)."""
        starts = jnp.arange(0, x.shape[-1] - self.size + 1, self.step)
        cut = vmap(lambda start: dynamic_slice_in_dim(x, start, self.size, -1), out_axes=-2)
        segments = trend(cut(starts))
        segments = win.reshape((1,) * (segments.ndim - 1) + (-1,)) * segments
        return (fft.rfft if is_onesided else fft.fft)(segments, self.nfft)


def _detrended(name: str, how: _Detrend, axis: int) -> Callable:
    if not how:
        return lambda segments: segments
    if isinstance(how, str):
        return lambda segments: without_trend(segments, type=how)
    if callable(how):
        return lambda segments: jnp.moveaxis(how(jnp.moveaxis(segments, -1, axis)), axis, -1)
    raise ValueError(f"{name}: Unsupported detrend type: {how}")


def _scale(name: str, win: Any, fs: Any, scaling: str) -> Any:
    if scaling == "density":
        return 1.0 / (fs * (win * win).sum())
    if scaling == "spectrum":
        return 1.0 / win.sum() ** 2
    raise ValueError(f"{name}: Unknown scaling: {scaling}")


def _both_sides(result: Any, nfft: int) -> Any:
    return result.at[..., 1 : None if nfft % 2 else -1].multiply(2)


@dataclasses.dataclass(frozen=True)
class _Options:
    """The options that the functions below share."""

    fs: Any
    window: Any
    nperseg: int | None
    noverlap: int | None
    nfft: int | None
    detrend: _Detrend
    return_onesided: bool
    scaling: str
    axis: int
    is_stft: bool = False
    boundary: str | None = None
    padded: bool = False


def _prepared(name: str, x: Any, y: Any, options: _Options) -> list:
    """The signals, promoted to one dtype and with broadcast batch axes."""
    check_arraylike(name, x, *(() if y is None else (y,)))
    if y is None:
        (x,) = promote_dtypes_inexact(jnp.asarray(x))
        dims.canonical_axis(options.axis, x.ndim)
        return [x]
    x, y = promote_dtypes_inexact(jnp.asarray(x), jnp.asarray(y))
    if x.ndim != y.ndim:
        raise ValueError(f"{name}: two-arguments must have the same rank ({x.ndim} vs {y.ndim}).")
    axis = dims.canonical_axis(options.axis, x.ndim)
    outer = [(*z.shape[:axis], *z.shape[axis + 1 :]) for z in (x, y)]
    if any(1 not in sizes and sizes[0] != sizes[1] for sizes in zip(*outer, strict=True)):
        raise ValueError(f"{name}: x and y cannot be broadcast together, got shapes {x.shape} and {y.shape}.")
    return [x, y]


def _lengthened(x: Any, count: int) -> Any:
    return jnp.concatenate([x, jnp.zeros((*x.shape[:-1], count), x.dtype)], -1)


def _spectra(name: str, x: Any, y: Any, options: _Options) -> tuple[Any, Any, Any]:
    """(frequencies, times, spectra of the segments). In the spectra frequencies replace the axis; times come last."""
    if options.boundary not in _BOUNDARIES:
        raise ValueError(f"{name}: Unknown boundary option {options.boundary!r}, must be one of: {list(_BOUNDARIES)}")
    signals = _prepared(name, x, y, options)
    if not all(z.size for z in signals):
        shape = min((z.shape for z in signals), key=math.prod)
        empty = jnp.zeros(shape)
        return empty, empty, empty.astype(complex) if options.is_stft else empty
    if options.nperseg is not None and options.nperseg < 1:
        raise ValueError(f"{name}: nperseg must be a positive integer, got {options.nperseg}")
    length = max(z.shape[options.axis] for z in signals)
    win, size = _window(name, options.window, options.nperseg, length, signals[0].dtype)
    signals = [jnp.moveaxis(z, options.axis, -1) for z in signals]
    signals = [_lengthened(z, length - z.shape[-1]) if z.shape[-1] < length else z for z in signals]
    cut = _Segments.of(name, size, options.noverlap, options.nfft)
    signals = [_extended(z, size // 2, options.boundary) for z in signals]
    if options.padded:
        rest = -(signals[0].shape[-1] - size) % cut.step % size
        signals = [_lengthened(z, rest) for z in signals]
    dtype = dtypes.to_complex_dtype(signals[0].dtype)
    scale = _scale(name, win, options.fs, options.scaling)
    scale = (jnp.sqrt(scale) if options.is_stft else scale).astype(dtype)
    is_onesided = options.return_onesided and not jnp.iscomplexobj(signals[0])
    if is_onesided != options.return_onesided:
        warnings.warn("Input data is complex, switching to return_onesided=False", stacklevel=3)
    freqs = (fft.rfftfreq if is_onesided else fft.fftfreq)(cut.nfft, 1 / options.fs)
    axis = options.axis - 1 if options.axis < 0 else options.axis
    trend = _detrended(name, options.detrend, axis)
    results = [cut.spectra(z, win, trend, is_onesided) for z in signals]
    result = results[0] if options.is_stft else jnp.conj(results[0]) * results[-1]
    result = result * scale
    if is_onesided and not options.is_stft:
        result = _both_sides(result, cut.nfft)
    time = jnp.arange(size / 2, signals[0].shape[-1] - size / 2 + 1, cut.step) / options.fs
    if options.boundary is not None:
        time = time - size / 2 / options.fs
    if y is None and not options.is_stft:
        result = result.real
    return freqs, time, jnp.moveaxis(result, -1, axis)


def stft(
    x: Array,
    fs: ArrayLike = 1.0,
    window: str = "hann",
    nperseg: int | None = 256,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: _Detrend = False,
    return_onesided: bool = True,
    boundary: str | None = "zeros",
    padded: bool = True,
    axis: int = -1,
) -> tuple[Any, Any, Any]:
    """As `scipy.signal.stft`: frequencies, times and the short-time Fourier transform.

    Named windows other than "hann" are computed by scipy.
    """
    options = _Options(
        fs, window, nperseg, noverlap, nfft, detrend, return_onesided, "spectrum", axis, True, boundary, padded
    )
    return _spectra("stft", x, None, options)


def _median_bias(count: int) -> Any:
    """B. Allen et al., "FINDCHIRP", arXiv:gr-qc/0509116, appendix B."""
    even = jnp.arange(2.0, count, 2)
    return 1 + jnp.sum(1.0 / (even + 1) - 1.0 / even)


def csd(
    x: Array,
    y: ArrayLike | None,
    fs: ArrayLike = 1.0,
    window: str = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: _Detrend = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Any, Any]:
    """As `scipy.signal.csd`: frequencies and the cross spectral density of two signals; without `y`, that of `x`."""
    options = _Options(fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis)
    freqs, _, result = _spectra("csd", x, y, options)
    if y is not None:
        result = result + 0j
    if not result.size:
        return freqs, result
    if result.shape[-1] == 1:
        return freqs, result.reshape(result.shape[:-1])
    if average == "median":
        bias = _median_bias(result.shape[-1]).astype(result.dtype)
        if jnp.iscomplexobj(result):
            return freqs, (jnp.median(result.real, -1) + 1j * jnp.median(result.imag, -1)) / bias
        return freqs, jnp.median(result, -1) / bias
    if average == "mean":
        return freqs, result.mean(-1)
    raise ValueError(f"csd: average must be 'median' or 'mean', got {average!r}")


def welch(
    x: Array,
    fs: ArrayLike = 1.0,
    window: str = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: _Detrend = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Any, Any]:
    """As `scipy.signal.welch`: frequencies and the power spectral density."""
    freqs, result = csd(x, None, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis, average)
    return freqs, result.real


def _overlapped(x: Any, step: int) -> Any:
    """Overlap-adds segments (..., segments, size) whose starts are `step` elements apart."""
    *outer, count, size = x.shape
    per = -(-size // step)
    x = jnp.pad(x.reshape(-1, count, size), [(0, 0), (0, 0), (0, per * step - size)])
    # Zero rows are appended; reshaping to rows that are one step shorter shifts part i of each segment by i steps.
    x = x.reshape(-1, count, per, step).transpose(0, 2, 1, 3)
    x = jnp.pad(x, [(0, 0), (0, 0), (0, count), (0, 0)])
    x = x.reshape(x.shape[0], -1)[:, : per * (2 * count - 1) * step]
    x = x.reshape(-1, per, (2 * count - 1) * step).sum(1)
    return x[:, : (count - 1) * step + size].reshape(*outer, (count - 1) * step + size)


def _inverse_segments(
    nperseg: int | None, noverlap: int | None, nfft: int | None, size: int, is_odd_too: bool
) -> _Segments:
    """The segmentation of the transform; `size` is the even transform size with that many frequencies."""
    nperseg = size if nperseg is None else nperseg
    if nperseg < 1:
        raise ValueError(f"istft: nperseg must be a positive integer, got {nperseg}")
    if nfft is None:
        nfft = nperseg if is_odd_too and nperseg == size + 1 else size
    if nfft < nperseg:
        raise ValueError(f"istft: FFT length ({nfft}) must be longer than nperseg ({nperseg}).")
    return _Segments.of("istft", nperseg, noverlap, nfft)


def istft(
    Zxx: Array,
    fs: ArrayLike = 1.0,
    window: str = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    input_onesided: bool = True,
    boundary: bool = True,
    time_axis: int = -1,
    freq_axis: int = -2,
) -> tuple[Any, Any]:
    """As `scipy.signal.istft`: times and the signal of a short-time Fourier transform."""
    check_arraylike("istft", Zxx)
    Zxx = jnp.asarray(Zxx)
    if Zxx.ndim < 2:
        raise ValueError(f"istft: Input stft must be at least 2d, got shape {Zxx.shape}!")
    freq, time = (dims.canonical_axis(axis, Zxx.ndim) for axis in (freq_axis, time_axis))
    if freq == time:
        raise ValueError("istft: Must specify differing time and frequency axes!")
    Zxx = Zxx.astype(dtypes.to_complex_dtype(Zxx.dtype))
    count = Zxx.shape[freq]
    usual = 2 * (count - 1) if input_onesided else count
    cut = _inverse_segments(nperseg, noverlap, nfft, usual, input_onesided)
    x = jnp.moveaxis(Zxx, (freq, time), (-2, -1))
    size = None if cut.nfft == usual else cut.nfft
    x = (fft.irfft if input_onesided else fft.ifft)(x, size, axis=-2)[..., : cut.size, :]
    if isinstance(window, str | tuple):
        win = jnp.asarray(_named_window(window, cut.size)).astype(x.dtype)
    else:
        win = jnp.asarray(window)
        if win.shape != (cut.size,):
            raise ValueError(f"istft: window must have length of {cut.size}, got shape {win.shape}")
    x = x * win.sum()
    win = jnp.expand_dims(win, (*range(x.ndim - 2), x.ndim - 1))
    count = x.shape[-1]
    x = _overlapped(jnp.swapaxes(x * win, -1, -2), cut.step)
    norm = _overlapped(jnp.swapaxes(jnp.repeat(win * win, count, -1), -1, -2), cut.step)
    if boundary:
        half = cut.size // 2
        x, norm = x[..., half:-half], norm[..., half:-half]
    x = x / jnp.where(norm > 1e-10, norm, 1.0)
    if x.ndim > 1 and time != Zxx.ndim - 1:
        x = jnp.moveaxis(x, -1, time - 1 if freq < time else time)
    return jnp.arange(x.shape[0], dtype=dtypes.finfo(x.dtype).dtype) / fs, x
