"""Training steps and other programs of models, for one device."""

import functools

from .registry import B, F, H, I, add, program


@program(options=dict(donate_argnums=0))
def mlp_step(jax, jnp, lax):
    def loss(ws, x, y):
        for w in ws:
            x = jax.nn.relu(x @ w)
        return jnp.mean((x - y) ** 2)

    def step(w1, w2, w3, x, y):
        value, grads = jax.value_and_grad(loss)((w1, w2, w3), x, y)
        return [w - 0.1 * g for w, g in zip((w1, w2, w3), grads, strict=True)], value

    return step, ((32, 64), F), ((64, 64), F), ((64, 8), F), ((16, 32), F), ((16, 8), F)


def _attention(jax, jnp, q, k, v):
    scores = jnp.einsum("bthd,bshd->bhts", q, k) / q.shape[-1] ** 0.5
    mask = jnp.tril(jnp.ones((q.shape[1],) * 2, bool))
    return jnp.einsum("bhts,bshd->bthd", jax.nn.softmax(jnp.where(mask, scores, -1e9)), v)


def _transformer(jax, jnp, params, x):
    for wq, wo, w1, w2 in params:
        h = (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)
        q, k, v = jnp.split((h @ wq).reshape(*x.shape[:2], 4, -1), 3, -1)
        x = x + _attention(jax, jnp, q, k, v).reshape(x.shape) @ wo
        x = x + jax.nn.gelu(x @ w1) @ w2
    return x


def transformer_step(jax, jnp, dtype=F, specs=((None,) * 2,) * 4, batch=(None,) * 3):
    def step(*args):
        *ws, x = args
        layers = [ws[i : i + 4] for i in range(0, len(ws), 4)]
        loss, grads = jax.value_and_grad(lambda p: jnp.mean(_transformer(jax, jnp, p, x).astype(F) ** 2))(layers)
        return jax.tree.map(lambda w, g: w - 0.01 * g, layers, grads), loss

    shapes = (64, 192), (64, 64), (64, 256), (256, 64)
    types = [(shape, dtype, spec) for _ in range(2) for shape, spec in zip(shapes, specs, strict=True)]
    return step, *types, ((16, 32, 64), dtype, batch)


for dtype in (F, B):
    add(f"transformer step {dtype}", lambda jax, jnp, lax, dtype=dtype: transformer_step(jax, jnp, dtype))
add(
    "attention",
    lambda jax, jnp, lax: (functools.partial(jax.nn.dot_product_attention, is_causal=True), *[((2, 32, 4, 16), B)] * 3),
)


@program()
def convolution_net(jax, jnp, lax):
    def loss(w1, w2, x):
        for w in (w1, w2):
            x = jax.nn.relu(lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))
        return jnp.mean(x**2)

    return jax.grad(loss, (0, 1)), ((3, 3, 3, 16), F), ((3, 3, 16, 8), F), ((4, 16, 16, 3), F)


