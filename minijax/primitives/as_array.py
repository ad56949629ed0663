"""Conversion of users' values to arrays."""

from types import NoneType
from typing import Any, cast

import numpy as np

from minijax.base import dtypes, tree
from minijax.base.dtypes import PYTHON_SCALARS
from minijax.base.source import hide_frames
from minijax.ir.concrete import concrete_value
from minijax.ir.types import ShapedArray, of_type, unwrapped
from minijax.primitives import moving
from minijax.primitives.convert import convert, copy_p
from minijax.primitives.moving import as_array_or_constant
from minijax.primitives.structural import concatenate
from minijax.run.arrays import transfer
from minijax.run.arrays.array import Array


def as_array(x: Any, dtype: Any = None, copy: bool = False) -> Any:
    """Converts an array, or nested lists of arrays and numbers, to an array; Python scalars become weakly typed.

    NumPy arrays of strings are returned unchanged: the caller converts them once their device is known.

    Raises TypeError for a value that is not numeric.
    """
    try:
        if dtype is dtypes.string:
            return _from_strings(x)
        if type(x) is list or type(x) is tuple:
            return _from_list(x, dtype)
        x = unwrapped(x)
        if isinstance(x, Array):
            return _from_array(x, dtype, copy)
        for types, converter in _CONVERTERS:
            if isinstance(x, types):
                return converter(cast("Any", x), dtype)
        return _from_foreign(x, dtype, copy)
    except Exception as error:
        hide_frames(error)
        raise


def _from_array(x: Any, dtype: Any, copy: bool) -> Any:
    # The primal value of a JVP tracer may still be a number or a NumPy array.
    known = concrete_value(x)
    x = copy_p.bind(x) if copy or not (known is None or isinstance(known, Array)) else x
    return x if dtype is None else convert(x, dtype)


def _from_foreign(x: Any, dtype: Any, copy: bool = False) -> Any:
    """Converts an object by the first protocol that it offers, else as NumPy does."""
    if dtype is None and hasattr(x, "weak_type"):
        return as_array_or_constant(x)
    if hasattr(x, "__array__") or isinstance(x, memoryview):
        return _from_numpy(np.asarray(x), dtype)
    if hasattr(x, "__cuda_array_interface__") or hasattr(x, "__dlpack__"):
        return as_array(transfer.from_dlpack(x), dtype, copy)
    return _from_numpy(np.asarray(x), dtype, x)


def _from_scalar(x: Any, dtype: Any) -> Any:
    if dtype is None:
        return as_array_or_constant(x)
    if type(x) is complex and dtype.kind not in "cb":
        raise TypeError(f"float() argument must be a string or a real number, not {type(x).__name__!r}")
    return _as_requested(np.asarray(x, dtype=dtype))


def _from_numpy(x: np.ndarray, dtype: Any, given: Any = None) -> Any:
    if x.dtype == dtypes.string:
        if dtype is not None:
            raise TypeError(f"Cannot make an array with dtype {dtype} from an object with dtype {x.dtype}.")
        return x
    if dtype is not None and x.dtype != dtype:
        x = x.astype(dtype)
    _check_numeric(x, x if given is None else given)
    if dtype is not None:
        return _as_requested(x)
    canonical = dtypes.canonicalize_dtype(x.dtype)
    return as_array_or_constant(x if x.dtype == canonical else x.astype(canonical))


def _as_requested(x: np.ndarray) -> Any:
    """The array of a value whose dtype was requested, which may be one of 64 bits without `jax_enable_x64`."""
    is_wide = dtypes.narrow(x.dtype) is not x.dtype
    return as_array_or_constant(of_type(x, ShapedArray(x.shape, x.dtype)) if is_wide else x)


def _check_numeric(x: np.ndarray, given: Any) -> None:
    """Raises TypeError, which shows the given value, if no array on a device can have the dtype of `x`."""
    if x.dtype.kind in "OSUMmV" and x.dtype not in dtypes.BY_NAME.values() and x.dtype != dtypes.float0:
        raise TypeError(
            f"Value '{given}' with dtype {x.dtype} is not a valid JAX array type. Only arrays of numeric types are "
            "supported by JAX. Convert it to numbers first, or keep it in a NumPy array or a list."
        )


def _from_strings(x: Any) -> np.ndarray:
    if not isinstance(x, np.ndarray):
        raise TypeError(f"Currently, string arrays can only be made from NumPy arrays. Got: {type(x)}.")
    if x.dtype != dtypes.string:
        raise TypeError(f"Cannot make an array with dtype {dtypes.string} from an object with dtype {x.dtype}.")
    return x


def _from_list(x: Any, dtype: Any) -> Any:
    kind = _type_of_numbers(x)
    if kind is not None:
        dtype = dtypes.scalar_dtype(kind) if dtype is None else dtype
        return _from_numpy(np.array(x, dtype), dtype)
    leaves = _leaves(x)
    dtype = _promoted_dtype(leaves) if dtype is None else dtype
    if isinstance(x, list | tuple) and any(isinstance(y, Array) for y in leaves):
        return _stacked(x, dtype)
    if isinstance(x, dict):
        raise TypeError(
            f"Value '{x}' with dtype object is not a valid JAX array type. Only arrays of numeric types "
            "are supported by JAX."
        )
    try:
        array = np.array(x, dtype=dtype if leaves else dtype or dtypes.default_float_dtype())
    except ValueError as error:
        if "inhomogeneous" not in str(error):
            raise
        raise ValueError(f"{error} Pad the lists to equal lengths, or keep them in a list of arrays.") from None
    return _from_numpy(array, dtype)


def _type_of_numbers(x: Any) -> type | None:
    """The type of the elements of a flat list of Python scalars of one type; None for anything else."""
    kinds = set(map(type, x)) if type(x) is list else ()
    kind = next(iter(kinds)) if len(kinds) == 1 else None
    return kind if kind in PYTHON_SCALARS else None


def _leaves(x: Any) -> list:
    """The leaves of nested lists. Raises ValueError for None."""
    leaves = list(x) if isinstance(x, range) else tree.tree_leaves(x, is_leaf=lambda y: y is None)
    if any(y is None for y in leaves):
        raise ValueError("None is not a valid value for jnp.array: leave it out, or use a number such as jnp.nan.")
    return list(map(unwrapped, leaves))


def _promoted_dtype(leaves: list) -> Any:
    """The dtype to which numbers and arrays promote; None if `leaves` is empty or has other values."""
    others = [y for y in leaves if not (type(y) in PYTHON_SCALARS or isinstance(y, Array | np.ndarray | np.generic))]
    for y in others:
        _check_numeric(np.asarray(y), y)
    return dtypes.result_type(*leaves) if leaves and not others else None


def _stacked(x: Any, dtype: Any) -> Any:
    """Stacks nested lists of arrays, innermost lists first; those without arrays are constants."""
    return concatenate([moving.expand_dims(as_array(y, dtype), (0,)) for y in x], 0)


# In order: strings are NumPy scalars, but not numbers.
_CONVERTERS = (
    (np.character, _from_foreign),
    ((*PYTHON_SCALARS, np.generic), _from_scalar),
    (np.ndarray, _from_numpy),
    ((list, tuple, dict, range, NoneType), _from_list),
)
