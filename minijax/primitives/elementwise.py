"""Elementwise arithmetic, comparison and selection. Ops defined by name and derivative alone take one line."""

from __future__ import annotations

import enum
import operator
from math import log as math_log, pi, sqrt as math_sqrt
from typing import Any

import numpy as np

from minijax.base import dtypes
from minijax.base.dtypes import DTypeLike
from minijax.ir.primitive import FirstOrder, Folding, fold_as, is_undefined_primal
from minijax.ir.result_types import state_of_factors, state_of_terms
from minijax.ir.types import ShapedArray, Zero, typeof
from minijax.partition.explicit import common_sharding, merged_entries
from minijax.primitives import moving
from minijax.primitives.convert import convert_element_type, strong
from minijax.primitives.families import (
    ANY,
    BOOL,
    COMPLEX,
    FLOAT,
    INEXACT,
    INT,
    INT_BOOL,
    NUMBER,
    REAL,
    ZERO,
    AccuracyMode,
    Accurate,
    Bilinear,
    Elementwise,
    Kinds,
    LinearElementwise,
    OnUnreduced,
    Tolerance,
    accurate,
    binary,
    check_kinds,
    check_same_dtypes,
    const_like,
    emit_broadcast,
    full_of,
    one_like,
    unary,
    zero_like,
)
from minijax.primitives.zeros import add_tangents, zeros_like_aval
from minijax.run.arrays.array import Array, ArrayLike

SIGNED = Kinds((np.floating, np.complexfloating, np.signedinteger))


def real_dtype(dtype: Any) -> np.dtype:
    """The dtype of a complex dtype's real and imaginary parts; a real dtype is returned unchanged."""
    return np.finfo(dtype).dtype if dtypes.is_complex(dtype) else dtype


def _equals(x: Any, value: Any, like: Any) -> Any:
    """A boolean array: where `x` equals the scalar `value`, taken in the type of `like`."""
    return eq(x, const_like(like, value))


# ---- arithmetic -------------------------------------------------------------------------------------


class Sub(LinearElementwise):
    """x - y."""

    def __init__(self):
        super().__init__("sub", "subtract", NUMBER, lambda ct, x, y: ct, lambda ct, x, y: neg(ct))

    def alone(self, i, tangent, primals):
        return neg(tangent) if i else tangent


class Mul(Bilinear):
    """x * y; operands are converted to `out_dtype` first if it is given."""

    implied = {"out_dtype": None}

    def __init__(self):
        jvps = lambda t, ans, x, y, **out: mul(t, y, **out), lambda t, ans, x, y, **out: mul(x, t, **out)
        transposes = (
            lambda ct, x, y, **out: mul(ct, y, out_dtype=x.aval.dtype if out else None),
            lambda ct, x, y, **out: mul(x, ct, out_dtype=y.aval.dtype if out else None),
        )
        super().__init__("mul", "multiply", NUMBER, jvps, transposes)

    def result_dtype(self, x, y, *, out_dtype=None):
        if out_dtype is None:
            return super().result_dtype(x, y)
        check_kinds(self.name, self.accepts, x, y)
        return dtypes.canonicalize_dtype(out_dtype)

    reduction_state = state_of_factors

    def lower(self, e, ins, outs, x, y, *, out_dtype=None):
        (out,) = outs
        operands = self.broadcast(e, ins, out, (x, y))
        if out_dtype is not None:
            avals = [ShapedArray(out.shape, a.dtype) for a in ins]
            operands = [self._cast(e, x, a, out) for x, a in zip(operands, avals, strict=True)]
        return [e.binary(self.hlo, *operands, out)]

    @staticmethod
    def _cast(e, x, aval, out):
        # XLA aborts the process if a complex number is converted to a real one.
        if dtypes.is_complex(aval.dtype) and not dtypes.is_complex(out.dtype):
            real = ShapedArray(aval.shape, np.finfo(aval.dtype).dtype)
            x, aval = e.map_to("real", x, aval, real), real
        return x if aval.dtype == out.dtype else e.convert(x, aval, out)


class Abs(Elementwise):
    """The absolute value; for a complex number, its modulus, which is real."""

    def result_dtype(self, x):
        check_kinds(self.name, self.accepts, x)
        if dtypes.itemsize_bits(x.dtype) < 8 and dtypes.issubdtype(x.dtype, np.integer):
            raise TypeError(f"{self.name} does not accept dtype {x.dtype.name}: it is too narrow.")
        return real_dtype(x.dtype)


def _abs_jvp(t, ans, x):
    if not dtypes.is_complex(typeof(x).dtype):
        return select_n(ge(x, zero_like(x)), neg(t), t)
    conjugated = conj(x)
    return real(mul(t, div(conjugated, _ones_where_zero(convert_element_type(ans, typeof(x).dtype)))))


def _ones_where_zero(x: Any) -> Any:
    return select_n(_equals(x, 0, x), x, full_of(x, 1))


class Sign(Elementwise):
    """-1, 0 or 1; for a complex number, x / |x|, or 0."""

    def lower(self, e, ins, outs, x):
        if not dtypes.issubdtype(outs[0].dtype, np.unsignedinteger):
            return super().lower(e, ins, outs, x)
        zero = e.full(0, outs[0])
        flag = ShapedArray(outs[0].shape, np.bool_)
        is_zero = e.compare("EQ", x, zero, outs[0])
        return [e.select(is_zero, e.full(0, outs[0]), e.full(1, outs[0]), flag, outs[0])]


