"""Discrete Fourier transforms."""

import enum
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from minijax.base import dtypes
from minijax.base.symbolic.dimension import is_int
from minijax.dispatch.jitted import jitted
from minijax.ir.primitive import Linear1
from minijax.ir.result_types import sharded_equally
from minijax.ir.types import ShapedArray, typeof
from minijax.primitives import moving
from minijax.primitives.convert import convert
from minijax.primitives.dynamic_slice import dynamic_update_slice
from minijax.primitives.elementwise import conj, div, mul
from minijax.primitives.families import scalar_like

_MOST_AXES = 3
_COMPLEX = "`fft` takes complex numbers, `x.real` is their real part."


class FftType(enum.IntEnum):
    """Names the kinds of Fourier transforms. Those of real numbers (RFFT, IRFFT) keep only half of the spectrum.

    Example:
        >>> jax.lax.fft(jnp.array([1.0, 2.0, 3.0, 4.0]), jax.lax.FftType.RFFT, (4,))
        Array([10.+0.j, -2.+2.j, -2.+0.j], dtype=complex64)
    """

    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3


class FFT(Linear1):
    """A Fourier transform of the last axes, of the sizes `fft_lengths`."""

    name = "fft"
    constrain_results = False  # with a constrained result, XLA may shard the operand in a way that it cannot read

    def infer(self, x, *, fft_type, fft_lengths):
        kind, count, is_real = fft_type.name, len(fft_lengths), fft_type == FftType.RFFT
        if count > x.ndim:
            raise ValueError(
                f"fft: {kind} input shape {x.shape} must have at least as many input dimensions as "
                f"fft_lengths {fft_lengths}."
            )
        if x.dtype not in ((np.float32, np.float64) if is_real else (np.complex64, np.complex128)):
            accepted = "float32 or float64" if is_real else "complex64 or complex128"
            raise ValueError(f"fft: {kind} input must be {accepted}, got {x.dtype.name}")
        if count > _MOST_AXES:
            raise ValueError(f"fft: fft_lengths {fft_lengths} must not have more than {_MOST_AXES} axes")
        *outer, last = x.shape[x.ndim - count :]
        if fft_type == FftType.IRFFT:
            self._check_spectrum(x, outer, last, fft_lengths)
            return [ShapedArray((*x.shape[:-1], fft_lengths[-1]), np.finfo(x.dtype).dtype)]
        if (*outer, last) != tuple(fft_lengths):
            raise ValueError(
                f"fft: {kind} input shape {x.shape} minor dimensions must be equal to fft_lengths {fft_lengths}"
            )
        if is_real:
            return [ShapedArray((*x.shape[:-1], last // 2 + 1), np.result_type(x.dtype, np.complex64))]
        return [ShapedArray(x.shape, x.dtype)]

    def _check_spectrum(self, x, outer, last, lengths):
        if tuple(outer) != tuple(lengths[:-1]):
            raise ValueError(
                f"fft: IRFFT input shape {x.shape} minor dimensions must be equal to all except the last "
                f"fft_length, got fft_lengths={lengths}"
            )
        if lengths[-1] and last != lengths[-1] // 2 + 1:
            raise ValueError(
                f"fft: IRFFT requires the last dimension of the input, of shape {x.shape}, to be "
                f"fft_lengths[-1] // 2 + 1, got fft_lengths={lengths}"
            )

    sharding_rule = sharded_equally

    def lower(self, e, ins, outs, x, *, fft_type, fft_lengths):
        if fft_type == FftType.RFFT and not fft_lengths[-1]:
            raise ValueError(f"fft: RFFT needs at least one point, got fft_lengths={fft_lengths}")
        if not all(map(is_int, fft_lengths)):
            raise NotImplementedError(
                f"fft: Shape polymorphism for FFT with fft_lengths {fft_lengths} is not implemented"
            )
        if not outs[0].size:
            return [e.full(0, outs[0])]
        if fft_type == FftType.IRFFT and len(fft_lengths) > 1 and e.platform in ("cuda", "rocm"):
            x, fft_lengths = _outer_inverse(e, x, ins[0], fft_lengths[:-1]), fft_lengths[-1:]
        return [e.fft(x, ins[0], outs[0], fft_type.name, fft_lengths)]

    def transposed(self, ct, aval, *, fft_type, fft_lengths):
        if fft_type == FftType.RFFT:
            return _rfft_transpose(ct, fft_lengths)
        if fft_type != FftType.IRFFT:
            return fft(ct, fft_type, fft_lengths)
        scale = 1 / prod(fft_lengths)
        spectrum = fft(ct, FftType.RFFT, fft_lengths)
        weights = _weights(spectrum, fft_lengths[-1])
        return conj(mul(mul(scalar_like(weights, scale), weights), spectrum))

    def batch(self, axis, operands, dims, *, fft_type, fft_lengths):
        x = moving.move_axis(operands[0], dims[0], 0)
        return [fft(x, fft_type, fft_lengths)], [0]


fft_p = FFT()


def _weights(spectrum: Any, length: int) -> Any:
    """1 or 2 for each element of a half spectrum: how often it, or its conjugate, occurs in the full spectrum."""
    aval = typeof(spectrum)
    size, rank = aval.shape[-1], aval.ndim
    one = lambda: moving.filled((1,), scalar_like(spectrum, 1))  # noqa: E731
    weights = dynamic_update_slice(moving.filled((size,), scalar_like(spectrum, 2)), one(), (0,))
    if length % 2 == 0:
        weights = dynamic_update_slice(weights, one(), (size - 1,))
    return moving.expand_dims(weights, tuple(range(rank - 1)))


def _outer_inverse(e: Any, x: str, aval: ShapedArray, lengths: Sequence[int]) -> str:
    """The inverse transform along the axes before the last one.

    GPUs' IRFFT of several axes expects a spectrum that is Hermitian along all of them.
    """
    last, at = aval.ndim - 1, aval.ndim - 1 - len(lengths)
    order = [*range(at), last, *range(at, last)]
    moved = aval.update(shape=tuple(aval.shape[i] for i in order))
    y = e.fft(e.transpose(x, aval, moved, order), moved, moved, "IFFT", lengths)
    return e.transpose(y, moved, aval, [*range(at), *range(at + 1, last + 1), at])


@jitted("_rfft_transpose", static=("fft_lengths",))
def _rfft_transpose(t: Any, fft_lengths: Sequence[int]) -> Any:
    weights = _weights(t, fft_lengths[-1])
    out = fft(div(conj(t), weights), FftType.IRFFT, fft_lengths)
    return mul(scalar_like(out, prod(fft_lengths)), out)


@jitted("fft", static=("fft_type", "fft_lengths"))
def fft(x: Any, fft_type: FftType | str, fft_lengths: Sequence[int]) -> Any:
    """Computes the Fourier transform over the last axes, one to three.

    Raises ValueError for sizes that `x` does not have, and for RFFT of complex numbers.

    Args:
        x: Complex numbers, or floats for an RFFT.
        fft_type: A `jax.lax.FftType`, or its name.
        fft_lengths: The sizes of the transformed axes; for an IRFFT those of the result.

    Example:
        >>> jax.lax.fft(jnp.array([1.0, 0.0, 0.0, 0.0], complex), "FFT", (4,))
        Array([1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j], dtype=complex64)
    """
    kind = _kind_of(fft_type)
    aval = typeof(x)
    if kind == FftType.RFFT:
        if dtypes.is_complex(aval.dtype):
            raise ValueError(f"fft: only real valued inputs supported for rfft, got {aval.dtype.name}. {_COMPLEX}")
        dtype = dtypes.to_inexact_dtype(aval.dtype)
    else:
        dtype = dtypes.to_complex_dtype(dtypes.to_inexact_dtype(aval.dtype))
    x = convert(x, dtype, False)
    if not len(fft_lengths):
        return x
    return fft_p.bind(x, fft_type=kind, fft_lengths=tuple(fft_lengths))


def _kind_of(kind: Any) -> FftType:
    if isinstance(kind, str):
        if kind.upper() not in FftType.__members__:
            raise ValueError(f"fft: Unknown FFT type '{kind}'")
        return FftType[kind.upper()]
    if not isinstance(kind, FftType):
        raise TypeError(f"fft: Unknown FFT type value '{kind}'")
    return kind
