"""Rules of elementwise operations: from an equation with its operands to operations of Triton."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.base import dtypes
from minijax.kernels.text import Value
from minijax.kernels.triton.verbs import F32, I32, Number, bits, kind

# By primitive, the name in the device's library, and the operation for narrow floats. Without one these are computed in
# float32, since Triton makes no code of MLIR's other functions.
FUNCTIONS: dict[str, tuple[str, str | None]] = {
    **{name: (name, f"math.{name}") for name in ("ceil", "cos", "exp", "exp2", "floor", "log", "rsqrt", "sin", "sqrt")},
    **{
        name: (name, None)
        for name in (
            *("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "cosh", "erf", "erfc", "expm1"),
            *("lgamma", "log1p", "nextafter", "pow", "sinh", "tan", "tanh"),
        )
    },
    "abs": ("fabs", "math.absf"),
    "erf_inv": ("erfinv", None),
}
_OF_BITS = {  # functions of the bits of integers, by the platform
    ("population_count", False): ("__nv_popc", "__nv_popcll"),
    ("population_count", True): ("__ockl_popcount_u32", "__ockl_popcount_u64"),
    ("clz", False): ("__nv_clz", "__nv_clzll"),
    ("clz", True): ("__ockl_clz_u32", "__ockl_clz_u64"),
}


def symbol(is_rocm: bool, name: str, dtype: Any) -> str:
    """The function of the device's library for a float."""
    if is_rocm:
        return f"__ocml_{name}_f{bits(dtype)}"
    return f"__nv_{name}{'f' if bits(dtype) == 32 else ''}"


def function(k: Any, name: str, *xs: Value) -> Value:
    """A function of FUNCTIONS, of floats."""
    base, other = FUNCTIONS[name]
    if bits(xs[0].dtype) >= 32:
        return k.extern(symbol(k.is_rocm, base, xs[0].dtype), xs, xs[0].dtype)
    if name == "nextafter":
        raise NotImplementedError(f"unsupported types for nextafter: {tuple(x.dtype for x in xs)}")
    if other is None:
        return k.cast(function(k, name, *[k.cast(x, F32) for x in xs]), xs[0].dtype)
    return k.like(other, *xs)


def same_shape(k: Any, eqn: Any, xs: Sequence) -> list[Value]:
    """The operands in the shape of the result."""
    return [k.tile(x, eqn.outvars[0].aval.shape) for x in xs]


def _arith(name: str) -> Callable:
    def rule(k, eqn, *xs):
        x, y = same_shape(k, eqn, xs)
        if name == "div" and kind(x.dtype) == 0 and bits(x.dtype) < 32:
            return k.cast(k.arith(name, k.cast(x, F32), k.cast(y, F32)), x.dtype)
        return k.arith(name, x, y)

    return rule


def _compare(name: str) -> Callable:
    return lambda k, eqn, *xs: k.compare(name, *same_shape(k, eqn, xs))


def _plain(op: str) -> Callable:
    return lambda k, eqn, *xs: k.like(op, *same_shape(k, eqn, xs))


def _function(name: str) -> Callable:
    return lambda k, eqn, *xs: function(k, name, *same_shape(k, eqn, xs))


def _of_bits(name: str) -> Callable:
    def rule(k, eqn, *xs):
        (x,) = same_shape(k, eqn, xs)
        width, dtype = bits(x.dtype), x.dtype
        if width < 32:
            x = k.make("arith.extui", [x], x.shape, I32)
        narrow, wide = _OF_BITS[name, k.is_rocm]
        is_wide = width == 64
        # NVIDIA's function of 64 bits returns 32.
        count = k.extern(wide if is_wide else narrow, [x], I32 if is_wide and not k.is_rocm else x.dtype)
        if name == "clz" and width < 32:
            count = k.arith("sub", count, k.full_like(32 - width, count))
        return k.cast(count, dtype)

    return rule


def _abs(k, eqn, *xs):
    (x,) = same_shape(k, eqn, xs)
    if kind(x.dtype) == 0:
        return function(k, "abs", x)
    if k.is_rocm or bits(x.dtype) < 32:
        return k.like("math.absi", x)
    return k.extern("__nv_abs" if bits(x.dtype) == 32 else "__nv_llabs", [x], x.dtype)


def _pow(k, eqn, *xs):
    x, y = same_shape(k, eqn, xs)
    if kind(y.dtype) == 0:
        return function(k, "pow", x, y)
    wide = k.cast(x, F32) if bits(x.dtype) < 32 else x
    if bits(y.dtype) > 32 or y.dtype == np.uint32:
        return k.cast(function(k, "pow", wide, k.cast(y, wide.dtype)), x.dtype)
    name = symbol(True, "pown", wide.dtype) if k.is_rocm else symbol(False, "powi", wide.dtype)
    return k.cast(k.extern(name, [wide, k.cast(y, I32)], wide.dtype), x.dtype)