class Square(Elementwise):
    """x * x."""

    def lower(self, e, ins, outs, x):
        if dtypes.is_inexact(outs[0].dtype):
            return super().lower(e, ins, outs, x)
        return [e.binary("multiply", x, x, outs[0])]


class Exp2(Accurate):
    """2 to the power x."""

    def lower(self, e, ins, outs, x, *, accuracy=None):
        scaled = e.binary("multiply", e.full(math_log(2), outs[0]), x, outs[0])
        return super().lower(e, ins, outs, scaled, accuracy=accuracy)


class Logistic(Accurate):
    """1 / (1 + exp(-x)); `accuracy` only selects the formula of the derivative."""

    def lower(self, e, ins, outs, x, *, accuracy=None):
        (out,) = outs
        decay = e.unary("exponential", e.unary("negate", x, out), out)
        return [e.binary("divide", e.full(1, out), e.binary("add", e.full(1, out), decay, out), out)]


class Wave(Accurate):
    """The sine or the cosine; a complex one is computed from its parts, and is exact on the imaginary axis."""

    def lower(self, e, ins, outs, x, *, accuracy=None):
        if not COMPLEX.accepts(outs[0].dtype):
            return super().lower(e, ins, outs, x, accuracy=accuracy)
        (out,) = outs
        part, flag = ShapedArray(out.shape, real_dtype(out.dtype)), ShapedArray(out.shape, np.bool_)
        re, im = (e.map_to(name, x, out, part) for name in ("real", "imag"))
        on_axis = e.compare("EQ", re, e.full(0, part), part)
        sine, cosine = e.unary("sine", re, part), e.unary("cosine", re, part)
        up = e.unary("exponential_minus_one", im, part)
        down = e.unary("exponential_minus_one", e.unary("negate", im, part), part)
        sinh = e.binary("divide", e.binary("subtract", up, down, part), e.full(2, part), part)
        both = e.binary("add", e.binary("add", up, down, part), e.full(2, part), part)
        cosh = e.binary("divide", both, e.full(2, part), part)
        if self.hlo == "sine":
            parts = e.binary("multiply", sine, cosh, part), e.binary("multiply", cosine, sinh, part)
            exact = e.full(0, part), parts[1]
        else:
            parts = (
                e.binary("multiply", cosine, cosh, part),
                e.binary("multiply", e.unary("negate", sine, part), sinh, part),
            )
            exact = parts[0], e.full(0, part)
        exact, general = (e.binary("complex", *p, out) for p in (exact, parts))
        return [e.select(on_axis, exact, general, flag, out)]


class IntegerPow(Elementwise):
    """x to a constant integer power `y`, by repeated squaring."""

    reduction_state = None

    def has_own_constants(self, params):
        return params["y"] < 0

    def result_dtype(self, x, *, y):
        if y < 0 and INT.accepts(x.dtype):
            raise TypeError(f"Integers cannot be raised to negative powers, got integer_pow({x.str_short()}, {y})")
        return super().result_dtype(x)

    def lower(self, e, ins, outs, x, *, y):
        (out,) = outs
        if y == 0:
            return [e.full(1, out)]
        if y == 3:
            return [e.binary("multiply", e.binary("multiply", x, x, out), x, out)]
        magnitude = self._power(e, x, -y if y < 0 else y, out)
        return [e.binary("divide", e.full(1, out), magnitude, out) if y < 0 else magnitude]

    def _power(self, e, x, y, out):
        result = None
        while y:
            if y & 1:
                result = x if result is None else e.binary("multiply", result, x, out)
            y >>= 1
            if y:
                x = e.binary("multiply", x, x, out)
        return result


def _integer_pow_jvp(t, ans, x, *, y):
    if y == 0:
        return zeros_like_aval(typeof(t))
    if y == 1:
        return t
    return mul(t, mul(const_like(x, y), x if y == 2 else integer_pow(x, y - 1)))


class Pow(Elementwise):
    """x to the power y, which may be an integer."""

    def result_dtype(self, x, y):
        check_kinds(self.name, INEXACT, x)
        if not INT.accepts(y.dtype):
            check_same_dtypes(self.name, x, y)
        return x.dtype

    def lower(self, e, ins, outs, x, y):
        power = ins[1]
        if power.dtype != outs[0].dtype:
            wide = ShapedArray(power.shape, outs[0].dtype)
            y, power = e.convert(y, power, wide), wide
        return super().lower(e, [ins[0], power], outs, x, y)


def _pow_jvp_base(t, ans, x, y):
    x = strong(x)
    if not INT.accepts(typeof(y).dtype):
        one = moving.filled(typeof(y := strong(y)).shape, const_like(y, 1), sharding=typeof(y).own_sharding)
        return mul(t, mul(y, pow(x, sub(y, one))))
    shape, sharding, y = typeof(ans).shape, typeof(ans).own_sharding, convert_element_type(y, typeof(x).dtype)
    x, y = moving.broadcast_squeezed(x, shape, sharding), moving.broadcast_squeezed(y, shape, sharding)
    full = lambda number: moving.filled(shape, const_like(x, number), sharding=sharding)  # noqa: E731
    at_zero, zeros, safe = _equals(y, 0, y), full(0), select_n(_equals(y, 0, y), y, full(1))
    return mul(t, select_n(at_zero, mul(safe, pow(x, sub(y, full(1)))), zeros))


