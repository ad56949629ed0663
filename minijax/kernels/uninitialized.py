"""The values of memory that was not written, where kernels are interpreted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.base import dtypes
from minijax.ir.types import ShapedArray
from minijax.kernels.expanded import ordinary_type
from minijax.primitives.moving import filled


def uninitialized(shape: Sequence[int], dtype: Any) -> Any:
    """An array that was not written."""
    return filled(shape, uninitialized_element(ordinary_type(ShapedArray((), dtype)).dtype))


def uninitialized_element(dtype: Any) -> Any:
    """An element that was not written: NaN, the smallest integer, or False; 0 of 16 bits, as counters have these."""
    if dtypes.issubdtype(dtype, np.inexact):
        return np.array(np.nan).astype(dtype)[()]
    if dtype == np.int16 or dtype == np.bool_:
        return np.zeros((), dtype)[()]
    return np.array(dtypes.iinfo(dtype).min, dtype)[()]
