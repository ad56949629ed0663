"""Groups of single calls: jitted functions, trees, eager operations, indexing, transforms, random numbers."""

import contextlib
import functools
import io as io_
import itertools
import operator

from measure import group, guard, jax, jnp, np, timed


@group
def dispatch():
    x = jnp.ones((4,))
    y = jnp.ones((4,))
    f1 = jax.jit(lambda a: a + 1)
    timed("dispatch/jit_1arg", lambda: f1(x))
    f2 = jax.jit(lambda a, b: a + b)
    timed("dispatch/jit_2arg", lambda: f2(x, y))
    for n in (10, 100, 1000):
        xs = [jnp.ones(()) for _ in range(n)]
        fs = jax.jit(lambda *a: functools.reduce(operator.add, a))
        timed(f"dispatch/jit_{n}arg_sum", lambda: fs(*xs))
        fl = jax.jit(lambda a: functools.reduce(operator.add, a))
        timed(f"dispatch/jit_list{n}_sum", lambda: fl(xs))
        fo = jax.jit(lambda a: [v + 1 for v in a])
        timed(f"dispatch/jit_list{n}_in_out", lambda: fo(xs))
        fp = jax.jit(lambda *a: a[0] + 1)
        timed(f"dispatch/jit_{n}arg_unused_pruned", lambda: fp(*xs))
    d = {f"l{i}": {"w": jnp.ones(()), "b": jnp.ones(())} for i in range(50)}
    fd = jax.jit(lambda p: jax.tree_util.tree_map(lambda v: v * 2, p))
    timed("dispatch/jit_dict100_in_out", lambda: fd(d))
    timed("dispatch/jit_py_scalar", lambda: f1(1.0))
    fst = jax.jit(lambda a, n: a * n, static_argnums=1)
    timed("dispatch/jit_static", lambda: fst(x, 3))
    fkw = jax.jit(lambda a, *, k: a + k)
    timed("dispatch/jit_kwarg", lambda: fkw(x, k=y))
    a = np.ones((4,), np.float32)
    timed("dispatch/jit_numpy_in", lambda: f1(a))

    def aot():
        c = f1.lower(x).compile()
        timed("dispatch/aot_1arg", lambda: c(x))

    guard("dispatch/aot_1arg", aot)

    def donate():
        g = jax.jit(lambda a: a + 1, donate_argnums=0)

        state = [jnp.ones((4,))]

        def loop():
            state[0] = g(state[0])
            return state[0]

        timed("dispatch/jit_donated_loop", loop)

    guard("dispatch/jit_donated_loop", donate)
    m = jnp.ones((64, 64))
    fm = jax.jit(lambda a: a @ a)
    timed("dispatch/jit_matmul64_blocked", lambda: fm(m), each=True)