def _pow_jvp_power(t, ans, x, y):
    return strong(mul(t, mul(log(_ones_where_zero(x)), ans)))


class Extremum(Elementwise):
    """The larger or smaller operand; complex numbers compare by their real parts, then their imaginary parts."""

    def __init__(self, name: str, hlo: str, direction: str):
        super().__init__(name, hlo, ANY, self._share(0), self._share(1))
        self.direction = direction

    @staticmethod
    def _share(i):
        def rule(t, ans, *operands):
            return mul(t, div(_where_equal(operands[i], ans, 1, 0), _where_equal(operands[1 - i], ans, 2, 1)))

        return rule

    def lower(self, e, ins, outs, x, y):
        if not COMPLEX.accepts(outs[0].dtype):
            return super().lower(e, ins, outs, x, y)
        (out,) = outs
        x, y = self.broadcast(e, ins, out, (x, y))
        part, flag = ShapedArray(out.shape, real_dtype(out.dtype)), ShapedArray(out.shape, np.bool_)
        re = [e.map_to("real", v, out, part) for v in (x, y)]
        same, ahead = e.compare("EQ", *re, part), e.compare(self.direction, *re, part)
        im = [e.map_to("imag", v, out, part) for v in (x, y)]
        which = e.select(same, e.compare(self.direction, *im, part), ahead, flag, flag)
        return [e.select(which, x, y, flag, out)]


def _where_equal(x: Any, ans: Any, yes: Any, no: Any) -> Any:
    here, ones = eq(x, ans), full_of(ans, yes)
    return select_n(here, full_of(ans, no), ones)


class Round(Elementwise):
    """Rounds to an integer, halves away from zero or to even."""

    def lower(self, e, ins, outs, x, *, rounding_method):
        name = "round_nearest_even" if int(rounding_method) == 1 else "round_nearest_afz"
        return [e.unary(name, x, outs[0])]


class ReducePrecision(OnUnreduced):
    """Rounds to a float with fewer bits, in the same dtype."""

    def result_dtype(self, x, *, exponent_bits, mantissa_bits):
        return super().result_dtype(x)

    def lower(self, e, ins, outs, x, *, exponent_bits, mantissa_bits):
        return [e.reduce_precision(x, outs[0], exponent_bits, mantissa_bits)]


sub_p, mul_p = Sub(), Mul()
add_p = OnUnreduced("add", "add", NUMBER, lambda ct, x, y: ct, lambda ct, x, y: ct)
neg_p = LinearElementwise("neg", "negate", NUMBER, lambda ct, x: neg(ct))
div_p = Bilinear(
    "div",
    "divide",
    NUMBER,
    (lambda t, ans, x, y: div(t, y), lambda t, ans, x, y: mul(mul(neg(t), x), integer_pow(y, -2))),
    (lambda ct, x, y: div(ct, y), None),
)
rem_p = Elementwise(
    "rem",
    "remainder",
    REAL,
    lambda t, ans, x, y: t,
    lambda t, ans, x, y: mul(neg(t), mul(sign(div(x, y)), floor(abs(div(x, y))))),
)
abs_p = Abs("abs", "abs", SIGNED, _abs_jvp)
sign_p = Sign("sign", "sign", NUMBER, ZERO)
square_p = Square("square", "chlo.square", NUMBER, lambda t, ans, x: mul(t, mul(const_like(x, 2), x)))
integer_pow_p = IntegerPow("integer_pow", "", NUMBER, _integer_pow_jvp)
pow_p = Pow("pow", "power", INEXACT, _pow_jvp_base, _pow_jvp_power)
max_p, min_p = Extremum("max", "maximum", "GT"), Extremum("min", "minimum", "LT")
floor_p = Elementwise("floor", "floor", FLOAT, ZERO)
ceil_p = Elementwise("ceil", "ceil", FLOAT, ZERO)
round_p = Round("round", "", FLOAT, ZERO)
nextafter_p = Elementwise("nextafter", "chlo.next_after", FLOAT, None, None)
reduce_precision_p = ReducePrecision("reduce_precision", "", FLOAT, lambda ct, x, **bits: reduce_precision(ct, **bits))

# ---- functions --------------------------------------------------------------------------------------

HIGHEST = AccuracyMode.HIGHEST


def _expm1_jvp(t, ans, x, accuracy):
    return mul(t, exp(x, accuracy=accuracy) if accuracy is HIGHEST else add(ans, one_like(x)))


def _logistic_jvp(t, ans, x, accuracy):
    return mul(t, mul(ans, logistic(neg(x)) if accuracy is HIGHEST else sub(one_like(x), ans)))


def _tanh_jvp(t, ans, x, accuracy):
    if accuracy is not HIGHEST:
        return mul(add(t, mul(t, ans)), sub(one_like(x), ans))
    sides = (logistic(mul(const_like(x, k), x), accuracy=accuracy) for k in (2, -2))
    return mul(t, mul(const_like(x, 4), mul(*sides)))


