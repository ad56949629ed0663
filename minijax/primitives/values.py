"""Conversion of users' values to arrays."""

from typing import Any

import numpy as np

from minijax.base import dtypes, tree
from minijax.base.dtypes import PYTHON_SCALARS
from minijax.base.source import hide_frames
from minijax.ir.trace import Tracer
from minijax.ir.types import typeof, unwrapped
from minijax.primitives import moving
from minijax.primitives.convert import convert, copy_p
from minijax.primitives.moving import held
from minijax.primitives.structural import concatenate
from minijax.run import transfer
from minijax.run.array import Array


def array_of(x: Any, dtype: Any = None, copy: bool = False) -> Any:
    """Converts an array, or nested lists of arrays and numbers, to an array; Python scalars become weakly typed.

    NumPy arrays of strings are returned unchanged: the caller converts them once their device is known.

    Raises TypeError for a value that is not numeric.
    """
    try:
        if dtype is dtypes.string:
            return _of_strings(x)
        if type(x) is list or type(x) is tuple:
            return _of_list(x, dtype)
        x = unwrapped(x)
        if isinstance(x, Array):
            # The primal value of a JVP tracer may still be a number or a NumPy array.
            known = x.concrete_value() if isinstance(x, Tracer) else x
            x = copy_p.bind(x) if copy or not (known is None or isinstance(known, Array)) else x
            return x if dtype is None else convert(x, dtype)
        if isinstance(x, (*PYTHON_SCALARS, np.generic)) and not isinstance(x, np.character):
            return _of_scalar(x, dtype)
        if isinstance(x, np.ndarray):
            return _of_numpy(x, dtype)
        if isinstance(x, list | tuple | dict | range) or x is None:
            return _of_list(x, dtype)
        if dtype is None and hasattr(x, "weak_type"):
            return held(x)
        if hasattr(x, "__array__") or isinstance(x, memoryview):
            return _of_numpy(np.asarray(x), dtype)
        if hasattr(x, "__cuda_array_interface__") or hasattr(x, "__dlpack__"):
            return array_of(transfer.from_dlpack(x), dtype, copy)
        return _of_numpy(np.asarray(x), dtype, x)
    except Exception as error:
        hide_frames(error)
        raise


def _of_scalar(x: Any, dtype: Any) -> Any:
    if dtype is None:
        return held(x)
    if type(x) is complex and dtype.kind not in "cb":
        raise TypeError(f"float() argument must be a string or a real number, not {type(x).__name__!r}")
    return held(np.asarray(x, dtype=dtype))


def _of_numpy(x: np.ndarray, dtype: Any, given: Any = None) -> Any:
    if x.dtype == dtypes.string:
        if dtype is not None:
            raise TypeError(f"Cannot make an array with dtype {dtype} from an object with dtype {x.dtype}.")
        return x
    if dtype is not None and x.dtype != dtype:
        x = x.astype(dtype)
    if x.dtype.kind in "OSUMmV" and x.dtype not in dtypes.BY_NAME.values() and x.dtype != dtypes.float0:
        raise TypeError(
            f"Value '{x if given is None else given}' with dtype {x.dtype} is not a valid JAX array type. "
            "Only arrays of numeric types are supported by JAX."
        )
    canonical = dtypes.canonicalize_dtype(x.dtype)
    return held(x if dtype is not None or x.dtype == canonical else x.astype(canonical))


def _of_strings(x: Any) -> np.ndarray:
    if not isinstance(x, np.ndarray):
        raise TypeError(f"Currently, string arrays can only be made from NumPy arrays. Got: {type(x)}.")
    if x.dtype != dtypes.string:
        raise TypeError(f"Cannot make an array with dtype {dtypes.string} from an object with dtype {x.dtype}.")
    return x


def _of_list(x: Any, dtype: Any) -> Any:
    if x and type(x) is list and len(kinds := set(map(type, x))) == 1 and (kind := kinds.pop()) in PYTHON_SCALARS:
        dtype = dtypes.scalar_dtype(kind) if dtype is None else dtype
        return _of_numpy(np.array(x, dtype), dtype)
    leaves = tree.tree_leaves(x, is_leaf=lambda y: y is None) if not isinstance(x, range) else list(x)
    if any(y is None for y in leaves):
        raise ValueError("None is not a valid value for jnp.array")
    leaves = list(map(unwrapped, leaves))
    if all(type(y) in PYTHON_SCALARS or isinstance(y, Array | np.ndarray | np.generic) for y in leaves) and leaves:
        dtype = dtypes.result_type(*leaves) if dtype is None else dtype
    if isinstance(x, list | tuple) and any(isinstance(y, Array) for y in leaves):
        return _stacked(x, dtype)
    if isinstance(x, dict):
        raise TypeError(
            f"Value '{x}' with dtype object is not a valid JAX array type. Only arrays of numeric types "
            "are supported by JAX."
        )
    array = np.array(x, dtype=dtype if leaves else dtype or dtypes.default_float_dtype())
    return _of_numpy(array, dtype)


def _stacked(x: Any, dtype: Any) -> Any:
    """Stacks nested lists of arrays, innermost lists first."""
    if not isinstance(x, list | tuple):
        return array_of(x, dtype)
    parts = [moving.expand_dims(_stacked(y, dtype), (0,)) for y in x]
    if len({typeof(p).shape for p in parts}) > 1 and all(isinstance(y, list | tuple) for y in x):
        raise ValueError(
            "setting an array element with a sequence. The requested array has an inhomogeneous shape: "
            f"array was given parts of shapes {[typeof(p).shape[1:] for p in parts]}"
        )
    return concatenate(parts, 0)
