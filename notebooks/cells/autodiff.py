# %% [markdown]
# # Derivatives
#
# `jax.grad` is the most used of a family. This notebook shows the family, rules of your own, and how much memory a derivative
# needs.

# %%
import minijax as jax
import minijax.numpy as jnp

# %% [markdown]
# ## The family
#
# | function | gives | good for |
# |---|---|---|
# | `grad`, `value_and_grad` | the gradient of a function with one number as its result | training |
# | `jvp` | a product of the Jacobian with a vector, together with the value | one direction, few inputs |
# | `vjp` | a function from cotangents to their product with the Jacobian | one output, many inputs |
# | `linearize` | the value, and the Jacobian as a linear function | many directions at one point |
# | `jacfwd`, `jacrev` | the Jacobian, column by column or row by row | small functions |
# | `hessian` | second derivatives | small functions |


# %%
def f(x):
    return jnp.array([x[0] * x[1], jnp.sin(x[1]), x[0] ** 2])


x = jnp.array([2.0, 0.5])
value, directional = jax.jvp(f, (x,), (jnp.array([1.0, 0.0]),))
value, directional

# %%
value, pullback = jax.vjp(f, x)
pullback(jnp.array([1.0, 0.0, 0.0]))

# %%
jax.jacfwd(f)(x), bool((jax.jacfwd(f)(x) == jax.jacrev(f)(x)).all())

# %% [markdown]
# `grad` takes the derivative with respect to the first argument; `argnums` chooses others, `has_aux` lets a function return
# more than its number.


# %%
def loss(w, b, x):
    y = w * x + b
    return (y**2).sum(), {"largest": y.max()}


jax.grad(loss, argnums=(0, 1), has_aux=True)(2.0, 1.0, jnp.arange(3.0))

# %% [markdown]
# ## A Hessian times a vector
#
# The Hessian of a function of a million numbers has 10¹² entries. Its product with a vector costs a few times what the
# function costs: it is the directional derivative of the gradient.


# %%
def energy(x):
    return jnp.sum(x**4) / 12 + jnp.sum(x[1:] * x[:-1])


def hessian_times(f, x, v):
    return jax.jvp(jax.grad(f), (x,), (v,))[1]


many = jnp.linspace(-1.0, 1.0, 1_000_000)
product = hessian_times(energy, many, jnp.ones_like(many))
small = jnp.linspace(-1.0, 1.0, 4)
(
    product.shape,
    jnp.allclose(
        hessian_times(energy, small, jnp.ones(4)),
        jax.hessian(energy)(small) @ jnp.ones(4),
    ),
)

# %% [markdown]
# ## A gradient for each example
#
# `vmap` of `grad`: no loop, and nothing is added up.

# %%
squared = lambda w, x, y: (jnp.dot(w, x) - y) ** 2
xs, ys = jnp.eye(3), jnp.arange(3.0)
jax.vmap(jax.grad(squared), in_axes=(None, 0, 0))(jnp.ones(3), xs, ys)

# %% [markdown]
# ## Where derivatives need care
#
# `jnp.where` computes both branches. If the branch that is not taken has an infinite derivative, the gradient is NaN, since
# 0 · ∞ is NaN:

# %%
careless = lambda x: jnp.where(x > 0, jnp.sqrt(x), 0.0)
careful = lambda x: jnp.where(x > 0, jnp.sqrt(jnp.where(x > 0, x, 1.0)), 0.0)
jax.grad(careless)(0.0), jax.grad(careful)(0.0)

# %% [markdown]
# `stop_gradient` makes a value a constant for derivatives:

# %%
jax.grad(lambda x: x * jax.lax.stop_gradient(x))(3.0)

# %% [markdown]
# ## Rules of your own
#
# `log(1 + eˣ)` overflows for large `x`. The function can be written with care, but its derivative is computed from how it is
# written, and is NaN:


# %%
def log1pexp(x):
    return jnp.log(1.0 + jnp.exp(x))


log1pexp(100.0), jax.grad(log1pexp)(100.0)