exp_p = Accurate("exp", "exponential", INEXACT, lambda t, ans, x, _: mul(t, ans))
exp2_p = Exp2("exp2", "exponential", INEXACT, lambda t, ans, x, _: mul(log(const_like(x, 2)), mul(t, ans)))
expm1_p = Accurate("expm1", "exponential_minus_one", INEXACT, _expm1_jvp)
log_p = Accurate("log", "log", INEXACT, lambda t, ans, x, _: div(t, x))
log1p_p = Accurate("log1p", "log_plus_one", INEXACT, lambda t, ans, x, _: div(t, add(x, one_like(x))))
sqrt_p = Accurate("sqrt", "sqrt", INEXACT, lambda t, ans, x, _: mul(t, div(const_like(x, 0.5), ans)))
rsqrt_p = Accurate("rsqrt", "rsqrt", INEXACT, lambda t, ans, x, _: mul(t, mul(const_like(x, -0.5), div(ans, x))))
cbrt_p = Accurate("cbrt", "cbrt", FLOAT, lambda t, ans, x, _: mul(t, mul(const_like(x, 1 / 3), integer_pow(ans, -2))))
logistic_p = Logistic("logistic", "", INEXACT, _logistic_jvp)
sin_p = Wave("sin", "sine", INEXACT, lambda t, ans, x, accuracy: mul(t, cos(x, accuracy=accuracy)))
cos_p = Wave("cos", "cosine", INEXACT, lambda t, ans, x, accuracy: neg(mul(t, sin(x, accuracy=accuracy))))
tan_p = Accurate("tan", "tan", INEXACT, lambda t, ans, x, _: mul(t, add(const_like(x, 1), square(ans))))
tanh_p = Accurate("tanh", "tanh", INEXACT, _tanh_jvp)
sinh_p = Elementwise("sinh", "chlo.sinh", INEXACT, lambda t, ans, x: mul(t, cosh(x)))
cosh_p = Elementwise("cosh", "chlo.cosh", INEXACT, lambda t, ans, x: mul(t, sinh(x)))
asin_p = Elementwise("asin", "chlo.asin", INEXACT, lambda t, ans, x: mul(t, rsqrt(sub(const_like(x, 1), square(x)))))
acos_p = Elementwise(
    "acos", "chlo.acos", INEXACT, lambda t, ans, x: mul(t, neg(rsqrt(sub(const_like(x, 1), square(x)))))
)
atan_p = Elementwise("atan", "chlo.atan", INEXACT, lambda t, ans, x: div(t, add(const_like(x, 1), square(x))))
asinh_p = Elementwise("asinh", "chlo.asinh", INEXACT, lambda t, ans, x: mul(t, rsqrt(add(square(x), one_like(x)))))
acosh_p = Elementwise("acosh", "chlo.acosh", INEXACT, lambda t, ans, x: mul(t, rsqrt(sub(square(x), one_like(x)))))
atanh_p = Elementwise(
    "atanh",
    "chlo.atanh",
    INEXACT,
    lambda t, ans, x: mul(integer_pow(add(one_like(x), x), -1), div(t, sub(one_like(x), x))),
)
atan2_p = Elementwise(
    "atan2",
    "atan2",
    INEXACT,
    lambda t, ans, x, y: mul(t, div(y, add(square(x), square(y)))),
    lambda t, ans, x, y: mul(t, div(neg(x), add(square(x), square(y)))),
)
_STEEP = 2 / math_sqrt(pi)  # the derivative of erf at zero
erf_p = Elementwise("erf", "chlo.erf", FLOAT, lambda t, ans, x: mul(const_like(x, _STEEP), _bell(t, x)))
erfc_p = Elementwise("erfc", "chlo.erfc", FLOAT, lambda t, ans, x: mul(const_like(x, -_STEEP), _bell(t, x)))
erf_inv_p = Elementwise(
    "erf_inv", "chlo.erf_inv", FLOAT, lambda t, ans, x: mul(const_like(x, math_sqrt(pi) / 2), mul(t, exp(square(ans))))
)
lgamma_p = Elementwise("lgamma", "chlo.lgamma", FLOAT, lambda t, ans, x: mul(t, digamma(x)))
digamma_p = Elementwise("digamma", "chlo.digamma", FLOAT, lambda t, ans, x: mul(t, polygamma(const_like(x, 1), x)))
polygamma_p = Elementwise(
    "polygamma",
    "chlo.polygamma",
    FLOAT,
    lambda *_: _no_order_derivative(),
    lambda t, ans, m, x: t * polygamma(add(m, const_like(m, 1)), x),
)


def _bell(t, x):
    return mul(t, exp(neg(square(x))))


def _no_order_derivative():
    raise ValueError("polygamma gradient with respect to m is not supported")


# ---- complex numbers --------------------------------------------------------------------------------


class Part(LinearElementwise):
    """The real or the imaginary part."""

    result_dtype: Any = Abs.result_dtype


_PART = Kinds((np.float32, np.float64))


class Conj(LinearElementwise):
    """The complex conjugate; a real number becomes complex."""

    def result_dtype(self, x, *, input_dtype=None):
        check_kinds(self.name, _PART | COMPLEX, x)
        return np.result_type(x.dtype, np.complex64)

    def lower(self, e, ins, outs, x, *, input_dtype=None):
        part = ShapedArray(ins[0].shape, real_dtype(ins[0].dtype))
        if ins[0].dtype == part.dtype:
            return [e.binary("complex", x, e.full(0, part), outs[0])]
        re, im = (e.map_to(n, x, ins[0], part) for n in ("real", "imag"))
        return [e.binary("complex", re, e.unary("negate", im, part), outs[0])]


def _conj_transpose(ct, x, *, input_dtype):
    return real(ct) if np.issubdtype(input_dtype, np.floating) else conj(ct)