@program()
def lstm(jax, jnp, lax):
    def f(w, xs):
        def step(state, x):
            h, c = state
            i, f, g, o = jnp.split(jnp.concatenate([x, h], -1) @ w, 4, -1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        zeros = jnp.zeros((xs.shape[1], 16))
        return lax.scan(step, (zeros, zeros), xs)[1].sum()

    return jax.grad(f), ((24, 64), F), ((10, 4, 8), F)


# ---- more models ------------------------------------------------------------------------------------


def trained(name, loss, shapes, *batch, dtype=F, **fields):
    """Adds a step of gradient descent for loss(jax, parameters, *batch), which donates the parameters."""

    def make(jax, jnp, lax):
        def step(*args):
            params = dict(zip(shapes, args, strict=False))
            value, grads = jax.value_and_grad(lambda p: loss(jax, p, *args[len(shapes) :]))(params)
            return jax.tree.map(lambda w, g: w - 0.1 * g.astype(w.dtype), params, grads), value

        return step, *[(shape, dtype) for shape in shapes.values()], *batch

    add(name, make, options=dict(donate_argnums=tuple(range(len(shapes)))), **fields)


def _norm(jax, x):
    return x * jax.lax.rsqrt((x.astype(F) ** 2).mean(-1, keepdims=True) + 1e-6).astype(x.dtype)


def _rotated(jax, x):
    """Rotary positions."""
    half = x.shape[-1] // 2
    angle = jax.numpy.arange(x.shape[1])[:, None, None] / 10000 ** (jax.numpy.arange(half) / half)
    a, b, cos, sin = (
        x[..., :half],
        x[..., half:],
        jax.numpy.cos(angle).astype(x.dtype),
        jax.numpy.sin(angle).astype(x.dtype),
    )
    return jax.numpy.concatenate([a * cos - b * sin, a * sin + b * cos], -1)


def llama(jax, p, tokens):
    """Grouped attention with rotary positions, gated MLP, tied embedding; the loss of the next token."""
    x = p["embed"][tokens]
    h = _norm(jax, x)
    q, k, v = (_h.reshape(*x.shape[:2], -1, 16) for _h in (h @ p["wq"], h @ p["wk"], h @ p["wv"]))
    q, k = _rotated(jax, q), _rotated(jax, k)
    x = x + jax.nn.dot_product_attention(q, k, v, is_causal=True).reshape(*x.shape[:2], -1) @ p["wo"]
    h = _norm(jax, x)
    x = x + (jax.nn.silu(h @ p["gate"]) * (h @ p["up"])) @ p["down"]
    logits = (_norm(jax, x) @ p["embed"].T).astype(F)[:, :-1]
    return -jax.numpy.take_along_axis(jax.nn.log_softmax(logits), tokens[:, 1:, None], -1).mean()


LLAMA = dict(
    embed=(256, 64), wq=(64, 64), wk=(64, 32), wv=(64, 32), wo=(64, 64), gate=(64, 128), up=(64, 128), down=(128, 64)
)
for dtype in (F, B):
    trained(f"llama step {dtype}", llama, LLAMA, ((4, 32), I), dtype=dtype)


def _fp8(jax, x, w):
    """A product in 8 bits with scales by the largest values."""
    scale = lambda a: jax.lax.stop_gradient(jax.numpy.abs(a).max() / 448 + 1e-9)  # noqa: E731
    a, b = ((y / scale(y)).astype("float8_e4m3fn") for y in (x, w))
    return jax.lax.dot_general(a, b, (((x.ndim - 1,), (0,)), ((), ())), preferred_element_type=F) * scale(x) * scale(w)


trained("mlp step in 8 bits", lambda jax, p, x: (_fp8(jax, jax.nn.gelu(_fp8(jax, x, p["a"])), p["b"]) ** 2).mean(), dict(a=(64, 128), b=(128, 64)), ((32, 64), F))  # fmt: skip


def experts(jax, p, x):
    """The best two of four experts for each row."""
    weights, chosen = jax.lax.top_k(jax.nn.softmax(x @ p["router"]), 2)
    mask = (jax.nn.one_hot(chosen, 4) * weights[..., None]).sum(1)
    h = jax.nn.relu(jax.numpy.einsum("nd,edh->enh", x, p["up"]))
    return (jax.numpy.einsum("enh,ehd,ne->nd", h, p["down"], mask) ** 2).mean()


def ragged_experts(jax, p, x):
    """Rows sorted by their expert, and one ragged product for all."""
    chosen = jax.numpy.argmax(x @ p["router"], -1)
    order = jax.numpy.argsort(chosen)
    sizes = jax.numpy.bincount(chosen, length=4)
    h = jax.nn.relu(jax.lax.ragged_dot(x[order], p["up"], sizes))
    return (jax.lax.ragged_dot(h, p["down"], sizes)[jax.numpy.argsort(order)] ** 2).mean()


EXPERTS = dict(router=(32, 4), up=(4, 32, 64), down=(4, 64, 32))
trained("experts step", experts, EXPERTS, ((64, 32), F))
trained("ragged experts step", ragged_experts, EXPERTS, ((64, 32), F))


def _normed(jax, x, scale, shift):
    mean, var = x.mean((0, 1, 2)), x.var((0, 1, 2))
    return (x - mean) * jax.lax.rsqrt(var + 1e-5) * scale + shift


def _conv(jax, x, w, stride=1):
    return jax.lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def resnet(jax, p, x, labels):
    """A residual block with batch norm, pooling and a classifier."""
    x = jax.nn.relu(_normed(jax, _conv(jax, x, p["w0"]), p["s0"], p["b0"]))
    h = jax.nn.relu(_normed(jax, _conv(jax, x, p["w1"], 2), p["s1"], p["b1"]))
    h = _conv(jax, h, p["w2"]) + _conv(jax, x, p["skip"], 2)
    logits = jax.nn.relu(h).mean((1, 2)) @ p["head"]
    return -(jax.nn.one_hot(labels, 10) * jax.nn.log_softmax(logits)).sum(-1).mean()


RESNET = dict(
    w0=(3, 3, 3, 8),
    s0=(8,),
    b0=(8,),
    w1=(3, 3, 8, 16),
    s1=(16,),
    b1=(16,),
    w2=(3, 3, 16, 16),
    skip=(1, 1, 8, 16),
    head=(16, 10),
)
trained("resnet step", resnet, RESNET, ((8, 16, 16, 3), B), ((8,), I), dtype=B)


def autoencoder(jax, p, seed, x):
    """A variational autoencoder: draws its code."""
    mean, log = jax.numpy.split(jax.nn.relu(x @ p["a"]) @ p["b"], 2, -1)
    z = mean + jax.numpy.exp(log / 2) * jax.random.normal(jax.random.key(seed), mean.shape)
    y = jax.nn.sigmoid(jax.nn.relu(z @ p["c"]) @ p["d"])
    return ((x - y) ** 2).sum(-1).mean() - 0.5 * (1 + log - mean**2 - jax.numpy.exp(log)).sum(-1).mean()


trained("autoencoder step", autoencoder, dict(a=(64, 32), b=(32, 16), c=(8, 32), d=(32, 64)), ((), "uint32"), ((16, 64), F))  # fmt: skip


def diffusion(jax, p, seed, x):
    """Predicts the noise that was added for a random time."""
    first, second = jax.random.split(jax.random.key(seed))
    t = jax.random.uniform(first, (x.shape[0], 1, 1, 1))
    noise = jax.random.normal(second, x.shape)
    noisy = jax.numpy.cos(t * 1.57) * x + jax.numpy.sin(t * 1.57) * noise
    time = jax.numpy.sin(t * jax.numpy.arange(1.0, 9.0))
    h = jax.nn.silu(_conv(jax, noisy, p["a"]) + time @ p["time"])
    return ((_conv(jax, h, p["b"]) - noise) ** 2).mean()


trained("diffusion step", diffusion, dict(a=(3, 3, 3, 16), b=(3, 3, 16, 3), time=(8, 16)), ((), "uint32"), ((4, 8, 8, 3), F))  # fmt: skip


def recurrent(jax, p, xs):
    """A gated recurrent unit over time."""

    def cell(h, x):
        z, r = jax.numpy.split(jax.nn.sigmoid(x @ p["x"] + h @ p["h"]), 2, -1)
        return (h := (1 - z) * h + z * jax.numpy.tanh(x @ p["xn"] + (r * h) @ p["hn"])), h

    return (jax.lax.scan(cell, jax.numpy.zeros((xs.shape[1], 16)), xs)[1] ** 2).mean()


trained("recurrent step", recurrent, dict(x=(8, 32), h=(16, 32), xn=(8, 16), hn=(16, 16)), ((12, 4, 8), F))


def state_space(jax, p, x):
    """A diagonal linear recurrence, by an associative scan."""
    a = jax.nn.sigmoid(x @ p["a"])
    _, h = jax.lax.associative_scan(lambda l, r: (l[0] * r[0], l[1] * r[0] + r[1]), (a, x @ p["b"]), axis=1)  # noqa: E741
    return (jax.nn.silu(x @ p["gate"]) * h @ p["out"]).var()


trained("state space step", state_space, dict(a=(16, 32), b=(16, 32), gate=(16, 32), out=(32, 16)), ((4, 64, 16), F))


def graph(jax, p, x, senders, receivers):
    """Messages along the edges of a graph, added at their ends."""
    messages = jax.nn.relu(jax.numpy.concatenate([x[senders], x[receivers]], -1) @ p["edge"])
    return (jax.ops.segment_sum(messages, receivers, x.shape[0]) @ p["node"]).var()


trained("graph step", graph, dict(edge=(32, 32), node=(32, 8)), ((50, 16), F), ((200,), I), ((200,), I))


def physics(jax, p, x):
    """The heat equation's residual: second derivatives inside of the loss."""
    u = lambda x: (jax.numpy.tanh(x @ p["a"]) @ p["b"])[0]  # noqa: E731
    residual = lambda x: jax.grad(u)(x)[1] - jax.hessian(u)(x)[0, 0]  # noqa: E731
    return (jax.vmap(residual)(x) ** 2).mean()


trained("physics step", physics, dict(a=(2, 16), b=(16, 1)), ((32, 2), F))


def contrastive(jax, p, x, y):
    a, b = ((h := z @ p["w"]) / jax.numpy.linalg.norm(h, axis=-1, keepdims=True) for z in (x, y))
    return -jax.numpy.diagonal(jax.nn.log_softmax(a @ b.T / 0.1)).mean()


trained("contrastive step", contrastive, dict(w=(32, 16)), ((16, 32), F), ((16, 32), F))
trained("low rank step", lambda jax, p, x, w: ((x @ (jax.lax.stop_gradient(w) + p["a"] @ p["b"])) ** 2).mean(), dict(a=(64, 4), b=(4, 64)), ((16, 64), B), ((64, 64), B), dtype=B)  # fmt: skip


def adam(jax, params, grads, m, v, t):
    """One step of Adam, with decay; the state is as the parameters."""
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, grads)
    v = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g**2, v, grads)
    move = lambda w, m, v: w - 1e-3 * (m / (1 - 0.9**t) / (jax.numpy.sqrt(v / (1 - 0.99**t)) + 1e-8) + 0.01 * w)  # noqa: E731
    return jax.tree.map(move, params, m, v), m, v


