"""Shared by the formulas of distributions: operands with operators, and functions that are computed from others."""

from collections.abc import Callable
from types import FunctionType
from typing import Any, ParamSpec

import numpy as np

import minijax.numpy as jnp
from minijax.base.util import named
from minijax.ir.types import Typed, typeof
from minijax.primitives import elementwise as lax
from minijax.primitives.families import is_complex
from minijax.primitives.promote import promote_args_inexact
from minijax.run.arrays.array import Array, ArrayImpl

P = ParamSpec("P")


# ---- operands ---------------------------------------------------------------------------------------


class _Scalar(Typed):
    """A scalar on the host with the operators of arrays: in `loc + scale`, jax records an addition of literals."""

    __slots__ = ()
    __array_priority__ = 100


for _name in "add radd sub rsub mul rmul truediv rtruediv pow rpow neg abs lt le gt ge eq ne".split():
    setattr(_Scalar, f"__{_name}__", getattr(ArrayImpl, f"__{_name}__"))


def inexact(name: str, *args: Any) -> list[Any]:
    """The arguments of `name` as arrays of one floating or complex dtype, and of one rank but for scalars."""
    return [_operand(x) for x in promote_args_inexact(name, *args)]


def real(name: str, *args: Any) -> list[Any]:
    """The arguments of `name` promoted to one floating dtype and one rank. Raises ValueError for complex numbers."""
    args = promote_args_inexact(name, *args)
    if is_complex(args[0]):
        raise ValueError(f"{name} does not support complex-valued inputs.")
    return args


def _operand(x: Any) -> Any:
    return x if isinstance(x, Array) else jnp.asarray(x) if np.ndim(x) else _Scalar(x, typeof(x))


# ---- functions computed from others -----------------------------------------------------------------


def exp_of(logarithm: Callable[P, Array], shown: str) -> Callable[P, Array]:
    """The function `f` whose logarithm is this function, named `logf`; its docstring shows its value at the example."""
    return _composed(lax.exp, logarithm, logarithm.__name__.removeprefix("log"), shown)


def log_of(function: Callable[P, Array], shown: str) -> Callable[P, Array]:
    """The logarithm of a function `f`, named `logf`; its docstring shows its value at the example."""
    return _composed(lax.log, function, f"log{function.__name__}", shown)


def _composed(outer: Callable[[Array], Array], inner: Callable[P, Array], name: str, shown: str) -> Callable[P, Array]:
    # "Computes the density ..." and "Computes the logarithm of the density ...".
    have, wanted = (" the logarithm of the ", " the ") if outer is lax.exp else (" the ", " the logarithm of the ")
    text, mark, example = (inner.__doc__ or "").replace(have, wanted, 1).partition(">>> ")
    call = example.partition("\n")[0].partition(".round(")[0].replace(f".{inner.__name__}(", f".{name}(")
    doc = f"{text}{mark}print({call}.round(3))\n      {shown}" if example else None
    # The code of `inner` under the new name, which Python shows in errors about arguments.
    code = named(FunctionType(inner.__code__, inner.__globals__, name, inner.__defaults__), name, doc)
    code.__annotations__ = inner.__annotations__

    def function(*args: P.args, **kwargs: P.kwargs) -> Array:
        return outer(code(*args, **kwargs))

    function.__module__, function.__wrapped__ = inner.__module__, code
    return named(function, name, doc)