class MakeComplex(LinearElementwise):
    """The complex number with given parts."""

    def result_dtype(self, x, y):
        check_kinds(self.name, _PART, x, y)
        check_same_dtypes(self.name, x, y)
        return np.result_type(x.dtype, np.complex64)

    def alone(self, i, tangent, primals):
        zero = zeros_like_aval(typeof(primals[1 - i]).to_tangent_aval())
        return complex(zero, tangent) if i else complex(tangent, zero)


real_p = Part("real", "real", COMPLEX, lambda ct, x: complex(ct, moving.filled((), const_like(ct, 0))))
imag_p = Part("imag", "imag", COMPLEX, lambda ct, x: complex(moving.filled((), const_like(ct, 0)), neg(ct)))
conj_p = Conj("conj", "", _PART | COMPLEX, _conj_transpose)
complex_p = MakeComplex("complex", "complex", _PART, lambda ct, x, y: real(ct), lambda ct, x, y: imag(neg(ct)))

# ---- bits and logic ---------------------------------------------------------------------------------

not_p = Elementwise("not", "not", INT_BOOL, ZERO)
and_p = Elementwise("and", "and", INT_BOOL, ZERO, ZERO)
or_p = Elementwise("or", "or", INT_BOOL, ZERO, ZERO)
xor_p = Elementwise("xor", "xor", INT_BOOL, ZERO, ZERO)
population_count_p = Elementwise("population_count", "popcnt", INT, None)
clz_p = Elementwise("clz", "count_leading_zeros", INT, None)
shift_left_p = Elementwise("shift_left", "shift_left", INT, ZERO, ZERO)
shift_right_arithmetic_p = Elementwise("shift_right_arithmetic", "shift_right_arithmetic", INT, ZERO, ZERO)
shift_right_logical_p = Elementwise("shift_right_logical", "shift_right_logical", INT, ZERO, ZERO)
mulhi_p = Elementwise("mulhi", "chlo.mulhi", INT, None, None)

# ---- comparison and selection -----------------------------------------------------------------------


class Predicate(Elementwise):
    """An elementwise test with boolean results, weakly typed if all operands are."""

    def infer(self, *avals, **params):
        (out,) = super().infer(*avals, **params)
        return [ShapedArray(out.shape, np.bool_, out.weak_type)]


class Compare(Predicate):
    """A comparison; `direction` is its StableHLO name."""

    constrain_results = False
    moves_data = True

    def __init__(self, name: str, direction: str, accepts: Kinds):
        super().__init__(name, "", accepts, ZERO, ZERO)
        self.direction = direction

    def lower(self, e, ins, outs, x, y):
        x, y = self.broadcast(e, ins, outs[0], (x, y))
        return [e.compare(self.direction, x, y, ShapedArray(outs[0].shape, ins[0].dtype))]


is_finite_p = Predicate("is_finite", "is_finite", FLOAT, ZERO)
ORDERED = REAL | BOOL
EQUATABLE = ANY | Kinds((dtypes.extended,))
eq_p, ne_p = Compare("eq", "EQ", EQUATABLE), Compare("ne", "NE", EQUATABLE)
ge_p, gt_p = Compare("ge", "GE", ORDERED), Compare("gt", "GT", ORDERED)
le_p, lt_p = Compare("le", "LE", ORDERED), Compare("lt", "LT", ORDERED)


class SelectN(FirstOrder):
    """Picks, element by element, the case whose number is in `which` (booleans or integers)."""

    moves_data = True
    defaults_to_context_mesh = True
    name = "select_n"

    def infer(self, which: ShapedArray, *cases: ShapedArray):
        if len(cases) < 1:
            raise ValueError("select_n must have at least one case")
        if any(c.shape != cases[0].shape for c in cases):
            raise TypeError(f"select cases must have the same shapes, got [{', '.join(str(c.shape) for c in cases)}].")
        if any(c.dtype != cases[0].dtype for c in cases):
            names = ", ".join(c.dtype.name for c in cases)
            raise TypeError(f"lax.select_n requires arguments to have the same dtypes, got {names}.")
        if which.dtype != np.bool_ and not dtypes.issubdtype(which.dtype, np.integer):
            raise TypeError(f"select `which` must be boolean or integer type, got {which.dtype}.")
        if which.dtype == np.bool_ and len(cases) > 2:
            raise TypeError(f"select with boolean `which` must have at most two cases, got {len(cases)}.")
        if which.shape and which.shape != cases[0].shape:
            raise TypeError(
                "select `which` must be scalar or have the same shape as cases, got `which` shape "
                f"{which.shape} but case shape {cases[0].shape}."
            )
        return [ShapedArray(cases[0].shape, cases[0].dtype, all(c.weak_type for c in cases))]

    def sharding_rule(self, mesh, avals, outs, **params):
        cases = [a for a in avals[1:] if a.is_sharded] or avals[1:]
        return [common_sharding(cases, "select cases must have the same shardings").entries]

    def reduction_state(self, avals, params):
        return state_of_terms(self, avals[1:], params)

    def lower(self, e, ins, outs, which, *cases):
        if len(cases) == 1:
            return list(cases)
        return [self._pick(e, which, ins[0], list(cases), outs[0], 0)]

    def _pick(self, e, which, aval, cases, out, offset):
        if len(cases) == 1:
            return cases[0]
        if aval.dtype == np.bool_:
            return e.select(which, cases[1], cases[0], aval, out)
        mid = len(cases) // 2
        flag = ShapedArray(aval.shape, np.bool_)
        before = e.compare("LT", which, e.full(offset + mid, aval), aval)
        low = self._pick(e, which, aval, cases[:mid], out, offset)
        high = self._pick(e, which, aval, cases[mid:], out, offset + mid)
        return e.select(before, low, high, flag, out)

    def jvp(self, primals, tangents):
        which, *cases = primals
        (out,) = self.bind_all(primals, {})
        moving_cases = tangents[1:]
        if all(type(t) is Zero for t in moving_cases):
            return [out], [Zero.from_primal_value(out)]
        zeros = full_of(out)
        return [out], self.bind_all([which, *(zeros if type(t) is Zero else t for t in moving_cases)], {})

    def transpose(self, cts, which, *cases):
        (ct,) = cts
        if type(ct) is Zero:
            return [None, *(Zero(c.aval) if is_undefined_primal(c) else None for c in cases)]
        zeros = full_of(ct)
        flags = typeof(which).dtype == np.bool_

        def part(i):
            if flags:
                return select_n(which, *(ct if i == j else zeros for j in range(len(cases))))
            return select_n(eq(which, const_like(which, i)), zeros, ct)

        return [None, *(part(i) if is_undefined_primal(c) else None for i, c in enumerate(cases))]

    def batch(self, axis, operands, dims):
        (which, *cases), (d, *case_dims) = operands, dims
        if d is None and typeof(which).ndim == 0:
            has_one_shape = None not in case_dims and len({typeof(c).shape for c in cases}) == 1
            at = case_dims[0] if has_one_shape else 0
            pairs = zip(cases, case_dims, strict=True)
            cases = [moving.broadcast_axis(c, axis, at) if n is None else moving.move_axis(c, n, at) for c, n in pairs]
            return self.bind_all([which, *cases], {}), [at]
        if d is not None and all(c == d for c in case_dims) and typeof(which).ndim > 1:
            return self.bind_all(operands, {}), [d]
        which = moving.axis_to_front(which, d, axis)
        cases = [moving.axis_to_front(c, dim, axis) for c, dim in zip(cases, case_dims, strict=True)]
        shape = typeof(cases[0]).shape
        if typeof(which).shape != shape:
            which = moving.broadcast_in_dim(which, shape, (0,))
        return self.bind_all([which, *cases], {}), [0]


