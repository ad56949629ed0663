"""Control flow, transformations, memories and callbacks: programs for one device."""

import functools

from .registry import B, F, I, add_each, program


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


# ---- nested control flow ----------------------------------------------------------------------------

add_each(
    "nested",
    {
        "scan in while": lambda jax, x, w: jax.lax.while_loop(
            lambda c: jax.numpy.sum(c) < 9, lambda c: jax.lax.scan(lambda h, row: (jax.numpy.tanh(h + row), None), c, w)[0], x[0]
        ),
        "cond in scan": lambda jax, x, w: jax.lax.scan(
            lambda h, row: (jax.lax.cond(row[0] > 0, lambda a: a * 2, lambda a: jax.numpy.sin(a) + row, h), h.sum()), x[0], w
        ),
        "scan in scan": lambda jax, x, w: jax.lax.scan(
            lambda h, row: jax.lax.scan(lambda g, r: (g * r + 1, g), h, w), x[0], x
        ),
        "gradient of cond in scan": lambda jax, x, w: jax.grad(
            lambda w: jax.lax.scan(lambda h, row: (jax.lax.cond(h[0] > 0, lambda a: a * row, jax.numpy.cos, h), None), x[0], w)[0].sum()
        )(w),
        "vmapped cond": lambda jax, x, w: jax.vmap(lambda r: jax.lax.cond(r[0] > 0, jax.numpy.sin, lambda a: a @ w, r))(x),
        "vmapped while": lambda jax, x, w: jax.vmap(lambda r: jax.lax.while_loop(lambda c: c.sum() < 5, lambda c: c + r**2 + 1, r))(x),
        "vmapped scan": lambda jax, x, w: jax.vmap(lambda r: jax.lax.scan(lambda h, row: (h * row, h.sum()), r, w))(x),
        "scan unrolled": lambda jax, x, w: jax.lax.scan(lambda h, row: (h @ w + row, h), x[0], x, unroll=4, reverse=True),
        "gradient of fori": lambda jax, x, w: jax.grad(lambda x: jax.lax.fori_loop(0, 5, lambda i, c: jax.numpy.sin(c @ w), x).sum())(x),
        "forward of while": lambda jax, x, w: jax.jvp(lambda x: jax.lax.while_loop(lambda c: c.sum() < 9, lambda c: c * 1.5 + 1, x), (x,), (x,)),
        "switch of operands": lambda jax, x, w: jax.lax.switch(x[0, 0].astype(I), [lambda a, b: a @ b, lambda a, b: a - 1, lambda a, b: a * b[0]], x, w),
        "gradient of switch": lambda jax, x, w: jax.grad(lambda x: jax.lax.switch(1, [jax.numpy.sin, lambda a: a @ w], x).sum())(x),
        "jit in scan": lambda jax, x, w: jax.lax.scan(lambda h, r: (jax.jit(lambda a: jax.numpy.tanh(a @ w))(h), r), x[0], x),
        "rows in batches": lambda jax, x, w: jax.lax.map(lambda r: jax.numpy.linalg.norm(r @ w), x, batch_size=3),
        "two scans": lambda jax, x, w: jax.lax.associative_scan(lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]), (x, x + 1), reverse=True),
    },
    ((8, 16), F),
    ((16, 16), F),
)  # fmt: skip

# ---- checkpoints and memories -----------------------------------------------------------------------


def _remade(jax, w, x, policy):
    """The gradient of three layers, of which the policy says what is kept."""
    name = jax.ad_checkpoint.checkpoint_name

    def layer(x, w):
        return name(jax.nn.gelu(name(x @ w, "product")), "active"), None

    return jax.grad(lambda w: jax.lax.scan(jax.checkpoint(layer, policy=policy), x, w)[0].sum())(w)


OFFLOADED = dict(offload_src="device", offload_dst="pinned_host")
POLICIES = {
    "nothing": lambda p: p.nothing_saveable,
    "everything": lambda p: p.everything_saveable,
    "dots": lambda p: p.dots_saveable,
    "dots without batch": lambda p: p.dots_with_no_batch_dims_saveable,
    "any but": lambda p: p.save_anything_except_these_names("active"),
    "names but": lambda p: p.save_any_names_but_these("active"),
    "both": lambda p: p.save_from_both_policies(p.save_only_these_names("product"), p.dots_saveable),
    "offloaded dots": lambda p: p.offload_dot_with_no_batch_dims("device", "pinned_host"),
    "offloaded and saved": lambda p: p.save_and_offload_only_these_names(
        names_which_can_be_saved=["product"], names_which_can_be_offloaded=["active"], **OFFLOADED
    ),
}
add_each(
    "checkpoint",
    {name: lambda jax, w, x, policy=policy: _remade(jax, w, x, policy(jax.checkpoint_policies)) for name, policy in POLICIES.items()},
    ((3, 64, 64), F),
    ((8, 64), F),
)  # fmt: skip


@program(options=dict(donate_argnums=(0, 1)))
def donated_tree(jax, jnp, lax):
    return (lambda w, m, g: (w - 0.1 * (0.9 * m + g), 0.9 * m + g, (g**2).sum())), *[((64, 128), F)] * 3


@program()
def host_computation(jax, jnp, lax):
    compute_on = __import__(f"{jax.__name__}.experimental.compute_on", fromlist=["compute_on"]).compute_on

    def f(x):
        with compute_on("device_host"):
            y = x * 2
        return y + 1

    return f, ((8, 128), F)


# ---- rules, names, callbacks ------------------------------------------------------------------------


