"""Rosenbrock's function, minimized by optax's L-BFGS with its line search."""

import jax.numpy as jnp
import optax


def rosenbrock(w):
    return jnp.sum(100.0 * (w[1:] - w[:-1] ** 2) ** 2 + (1.0 - w[:-1]) ** 2)


solver = optax.lbfgs()
w = jnp.zeros(8)
state = solver.init(w)
value_and_grad = optax.value_and_grad_from_state(rosenbrock)
for _ in range(10):
    value, grad = value_and_grad(w, state=state)
    updates, state = solver.update(grad, state, w, value=value, grad=grad, value_fn=rosenbrock)
    w = optax.apply_updates(w, updates)
    print(f"{float(rosenbrock(w)):.4f}")