def _stays_scalar(high: Any, x: Any, dim: int | None) -> bool:
    """Whether an upper bound is not broadcast: as in jax, if it is a scalar beside an operand that is one."""
    return not typeof(high).ndim and not typeof(x).ndim and dim is None


def _spread(bound: Any, shape: tuple) -> Any:
    have = typeof(bound).shape
    return bound if have == shape else moving.broadcast_in_dim(bound, shape, tuple(range(len(have))))


class Clamp(FirstOrder):
    """Clamps `x` between `low` and `high`; each bound has the shape of `x` or rank 0."""

    name = "clamp"

    def infer(self, low, x, high):
        check_same_dtypes_of_clamp(low, x, high)
        check_kinds("clamp", ANY, low, x, high)
        for end, text in ((low, "min"), (high, "max")):
            if end.shape not in ((), x.shape):
                raise TypeError(
                    f"clamp requires {text}.shape == operand.shape or {text}.shape == (), got {text}.shape="
                    f"{end.shape}, operand.shape={x.shape}."
                )
        return [x.update_weak_type(low.weak_type and x.weak_type and high.weak_type)]

    def sharding_rule(self, mesh, avals, outs, **params):
        merged_entries(self.name, [a.entries for a in avals if a.shape and a.has_mesh] or [()])
        return [avals[1].entries]

    def lower(self, e, ins, outs, low, x, high):
        low, high = (
            n if a.shape == outs[0].shape else emit_broadcast(e, n, a, outs[0].shape)
            for n, a in ((low, ins[0]), (high, ins[2]))
        )
        return [e.clamp(low, x, high, outs[0])]

    def jvp(self, primals, tangents):
        low, x, high = primals
        (out,) = self.bind_all(primals, {})
        shape = typeof(x).shape
        broadcast = lambda t: moving.broadcast_to_shape(t, shape)  # noqa: E731
        tests = (
            lambda: bitwise_and(gt(low, x), lt(low, high)),
            lambda: bitwise_and(gt(x, low), lt(x, high)),
            lambda: lt(high, x),
        )
        terms = [
            select_n(broadcast(test()), full_of(x), broadcast(t))
            for test, t in zip(tests, tangents, strict=True)
            if type(t) is not Zero
        ]
        return [out], [add_tangents(terms, out)]

    def batch(self, axis, operands, dims):
        low, x, high = operands
        if dims[0] is None and dims[2] is None and typeof(low).ndim == 0 and typeof(high).ndim == 0:
            return self.bind_all(operands, {}), [dims[1]]
        if dims[0] == dims[1] == dims[2] and typeof(low).shape == typeof(x).shape == typeof(high).shape:
            return self.bind_all(operands, {}), [dims[1]]
        fronted = list(operands)
        for i in (0, 2, 1):
            if i == 1 or dims[i] is not None or typeof(operands[i]).ndim:
                fronted[i] = moving.axis_to_front(operands[i], dims[i], axis)
        shape = typeof(fronted[1]).shape
        bounds = (0,) if _stays_scalar(fronted[2], x, dims[1]) else (0, 2)
        for i in sorted(bounds, key=lambda i: dims[i] is not None):
            fronted[i] = _spread(fronted[i], shape)
        return self.bind_all(fronted, {}), [0]


