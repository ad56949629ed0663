"""Programs for several devices: collectives, sharded operations, training steps on up to 256 devices."""

import functools

from .models import LLAMA, adam, llama, transformer_step
from .registry import B, F, I, add, add_each, program

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
        lambda jax, jnp, lax: transformer_step(jax, jnp, F, SPLIT, ("data", None, None)),
        mesh=mesh,
        options=dict(donate_argnums=tuple(range(8))),
    )
    add(
        f"transformer step over {name} fully sharded",
        lambda jax, jnp, lax: transformer_step(jax, jnp, B, (("data", None),) * 4, ("data", None, None)),
        mesh=mesh,
    )

# ---- collectives ------------------------------------------------------------------------------------

BOTH, RING = ("x", "y"), [(i, (i + 1) % 4) for i in range(4)]
COLLECTIVES = {
    "psum": lambda jax, x: jax.lax.psum(x, "x"),
    "pmean": lambda jax, x: jax.lax.pmean(x, "x"),
    "pmax": lambda jax, x: jax.lax.pmax(x, "x"),
    "pmin": lambda jax, x: jax.lax.pmin(x, "x"),
    "psum_scatter": lambda jax, x: jax.lax.psum_scatter(x[:4].reshape(4, -1), "x"),
    "all_gather": lambda jax, x: jax.lax.all_gather(x, "x"),
    "all_gather tiled": lambda jax, x: jax.lax.all_gather(x, "x", axis=1, tiled=True),
    "all_to_all": lambda jax, x: jax.lax.all_to_all(x.reshape(4, -1), "x", 0, 0),
    "ppermute": lambda jax, x: jax.lax.ppermute(x, "x", RING[:2]),
    "pshuffle": lambda jax, x: jax.lax.pshuffle(x, "x", [3, 1, 0, 2]),
    "pbroadcast": lambda jax, x: jax.lax.pbroadcast(x, "x", 2),
}


def over(jax, x, f):
    """The function over the shards of x, with results that may vary."""
    return jax.shard_map(functools.partial(f, jax), in_specs=jax.P("x"), out_specs=jax.P("x"), check_vma=False)(x)


for dtype in (F, B):
    shards = {name: functools.partial(over, f=f) for name, f in COLLECTIVES.items()}
    add_each(f"shards {dtype}", shards, ((32, 16), dtype, ("x",)), mesh=FOUR)
MOVES = "all_gather", "all_gather tiled", "all_to_all", "ppermute"
for dtype, rest in {"int8": ["psum", "pmax"], "bool": ["psum", "pmax"], "complex64": ["psum"], "float8_e4m3fn": ["psum", "pmax"]}.items():  # fmt: skip
    shards = {name: functools.partial(over, f=COLLECTIVES[name]) for name in rest}
    shards["moved"] = lambda jax, x: [over(jax, x, COLLECTIVES[name]) for name in MOVES]
    add_each(f"shards {dtype}", shards, ((32, 16), dtype, ("x",)), mesh=FOUR)

VARYING = {
    "pcast": (lambda lax, x: x * lax.pcast(2.0, BOTH, to="varying") * lax.axis_index("y"), BOTH),
    "psum of two": (lambda lax, x: lax.psum(x * lax.axis_index("y"), BOTH), ()),
    "psum of a tree": (lambda lax, x: lax.psum((x.sum(), {"a": x * 2}), "x"), ()),
    "axis_size": (lambda lax, x: x * lax.axis_size(BOTH) + lax.axis_index(BOTH), BOTH),
    "all_gather of two": (lambda lax, x: lax.all_gather(lax.pcast(x, "y", to="varying"), BOTH, tiled=True)[:8], BOTH),
    "pmax of rows": (lambda lax, x: lax.pmax(x.max(1), "x"), ()),
}


def _varying(jax, x, f, out):
    return jax.shard_map(functools.partial(f, jax.lax), in_specs=jax.P("x"), out_specs=jax.P(*out and (out,)))(x)


varying = {name: functools.partial(_varying, f=f, out=out) for name, (f, out) in VARYING.items()}  # fmt: skip
add_each("varying", varying, ((16, 8), F, ("x",)), mesh=TWO_BY_TWO)