def _rules(jax, x):
    jnp = jax.numpy

    @jax.custom_jvp
    def f(x):
        return jnp.log1p(jnp.exp(x))

    f.defjvp(lambda primals, tangents: (f(*primals), jax.nn.sigmoid(primals[0]) * tangents[0]))

    @jax.custom_vjp
    def g(x, y):
        return x * jnp.sin(y)

    g.defvjp(lambda x, y: (g(x, y), (x, y)), lambda saved, t: (t * jnp.sin(saved[1]), jnp.clip(t, -1, 1)))
    return jax.grad(lambda x: g(f(x), x).sum())(x), jax.jvp(f, (x,), (x,))


def _clipped(jax, x):
    """The identity whose gradient is bounded."""

    @functools.partial(jax.custom_vjp, nondiff_argnums=(1,))
    def bound(x, limit):
        return x

    bound.defvjp(lambda x, limit: (x, None), lambda limit, _, t: (jax.numpy.clip(t, -limit, limit),))
    return jax.grad(lambda x: (bound(x, 0.1) ** 3).sum())(x)


def _implicit(jax, x):
    jnp = jax.numpy
    solve = lambda f, y: y / f(jnp.ones_like(y))  # noqa: E731
    newton = lambda f, x0: jax.lax.fori_loop(0, 8, lambda i, y: y - f(y) / jax.vmap(jax.grad(lambda a: a**3))(y), x0)  # noqa: E731
    return jax.grad(lambda x: jax.lax.custom_root(lambda y: y**3 - x, x, newton, solve).sum())(x[0])


def _linear_solve(jax, x):
    a = x[:, :8] @ x[:, :8].T + 3 * jax.numpy.eye(8)
    solve = lambda mv, b: jax.scipy.sparse.linalg.cg(mv, b, maxiter=5)[0]  # noqa: E731
    return jax.grad(lambda b: jax.lax.custom_linear_solve(lambda v: a @ v, b, solve, symmetric=True).sum())(x[:, 0])


def _batched_rule(jax, x):
    @jax.custom_batching.custom_vmap
    def f(x):
        return jax.numpy.sin(x)

    f.def_vmap(lambda size, batched, x: (jax.numpy.cos(x), True))
    return jax.vmap(f)(x)


def _named(jax, x):
    with jax.named_scope("outer"):
        return jax.named_call(lambda x: jax.numpy.tanh(x) * 2, name="inner")(x)


def _exported(jax, x, **options):
    f = jax.export.export(jax.jit(lambda x: jax.numpy.tanh(x) @ x.T), platforms=("cpu", "tpu", "cuda"))
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    again = jax.export.deserialize(f(shape).serialize(vjp_order=1))
    return again.call(x), jax.grad(lambda x: again.call(x).sum())(x)


def _exported_symbolic(jax, x):
    types = jax.ShapeDtypeStruct(jax.export.symbolic_shape("b, 128"), F)
    return jax.export.export(jax.jit(lambda x: x / x.sum(1, keepdims=True) * x.shape[0]), platforms=("tpu", "cuda"))(
        types
    ).call(x)


def _checked(jax):
    checkify = _callback(jax, "checkify")
    return checkify.checkify(lambda x: checkify.check((x > 0).all(), "low") or jax.numpy.log(x))


def _callback(jax, name):
    return getattr(__import__(f"{jax.__name__}.experimental", fromlist=[name]), name)


add_each(
    "rules",
    {
        "custom": _rules,
        "clipped": _clipped,
        "custom_root": _implicit,
        "custom_linear_solve": _linear_solve,
        "custom_vmap": _batched_rule,
        "named": _named,
        "barrier": lambda jax, x: jax.grad(lambda x: jax.lax.optimization_barrier((x * 2, x.sum()))[0].sum() ** 2)(x),
        "stop_gradient": lambda jax, x: jax.grad(lambda x: (jax.lax.stop_gradient(x) * x**2).sum())(x),
        "linearized": lambda jax, x: jax.linearize(lambda x: jax.numpy.sin(x) @ x.T, x)[1](x),
        "jacobian": lambda jax, x: jax.jacfwd(lambda r: jax.numpy.outer(jax.numpy.sin(r), r))(x[0, :16]),
        "hessian product": lambda jax, x: jax.jvp(jax.grad(lambda x: (jax.numpy.tanh(x @ x.T) ** 2).sum()), (x,), (x,)),
        "jacrev": lambda jax, x: jax.jacrev(lambda r: jax.nn.softmax(r * 2))(x[0, :16]),
        "references in loops": lambda jax, x: _summed(jax, x),
        "exported": _exported,
        "exported symbolic": _exported_symbolic,
        "callback of rows": lambda jax, x: jax.vmap(lambda r: jax.pure_callback(abs, jax.ShapeDtypeStruct(r.shape, r.dtype), r, vmap_method="expand_dims"))(x),
        "callback unordered": lambda jax, x: _callback(jax, "io_callback")(lambda a: a, jax.ShapeDtypeStruct(x.shape, x.dtype), x) * 2,
        "print in scan": lambda jax, x: jax.lax.scan(lambda h, r: (jax.debug.print("{h}", h=h[0], ordered=True) or h + r, None), x[0], x)[0],
        "checked": lambda jax, x: jax.tree.leaves(_checked(jax)(x)),
    },
    ((8, 128), F),
)  # fmt: skip


def _summed(jax, x):
    total = jax.new_ref(jax.numpy.zeros(x.shape[1]))

    def body(i, _):
        total[...] += x[i]

    jax.lax.fori_loop(0, x.shape[0], body, None)
    return jax.freeze(total)


@program()
def dtypes_promoted(jax, jnp, lax):
    return (
        (lambda a, b, c: (a + b, a * c, b / c, a @ b.T, jnp.where(c > 0, a, b))),
        ((8, 128), B),
        ((8, 128), F),
        ((8, 128), "int8"),
    )