def check_same_dtypes_of_clamp(*avals: ShapedArray) -> None:
    if len({a.dtype for a in avals}) > 1:
        names = ", ".join(a.dtype.name for a in avals)
        raise TypeError(f"lax.clamp requires arguments to have the same dtypes, got {names}.")


select_n_p, clamp_p = SelectN(), Clamp()
fold_as(Folding.SUM, add_p, sub_p)
fold_as(Folding.PRODUCT, mul_p)
fold_as(Folding.QUOTIENT, div_p)
fold_as(Folding.CHOICE, max_p, min_p, lt_p, le_p, gt_p, ge_p, eq_p, ne_p, clamp_p, and_p, or_p, xor_p)
fold_as(Folding.SELECTION, select_n_p)
fold_as(Folding.MOVE, neg_p, reduce_precision_p)
fold_as(Folding.EXACT, abs_p, sign_p, floor_p, ceil_p, square_p)
fold_as(Folding.PLAIN, exp_p, log_p, sin_p, cos_p, tanh_p, sqrt_p, rsqrt_p, not_p)


# ---- the functions of jax.lax -----------------------------------------------------------------------

add, sub, div, rem, pow, max, min = map(binary, (add_p, sub_p, div_p, rem_p, pow_p, max_p, min_p))
neg, abs, sign, square, floor, ceil = map(unary, (neg_p, abs_p, sign_p, square_p, floor_p, ceil_p))
exp, exp2, expm1, log, log1p = map(accurate, (exp_p, exp2_p, expm1_p, log_p, log1p_p))
sqrt, cbrt, logistic = map(accurate, (sqrt_p, cbrt_p, logistic_p))
sin, cos, tan, tanh = map(accurate, (sin_p, cos_p, tan_p, tanh_p))
sinh, cosh, asin, acos, atan = map(unary, (sinh_p, cosh_p, asin_p, acos_p, atan_p))
asinh, acosh, atanh = map(unary, (asinh_p, acosh_p, atanh_p))
erf, erfc, erf_inv, lgamma, digamma = map(unary, (erf_p, erfc_p, erf_inv_p, lgamma_p, digamma_p))
real, imag, is_finite = map(unary, (real_p, imag_p, is_finite_p))
population_count, clz, bitwise_not = unary(population_count_p), unary(clz_p), unary(not_p, "bitwise_not")
atan2, complex = binary(atan2_p), binary(complex_p)
bitwise_and, bitwise_or, bitwise_xor = (binary(p, f"bitwise_{p.name}") for p in (and_p, or_p, xor_p))
shift_left, shift_right_logical = map(binary, (shift_left_p, shift_right_logical_p))
shift_right_arithmetic = binary(shift_right_arithmetic_p)
eq, ne, ge, gt, le, lt = map(binary, (eq_p, ne_p, ge_p, gt_p, le_p, lt_p))