def _ragged_all_to_all(jax, x, out, sizes):
    def body(x, out, sizes):
        offsets = jax.numpy.cumsum(sizes) - sizes
        received = jax.lax.all_to_all(sizes, "x", 0, 0, tiled=True)
        places = jax.lax.all_to_all(jax.numpy.cumsum(received) - received, "x", 0, 0, tiled=True)
        return jax.lax.ragged_all_to_all(x, out, offsets, sizes, places, received, axis_name="x")

    return jax.shard_map(body, in_specs=jax.P("x"), out_specs=jax.P("x"))(x, out, sizes)


add_each("shards", {"ragged_all_to_all": _ragged_all_to_all}, ((64, 8), F, ("x",)), ((128, 8), F, ("x",)), ((16,), I, ("x",)), mesh=FOUR)  # fmt: skip
add_each(
    "shards",
    {
        "gradient of psum": lambda jax, x: jax.grad(lambda x: jax.shard_map(lambda x: jax.lax.psum((x**2).sum(), "x"), in_specs=jax.P("x"), out_specs=jax.P())(x))(x),
        "gradient of moves": lambda jax, x: jax.grad(lambda x: (over(jax, x, COLLECTIVES["all_gather tiled"]) ** 2).sum() + (over(jax, x, COLLECTIVES["ppermute"]) * x).sum())(x),
        "groups": lambda jax, x: over(jax, x, lambda jax, x: jax.lax.psum(x, "x", axis_index_groups=[[0, 2], [1, 3]])),
        "gathered groups": lambda jax, x: over(jax, x, lambda jax, x: jax.lax.all_gather(x, "x", axis_index_groups=[[0, 1], [2, 3]], tiled=True)),
        "untiled exchange": lambda jax, x: over(jax, x, lambda jax, x: jax.lax.all_to_all(x.reshape(2, 4, -1), "x", 1, 2)),
        "vmapped psum": lambda jax, x: over(jax, x, lambda jax, x: jax.vmap(lambda r: jax.lax.psum(r, "x"))(x)),
        "psum in while": lambda jax, x: over(jax, x, lambda jax, x: jax.lax.fori_loop(0, 3, lambda i, c: jax.lax.pmean(c, "x") * 2, x)),
        "cond": lambda jax, x: over(jax, x, lambda jax, x: jax.lax.cond(x[0, 0] > 0, lambda a: a * 2, lambda a: a - 1, x)),
        "random": lambda jax, x: over(jax, x, lambda jax, x: x + jax.random.normal(jax.random.fold_in(jax.random.key(0), jax.lax.axis_index("x")), x.shape)),
        "print": lambda jax, x: over(jax, x, lambda jax, x: jax.debug.print("{}", x[0, 0]) or x),
    },
    ((32, 16), F, ("x",)), mesh=FOUR,
)  # fmt: skip


def _multiplied_around(jax, x, w):
    """A product of which the left side comes around the ring, a shard a step."""

    def body(x, w):
        size, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")

        def step(i, state):
            x, out = state
            out = jax.lax.dynamic_update_slice(out, x @ w, ((me - i) % size * x.shape[0], 0))
            return jax.lax.ppermute(x, "x", [(j, (j + 1) % size) for j in range(size)]), out

        return jax.lax.fori_loop(0, size, step, (x, jax.numpy.zeros((size * x.shape[0], w.shape[1]), x.dtype)))[1]

    return jax.shard_map(body, in_specs=(jax.P("x"), jax.P(None, "x")), out_specs=jax.P(None, "x"), check_vma=False)(x, w)  # fmt: skip


for size in (4, 64):
    add_each(f"product around {size}", {"shards": _multiplied_around}, ((128, 64), B, ("x",)), ((64, 128), B, (None, "x")), mesh={"x": size})  # fmt: skip


def _exported(jax, spec):
    f = jax.jit(lambda x: x @ x.T, in_shardings=spec)
    return jax.export.export(f, platforms=("tpu", "cuda"))(jax.ShapeDtypeStruct((16, 64), F)).call


# ---- operations over a mesh -------------------------------------------------------------------------

