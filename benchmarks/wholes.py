"""Whole programs of eight kinds, small, as a new process runs them once: the group `cold` measures their processes."""

from measure import jax, jnp

lax, random = jax.lax, jax.random


def _descended(loss, params, *data, steps=3, rate=1e-2):
    """Parameters after some steps of gradient descent under `jit`."""

    @jax.jit
    def step(params, *data):
        value, grads = jax.value_and_grad(loss)(params, *data)
        return jax.tree_util.tree_map(lambda p, g: p - rate * g, params, grads), value

    for _ in range(steps):
        params, value = step(params, *data)
    return params, value


def cnn():
    keys = random.split(random.key(0), 5)
    params = {
        "conv1": random.normal(keys[0], (3, 3, 1, 8)) * 0.1,
        "conv2": random.normal(keys[1], (3, 3, 8, 16)) * 0.1,
        "dense": (random.normal(keys[2], (16 * 49, 10)) * 0.05, jnp.zeros(10)),
    }
    images, labels = random.normal(keys[3], (8, 28, 28, 1)), random.randint(keys[4], (8,), 0, 10)

    def loss(params, x, y):
        for name in ("conv1", "conv2"):
            x = lax.conv_general_dilated(x, params[name], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
            x = lax.reduce_window(jax.nn.relu(x), -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        w, b = params["dense"]
        scores = jax.nn.log_softmax(x.reshape(len(x), -1) @ w + b)
        return -jnp.mean(jnp.take_along_axis(scores, y[:, None], 1))

    return _descended(loss, params, images, labels)


def gaussian_process():
    key, other = random.split(random.key(1))
    x = jnp.linspace(0, 3, 40)
    y = jnp.sin(3 * x) + 0.1 * random.normal(key, (40,))

    def kernel(p, a, b):
        return jnp.exp(p["scale"]) * jnp.exp(-0.5 * ((a[:, None] - b) / jnp.exp(p["length"])) ** 2)

    def loss(p, x, y):
        factor = jnp.linalg.cholesky(kernel(p, x, x) + 0.01 * jnp.eye(len(x)))
        alpha = jax.scipy.linalg.cho_solve((factor, True), y)
        return 0.5 * y @ alpha + jnp.sum(jnp.log(jnp.diag(factor)))

    params, value = _descended(loss, {"scale": jnp.zeros(()), "length": jnp.zeros(())}, x, y)
    new = random.uniform(other, (10,), maxval=3.0)
    return kernel(params, new, x) @ jnp.linalg.solve(kernel(params, x, x) + 0.01 * jnp.eye(40), y), value


def gpt():
    from models import transformer_step_make

    step, (params, tokens, targets) = transformer_step_make(2)
    params, value = jax.jit(step)(params, tokens, targets)
    return params, random.categorical(random.key(2), params["emb"][:4] @ params["out"])


def hmc():
    density = lambda q: -0.5 * jnp.sum(q**2 / jnp.array([1.0, 4.0])) - 0.1 * jnp.sum(q**4)

    def leap(state, _):
        q, p = state
        p = p + 0.05 * jax.grad(density)(q)
        q = q + 0.1 * p
        return (q, p + 0.05 * jax.grad(density)(q)), None

    def draw(q, key):
        first, second = random.split(key)
        p = random.normal(first, q.shape)
        (new, end), _ = lax.scan(leap, (q, p), None, length=10)
        gain = density(new) - density(q) - 0.5 * jnp.sum(end**2) + 0.5 * jnp.sum(p**2)
        q = jnp.where(jnp.log(random.uniform(second)) < gain, new, q)
        return q, q

    chains = jax.vmap(lambda q, key: lax.scan(draw, q, random.split(key, 20))[1])
    samples = jax.jit(chains)(jnp.zeros((4, 2)), random.split(random.key(3), 4))
    return samples.mean((0, 1)), samples.std((0, 1))


def implicit_layer():
    weights = {name: random.normal(random.key(i), (16, 16)) * 0.1 for i, name in enumerate("wu")}
    x = random.normal(random.key(5), (16,))
    fixed = lambda weights, x, z: jnp.tanh(weights["w"] @ z + weights["u"] @ x)

    @jax.custom_vjp
    def solve(weights, x):
        moving = lambda state: jnp.max(jnp.abs(state[0] - state[1])) > 1e-5
        return lax.while_loop(moving, lambda s: (s[1], fixed(weights, x, s[1])), (x, fixed(weights, x, x)))[1]

    def forward(weights, x):
        z = solve(weights, x)
        return z, (weights, x, z)

    def backward(saved, ct):
        weights, x, z = saved
        _, pull = jax.vjp(lambda z: fixed(weights, x, z), z)
        u = lax.fori_loop(0, 20, lambda _, u: ct + pull(u)[0], ct)
        return jax.vjp(lambda weights, x: fixed(weights, x, z), weights, x)[1](u)

    solve.defvjp(forward, backward)
    return _descended(lambda weights, x: jnp.sum(solve(weights, x) ** 2), weights, x)


def pinn():
    sizes, keys = (2, 32, 32, 1), random.split(random.key(6), 4)
    params = [
        (random.normal(k, (n, m)) * n**-0.5, jnp.zeros(m)) for k, n, m in zip(keys, sizes, sizes[1:], strict=False)
    ]

    def u(params, t, x):
        h = jnp.stack([t, x])
        for w, b in params[:-1]:
            h = jnp.tanh(h @ w + b)
        return (h @ params[-1][0] + params[-1][1])[0]

    def residual(params, t, x):
        return jax.grad(u, 1)(params, t, x) - 0.1 * jax.grad(jax.grad(u, 2), 2)(params, t, x)

    points = random.uniform(keys[3], (64, 2))
    loss = lambda params, points: jnp.mean(jax.vmap(lambda p: residual(params, p[0], p[1]))(points) ** 2)
    return _descended(loss, params, points)


def policy():
    weights = random.normal(random.key(7), (4, 2)) * 0.1

    def step(carry, key):
        state, weights = carry
        scores = state @ weights
        action = random.categorical(key, scores)
        push = jnp.where(action == 1, 1.0, -1.0)
        state = state + 0.02 * jnp.stack([state[1], push, state[3], 9.8 * state[2] - push])
        return (state, weights), (jax.nn.log_softmax(scores)[action], jnp.where(jnp.abs(state[2]) < 0.2, 1.0, 0.0))

    def loss(weights, keys):
        run = lambda keys: lax.scan(step, (jnp.zeros(4) + 0.01, weights), keys)[1]
        chances, rewards = jax.vmap(run)(keys)
        returns = jnp.cumsum(rewards[:, ::-1], 1)[:, ::-1]
        return -jnp.mean(chances * lax.stop_gradient(returns - returns.mean()))

    return _descended(loss, weights, random.split(random.key(8), (8, 30)))


def numerics():
    x = jnp.linspace(-1, 1, 50)
    matrix = jnp.exp(-jnp.abs(x[:, None] - x)) + jnp.eye(50)
    values, vectors = jnp.linalg.eigh(matrix)
    q, r = jnp.linalg.qr(matrix)
    spectrum = jnp.abs(jnp.fft.rfft(jnp.sin(20 * x)))
    fitted = jnp.polyfit(x, jnp.cos(x), 4)
    roots = [x[jnp.argmin(jnp.abs(jnp.polyval(fitted, x) - level))] for level in (0.7, 0.9)]
    spread = jnp.percentile(vectors @ q, jnp.array([5.0, 50.0, 95.0])), jnp.histogram(values, 10)[0]
    return spectrum.sum(), roots, spread, jnp.cumsum(jnp.sort(r.ravel())[::100]), jnp.interp(0.3, x, values)
