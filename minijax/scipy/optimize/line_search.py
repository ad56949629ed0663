"""Steps along a direction that satisfy the strong Wolfe conditions: Nocedal & Wright, algorithms 3.5 and 3.6."""

from collections import namedtuple
from collections.abc import Callable
from functools import partial
from typing import Any

import minijax.numpy as jnp
from minijax.api.autodiff import value_and_grad
from minijax.higher.while_loop import while_loop

dot = partial(jnp.dot, precision="highest")

_ENOUGH_DECREASE, _ENOUGH_CURVATURE = 1e-4, 0.9
_ZOOMS = 30


_ZOOM = "is_done is_failed j lo phi_lo slope_lo hi phi_hi slope_hi last phi_last step phi slope gradient nfev ngev"


class _Zoom(namedtuple("_Zoom", _ZOOM)):
    """An interval of steps: `lo` is the end with the lesser value, `hi` the other end, `last` the end dropped last."""


_Search = namedtuple(
    "_Search", "is_done is_failed i previous phi_previous slope_previous nfev ngev step phi slope gradient"
)


class LineSearch(namedtuple("LineSearch", "is_failed nit nfev ngev step value gradient status")):
    """The result of a line search; `status` is 0, 1 if zooming failed, 3 after too many steps."""


def _where(condition: Any, state: Any, **values: Any) -> Any:
    """Replaces these fields of the state where the condition holds."""
    return state._replace(**{name: jnp.where(condition, x, getattr(state, name)) for name, x in values.items()})


def _cubic_minimum(a, fa, slope, b, fb, c, fc):
    """The minimum of the cubic through three points with this slope at the first; NaN if it has no minimum."""
    db, dc = b - a, c - a
    size = (db * dc) ** 2 * (db - dc)
    matrix = jnp.array([[dc**2, -(db**2)], [-(dc**3), db**3]])
    rest = jnp.array([fb - fa - slope * db, fc - fa - slope * dc])
    A, B = dot(matrix, rest) / size
    radicand = B * B - 3.0 * A * slope
    return a + (-B + jnp.sqrt(radicand)) / (3.0 * A)


def _quadratic_minimum(a, fa, slope, b, fb):
    """The minimum of the parabola through two points with this slope at the first."""
    db = b - a
    B = (fb - fa - slope * db) / (db**2)
    return a - slope / (2.0 * B)


def _trial(state: _Zoom, low: Any, high: Any, margin: Any, less: Any) -> Any:
    """A step inside the interval: the minimum of a cubic or a parabola, or the middle if these are near an end."""
    cubic = _cubic_minimum(state.lo, state.phi_lo, state.slope_lo, state.hi, state.phi_hi, state.last, state.phi_last)
    is_cubic = (state.j > 0) & (cubic > low + margin) & (cubic < high - margin)
    quadratic = _quadratic_minimum(state.lo, state.phi_lo, state.slope_lo, state.hi, state.phi_hi)
    is_quadratic = ~is_cubic & (quadratic > low + less) & (quadratic < high - less)
    middle = (state.lo + state.hi) / 2.0
    is_middle = ~is_cubic & ~is_quadratic
    step = jnp.where(is_cubic, cubic, state.last)
    step = jnp.where(is_quadratic, quadratic, step)
    return jnp.where(is_middle, middle, step)


