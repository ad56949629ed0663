"""What XLA is told of operations: metadata, and where they are computed."""

import functools
import types
from collections.abc import Callable
from typing import Any

from minijax.hlo.emitter import COMPUTE_TYPES
from minijax.ir.context import Surroundings
from minijax.primitives.metadata import tagged


def set_xla_metadata(x: Any = None, **kwargs: Any) -> Any:
    """XLA metadata, for the operations that compute the leaves of `x` or, without `x`, for all those within.

    Then it is a context manager and a decorator; None takes a name away again.
    """
    if x is not None:
        return tagged(x, kwargs)

    def change(context):
        metadata = {**(context.xla_metadata or {}), **kwargs}
        return context._replace(xla_metadata={k: v for k, v in metadata.items() if v is not None} or None)

    return _Metadata(change)


class _Metadata(Surroundings):
    def __call__(self, function: Callable) -> "_Within":
        return _Within(function, self)


class _Within:
    """A function that is called, traced and lowered under XLA metadata."""

    def __init__(self, function: Callable, surroundings: Surroundings):
        functools.update_wrapper(self, function, updated=())
        self._function, self._surroundings = function, surroundings

    def __call__(self, *args, **kwargs):
        with self._surroundings._recreate_cm():
            return self._function(*args, **kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._function, name)
        return _Within(value, self._surroundings) if isinstance(value, types.MethodType) else value


def compute_on(compute_type: str) -> Surroundings:
    """Context manager and decorator: the operations within are computed there.

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
    return Surroundings(lambda context: context._replace(compute_type=compute_type))
