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

if JaxRuntimeError.__module__.startswith("jaxlib"):  # jax, which may be there too, names it as well
    public_in("errors")(JaxRuntimeError)

GUIDE = "https://docs.jax.dev/en/latest/errors.html#jax.errors"


class _Explained(Exception):
    """Ends the message with the page that explains the error."""

    def __init__(self, message: str):
        super().__init__(f"{message}\nSee {GUIDE}.{type(self).__name__}")

    # Subclasses are made from tracers, which are gone when the exception is copied or unpickled.
    def __reduce__(self):
        return _restore, (type(self), self.args)


def _restore(cls: type[BaseException], args: tuple) -> BaseException:
    return cls.__new__(cls, *args)


@public_in("errors")
class JAXTypeError(_Explained, TypeError):
    """A TypeError that comes from how values are traced."""


@public_in("errors")
class JAXIndexError(_Explained, IndexError):
    """An IndexError that comes from how values are traced."""


@public_in("errors")
class ConcretizationTypeError(JAXTypeError):
    """Raised where the value of a traced array is needed, but only its type is known."""

    def __init__(self, tracer: Any, context: str = ""):
        super().__init__(
            "Abstract tracer value encountered where concrete value is expected: "
            f"{tracer._error_repr()}\n{context}{tracer._origin_msg()}\n"
        )


@public_in("errors")
class TracerBoolConversionError(ConcretizationTypeError):
    """Raised where Python asks whether a traced array is true."""

    def __init__(self, tracer: Any):
        JAXTypeError.__init__(
            self,
            f"Attempted boolean conversion of {tracer._error_repr()}. Python's if, while, and, or, not "
            "and assert need a value; lax.cond, lax.while_loop and jnp.where take traced ones."
            f"{tracer._origin_msg()}",
        )


@public_in("errors")
class TracerArrayConversionError(JAXTypeError):
    """Raised where a traced array is handed to numpy."""

    def __init__(self, tracer: Any):
        super().__init__(
            f"The numpy.ndarray conversion method __array__() was called on {tracer._error_repr()}. "
            f"numpy computes on values only; jax.numpy has the same functions.{tracer._origin_msg()}"
        )


@public_in("errors")
class TracerIntegerConversionError(JAXTypeError):
    """Raised where a traced array is used as a Python index, a length or a size."""

    def __init__(self, tracer: Any):
        super().__init__(f"The __index__() method was called on {tracer._error_repr()}{tracer._origin_msg()}")


@public_in("errors")
class NonConcreteBooleanIndexError(JAXIndexError):
    """Raised where a traced boolean array selects elements, so that the result's shape depends on values."""

    def __init__(self, tracer: Any):
        super().__init__(
            f"Array boolean indices must be concrete; got {tracer}. The size of the result depends on the "
            "mask's values; jnp.where(mask, x, y) keeps the shape.\n"
        )


@public_in("errors")
class UnexpectedTracerError(JAXTypeError):
    """Raised where a traced value is used after its transformation ended."""

    def __init__(self, msg: str):
        super().__init__(msg)


@public_in("errors")
class KeyReuseError(JAXTypeError):
    """Raised under jax_debug_key_reuse where a random key is consumed twice."""


@known_as("jax._src.core.ShardingTypeError")
class ShardingTypeError(Exception):
    """Raised where the types of operands do not say how the result of an operation lies over Explicit axes."""


@public_in("errors")
class JaxprTypeError(TypeError):
    """Raised for a jaxpr that breaks its own typing rules."""


@public_in("errors")
class InconclusiveDimensionOperation(Exception):
    """Raised where the answer to a question about symbolic dimensions depends on their values."""


# What arrays and tracers say alike.
AMBIGUOUS = "The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()"
AMBIGUOUS_EMPTY = (
    "The truth value of an empty array is ambiguous. Use `array.size > 0` to check that an array is not empty."
)
IMMUTABLE = (
    "JAX arrays are immutable and do not support in-place item assignment. Instead of x[idx] = y, use "
    "x = x.at[idx].set(y) or another .at[] method: "
    "https://docs.jax.dev/en/latest/_autosummary/jax.numpy.ndarray.at.html"
)
NO_INDEX = "Only integer scalar arrays can be converted to a scalar index."
SCALARS_ONLY = "Only scalar arrays can be converted to Python scalars; got arr.ndim="


class _Local(threading.local):
    raises = False


_local = _Local()


@contextmanager
def warnings_raised() -> Iterator[None]:
    """Context manager under which `warn` raises, for callers who may run the same again and let it warn."""
    saved, _local.raises = _local.raises, True
    try:
        yield
    finally:
        _local.raises = saved


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the user's line, however deep in the library this is called."""
    if _local.raises:
        raise category(message)
    frame, level = sys._getframe(1), 2
    while frame is not None and not source.is_user_file(frame.f_code.co_filename):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
