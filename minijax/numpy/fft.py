"""`jax.numpy.fft`: discrete Fourier transforms, their frequencies, and shifts of the spectrum."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.base import dtypes
from minijax.base.documentation import filled
from minijax.base.dtypes import DTypeLike
from minijax.base.faces import documented
from minijax.base.source import boundary
from minijax.base.util import named
from minijax.composed.arrays.fft import FftType, fft as lax_fft
from minijax.numpy import padding, reductions, shaping, subscripts, ufuncs
from minijax.numpy.creation import array, asarray, astype, value
from minijax.numpy.ranges import arange
from minijax.primitives import elementwise as lax
from minijax.run.arrays.array import Array, ArrayLike, DeviceLike, Shape

_FORWARD = FftType.FFT, FftType.RFFT
_NORMS = (None, "backward", "ortho", "forward")
Axes = Sequence[int] | None


def _transform_last(x: Any, kind: FftType, lengths: tuple[int, ...]) -> Any:
    """Transforms the last axes; XLA transforms at most three at a time."""
    count = len(lengths)
    if count <= 3:
        return lax_fft(x, kind, lengths)
    first = max(count - 3, 2)
    complex_kind = FftType.FFT if kind in _FORWARD else FftType.IFFT
    leading, last = tuple(range(-count, first - count)), tuple(range(-first, 0))

    def transform_leading(x):
        moved = _transform_last(shaping.moveaxis(x, leading, last), complex_kind, lengths[:first])
        return shaping.moveaxis(moved, last, leading)

    if kind in _FORWARD:
        return transform_leading(lax_fft(x, kind, lengths[first:]))
    return lax_fft(transform_leading(x), kind, lengths[first:])


def _resized(x: Any, sizes: tuple[int, ...]) -> Any:
    """`x` with its last axes truncated or zero-padded to these sizes."""
    shape = (*x.shape[: x.ndim - len(sizes)], *sizes)
    x = subscripts.getitem(x, tuple(slice(n) for n in shape))
    return padding.pad(x, [(0, n - m) for n, m in zip(shape, x.shape, strict=True)])


def _checked(name: str, a: Any, s: Any, axes: Axes, norm: str | None) -> tuple[Any, tuple[int, ...] | None]:
    """The operand as an array and `s` as ints. Raises ValueError for arguments that do not fit."""
    a = value(f"jax.numpy.fft.{name}", a)
    if norm not in _NORMS:
        raise ValueError(f'{name}: Invalid norm value {norm}; should be "backward","ortho" or "forward".')
    if s is not None:
        s = tuple(map(operator.index, s))
        if any(n < 1 for n in s):
            raise ValueError(f"{name}: Shape should be positive, got {s}.")
        if axes is not None and len(s) != len(axes):
            raise ValueError(f"{name}: Shape and axes have different lengths: {s} and {axes}.")
        if len(s) > a.ndim:
            raise ValueError(f"{name}: an input of shape {a.shape} must have at least {len(s)} axes")
    if axes is not None and len(set(axes)) != len(axes):
        raise ValueError(f"jax.numpy.fft.{name} does not support repeated axes. Got axes {list(axes)}.")
    return a, s


def _with_lengths(x: Any, kind: FftType, s: tuple[int, ...] | None, count: int) -> tuple[Any, tuple[int, ...]]:
    """`x` resized for a transform of its last `count` axes, and the lengths of the transform."""
    is_half = kind == FftType.IRFFT and count
    if s is not None:
        return _resized(x, (*s[:-1], s[-1] // 2 + 1) if is_half else s), s
    sizes = x.shape[x.ndim - count :]
    return x, (*sizes[:-1], max(0, 2 * (sizes[-1] - 1))) if is_half else sizes


def _normalized(spectrum: Any, lengths: tuple[int, ...], norm: str | None, forward: bool) -> Any:
    if norm not in ("ortho", "forward"):
        return spectrum
    size = reductions.prod(array(np.array(lengths), dtype=spectrum.dtype))
    scale = ufuncs.sqrt(size) if norm == "ortho" else size
    return ufuncs.multiply(spectrum, ufuncs.divide(1, scale) if forward else scale)


@boundary
def _transform(name: str, kind: FftType, a: Any, s: Any, axes: Axes, norm: str | None, forward: bool) -> Any:
    """The transform `kind`, scaled by `norm` as a forward or an inverse transform."""
    a, s = _checked(name, a, s, axes, norm)
    if axes is None:
        x, lengths = _with_lengths(a, kind, s, a.ndim if s is None else len(s))
        return _normalized(_transform_last(x, kind, lengths), lengths, norm, forward)
    last = tuple(range(-len(axes), 0))
    x, lengths = _with_lengths(shaping.moveaxis(a, axes, last), kind, s, len(axes))
    spectrum = _normalized(_transform_last(x, kind, lengths), lengths, norm, forward)
    return shaping.moveaxis(spectrum, last, axes)


def _single_axis(name: str, axis: Any) -> Axes:
    if isinstance(axis, tuple | list):
        raise ValueError(
            f"jax.numpy.fft.{name} does not support multiple axes. Please use jax.numpy.fft.{name}n. Got axis = {axis}."
        )
    return None if axis is None else (axis,)


_WHAT = {
    FftType.FFT: "discrete Fourier transform",
    FftType.IFFT: "inverse discrete Fourier transform",
    FftType.RFFT: "discrete Fourier transform of real numbers, without the negative frequencies,",
    FftType.IRFFT: "real inverse of a discrete Fourier transform without negative frequencies",
}
_LENGTH = (
    "the length of the transform, to which the axis is cut or padded with zeros",
    "the length of the result, by default `2 * (length - 1)`",
)

# A signal, and its transform.
_PULSES = {
    FftType.FFT: ([4.0, 0.0, 0.0, 0.0], "[4., 4., 4., 4.]"),
    FftType.IFFT: ([4.0, 0.0, 0.0, 0.0], "[1., 1., 1., 1.]"),
    FftType.RFFT: ([4.0, 0.0, 0.0, 0.0], "[4., 4., 4.]"),
    FftType.IRFFT: ([4.0, 0.0, 0.0], "[1., 1., 1., 1.]"),
}


def _one_axis_function(kind: FftType) -> Callable:
    name = kind.name.lower()

    def transform(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
        """Computes the {what} along an axis.

        `n` is {length}.
        It is static. `norm` is the direction that is divided by the length: "backward" (the default), "forward", or
        "ortho" for both, by its square root. The result is of single precision unless `a` is of double precision.
        Raises ValueError for other norms, and for several axes: use `{name}n`.

        Example:
          >>> jnp.fft.{name}(jnp.array({pulse})).real
          Array({result}, dtype=float32)
        """
        sizes = None if n is None else (n,)
        return _transform(name, kind, a, sizes, _single_axis(name, axis), norm, kind in _FORWARD)

    pulse, result = _PULSES[kind]
    texts = dict(what=_WHAT[kind], length=_LENGTH[kind == FftType.IRFFT], name=name, pulse=pulse, result=result)
    return named(transform, name, filled(transform, texts))


def _multi_axis_function(kind: FftType, suffix: str, default: Axes) -> Callable:
    name = kind.name.lower() + suffix

    def transform(a: ArrayLike, s: Shape | None = None, axes: Axes = default, norm: str | None = None) -> Array:
        """Computes the {what} along {which}.

        `s` has the lengths of the transform: `a` is cut or padded with zeros. `norm` is the direction that is divided
        by the number of elements: "backward" (the default), "forward", or "ortho" for both, by its square root. Raises
        ValueError for other norms, for repeated axes, and for lengths that do not fit the axes.

        Example:
          >>> jnp.fft.{name}(jnp.array([[4.0, 0.0], [0.0, 0.0]])).real
          Array([[{n}., {n}.],
                 [{n}., {n}.]], dtype=float32)
        """
        if suffix == "2" and len(axes) != 2:
            raise ValueError(f"jax.numpy.fft.{name} only supports 2 axes. Got axes = {axes}.")
        axes = None if axes is None else tuple(axes)
        return _transform(name, kind, a, s, axes, norm, kind in _FORWARD)

    which = "two axes, by default the last ones" if suffix == "2" else "several axes, by default all"
    texts = dict(what=_WHAT[kind], which=which, name=name, n=4 if kind in _FORWARD else 1)
    return named(transform, name, filled(transform, texts))


fft, ifft, rfft, irfft = map(_one_axis_function, FftType)
fft2, ifft2, rfft2, irfft2 = (_multi_axis_function(kind, "2", (-2, -1)) for kind in FftType)
fftn, ifftn, rfftn, irfftn = (_multi_axis_function(kind, "n", None) for kind in FftType)


def hfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Computes the real transform of a signal that is Hermitian in time.

    `a` is its half that is not negative in time. `n` is the length of the result, by default `2 * (length - 1)`. `norm`
    is "backward", "ortho" or "forward".

    Example:
      >>> jnp.fft.hfft(jnp.array([1.0, 0.0, 0.0]))
      Array([1., 1., 1., 1.], dtype=float32)
    """
    axes, a = _single_axis("hfft", axis), value("jax.numpy.fft.hfft", a)
    length = (a.shape[axis] - 1) * 2 if n is None else n
    sizes = None if n is None else (n,)
    spectrum = _transform("hfft", FftType.IRFFT, ufuncs.conjugate(a), sizes, axes, norm, True)
    return ufuncs.multiply(spectrum, length)


def ihfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Computes the half that is not negative of the inverse of `hfft`, for a real spectrum.

    `n` is the length to which the axis is cut or padded with zeros. `norm` is "backward", "ortho" or "forward".

    Example:
      >>> jnp.fft.ihfft(jnp.array([1.0, 1.0, 1.0, 1.0]))
      Array([1.+0.j, 0.+0.j, 0.+0.j], dtype=complex64)
    """
    axes, a = _single_axis("ihfft", axis), asarray(a)
    length = a.shape[axis] if n is None else n
    sizes = None if n is None else (n,)
    spectrum = _transform("ihfft", FftType.RFFT, a, sizes, axes, norm, False)
    return ufuncs.multiply(ufuncs.conjugate(spectrum), 1 / length)


def _check_single(name: str, n: Any, d: Any) -> None:
    if isinstance(n, tuple | list):
        raise ValueError(f"The n argument of jax.numpy.fft.{name} only takes an int. Got n = {list(n)}.")
    if isinstance(d, tuple | list):
        raise ValueError(f"The d argument of jax.numpy.fft.{name} only takes a single value. Got d = {list(d)}.")


def fftfreq(n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Array:
    """Returns the frequencies of the elements of a discrete Fourier transform.

    `n` is the length, static, and `d` the distance between samples. Negative frequencies are in the second half.
    `dtype` is by default the default floating dtype; `device` is a `Device` or `Sharding`.

    Example:
      >>> jnp.fft.fftfreq(4)
      Array([ 0.  ,  0.25, -0.5 , -0.25], dtype=float32)
    """
    _check_single("fftfreq", n, d)
    dtype = dtypes.requested_dtype(dtype, "fftfreq", float)
    computed = lax.real_dtype(dtypes.to_inexact_dtype(dtype))
    half = n // 2
    places = ufuncs.add(arange(n, dtype=computed, device=device), half)
    places = ufuncs.subtract(ufuncs.remainder(places, n), half)
    return astype(ufuncs.divide(places, array(d * n, dtype=computed, device=device)), dtype)


def rfftfreq(n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Array:
    """Returns the frequencies of the elements of a transform of real numbers.

    `n` is the length of the signal, static, and `d` the distance between samples. `dtype` is by default the default
    floating dtype; `device` is a `Device` or `Sharding`.

    Example:
      >>> jnp.fft.rfftfreq(4)
      Array([0.  , 0.25, 0.5 ], dtype=float32)
    """
    _check_single("rfftfreq", n, d)
    dtype = dtypes.requested_dtype(dtype, "rfftfreq", float)
    places = arange((n if n % 2 == 0 else n - 1) // 2 + 1, dtype=dtype, device=device)
    return ufuncs.divide(places, array(d * n, dtype=dtype, device=device))


@boundary
def _shifted(name: str, x: Any, axes: Any, sign: int) -> Any:
    x = value(name, x)
    if axes is None:
        axes = tuple(range(x.ndim))
    if isinstance(axes, int):
        return shaping.roll(x, sign * (x.shape[axes] // 2), axes)
    return shaping.roll(x, [sign * (x.shape[i] // 2) for i in axes], tuple(axes))


def fftshift(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Array:
    """Moves the zero frequency to the middle of axes, by default of all.

    `ifftshift` is the inverse.

    Example:
      >>> jnp.fft.fftshift(jnp.arange(5))
      Array([3, 4, 0, 1, 2], dtype=int32)
    """
    return _shifted("fftshift", x, axes, 1)


def ifftshift(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Array:
    """Moves the zero frequency from the middle to the start of axes, by default of all.

    It is the inverse of `fftshift`, from which it differs for odd lengths.

    Example:
      >>> jnp.fft.ifftshift(jnp.array([-2, -1, 0, 1]))
      Array([ 0,  1, -2, -1], dtype=int32)
    """
    return _shifted("ifftshift", x, axes, -1)


__all__, __dir__ = documented(
    __name__,
    """
    fft fft2 fftfreq fftn fftshift hfft ifft ifft2 ifftn ifftshift ihfft irfft irfft2 irfftn rfft rfft2 rfftfreq
    rfftn
""",
)
