"""`minimize` and its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from minijax.run.arrays.array import Array
from minijax.scipy.optimize.bfgs import minimize_bfgs, minimize_lbfgs


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
    """
    if not isinstance(args, tuple):
        raise TypeError(f"args argument to jax.scipy.optimize.minimize must be a tuple, got {args}")
    if method.lower() not in _METHODS:
        raise ValueError(f"minimize: Method {method} not recognized")
    return OptimizeResults(*_METHODS[method.lower()](lambda x: fun(x, *args), x0, **(options or {})))
