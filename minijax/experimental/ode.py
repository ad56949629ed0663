"""Ordinary differential equations: the Runge–Kutta method of Dormand and Prince (1980), of fifth order.

The step size is controlled as in Hairer, Nørsett and Wanner, Solving Ordinary Differential Equations I, section II.4.
Values between steps are interpolated by Shampine's polynomial (1986). Reverse mode solves the adjoint equation.
"""

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

import minijax.numpy as jnp
from minijax import api_util as api_util  # some libraries import it from here
from minijax.api.autodiff import vjp
from minijax.api.custom import closure_convert, custom_vjp
from minijax.api.vmap import vmap
from minijax.base import dtypes
from minijax.base.faces import listing
from minijax.base.linear_util import wrap_init
from minijax.base.tree import tree_leaves, tree_map
from minijax.dispatch.jitted import jitted
from minijax.higher.fori_loop import fori_loop
from minijax.higher.scan import scan
from minijax.higher.while_loop import while_loop
from minijax.interop.arguments import debug_info
from minijax.interop.transformations import transformation2
from minijax.ir.jaxpr import DebugInfo
from minijax.ir.types import is_value
from minijax.numpy.raveling import ravel_pytree
from minijax.primitives.promote import promote_dtypes_inexact

__all__, __dir__ = listing(
    __name__,
    """
    abs2 fit_4th_order_polynomial initial_step_size interp_fit_dopri mean_error_ratio odeint optimal_step_size
    ravel_first_arg ravel_first_arg_ runge_kutta_step
""",
)

# The Butcher tableau: times, stages, the solution, its error, and the solution at the midpoint of the step.
_TIMES = (1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0, 0)
_STAGES = (
    (1 / 5, 0, 0, 0, 0, 0, 0),
    (3 / 40, 9 / 40, 0, 0, 0, 0, 0),
    (44 / 45, -56 / 15, 32 / 9, 0, 0, 0, 0),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729, 0, 0, 0),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656, 0, 0),
    (35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0),
)
_SOLUTION = (35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0)
_ERROR = (
    35 / 384 - 1951 / 21600,
    0,
    500 / 1113 - 22642 / 50085,
    125 / 192 - 451 / 720,
    -2187 / 6784 - -12231 / 42400,
    11 / 84 - 649 / 6300,
    -1 / 60,
)
_MIDDLE = (
    6025192743 / 30085553152 / 2,
    0,
    51252292925 / 65400821598 / 2,
    -2691868925 / 45128329728 / 2,
    187940372067 / 1594534317056 / 2,
    -1776094331 / 19743644256 / 2,
    11237099 / 235043384 / 2,
)


@transformation2
def ravel_first_arg_(f: Callable, unravel: Callable, y_flat: Any, *args: Any) -> Any:
    """Transforms a wrapped function to take its first argument and return its result as vectors."""
    return ravel_pytree(f(unravel(y_flat), *args))[0]


def ravel_first_arg(f: Callable, unravel: Callable, debug_info: DebugInfo) -> Callable:
    """Transforms `f` to take its first argument and return its result as vectors."""
    return ravel_first_arg_(wrap_init(f, debug_info=debug_info), unravel).call_wrapped


def interp_fit_dopri(y0: Any, y1: Any, k: Any, dt: Any) -> Any:
    """Returns the coefficients, highest power first, of a polynomial in the fraction of the step.

    Example:
        >>> from minijax.experimental import ode
        >>> zero, t0, t1 = jnp.zeros(1), jnp.float32(0), jnp.float32(1)
        >>> y1, _, _, k = ode.runge_kutta_step(lambda y, t: 3 * t**2 + 0 * y, zero, zero, t0, t1)
        >>> jnp.polyval(jnp.array(ode.interp_fit_dopri(zero, y1, k, t1)), 0.5).round(3)  # t**3
        Array([0.125], dtype=float32)
    """
    middle = jnp.array(_MIDDLE, y0.dtype)
    y_mid = y0 + dt.astype(y0.dtype) * _dot(middle, k)
    return jnp.asarray(fit_4th_order_polynomial(y0, y1, y_mid, k[0], k[-1], dt))


def fit_4th_order_polynomial(y0: Any, y1: Any, y_mid: Any, dy0: Any, dy1: Any, dt: Any) -> tuple:
    """Fits a polynomial to values at both ends and the midpoint, and to slopes (dy0, dy1) at the ends.

    Returns its coefficients in the fraction of the step, highest power first.

    Example:
        >>> y = [jnp.float32(y) for y in (0.0, 1.0, 1 / 16, 0.0, 4.0, 1.0)]  # those of t**4 in [0, 1]
        >>> jnp.array(jax.experimental.ode.fit_4th_order_polynomial(*y))
        Array([1., 0., 0., 0., 0.], dtype=float32)
    """
    dt = dt.astype(y0.dtype)
    a = -2.0 * dt * dy0 + 2.0 * dt * dy1 - 8.0 * y0 - 8.0 * y1 + 16.0 * y_mid
    b = 5.0 * dt * dy0 - 3.0 * dt * dy1 + 18.0 * y0 + 14.0 * y1 - 32.0 * y_mid
    c = -4.0 * dt * dy0 + dt * dy1 - 11.0 * y0 - 5.0 * y1 + 16.0 * y_mid
    return a, b, c, dt * dy0, y0