add_each(
    "sharded",
    {
        "top_k": lambda jax, x: jax.lax.top_k(x, 4),
        "cholesky": lambda jax, x: jax.numpy.linalg.cholesky(x @ x.T + jax.numpy.eye(16)),
        "solve": lambda jax, x: jax.numpy.linalg.solve(x[:, :16], x[:, 16:20]),
        "qr": lambda jax, x: jax.numpy.linalg.qr(x.T),
        "convolution": lambda jax, x: jax.lax.conv(x.reshape(16, 1, 8, 8), jax.numpy.ones((2, 1, 3, 3)), (1, 1), "SAME"),
        "scatter": lambda jax, x: x.at[jax.numpy.arange(8) * 2 % 5].add(1.0),
        "embedding": lambda jax, x: x[jax.numpy.argmax(x[:, :16], 1)],
        "slice": lambda jax, x: (x[3:7], jax.lax.dynamic_slice(x, (x[0, 0].astype(I), 0), (4, 8))),
        "concatenate": lambda jax, x: jax.numpy.concatenate([x, x[::-1]], 0),
        "roll": lambda jax, x: (jax.numpy.roll(x, 1, 0), jax.numpy.pad(x, 1)),
        "scan": lambda jax, x: jax.lax.scan(lambda h, r: (h * 0.5 + r, h), x[0], x),
        "while": lambda jax, x: jax.lax.while_loop(lambda c: c.sum() < 10, lambda c: c * 2, x),
        "rbg": lambda jax, x: x + jax.random.uniform(jax.random.key(0, impl="rbg"), x.shape),
        "statistics": lambda jax, x: (x.mean(), x.var(0), jax.numpy.median(x, 1), x.argmax(0), jax.nn.logsumexp(x)),
        "window": lambda jax, x: jax.lax.reduce_window(x, 0.0, jax.lax.add, (3, 3), (1, 1), "SAME"),
        "exported": lambda jax, x: _exported(jax, jax.P("x"))(x),
        "print of rows": lambda jax, x: jax.debug.print("{}", x[0, 0]) or x * 2,
    },
    ((16, 64), F, ("x", "y")), mesh=TWO_BY_TWO,
)  # fmt: skip
add_each(
    "explicit",
    {
        "elementwise": lambda jax, x, w: jax.nn.softmax(x) * 2 + x.sum(1, keepdims=True),
        "einsum": lambda jax, x, w: jax.numpy.einsum("bd,df->bf", x, w, out_sharding=jax.P("x", "y")),
        "reshard": lambda jax, x, w: jax.sharding.reshard(x, jax.P("y", "x")) * 2,
        "reshape": lambda jax, x, w: x.reshape(4, 4, 64).transpose(1, 0, 2).sum(0),
        "gather": lambda jax, x, w: x.at[jax.numpy.arange(4) * 3].get(out_sharding=jax.P()),
        "auto": lambda jax, x, w: jax.sharding.auto_axes(lambda x: x @ x.T, out_sharding=jax.P("x", None))(x),
        "gradient": lambda jax, x, w: jax.grad(lambda w: (jax.nn.relu(jax.numpy.matmul(x, w, out_sharding=jax.P("x", "y"))) ** 2).sum())(w),
        "scan": lambda jax, x, w: jax.lax.scan(lambda h, _: (jax.numpy.sin(h) * 2, None), x, None, length=3)[0],
        "random": lambda jax, x, w: x + jax.random.normal(jax.random.key(0), x.shape, out_sharding=jax.P("x", None)),
        "shard_map": lambda jax, x, w: jax.shard_map(lambda x: jax.lax.psum(x.sum(0), "x"), out_specs=jax.P())(x),
        "broadcast": lambda jax, x, w: jax.numpy.zeros((16, 64), out_sharding=jax.P("x", "y")) + x,
    },
    ((16, 64), F, ("x", None)), ((64, 32), F, (None, "y")), mesh=TWO_BY_TWO, explicit=True,
)  # fmt: skip

# ---- shardings, layouts and memories of arguments ---------------------------------------------------


def _placed(jax, *spec, **options):
    return jax.NamedSharding(jax.sharding.get_mesh(), jax.P(*spec), **options)


def _format(jax, layout, *spec):
    formats = __import__(f"{jax.__name__}.experimental.layout", fromlist=["Format"])
    return formats.Format(formats.Layout(layout) if layout else formats.Layout.AUTO, _placed(jax, *spec))


