"""Programs to compile for accelerators: each a function of (jax, jnp, lax) that gives a function and its arguments' types.

Types are pairs (shape, dtype); those of a sharded program have a third part, a partition spec as a tuple.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

# The topologies of each machine with up to four and up to sixteen devices.
TPUS = {"v5e": ("v5e:2x2", "v5e:4x4"), "v6e": ("v6e:2x2", "v6e:4x4"), "v5p": ("v5p:2x2x1", "v5p:2x2x4")}
MACHINES = (*TPUS, "h100")


class Program(NamedTuple):
    """A program, and the mesh that it runs over: sizes and names of its axes; none for one device."""

    make: Callable[[Any, Any, Any], tuple]
    mesh: dict[str, int] | None = None
    explicit: bool = False
    options: dict[str, Any] = {}  # of jit


PROGRAMS: dict[str, Program] = {}
F, B, H, I = "float32", "bfloat16", "float16", "int32"  # noqa: E741


def add(name: str, make: Callable[[Any, Any, Any], tuple], **fields: Any) -> None:
    assert name not in PROGRAMS, name
    PROGRAMS[name] = Program(make, **fields)


def program(**fields: Any) -> Callable:
    """Adds a function under its own name."""

    def added(make):
        add(make.__name__, make, **fields)
        return make

    return added


# ---- operations -------------------------------------------------------------------------------------

UNARY = """
abs acos acosh asin asinh atan atanh bessel_i0e bessel_i1e cbrt ceil cos cosh digamma erf erf_inv erfc exp exp2 expm1
floor is_finite lgamma log log1p logistic neg reciprocal round rsqrt sign sin sinh sqrt square tan tanh
""".split()
BINARY = "add sub mul div rem pow max min atan2 nextafter igamma igammac zeta polygamma random_gamma_grad".split()


def _together(names, lax, count):
    """The operations of a list in one program, each on arguments of its own."""
    return lambda *xs: [getattr(lax, name)(*xs[:count]) for name in names]


for i in range(0, len(UNARY), 6):
    names = UNARY[i : i + 6]
    for dtype in (F, B):
        add(
            f"unary {names[0]} to {names[-1]} {dtype}",
            lambda jax, jnp, lax, names=names, dtype=dtype: (_together(names, lax, 1), ((7, 130), dtype)),
        )
for name in BINARY:
    add(f"binary {name}", lambda jax, jnp, lax, name=name: (getattr(lax, name), ((7, 130), F), ((7, 130), F)))
for (
    dtype
) in "int4 int8 uint8 int16 int32 uint32 int64 bool float8_e4m3fn float8_e5m2 float16 float64 complex64".split():

    def converted(jax, jnp, lax, dtype=dtype):
        return (
            (lambda x, y: (x.astype(F) if dtype != "complex64" else jnp.real(x), y.astype(dtype))),
            ((8, 128), dtype),
            ((8, 128), F),
        )

    add(f"converted {dtype}", converted)
for dtype in ("int8", "int16", "int32", "uint32"):

    def integers(jax, jnp, lax, dtype=dtype):
        return (
            lambda x, y: (x & y, x ^ y, ~x, x << 2, x >> 1, lax.population_count(x), lax.clz(x), x // 3, x % y, x * y),
            ((8, 128), dtype), ((8, 128), dtype),
        )  # fmt: skip

    add(f"integers {dtype}", integers)

for name in "sum prod max min argmax argmin any all mean var std median logsumexp".split():

    def reduced(jax, jnp, lax, name=name):
        f = jax.nn.logsumexp if name == "logsumexp" else getattr(jnp, name)
        return (lambda x: (f(x), f(x, 0), f(x, 1))), ((33, 257), F)

    add(f"reduced {name}", reduced)
for name in "cumsum cumprod cummax cumlogsumexp".split():
    add(f"cumulative {name}", lambda jax, jnp, lax, name=name: (lambda x: getattr(lax, name)(x, axis=1), ((9, 300), F)))
for name in "sort argsort flip unique_counts nonzero".split():

    def ordered(jax, jnp, lax, name=name):
        kwargs = dict(size=30) if name in ("unique_counts", "nonzero") else {}
        return (lambda x: getattr(jnp, name)(x, **kwargs)), ((300,), F)

    add(f"ordered {name}", ordered)
add("sorted pairs", lambda jax, jnp, lax: (lambda k, v: lax.sort((k, v), num_keys=1), ((20, 50), I), ((20, 50), F)))
add("top_k", lambda jax, jnp, lax: (lambda x: lax.top_k(x, 5), ((20, 500), F)))
add("approx_max_k", lambda jax, jnp, lax: (lambda x: lax.approx_max_k(x, 5), ((20, 5000), F)))
for name, f in {
    "transpose": lambda x: x.transpose(2, 0, 1),
    "reshape": lambda x: x.reshape(-1, 6),
    "slice": lambda x: x[1:, ::2, -3:],
    "gather": lambda x: x[:, [1, 0, 2], None],
    "mask": lambda x: x * (x > 0),
    "update": lambda x: x.at[0, 1].set(0.0),
    "scatter add": lambda x: x.at[[0, 1, 1]].add(1.0),
    "scatter max": lambda x: x.at[:, [0, 2]].max(2.0),
}.items():
    add(f"array {name}", lambda jax, jnp, lax, f=f: (f, ((4, 6, 10), F)))
for name, f in {
    "pad": lambda jnp, x: jnp.pad(x, ((1, 2), (0, 3)), mode="reflect"),
    "roll": lambda jnp, x: jnp.roll(x, 3, 1),
    "concatenate": lambda jnp, x: jnp.concatenate([x, x * 2], 1),
    "take_along_axis": lambda jnp, x: jnp.take_along_axis(x, jnp.argsort(x, 1), 1),
    "where": lambda jnp, x: jnp.where(x > 0, x, -x),
    "searchsorted": lambda jnp, x: jnp.searchsorted(x[0], x[1]),
    "histogram": lambda jnp, x: jnp.histogram(x, 10),
    "interp": lambda jnp, x: jnp.interp(x[0], x[1], x[2]),
    "convolve": lambda jnp, x: jnp.convolve(x[0], x[1]),
    "fft": lambda jnp, x: jnp.fft.fft(x),
    "rfft": lambda jnp, x: jnp.fft.irfft(jnp.fft.rfft(x)),
    "fft2": lambda jnp, x: jnp.fft.fft2(x),
    "einsum": lambda jnp, x: jnp.einsum("ij,kj->ik", x, x),
    "outer": lambda jnp, x: jnp.outer(x[0], x[1]),
    "kron": lambda jnp, x: jnp.kron(x[:3, :3], x[:2, :2]),
    "tril": lambda jnp, x: jnp.tril(x) + jnp.triu(x, 1),
}.items():
    add(f"numpy {name}", lambda jax, jnp, lax, f=f: (functools.partial(f, jnp), ((12, 64), F)))

# ---- products ---------------------------------------------------------------------------------------

for a, b, out in (
    (F, F, F),
    (B, B, F),
    (B, B, B),
    (H, H, H),
    ("int8", "int8", I),
    ("float8_e4m3fn", "float8_e4m3fn", F),
):

    def product(jax, jnp, lax, a=a, b=b, out=out):
        return (lambda x, y: lax.dot(x, y, preferred_element_type=out)), ((128, 256), a), ((256, 128), b)

    add(f"product {a} {b} {out}", product)
for precision in ("default", "high", "highest"):

    def at_precision(jax, jnp, lax, precision=precision):
        return (lambda x, y: jnp.matmul(x, y, precision=precision)), ((128, 256), F), ((256, 128), F)

    add(f"product {precision}", at_precision)
add("batched product", lambda jax, jnp, lax: (jnp.matmul, ((4, 128, 64), F), ((4, 64, 32), F)))
add("ragged product", lambda jax, jnp, lax: (lax.ragged_dot, ((64, 32), F), ((4, 32, 16), F), ((4,), I)))
for name, kwargs in {
    "same": dict(window_strides=(1, 1), padding="SAME"),
    "strided": dict(window_strides=(2, 2), padding="VALID"),
    "dilated": dict(window_strides=(1, 1), padding="SAME", rhs_dilation=(2, 2)),
}.items():
    for dtype in (F, B):

        def convolution(jax, jnp, lax, kwargs=kwargs, dtype=dtype):
            return functools.partial(lax.conv_general_dilated, **kwargs), ((2, 8, 16, 16), dtype), ((8, 8, 3, 3), dtype)

        add(f"convolution {name} {dtype}", convolution)
for name in ("max", "avg"):

    def pooled(jax, jnp, lax, name=name):
        init, op = (-float("inf"), lax.max) if name == "max" else (0.0, lax.add)
        pool = lambda x: lax.reduce_window(x, init, op, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")  # noqa: E731
        return jax.grad(lambda x: (pool(x) ** 2).sum()), ((2, 8, 8, 4), F)

    add(f"gradient of pooling {name}", pooled)

# ---- linear algebra ---------------------------------------------------------------------------------

for name, f in {
    "cholesky": lambda jnp, x: jnp.linalg.cholesky(x @ x.T),
    "qr": lambda jnp, x: jnp.linalg.qr(x),
    "inv": lambda jnp, x: jnp.linalg.inv(x),
    "det": lambda jnp, x: jnp.linalg.slogdet(x),
    "solve": lambda jnp, x: jnp.linalg.solve(x, x[:, :2]),
    "eigh": lambda jnp, x: jnp.linalg.eigh(x + x.T),
    "svd": lambda jnp, x: jnp.linalg.svd(x, full_matrices=False),
    "matrix_power": lambda jnp, x: jnp.linalg.matrix_power(x, 5),
    "norm": lambda jnp, x: jnp.linalg.norm(x, axis=-1),
    "pinv": lambda jnp, x: jnp.linalg.pinv(x),
}.items():
    add(f"linalg {name}", lambda jax, jnp, lax, f=f: (functools.partial(f, jnp), ((16, 16), F)))


def _solve_triangular(jax, jnp, lax):
    solve = functools.partial(jax.scipy.linalg.solve_triangular, lower=True)
    return solve, ((16, 16), F), ((16, 3), F)


add("linalg solve_triangular", _solve_triangular)
add("linalg expm", lambda jax, jnp, lax: (jax.scipy.linalg.expm, ((8, 8), F)))
add("linalg lu", lambda jax, jnp, lax: (jax.scipy.linalg.lu, ((8, 8), F)))
add(
    "linalg tridiagonal_solve",
    lambda jax, jnp, lax: (lax.linalg.tridiagonal_solve, ((32,), F), ((32,), F), ((32,), F), ((32, 4), F)),
)

# ---- random numbers ---------------------------------------------------------------------------------

for name, kwargs in {
    "normal": {}, "uniform": {}, "bernoulli": {}, "gumbel": {}, "exponential": {}, "bits": {}, "truncated_normal": dict(lower=-1.0, upper=1.0),
    "gamma": dict(a=2.0), "poisson": dict(lam=3.0), "categorical": None, "permutation": None, "randint": dict(minval=0, maxval=9),
}.items():  # fmt: skip

    def drawn(jax, jnp, lax, name=name, kwargs=kwargs):
        f = getattr(jax.random, name)
        if kwargs is None:
            return (lambda seed: f(jax.random.key(seed), jnp.arange(32.0))), ((), "uint32")
        return (lambda seed: f(jax.random.key(seed), shape=(64, 3), **kwargs)), ((), "uint32")

    add(f"random {name}", drawn)
add(
    "random rbg",
    lambda jax, jnp, lax: (lambda s: jax.random.normal(jax.random.key(s, impl="rbg"), (64,)), ((), "uint32")),
)

# ---- control flow, transformations ------------------------------------------------------------------


@program()
def scan(jax, jnp, lax):
    return (
        (lambda w, xs: lax.scan(lambda h, x: (jnp.tanh(h @ w + x),) * 2, xs[0] * 0, xs)),
        ((16, 16), F),
        ((20, 4, 16), F),
    )


@program()
def gradient_of_scan(jax, jnp, lax):
    f, *types = scan(jax, jnp, lax)
    return jax.grad(lambda w, xs: f(w, xs)[1].sum()), *types


@program()
def while_loop(jax, jnp, lax):
    return (lambda x: lax.while_loop(lambda c: c[1].sum() < 100, lambda c: (c[0] + 1, c[1] * 1.5), (0, x))), (
        (8, 128),
        F,
    )


@program()
def fori_loop(jax, jnp, lax):
    return (lambda x: lax.fori_loop(0, 10, lambda i, c: c.at[i].add(1.0) * 0.5, x)), ((16, 128), F)


@program()
def cond(jax, jnp, lax):
    return (lambda p, x: lax.cond(p, jnp.sin, jnp.cos, x)), ((), "bool"), ((8, 128), F)


@program()
def switch(jax, jnp, lax):
    return jax.vmap(lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, jnp.tan], x)), ((4,), I), ((4, 128), F)


@program()
def associative_scan(jax, jnp, lax):
    return (lambda x: lax.associative_scan(jnp.multiply, x)), ((64, 8), F)


@program()
def mapped(jax, jnp, lax):
    return (lambda x: lax.map(lambda r: jnp.sort(r) @ r, x, batch_size=4)), ((10, 64), F)


@program()
def hessian(jax, jnp, lax):
    return jax.hessian(lambda x: jnp.sum(jnp.sin(x) * x**2)), ((16,), F)


@program()
def checkpointed(jax, jnp, lax):
    def layer(x, w):
        return jnp.tanh(x @ w), None

    loss = lambda ws, x: lax.scan(jax.checkpoint(layer), x, ws)[0].sum()  # noqa: E731
    return jax.grad(loss), ((4, 64, 64), F), ((8, 64), F)


@program()
def saved_names(jax, jnp, lax):
    policy = jax.checkpoint_policies.save_only_these_names("h")

    @functools.partial(jax.checkpoint, policy=policy)
    def f(w, x):
        return jnp.sum(jnp.sin(jax.ad_checkpoint.checkpoint_name(jnp.tanh(x @ w), "h")))

    return jax.grad(f), ((64, 64), F), ((8, 64), F)


@program()
def captured_constant(jax, jnp, lax):
    import numpy as np

    c, d = np.arange(64, dtype=np.float32), jnp.arange(640.0)
    return (lambda x: x * c + d[:64]), ((64,), F)


@program()
def references(jax, jnp, lax):
    def f(x):
        r = jax.new_ref(jnp.zeros((8, 128)))
        r[0] = x
        r[1] += x * 2
        return r[...]

    return f, ((128,), F)


@program()
def host_memory(jax, jnp, lax):
    def f(x):
        away = jax.device_put(jnp.sin(x), jax.memory.Space.Host)
        return jax.device_put(away, jax.memory.Space.Device) * 2

    return f, ((8, 128), F)


@program()
def offloaded(jax, jnp, lax):
    policy = jax.checkpoint_policies.save_and_offload_only_these_names(
        names_which_can_be_saved=[], names_which_can_be_offloaded=["h"], offload_src="device", offload_dst="pinned_host"
    )

    def layer(x, w):
        return jax.ad_checkpoint.checkpoint_name(jnp.tanh(x @ w), "h"), None

    return (
        jax.grad(lambda ws, x: lax.scan(jax.checkpoint(layer, policy=policy), x, ws)[0].sum()),
        ((4, 64, 64), F),
        ((8, 64), F),
    )


@program()
def pure_callback(jax, jnp, lax):
    import numpy as np

    return (lambda x: jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x) + 1), ((8,), F)


@program()
def io_callback(jax, jnp, lax):
    call = __import__(f"{jax.__name__}.experimental", fromlist=["io_callback"]).io_callback
    return (lambda x: call(lambda a: None, None, x, ordered=True) or x * 2), ((8,), F)


@program()
def debug_print(jax, jnp, lax):
    return (lambda x: jax.debug.print("{}", x) or x * 2), ((8,), F)


@program()
def layout_chosen(jax, jnp, lax):
    return (lambda x, y: (x.T @ y, y.T)), ((7, 300), B), ((7, 40), B)


@program()
def narrow(jax, jnp, lax):
    return (lambda x: (x * 2, x.T)), ((7, 3), F)


@program(options=dict(donate_argnums=0))
def donated(jax, jnp, lax):
    return (lambda x, y: x + y), ((8, 128), F), ((8, 128), F)


# ---- models -----------------------------------------------------------------------------------------


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


def _transformer_step(jax, jnp, dtype=F, specs=((None,) * 2,) * 4, batch=(None,) * 3):
    def step(*args):
        *ws, x = args
        layers = [ws[i : i + 4] for i in range(0, len(ws), 4)]
        loss, grads = jax.value_and_grad(lambda p: jnp.mean(_transformer(jax, jnp, p, x).astype(F) ** 2))(layers)
        return jax.tree.map(lambda w, g: w - 0.01 * g, layers, grads), loss

    shapes = (64, 192), (64, 64), (64, 256), (256, 64)
    types = [(shape, dtype, spec) for _ in range(2) for shape, spec in zip(shapes, specs, strict=True)]
    return step, *types, ((16, 32, 64), dtype, batch)


for dtype in (F, B):
    add(f"transformer step {dtype}", lambda jax, jnp, lax, dtype=dtype: _transformer_step(jax, jnp, dtype))
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


# ---- several devices --------------------------------------------------------------------------------

FOUR, TWO_BY_TWO, SIXTEEN = {"x": 4}, {"x": 2, "y": 2}, {"data": 4, "model": 4}
P = tuple


def collective(name, f, out=("x",)):
    def make(jax, jnp, lax):
        body = functools.partial(f, lax)
        return jax.shard_map(body, in_specs=jax.P("x"), out_specs=jax.P(*out)), ((8, 128), F, ("x", None))

    add(f"collective {name}", make, mesh=FOUR)


collective("psum", lambda lax, x: lax.psum(x, "x"), (None,))
collective("pmean", lambda lax, x: lax.pmean(x, "x"), (None,))
collective("pmax", lambda lax, x: lax.pmax(x, "x"), (None,))
collective("all_gather", lambda lax, x: lax.all_gather(x, "x", tiled=True) * x.sum())
collective("all_to_all", lambda lax, x: lax.all_to_all(x.reshape(2, 4, 32), "x", 1, 0, tiled=True))
collective("ppermute", lambda lax, x: lax.ppermute(x, "x", [(i, (i + 1) % 4) for i in range(4)]))
collective("psum_scatter", lambda lax, x: lax.psum_scatter(x.reshape(4, -1), "x", tiled=True))
collective("axis_index", lambda lax, x: x * lax.axis_index("x"))
collective("psum of a product", lambda lax, x: lax.psum(x.T @ x, "x"), (None,))


@program(mesh=FOUR)
def ring_attention(jax, jnp, lax):
    def body(q, k, v):
        def step(carry, _):
            k, v, total = carry
            total = total + jax.nn.softmax(q @ k.T) @ v
            ring = [(i, (i + 1) % 4) for i in range(4)]
            return (lax.ppermute(k, "x", ring), lax.ppermute(v, "x", ring), total), None

        return lax.scan(step, (k, v, jnp.zeros_like(q)), None, length=4)[0][2]

    spec = ("x", None)
    return jax.shard_map(body, in_specs=(jax.P("x"),) * 3, out_specs=jax.P("x")), *[((64, 32), F, spec)] * 3


for name, f in {
    "sum": lambda jnp, x: x.sum(),
    "product": lambda jnp, x: x @ x.T,
    "softmax": lambda jnp, x: jnp.exp(x) / jnp.exp(x).sum(1, keepdims=True),
    "sort": lambda jnp, x: jnp.sort(x, 0),
    "cumsum": lambda jnp, x: jnp.cumsum(x, 0),
    "fft": lambda jnp, x: jnp.fft.fft(x, axis=0),
    "reshape": lambda jnp, x: x.reshape(-1),
    "gather": lambda jnp, x: x[jnp.argsort(x[:, 0])],
    "transpose": lambda jnp, x: x.T,
}.items():
    add(
        f"sharded {name}",
        lambda jax, jnp, lax, f=f: (functools.partial(f, jnp), ((16, 64), F, ("x", "y"))),
        mesh=TWO_BY_TWO,
    )
    add(
        f"sharded {name} gradient",
        lambda jax, jnp, lax, f=f: (jax.grad(lambda x: (jnp.abs(f(jnp, x)) ** 2).sum()), ((16, 64), F, ("x", None))),
        mesh=TWO_BY_TWO,
    )


@program(mesh=TWO_BY_TWO, explicit=True)
def explicit_product(jax, jnp, lax):
    return (lambda x, w: jnp.tanh(x @ w).sum(0)), ((16, 64), F, ("x", None)), ((64, 32), F, (None, "y"))


@program(mesh=TWO_BY_TWO)
def constrained(jax, jnp, lax):
    return (lambda x: lax.with_sharding_constraint(jnp.sin(x) @ x.T, jax.P("y", "x"))), ((16, 16), F, ("x", None))


@program(mesh=TWO_BY_TWO)
def sharded_random(jax, jnp, lax):
    return (
        (lambda s, x: x + jax.random.normal(jax.random.key(s), x.shape)),
        ((), "uint32", ()),
        ((16, 64), F, ("x", "y")),
    )


@program(mesh=FOUR)
def sharded_print(jax, jnp, lax):
    return (lambda x: jax.debug.print("{}", x.sum()) or x * 2), ((16,), F, ("x",))


SPLIT = (None, "model"), ("model", None), (None, "model"), ("model", None)
for name, mesh in {"four": {"data": 2, "model": 2}, "sixteen": SIXTEEN}.items():
    add(
        f"transformer step over {name}",
        lambda jax, jnp, lax: _transformer_step(jax, jnp, F, SPLIT, ("data", None, None)),
        mesh=mesh,
        options=dict(donate_argnums=tuple(range(8))),
    )
    add(
        f"transformer step over {name} fully sharded",
        lambda jax, jnp, lax: _transformer_step(jax, jnp, B, (("data", None),) * 4, ("data", None, None)),
        mesh=mesh,
    )
