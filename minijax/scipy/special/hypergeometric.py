"""Kummer's hypergeometric function."""

from collections.abc import Callable
from typing import Any

import numpy as np

from minijax.api.custom import custom_jvp
from minijax.dispatch.jitted import jitted
from minijax.higher.cond import cond
from minijax.higher.while_loop import while_loop
from minijax.ir.types import typeof
from minijax.numpy.vectorizing import vectorize
from minijax.primitives import elementwise as lax
from minijax.primitives.families import is_complex, scalar_like
from minijax.primitives.promote import promote_args_inexact
from minijax.scipy.special.gammas import gamma

_MOST_TERMS = 250


def _series(start: float, term: Any, share: Callable, ratio: Callable) -> Any:
    """start + the sum of share(k, term), where ratio(k) leads from a term to the next."""

    def unsettled(state):
        total, k, term = state
        few = k < _MOST_TERMS
        return few & (lax.abs(term) / lax.abs(total) > np.finfo(typeof(term).dtype).eps)

    def add_term(state):
        total, k, term = state
        total = total + share(k, term)
        term = term * ratio(k)
        return total, k + 1, term

    return while_loop(unsettled, add_term, (scalar_like(term, start), 1, term))[0]


def _power_series(a: Any, b: Any, x: Any, start: float, share: Callable) -> Any:
    return _series(start, a / b * x, share, lambda k: (a + k) / (b + k) * x / (k + 1))


def _near(a: Any, b: Any, x: Any) -> Any:
    return _power_series(a, b, x, 1, lambda k, term: term)


def _far(a: Any, b: Any, x: Any) -> Any:
    """The asymptotic series: J. W. Pearson, "Computation of hypergeometric functions", 2009, section 3.2."""
    first = (b - a) * (1 - a) / x
    total = _series(1, first, lambda k, term: term, lambda k: (b - a + k) * (1 - a + k) / (k + 1) / x)
    return gamma(b) / gamma(a) * lax.exp(x) * x ** (a - b) * total


@custom_jvp
@jitted()
@vectorize
def hyp1f1(a: Any, b: Any, x: Any) -> Any:
    """Kummer's function of real numbers. Raises ValueError for complex ones."""
    a, b, x = promote_args_inexact("hyp1f1", a, b, x)
    if is_complex(x):
        raise ValueError("hyp1f1 does not support complex-valued inputs.")
    result = cond(lax.abs(x) < 100, _near, _far, a, b, x)
    case = (a == 0) * 1
    case = case + ((a == b) & (a != 0)) * 2
    case = case + ((b == 0) & (a != 0)) * 3
    return lax.select_n(case, result, scalar_like(x, 1), lax.exp(x), scalar_like(x, np.inf))


@jitted()
@vectorize
def _hyp1f1_a_derivative(a: Any, b: Any, x: Any) -> Any:
    return _power_series(a, b, x, 0, lambda k, term: term * (lax.digamma(a + k) - lax.digamma(a)))


@jitted()
@vectorize
def _hyp1f1_b_derivative(a: Any, b: Any, x: Any) -> Any:
    return _power_series(a, b, x, 0, lambda k, term: term * (lax.digamma(b) - lax.digamma(b + k)))


@jitted()
def _hyp1f1_x_derivative(a: Any, b: Any, x: Any) -> Any:
    return a / b * hyp1f1(a + 1, b + 1, x)


hyp1f1.defjvps(
    lambda t, _, a, b, x: _hyp1f1_a_derivative(a, b, x) * t,
    lambda t, _, a, b, x: _hyp1f1_b_derivative(a, b, x) * t,
    lambda t, _, a, b, x: _hyp1f1_x_derivative(a, b, x) * t,
)