JITTED = {
    "shardings": lambda jax: jax.jit(lambda x: (x * 2, x.sum(0)), in_shardings=_placed(jax, "x"), out_shardings=(_placed(jax, "y", "x"), _placed(jax))),
    "donated": lambda jax: jax.jit(lambda x: x + 1, in_shardings=_placed(jax, "x"), out_shardings=_placed(jax, "x"), donate_argnums=0),
    "donated elsewhere": lambda jax: jax.jit(lambda x: x + 1, in_shardings=_placed(jax, "x"), out_shardings=_placed(jax, None, "y"), donate_argnums=0),
    "layout": lambda jax: jax.jit(lambda x: x * 2, in_shardings=_format(jax, (0, 1), "x"), out_shardings=_format(jax, (1, 0), "x")),
    "layout chosen": lambda jax: jax.jit(lambda x: x.T @ x, in_shardings=_format(jax, None, "x"), out_shardings=_format(jax, None)),
    "host argument": lambda jax: jax.jit(lambda x: jax.device_put(x, jax.memory.Space.Device) * 2, in_shardings=_placed(jax, "x", memory_kind="pinned_host")),
    "host result": lambda jax: jax.jit(lambda x: x * 2, in_shardings=_placed(jax, "x"), out_shardings=_placed(jax, "x", memory_kind="pinned_host")),
}  # fmt: skip
for name, f in JITTED.items():
    spec = None if name == "host argument" else ("x",)
    add(f"arguments {name}", lambda jax, jnp, lax, f=f, spec=spec: (f(jax), ((16, 256), F, spec)), mesh=TWO_BY_TWO)

# ---- training steps on 16, 64 and 256 devices -------------------------------------------------------


def sharded_step(loss, shapes, *batch, dtype=F, constrain=False):
    """A step of Adam for loss(jax, parameters, *batch); shapes are pairs of a shape and its partition spec."""
    names, count = list(shapes), len(shapes)

    def make(jax, jnp, lax):
        def step(*args):
            params, m, v = (dict(zip(names, args[i * count :], strict=False)) for i in range(3))
            value, grads = jax.value_and_grad(lambda p: loss(jax, p, *args[3 * count :]))(params)
            if constrain:
                grads = {n: lax.with_sharding_constraint(g, jax.P(*shapes[n][1])) for n, g in grads.items()}
            return *adam(jax, params, grads, m, v, 3.0), value

        return step, *[(shape, dtype, spec) for shape, spec in shapes.values()] * 3, *batch

    return make, dict(donate_argnums=tuple(range(3 * count)))


def stepped(name, loss, shapes, *batch, mesh, dtype=F, constrain=False, **fields):
    make, options = sharded_step(loss, shapes, *batch, dtype=dtype, constrain=constrain)
    add(name, make, mesh=mesh, options=options, **fields)


def mlp(jax, p, x, y):
    return ((jax.nn.relu(jax.nn.relu(x @ p["a"]) @ p["b"]) @ p["c"] - y) ** 2).mean()


def explicit_mlp(jax, p, x, y):
    h = jax.numpy.matmul(x, p["a"], out_sharding=jax.P("data", "model"))
    return ((jax.numpy.matmul(jax.nn.relu(h), p["b"], out_sharding=jax.P("data")) @ p["c"] - y) ** 2).mean()


def widths(a=(), b=(), c=()):
    return dict(a=((256, 512), a), b=((512, 256), b), c=((256, 8), c))


def rows(*names):
    return ((512, 256), F, (names,)), ((512, 8), F, (names,))


WIRED = dict(a=(None, "model"), b=("model", None))
LAYER = dict(
    embed=("model", "fsdp"), wq=("fsdp", "model"), wk=("fsdp", "model"), wv=("fsdp", "model"), wo=("model", "fsdp"),
    gate=("fsdp", "model"), up=("fsdp", "model"), down=("model", "fsdp"),
)  # fmt: skip
for size, two, three in (
    (16, {"data": 4, "model": 4}, {"data": 2, "fsdp": 4, "model": 2}),
    (64, {"data": 8, "model": 8}, {"data": 4, "fsdp": 4, "model": 4}),
    (256, {"data": 16, "model": 16}, {"data": 8, "fsdp": 8, "model": 4}),
):
    stepped(f"mlp over {size} data", mlp, widths(), *rows("data"), mesh={"data": size})
    stepped(f"mlp over {size} data and model", mlp, widths(**WIRED), *rows("data"), mesh=two)
    stepped(f"mlp over {size} explicit", explicit_mlp, widths(**WIRED), *rows("data"), mesh=two, explicit=True)
    stepped(f"mlp over {size} fully sharded", mlp, widths(("data",), ("data",), ("data",)), *rows("data"), mesh={"data": size}, constrain=True)  # fmt: skip
    model = {name: (tuple(2 * side for side in shape), LAYER[name]) for name, shape in LLAMA.items()}
    stepped(f"llama over {size} three axes", llama, model, ((64, 32), I, (("data", "fsdp"),)), mesh=three, dtype=B)
    if size > 16:
        add(
            f"transformer step over {size}",
            lambda jax, jnp, lax: transformer_step(jax, jnp, F, SPLIT, ("data", None, None)),
            mesh=two,
            options=dict(donate_argnums=tuple(range(8))),
        )


