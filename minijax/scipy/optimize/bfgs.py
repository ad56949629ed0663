"""The method of Broyden, Fletcher, Goldfarb and Shanno (BFGS): Nocedal & Wright, algorithm 6.1.

With limited memory: algorithms 7.4 and 7.5.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import minijax.numpy as jnp
from minijax.api.autodiff import value_and_grad
from minijax.higher.fori_loop import fori_loop
from minijax.higher.while_loop import while_loop
from minijax.run.arrays.array import Array

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


_einsum = partial(jnp.einsum, precision="highest")


# jax's loop carries two constants too, `idle`, which come first among the operands of its while loop.
_State = namedtuple("_State", "is_converged is_failed k nfev ngev x value gradient inverse value_before status idle")


def result_of(state: Any, status: Any, inverse: Any) -> tuple:
    """The fields of OptimizeResults, from the last state of a method."""
    is_success = state.is_converged & ~state.is_failed
    return state.x, is_success, status, state.value, state.gradient, inverse, state.nfev, state.ngev, state.k


def minimize_bfgs(
    fun: Callable,
    x0: Any,
    maxiter: int | None = None,
    norm: Any = np.inf,
    gtol: float = 1e-5,
    line_search_maxiter: int = 10,
) -> tuple:
    """The fields of OptimizeResults; status is 1 after `maxiter` steps, and 2 or more if a line search failed."""
    size = x0.shape[0]
    maxiter = size * 200 if maxiter is None else maxiter
    identity = jnp.eye(size, dtype=x0.dtype)
    value, gradient = value_and_grad(fun)(x0)

    def goes_on(state):
        return ~state.is_converged & ~state.is_failed & (state.k < maxiter)

    def advance(state):
        direction = -dot(state.inverse, state.gradient)
        line = line_search(
            fun, state.x, direction, state.value, state.gradient, state.value_before, line_search_maxiter
        )
        nfev, ngev = state.nfev + line.nfev, state.ngev + line.ngev
        s = line.step * direction
        x = state.x + s
        y = line.gradient - state.gradient
        rho = jnp.reciprocal(dot(y, s))
        product = s[:, None] * y[None, :]
        w = jnp.eye(size, dtype=rho.dtype) - rho * product
        inverse = _einsum("ij,jk,lk", w, state.inverse, w) + rho * s[:, None] * s[None, :]
        inverse = jnp.where(jnp.isfinite(rho), inverse, state.inverse)
        is_converged = jnp.linalg.norm(line.gradient, ord=norm) < gtol
        found = x, line.value, line.gradient, inverse, state.value, line.status
        return _State(is_converged, line.is_failed, state.k + 1, nfev, ngev, *found, state.idle)

    is_converged = jnp.linalg.norm(gradient, ord=norm) < gtol
    value_before = value + jnp.linalg.norm(gradient) / 2
    start = _State(is_converged, False, 0, 1, 1, x0, value, gradient, identity, value_before, 0, (0, 0))
    state = while_loop(goes_on, advance, start)
    is_last = state.k == maxiter
    status = jnp.where(is_last, 1, jnp.where(state.is_failed, 2 + state.status, -1))
    status = jnp.where(state.is_converged, 0, status)
    return result_of(state, status, state.inverse)


_FIELDS = "is_converged is_failed k nfev ngev x value gradient steps changes rhos gamma status line_status"


class _Limited(namedtuple("_State", _FIELDS)):
    """`steps` s, gradient `changes` y and `rhos` 1 / (y . s) hold the last `maxcor` steps, the latest one last."""


def minimize_lbfgs(
    fun: Callable,
    x0: Any,
    maxiter: float | None = None,
    norm: Any = np.inf,
    maxcor: int = 10,
    ftol: float = 2.220446049250313e-09,
    gtol: float = 1e-05,
    maxfun: float | None = None,
    maxgrad: float | None = None,
    maxls: int = 20,
) -> tuple:
    """The fields of OptimizeResults, in order; `x0` may be complex.

    Status is 1 after `maxiter` steps, 2 or 3 after `maxfun` values or `maxgrad` gradients, 4 if the value decreases
    by less than `ftol`, 5 if a line search of `maxls` steps failed. The last `maxcor` steps are kept.
    """
    size = len(x0)
    maxiter = size * 200 if maxiter is None and maxfun is None and maxgrad is None else maxiter
    maxiter, maxfun, maxgrad = (np.inf if x is None else x for x in (maxiter, maxfun, maxgrad))

    def goes_on(state):
        return ~state.is_converged & ~state.is_failed

    def advance(state):
        direction = _direction(state)
        line = line_search(fun, state.x, direction, state.value, state.gradient, maxiter=maxls)
        s = line.step.astype(direction.dtype) * direction
        x = state.x + s
        y = line.gradient - state.gradient
        product = jnp.real(dot(y, s))
        rho = jnp.reciprocal(product).astype(x.dtype)
        gamma = product / jnp.real(dot(jnp.conj(y), y))
        status = jnp.where(state.value - line.value < ftol, 4, 0)
        status = jnp.where(state.ngev >= maxgrad, 3, status)
        status = jnp.where(state.nfev >= maxfun, 2, status)
        status = jnp.where(state.k >= maxiter, 1, status)
        status = jnp.where(line.is_failed, 5, status)
        is_converged = jnp.linalg.norm(line.gradient, ord=norm) < gtol
        counts = (status > 0) & ~is_converged, state.k + 1, state.nfev + line.nfev, state.ngev + line.ngev
        rows = _pushed(state.steps, s), _pushed(state.changes, y), _pushed(state.rhos, rho)
        gamma, status = gamma.astype(x.dtype), jnp.where(is_converged, 0, status)
        return _Limited(is_converged, *counts, x, line.value, line.gradient, *rows, gamma, status, line.status)

    state = while_loop(goes_on, advance, _start(x0, *value_and_grad(fun)(x0), maxcor))
    return result_of(state, state.status, None)


def _start(x0: Any, value: Any, gradient: Any, maxcor: int) -> _Limited:
    steps, changes, rhos = (
        jnp.zeros(shape, dtype=x0.dtype) for shape in ((maxcor, len(x0)), (maxcor, len(x0)), maxcor)
    )
    return _Limited(
        False, False, 0, 1, 1, x0, value, gradient, steps, changes, rhos, gamma=1.0, status=0, line_status=0
    )


def _pushed(rows: Any, row: Any) -> Any:
    return jnp.roll(rows, -1, axis=0).at[-1].set(row)


def _direction(state: _Limited) -> Any:
    """Minus the approximate inverse Hessian times the gradient: the two-loop recursion of algorithm 7.4."""
    size = len(state.rhos)
    count = jnp.where(state.k < size, state.k, size)

    def back(j, carry):
        q, factors = carry
        i = size - 1 - j
        factor = state.rhos[i] * jnp.real(dot(jnp.conj(state.steps[i]), q)).astype(q.dtype)
        factors = factors.at[i].set(factor)
        return q - factor * jnp.conj(state.changes[i]), factors

    def forth(j, q):
        i = size - count + j
        factor = state.rhos[i] * jnp.real(dot(state.changes[i], q)).astype(q.dtype)
        return q + (factors[i] - factor) * state.steps[i]

    q, factors = fori_loop(0, count, back, (-jnp.conj(state.gradient), jnp.zeros_like(state.rhos)))
    return fori_loop(0, count, forth, state.gamma * q)


class OptimizeResults(NamedTuple):
    """The result of a minimization.

    x: the minimizer found.
    success: whether it converged.
    status: 0 if it converged, else a number for the reason why it did not.
    fun, jac: the function's value and gradient at `x`.
    hess_inv: the approximate inverse of the Hessian, or None.
    nfev, njev: the number of evaluations of the function and of its gradient.
    nit: the number of steps.
    """

    x: Any
    success: Any
    status: Any
    fun: Any
    jac: Any
    hess_inv: Any
    nfev: Any
    njev: Any
    nit: Any


_METHODS = {"bfgs": minimize_bfgs, "l-bfgs-experimental-do-not-rely-on-this": minimize_lbfgs}


def minimize(
    fun: Callable,
    x0: Array,
    args: tuple = (),
    *,
    method: str,
    tol: float | None = None,
    options: Mapping[str, Any] | None = None,
) -> OptimizeResults:
    """Minimizes `fun(x, *args)`, a real scalar, over vectors x, starting at `x0`; as `scipy.optimize.minimize`.

    `method` is "BFGS". Its options are `maxiter` (200 for each variable), `gtol` (1e-5: the gradient norm to reach),
    `norm` (infinity: the order of that norm) and `line_search_maxiter`. `tol` has no effect. Not differentiable in
    reverse mode. Raises TypeError if `args` is not a tuple, and ValueError for other methods.

    Example:
      >>> result = jax.scipy.optimize.minimize(lambda x: jnp.sum((x - 3.0) ** 2), jnp.zeros(2), method="BFGS")
      >>> result.x.round(3)
      Array([3.0000002, 3.0000002], dtype=float32)
    """
    if not isinstance(args, tuple):
        raise TypeError(f"args argument to jax.scipy.optimize.minimize must be a tuple, got {args}")
    if method.lower() not in _METHODS:
        raise ValueError(f"minimize: Method {method} not recognized")
    return OptimizeResults(*_METHODS[method.lower()](lambda x: fun(x, *args), x0, **(options or {})))
