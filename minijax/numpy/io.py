"""Arrays from files and strings, and how arrays print."""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import IO, Any

import numpy as np

from minijax.base import dtypes
from minijax.numpy.creation import asarray

_KINDS = {
    "bool": (np.bool_,),
    "signed integer": (np.signedinteger,),
    "unsigned integer": (np.unsignedinteger,),
    "integral": (np.integer,),
    "real floating": (np.floating,),
    "complex floating": (np.complexfloating,),
    "numeric": (np.number,),
}


def isdtype(dtype: Any, kind: Any) -> bool:
    """As `numpy.isdtype`; a string may also name a dtype."""
    have = _dtype_of(dtype)
    return any(
        dtypes.issubdtype(have, wanted) if isinstance(wanted, type) else have == wanted
        for part in (kind if isinstance(kind, tuple) else (kind,))
        for wanted in _kinds_of(part)
    )


def _dtype_of(x: Any) -> np.dtype:
    return x.dtype if isinstance(x, type) and isinstance(getattr(x, "dtype", None), np.dtype) else np.dtype(x)


def _kinds_of(kind: Any) -> tuple:
    if isinstance(kind, str) and kind in _KINDS:
        return _KINDS[kind]
    is_abstract = isinstance(kind, type) and issubclass(kind, np.generic) and kind.__subclasses__()
    if not isinstance(kind, str | np.dtype | type) or is_abstract:
        raise TypeError(f"isdtype: Expected kind to be a dtype, string, or tuple; got {kind=}")
    try:
        return (_dtype_of(kind),)
    except TypeError:
        if not isinstance(kind, str):
            raise TypeError(f"isdtype: Expected kind to be a dtype, string, or tuple; got {kind=}") from None
        raise ValueError(f"isdtype: Unrecognized {kind=} expected one of {list(_KINDS)}") from None


def load(file: IO[bytes] | str | os.PathLike[Any], *args: Any, **kwargs: Any) -> Any:
    """As `numpy.load`, with an array of numbers put on the device; bfloat16 is known by its width."""
    found = np.load(file, *args, **kwargs)
    if not isinstance(found, np.ndarray):
        return found
    found = found.view(dtypes.bfloat16) if found.dtype == np.dtype("V2") else found
    try:
        return asarray(found)
    except TypeError:
        return found


def fromstring(string: str, dtype: Any = float, count: int = -1, *, sep: str) -> Any:
    """As `numpy.fromstring`."""
    return asarray(np.fromstring(string=string, dtype=dtype, count=count, sep=sep))


def fromfile(*args: Any, **kwargs: Any) -> Any:
    """Not implemented: what a file holds may change between trace and run; use `numpy.fromfile`."""
    raise NotImplementedError(_IMPURE.format("fromfile"))


def fromiter(*args: Any, **kwargs: Any) -> Any:
    """Not implemented: an iterator gives its items once; use `numpy.fromiter`."""
    raise NotImplementedError(_IMPURE.format("fromiter"))


_IMPURE = (
    "jnp.{0}() is not implemented because it may be non-pure and thus unsafe for use with JIT and other "
    "transformations: pass the result of numpy.{0}() to jnp.asarray."
)


def get_printoptions() -> dict[str, Any]:
    """As `numpy.get_printoptions`, whose options hold here too."""
    return np.get_printoptions()


def set_printoptions(*args: Any, **kwargs: Any) -> None:
    """As `numpy.set_printoptions`, whose options hold here too."""
    np.set_printoptions(*args, **kwargs)


def printoptions(*args: Any, **kwargs: Any) -> AbstractContextManager[Iterator]:
    """As `numpy.printoptions`, whose options hold here too."""
    return np.printoptions(*args, **kwargs)