@group
def pytree():
    tu = jax.tree_util
    small = (jnp.ones(()), jnp.ones(()))
    timed("pytree/flatten_2", lambda: tu.tree_flatten(small))
    for n in (20, 1000):
        t = {f"l{i}": (1.0, [2.0]) for i in range(n // 2)}
        timed(f"pytree/flatten_{n}", lambda: tu.tree_flatten(t))
        flat, d = tu.tree_flatten(t)
        timed(f"pytree/unflatten_{n}", lambda: tu.tree_unflatten(d, flat))
        timed(f"pytree/map_{n}", lambda: tu.tree_map(lambda v: v, t))
        timed(f"pytree/flatten_with_path_{n}", lambda: tu.tree_flatten_with_path(t))

    def custom():
        class N:
            def __init__(self, a, b):
                self.a, self.b = a, b

        tu.register_pytree_node(N, lambda n: ((n.a, n.b), None), lambda _, c: N(*c))
        t = [N(1.0, 2.0) for _ in range(50)]
        timed("pytree/flatten_custom_50x2", lambda: tu.tree_flatten(t))

    guard("pytree/flatten_custom_50x2", custom)


@group
def eager():
    x = jnp.arange(4.0) + 1
    y = x + 1
    m = jnp.ones((8, 8))
    i = jnp.arange(4)
    b = x > 2
    calls = {
        "add_op": lambda: x + y,
        "add_scalar": lambda: x + 1.0,
        "mul_op": lambda: x * y,
        "pow2": lambda: x**2,
        "neg": lambda: -x,
        "gt": lambda: x > y,
        "jnp.add": lambda: jnp.add(x, y),
        "jnp.sin": lambda: jnp.sin(x),
        "jnp.exp": lambda: jnp.exp(x),
        "jnp.maximum": lambda: jnp.maximum(x, y),
        "jnp.where": lambda: jnp.where(b, x, y),
        "jnp.sum": lambda: jnp.sum(m),
        "m.sum(0)": lambda: m.sum(0),
        "jnp.mean": lambda: jnp.mean(m),
        "jnp.max": lambda: jnp.max(m, axis=1),
        "jnp.argmax": lambda: jnp.argmax(x),
        "jnp.var": lambda: jnp.var(x),
        "jnp.dot": lambda: jnp.dot(m, m),
        "matmul_op": lambda: m @ m,
        "jnp.einsum": lambda: jnp.einsum("ij,jk->ik", m, m),
        "reshape": lambda: x.reshape(2, 2),
        "transpose": lambda: m.T,
        "jnp.concatenate": lambda: jnp.concatenate([x, y]),
        "jnp.stack": lambda: jnp.stack([x, y]),
        "jnp.zeros": lambda: jnp.zeros((3, 3)),
        "jnp.ones_like": lambda: jnp.ones_like(x),
        "jnp.arange": lambda: jnp.arange(10),
        "jnp.linspace": lambda: jnp.linspace(0.0, 1.0, 10),
        "jnp.array(list)": lambda: jnp.array([1.0, 2.0, 3.0]),
        "jnp.asarray(np)": (lambda a: lambda: jnp.asarray(a))(np.ones(4, np.float32)),
        "astype": lambda: x.astype(jnp.int32),
        "jnp.broadcast_to": lambda: jnp.broadcast_to(x, (4, 4)),
        "jnp.cumsum": lambda: jnp.cumsum(x),
        "jnp.sort": lambda: jnp.sort(x),
        "jnp.clip": lambda: jnp.clip(x, 0.0, 1.0),
        "jnp.squeeze": lambda: jnp.squeeze(m[None]),
        "jnp.expand_dims": lambda: jnp.expand_dims(x, 0),
        "jnp.linalg.norm": lambda: jnp.linalg.norm(x),
        "jnp.allclose": lambda: jnp.allclose(x, y),
        "jnp.unique": lambda: jnp.unique(i),
        "nn.relu": lambda: jax.nn.relu(x),
        "nn.softmax": lambda: jax.nn.softmax(x),
        "nn.gelu": lambda: jax.nn.gelu(x),
        "nn.one_hot": lambda: jax.nn.one_hot(i, 4),
        "lax.add": lambda: jax.lax.add(x, y),
        "lax.dynamic_slice": lambda: jax.lax.dynamic_slice(x, (1,), (2,)),
    }
    for name, f in calls.items():
        timed("eager/" + name, f)


@group
def index():
    x = jnp.arange(16.0)
    m = jnp.ones((8, 8))
    i = jnp.array([0, 2])
    b = x > 3
    calls = {
        "x[0]": lambda: x[0],
        "x[-1]": lambda: x[-1],
        "x[1:3]": lambda: x[1:3],
        "x[::2]": lambda: x[::2],
        "m[1,2]": lambda: m[1, 2],
        "m[:,1]": lambda: m[:, 1],
        "m[None]": lambda: m[None],
        "x[i_array]": lambda: x[i],
        "x[mask]": lambda: x[b],
        "x.at[0].set": lambda: x.at[0].set(1.0),
        "x.at[1:3].add": lambda: x.at[1:3].add(1.0),
        "x.at[i].set": lambda: x.at[i].set(0.0),
        "m.at[:,1].multiply": lambda: m.at[:, 1].multiply(2.0),
        "iterate_16": lambda: [v for v in x],
        "float(x[0])": lambda: float(x[0]),
    }
    for name, f in calls.items():
        timed("index/" + name, f)

    def loop():
        v = jnp.zeros(16)
        for k in range(16):
            v = v.at[k].set(k)
        return v

    timed("index/at_set_python_loop_16", loop)

    count = itertools.count(1)
    timed("index/x[varying_int]", lambda: x[next(count) % 16])


@group
def transform():
    x = jnp.arange(4.0) + 1
    s = jnp.float32(1.3)
    M = jnp.ones((5, 4))
    f = lambda a: (jnp.sin(a) * a).sum()
    g = lambda a: jnp.sin(a) * 2
    h = lambda a: jnp.sum(jnp.tanh(M @ a) ** 2)
    ws = [jnp.ones((4, 4)) * 0.1 for _ in range(4)]

    def mlp(ws, a):
        for w in ws:
            a = jnp.tanh(w @ a)
        return jnp.sum(a)

    lax = jax.lax
    jitted = jax.jit(jax.grad(f))
    calls = {
        "grad_small": lambda: jax.grad(f)(x),
        "grad_scalar_poly": lambda: jax.grad(lambda v: v**4 + 2 * v)(1.0),
        "value_and_grad": lambda: jax.value_and_grad(h)(x),
        "grad_mlp4": lambda: jax.grad(mlp)(ws, x),
        "grad_grad_grad": lambda: jax.grad(jax.grad(jax.grad(lambda v: jnp.sin(v) * v)))(s),
        "jvp": lambda: jax.jvp(g, (x,), (x,)),
        "vjp": lambda: jax.vjp(g, x)[1](x),
        "linearize": lambda: jax.linearize(g, x)[1](x),
        "vmap": lambda: jax.vmap(g)(M),
        "vmap_grad": lambda: jax.vmap(jax.grad(f))(M),
        "jacfwd": lambda: jax.jacfwd(g)(x),
        "jacrev": lambda: jax.jacrev(g)(x),
        "hessian": lambda: jax.hessian(h)(x),
        "jit_grad_hot": lambda: jitted(x),
        "eager_scan10": lambda: lax.scan(lambda c, v: (c + v, c), jnp.float32(0), jnp.arange(10.0)),
        "eager_cond": lambda: lax.cond(True, lambda v: v + 1, lambda v: v - 1, x),
        "eager_while": lambda: lax.while_loop(lambda c: c < 5, lambda c: c + 1, 0),
        "eager_fori": lambda: lax.fori_loop(0, 5, lambda i, c: c + i, 0),
        "eval_shape": lambda: jax.eval_shape(h, x),
        "make_jaxpr": lambda: jax.make_jaxpr(h)(x),
        "new_jit_same_fn": lambda: jax.jit(g)(x),
    }
    for name, fn in calls.items():
        timed("transform/" + name, fn)

    timed("transform/jit_fresh_lambda", lambda: jax.jit(lambda a: a * 2 + 1)(x), unit="ms")
    sizes = itertools.count(9)

    def shapes():
        return jax.jit(g)(jnp.asarray(np.ones(next(sizes), np.float32)))

    timed("transform/jit_new_shape_each_call", shapes, unit="ms")


@group
def random_():
    r = jax.random
    k = r.key(0)
    ko = r.PRNGKey(0)
    for name, f in {
        "key": lambda: r.key(0),
        "PRNGKey": lambda: r.PRNGKey(0),
        "split": lambda: r.split(k),
        "split_legacy": lambda: r.split(ko),
        "fold_in": lambda: r.fold_in(k, 1),
        "normal_4": lambda: r.normal(k, (4,)),
        "uniform_100x100": lambda: r.uniform(k, (100, 100)),
        "normal_100x100": lambda: r.normal(k, (100, 100)),
        "bits_1e6": lambda: r.bits(k, (1000000,)),
        "normal_1e6": lambda: r.normal(k, (1000000,)),
        "randint_100": lambda: r.randint(k, (100,), 0, 10),
        "permutation_1000": lambda: r.permutation(k, 1000),
        "categorical_8x100": lambda: r.categorical(k, jnp.zeros((8, 100))),
        "choice_100": lambda: r.choice(k, 100, (10,)),
        "truncated_normal_64": lambda: r.truncated_normal(k, -2.0, 2.0, (64,)),
        "gamma_64": lambda: r.gamma(k, 2.0, (64,)),
    }.items():
        timed("random/" + name, f, each=True)

    def split_unpack():
        a, b = r.split(k)
        return b

    timed("random/key,sub=split", split_unpack, each=True)


@group
def effects():
    x = jnp.ones(4)
    out = jax.ShapeDtypeStruct((4,), np.float32)

    def nothing(*args):
        return None

    def double(v):
        return np.asarray(v) * 2

    def shown(v):
        jax.debug.callback(nothing, v)
        return v + 1

    def in_order(v):
        jax.debug.callback(nothing, v, ordered=True)
        return v + 1

    io = jax.experimental.io_callback
    calls = {
        "pure_callback": jax.jit(lambda v: jax.pure_callback(double, out, v)),
        "pure_callback_in_sum": jax.jit(lambda v: jax.pure_callback(double, out, v + 1).sum()),
        "io_callback": jax.jit(lambda v: io(double, out, v)),
        "io_callback_ordered": jax.jit(lambda v: io(double, out, v, ordered=True)),
        "debug_callback": jax.jit(shown),
        "debug_callback_ordered": jax.jit(in_order),
        "debug_callback_in_scan10": jax.jit(lambda v: jax.lax.scan(lambda c, _: (shown(c), None), v, None, 10)[0]),
        "eager_pure_callback": lambda v: jax.pure_callback(double, out, v),
        "eager_debug_callback": lambda v: jax.debug.callback(nothing, v),
    }
    for name, f in calls.items():
        timed("effects/" + name, lambda f=f: f(x))
    with contextlib.redirect_stdout(io_.StringIO()):
        printed = jax.jit(lambda v: jax.debug.print("{}", v))
        timed("effects/debug_print", lambda: printed(x))
    jax.effects_barrier()


@group
def host():
    a4 = np.ones(4, np.float32)
    big = np.ones(1 << 20, np.float32)
    x = jnp.ones(4)
    X = jnp.asarray(big)
    s = jnp.float32(1)
    for name, f in {
        "device_put_4": lambda: jax.device_put(a4),
        "device_put_4MiB": lambda: jax.device_put(big),
        "np.asarray_4": lambda: np.asarray(x + 0),
        "np.asarray_4MiB": lambda: np.asarray(X),
        "float(scalar)": lambda: float(s),
        "scalar.item()": lambda: s.item(),
        "bool(scalar)": lambda: bool(s),
        "repr_4": lambda: repr(x),
        "tolist_4": lambda: x.tolist(),
        "device_get": lambda: jax.device_get(x),
        "x.shape": lambda: x.shape,
        "x.dtype": lambda: x.dtype,
        "x.aval-free isinstance": lambda: isinstance(x, jax.Array),
        "block_until_ready": lambda: x.block_until_ready(),
    }.items():
        timed("host/" + name, f)
