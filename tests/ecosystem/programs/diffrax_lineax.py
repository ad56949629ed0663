"""A differential equation by diffrax, a root by optimistix, linear systems and a derivative by lineax."""

import diffrax
import jax
import jax.numpy as jnp
import lineax as lx
import optimistix as optx

decay = diffrax.diffeqsolve(
    diffrax.ODETerm(lambda t, y, args: -y),
    diffrax.Tsit5(),
    t0=0.0,
    t1=2.0,
    dt0=0.1,
    y0=jnp.ones(3),
    saveat=diffrax.SaveAt(ts=jnp.linspace(0, 2, 5)),
    stepsize_controller=diffrax.PIDController(1e-5, 1e-5),
)
print(decay.ys.round(4))
root = optx.root_find(lambda y, a: y - jnp.tanh(y + a), optx.Newton(1e-5, 1e-5), jnp.array(0.1), jnp.array(1.0))
print(root.value.round(4))
b = jnp.arange(3.0)
print(lx.linear_solve(lx.MatrixLinearOperator(jnp.eye(3) * 2 + 1), b, lx.GMRES(1e-6, 1e-6)).value.round(4))
print(jax.grad(lambda a: lx.linear_solve(lx.MatrixLinearOperator(a), b).value.sum())(jnp.eye(3) * 2).round(4))
