"""Arrays from files and strings, and how arrays print."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import IO, Any

import numpy as np

from minijax.base import dtypes
from minijax.base.dtypes import DTypeLike
from minijax.numpy.creation import asarray
from minijax.run.arrays.array import Array


def load(file: IO[bytes] | str | os.PathLike[Any], *args: Any, **kwargs: Any) -> Array:
    """As `numpy.load`, with an array of numbers copied to the device; two-byte void is read as bfloat16."""
    contents = np.load(file, *args, **kwargs)
    if not isinstance(contents, np.ndarray):
        return contents
    contents = contents.view(dtypes.bfloat16) if contents.dtype == np.dtype("V2") else contents
    try:
        return asarray(contents)
    except TypeError:
        return contents


def fromstring(string: str, dtype: DTypeLike = float, count: int = -1, *, sep: str) -> Array:
    """As `numpy.fromstring`."""
    return asarray(np.fromstring(string=string, dtype=dtype, count=count, sep=sep))


def fromfile(*args: Any, **kwargs: Any) -> Any:
    """Not implemented: the contents of a file may change between trace and run; use `numpy.fromfile`."""
    raise NotImplementedError(_IMPURE.format("fromfile"))


def fromiter(*args: Any, **kwargs: Any) -> Any:
    """Not implemented: an iterator yields its items only once; use `numpy.fromiter`."""
    raise NotImplementedError(_IMPURE.format("fromiter"))


_IMPURE = (
    "jnp.{0}() is not implemented because it may be non-pure and thus unsafe for use with JIT and other "
    "transformations: pass the result of numpy.{0}() to jnp.asarray."
)


def get_printoptions() -> dict[str, Any]:
    """As `numpy.get_printoptions`, whose options apply to these arrays too."""
    return np.get_printoptions()


def set_printoptions(*args: Any, **kwargs: Any) -> None:
    """As `numpy.set_printoptions`, whose options apply to these arrays too."""
    np.set_printoptions(*args, **kwargs)


def printoptions(*args: Any, **kwargs: Any) -> AbstractContextManager[Iterator]:
    """As `numpy.printoptions`, whose options apply to these arrays too."""
    return np.printoptions(*args, **kwargs)
