"""Solvers of jaxopt, and a derivative through one."""

import jax
import jax.numpy as jnp
import jaxopt

start = jnp.ones(4)
print(jaxopt.LBFGS(lambda w: ((w - 3) ** 2).sum() + (w**4).sum(), maxiter=20).run(start).params.round(4))
lasso = jaxopt.ProximalGradient(lambda w: ((w - 3) ** 2).sum(), jaxopt.prox.prox_lasso, maxiter=20)
print(lasso.run(start, hyperparams_prox=0.5).params.round(4))
scipy = jaxopt.ScipyMinimize(fun=lambda w, center: ((w - center) ** 2).sum(), method="BFGS")
print(round(float(jax.grad(lambda center: scipy.run(start, center).params.sum())(2.0)), 3))
