"""The programs that several groups measure: each maker returns a function and its arguments."""

import functools

from measure import jax, jnp, np


def mlp_step_make():
    k = jax.random.key(0)
    sizes = [64, 128, 128, 10]
    p = [
        (jax.random.normal(jax.random.fold_in(k, i), (a, b)) * 0.1, jnp.zeros(b))
        for i, (a, b) in enumerate(zip(sizes, sizes[1:], strict=False))
    ]

    def loss(p, x, y):
        for w, b in p[:-1]:
            x = jax.nn.relu(x @ w + b)
        w, b = p[-1]
        return -jnp.mean(jnp.sum(jax.nn.log_softmax(x @ w + b) * y, -1))

    def step(p, x, y):
        value, g = jax.value_and_grad(loss)(p, x, y)
        return jax.tree_util.tree_map(lambda a, b: a - 0.1 * b, p, g), value

    return step, (p, jnp.ones((32, 64)), jnp.ones((32, 10)))


def transformer_step_make(L, D=64, H=4, V=128, T=32, batch=2):
    ks = jax.random.split(jax.random.key(0), L * 6 + 2)
    n = lambda k, s: jax.random.normal(k, s) * 0.02
    p = {"emb": n(ks[0], (V, D)), "out": n(ks[1], (D, V)), "layers": []}
    for i in range(L):
        k = ks[2 + i * 6 : 8 + i * 6]
        p["layers"].append(
            dict(
                q=n(k[0], (D, D)),
                k=n(k[1], (D, D)),
                v=n(k[2], (D, D)),
                o=n(k[3], (D, D)),
                w1=n(k[4], (D, 4 * D)),
                w2=n(k[5], (4 * D, D)),
                g1=jnp.ones(D),
                g2=jnp.ones(D),
            )
        )
    rms = lambda x, g: x * g * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6)

    def attn(x, layer):
        B = x.shape[0]
        q, k, v = (jnp.reshape(x @ layer[c], (B, T, H, D // H)).transpose(0, 2, 1, 3) for c in "qkv")
        s = jnp.einsum("bhtd,bhsd->bhts", q, k) / np.sqrt(D // H)
        s = jnp.where(jnp.tril(jnp.ones((T, T), bool)), s, -1e9)
        o = jnp.einsum("bhts,bhsd->bhtd", jax.nn.softmax(s, -1), v).transpose(0, 2, 1, 3).reshape(B, T, D)
        return o @ layer["o"]

    def loss(p, tok, y):
        x = p["emb"][tok]
        for layer in p["layers"]:
            x = x + attn(rms(x, layer["g1"]), layer)
            x = x + jax.nn.gelu(rms(x, layer["g2"]) @ layer["w1"]) @ layer["w2"]
        lp = jax.nn.log_softmax(x @ p["out"])
        return -jnp.mean(jnp.take_along_axis(lp, y[..., None], -1))

    def step(p, tok, y):
        value, g = jax.value_and_grad(loss)(p, tok, y)
        return jax.tree_util.tree_map(lambda a, b: a - 0.1 * b, p, g), value

    tok = jnp.zeros((batch, T), jnp.int32)
    return step, (p, tok, tok)


def placed_on_paper(make, sizes):
    """A step and its abstract arguments over a mesh: matrices are sharded over `model`, batches over `data`."""
    mesh = jax.sharding.AbstractMesh(sizes, ("data", "model"))
    step, (params, *batch) = make()

    def described(x, *spec):
        sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*spec))
        return jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding)

    params = jax.tree_util.tree_map(lambda x: described(x, *[None, "model"] if x.ndim > 1 else ()), params)
    return step, (params, *(described(x, "data") for x in batch))


def rnn_step_make(layers=3, T=100, H=32):
    k = jax.random.key(0)
    p = [
        dict(w=jax.random.normal(jax.random.fold_in(k, i), (2 * H, 4 * H)) * 0.1, b=jnp.zeros(4 * H))
        for i in range(layers)
    ]

    def cell(layer, c, x):
        h, s = c
        i, f, g, o = jnp.split(jnp.concatenate([x, h], -1) @ layer["w"] + layer["b"], 4, -1)
        s = jax.nn.sigmoid(f) * s + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(s)
        return (h, s), h

    def loss(p, xs):
        for layer in p:
            c = (jnp.zeros((xs.shape[1], H)), jnp.zeros((xs.shape[1], H)))
            _, xs = jax.lax.scan(functools.partial(cell, layer), c, xs)
        return jnp.mean(xs**2)

    def step(p, xs):
        value, g = jax.value_and_grad(loss)(p, xs)
        return jax.tree_util.tree_map(lambda a, b: a - 0.1 * b, p, g), value

    return step, (p, jnp.ones((T, 4, H)))


def vmap_hessian_make():
    ws = [jnp.ones((16, 16)) * 0.1 for _ in range(3)]

    def f(x):
        for w in ws:
            x = jnp.tanh(w @ x)
        return jnp.sum(x * x)

    return jax.vmap(jax.hessian(f)), (jnp.ones((8, 16)),)


def nested_grad_make(n):
    def f(x):
        return jnp.sin(x) * jnp.exp(-x * x) + jnp.tanh(x) / (1.0 + x * x)

    for _ in range(n):
        f = jax.grad(f)
    return f, (jnp.float32(0.7),)


def chain_make(n, kind="op"):
    def op(x, y):
        for i in range(n):
            x = jnp.sin(x) if i % 3 == 0 else x + y if i % 3 == 1 else x * y
        return x

    def jnpf(x, y):  # functions that jax wraps in an inner jit
        for _ in range(n // 4):
            x = jnp.where(x > y, x, y)
            x = jnp.clip(x, 0.0, 1.0)
            x = jax.nn.relu(x)
            x = x + jnp.mean(x)
        return x

    def idx(x, y):  # indexing and updates
        for i in range(n // 2):
            x = x.at[i % 16].set(x[(i + 1) % 16])
        return x

    return {"op": op, "jnp": jnpf, "idx": idx}[kind], (jnp.ones((16,)), jnp.ones((16,)))


def spectral_radius(mat):
    return jnp.max(jnp.abs(jnp.linalg.eigvals(mat)))


def randn(key, shape, dtype=float):
    key, sub = jax.random.split(key)
    return key, jax.random.normal(sub, shape, dtype=dtype)


def train_make():
    """A step of a 4-layer MLP that learns the spectral radius, its first state, and what draws batches."""

    def dense_init(k, i, o):
        k1, k2 = jax.random.split(k)
        return (jax.random.normal(k1, (i, o)) * np.sqrt(2.0 / (i + o)), jax.random.normal(k2, (o,)) * 1e-2)

    ks = jax.random.split(jax.random.PRNGKey(1), 4)
    params = [dense_init(k, i, o) for k, i, o in zip(ks, (4, 64, 64, 64), (64, 64, 64, 1), strict=True)]

    def net(p, x):
        x = x.ravel()
        for w, b in p[:-1]:
            x = jnp.maximum(x @ w + b, 0)
        return x @ p[-1][0] + p[-1][1]

    model = jax.vmap(net, in_axes=(None, 0))
    vm = jax.vmap(spectral_radius)
    tm = jax.tree_util.tree_map
    zeros = lambda: tm(jnp.zeros_like, params)

    def update(i, g, st):
        p, m, v = st
        m = tm(lambda m, g: 0.9 * m + 0.1 * g, m, g)
        v = tm(lambda v, g: 0.999 * v + 0.001 * g * g, v, g)
        c1 = 1 - 0.9 ** (i + 1)
        c2 = 1 - 0.999 ** (i + 1)
        p = tm(lambda p, m, v: p - 3e-4 * (m / c1) / (jnp.sqrt(v / c2) + 1e-8), p, m, v)
        return p, m, v

    def loss(p, b):
        return jnp.mean(jnp.abs(model(p, b) - vm(b)))

    def train(i, st, b, axis=None):
        value, g = jax.value_and_grad(loss)(st[0], b)
        if axis:
            value, g = jax.lax.pmean((value, g), axis)
        g = tm(jnp.conj, g)
        return update(i, g, st), value

    return train, (params, zeros(), zeros()), jax.jit(randn, static_argnums=(1, 2))
