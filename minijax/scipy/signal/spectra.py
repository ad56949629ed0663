"""Spectra of segments of signals: P. Welch, "The use of fast Fourier transform for the estimation of power
spectra", 1967; the inverse, D. Griffin and J. Lim, "Signal estimation from modified short-time Fourier
transform", 1984; and trends, which are removed."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import minijax.numpy as jnp
from minijax.api.vmap import vmap
from minijax.base import dims, dtypes, errors
from minijax.base.lazy import defer
from minijax.numpy import fft, linalg
from minijax.numpy.creation import concrete
from minijax.primitives.conv import conv_general_dilated
from minijax.primitives.dot import Precision, PrecisionLike
from minijax.primitives.dynamic_slice import dynamic_slice, dynamic_slice_in_dim
from minijax.primitives.moving import broadcast_in_dim
from minijax.primitives.promote import check_arraylike, promote_dtypes_inexact
from minijax.primitives.structural import slice_in_dim
from minijax.run.arrays.array import Array, ArrayLike


def detrend(
    data: ArrayLike,
    axis: int = -1,
    type: str = "linear",
    bp: int | Sequence[int] | np.ndarray = 0,
    overwrite_data: None = None,
) -> Array:
    """Subtracts the mean, or a least-squares line, from samples along an axis.

    `type` is "constant" or "linear". `bp` are breakpoints between lines. Raises NotImplementedError for
    `overwrite_data`, ValueError for other types and breakpoints outside of the data.

    Example:
      >>> jax.scipy.signal.detrend(jnp.array([1.0, 2.0, 3.0]), type="constant")
      Array([-1.,  0.,  1.], dtype=float32)
    """
    if overwrite_data is not None:
        raise NotImplementedError("detrend: overwrite_data argument not implemented.")
    if type not in ("constant", "linear"):
        raise ValueError(f"detrend: Trend type must be 'linear' or 'constant', got {type!r}.")
    (data,) = promote_dtypes_inexact(jnp.asarray(data))
    if type == "constant":
        return data - data.mean(axis, keepdims=True)
    size = data.shape[axis]
    ends = np.unique(np.append(np.array(bp), [0, size]))
    if ends[0] < 0 or ends[-1] > size:
        raise ValueError(
            "detrend: Breakpoints must be non-negative and less than length of data along given axis, "
            f"got {bp} for {size}."
        )
    moved = jnp.moveaxis(data, axis, 0)
    result = moved.reshape(size, -1)
    for start, end in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        count = end - start
        basis = jnp.vstack([jnp.ones(count, data.dtype), jnp.arange(1, count + 1, dtype=data.dtype) / count]).T
        coefficients = linalg.lstsq(basis, result[start:end])[0]
        result = result.at[start:end].add(-jnp.matmul(basis, coefficients, precision=Precision.HIGHEST))
    return jnp.moveaxis(result.reshape(moved.shape), 0, axis)


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
    if window == "hann" and size != 1:
        return jnp.sin(jnp.linspace(0, np.pi, size, endpoint=False)) ** 2
    return _scipy.get_window(window, size)


def _window(name: str, window: Any, nperseg: int | None, length: int, dtype: Any) -> Any:
    if isinstance(window, str | tuple):
        size = 256 if nperseg is None else nperseg
        if size > length:
            if nperseg is not None:
                message = f"nperseg={size} is greater than input_length={length}, using nperseg={length}"
                errors.warn(message)
            size = length
        return jnp.array(_named_window(window, size), dtype)
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
    return win


class _Segments(NamedTuple):
    """The segmentation of signals of a `length`: their window, the `step` between starts, the transform size `nfft`.

    Signals are extended by half a segment at both ends, as `boundary` says, and by `padding` zeros if it is not None.
    """

    length: int
    win: Any
    step: int
    nfft: int
    boundary: str | None
    padding: int | None

    @property
    def size(self) -> int:
        return self.win.shape[0]

    def extended(self, x: Any) -> Any:
        if x.shape[-1] < self.length:
            x = _lengthened(x, self.length - x.shape[-1])
        x = _extended(x, self.size // 2, self.boundary)
        return x if self.padding is None else _lengthened(x, self.padding)

    def spectra(self, x: Any, trend: Callable, is_onesided: bool) -> Any:
        """The spectra of the segments of the last axis: (..., segments, frequencies)."""
        starts = jnp.arange(0, x.shape[-1] - self.size + 1, self.step)
        slices = vmap(lambda start: dynamic_slice_in_dim(x, start, self.size, -1), out_axes=-2)
        segments = trend(slices(starts))
        segments = self.win.reshape((1,) * (segments.ndim - 1) + (-1,)) * segments
        return (fft.rfft if is_onesided else fft.fft)(segments, self.nfft)

    def times(self, length: int, fs: Any) -> Any:
        """The times of the middles of the segments."""
        half = self.size / 2
        time = jnp.arange(half, length - half + 1, self.step) / fs
        return time if self.boundary is None else time - half / fs


def _step(name: str, size: int, noverlap: int | None, nfft: int) -> int:
    noverlap = size // 2 if noverlap is None else noverlap
    if nfft < size:
        raise ValueError(f"{name}: nfft must be greater than or equal to nperseg. Got {nfft} and {size}.")
    if noverlap >= size:
        raise ValueError(f"{name}: noverlap must be less than nperseg. Got {noverlap} and {size}.")
    return size - noverlap


def _whole(name: str, x: Any) -> int | None:
    return None if x is None else int(concrete(x, name, "nperseg, noverlap or nfft"))


def _segments(name, signals, axis, window, nperseg, noverlap, nfft, boundary=None, padded=False) -> _Segments:
    nperseg, noverlap, nfft = (_whole(name, x) for x in (nperseg, noverlap, nfft))
    if nperseg is not None and nperseg < 1:
        raise ValueError(f"{name}: nperseg must be a positive integer, got {nperseg}")
    length = max(z.shape[axis] for z in signals)
    win = _window(name, window, nperseg, signals[0].shape[axis], signals[0].dtype)
    size = win.shape[0]
    nfft = size if nfft is None else nfft
    step = _step(name, size, noverlap, nfft)
    extended = length if boundary is None else length + 2 * (size // 2)
    return _Segments(length, win, step, nfft, boundary, -(extended - size) % step % size if padded else None)


def _detrended(name: str, how: _Detrend, axis: int) -> Callable:
    if not how:
        return lambda segments: segments
    if isinstance(how, str):
        return lambda segments: detrend(segments, type=how)
    if callable(how):
        return lambda segments: jnp.moveaxis(how(jnp.moveaxis(segments, -1, axis)), axis, -1)
    raise ValueError(f"{name}: Unsupported detrend type: {how}")


def _scale(name: str, win: Any, fs: Any, scaling: str) -> Any:
    if scaling == "density":
        return 1.0 / (fs * (win * win).sum())
    if scaling == "spectrum":
        return 1.0 / win.sum() ** 2
    raise ValueError(f"{name}: Unknown scaling: {scaling}")


def _densities(spectra: list, scale: Any, nfft: int, is_onesided: bool) -> Any:
    """The cross spectral density of the first and the last spectrum."""
    result = jnp.conj(spectra[0]) * spectra[-1] * scale
    # Both halves of the spectrum count; only the frequency 0, and the highest of an even size, stand alone.
    return result.at[..., 1 : None if nfft % 2 else -1].multiply(2) if is_onesided else result


def _is_onesided(is_requested: bool, x: Any) -> bool:
    is_onesided = is_requested and not jnp.iscomplexobj(x)
    if is_onesided != is_requested:
        errors.warn("Input data is complex, switching to return_onesided=False")
    return is_onesided


def _signals(name: str, x: Any, y: Any, axis: int) -> list:
    """The signals, promoted to one dtype and with broadcast batch axes."""
    check_arraylike(name, x, *(() if y is None else (y,)))
    signals = promote_dtypes_inexact(*(jnp.asarray(z) for z in (x, y) if z is not None))
    first, last = signals[0], signals[-1]
    if first.ndim != last.ndim:
        raise ValueError(f"{name}: two-arguments must have the same rank ({first.ndim} vs {last.ndim}).")
    axis = dims.canonical_axis(axis, first.ndim)
    outer = [(*z.shape[:axis], *z.shape[axis + 1 :]) for z in signals]
    if any(1 not in sizes and len({*sizes}) > 1 for sizes in zip(*outer, strict=True)):
        raise ValueError(f"{name}: x and y cannot be broadcast together, got shapes {first.shape} and {last.shape}.")
    return signals


def _lengthened(x: Any, count: int) -> Any:
    return jnp.concatenate([x, jnp.zeros((*x.shape[:-1], count), x.dtype)], -1)


def _spectra(name, x, y, axis, cutting, fs, detrend, return_onesided, scaling, is_stft=False) -> tuple:
    """(frequencies, times, spectra of the segments). In the spectra frequencies replace the axis; times come last.

    `cutting` are the arguments of `_segments` from the window on.
    """
    signals = _signals(name, x, y, axis)
    if not all(z.size for z in signals):
        empty = jnp.zeros(min((z.shape for z in signals), key=math.prod))
        return empty, empty, empty.astype(complex) if is_stft else empty
    segments = _segments(name, signals, axis, *cutting)
    signals = [jnp.moveaxis(z, axis, -1) for z in signals]
    signals = [segments.extended(z) for z in signals]
    scale = _scale(name, segments.win, fs, scaling)
    scale = (jnp.sqrt(scale) if is_stft else scale).astype(dtypes.to_complex_dtype(signals[0].dtype))
    is_onesided = _is_onesided(return_onesided, signals[0])
    freqs = (fft.rfftfreq if is_onesided else fft.fftfreq)(segments.nfft, 1 / fs)
    axis = axis - 1 if axis < 0 else axis
    trend = _detrended(name, detrend, axis)
    spectra = [segments.spectra(z, trend, is_onesided) for z in signals]
    result = spectra[0] * scale if is_stft else _densities(spectra, scale, segments.nfft, is_onesided)
    time = segments.times(signals[0].shape[-1], fs)
    if y is None and not is_stft:
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
    """Computes the short-time Fourier transform of a signal.

    Returns a tuple: frequencies, times, and the complex transform. The signal is cut in segments of `nperseg` samples
    that overlap by `noverlap`. `boundary` is how to extend it at both ends, "even", "odd", "constant", "zeros" or
    `None`; with `padded` it is extended to whole segments. `fs` is the rate of samples.

    Example:
      >>> jax.scipy.signal.stft(jnp.ones(16), nperseg=8)[2].shape
      (5, 5)
    """
    if boundary not in _BOUNDARIES:
        raise ValueError(f"stft: Unknown boundary option {boundary!r}, must be one of: {list(_BOUNDARIES)}")
    cutting = window, nperseg, noverlap, nfft, boundary, padded
    return _spectra("stft", x, None, axis, cutting, fs, detrend, return_onesided, "spectrum", is_stft=True)


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
    """Estimates the cross power spectral density of two signals by Welch's method.

    Returns a pair: frequencies, and the density, which is complex. Signals are cut in segments of `nperseg` samples
    that overlap by `noverlap`; each is detrended, windowed and transformed with length `nfft`. Results are averaged by
    "mean" or "median". `scaling` is "density" or "spectrum". `fs` is the rate of samples.

    Example:
      >>> jax.scipy.signal.csd(jnp.ones(16), jnp.ones(16), nperseg=8)[0]
      Array([0.   , 0.125, 0.25 , 0.375, 0.5  ], dtype=float32)
    """
    cutting = window, nperseg, noverlap, nfft
    freqs, _, result = _spectra("csd", x, y, axis, cutting, fs, detrend, return_onesided, scaling)
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
    """Estimates the power spectral density of a signal by Welch's method.

    Returns a pair: frequencies and the density, which is real. The arguments are those of `csd`.

    Example:
      >>> jax.scipy.signal.welch(jnp.ones(16), nperseg=8)[0]
      Array([0.   , 0.125, 0.25 , 0.375, 0.5  ], dtype=float32)
    """
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
    # Of fewer segments than overlap jax keeps only these elements.
    x = x[:, : (count - 1) * step + size]
    return x.reshape(*outer, x.shape[-1])


def _inverse_size(nperseg: int | None, nfft: int | None, size: int, is_odd_too: bool) -> tuple[int, int]:
    """(segment size, transform size); `size` is the even transform size with that many frequencies."""
    nperseg = size if nperseg is None else nperseg
    if nperseg < 1:
        raise ValueError(f"istft: nperseg must be a positive integer, got {nperseg}")
    if nfft is None:
        nfft = nperseg if is_odd_too and nperseg == size + 1 else size
    if nfft < nperseg:
        raise ValueError(f"istft: FFT length ({nfft}) must be longer than nperseg ({nperseg}).")
    return nperseg, nfft


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
    """Computes the inverse of a short-time Fourier transform.

    Returns a pair: times and the signal, real with `input_onesided`. Windows and overlaps must be those of `stft`.
    `time_axis` and `freq_axis` are the axes of `Zxx`.

    Example:
      >>> _, _, z = jax.scipy.signal.stft(jnp.ones(16), nperseg=8)
      >>> jax.scipy.signal.istft(z, nperseg=8)[1].shape
      (16,)
    """
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
    nperseg, noverlap, nfft = (_whole("istft", x) for x in (nperseg, noverlap, nfft))
    nperseg, nfft = _inverse_size(nperseg, nfft, usual, input_onesided)
    step = _step("istft", nperseg, noverlap, nfft)
    x = jnp.moveaxis(Zxx, (freq, time), (-2, -1))
    size = None if nfft == usual else nfft
    x = (fft.irfft if input_onesided else fft.ifft)(x, size, axis=-2)[..., :nperseg, :]
    if isinstance(window, str | tuple):
        win = jnp.asarray(_named_window(window, nperseg)).astype(x.dtype)
    else:
        win = jnp.asarray(window)
        if win.shape != (nperseg,):
            raise ValueError(f"istft: window must have length of {nperseg}, got shape {win.shape}")
    x = x * win.sum()
    win = jnp.expand_dims(win, (*range(x.ndim - 2), x.ndim - 1))
    count = x.shape[-1]
    x = _overlapped(jnp.swapaxes(x * win, -1, -2), step)
    norm = _overlapped(jnp.swapaxes(jnp.repeat(win * win, count, -1), -1, -2), step)
    if boundary:
        half = nperseg // 2
        x, norm = x[..., half:-half], norm[..., half:-half]
    x = x / jnp.where(norm > 1e-10, norm, 1.0)
    if x.ndim > 1 and time != Zxx.ndim - 1:
        x = jnp.moveaxis(x, -1, time - 1 if freq < time else time)
    return jnp.arange(x.shape[0], dtype=dtypes.finfo(x.dtype).dtype) / fs, x


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

    Example:
      >>> jax.scipy.signal.fftconvolve(jnp.array([1.0, 2.0]), jnp.array([1.0, 1.0])).round(3)
      Array([1.       , 3.0000002, 2.       ], dtype=float32)
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

    Example:
      >>> jax.scipy.signal.convolve(jnp.array([1, 2]), jnp.array([1, 1]))
      Array([1., 3., 2.], dtype=float32)
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

    Example:
      >>> jax.scipy.signal.correlate(jnp.array([1, 2, 3]), jnp.array([1, 1]), mode="valid")
      Array([3., 5.], dtype=float32)
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

    Example:
      >>> jax.scipy.signal.convolve2d(jnp.ones((2, 2)), jnp.ones((2, 2)), mode="valid")
      Array([[4.]], dtype=float32)
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

    Example:
      >>> jax.scipy.signal.correlate2d(jnp.ones((2, 2)), jnp.ones((2, 2)), mode="valid")
      Array([[4.]], dtype=float32)
    """
    _check_planes("correlate2d", in1, in2, boundary, fillvalue)
    if (mode == "full" and _is_covered(in1, in2)) or (mode == "valid" and not _is_covered(in2, in1)):
        # As in jax: with "valid" the result is the conjugate of scipy's.
        result = _direct("correlate2d", jnp.flip(in2), jnp.conj(in1), mode, precision)
        return jnp.conj(result) if mode == "full" else result
    return jnp.flip(_direct("correlate2d", jnp.flip(in1), jnp.conj(in2), mode, precision))
