"""Small programs, each a function of the modules that it runs on."""

import numpy as np

_rng = np.random.default_rng(7)


def _f32(*shape: int) -> np.ndarray:
    return (_rng.uniform(0.2, 1.2, shape)).astype(np.float32)


def _complex(*shape: int) -> np.ndarray:
    return (_f32(*shape) + 1j * _f32(*shape)).astype(np.complex64)


def sin_cos(jnp):
    return lambda x: jnp.sin(x) * jnp.cos(x)


def polynomial(jnp):
    return lambda x: x**3 - 2.0 * x**2 + 3.0 * x - 1.0


def quotient(jnp):
    return lambda x, y: jnp.tanh(x) / (1.0 + jnp.exp(-y))


def power(jnp):
    return lambda x, y: x**y + jnp.sqrt(x) * jnp.log1p(y)


def where(jnp):
    return lambda x: jnp.where(x > 0.5, x * 2.0, jnp.sin(x))


def clip(jnp):
    return lambda x: jnp.clip(x, 0.3, 0.9) * jnp.maximum(x, 0.5)


def broadcast(jnp):
    return lambda x, y: x[:, None] * y[None, :] + x.sum()


def norm(jnp):
    return lambda x: jnp.sqrt(jnp.sum(x * x))


def softmax(jax, jnp):
    def f(x):
        e = jnp.exp(x - jax.lax.stop_gradient(jnp.max(x, axis=-1, keepdims=True)))
        return e / jnp.sum(e, axis=-1, keepdims=True)

    return f


def variance(jnp):
    return lambda x: jnp.mean((x - jnp.mean(x)) ** 2)


def matvec(jnp):
    return lambda m, x: jnp.tanh(m @ x)


def mlp(jnp):
    def f(params, x):
        for w, b in params:
            x = jnp.tanh(x @ w + b)
        return x

    return f


def einsum(jnp):
    return lambda a, b: jnp.einsum("ij,kj->ik", a, b)


def complex_product(jnp):
    return lambda z, x: jnp.real(z * jnp.conj(z)) * x + jnp.abs(z)


def reshape_transpose(jnp):
    return lambda x: jnp.transpose(x.reshape(3, 2)) @ x.reshape(3, 2)


def concatenate(jnp):
    return lambda x, y: jnp.concatenate([x * 2.0, jnp.stack([y, y])[0], x])


def index_static(jnp):
    return lambda x: x[0] * x[1:] + x[-1] - x[::2][0]


def index_dynamic(jnp):
    return lambda x, i: x[i] * x


def index_update(jnp):
    return lambda x: x.at[0].set(2.0).at[1:].add(x[0])


def gather(jnp):
    return lambda x, i: x[i] * 2.0


def reductions(jnp):
    return lambda x: jnp.max(x, axis=0) + jnp.min(x, axis=0) + jnp.prod(x, axis=0)


def sort(jnp):
    return lambda x: jnp.sort(x) * jnp.cumsum(x)


def cond(jax, jnp):
    return lambda x: jax.lax.cond(x[0] > 0.5, jnp.sin, lambda y: y * 2.0 + x, x)


def switch(jax, jnp):
    return lambda i, x: jax.lax.switch(i, [jnp.sin, jnp.cos, lambda y: y * y], x)


def scan(jax, jnp):
    return lambda c, xs: jax.lax.scan(lambda c, x: (jnp.sin(c) * x, c + x), c, xs)


def rnn(jax, jnp):
    def f(w, h, xs):
        return jax.lax.scan(lambda h, x: (jnp.tanh(w @ h + x), h), h, xs)[0]

    return f


def fori(jax, jnp):
    return lambda x: jax.lax.fori_loop(0, 3, lambda i, c: jnp.sin(c) * x + i, x)


def while_loop(jax, jnp):
    return lambda x: jax.lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * x), (0, x))[1]


def custom_jvp(jax, jnp):
    @jax.custom_jvp
    def f(x, y):
        return jnp.sin(x) * y

    @f.defjvp
    def f_jvp(primals, tangents):
        (x, y), (dx, dy) = primals, tangents
        return f(x, y), jnp.cos(x) * dx * y + jnp.sin(x) * dy

    return f


