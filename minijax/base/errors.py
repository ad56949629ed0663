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


GUIDE = "https://docs.jax.dev/en/latest/errors.html"


class _Explained(Exception):
    """An exception whose message says where the error is explained."""

    def __init__(self, message: str):
        name = f"jax.errors.{type(self).__name__}"
        super().__init__(f"{message}\nhelp({name}) shows the cause, and how to mend it. See {GUIDE}#{name}")

    # Subclasses are constructed from tracers, which no longer exist when the exception is copied or unpickled.
    def __reduce__(self):
        return _restore, (type(self), self.args)


def _restore(cls: type[BaseException], args: tuple) -> BaseException:
    return cls.__new__(cls, *args)


@public_in("errors")
class JAXTypeError(_Explained, TypeError):
    """Is the base class of TypeErrors that tracing causes.

    Example:
        >>> try:
        ...     jax.jit(lambda x: x if x > 0 else -x)(1.0)
        ... except jax.errors.JAXTypeError as error:
        ...     print(type(error).__name__)
        TracerBoolConversionError
    """


@public_in("errors")
class JAXIndexError(_Explained, IndexError):
    """Is the base class of IndexErrors that tracing causes.

    Example:
        >>> issubclass(jax.errors.NonConcreteBooleanIndexError, jax.errors.JAXIndexError)
        True
    """


@public_in("errors")
class ConcretizationTypeError(JAXTypeError):
    """Is raised where Python needs the value of an array that is traced.

    Inside a function that `jax.jit`, `jax.vmap`, `jax.grad`, `jax.lax.scan` and the like trace, arrays are tracers:
    only their abstract values are known, shapes and dtypes. `float(x)`, `int(x)`, and arguments that determine shapes
    need more. This also is the base class of `TracerBoolConversionError`.

    Example:
        >>> @jax.jit
        ... def halves(n):
        ...     return jnp.arange(n) / 2
        >>> halves(3)
        Traceback (most recent call last):
            ...
        minijax.errors.ConcretizationTypeError: Abstract tracer value encountered where concrete value is expected...

        The number determines a shape, hence it must be static: part of the program, which is compiled for each number.

        >>> jax.jit(lambda n: jnp.arange(n) / 2, static_argnums=0)(3)
        Array([0. , 0.5, 1. ], dtype=float32)

        A number that does not determine a shape remains an array: `x.astype(float)` in place of `float(x)`.

        >>> jax.jit(lambda x: x.astype(float) / 2)(3)
        Array(1.5, dtype=float32)
    """

    def __init__(self, tracer: Any, context: str = ""):
        super().__init__(
            "Abstract tracer value encountered where concrete value is expected: "
            f"{tracer._error_repr()}\n{context}{tracer._origin_msg()}\n"
        )


@public_in("errors")
class TracerBoolConversionError(ConcretizationTypeError):
    """Is raised where Python needs to know whether a traced array is true.

    `if`, `while`, `assert`, `and`, `or` and `not` choose what Python runs next, but while a function is traced the
    value is not known. Choose in the program instead: by `jnp.where` or `jax.lax.cond`, by `jax.lax.while_loop`, and
    by the operators `&`, `|` and `~`.

    Example:
        >>> @jax.jit
        ... def magnitude(x):
        ...     return x if x >= 0 else -x
        >>> magnitude(-2.0)
        Traceback (most recent call last):
            ...
        minijax.errors.TracerBoolConversionError: Attempted boolean conversion of traced array with shape bool[]...

        Mended:

        >>> float(jax.jit(lambda x: jnp.where(x >= 0, x, -x))(-2.0))
        2.0
        >>> float(jax.jit(lambda x: jax.lax.cond(x >= 0, lambda x: x, lambda x: -x, x))(-2.0))
        2.0

        If it is an option rather than data, make it static:

        >>> scale = lambda x, twice: 2 * x if twice else x
        >>> float(jax.jit(scale, static_argnames="twice")(3.0, twice=True))
        6.0
    """

    def __init__(self, tracer: Any):
        JAXTypeError.__init__(
            self,
            f"Attempted boolean conversion of {tracer._error_repr()}. Python's if, while, and, or, not "
            "and assert need a value; lax.cond, lax.while_loop and jnp.where take traced ones."
            f"{tracer._origin_msg()}",
        )


