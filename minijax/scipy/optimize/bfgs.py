"""The method of Broyden, Fletcher, Goldfarb and Shanno (BFGS): Nocedal & Wright, algorithm 6.1.

With limited memory: algorithms 7.4 and 7.5.
"""

from collections import namedtuple
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax.api.autodiff import value_and_grad
from minijax.higher.fori_loop import fori_loop
from minijax.higher.while_loop import while_loop
from minijax.scipy.optimize.line_search import dot, line_search

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
