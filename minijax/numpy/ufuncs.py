"""Elementwise functions: arithmetic, elementary functions, comparison, logic, bits, and parts of complex numbers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from math import e, log10 as math_log10, pi
from typing import Any, ParamSpec, TypeVar

import numpy as np

from minijax.base import dtypes
from minijax.base.util import named
from minijax.composed.arrays.selecting import float_divmod, floor_divide, remainder, where
from minijax.dispatch.jitted import jitted
from minijax.ir.types import typeof
from minijax.numpy.ufunc_texts import described
from minijax.primitives import elementwise as lax, moving, structural
from minijax.primitives.convert import bitcast_convert_type, convert
from minijax.primitives.families import const_like, full_of, is_complex, scalar_like
from minijax.primitives.promote import (
    arrays,
    as_type,
    check_no_float0,
    check_out,
    is_derived_twice,
    is_inexact,
    is_unsigned,
    kind_of,
    promote_args,
    promote_args_inexact,
    promote_args_numeric,
    promote_dtypes_inexact,
    promote_dtypes_numeric,
    promote_shapes,
)
from minijax.run.arrays.array import Array, ArrayImpl, ArrayLike

Promotion = Callable[..., list]
P = ParamSpec("P")
R = TypeVar("R")


def promoting(
    promote: Promotion, inline: bool = False, has_body: bool = False
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorator: jits a function of arrays, which are checked and promoted first; errors give its name.

    A function that `has_body` records an equation with a jaxpr, which all its calls under one trace share.
    """

    def wrap(function: Callable[P, R]) -> Any:
        @functools.wraps(function)
        def promoted(*args):
            return function(*promote(function.__name__, *args))

        if has_body:
            promoted._has_body = True
        return jitted(inline=inline)(promoted)

    return wrap


_KINDS = {
    promote_args: "",
    promote_args_numeric: "Booleans become integers.",
    promote_args_inexact: "Integers and booleans become floats of the default dtype.",
}


def _inlined(function: Callable, name: str, promote: Promotion = promote_args) -> Callable:
    doc = described(function, name, _KINDS.get(promote, ""))
    return jitted(inline=True, is_one_equation=True)(named(function, name, doc))


def _unary(name: str, op: Callable, promote: Promotion = promote_args_inexact) -> Callable:
    def ufunc(x: ArrayLike, /) -> Array:
        """{sentence}

        Args:
          x: array or number. {kinds}

        Returns:
          {an} of the shape of `x`.

        Differences from NumPy:
          It does not take `out`, `where`, `dtype` and `casting`. 64-bit dtypes need `jax_enable_x64`.

        See also: {related}.

        Example:
          >>> {call}
          {result}
        """
        return op(*promote(name, x))

    return _inlined(ufunc, name, promote)


def _binary(name: str, op: Callable, promote: Promotion = promote_args) -> Callable:
    def ufunc(x: ArrayLike, y: ArrayLike, /) -> Array:
        """{sentence}

        Args:
          x: array or number.
          y: array or number, which broadcasts with `x`. Both are promoted to one dtype. {kinds}

        Returns:
          {an} of the shape to which both broadcast.

        Differences from NumPy:
          It does not take `dtype` and `casting`, and no results in place by `out` and `where`. A Python number does not
          widen the dtype of an array.

        See also: {related}.

        Example:
          >>> {call}
          {result}
        """
        return op(*promote(name, x, y))

    def numbered(x1: ArrayLike, x2: ArrayLike, /) -> Array:
        return op(*promote(name, x1, x2))

    numbered.__doc__ = ufunc.__doc__ and ufunc.__doc__.replace(" x: ", " x1: ").replace(" y: ", " x2: ").replace(
        "`x`", "`x1`"
    )
    return _inlined(numbered if name in _NUMBERED else ufunc, name, promote)


_NUMBERED = ("arctan2", "atan2", "right_shift", "true_divide")  # whose operands jax calls x1 and x2


# ---- arithmetic -------------------------------------------------------------------------------------


def _unless_bool(op: Callable, on_bool: Callable) -> Callable:
    return lambda x, y: on_bool(x, y) if typeof(x).dtype is dtypes.bool_ else op(x, y)