@program(options=dict(donate_argnums=tuple(range(6))))
def adam_step(jax, jnp, lax):
    def step(a, b, ma, mb, va, vb, t, x):
        value, grads = jax.value_and_grad(lambda p: (jax.nn.relu(x @ p[0]) @ p[1]).var())((a, b))
        norm = jnp.sqrt(sum((g**2).sum() for g in grads))
        grads = jax.tree.map(lambda g: g * jnp.minimum(1, 1 / norm), grads)
        return *adam(jax, (a, b), grads, (ma, mb), (va, vb), t), value

    return step, *[((64, 128), F), ((128, 8), F)] * 3, ((), F), ((32, 64), F)


@program()
def accumulated_step(jax, jnp, lax):
    def step(w, xs):
        def body(total, x):
            return jax.tree.map(jnp.add, total, jax.value_and_grad(lambda w: jnp.tanh(x @ w).var())(w)), None

        (loss, grad), _ = lax.scan(body, (jnp.zeros(()), jnp.zeros_like(w)), xs)
        return w - grad / len(xs), loss / len(xs)

    return step, ((64, 64), F), ((4, 16, 64), F)


@program()
def scaled_loss_step(jax, jnp, lax):
    def step(w, scale, x):
        grads = jax.grad(lambda w: (jnp.tanh(x @ w.astype(H)).astype(F) ** 2).mean() * scale)(w) / scale
        is_good = jnp.isfinite(grads).all()
        return jnp.where(is_good, w - 0.1 * grads, w), jnp.where(is_good, scale, scale / 2)

    return step, ((64, 64), F), ((), F), ((16, 64), H)