def mapped_step(jax, a, b, x):
    """Gradients of shards, which are added by psum."""

    def body(a, b, x):
        loss = lambda p: (jax.nn.relu(x @ p[0]) @ p[1]).var()  # noqa: E731
        value, grads = jax.value_and_grad(loss)(jax.lax.pcast((a, b), "data", to="varying"))
        grads = jax.lax.pmean(grads, "data")
        return *[w - 0.1 * g for w, g in zip((a, b), grads, strict=True)], jax.lax.pmean(value, "data")

    return jax.shard_map(body, in_specs=(jax.P(), jax.P(), jax.P("data")), out_specs=jax.P())(a, b, x)


def gathered_step(jax, a, b, x):
    """Parameters are gathered for use; their gradients are scattered by the transposition."""

    def body(a, b, x):
        whole = lambda w: jax.lax.all_gather(w, "data", tiled=True)  # noqa: E731
        grads = jax.grad(lambda p: (jax.nn.relu(x @ whole(p[0])) @ whole(p[1])).var())((a, b))
        return a - 0.1 * grads[0], b - 0.1 * grads[1]

    return jax.shard_map(body, in_specs=jax.P("data"), out_specs=jax.P("data"))(a, b, x)


def pipeline(jax, w, x):
    """Stages hand micro-batches on by ppermute; the gradient goes back."""

    def body(w, x):
        size, me = jax.lax.axis_size("stage"), jax.lax.axis_index("stage")

        def tick(state, i):
            new = jax.numpy.where(me == 0, x[i % len(x)], state)
            out = jax.numpy.tanh(new @ w[0])
            return jax.lax.ppermute(out, "stage", [(j, (j + 1) % size) for j in range(size)]), out

        start = jax.lax.pcast(jax.numpy.zeros_like(x[0]), "stage", to="varying")
        outs = jax.lax.scan(tick, start, jax.numpy.arange(len(x) + size - 1))[1]
        return jax.lax.psum(jax.numpy.where(me == size - 1, (outs[size - 1 :] ** 2).sum(), 0.0), "stage")

    loss = jax.shard_map(body, in_specs=(jax.P("stage"), jax.P()), out_specs=jax.P())
    return w - 0.1 * jax.grad(loss)(w, x)


def routed(jax, router, up, down, x):
    """Experts on devices of their own: rows go there and back by all_to_all."""

    def body(router, up, down, x):
        size, room = jax.lax.axis_size("expert"), 4
        gates = jax.nn.softmax(x @ router)
        chosen = jax.nn.one_hot(gates.argmax(-1), size)
        place = jax.nn.one_hot((chosen.cumsum(0) * chosen).max(-1).astype(I) - 1, room)
        sent = jax.numpy.einsum("ne,nr,nd->erd", chosen, place, x)
        got = jax.lax.all_to_all(sent, "expert", 0, 1, tiled=True)
        made = jax.numpy.einsum("ehd,erh->erd", down, jax.nn.relu(jax.numpy.einsum("edh,erd->erh", up, got)))
        back = jax.lax.all_to_all(made, "expert", 1, 0, tiled=True)
        out = jax.numpy.einsum("ne,nr,erd->nd", chosen * gates, place, back)
        return jax.lax.pmean((out**2).mean(), "expert")

    spec = jax.P("expert")
    loss = jax.shard_map(body, in_specs=(jax.P(), spec, spec, spec), out_specs=jax.P())
    return jax.value_and_grad(loss, (0, 1, 2))(router, up, down, x)


