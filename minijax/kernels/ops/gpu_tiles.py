"""Tiles of matrices in kernels for GPUs, whose sizes are powers of two."""

from __future__ import annotations

from typing import Any

import minijax.numpy as jnp
from minijax import lax
from minijax.kernels.operations.helpers import dslice, next_power_of_2
from minijax.kernels.operations.masked import load, store

LOG2_E = 1.4426950408889634  # kernels compute powers of two, which GPUs have
MASKED = -0.7 * float(jnp.finfo(jnp.float32).max)  # a score of what is not seen: no sum of two overflows


class Rows:
    """Some rows of a matrix of `total` rows: `size` rows from `start` on; those past the end are zeros.

    Without a start they are all rows of a block, whose first row has the number `first` in the matrix.
    """

    def __init__(self, size: int, total: int, start: Any = None, first: Any = 0):
        self.size, self.total, self.start = size, total, start
        self.numbers = (first if start is None else start) + lax.iota(jnp.int32, size)
        self.is_exact = total % size == 0

    @property
    def there(self) -> Any:
        """Which rows the matrix has."""
        return self.numbers < self.total

    def read(self, ref: Any, columns: int) -> Any:
        """The rows of a reference, with columns of zeros up to the next power of two."""
        view, mask = self._view(ref, columns)
        return view[...] if mask is None else load(view, mask=mask, other=0.0)

    def write(self, ref: Any, value: Any, columns: int) -> None:
        """Sets the rows of a reference to values of its dtype."""
        view, mask = self._view(ref, columns)
        store(view, value.astype(ref.dtype), mask=mask)

    def read_numbers(self, ref: Any, other: Any = 0) -> Any:
        """The elements of a reference that has one element a row."""
        if self.is_exact:
            return ref[...] if self.start is None else ref[dslice(self.start, self.size)]
        return load(ref.at[self._within()], mask=self.there, other=other)

    def write_numbers(self, ref: Any, values: Any) -> None:
        """Sets the elements of a reference that has one element a row."""
        if self.is_exact and self.start is None:
            ref[...] = values.astype(ref.dtype)
        else:
            store(ref.at[self._within()], values.astype(ref.dtype), mask=self.there)

    def _within(self) -> Any:
        """The numbers of the rows in the reference."""
        return lax.iota(jnp.int32, self.size) + (0 if self.start is None else self.start)

    def _view(self, ref: Any, columns: int) -> tuple[Any, Any]:
        """The rows of a reference, and which of their elements there are; None: all."""
        width = next_power_of_2(columns)
        own = lax.iota(jnp.int32, width)
        if self.is_exact:
            rows = slice(None) if self.start is None else dslice(self.start, self.size)
            mask = None if width == columns else jnp.broadcast_to((own < columns)[None, :], (self.size, width))
            return ref.at[rows, dslice(0, width)], mask
        mask = self.there[:, None] & (own < columns)[None, :]
        return ref.at[self._within()[:, None], own[None, :]], mask