@program(options=dict(donate_argnums=(1, 2)))
def decoding_step(jax, jnp, lax):
    """One token with a cache of keys and values, drawn from the best five."""

    def step(w, keys, values, position, token, seed):
        x = w[token]
        q = x.reshape(-1, 1, 4, 16)
        keys, values = (lax.dynamic_update_slice(c, q, (0, position, 0, 0)) for c in (keys, values))
        y = jax.nn.dot_product_attention(q, keys, values, mask=jnp.arange(keys.shape[1]) <= position)
        best, index = lax.top_k((y.reshape(-1, 64) @ w.T).astype(F), 5)
        drawn = jax.random.categorical(jax.random.key(seed), best)
        return jnp.take_along_axis(index, drawn[:, None], 1)[:, 0], keys, values

    return step, ((128, 64), B), *[((2, 32, 4, 16), B)] * 2, ((), I), ((2,), I), ((), "uint32")


@program()
def decoding_loop(jax, jnp, lax):
    def f(w, tokens):
        def body(state):
            i, tokens = state
            logits = w[tokens].cumsum(1)[:, i] @ w.T
            return i + 1, tokens.at[:, i + 1].set(jnp.argmax(logits, -1).astype(tokens.dtype))

        return lax.while_loop(lambda s: (s[0] < 15) & (s[1][:, s[0]] != 0).any(), body, (0, tokens))[1]

    return f, ((64, 32), F), ((2, 16), I)


