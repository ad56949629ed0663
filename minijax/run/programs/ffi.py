"""Registers functions and types with XLA, which programs refer to by name."""

import ctypes
import os
from typing import Any

import jaxlib
from jaxlib import xla_client as xc

from minijax.run.clients import plugins

_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
_capsule = _new(("PyCapsule_New", ctypes.pythonapi))


def register_ffi_target(name: str, fn: Any, platform: str = "cpu", api_version: int = 1, **kwargs: Any) -> None:
    """Registers a function for a platform under a name: a capsule of its address, or a dict with one for each stage.

    `api_version` is 1 for functions of the typed FFI, and 0 for older ones. Raises JaxRuntimeError if `fn` is not a
    function, or if the name is registered for another one.

    Example:
        >>> from jaxlib.cpu import _lapack
        >>> jax.ffi.register_ffi_target("docs_cholesky", _lapack.registrations()["lapack_spotrf_ffi"], platform="cpu")
    """
    _check_name("register_ffi_target", name)
    xc.register_custom_call_target(name, fn, platform, api_version, **kwargs)


def register_ffi_type(name: str, type_registration: dict[str, Any], platform: str = "cpu") -> None:
    """Registers the type of a target's state: capsules `type_id` and, optionally, `type_info`.

    Raises JaxRuntimeError for anything else.
    """
    _check_name("register_ffi_type", name)
    xc.register_custom_type(name, type_registration, platform=platform)


def register_ffi_type_id(name: str, obj: Any, platform: str = "cpu") -> None:
    """Raises ValueError: `register_ffi_type` registers types.

    Example:
        >>> jax.ffi.register_ffi_type_id("docs_state", object())
        Traceback (most recent call last):
        ValueError: ...
    """
    raise ValueError("register_ffi_type_id is not supported after jaxlib version 381: use register_ffi_type.")


def register_ffi_target_as_batch_partitionable(name: str) -> None:
    """Lets XLA partition a target's calls along their batch axes, counted by the attribute `num_batch_dims`.

    Example:
        >>> jax.ffi.register_ffi_target_as_batch_partitionable("my_target")
    """
    _check_name("register_ffi_target_as_batch_partitionable", name)
    plugins.register_batch_partitionable(name)


def _check_name(function: str, name: Any) -> None:
    if not isinstance(name, str):
        raise TypeError(f"{function}: the name must be a string, got {name!r}")


def pycapsule(funcptr: Any) -> Any:
    """Wraps a ctypes function pointer in a capsule for `register_ffi_target`.

    Example:
        >>> import ctypes
        >>> type(jax.ffi.pycapsule(ctypes.pythonapi.Py_GetVersion))
        <class 'PyCapsule'>
    """
    return _capsule(funcptr, None, None)


def include_dir() -> str:
    """Returns the folder of jaxlib's header files.

    Example:
        >>> import os
        >>> sorted(os.listdir(os.path.join(jax.ffi.include_dir(), "xla", "ffi", "api")))
        ['api.h', 'c_api.h', 'ffi.h']
    """
    return os.path.join(os.path.dirname(os.path.abspath(jaxlib.__file__)), "include")
