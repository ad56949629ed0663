"""The method of Broyden, Fletcher, Goldfarb and Shanno: Nocedal & Wright, algorithm 6.1."""

from collections import namedtuple
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax.api.autodiff import value_and_grad
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
