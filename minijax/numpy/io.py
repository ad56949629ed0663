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
    """Reads an array of a file in the format of NumPy.

    An array of numbers is copied to the device; other objects, such as an `.npz` archive, are returned as NumPy reads
    them. Void elements of two bytes are read as bfloat16. Further arguments are those of `numpy.load`.

    Example:
      >>> import io
      >>> file = io.BytesIO()
      >>> jnp.save(file, jnp.array([1, 2]))
      >>> _ = file.seek(0)
      >>> jnp.load(file)
      Array([1, 2], dtype=int32)
    """
    contents = np.load(file, *args, **kwargs)
    if not isinstance(contents, np.ndarray):
        return contents
    contents = contents.view(dtypes.bfloat16) if contents.dtype == np.dtype("V2") else contents
    try:
        return asarray(contents)
    except TypeError:
        return contents


def fromstring(string: str, dtype: DTypeLike = float, count: int = -1, *, sep: str) -> Array:
    """Makes a vector of the numbers in a text.

    `sep` is what separates them. `count` is how many to read, -1 for all. The dtype is by default the default floating
    dtype.

    Example:
      >>> jnp.fromstring("1, 2, 3", dtype=int, sep=",")
      Array([1, 2, 3], dtype=int32)
    """
    return asarray(np.fromstring(string=string, dtype=dtype, count=count, sep=sep))


def fromfile(*args: Any, **kwargs: Any) -> Any:
    """Raises NotImplementedError, since a file may change between trace and run.

    Use `jnp.asarray(numpy.fromfile(...))`.

    Example:
      >>> import tempfile
      >>> file = tempfile.NamedTemporaryFile()
      >>> np.arange(3.0).tofile(file.name)
      >>> jnp.asarray(np.fromfile(file.name))
      Array([0., 1., 2.], dtype=float32)
    """
    raise NotImplementedError(_IMPURE.format("fromfile"))


def fromiter(*args: Any, **kwargs: Any) -> Any:
    """Raises NotImplementedError, since an iterator yields its items only once.

    Use `jnp.asarray(numpy.fromiter(...))`.

    Example:
      >>> jnp.asarray(np.fromiter(range(3), int))
      Array([0, 1, 2], dtype=int32)
    """
    raise NotImplementedError(_IMPURE.format("fromiter"))


_IMPURE = (
    "jnp.{0}() is not implemented because it may be non-pure and thus unsafe for use with JIT and other "
    "transformations: pass the result of numpy.{0}() to jnp.asarray."
)


def get_printoptions() -> dict[str, Any]:
    """Returns the options with which arrays are printed, as a dict.

    They are NumPy's, which apply to arrays of this package too.

    Example:
      >>> jnp.get_printoptions()["precision"]
      8
    """
    return np.get_printoptions()


def set_printoptions(*args: Any, **kwargs: Any) -> None:
    """Sets options with which arrays are printed.

    They are NumPy's, which apply to arrays of this package too. Arguments are those of `numpy.set_printoptions`.

    Example:
      >>> jnp.set_printoptions(precision=2)
      >>> print(jnp.array([1 / 3]))
      [0.33]
      >>> jnp.set_printoptions(precision=8)
    """
    np.set_printoptions(*args, **kwargs)


def printoptions(*args: Any, **kwargs: Any) -> AbstractContextManager[Iterator]:
    """Sets options with which arrays are printed, within a `with` statement.

    They are NumPy's, which apply to arrays of this package too. Arguments are those of `numpy.set_printoptions`.

    Example:
      >>> with jnp.printoptions(precision=2):
      ...     print(jnp.array([1 / 3]))
      [0.33]
    """
    return np.printoptions(*args, **kwargs)