def _zoom(along, phi_0, slope_0, lo, hi, gradient, is_idle):
    """Shrinks the interval between two points (step, value, slope); algorithm 3.6. Makes no step if `is_idle`."""

    def goes_on(state):
        return ~state.is_done & ~is_idle & ~state.is_failed

    def shrink(state):
        width = state.hi - state.lo
        low, high = jnp.minimum(state.hi, state.lo), jnp.maximum(state.hi, state.lo)
        margin, less = 0.2 * width, 0.1 * width
        least = jnp.where(jnp.finfo(width.dtype).bits < 64, 1e-5, 1e-10)
        state = state._replace(is_failed=state.is_failed | (width <= least))
        step = _trial(state, low, high, margin, less)
        phi, slope, g = along(step)
        state = state._replace(nfev=state.nfev + 1, ngev=state.ngev + 1)
        is_high = (phi > phi_0 + _ENOUGH_DECREASE * step * slope_0) | (phi >= state.phi_lo)
        is_star = (jnp.abs(slope) <= -_ENOUGH_CURVATURE * slope_0) & ~is_high
        turns = (slope * (state.hi - state.lo) >= 0.0) & ~is_high & ~is_star
        is_low = ~is_high & ~is_star
        ends = {"last": state.hi, "phi_last": state.phi_hi}
        state = _where(is_high, state, hi=step, phi_hi=phi, slope_hi=slope, **ends)
        state = state._replace(is_done=is_star | state.is_done)
        state = _where(is_star, state, step=step, phi=phi, slope=slope, gradient=g)
        lows = {"hi": state.lo, "phi_hi": state.phi_lo, "slope_hi": state.slope_lo}
        state = _where(turns, state, **lows, last=state.hi, phi_last=state.phi_hi)
        state = _where(is_low & ~turns, state, last=state.lo, phi_last=state.phi_lo)
        state = _where(is_low, state, lo=step, phi_lo=phi, slope_lo=slope)
        state = state._replace(j=state.j + 1)
        return state._replace(is_failed=state.is_failed | (state.j >= _ZOOMS))

    middle = ((lo[0] + hi[0]) / 2.0, (lo[1] + hi[1]) / 2.0)
    return while_loop(goes_on, shrink, _Zoom(False, False, 0, *lo, *hi, *middle, 1.0, lo[1], lo[2], gradient, 0, 0))


def line_search(
    f: Callable, x: Any, direction: Any, value: Any, gradient: Any, value_before: Any = None, maxiter: int = 10
) -> LineSearch:
    """Finds a step from `x`, where `f` has this value and gradient; it was `value_before` a step ago. Algorithm 3.5."""

    def along(step):
        step = jnp.array(step, dtype=direction.dtype)
        phi, g = value_and_grad(f)(x + step * direction)
        return phi, jnp.real(dot(g, direction)), g

    slope_0 = jnp.real(dot(gradient, direction))
    first = 1
    if value_before is not None:
        guess = 1.01 * 2 * (value - value_before) / slope_0
        first = jnp.where(guess > 1, 1.0, guess)

    def goes_on(state):
        return ~state.is_done & (state.i <= maxiter) & ~state.is_failed

    def look(state):
        step = jnp.where(state.i == 1, first, state.previous * 2.0)
        phi, slope, g = along(step)
        state = state._replace(nfev=state.nfev + 1, ngev=state.ngev + 1)
        is_past = (phi > value + _ENOUGH_DECREASE * step * slope_0) | ((phi >= state.phi_previous) & (state.i > 1))
        is_star = (jnp.abs(slope) <= -_ENOUGH_CURVATURE * slope_0) & ~is_past
        rises = (slope >= 0.0) & ~is_past & ~is_star
        before = state.previous, state.phi_previous, state.slope_previous
        zooms = []
        for is_between, ends in ((is_past, (before, (step, phi, slope))), (rises, ((step, phi, slope), before))):
            zooms.append(_zoom(along, value, slope_0, *ends, gradient, ~is_between))
            state = state._replace(nfev=state.nfev + zooms[-1].nfev, ngev=state.ngev + zooms[-1].ngev)
        state = _zoomed(state, is_past, zooms[0])
        state = state._replace(is_done=is_star | state.is_done)
        state = _where(is_star, state, step=step, phi=phi, slope=slope, gradient=g)
        state = _zoomed(state, rises, zooms[1])
        return state._replace(i=state.i + 1, previous=step, phi_previous=phi, slope_previous=slope)

    start = _Search(False, False, 1, 0.0, value, slope_0, 0, 0, 0.0, value, slope_0, gradient)
    state = while_loop(goes_on, look, start)
    status = jnp.where(state.is_failed, 1, jnp.where(state.i > maxiter, 3, 0))
    # In low precision a tiny step would not change x.
    is_tiny = jnp.logical_and(jnp.finfo(state.step.dtype).bits != 64, jnp.abs(state.step) < 1e-8)
    step = jnp.where(is_tiny, jnp.sign(state.step) * 1e-8, state.step)
    return LineSearch(
        state.is_failed | ~state.is_done, state.i - 1, state.nfev, state.ngev, step, state.phi, state.gradient, status
    )


def _zoomed(state: _Search, is_between: Any, zoom: _Zoom) -> _Search:
    """The state with the result of zooming, where `is_between`."""
    state = state._replace(
        is_done=is_between | state.is_done, is_failed=(is_between & zoom.is_failed) | state.is_failed
    )
    return _where(is_between, state, step=zoom.step, phi=zoom.phi, slope=zoom.slope, gradient=zoom.gradient)