@public_in("errors")
class TracerArrayConversionError(JAXTypeError):
    """Is raised where NumPy is given a traced array.

    NumPy computes on values, which are not known while a function is traced. Use the function of the same name of
    `jax.numpy`; for code that needs NumPy itself, `jax.pure_callback`.

    Example:
        >>> jax.jit(lambda x: np.sin(x))(0.0)
        Traceback (most recent call last):
            ...
        minijax.errors.TracerArrayConversionError: The numpy.ndarray conversion method __array__() was called on...

        Mended:

        >>> float(jax.jit(lambda x: jnp.sin(x))(0.0))
        0.0

        A NumPy array that is indexed by a traced integer has this cause, too. Convert it first:

        >>> table = np.array([10, 20, 30])
        >>> int(jax.jit(lambda i: jnp.asarray(table)[i])(1))
        20
    """

    def __init__(self, tracer: Any):
        super().__init__(
            f"The numpy.ndarray conversion method __array__() was called on {tracer._error_repr()}. "
            f"numpy computes on values only; jax.numpy has the same functions.{tracer._origin_msg()}"
        )


@public_in("errors")
class TracerIntegerConversionError(JAXTypeError):
    """Is raised where Python needs a traced array as an integer: as an index of a list, or as the bound of a `range`.

    Example:
        >>> jax.jit(lambda i: [10, 20, 30][i])(1)
        Traceback (most recent call last):
            ...
        minijax.errors.TracerIntegerConversionError: The __index__() method was called on traced array...

        Mended, by an array in place of the list, or by a static argument:

        >>> int(jax.jit(lambda i: jnp.array([10, 20, 30])[i])(1))
        20
        >>> jax.jit(lambda i: [10, 20, 30][i], static_argnums=0)(1)
        Array(20, dtype=int32, weak_type=True)

        A loop with a traced bound is a `jax.lax.fori_loop`:

        >>> int(jax.jit(lambda n: jax.lax.fori_loop(0, n, lambda i, total: total + i, 0))(4))
        6
    """

    def __init__(self, tracer: Any):
        super().__init__(
            f"The __index__() method was called on {tracer._error_repr()}. Instead of range use "
            "lax.fori_loop or lax.scan, instead of a list an array; or make the argument static (static_argnums)."
            f"{tracer._origin_msg()}"
        )


@public_in("errors")
class NonConcreteBooleanIndexError(JAXIndexError):
    """Is raised where a traced array of booleans is used as an index.

    The number of elements that it selects depends on its values, and shapes of traced arrays must be known.

    Example:
        >>> jax.jit(lambda x: x[x > 0].sum())(jnp.array([-1.0, 2.0, 3.0]))
        Traceback (most recent call last):
            ...
        minijax.errors.NonConcreteBooleanIndexError: Array boolean indices must be concrete; got bool[3]...

        Mended: keep the shape, and replace the elements that should not count.

        >>> float(jax.jit(lambda x: jnp.where(x > 0, x, 0).sum())(jnp.array([-1.0, 2.0, 3.0])))
        5.0

        To write elements, use `jnp.where` too; or give `jnp.nonzero` a size.

        >>> jax.jit(lambda x: jnp.nonzero(x > 0, size=2)[0])(jnp.array([-1.0, 2.0, 3.0]))
        Array([1, 2], dtype=int32)
    """

    def __init__(self, tracer: Any):
        super().__init__(
            f"Array boolean indices must be concrete; got {tracer}. The size of the result depends on the "
            "mask's values; jnp.where(mask, x, y) keeps the shape.\n"
        )


