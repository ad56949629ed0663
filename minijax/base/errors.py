"""The exceptions that users see, and warnings that point at the user's own line."""

import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from minijax.base import source
from minijax.base.naming import known_as, public_in
from minijax.base.native import JaxRuntimeError as JaxRuntimeError

if JaxRuntimeError.__module__.startswith("jaxlib"):  # jax, which may be imported too, renames this class as well
    public_in("errors")(JaxRuntimeError)


def deleted(kind: str) -> RuntimeError:
    """The error for an array of that type that has no memory any more."""
    return RuntimeError(
        f"Array has been deleted with shape={kind}. Its memory was freed by `delete()`, or given to the results of a "
        "function that donates this argument (donate_argnums): use the results, or do not donate it."
    )


class _Explained(Exception):
    """An exception whose message says where the error is explained."""

    def __init__(self, message: str):
        super().__init__(
            f"{message}\nhelp(jax.errors.{type(self).__name__}) shows how it comes about, and how to mend it."
        )

    # Subclasses are constructed from tracers, which no longer exist when the exception is copied or unpickled.
    def __reduce__(self):
        return _restore, (type(self), self.args)


def _restore(cls: type[BaseException], args: tuple) -> BaseException:
    return cls.__new__(cls, *args)


@public_in("errors")
class JAXTypeError(_Explained, TypeError):
    """A TypeError caused by tracing."""


@public_in("errors")
class JAXIndexError(_Explained, IndexError):
    """An IndexError caused by tracing."""


@public_in("errors")
class ConcretizationTypeError(JAXTypeError):
    """Raised if a concrete value is needed, but the array is traced and only its abstract value is known."""

    def __init__(self, tracer: Any, context: str = ""):
        super().__init__(
            "Abstract tracer value encountered where concrete value is expected: "
            f"{tracer._error_repr()}\n{context}{tracer._origin_msg()}\n"
        )


@public_in("errors")
class TracerBoolConversionError(ConcretizationTypeError):
    """Raised if a traced array is converted to a Python bool."""

    def __init__(self, tracer: Any):
        JAXTypeError.__init__(
            self,
            f"Attempted boolean conversion of {tracer._error_repr()}. Python's if, while, and, or, not "
            "and assert need a value; lax.cond, lax.while_loop and jnp.where take traced ones."
            f"{tracer._origin_msg()}",
        )


@public_in("errors")
class TracerArrayConversionError(JAXTypeError):
    """Raised if a traced array is passed to numpy."""

    def __init__(self, tracer: Any):
        super().__init__(
            f"The numpy.ndarray conversion method __array__() was called on {tracer._error_repr()}. "
            f"numpy computes on values only; jax.numpy has the same functions.{tracer._origin_msg()}"
        )


@public_in("errors")
class TracerIntegerConversionError(JAXTypeError):
    """Raised if a traced array is used as a Python index, a length or a size."""

    def __init__(self, tracer: Any):
        super().__init__(f"The __index__() method was called on {tracer._error_repr()}{tracer._origin_msg()}")


@public_in("errors")
class NonConcreteBooleanIndexError(JAXIndexError):
    """Raised if a traced boolean array is used as an index: the result's shape would depend on its values."""

    def __init__(self, tracer: Any):
        super().__init__(
            f"Array boolean indices must be concrete; got {tracer}. The size of the result depends on the "
            "mask's values; jnp.where(mask, x, y) keeps the shape.\n"
        )


@public_in("errors")
class UnexpectedTracerError(JAXTypeError):
    """Raised if a tracer is used after its transformation ended."""

    def __init__(self, msg: str):
        super().__init__(msg)


@public_in("errors")
class KeyReuseError(JAXTypeError):
    """Raised under jax_debug_key_reuse if a random key is consumed twice."""


@known_as("jax._src.core.ShardingTypeError")
class ShardingTypeError(Exception):
    """Raised if the operands' types do not determine the result's sharding over Explicit mesh axes."""


@public_in("errors")
class JaxprTypeError(TypeError):
    """Raised for a jaxpr that breaks its own typing rules."""


@public_in("errors")
class InconclusiveDimensionOperation(Exception):
    """Raised if the outcome of an operation on symbolic dimensions depends on the values of their variables."""


# Error texts that arrays and tracers share.
AMBIGUOUS = "The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()"
AMBIGUOUS_EMPTY = (
    "The truth value of an empty array is ambiguous. Use `array.size > 0` to check that an array is not empty."
)
IMMUTABLE = (
    "JAX arrays are immutable and do not support in-place item assignment. Instead of x[idx] = y, use "
    "x = x.at[idx].set(y) or another .at[] method, which "
    "help(jax.Array.at) lists."
)
NO_INDEX = "Only integer scalar arrays can be converted to a scalar index."
SCALARS_ONLY = "Only scalar arrays can be converted to Python scalars; got arr.ndim="


class _Local(threading.local):
    raises = False


_local = _Local()


@contextmanager
def warnings_raised() -> Iterator[None]:
    """Context manager under which `warn` raises, for callers that may run the same code again and let it warn."""
    saved, _local.raises = _local.raises, True
    try:
        yield
    finally:
        _local.raises = saved


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warns at the user's line, however deep in the library this is called."""
    if _local.raises:
        raise category(message)
    frame, level = sys._getframe(1), 2
    while frame is not None and not source.is_user_file(frame.f_code.co_filename):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