def initial_step_size(fun: Callable, t0: Any, y0: Any, order: int, rtol: float, atol: float, f0: Any) -> Any:
    """Chooses the first step size by the norms of the solution and its first two derivatives.

    Example:
        >>> step = jax.experimental.ode.initial_step_size
        >>> print(step(lambda y, t: -y, 0.0, jnp.array([1.0]), 4, 1e-3, 1e-3, jnp.array([-1.0])))
        0.114...
    """
    y0, f0 = promote_dtypes_inexact(y0, f0)
    scale = atol + jnp.abs(y0) * rtol
    d0, d1 = jnp.linalg.norm(y0 / scale), jnp.linalg.norm(f0 / scale)
    h0 = jnp.where((d0 < 1e-5) | (d1 < 1e-5), 1e-6, 0.01 * d0 / d1)
    f1 = fun(y0 + h0 * f0, t0 + h0)
    d2 = jnp.linalg.norm((f1 - f0) / scale) / h0
    least = (d1 <= 1e-15) & (d2 <= 1e-15)
    h1 = jnp.where(least, jnp.maximum(1e-6, h0 * 1e-3), (0.01 / jnp.maximum(d1, d2)) ** (1.0 / (order + 1.0)))
    return jnp.minimum(100.0 * h0, h1)


def _dot(a: Any, b: Any) -> Any:
    return jnp.dot(a, b, precision="highest")


def runge_kutta_step(func: Callable, y0: Any, f0: Any, t0: Any, dt: Any) -> tuple:
    """Returns the solution after a step, its slope there, an estimate of its error, and the slopes of all stages.

    Example:
        >>> step, y0 = jax.experimental.ode.runge_kutta_step, jnp.array([1.0])
        >>> y1, f1, error, k = step(lambda y, t: -y, y0, -y0, jnp.float32(0.0), jnp.float32(0.1))
        >>> print(y1, jnp.exp(-0.1))
        [0.904...] 0.904...
    """
    times, stages = jnp.array(_TIMES, dt.dtype), jnp.array(_STAGES, f0.dtype)
    solution, error = jnp.array(_SOLUTION, f0.dtype), jnp.array(_ERROR, f0.dtype)

    def stage(i, k):
        ti = t0 + dt * times[i - 1]
        return k.at[i, :].set(func(y0 + dt.astype(y0.dtype) * _dot(stages[i - 1, :], k), ti))

    k = fori_loop(1, 7, stage, jnp.zeros((7, f0.shape[0]), f0.dtype).at[0, :].set(f0))
    y1 = dt.astype(f0.dtype) * _dot(solution, k) + y0
    y1_error = dt.astype(f0.dtype) * _dot(error, k)
    return y1, k[-1], y1_error, k


def abs2(x: Any) -> Any:
    """Computes the square of the absolute value.

    Example:
        >>> jax.experimental.ode.abs2(jnp.array([3.0 + 4.0j]))
        Array([25.], dtype=float32)
    """
    return x.real**2 + x.imag**2 if jnp.iscomplexobj(x) else x**2


def mean_error_ratio(error_estimate: Any, rtol: float, atol: float, y0: Any, y1: Any) -> Any:
    """Computes the root mean square of the error relative to the tolerance.

    Example:
        >>> float(jax.experimental.ode.mean_error_ratio(jnp.array([0.5]), 0.0, 1.0, jnp.ones(1), jnp.ones(1)))
        0.5
    """
    tolerance = atol + rtol * jnp.maximum(jnp.abs(y0), jnp.abs(y1))
    return jnp.sqrt(jnp.mean(abs2(error_estimate / tolerance)))


def optimal_step_size(
    last_step: Any,
    mean_error_ratio: Any,
    safety: float = 0.9,
    ifactor: float = 10.0,
    dfactor: float = 0.2,
    order: float = 5.0,
) -> Any:
    """Returns the step size expected to meet the tolerance, from `dfactor` to `ifactor` times the last.

    Example:
        >>> step = jax.experimental.ode.optimal_step_size
        >>> step(0.1, jnp.float32(1e-9)), step(0.1, jnp.float32(1.0))
        (Array(1., dtype=float32), Array(0.09, dtype=float32))
    """
    least = jnp.where(mean_error_ratio < 1, 1.0, dfactor)
    factor = jnp.minimum(ifactor, jnp.maximum(mean_error_ratio ** (-1.0 / order) * safety, least))
    return jnp.where(mean_error_ratio == 0, last_step * ifactor, last_step * factor)