# %% [markdown]
# `custom_jvp` gives a function the rule that you know: the derivative is `1 - 1 / (1 + eˣ)`. Gradients, `vmap` and higher
# derivatives follow from it.


# %%
@jax.custom_jvp
def log1pexp(x):
    return jnp.where(x > 50, x, jnp.log(1.0 + jnp.exp(jnp.minimum(x, 50.0))))


@log1pexp.defjvp
def log1pexp_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    return log1pexp(x), (1 - 1 / (1 + jnp.exp(x))) * t


(
    log1pexp(100.0),
    jax.grad(log1pexp)(100.0),
    jax.vmap(jax.grad(jax.grad(log1pexp)))(jnp.array([0.0, 2.0])),
)

# %% [markdown]
# `custom_vjp` is for rules that act on the cotangent alone, such as clipping it. The first function returns the value and what
# the second needs.


# %%
@jax.custom_vjp
def clipped(x, limit):
    return x


clipped.defvjp(
    lambda x, limit: (x, limit), lambda limit, g: (jnp.clip(g, -limit, limit), None)
)
jax.grad(lambda x: 100 * clipped(x, 1.0))(0.0)

# %% [markdown]
# ## Implicit derivatives
#
# The root of an equation has a derivative that does not depend on how it was found. With `a = x²`, `dx/da = 1 / 2x`; `lax`
# functions such as `custom_root` take it from the equation, and Newton's loop is not differentiated.


# %%
def newton(f, x):
    def better(state):
        x, _ = state
        return x - f(x) / jax.grad(f)(x), x

    return jax.lax.while_loop(
        lambda state: abs(state[0] - state[1]) > 1e-6, better, (x, x + 1)
    )[0]


def square_root(a):
    return jax.lax.custom_root(lambda x: x**2 - a, 1.0, newton, lambda g, y: y / g(1.0))


square_root(2.0), jax.grad(square_root)(2.0), 1 / (2 * jnp.sqrt(2.0))

# %% [markdown]
# ## Memory: checkpoint
#
# A gradient keeps what the forward pass computed. `jax.checkpoint` keeps the arguments of a function alone, and computes the
# rest a second time. Here each layer keeps its input, and not the values inside it:


# %%
def layer(w, x):
    return jnp.sin(jnp.tanh(jnp.tanh(x @ w) @ w))


def network(layer, ws, x):
    for w in ws:
        x = layer(w, x)
    return x.sum()


ws, x = [jnp.eye(64)] * 12, jnp.ones((4096, 64))
for name, kind in {"as it is": layer, "checkpoint": jax.checkpoint(layer)}.items():
    _, pullback = jax.vjp(lambda ws, x, kind=kind: network(kind, ws, x), ws, x)
    kept = sum(array.nbytes for array in jax.tree.leaves(pullback))
    print(f"{name:10s} keeps {kept / 2**20:.0f} MiB")

# %% [markdown]
# What is kept can be listed without running anything, with the line that computed it:

# %%
jax.ad_checkpoint.print_saved_residuals(layer, jnp.ones((4, 4)), jnp.ones((2, 4)))

# %%
jax.ad_checkpoint.print_saved_residuals(
    jax.checkpoint(layer), jnp.ones((4, 4)), jnp.ones((2, 4))
)

# %% [markdown]
# A policy keeps some: `checkpoint_policies.dots_saveable` keeps products of matrices, `save_only_these_names` what
# `checkpoint_name` marks.

# %%
saving_dots = jax.checkpoint(layer, policy=jax.checkpoint_policies.dots_saveable)
jax.ad_checkpoint.print_saved_residuals(saving_dots, jnp.ones((4, 4)), jnp.ones((2, 4)))

# %% [markdown]
# ## Checking a derivative
#
# `check_grads` compares with finite differences, in both modes and as many orders as asked for. It raises if they differ.

# %%
from minijax.test_util import check_grads

check_grads(lambda x: jnp.sin(x) * log1pexp(x), (0.7,), order=2)
