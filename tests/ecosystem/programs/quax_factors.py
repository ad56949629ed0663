"""An array type of the user's by quax, arrays times a known factor: under jit, grad, vmap and scan."""

import equinox as eqx
import jax
import jax.numpy as jnp
import quax


class Scaled(quax.ArrayValue):
    """An array times a factor that is known when it is traced."""

    array: jax.Array
    factor: float = eqx.field(static=True)

    def aval(self):
        return jax.core.ShapedArray(self.array.shape, self.array.dtype)

    def materialise(self):
        return self.array * self.factor


@quax.register(jax.lax.mul_p)
def _(x: Scaled, y: Scaled, **params):
    return Scaled(x.array * y.array, x.factor * y.factor)


@quax.register(jax.lax.sin_p)
def _(x: Scaled, **params):
    return Scaled(jnp.sin(x.array * x.factor), 1.0)


def f(x, y):
    return jnp.sin(x * y) + 1


x, y = Scaled(jnp.arange(3.0), 0.5), Scaled(jnp.ones(3), 2.0)
print(quax.quaxify(f)(x, y))
print(quax.quaxify(jax.jit(f))(x, y))
print(quax.quaxify(lambda x, y: x * y)(x, y).factor)
print(quax.quaxify(jax.vmap(f))(x, y))
print(quax.quaxify(jax.grad(lambda y: f(jnp.arange(3.0), y).sum()))(jnp.ones(3)))


@jax.jit
def step(x):
    return quax.quaxify(lambda x: jax.lax.scan(lambda c, _: (c * 1.5, c.sum()), x, length=3))(x)


print(step(jnp.arange(3.0)))
linear = quax.quaxify(eqx.nn.Linear(3, 2, key=jax.random.PRNGKey(0)))
print(linear(jnp.arange(3.0)).round(4))