def odeint(
    func: Callable,
    y0: Any,
    t: Any,
    *args: Any,
    rtol: float = 1.4e-8,
    atol: float = 1.4e-8,
    mxstep: float = np.inf,
    hmax: float = np.inf,
) -> Any:
    """Solves dy/dt = func(y, t, *args) with y(t[0]) = y0, a pytree of arrays, at the increasing times `t`.

    Leaves of the result have a leading axis of times. At most `mxstep` steps, each at most `hmax`, are taken between
    two times. Reverse mode differentiates with respect to `y0`, `t` and `args`. Raises TypeError if `t` is not of a
    floating dtype or a leaf of `args` is not an array.

    Example:
        >>> jax.experimental.ode.odeint(lambda y, t: -y, jnp.array(1.0), jnp.array([0.0, 1.0])).round(4)
        Array([1.        , 0.36789998], dtype=float32)
    """
    for leaf in tree_leaves(args):
        if not is_value(leaf):
            raise TypeError(f"odeint: the contents of odeint *args must be arrays or scalars, but got {leaf}.")
    if not dtypes.issubdtype(t.dtype, np.floating):
        raise TypeError(f"odeint: t must be an array of floats, but got {t}.")
    converted, consts = closure_convert(func, y0, t[0], *args)
    return _odeint_wrapper(converted, rtol, atol, mxstep, hmax, y0, t, *args, *consts)


@jitted(static=("func", "rtol", "atol", "mxstep", "hmax"))
def _odeint_wrapper(func, rtol, atol, mxstep, hmax, y0, ts, *args):
    info = debug_info("odeint", func, (y0, ts, *args), {})
    y0, unravel = ravel_pytree(y0)
    out = _odeint(ravel_first_arg(func, unravel, info), rtol, atol, mxstep, hmax, y0, ts, *args)
    return vmap(unravel)(out)


@functools.partial(custom_vjp, nondiff_argnums=(0, 1, 2, 3, 4))
def _odeint(func, rtol, atol, mxstep, hmax, y0, ts, *args):
    def slope(y, t):
        return func(y, t, *args)

    def unfinished(target_t, state):
        i, _, _, t, dt, _, _ = state
        return (t < target_t) & (i < mxstep) & (dt > 0)

    def step(state):
        i, y, f, t, dt, last_t, coefficients = state
        next_y, next_f, error, k = runge_kutta_step(slope, y, f, t, dt)
        next_t = t + dt
        ratio = mean_error_ratio(error, rtol, atol, y, next_y)
        next_coefficients = interp_fit_dopri(y, next_y, k, dt)
        dt = jnp.clip(optimal_step_size(dt, ratio), min=0.0, max=hmax)
        accepted = [i + 1, next_y, next_f, next_t, dt, t, next_coefficients]
        refused = [i + 1, y, f, t, dt, last_t, coefficients]
        accept = ratio <= 1.0
        return [jnp.where(accept, new, old) for new, old in zip(accepted, refused, strict=True)]

    def advance(carry, target_t):
        _, *carry = while_loop(functools.partial(unfinished, target_t), step, [0, *carry])
        _, _, t, _, last_t, coefficients = carry
        fraction = (target_t - last_t) / (t - last_t)
        return carry, jnp.polyval(coefficients, fraction.astype(coefficients.dtype))

    f0 = slope(y0, ts[0])
    dt = jnp.clip(initial_step_size(slope, ts[0], y0, 4, rtol, atol, f0), min=0.0, max=hmax)
    coefficients = jnp.array([y0] * 5)
    _, ys = scan(advance, [y0, f0, ts[0], dt, ts[0], coefficients], ts[1:])
    return jnp.concatenate((y0[None], ys))


def _odeint_fwd(func, rtol, atol, mxstep, hmax, y0, ts, *args):
    ys = _odeint(func, rtol, atol, mxstep, hmax, y0, ts, *args)
    return ys, (ys, ts, args)


def _odeint_rev(func, rtol, atol, mxstep, hmax, res, g):
    ys, ts, args = res

    def augmented(state, t, *args):
        y, y_bar, *_ = state
        y_dot, pullback = vjp(func, y, -t, *args)
        return (-y_dot, *pullback(y_bar))

    def back(carry, i):
        y_bar, t0_bar, args_bar = carry
        t_bar = _dot(func(ys[i], ts[i], *args), g[i]).real
        t0_bar = t0_bar - t_bar
        state, times = (ys[i], y_bar, t0_bar, args_bar), jnp.array([-ts[i], -ts[i - 1]])
        _, *bars = odeint(augmented, state, times, *args, rtol=rtol, atol=atol, mxstep=mxstep, hmax=hmax)
        y_bar, t0_bar, args_bar = tree_map(operator.itemgetter(1), tuple(bars))
        return (y_bar + g[i - 1], t0_bar, args_bar), t_bar

    # The scan gives the cotangents of all times but the first, whose cotangent is in the final carry.
    carry = (g[-1], 0.0, tree_map(jnp.zeros_like, args))
    (y_bar, t0_bar, args_bar), rev_ts_bar = scan(back, carry, jnp.arange(len(ts) - 1, 0, -1))
    ts_bar = jnp.concatenate([jnp.array([t0_bar]), rev_ts_bar[::-1]])
    return (y_bar, ts_bar, *args_bar)


_odeint.defvjp(_odeint_fwd, _odeint_rev)
