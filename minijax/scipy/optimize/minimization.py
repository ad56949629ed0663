"""Which method minimizes, and what it gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from minijax.run.array import Array
from minijax.scipy.optimize.bfgs import minimize_bfgs
from minijax.scipy.optimize.lbfgs import minimize_lbfgs


class OptimizeResults(NamedTuple):
    """What a minimization ended with.

    x: where it ended.
    success: whether it converged.
    status: 0 where it converged, otherwise why it did not.
    fun, jac: the function's value and gradient at `x`.
    hess_inv: what is known of the inverse of the Hessian, or None.
    nfev, njev: how often the function and its gradient were evaluated.
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
    """Minimizes `fun(x, *args)`, a real scalar, for vectors x from `x0` on; as `scipy.optimize.minimize`.

    `method` is "BFGS". Its options are `maxiter` (200 for each variable), `gtol` (1e-5: the norm that the gradient may
    have), `norm` (infinity: the norm's order) and `line_search_maxiter`. `tol` has no effect. The steps cannot be
    differentiated in reverse. Raises TypeError where `args` is no tuple and ValueError for another method.
    """
    if not isinstance(args, tuple):
        raise TypeError(f"args argument to jax.scipy.optimize.minimize must be a tuple, got {args}")
    if method.lower() not in _METHODS:
        raise ValueError(f"minimize: Method {method} not recognized")
    return OptimizeResults(*_METHODS[method.lower()](lambda x: fun(x, *args), x0, **(options or {})))