@public_in("errors")
class UnexpectedTracerError(JAXTypeError):
    """Is raised where a tracer is used after the transformation that made it has ended.

    A traced function had a side effect: it stored an array in a global variable, in an attribute or in a list. What was
    stored is a tracer, and no array. `jax.checking_leaks` finds the place earlier.

    Example:
        >>> seen = []
        >>> @jax.jit
        ... def double(x):
        ...     seen.append(2 * x)
        ...     return 2 * x
        >>> _ = double(1.0)
        >>> seen[0] + 1
        Traceback (most recent call last):
            ...
        minijax.errors.UnexpectedTracerError: Encountered an unexpected tracer...

        Mended: return everything that is needed later.

        >>> @jax.jit
        ... def double_and_more(x):
        ...     return 2 * x, {"intermediate": 2 * x}
        >>> y, seen = double_and_more(1.0)
        >>> float(seen["intermediate"] + 1)
        3.0
    """

    def __init__(self, msg: str):
        super().__init__(msg)


@public_in("errors")
class KeyReuseError(JAXTypeError):
    """Is raised under the option `jax_debug_key_reuse` where a random key is used twice.

    Two draws with one key are not independent. Split the key first.

    Example:
        >>> def correlated(key):
        ...     return jax.random.normal(key), jax.random.uniform(key)
        >>> with jax.debug_key_reuse(True):
        ...     correlated(jax.random.key(0))
        Traceback (most recent call last):
            ...
        minijax.errors.KeyReuseError: Previously-consumed key passed to jit-compiled function at index 0...

        Mended:

        >>> def independent(key):
        ...     first, second = jax.random.split(key)
        ...     return jax.random.normal(first), jax.random.uniform(second)
        >>> with jax.debug_key_reuse(True):
        ...     x, y = independent(jax.random.key(0))
    """


@known_as("jax._src.core.ShardingTypeError")
class ShardingTypeError(Exception):
    """Raised if the operands' types do not determine the result's sharding over Explicit mesh axes."""


@public_in("errors")
class JaxprTypeError(TypeError):
    """Is raised for a jaxpr that breaks its own typing rules; `jax.extend.core.check_jaxpr` checks them.

    Example:
        >>> import minijax.extend.core
        >>> jaxpr = jax.make_jaxpr(jnp.sin)(1.0).jaxpr
        >>> try:
        ...     jax.extend.core.check_jaxpr(jaxpr.replace(outvars=jaxpr.invars, eqns=jaxpr.eqns * 2))
        ... except jax.errors.JaxprTypeError as error:
        ...     print(type(error).__name__)
        JaxprTypeError
    """


@public_in("errors")
class InconclusiveDimensionOperation(Exception):
    """Is raised where the outcome of an operation on symbolic dimensions depends on the values of their variables.

    Example:
        >>> (n,) = jax.export.symbolic_shape("n")
        >>> n >= 3
        Traceback (most recent call last):
            ...
        minijax.errors.InconclusiveDimensionOperation: Symbolic dimension comparison 'n' >= '3' is inconclusive...

        Mended, by a constraint that decides it:

        >>> (n,) = jax.export.symbolic_shape("n", constraints=["n >= 4"])
        >>> n >= 3
        True
    """


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
MAKE_STATIC = (
    "Pass a value that is known when the function is traced: a Python number, or a static argument of jax.jit "
    "(static_argnums)."
)
NUMBERS_OF_KEYS = "Use numbers; jax.random draws them with keys."
NO_INDEX = "Only integer scalar arrays can be converted to a scalar index."
SCALARS_ONLY = (
    "Only scalar arrays can be converted to Python scalars; got arr.ndim={}. Index or reduce the array first; "
    "`x.tolist()` converts all elements."
)
NO_LENGTH = "len() of unsized object: the array has rank 0. `x.size` counts the elements of any array."


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


def no_float0(name: str, where: str = "") -> str:
    """The message for an operand that is a tangent of integers."""
    return (
        f"Called {name} with a float0 array{where}. float0s do not support any operations by design because they are "
        "not compatible with non-trivial vector spaces: they are tangents of integers. No implicit dtype conversion is "
        "done. You can use np.zeros_like(arr, dtype=float) to cast a float0 array to a regular zeros array."
    )
