"""pytensor compiles a graph with a loop to jax, and its gradient."""

import numpy as np
import pytensor
import pytensor.tensor as pt

x = pt.vector("x", dtype="float64")
steps = pytensor.scan(
    lambda c, x: c * 0.9 + pt.sin(x).sum(),
    outputs_info=pt.constant(np.float64(0), dtype="float64"),
    non_sequences=x,
    n_steps=5,
    return_updates=False,
)
f = pytensor.function([x], [steps, pt.grad(steps[-1], x), pt.linalg.inv(pt.outer(x, x) + pt.eye(3))], mode="JAX")
for value in f(np.arange(3.0)):
    print(np.asarray(value).round(4))
