"""What the array API standard (2024.12) asks of a namespace of arrays."""

from typing import Any

import numpy as np

from minijax.base import dtypes
from minijax.run import client

__array_api_version__ = "2024.12"

_REAL, _COMPLEX = ("float32", "float64"), ("complex64", "complex128")
_SIGNED, _UNSIGNED = ("int8", "int16", "int32", "int64"), ("uint8", "uint16", "uint32", "uint64")
_KINDS = {
    "bool": ("bool",),
    "signed integer": _SIGNED,
    "unsigned integer": _UNSIGNED,
    "integral": _SIGNED + _UNSIGNED,
    "real floating": _REAL,
    "complex floating": _COMPLEX,
    "numeric": _SIGNED + _UNSIGNED + _REAL + _COMPLEX,
}
_KINDS[None] = ("bool", *_KINDS["numeric"])


class __array_namespace_info__:  # noqa: N801
    """What this namespace can do; dtypes of 64 bits are there under `jax_enable_x64`."""

    def capabilities(self) -> dict[str, Any]:
        """Under `jit` an index is no mask of traced values, and shapes depend on no values."""
        dimensions = {"max dimensions": 64}
        return {"boolean indexing": False, "data-dependent shapes": False, **dimensions}

    def default_device(self) -> None:
        """None: arrays are made where the current default device is."""

    def devices(self) -> list:
        """The devices of the default platform, and None."""
        return [None, *client.devices()]

    def default_dtypes(self, *, device: Any = None) -> dict[str, np.dtype]:
        """The dtype of Python's numbers of each kind, and of indices."""
        kinds = {"real floating": float, "complex floating": complex, "integral": int, "indexing": int}
        return {name: np.dtype(dtypes.canonicalize_dtype(kind)) for name, kind in kinds.items()}

    def dtypes(self, *, device: Any = None, kind: str | tuple[str, ...] | None = None) -> dict[str, np.dtype]:
        """The dtypes of a kind, or of several, by name. Raises KeyError for an unknown kind."""
        found = {np.dtype(name) for k in (kind if isinstance(kind, tuple) else (kind,)) for name in _KINDS[k]}
        return {t.name: t for t in found if dtypes.canonicalize_dtype(t) == t}