@program()
def integrated(jax, jnp, lax):
    odeint = __import__(f"{jax.__name__}.experimental.ode", fromlist=["odeint"]).odeint
    return (
        jax.grad(lambda w, y: odeint(lambda y, t: jnp.tanh(w @ y), y, jnp.linspace(0.0, 1.0, 3)).sum()),
        ((8, 8), F),
        ((8,), F),
    )


@program()
def rewarded_step(jax, jnp, lax):
    def step(w, s, a, r, s2):
        target = r + 0.9 * lax.stop_gradient(jnp.max(s2 @ w, -1))
        loss = lambda w: ((jnp.take_along_axis(s @ w, a[:, None], 1)[:, 0] - target) ** 2).mean()  # noqa: E731
        return w - 0.1 * jax.grad(loss)(w)

    return step, ((16, 4), F), ((32, 16), F), ((32,), I), ((32,), F), ((32, 16), F)


@program()
def many_models(jax, jnp, lax):
    """One step for each of eight models."""
    step = jax.vmap(lambda w, x: w - 0.1 * jax.grad(lambda w: jnp.tanh(x @ w).var())(w), in_axes=(0, None))
    return step, ((8, 32, 16), F), ((64, 32), F)


@program()
def layer_gradients(jax, jnp, lax):
    """The norm of each example's gradient."""
    loss = lambda w, x: jnp.tanh(x @ w).sum()  # noqa: E731
    return jax.vmap(lambda w, x: jnp.linalg.norm(jax.grad(loss)(w, x)), (None, 0)), ((32, 16), F), ((64, 32), F)


@program()
def transformer_in_scan(jax, jnp, lax):
    """Layers in one scan, each made again for the gradient."""

    def step(wq, wo, w1, w2, x):
        layer = jax.checkpoint(lambda x, ws: (_transformer(jax, jnp, [ws], x), None))
        loss = lambda ws: (lax.scan(layer, x, ws)[0].astype(F) ** 2).mean()  # noqa: E731
        ws = (wq, wo, w1, w2)
        return jax.tree.map(lambda w, g: w - 0.1 * g, ws, jax.grad(loss)(ws))

    return step, ((3, 64, 192), B), ((3, 64, 64), B), ((3, 64, 256), B), ((3, 256, 64), B), ((4, 32, 64), B)