add = _binary("add", _unless_bool(lax.add, lax.bitwise_or))
multiply = _binary("multiply", _unless_bool(lax.mul, lax.bitwise_and))
subtract = _binary("subtract", lax.sub)
divide = true_divide = _binary("true_divide", lax.div, promote_args_inexact)
maximum = _binary("maximum", lax.max)
minimum = _binary("minimum", lax.min)
arctan2 = _binary("arctan2", lax.atan2, promote_args_inexact)
atan2 = _binary("atan2", lax.atan2, lambda name, *xs: promote_args_inexact(name, *promote_args(name, *xs)))
nextafter = _binary("nextafter", lax.nextafter, promote_args_inexact)
float_power = _binary("float_power", lax.pow, promote_args_inexact)
negative = _unary("negative", lax.neg, promote_args)
positive = _unary("positive", lambda x: x, promote_args)
sign = _unary("sign", lax.sign, promote_args)
square = _unary("square", lax.square, promote_args_numeric)
reciprocal = _unary("reciprocal", lambda x: lax.integer_pow(x, -1))
absolute = _unary("absolute", lambda x: x if is_unsigned(x) or kind_of(x) is bool else lax.abs(x), promote_args)


@promoting(promote_args_inexact, inline=True)
def fabs(x: ArrayLike, /) -> Array:
    """Computes absolute values of real numbers as floats, elementwise.

    Integers become floats. Raises TypeError for complex numbers.

    Example:
      >>> jnp.fabs(jnp.array([-1, 2]))
      Array([1., 2.], dtype=float32)
    """
    if is_complex(x):
        raise TypeError("ufunc 'fabs' does not support complex dtypes")
    return lax.abs(x)