def rsqrt(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """Computes the reciprocal square root 1 / sqrt(x) of each element.

    It is one operation, and faster than a square root and a division on accelerators. Layers that normalize use it.

    Args:
        x: A floating-point or complex array, or a number. Integers are not accepted.
        accuracy: A `jax.lax.Tolerance` or `jax.lax.AccuracyMode` for the compiler; None is its default.

    Returns:
        An array of the shape and dtype of `x`: inf for 0, and NaN for negative numbers.

    Raises:
        TypeError: For another dtype.

    See also: `jax.lax.sqrt`, `jax.lax.cbrt`.

    Example:
        >>> jax.lax.rsqrt(jnp.array([4.0, 0.25]))
        Array([0.5, 2. ], dtype=float32)
    """
    return rsqrt_p.bind(x) if accuracy is None else rsqrt_p.bind(x, accuracy=accuracy)


def mul(x: ArrayLike, y: ArrayLike, *, out_dtype: DTypeLike | None = None) -> Array:
    """Multiplies two arrays, element by element.

    With `out_dtype`, they may differ in dtype, and are converted to it first. Raises TypeError for operands that differ
    in dtype without `out_dtype`, or in shape.

    Example:
        >>> jax.lax.mul(jnp.array([100], jnp.int8), jnp.array([100], jnp.int8), out_dtype=jnp.int32)
        Array([10000], dtype=int32)
    """
    return mul_p.bind(x, y) if out_dtype is None else mul_p.bind(x, y, out_dtype=np.dtype(out_dtype))


def polygamma(m: ArrayLike, x: ArrayLike) -> Array:
    """Computes the derivative of order `m` of `digamma` at `x`. `m` is a float and is not differentiated.

    Raises TypeError for other dtypes than floats, or if they differ.

    Example:
        >>> jax.lax.polygamma(1.0, 1.0), jnp.pi**2 / 6
        (Array(1.644..., dtype=float32, weak_type=True), 1.644...)
    """
    return polygamma_p.bind(m, x)


def nextafter(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Returns the next float after `x1` in the direction of `x2`, element by element.

    Raises TypeError for other dtypes, or if they differ.

    Example:
        >>> jax.lax.nextafter(jnp.array([1.0]), jnp.array([2.0])) - 1
        Array([1.1920929e-07], dtype=float32)
    """
    return nextafter_p.bind(x1, x2)


def mulhi(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Computes the upper half of the bits of the product of two integers, element by element.

    Raises TypeError for other dtypes, or if they differ.

    Example:
        >>> jax.lax.mulhi(jnp.array([2**31 - 1]), jnp.array([8]))
        Array([3], dtype=int32)
    """
    check_kinds("mulhi", INT, typeof(x), typeof(y))
    return mulhi_p.bind(x, y)


def integer_pow(x: ArrayLike, y: int) -> Array:
    """Raises each element to the power `y`, a Python integer.

    A negative power needs floats. Raises TypeError for integers then.

    Example:
        >>> jax.lax.integer_pow(jnp.array([2, -3]), 3), jax.lax.integer_pow(jnp.array([2.0]), -2)
        (Array([  8, -27], dtype=int32), Array([0.25], dtype=float32))
    """
    if not hasattr(y, "__index__"):
        raise TypeError(f"integer_pow: y must be an integer, got {y!r}. `lax.pow` takes other exponents.")
    return integer_pow_p.bind(x, y=y)


def conj(x: ArrayLike) -> Array:
    """Computes the complex conjugate of each element; the result is complex even for a real `x`.

    Raises TypeError for a dtype that is neither a float's nor complex.

    Example:
        >>> jax.lax.conj(jnp.array([1 + 2j])), jax.lax.conj(jnp.array([1.0]))
        (Array([1.-2.j], dtype=complex64), Array([1.+0.j], dtype=complex64))
    """
    return conj_p.bind(x, input_dtype=typeof(x).dtype)


def reduce_precision(operand: float | ArrayLike, exponent_bits: int, mantissa_bits: int) -> Array:
    """Rounds to a float with fewer bits, in the same dtype. Raises ValueError for impossible numbers of bits.

    `jax.numpy.finfo` has the numbers of bits of a dtype. The rounding stays, even where the compiler would drop a
    conversion there and back.

    Example:
        >>> jax.lax.reduce_precision(jnp.array([1.01, 3.14159]), exponent_bits=8, mantissa_bits=7)
        Array([1.007..., 3.140...], dtype=float32)
    """
    exponent_bits, mantissa_bits = operator.index(exponent_bits), operator.index(mantissa_bits)
    if exponent_bits < 1 or mantissa_bits < 0:
        raise ValueError(
            f"reduce_precision: exponent_bits must be positive and mantissa_bits non-negative, got "
            f"{exponent_bits} and {mantissa_bits}"
        )
    return reduce_precision_p.bind(operand, exponent_bits=exponent_bits, mantissa_bits=mantissa_bits)


class RoundingMethod(enum.IntEnum):
    """Says in which direction halves are rounded.

    Example:
        >>> halves = jnp.array([0.5, 1.5, 2.5])
        >>> jax.lax.round(halves, jax.lax.RoundingMethod.TO_NEAREST_EVEN)
        Array([0., 2., 2.], dtype=float32)
    """

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


def round(x: ArrayLike, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> Array:
    """Rounds each element to an integer, in the same dtype; halves by default away from zero.

    Raises TypeError for a dtype that is not a float's, ValueError for another `rounding_method`.

    Example:
        >>> jax.lax.round(jnp.array([-0.5, 0.5, 1.5]))
        Array([-1.,  1.,  2.], dtype=float32)
    """
    return round_p.bind(x, rounding_method=RoundingMethod(rounding_method))


def reciprocal(x: ArrayLike) -> Array:
    """Computes 1 / x of each element.

    Raises TypeError for integers.

    Example:
        >>> jax.lax.reciprocal(jnp.array([4.0, 0.0]))
        Array([0.25,  inf], dtype=float32)
    """
    return integer_pow(x, -1)


def select_n(which: ArrayLike, *cases: ArrayLike) -> Array:
    """Chooses elements of several arrays: `cases[which]`, element by element.

    `which` is an int32 array of the shape of the cases, or a scalar; for two cases booleans serve, too. Raises
    TypeError for cases that differ in shape or dtype, or a `which` that does not fit them.

    Example:
        >>> jax.lax.select_n(jnp.array([0, 2, 1]), *jnp.array([[1, 2, 3], [10, 20, 30], [100, 200, 300]]))
        Array([  1, 200,  30], dtype=int32)
    """
    return select_n_p.bind(which, *cases)


def select(pred: ArrayLike, on_true: ArrayLike, on_false: ArrayLike) -> Array:
    """Chooses elements of two arrays by a boolean array.

    Both arrays are computed; `jax.lax.cond` computes one. `jax.numpy.where` promotes and broadcasts its operands, too.

    Args:
        pred: A boolean array of the shape of the others, or a boolean scalar.
        on_true, on_false: Arrays of one shape and dtype.

    Returns:
        An array with the elements of `on_true` where `pred` is true, and of `on_false` elsewhere.

    Raises:
        TypeError: If shapes or dtypes differ, or if `pred` is not boolean.

    See also: `jax.lax.select_n`, for more than two arrays.

    Example:
        >>> jax.lax.select(jnp.array([True, False]), jnp.array([1, 2]), jnp.array([10, 20]))
        Array([ 1, 20], dtype=int32)
    """
    return select_n_p.bind(pred, on_false, on_true)


def clamp(min: ArrayLike, x: ArrayLike, max: ArrayLike) -> Array:
    """Clamps the elements of `x` between `min` and `max`, which are scalars or have the shape of `x`.

    All have one dtype. Where `min` is larger than `max`, the result is `max`. Raises TypeError for other shapes or
    dtypes.

    Example:
        >>> jax.lax.clamp(0, jnp.array([-3, 2, 9]), 5)
        Array([0, 2, 5], dtype=int32)
    """
    return clamp_p.bind(min, x, max)
