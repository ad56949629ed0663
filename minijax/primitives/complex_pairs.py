"""Packs two numbers into one integer, because XLA's GPUs reduce windows of integers but not of pairs."""

from typing import Any

import numpy as np

from minijax.base import dtypes, errors
from minijax.ir.types import ShapedArray


class Pairs:
    """Packs floats of a dtype with an Emitter's operations.

    Drops the lower half of those wider than 32 bits, with a warning.
    """

    def __init__(self, e: Any, dtype: Any):
        info = dtypes.finfo(dtype)
        self.e, self.dtype, self.fits = e, dtype, info.bits <= 32
        self.width = info.bits if self.fits else info.bits // 2
        self.format = info.nexp, self.width - info.nexp - 1
        self.word, self.pair = (np.dtype(f"uint{n}") for n in (info.bits, 2 * self.width))
        if not self.fits:
            errors.warn(
                "Using reduced precision for gradient of reduce-window min/max operator: on GPUs half of the "
                "bits of 64-bit numbers are dropped. This is likely from a second or higher derivative of a "
                "max-pooling operation."
            )

    def aval(self, shape: tuple[int, ...]) -> ShapedArray:
        """The type of an array of packed pairs."""
        return ShapedArray(shape, self.pair)

    def pack(self, x: str, y: str, shape: tuple[int, ...]) -> str:
        """The bits of `x` above those of `y`."""
        high, low = self._bits(x, shape), self._bits(y, shape)
        if self.fits:
            high = self._shift("left", high, shape)
        else:
            low = self._shift("right_logical", low, shape)
        return self.e.binary("or", high, low, self.aval(shape))

    def first(self, pair: str) -> str:
        """The first number of a pair of rank 0."""
        if self.fits:
            return self._number(self._shift("right_logical", pair, ()), ())
        mask = self.e.constant(((1 << self.width) - 1) << self.width, self.aval(()))
        return self._number(self.e.binary("and", pair, mask, self.aval(())), ())

    def second(self, pairs: str, shape: tuple[int, ...]) -> str:
        """The second numbers of an array of pairs."""
        return self._number(pairs if self.fits else self._shift("left", pairs, shape), shape)

    def _bits(self, x, shape):
        numbers, words = ShapedArray(shape, self.dtype), ShapedArray(shape, self.word)
        if not self.fits:
            x = self.e.reduce_precision(x, numbers, *self.format)
        x = self.e.bitcast_convert(x, numbers, words)
        return self.e.convert(x, words, self.aval(shape)) if self.fits else x

    def _number(self, x, shape):
        words = ShapedArray(shape, self.word)
        x = self.e.convert(x, self.aval(shape), words) if self.fits else x
        return self.e.bitcast_convert(x, words, ShapedArray(shape, self.dtype))

    def _shift(self, way, x, shape):
        return self.e.binary(f"shift_{way}", x, self.e.full(self.width, self.aval(shape)), self.aval(shape))