def ring(jax, q, k, v):
    """Exact softmax attention around a ring, with its gradient."""

    def body(q, k, v):
        size = jax.lax.axis_size("x")

        def step(state, _):
            k, v, top, below, total = state
            scores = q @ k.T
            new = jax.numpy.maximum(top, scores.max(-1, keepdims=True))
            weights, old = jax.numpy.exp(scores - new), jax.numpy.exp(top - new)
            k, v = (jax.lax.ppermute(a, "x", [(i, (i + 1) % size) for i in range(size)]) for a in (k, v))
            return (k, v, new, below * old + weights.sum(-1, keepdims=True), total * old + weights @ v), None

        zero = q[:, :1] * 0
        _, _, _, below, total = jax.lax.scan(step, (k, v, zero - 1e30, zero, q * 0), None, length=size)[0]
        return total / below

    attend = jax.shard_map(body, in_specs=jax.P("x"), out_specs=jax.P("x"))
    return jax.grad(lambda *a: (attend(*a) ** 2).sum(), (0, 1, 2))(q, k, v)


for size in (4, 64, 256):
    add_each(f"mapped over {size}", {"step": mapped_step}, ((64, 128), F, ()), ((128, 8), F, ()), ((512, 64), F, ("data",)), mesh={"data": size})  # fmt: skip
    add_each(f"gathered over {size}", {"step": gathered_step}, ((256, 256), F, ("data",)), ((256, 8), F, ("data",)), ((512, 256), F, ("data",)), mesh={"data": size})  # fmt: skip
    add_each(f"ring over {size}", {"attention": ring}, *[((512, 16), F, ("x",))] * 3, mesh={"x": size})
    if size < 256:  # the compiler takes a minute
        add_each(f"experts over {size}", {"step": routed}, ((32, size), F, ()), ((size, 32, 64), F, ("expert",)), ((size, 64, 32), F, ("expert",)), ((size * 8, 32), F, ("expert",)), mesh={"expert": size})  # fmt: skip
for size, stages, mesh in ((4, 4, {"stage": 4}), (64, 8, {"stage": 8, "other": 8}), (256, 16, {"stage": 16, "other": 16})):  # fmt: skip
    add_each(f"pipeline over {size}", {"step": pipeline}, ((stages, 32, 32), F, ("stage",)), ((6, 8, 32), F, ()), mesh=mesh)  # fmt: skip

# ---- several slices ---------------------------------------------------------------------------------


def between(jax, w, x):
    """Gradients scattered within a slice, added between the slices, and gathered."""

    def body(w, x):
        grad = jax.grad(lambda w: jax.numpy.tanh(x @ w).var())(jax.lax.pcast(w, ("slice", "data"), to="varying"))
        part = jax.lax.psum(jax.lax.psum_scatter(grad, "data", tiled=True), "slice")
        return w - 0.1 * jax.lax.all_gather(part, "data", tiled=True)

    return jax.shard_map(body, in_specs=(jax.P(), jax.P(("slice", "data"))), out_specs=jax.P(), check_vma=False)(w, x)


SLICED = {"slice": 2, "data": 4}
add_each("slices", {"psum": lambda jax, x: jax.shard_map(lambda x: jax.lax.psum(x, "slice"), in_specs=jax.P("slice"), out_specs=jax.P())(x)}, ((16, 8), F, ("slice",)), mesh=SLICED, slices=2)  # fmt: skip
add_each("slices", {"step": between}, ((64, 32), F, ()), ((128, 64), F, (("slice", "data"),)), mesh=SLICED, slices=2)
stepped("slices mlp", mlp, widths(("data",), ("data",), ("data",)), *rows("slice", "data"), mesh=SLICED, slices=2)
stepped("slices mlp explicit", explicit_mlp, widths(**WIRED), *rows("data"), mesh={"data": 4, "model": 2}, slices=2, explicit=True)  # fmt: skip
stepped("slices mlp of 32", mlp, widths(**WIRED), *rows("data"), mesh={"data": 8, "model": 4}, slices=2)
add_each("slices", {"pipeline": pipeline}, ((8, 32, 32), F, ("stage",)), ((6, 8, 32), F, ()), mesh={"stage": 8}, slices=2)  # fmt: skip
