"""The functions that the array API standard (2024.12) requires of an array namespace."""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax.base import dtypes
from minijax.base.dtypes import DTypeLike
from minijax.run.clients import client

__array_api_version__ = "2024.12"

_NAMES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128"
_DTYPES = [np.dtype(name) for name in _NAMES.split()]
_KINDS = {
    "bool": (np.bool_,),
    "signed integer": (np.signedinteger,),
    "unsigned integer": (np.unsignedinteger,),
    "integral": (np.integer,),
    "real floating": (np.floating,),
    "complex floating": (np.complexfloating,),
    "numeric": (np.number,),
}


def result_type(*args: Any) -> Any:
    """Returns the dtype that values and dtypes promote to.

    Args:
      *args: arrays, numbers, dtypes, and scalar types of Python and JAX.

    Returns:
      The dtype of the result of an operation on them, without 64-bit types unless `jax_enable_x64` is set.

    Raises:
      ValueError: without arguments.
      TypePromotionError: if no implicit promotion exists, as between narrow floats, or under
        `jax_numpy_dtype_promotion="strict"`.

    Differences from NumPy:
      Promotion follows a lattice in which the result never depends on values. Python numbers, and arrays of a weak
      type, take the dtype of the others: float16 with `1.0` is float16, and int8 with float32 is float32.

    See also: `jax.numpy.promote_types`, `jax.dtypes.result_type`.

    Example:
      >>> jnp.result_type(jnp.int8, jnp.float16)
      dtype('float16')
      >>> jnp.result_type(jnp.ones(2, "bfloat16"), 3.0)
      dtype(bfloat16)
    """
    return dtypes.result_type(*args)


def isdtype(dtype: DTypeLike, kind: str | DTypeLike | tuple[str | DTypeLike, ...]) -> bool:
    """Returns whether a dtype is of a kind, as the array API standard names kinds.

    `kind` is "bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating", "numeric",
    a dtype or its name, or a tuple of these. Raises ValueError for an unknown kind.

    Example:
      >>> jnp.isdtype(jnp.float32, "real floating"), jnp.isdtype(jnp.int32, ("bool", "real floating"))
      (True, False)
    """
    have = _dtype_of(dtype)
    return any(
        dtypes.issubdtype(have, target) if isinstance(target, type) else have == target
        for part in (kind if isinstance(kind, tuple) else (kind,))
        for target in _kinds_of(part)
    )


def _dtype_of(x: Any) -> np.dtype:
    return x.dtype if isinstance(x, type) and isinstance(getattr(x, "dtype", None), np.dtype) else np.dtype(x)


def _kinds_of(kind: Any) -> tuple:
    if isinstance(kind, str) and kind in _KINDS:
        return _KINDS[kind]
    is_abstract = isinstance(kind, type) and issubclass(kind, np.generic) and kind.__subclasses__()
    if is_abstract:
        raise TypeError(f"isdtype: Expected kind to be a dtype, string, or tuple; got {kind=}")
    try:
        return (_dtype_of(kind),)
    except TypeError:
        if not isinstance(kind, str):
            raise TypeError(f"isdtype: Expected kind to be a dtype, string, or tuple; got {kind=}") from None
        raise ValueError(f"isdtype: Unrecognized {kind=} expected one of {list(_KINDS)}") from None


class __array_namespace_info__:
    """The capabilities of this namespace; 64-bit dtypes are listed if `jax_enable_x64` is set."""

    def capabilities(self) -> dict[str, Any]:
        """Traced masks as indices and shapes that depend on values are not supported under `jit`."""
        dimensions = {"max dimensions": 64}
        return {"boolean indexing": False, "data-dependent shapes": False, **dimensions}

    def default_device(self) -> None:
        """Returns None: arrays are created on the current default device."""

    def devices(self) -> list:
        """The devices of the default platform, and None."""
        return [None, *client.devices()]

    def default_dtypes(self, *, device: Any = None) -> dict[str, np.dtype]:
        """The dtype of Python's numbers of each kind, and of indices."""
        kinds = {"real floating": float, "complex floating": complex, "integral": int, "indexing": int}
        return {name: np.dtype(dtypes.canonicalize_dtype(kind)) for name, kind in kinds.items()}

    def dtypes(self, *, device: Any = None, kind: str | tuple[str, ...] | None = None) -> dict[str, np.dtype]:
        """The dtypes of a kind, or of several, by name. Raises KeyError for an unknown kind."""
        kinds = (kind,) if isinstance(kind, str) else tuple(_KINDS) if kind is None else kind
        types = tuple([t for k in kinds for t in _KINDS[k]])
        members = [t for t in _DTYPES if issubclass(t.type, types)]
        return {t.name: t for t in members if dtypes.canonicalize_dtype(t) == t}
