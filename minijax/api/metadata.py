"""Annotations of operations and calls for XLA: metadata, and where they are computed."""

import contextlib
import functools
import json
import types
from collections.abc import Callable
from typing import Any

from minijax.base import source, tree
from minijax.calls.marked_calls import MarkedCall, compute_on_p, fused_call_p, xla_metadata_call_p
from minijax.dispatch.jit import JitOptions
from minijax.dispatch.jitted import Engine, Resolved, TracedFunction
from minijax.hlo.emitter import COMPUTE_TYPES
from minijax.ir.body import check_callable, signature_of
from minijax.ir.context import ContextChange
from minijax.ir.trace import checked_values
from minijax.ir.types import checked_type
from minijax.partition.memory import MemorySpace
from minijax.primitives.barriers import tagged


def set_xla_metadata(x: Any = None, **kwargs: Any) -> Any:
    """Sets XLA metadata of the operation that computes each leaf of `x`.

    Without `x`, it is a context manager and decorator for all operations inside; None removes a name.
    """
    if x is not None:
        return tagged(x, kwargs)

    def change(context):
        metadata = {**(context.xla_metadata or {}), **kwargs}
        return context._replace(xla_metadata={k: v for k, v in metadata.items() if v is not None} or None)

    return _Metadata(change)


class _Metadata(ContextChange):
    def __call__(self, function: Callable) -> "_WithMetadata":
        return _WithMetadata(function, self)


class _WithMetadata:
    """A function that is called, traced and lowered with XLA metadata set."""

    def __init__(self, function: Callable, surroundings: ContextChange):
        functools.update_wrapper(self, function, updated=())
        self._function, self._surroundings = function, surroundings

    def __call__(self, *args, **kwargs):
        with self._surroundings._recreate_cm():
            return self._function(*args, **kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._function, name)
        return _WithMetadata(value, self._surroundings) if isinstance(value, types.MethodType) else value


def compute_on(compute_type: str) -> ContextChange:
    """Context manager and decorator: places the computation of the operations inside.

    `compute_type` is `device`, `device_host`, `tpu_sparsecore` or `gpu_stream:` and a number. Raises TypeError or
    ValueError for any other.
    """
    if not isinstance(compute_type, str):
        raise TypeError(f"`compute_on`'s compute_type argument must be a string, got {compute_type!r}")
    if compute_type not in COMPUTE_TYPES and not compute_type.startswith("gpu_stream:"):
        known = ", ".join(f"`{kind}`" for kind in COMPUTE_TYPES)
        raise ValueError(
            f"Invalid compute type {compute_type}. Current supported values are {known}, and `gpu_stream:#`."
        )
    return ContextChange(lambda context: context._replace(compute_type=compute_type))


def compute_on2(
    f: Callable | None = None, *, compute_type: str, out_memory_spaces: Any, compiler_options: Any = None
) -> Callable:
    """Returns `f` as a call that is computed elsewhere; without `f`, a decorator.

    `compute_type` is that of `compute_on`, with the same errors. `out_memory_spaces` is a tree prefix of the results
    with their memory spaces; raises ValueError if it is not a prefix. `compiler_options` can be any JSON.
    """
    if f is None:
        return functools.partial(
            compute_on2,
            compute_type=compute_type,
            out_memory_spaces=out_memory_spaces,
            compiler_options=compiler_options,
        )
    compute_on(compute_type)  # raises for an unknown one
    options = None if compiler_options is None else json.dumps(compiler_options)

    def params(traced):
        spaces = tree.flatten_axes("compute_on out_memory_spaces", traced.out_tree, out_memory_spaces)
        for space in spaces:
            if not isinstance(space, MemorySpace):
                raise TypeError(f"compute_on2: out_memory_spaces must be values of jax.memory.Space, got {space!r}")
        return dict(compute_type=compute_type, out_memory_spaces=tuple(spaces), compiler_options_json=options)

    return _as_call(compute_on_p, f, params, lambda: compute_on(compute_type))


def xla_metadata_call(f: Callable | None = None, **meta: str) -> Callable:
    """Returns `f` as a call with these frontend attributes; without `f`, a decorator."""
    if f is None:
        return functools.partial(xla_metadata_call, **meta)
    hash(tuple(meta.values()))  # raises for values that cannot be part of cache keys
    return _as_call(xla_metadata_call_p, f, lambda traced: meta)


def scheduling_group(name: str) -> Callable:
    """Decorator: makes the function a call that XLA schedules as the group of that name."""
    return xla_metadata_call(scheduling_group=name)


def fused(*, out_spaces: Any) -> Callable[[Callable], Callable]:
    """Decorator: makes the function a call that XLA fuses on accelerators, with operands in any memory space.

    `out_spaces` is a tree prefix of the results with their memory spaces.
    """

    def params(traced):
        return dict(out_spaces=tuple(tree.flatten_axes("fused out_spaces", traced.out_tree, out_spaces)))

    return lambda f: _as_call(fused_call_p, f, params, space=MemorySpace.Any)


def _as_call(
    primitive: MarkedCall,
    f: Callable,
    params: Callable[[TracedFunction], dict],
    within: Callable[[], contextlib.AbstractContextManager] = contextlib.nullcontext,
    space: MemorySpace | None = None,
) -> Callable:
    """Returns `f` with its calls bound as operations of `primitive`.

    It is traced under the context manager `within()`, for arguments in the memory `space` if one is given.
    """
    check_callable(f, primitive.name)
    engine = Engine(f, JitOptions(), Resolved(), None, signature_of(f), primitive.name)

    @source.boundary
    def wrapped(*args, **kwargs):
        call = engine.flatten(args, kwargs)
        with within():
            if space is None:
                traced = engine.traced(call)
            else:
                avals = tuple([checked_type(x).in_space(space) for x in call.leaves])
                traced = engine.traced_for(avals, call)
        operands = [*traced.captured, *checked_values(call.leaves)]
        return traced.out_tree.unflatten(primitive.bind(*operands, jaxpr=traced.closed, **params(traced)))

    return wrapped
