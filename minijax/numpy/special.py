"""Elementwise functions with derivative rules of their own: sinc, i0 and the logarithms of sums of powers."""

from collections.abc import Callable
from math import log as math_log, pi
from typing import Any

from minijax.api.autodiff import jvp
from minijax.composed import cumulative
from minijax.composed.selecting import where
from minijax.control.custom import bind_custom_jvp
from minijax.control.jitted import jitted
from minijax.ir.types import typeof
from minijax.ops import elementwise as lax
from minijax.ops.families import literal
from minijax.ops.promote import is_complex, like, promote_args_inexact
from minijax.ops.special import bessel_i0e


@jitted(inline=True)
def logaddexp(x1: Any, x2: Any, /) -> Any:
    """As `numpy.logaddexp`."""
    return cumulative.logaddexp(*promote_args_inexact("logaddexp", x1, x2))


@jitted(inline=True)
def logaddexp2(x1: Any, x2: Any, /) -> Any:
    """As `numpy.logaddexp2`."""
    return _log2_of_sum(*promote_args_inexact("logaddexp2", x1, x2))


def _log2_of_sum(x: Any, y: Any) -> Any:
    return bind_custom_jvp(_log2_of_sum_flat, _logaddexp2_jvp, (x, y), False)[0]


def _log2_of_sum_flat(x: Any, y: Any) -> list:
    larger = lax.max(x, y)
    if is_complex(x):
        spread = lax.sub(lax.add(x, y), lax.mul(larger, like(larger, 2)))
        out = lax.add(larger, _log2_of_one_more(lax.exp2(spread)))
        return [lax.complex(lax.real(out), _wrapped(lax.imag(out)))]
    gap = lax.sub(x, y)
    undefined, total = lax.ne(gap, gap), lax.add(x, y)
    out = lax.add(larger, _log2_of_one_more(lax.exp2(lax.neg(lax.abs(gap)))))
    return [lax.select(undefined, total, out)]


_log2_of_sum_flat.__name__ = "logaddexp2"  # as jaxprs print it


def _log2_of_one_more(x: Any) -> Any:
    found = lax.log1p(x)
    return lax.mul(like(found, 1 / math_log(2)), found)


def _wrapped(angle: Any) -> Any:
    """An angle, in units of ln 2, brought into one turn around zero."""
    half = pi / math_log(2)
    turn = like(angle, 2 * half)
    left = lax.rem(lax.add(angle, like(angle, half)), turn)
    left = lax.select(lax.lt(left, literal(left, 0)), lax.add(left, turn), left)
    return lax.sub(left, like(left, half))


def _logaddexp2_jvp(x: Any, y: Any, tx: Any, ty: Any) -> list:
    out = _log2_of_sum(x, y)
    terms = (lax.mul(t, lax.exp2(lax.sub(cumulative.finite(z), cumulative.finite(out)))) for t, z in ((tx, x), (ty, y)))
    return [out, lax.add(*terms)]


@jitted()
def sinc(x: Any, /) -> Any:
    """As `numpy.sinc`; all derivatives are right at zero too."""
    (x,) = promote_args_inexact("sinc", x)
    at_zero = lax.eq(x, like(x, 0))
    angle = lax.mul(like(x, pi), x)
    safe = where(at_zero, like(x, 1), angle)
    series = _series_at_zero(0)(angle)
    return where(at_zero, series, lax.div(lax.sin(safe), safe))


def _series_at_zero(k: int) -> Callable:
    """The k-th derivative of sin(x) / x for an x that is zero."""

    def _sinc_maclaurin(x):
        zero = lax.mul(x, like(x, 0))
        return [zero if k % 2 else lax.add(zero, like(x, (-1) ** (k // 2) / (k + 1)))]

    def _sinc_maclaurin_jvp(x, t):
        return [_series_at_zero(k)(x), lax.mul(_series_at_zero(k + 1)(x), t)]

    return lambda x: bind_custom_jvp(_sinc_maclaurin, _sinc_maclaurin_jvp, (x,), False)[0]


@jitted()
def i0(x: Any) -> Any:
    """As `numpy.i0`."""
    (x,) = promote_args_inexact("i0", x)
    if is_complex(x):
        raise ValueError(f"Unsupported input type to jax.numpy.i0: {typeof(x).dtype}")
    return bind_custom_jvp(_i0, _i0_jvp, (x,), False)[0]


def _i0(x: Any) -> list:
    x = lax.abs(x)
    return [lax.mul(lax.exp(x), bessel_i0e(x))]


def _i0_jvp(x: Any, t: Any) -> list:
    (out,), (slope,) = jvp(_i0, (x,), (t,))
    return [out, where(lax.eq(x, like(x, 0)), 0.0, slope)]
