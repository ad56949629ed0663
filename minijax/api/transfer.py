"""Transfers and waiting for values, and scopes around operations."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax.base import dtypes, source, tree
from minijax.base.dtypes import DTypeLike
from minijax.ir import context, state
from minijax.ir.trace import CompileTimeTrace, Tracer
from minijax.ir.types import is_value, typeof
from minijax.partition import meshes
from minijax.partition.layouts import Format
from minijax.partition.memory import MemorySpace
from minijax.partition.meshes import PartitionSpec
from minijax.partition.shardings import NamedSharding, Sharding, check_sharding_of_type
from minijax.primitives.device import ALWAYS_COPY, DONATE_INPUT, REUSE_INPUT, device_put as put_values
from minijax.run.arrays import transfer
from minijax.run.arrays.array import ArrayImpl, DeviceLike, ExtendedArray
from minijax.run.arrays.token import Token
from minijax.run.clients import client, guards


@source.boundary
def device_put(x: Any, device: Any = None, *, src: Any = None, donate: Any = False, may_alias: Any = None) -> Any:
    """Transfers the leaves of `x` to a device or sharding; without one, arrays stay where they are.

    `device`, `src`, `donate` and `may_alias` may be tree prefixes of `x`. Raises TypeError for a leaf that is not
    a value, and ValueError for one that is to be both donated and aliased.
    """
    leaves, treedef = tree.flatten(x)
    for leaf in leaves:
        if not is_value(leaf) and not hasattr(leaf, "__array__"):
            raise TypeError(f"Argument {leaf!r} of type {type(leaf)} is not a valid JAX type")
    of_leaves = lambda name, prefix: tree.flatten_axes(f"device_put {name}", treedef, prefix)  # noqa: E731
    targets = list(map(_target, leaves, of_leaves("device", device)))
    sources = list(map(_source, leaves, of_leaves("src", src)))
    copies = list(map(_copy_semantics, of_leaves("donate", donate), of_leaves("may_alias", may_alias)))
    return treedef.unflatten(put_values(leaves, targets, sources, copies))


def _target(x: Any, device: Any) -> Any:
    """Returns the device or sharding to transfer `x` to; a spec is resolved with the context mesh."""
    if isinstance(device, PartitionSpec):
        device = on_context_mesh(device)
    if not isinstance(device, Sharding | Format | client.Device | MemorySpace | None):
        raise ValueError(
            "`jax.device_put` only accepts `None`, `jax.sharding.Sharding`, `jax.Device`, `Format`, "
            f"`jax.memory.Space` or a pytree of these values. Received invalid value: {device}"
        )
    if isinstance(device, Sharding) and is_value(x) and type(x) is not Token:
        check_sharding_of_type(device, typeof(x), "device_put args")
    return device


def _source(x: Any, src: Any) -> Any:
    """Returns `src`, by default the sharding of `x` if it is an array whose value is known."""
    if src is not None:
        return src
    known = x.to_concrete_value() if isinstance(x, Tracer) else x
    return known.sharding if isinstance(known, ArrayImpl) else None


def _copy_semantics(donate: Any, may_alias: Any) -> Any:
    if donate and may_alias:
        raise ValueError("device_put: may_alias and donate cannot be True at the same time.")
    return DONATE_INPUT if donate else ALWAYS_COPY if may_alias is False else REUSE_INPUT


def on_context_mesh(spec: PartitionSpec) -> NamedSharding:
    """Returns the sharding with this spec on the context mesh. Raises ValueError if no mesh is set."""
    mesh = meshes.context_mesh()
    if mesh is None:
        raise ValueError("Please set a mesh via `jax.set_mesh` if a PartitionSpec is passed to device_put")
    return NamedSharding(mesh, spec)


def from_dlpack(external_array: Any, device: DeviceLike | None = None, copy: bool | None = None) -> Any:
    """Imports an array of another library; shares its memory if that is aligned and `copy` is not True.

    Raises TypeError if it does not support dlpack, and ValueError if a copy is needed and `copy` is False.
    """
    return transfer.from_dlpack(external_array, device, copy)


def is_supported_dtype(dtype: DTypeLike) -> bool:
    """Returns whether arrays of this dtype can be exchanged by dlpack."""
    if dtype is None:
        raise TypeError("Expected a string or dtype-like object; got dtype=None")
    return np.dtype(dtype) in _EXCHANGED


_EXCHANGED = frozenset(
    dtypes.BY_NAME[name]
    for name in "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64 "
    "complex64 complex128".split()
)


def device_get(x: Any) -> Any:
    """Copies the arrays in a tree to the host, as NumPy arrays; arrays of extended dtypes are returned unchanged."""
    is_array = lambda leaf: hasattr(leaf, "__array__") and not isinstance(leaf, Tracer | ExtendedArray)  # noqa: E731
    with guards.explicit_transfers():
        return tree.tree_map(lambda leaf: np.asarray(leaf) if is_array(leaf) else leaf, x)


def block_until_ready(x: Any) -> Any:
    """Waits until all arrays in the tree are computed, and returns the tree."""
    return _call_on_leaves(x, "block_until_ready")


def copy_to_host_async(x: Any) -> Any:
    """Starts to copy all arrays in the tree to the host, and returns the tree."""
    return _call_on_leaves(x, "copy_to_host_async")


def _call_on_leaves(x: Any, method: str) -> Any:
    """Calls a method on all leaves that have it, and returns the tree."""
    for leaf in tree.tree_leaves(x):
        getattr(leaf, method, lambda: None)()
    return x


class ensure_compile_time_eval(contextlib.ContextDecorator):
    """Context manager: evaluates operations on known values eagerly, also during tracing."""

    def __enter__(self) -> None:
        outer = state.thread.trace
        self._scope = state.set_current_trace(outer and CompileTimeTrace(outer))
        self._scope.__enter__()

    def __exit__(self, *exception: object) -> None:
        self._scope.__exit__()

    def _recreate_cm(self):
        return type(self)()


class named_scope(contextlib.ContextDecorator):
    """Context manager and decorator: adds a name to the name stack of the operations inside, which tools show."""

    def __init__(self, name: str):
        if not isinstance(name, str):
            raise TypeError(f"named_scope name argument must be a string, got {name!r}")
        self._name = name

    def __enter__(self) -> None:
        self._scope = context.extended_name_stack(self._name)
        self._scope.__enter__()

    def __exit__(self, *exception: object) -> None:
        self._scope.__exit__()

    def _recreate_cm(self):
        return type(self)(self._name)


def named_call(fun: Callable, *, name: str | None = None) -> Callable:
    """Returns `fun` with its operations in a `named_scope`, by default of its own name."""
    scope = name or getattr(fun, "__name__", "fun")
    return functools.wraps(fun)(named_scope(scope)(fun))