@promoting(arrays)
def fmod(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Computes the remainder of a division that rounds towards zero, elementwise.

    It has the sign of `x1`. For integers a division by 0 gives 0.

    Example:
      >>> jnp.fmod(jnp.array([7, -7]), 3)
      Array([ 1, -1], dtype=int32)
    """
    if kind_of(dtypes_of(x1, x2)) is int:
        x2 = where(equal(x2, 0), structural.full_like(x2, 1), x2)
    return lax.rem(*promote_args_numeric("fmod", x1, x2))


def dtypes_of(*args: Any) -> np.ndarray:
    """An empty array of the dtype that the arguments promote to."""
    return np.empty(0, dtypes.result_type(*args))


@promoting(promote_args_numeric)
def divmod(x1: ArrayLike, x2: ArrayLike, /) -> tuple[Any, Any]:
    """Returns quotient, rounded down, and remainder of a division, elementwise.

    They are those of `floor_divide` and `remainder`.

    Example:
      >>> jnp.divmod(jnp.array([7, -7]), 3)
      (Array([ 2, -3], dtype=int32), Array([1, 2], dtype=int32))
    """
    if is_inexact(x1):
        return float_divmod(x1, x2)
    return floor_divide(x1, x2), remainder(x1, x2)


def power(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Raises elements of one array to powers.

    Args:
      x1: array or number, the bases.
      x2: array or number, the exponents, which broadcasts with `x1`.

    Returns:
      An array of the broadcast shape and the dtype that the arguments promote to. A real negative base with a
      fractional exponent gives NaN.

    Raises:
      TypeError: for an integer base and a static exponent that is a negative integer.

    Differences from NumPy:
      A static integer exponent is multiplied out, which is faster and differentiable everywhere. An integer base with a
      traced negative exponent is not an error and gives a meaningless number: use a floating base. It does not take
      `out`, `where` and `dtype`.

    See also: `jax.numpy.float_power`, `jax.numpy.square`, `jax.lax.pow`, `jax.lax.integer_pow`.

    Example:
      >>> jnp.power(jnp.array([1, 2, 3]), 2)
      Array([1, 4, 9], dtype=int32)
      >>> jnp.power(2.0, jnp.array([-1, 0.5]))
      Array([0.5      , 1.4142135], dtype=float32)
      >>> jax.grad(lambda x: jnp.power(x, 3))(2.0)
      Array(12., dtype=float32, weak_type=True)
    """
    x1, x2 = arrays("power", x1, x2)
    if _is_static_integer(x2):
        # Second derivatives are sums of products, whose last bits differ if they are one program.
        return (_multiplied_out if is_derived_twice(x1) else _static_power)(x1, int(x2))
    return _power(x1, x2)


def _is_static_integer(x: Any) -> bool:
    if isinstance(x, np.generic | np.ndarray | ArrayImpl):
        return not x.shape and dtypes.issubdtype(x.dtype, np.integer)
    return isinstance(x, int)


def _multiplied_out(x: Any, y: int) -> Any:
    (x,) = promote_args_numeric("power", x)
    if y < 0 and kind_of(x) is int:
        raise TypeError(f"Integers cannot be raised to negative powers, got integer_pow({typeof(x)}, {y})")
    return lax.integer_pow(x, y)


_static_power = jitted("_static_power", inline=True, static=("y",))(_multiplied_out)


@jitted(inline=True)
def _power(x1: Any, x2: Any) -> Any:
    x1, x2 = promote_shapes("power", x1, x2)
    check_no_float0("power", x1, x2)
    base, exponent = promote_dtypes_numeric(x1, x2)
    if kind_of(base) is int:
        return _integer_power(base, exponent)
    return lax.pow(base, x2 if kind_of(x2) is int and kind_of(x1) is not int else exponent)


def _integer_power(x1: Any, x2: Any) -> Any:
    """By squaring, over six bits: with larger exponents all bases but 0, 1 and -1 overflow."""
    zero, one = scalar_like(x1, 0), scalar_like(x2, 1)
    of_zero = lax.bitwise_and(lax.eq(x1, zero), lax.ne(x2, scalar_like(x2, 0)))
    result = where(of_zero, zero, scalar_like(x1, 1))
    for _ in range(6):
        result = where(lax.bitwise_and(x2, one), lax.mul(result, x1), result)
        x1 = lax.mul(x1, x1)
        x2 = lax.shift_right_logical(x2, one)
    return result


def _extremum(name: str, better: Callable) -> Callable:
    def function(x1: ArrayLike, x2: ArrayLike) -> Array:
        """{sentence}

        Arguments broadcast, and are promoted to one dtype.

        See also: {related}.

        Example:
          >>> {call}
          {result}
        """
        return where(logical_or(better(x1, x2), isnan(x2)), x1, x2)

    return jitted()(named(function, name, described(function, name)))


fmax = _extremum("fmax", lambda x, y: greater(x, y))
fmin = _extremum("fmin", lambda x, y: less(x, y))


@promoting(promote_args_inexact)
def hypot(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Computes `sqrt(x1 ** 2 + x2 ** 2)` without overflow, elementwise.

    Integers become floats. Raises ValueError for complex numbers.

    Example:
      >>> jnp.hypot(3.0, 4.0)
      Array(5., dtype=float32, weak_type=True)
    """
    if is_complex(x1):
        raise ValueError(
            "jnp.hypot is not well defined for complex-valued inputs. Please convert to real values first, "
            "such as by using abs(x)"
        )
    x1, x2 = lax.abs(x1), lax.abs(x2)
    infinity = typeof(x1).dtype.type(np.inf)
    infinite = lax.bitwise_or(lax.eq(x1, infinity), lax.eq(x2, infinity))
    large, small = lax.max(x1, x2), lax.min(x1, x2)
    is_zero = equal(large, 0)
    ratio = lax.div(small, where(equal(large, 0), structural.full_like(large, 1), large))
    scaled = lax.mul(large, lax.sqrt(add(1, lax.square(ratio))))
    return where(infinite, const_like(large, np.inf), where(is_zero, large, scaled))


@jitted()
def heaviside(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Returns 0 for negative elements, 1 for positive ones and `x2` at zero.

    Integers become floats. NaN stays NaN.

    Example:
      >>> jnp.heaviside(jnp.array([-1.0, 0.0, 2.0]), 0.5)
      Array([0. , 0.5, 1. ], dtype=float32)
    """
    x1, x2 = promote_dtypes_inexact(*arrays("heaviside", x1, x2))
    zero = const_like(x1, 0)
    below, above, nan = lax.lt(x1, zero), lax.gt(x1, zero), lax.ne(x1, x1)
    return where(below, zero, where(above, const_like(x1, 1), where(nan, x1, x2)))


@promoting(promote_args_inexact)
def copysign(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Returns the absolute values of `x1` with the signs of `x2`.

    Integers become floats. Raises TypeError for complex numbers.

    Example:
      >>> jnp.copysign(jnp.array([1.0, 2.0]), -0.0)
      Array([-1., -2.], dtype=float32)
    """
    if is_complex(x1):
        raise TypeError("copysign does not support complex-valued inputs")
    return where(signbit(x2), lax.neg(lax.abs(x1)), lax.abs(x1))


# ---- elementary functions ---------------------------------------------------------------------------

exp = _unary("exp", lax.exp)
exp2 = _unary("exp2", lax.exp2)
expm1 = _unary("expm1", lax.expm1)
log = _unary("log", lax.log)
log1p = _unary("log1p", lax.log1p)
sqrt = _unary("sqrt", lax.sqrt)
cbrt = _unary("cbrt", lax.cbrt)
sin = _unary("sin", lax.sin)
cos = _unary("cos", lax.cos)
tan = _unary("tan", lax.tan)
sinh = _unary("sinh", lax.sinh)
cosh = _unary("cosh", lax.cosh)
tanh = _unary("tanh", lax.tanh)
arcsin = _unary("arcsin", lax.asin)
arccos = _unary("arccos", lax.acos)
arctan = _unary("arctan", lax.atan)
arcsinh = _unary("arcsinh", lax.asinh)
arctanh = _unary("arctanh", lax.atanh)
deg2rad = _unary("deg2rad", lambda x: lax.mul(x, const_like(x, pi / 180)))
rad2deg = _unary("rad2deg", lambda x: lax.mul(x, const_like(x, 180 / pi)))


@promoting(promote_args_inexact)
def arccosh(x: ArrayLike, /) -> Array:
    """Computes the inverse of `cosh`, elementwise.

    Integers become floats. Real numbers less than 1 give NaN.

    Example:
      >>> jnp.arccosh(1.0)
      Array(0., dtype=float32, weak_type=True)
    """
    out = lax.acosh(x)
    if not is_complex(out):
        return out
    real_part = lax.real(out)
    return where(lax.lt(real_part, scalar_like(real_part, 0)), lax.neg(out), out)


def _in_base(scale: Callable) -> Callable:
    """The logarithm in another base: `scale` converts the natural one, or its real and imaginary parts."""

    def logarithm(x):
        natural = lax.log(x)
        if not is_complex(natural):
            return scale(natural)[0]
        return lax.complex(*scale(lax.real(natural), lax.imag(natural)))

    return logarithm


def _over_log2(*parts):
    log2_ = lax.log(scalar_like(parts[0], 2))
    return [lax.div(p, log2_) for p in parts]


log2 = _unary("log2", _in_base(_over_log2))
log10 = _unary("log10", _in_base(lambda *parts: [lax.mul(p, scalar_like(p, math_log10(e))) for p in parts]))

# ---- rounding and the structure of floats -----------------------------------------------------------

floor = _unary("floor", lambda x: x if _is_whole(x) else lax.floor(x), promote_args)
ceil = _unary("ceil", lambda x: x if _is_whole(x) else lax.ceil(x), promote_args)


def _is_whole(x: Any) -> bool:
    return kind_of(x) in (bool, int)


def _to_even(x: Any) -> Any:
    return lax.round_p.bind(x, rounding_method=1)


@jitted()
def trunc(x: ArrayLike) -> Array:
    """Rounds towards zero, elementwise.

    The dtype is that of the argument. Raises TypeError for complex numbers.

    Example:
      >>> jnp.trunc(jnp.array([-1.5, 1.5]))
      Array([-1.,  1.], dtype=float32)
    """
    (x,) = arrays("trunc", x)
    if _is_whole(x):
        return x
    return where(lax.lt(x, const_like(x, 0)), lax.ceil(x), lax.floor(x))


@promoting(arrays)
def rint(x: ArrayLike, /) -> Array:
    """Rounds to the nearest integer, to the even one of two, elementwise.

    Integers become floats. Of complex numbers both parts are rounded.

    Example:
      >>> jnp.rint(jnp.array([0.5, 1.5]))
      Array([0., 2.], dtype=float32)
    """
    if _is_whole(x):
        return convert(x, dtypes.default_float_dtype())
    if is_complex(x):
        return lax.complex(rint(lax.real(x)), rint(lax.imag(x)))
    return _to_even(x)


@jitted(static=("decimals", "out"))
def round(a: ArrayLike, decimals: int = 0, out: None = None) -> Array:
    """Rounds elements to a number of decimals, to the even one of two neighbors at equal distances.

    Args:
      a: array or number.
      decimals: number of decimals, a static int. Negative numbers round to tens, hundreds, and so on.
      out: must be `None`.

    Returns:
      An array of the shape and dtype of `a`. Integers are returned as they are. Of complex numbers both parts are
      rounded.

    Raises:
      TypeError: if `decimals` is not an integer.
      NotImplementedError: for integers and negative `decimals`, and for `out`.
      ValueError: for booleans, and if `decimals` is traced.

    See also: `jax.numpy.rint`, `jax.numpy.floor`, `jax.lax.round`.

    Example:
      >>> jnp.round(jnp.array([0.5, 1.5, 2.675]))
      Array([0., 2., 3.], dtype=float32)
      >>> jnp.round(jnp.array([3.14159, 125.0]), 2)
      Array([  3.1399999, 125.       ], dtype=float32)
    """
    (a,) = arrays("round", a)
    check_out("round", out)
    if not hasattr(decimals, "__index__"):
        raise TypeError(f"round: decimals must be an integer, got {decimals!r}.")
    if kind_of(a) is bool:
        raise ValueError("round: data of type bool is not inexact")
    if kind_of(a) is int:
        if decimals < 0:
            raise NotImplementedError("integer np.round not implemented for decimals < 0")
        return a
    if decimals > 0 and 10**decimals > float(dtypes.finfo(a.dtype).max):
        return a
    if is_complex(a):
        return lax.complex(_round_float(lax.real(a), decimals), _round_float(lax.imag(a), decimals))
    return _round_float(a, decimals)


def _round_float(x: Any, decimals: int) -> Any:
    if decimals == 0:
        return _to_even(x)
    # Ten to a power soon overflows float16.
    wide = convert(x, np.dtype(np.float32)) if x.dtype == np.float16 else x
    factor = const_like(wide, 10**decimals)
    rounded = lax.div(_to_even(lax.mul(wide, factor)), factor)
    return rounded if wide is x else convert(rounded, x.dtype)


@jitted(static=("decimals", "out"))
def around(a: ArrayLike, decimals: int = 0, out: None = None) -> Array:
    """Rounds elements to a number of decimals.

    It is `round` under another name, with the same arguments.

    Example:
      >>> jnp.around(jnp.array([1.25, 2.75]), 1)
      Array([1.2, 2.8], dtype=float32)
    """
    return round(a, decimals, out)


isnan = _unary("isnan", lambda x: lax.ne(x, x), promote_args)


def _all_false(x: Any) -> Any:
    return structural.full_like(x, False, np.bool_)


@promoting(arrays, inline=True)
def isfinite(x: ArrayLike, /) -> Array:
    """Returns whether each element is neither infinite nor NaN.

    Args:
      x: array or number of any dtype.

    Returns:
      An array of booleans of the shape of `x`. Integers and booleans are finite. A complex number is finite if both
      parts are.

    Differences from NumPy:
      It does not take `out`, `where` and `dtype`. `jax_debug_nans` makes operations check their results.

    See also: `jax.numpy.isnan`, `jax.numpy.isinf`, `jax.numpy.nan_to_num`.

    Example:
      >>> jnp.isfinite(jnp.array([1.0, jnp.inf, jnp.nan]))
      Array([ True, False, False], dtype=bool)
    """
    if not is_inexact(x):
        return structural.full_like(x, True, np.bool_)
    if is_complex(x):
        return lax.bitwise_and(lax.is_finite(lax.real(x)), lax.is_finite(lax.imag(x)))
    return lax.is_finite(x)


@promoting(arrays)
def isinf(x: ArrayLike, /) -> Array:
    """Returns whether each element is infinite.

    A complex number is infinite if one of its parts is. Integers never are.

    Example:
      >>> jnp.isinf(jnp.array([1.0, -jnp.inf, jnp.nan]))
      Array([False,  True, False], dtype=bool)
    """
    if not is_inexact(x):
        return _all_false(x)
    if is_complex(x):
        re, im = lax.real(x), lax.imag(x)
        return lax.bitwise_or(_is_infinite(re), _is_infinite(im))
    return _is_infinite(x)


def _is_infinite(x: Any) -> Any:
    return lax.eq(lax.abs(x), scalar_like(x, np.inf))


def _signed_infinity(name: str, value: float) -> Callable:
    def test(x: ArrayLike, /, out: None = None) -> Array:
        """{sentence}

        `out` must be `None`. Raises ValueError for complex numbers. See also {related}.

        Example:
          >>> {call}
          {result}
        """
        (x,) = arrays(name, x)
        check_out(name, out)
        if is_complex(x):
            raise ValueError("isposinf/isneginf are not well defined for complex types")
        return lax.eq(x, scalar_like(x, value)) if is_inexact(x) else _all_false(x)

    return _inlined(test, name)


isposinf = _signed_infinity("isposinf", np.inf)
isneginf = _signed_infinity("isneginf", -np.inf)


@promoting(arrays)
def signbit(x: ArrayLike, /) -> Array:
    """Returns whether the sign bit of each real number is set, also that of -0.0 and NaN.

    Raises ValueError for complex numbers.

    Example:
      >>> jnp.signbit(jnp.array([-0.0, 0.0, 1.0]))
      Array([ True, False, False], dtype=bool)
    """
    dtype = typeof(x).dtype
    if kind_of(x) is bool:
        return _all_false(x)
    if kind_of(x) is int:
        return lax.lt(x, scalar_like(x, 0))
    bits = dtypes.bit_width(dtype)
    if is_complex(x):
        raise ValueError(f"jax.numpy.signbit is not well defined for {dtype}")
    if bits not in (16, 32, 64):
        raise NotImplementedError(f"signbit: the sign is read from floats of 16, 32 or 64 bits, got {dtype}")
    ints = bitcast_convert_type(x, dtypes.BY_NAME[f"int{bits}"])
    return convert(lax.shift_right_arithmetic(ints, scalar_like(ints, bits - 1)), np.dtype(bool))


@jitted()
def nan_to_num(
    x: ArrayLike,
    copy: bool = True,
    nan: ArrayLike = 0.0,
    posinf: ArrayLike | None = None,
    neginf: ArrayLike | None = None,
) -> Array:
    """Replaces NaN and infinities with numbers.

    `nan` replaces NaN, and `posinf` and `neginf` replace infinities, by default with the largest and least number of
    the dtype. `copy` has no effect. Integers are returned as they are.

    Example:
      >>> jnp.nan_to_num(jnp.array([1.0, jnp.nan, jnp.inf]), posinf=9.0)
      Array([1., 0., 9.], dtype=float32)
    """
    (x,) = arrays("nan_to_num", x)
    dtype = typeof(x).dtype
    if not is_inexact(x):
        return x
    if is_complex(x):
        re = nan_to_num(lax.real(x), nan=nan, posinf=posinf, neginf=neginf)
        return lax.complex(re, nan_to_num(lax.imag(x), nan=nan, posinf=posinf, neginf=neginf))
    info = dtypes.finfo(dtype)
    x = where(lax.ne(x, x), as_type(nan, dtype), x)
    for bad, value, end in ((np.inf, posinf, info.max), (-np.inf, neginf, info.min)):
        is_bad = lax.eq(x, scalar_like(x, bad))
        x = where(is_bad, as_type(scalar_like(x, end) if value is None else value, dtype), x)
    return x


@jitted()
def clip(arr: ArrayLike | None = None, /, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Array:
    """Limits elements to an interval.

    Args:
      arr: array or number.
      min: lower limit, an array or number that broadcasts with `arr`. `None` for no limit.
      max: upper limit, likewise.

    Returns:
      An array of the shape to which the arguments broadcast and the dtype that they promote to. Where `min` exceeds
      `max` it is `max`.

    Raises:
      ValueError: for complex arguments, which have no order.

    Differences from NumPy:
      The argument `out` and the names `a`, `a_min` and `a_max` do not exist. Limits that are `None` may both be left
      out.

    See also: `jax.lax.clamp`, `jax.numpy.maximum`, `jax.numpy.minimum`.

    Example:
      >>> jnp.clip(jnp.array([-2, 0, 5]), 0, 3)
      Array([0, 0, 3], dtype=int32)
      >>> jax.grad(lambda x: jnp.clip(x, max=1.0))(2.0)
      Array(0., dtype=float32, weak_type=True)
    """
    if arr is None:
        raise ValueError("No input was provided to the clip function.")
    if any(x is not None and is_complex(x) for x in arrays("clip", *(x for x in (arr, min, max) if x is not None))):
        raise ValueError(
            "Clip received a complex value either through the input or the min/max keywords. Complex values "
            "have no ordering and cannot be clipped. Please convert to a real value or array by taking the "
            "real part."
        )
    if min is not None:
        arr = maximum(min, arr)
    return arr if max is None else minimum(max, arr)


# ---- comparison -------------------------------------------------------------------------------------


def _lexical(op: Callable) -> Callable:
    """An order of complex numbers: by the real parts, then by the imaginary ones."""

    def compare(x, y):
        if not is_complex(x):
            return op(x, y)
        tie = lax.eq(lax.real(x), lax.real(y))
        second = op(lax.imag(x), lax.imag(y))
        return lax.select(tie, second, op(lax.real(x), lax.real(y)))

    return compare


equal = _binary("equal", lax.eq)
not_equal = _binary("not_equal", lax.ne)
less = _binary("less", _lexical(lax.lt))
less_equal = _binary("less_equal", _lexical(lax.le))
greater = _binary("greater", _lexical(lax.gt))
greater_equal = _binary("greater_equal", _lexical(lax.ge))


@jitted(static=("equal_nan",))
def isclose(
    a: ArrayLike, b: ArrayLike, rtol: ArrayLike = 1e-05, atol: ArrayLike = 1e-08, equal_nan: bool = False
) -> Array:
    """Returns whether elements of two arrays are equal within a tolerance.

    They are if `abs(a - b) <= atol + rtol * abs(b)`. Equal infinities are. With `equal_nan`, which is static, NaN
    equals NaN. The default tolerances suit float64.

    Example:
      >>> jnp.isclose(jnp.array([1.0, 2.0]), jnp.array([1.0, 2.1]))
      Array([ True, False], dtype=bool)
    """
    a, b = promote_args("isclose", a, b)
    if dtypes.is_extended(typeof(a).dtype):
        return lax.eq(a, b)
    if not is_inexact(a):
        a, b = promote_dtypes_inexact(a, b)
    part = lax.real_dtype(typeof(a).dtype)
    rtol, atol = as_type(rtol, part), as_type(atol, part)
    both_nan = bitwise_and(isnan(a), isnan(b))
    finite = isfinite(b)
    distance = lax.abs(lax.sub(a, b))
    near = lax.le(distance, lax.add(atol, lax.mul(rtol, lax.abs(b))))
    same = lax.eq(a, b)
    out = bitwise_or(same, bitwise_and(finite, near))
    return bitwise_or(out, both_nan) if equal_nan else out


# ---- logic and bits ---------------------------------------------------------------------------------


def truth(x: Any) -> Any:
    """Returns whether each element is nonzero."""
    return x if typeof(x).dtype == np.bool_ else lax.ne(x, const_like(x, 0))


def _on_truth(op: Callable) -> Callable:
    return lambda *args: op(*map(truth, args))


logical_not = _unary("logical_not", _on_truth(lax.bitwise_not), promote_args)
logical_and = _binary("logical_and", _on_truth(lax.bitwise_and))
logical_or = _binary("logical_or", _on_truth(lax.bitwise_or))
logical_xor = _binary("logical_xor", _on_truth(lax.bitwise_xor))
invert = _unary("invert", lax.bitwise_not, promote_args)
bitwise_and = _binary("bitwise_and", lax.bitwise_and)
bitwise_or = _binary("bitwise_or", lax.bitwise_or)
bitwise_xor = _binary("bitwise_xor", lax.bitwise_xor)
left_shift = _binary("left_shift", lax.shift_left, promote_args_numeric)
right_shift = _binary(
    "right_shift",
    lambda x, y: (lax.shift_right_logical if is_unsigned(x) else lax.shift_right_arithmetic)(x, y),
    promote_args_numeric,
)


@promoting(promote_args_numeric)
def bitwise_count(x: ArrayLike, /) -> Array:
    """Counts the bits that are set in the absolute value of each integer.

    The result is of dtype uint8.

    Example:
      >>> jnp.bitwise_count(jnp.array([0, 7, -8]))
      Array([0, 3, 1], dtype=uint8)
    """
    return convert(lax.population_count(x if is_unsigned(x) else lax.abs(x)), np.dtype(np.uint8))


@promoting(arrays, inline=True)
def real(val: ArrayLike, /) -> Array:
    """Returns the real part of each element.

    Real arrays are returned as they are. The result is never a view.

    Example:
      >>> jnp.real(jnp.array([1 + 2j]))
      Array([1.], dtype=float32)
    """
    return lax.real(val) if is_complex(val) else moving.as_array_or_constant(val)


@promoting(arrays, inline=True)
def imag(val: ArrayLike, /) -> Array:
    """Returns the imaginary part of each element, which is 0 for real numbers.

    The result is never a view.

    Example:
      >>> jnp.imag(jnp.array([1 + 2j]))
      Array([2.], dtype=float32)
    """
    return lax.imag(val) if is_complex(val) else structural.full_like(val, 0)


@promoting(arrays, inline=True)
def conjugate(x: ArrayLike, /) -> Array:
    """Returns the complex conjugate of each element.

    Real arrays are returned as they are.

    Example:
      >>> jnp.conjugate(jnp.array([1 + 2j, 3 - 1j]))
      Array([1.-2.j, 3.+1.j], dtype=complex64)
    """
    return lax.conj(x) if is_complex(x) else moving.as_array_or_constant(x)


@jitted(static=("deg",))
def angle(z: ArrayLike, deg: bool = False) -> Array:
    """Returns the angle of each complex number, in radians or, with `deg`, in degrees.

    Negative real numbers have the angle pi. Integers and real scalars give the default floating dtype. `deg` is static.

    Example:
      >>> jnp.angle(jnp.array([1j, -1.0]), deg=True)
      Array([ 90., 180.], dtype=float32)
    """
    (z,) = arrays("angle", z)
    if is_complex(z):
        re, im = lax.real(z), lax.imag(z)
    else:
        re, im, aval = z, full_of(z), typeof(z)
        if not aval.ndim or not dtypes.is_inexact(aval.dtype):
            re, im = (as_type(part, dtypes.default_float_dtype()) for part in (re, im))
    radians = lax.atan2(im, re)
    return lax.mul(radians, const_like(radians, 180 / pi)) if deg else radians


@jitted()
def iscomplex(x: ArrayLike) -> Array:
    """Returns whether each element has an imaginary part that is not zero.

    It is false for real dtypes.

    Example:
      >>> jnp.iscomplex(jnp.array([1.0, 1j]))
      Array([False,  True], dtype=bool)
    """
    part = imag(x)
    return lax.ne(part, const_like(part, 0))


@jitted()
def isreal(x: ArrayLike) -> Array:
    """Returns whether each element has an imaginary part of zero.

    It is true for real dtypes.

    Example:
      >>> jnp.isreal(jnp.array([1.0, 1j]))
      Array([ True, False], dtype=bool)
    """
    part = imag(x)
    return lax.eq(part, const_like(part, 0))