def _integer_pow(k, eqn, *xs):
    (x,), exponent = same_shape(k, eqn, xs), eqn.params["y"]
    n, result = abs(exponent), None
    while n > 0:
        if n % 2:
            result = x if result is None else k.arith("mul", result, x)
        n //= 2
        x = k.arith("mul", x, x) if n else x
    if result is None:
        return k.full_like(1, x)
    return reciprocal(k, result) if exponent < 0 else result


def reciprocal(k: Any, x: Value) -> Value:
    """1 / x."""
    wide = k.cast(x, F32) if bits(x.dtype) < 32 else x
    return k.cast(k.arith("div", k.full_like(1, wide), wide), x.dtype)


def _logistic(k, eqn, *xs):
    (x,) = same_shape(k, eqn, xs)
    e = function(k, "exp", k.neg(x))
    return reciprocal(k, k.arith("add", k.full_like(1, e), e))


def _square(k, eqn, *xs):
    (x,) = same_shape(k, eqn, xs)
    return k.arith("mul", x, x)


def _sign(k, eqn, *xs):
    (x,) = same_shape(k, eqn, xs)
    if kind(x.dtype) == 2:
        return k.cast(k.compare("ne", x, k.full_like(0, x)), x.dtype)
    above = k.cast(k.compare("gt", x, k.full_like(0, x)), x.dtype)
    sign = k.arith("sub", above, k.cast(k.compare("lt", x, k.full_like(0, x)), x.dtype))
    if kind(x.dtype):
        return sign
    is_nan = k.compare("ne", x, x)
    nan = k.cast(k.constant(np.nan, dtypes.scalar_dtype(float)), x.dtype)
    return k.select(is_nan, k.splat(nan, x.shape), sign)


def _is_finite(k, eqn, *xs):
    (x,) = same_shape(k, eqn, xs)
    no_nan = k.invert(k.compare("ne", x, x))
    magnitude = function(k, "abs", x)
    return k.like("arith.andi", no_nan, k.invert(k.compare("eq", magnitude, k.full_like(np.inf, x))))


def _select_n(k, eqn, which, *cases):
    shape = eqn.outvars[0].aval.shape
    which = k.tile(which, shape)
    if which.dtype != np.bool_:
        cases = [k.tile(x, shape) for x in cases]
        result = cases[-1]
        for i in reversed(range(len(cases) - 1)):
            result = k.select(k.compare("eq", which, k.full_like(i, which)), cases[i], result)
        return result
    no, *yes = [k.tile(x, shape) for x in cases]
    return k.select(which, yes[0], no) if yes else no


def _clamp(k, eqn, low, x, high):
    shape = eqn.outvars[0].aval.shape
    x = k.arith("max", k.tile(low, shape), k.tile(x, shape))
    return k.arith("min", x, k.tile(high, shape))


def _convert(k, eqn, x):
    return k.cast(k.tile(x), eqn.params["new_dtype"])


def _bitcast(k, eqn, x):
    x, dtype = k.tile(x), np.dtype(eqn.params["new_dtype"])
    if bits(x.dtype) != bits(dtype):
        raise NotImplementedError(f"bitcast_convert_type of {x.dtype} to {dtype}, of another width, in a Triton kernel")
    return k.bitcast(x, dtype)


def _round(k, eqn, *xs):
    (x,), mode = same_shape(k, eqn, xs), int(eqn.params["rounding_method"])
    wide = k.cast(x, F32) if bits(x.dtype) < 32 else x
    name = ("round", "rint")[mode]  # away from zero, or to the even one
    return k.cast(k.extern(symbol(k.is_rocm, name, wide.dtype), [wide], wide.dtype), x.dtype)


def identity(k: Any, eqn: Any, *xs: Value | Number) -> Any:
    """The operands as they are."""
    return list(xs)


RULES: dict[str, Callable] = {
    **{name: _function(name) for name in FUNCTIONS},
    **{name: _arith(name) for name in ("add", "sub", "mul", "div", "rem", "max", "min")},
    **{name: _compare(name) for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    **{name: _of_bits(name) for name in ("population_count", "clz")},
    "add_any": _arith("add"),
    "abs": _abs,
    "and": _plain("arith.andi"),
    "or": _plain("arith.ori"),
    "xor": _plain("arith.xori"),
    "shift_left": _plain("arith.shli"),
    "shift_right_arithmetic": _plain("arith.shrsi"),
    "shift_right_logical": _plain("arith.shrui"),
    "neg": lambda k, eqn, *xs: k.neg(*same_shape(k, eqn, xs)),
    "not": lambda k, eqn, *xs: k.invert(*same_shape(k, eqn, xs)),
    "pow": _pow,
    "integer_pow": _integer_pow,
    "square": _square,
    "logistic": _logistic,
    "reciprocal": lambda k, eqn, x: reciprocal(k, k.tile(x)),
    "sign": _sign,
    "is_finite": _is_finite,
    "select_n": _select_n,
    "clamp": _clamp,
    "round": _round,
    "convert_element_type": _convert,
    "bitcast_convert_type": _bitcast,
    "reshard": identity,
    "stop_gradient": identity,
    "optimization_barrier": identity,
}