def custom_vjp(jax, jnp):
    @jax.custom_vjp
    def f(x, y):
        return jnp.sin(x) * y

    f.defvjp(lambda x, y: (f(x, y), (x, y)), lambda r, ct: (jnp.cos(r[0]) * ct * r[1], jnp.sin(r[0]) * ct))
    return f


def inner_jit(jax, jnp):
    @jax.jit
    def g(x, y):
        return jnp.sin(x) * y, x

    return lambda x: g(x, x)[0] + g(x, 2.0 * x)[1]


def captured(jax, jnp):
    return lambda x: jax.jit(lambda y: y * x + jnp.arange(3.0))(jnp.cos(x))


def remat(jax, jnp):
    return lambda x: jax.checkpoint(lambda y: jnp.sin(jnp.sin(y)) * x)(x)


def tree_arguments(jnp):
    return lambda p, x: {"out": p["w"] @ x + p["b"], "aux": (x, None)}


def integers(jnp):
    return lambda n, x: (n + 1) * x


def weak_types(jnp):
    return lambda x: (x * 2, x + 1.0, 3.0)


def weak_scalar(jnp):
    return lambda x: (x * 2, jnp.sin(x) / x, jnp.where(x > 0, x, 1), x**2)


def weak_and_strong(jnp):
    return lambda x, y: jnp.maximum(x, 0) * y + jnp.float16(2) * x


def weak_scan(jax, jnp):
    return lambda x: jax.lax.scan(lambda c, y: (c * y + x, c * y), x, jnp.arange(3.0))


def weak_scan_of_carries(jax, jnp):
    return lambda x: jax.lax.scan(lambda c, y: (c * y + 1, c), x, jnp.arange(3.0))[1].sum()


def weak_fori(jax, jnp):
    return lambda x: jax.lax.fori_loop(0, 3, lambda i, c: jnp.sin(c) * jnp.float32(2), x)


def weak_cond(jax, jnp):
    return lambda x: jax.lax.cond(x > 1, lambda c: c * jnp.float32(2), lambda c: jnp.sin(c) + jnp.float32(1), x)


def weak_custom(jax, jnp):
    f = jax.custom_vjp(lambda x: x * jnp.float32(2))
    f.defvjp(lambda x: (f(x), x), lambda x, ct: (ct * jnp.cos(x),))
    return lambda x: f(x) * x


X, M = _f32(3), _f32(3, 3)
PROGRAMS = [
    (sin_cos, (X,)), (polynomial, (X,)), (quotient, (X, _f32(3))), (power, (X, _f32(3))), (where, (X,)),
    (clip, (X,)), (broadcast, (X, _f32(2))), (norm, (X,)), (softmax, (M,)), (variance, (X,)), (matvec, (M, X)),
    (mlp, ([(M, X), (_f32(3, 3), X)], X)), (einsum, (_f32(2, 3), _f32(4, 3))),
    (complex_product, (_complex(3), X)), (reshape_transpose, (_f32(6),)), (concatenate, (X, _f32(3))),
    (index_static, (X,)), (index_dynamic, (X, 1)), (index_update, (X,)), (gather, (X, np.array([0, 2], np.int32))),
    (reductions, (M,)), (sort, (X,)), (cond, (X,)), (switch, (1, X)), (scan, (np.float32(0.5), X)),
    (rnn, (M, X, _f32(4, 3))), (fori, (X,)), (while_loop, (X,)), (custom_jvp, (X, _f32(3))),
    (custom_vjp, (X, _f32(3))), (inner_jit, (X,)), (captured, (X,)), (remat, (X,)),
    (tree_arguments, ({"w": M, "b": X}, X)), (integers, (2, X)), (weak_types, (X,)), (weak_scalar, (1.5,)), (weak_and_strong, (1.5, np.float16(2.5))),
    (weak_scan, (1.5,)), (weak_scan_of_carries, (1.5,)), (weak_fori, (1.5,)), (weak_cond, (1.5,)), (weak_custom, (1.5,)),
]  # fmt: skip
