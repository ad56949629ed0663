"""The group `growth`: how time and memory grow with operations, leaves, devices and nesting.

A row is named `growth/<subject>/<size>`; `exponents.py` fits a power of the size to the rows of a subject.
"""

import gc
import importlib
import json
import os
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from measure import clock, group, guard, jax, jnp, np, options, put, results, sync, turn

ENOUGH = 1.0 if options.quick else 1.5  # seconds: after a measurement that took longer, larger sizes are left out
OPERATIONS = (100, 1_000, 10_000) if options.quick else (100, 1_000, 10_000, 100_000)
LEAVES = (10, 100, 1_000) if options.quick else (10, 100, 1_000, 10_000, 100_000)
DEPTHS = (10, 30, 100) if options.quick else (10, 30, 100, 300)
LAYERS = (10, 100) if options.quick else (10, 100, 1_000)
DEVICES = (1, 4, 16) if options.quick else (1, 4, 16, 64, 256)
LIMIT = 10_000  # of recursion in both, for depths: under Python's own, jax ends at about 50 nested functions

Work = Callable[[], Any]


def grown(subject: str, sizes: Iterable[int], make: Callable[[int], Work]) -> None:
    """A row a size: the time of `make(size)()`, without that of `make`. The first failure or a long time ends it."""
    for size in sizes:
        row = f"growth/{subject}/{size}"
        took = []

        def measure(row=row, size=size, took=took):
            while len(took) < 3 and sum(took) < ENOUGH / 4:
                work = make(size)
                gc.collect()
                turn()
                start = clock()
                kept = work()
                took.append(clock() - start)
                del work, kept
            put(row, took, "ms")

        guard(row, measure)
        print(f"[{options.impl}] {row}: {results[row]}", file=sys.stderr, flush=True)
        if "error" in results[row] or min(took) > ENOUGH:
            return


def weighed(subject: str, sizes: Iterable[int], make: Callable[[int], Work]) -> None:
    """A row a size: the most memory that Python held at once during `make(size)()`."""
    for size in sizes:
        row = f"growth/{subject}/{size}"

        def measure(row=row, size=size):
            make(size)()  # what stays in caches is not the program's
            work = make(size)
            gc.collect()
            turn()
            tracemalloc.start()
            try:
                kept = work()
                put(row, [tracemalloc.get_traced_memory()[1] / 1024], "KiB")
            finally:
                tracemalloc.stop()
            del kept

        guard(row, measure)


def chain(n: int) -> Callable:
    def f(x, y):
        for i in range(n):
            x = jnp.sin(x) if i % 3 == 0 else x + y if i % 3 == 1 else x * y
        return x

    return f


def _of_operations() -> None:
    x = jnp.ones(16)
    two = jnp.ones((2, 16))
    ways = {
        "trace": lambda f: lambda: jax.jit(f).trace(x, x),
        "jvp": lambda f: lambda: jax.jit(lambda a, b: jax.jvp(f, (a, b), (a, b))).trace(x, x),
        "grad": lambda f: lambda: jax.jit(jax.grad(lambda a, b: f(a, b).sum())).trace(x, x),
        "vmap": lambda f: lambda: jax.jit(jax.vmap(f, (0, None))).trace(two, x),
        "checkpoint": lambda f: lambda: jax.jit(jax.grad(lambda a, b: jax.checkpoint(f)(a, b).sum())).trace(x, x),
        "eager_vjp": lambda f: lambda: jax.vjp(f, x, x),
    }
    for way, made in ways.items():
        sizes = [n for n in OPERATIONS if way != "eager_vjp" or n <= 10_000]
        grown(f"{way}, operations", sizes, lambda n, made=made: made(chain(n)))

    def lowering(n):
        traced = jax.jit(chain(n)).trace(x, x)
        return lambda: traced.lower().as_text()

    def printing(n):
        closed = jax.make_jaxpr(chain(n))(x, x)
        return lambda: str(closed)

    as_function = importlib.import_module(options.impl + ".extend.core").jaxpr_as_fun

    def interpreting(n):
        closed = jax.make_jaxpr(chain(n))(x, x)
        return lambda: jax.make_jaxpr(as_function(closed))(x, x)

    grown("lower, operations", OPERATIONS, lowering)
    grown("print, operations", OPERATIONS, printing)
    grown("interpret, operations", OPERATIONS, interpreting)


def _of_leaves() -> None:
    x = np.float32(1)
    tree = jax.tree_util

    def leaves(n):
        return {f"layer{i}": (x, [x]) for i in range(n // 2)}

    def calling(n):
        f = jax.jit(lambda t: t["layer0"][0] + 1)
        values = jax.device_put(leaves(n))
        sync(f(values))
        return lambda: sync(f(values))

    def tracing(transform):
        def make(n):
            f = transform(lambda t: sum(tree.tree_leaves(t)))
            return lambda: jax.jit(f).trace(leaves(n))

        return make

    def lowering(n):
        traced = jax.jit(lambda t: tree.tree_map(lambda a: a + 1, t)).trace(leaves(n))
        return lambda: traced.lower().as_text()

    def mapping(n):
        values = leaves(n)
        return lambda: tree.tree_map_with_path(lambda path, a: a, values)

    def putting(n):
        values = leaves(n)
        return lambda: sync(jax.device_put(values))

    grown("call, leaves", LEAVES, calling)
    grown("trace, leaves", LEAVES, tracing(lambda f: f))
    grown("grad, leaves", LEAVES, tracing(jax.grad))
    grown("vmap, leaves", LEAVES, tracing(lambda f: lambda t: jax.vmap(lambda b: f(t) + b)(jnp.ones(2))))
    grown("lower, leaves", LEAVES, lowering)
    grown("map_with_path, leaves", LEAVES, mapping)
    grown("device_put, leaves", LEAVES, putting)


def _of_custom_jvp(f):
    g = jax.custom_jvp(lambda x: f(x) + 1)
    g.defjvp(lambda primals, tangents: (g(*primals), tangents[0]))
    return g


def _of_custom_vjp(f):
    g = jax.custom_vjp(lambda x: f(x) + 1)
    g.defvjp(lambda x: (g(x), None), lambda _, ct: (ct,))
    return g


WRAPPED = {
    "jit": lambda f: jax.jit(lambda x: f(x) + 1),
    "cond": lambda f: lambda x: jax.lax.cond(x > 0, lambda y: f(y) + 1, lambda y: y, x),
    "scan": lambda f: lambda x: jax.lax.scan(lambda c, _: (f(c) + 1, None), x, None, length=2)[0],
    "while": lambda f: lambda x: jax.lax.while_loop(lambda c: c < 0, lambda c: f(c) + 1, x),
    "vmap": lambda f: jax.vmap(lambda x: f(x) + 1, in_axes=None, out_axes=None, axis_size=2),
    "grad": lambda f: lambda x: jax.grad(lambda y: y * (f(x) + 1))(x),
    "checkpoint": lambda f: jax.checkpoint(lambda x: f(x) + 1),
    "custom_jvp": _of_custom_jvp,
    "custom_vjp": _of_custom_vjp,
}


def nested(kind: str, depth: int) -> Callable:
    """x -> 2 x + depth, as so many functions inside each other."""

    def f(x):
        return x * 2

    for _ in range(depth):
        f = WRAPPED[kind](f)
    return lambda x: f(x)


def nested_tree(depth: int) -> Any:
    tree = np.float32(1)
    for i in range(depth):
        tree = [tree] if i % 2 else {"a": tree}
    return tree


def _of_depth() -> None:
    def lowering(kind):
        def make(n):
            traced = jax.jit(nested(kind, n)).trace(1.0)
            return lambda: traced.lower().as_text()

        return make

    def differentiating(kind):
        return lambda n: lambda: jax.jit(jax.grad(nested(kind, n))).trace(1.0)

    def printing(kind):
        def make(n):
            closed = jax.make_jaxpr(nested(kind, n))(1.0)
            return lambda: str(closed)

        return make

    def on_tree(way):
        def make(n):
            tree = nested_tree(n)
            return lambda: way(tree)

        return make

    increment = lambda t: jax.tree_util.tree_map(lambda a: a + 1, t)
    for kind in WRAPPED:
        grown(f"trace, nested {kind}", DEPTHS, lambda n, kind=kind: lambda: jax.jit(nested(kind, n)).trace(1.0))
        if kind != "while":  # which has no reverse derivative
            grown(f"grad, nested {kind}", DEPTHS, differentiating(kind))
        grown(
            f"vmap, nested {kind}",
            DEPTHS,
            lambda n, kind=kind: lambda: jax.jit(jax.vmap(nested(kind, n))).trace(np.ones(2, np.float32)),
        )
        if kind not in ("vmap", "grad"):  # they leave no nested programs
            grown(f"lower, nested {kind}", DEPTHS, lowering(kind))
            grown(f"print, nested {kind}", DEPTHS, printing(kind))
    grown("map, nested tree", DEPTHS, on_tree(increment))
    grown("map_with_path, nested tree", DEPTHS, on_tree(lambda t: jax.tree_util.tree_map_with_path(lambda p, a: a, t)))
    grown("call, nested tree", DEPTHS, on_tree(lambda t: sync(jax.jit(increment)(t))))
    grown("grad, nested tree", DEPTHS, on_tree(lambda t: jax.grad(lambda t: jax.tree_util.tree_leaves(t)[0] * 2.0)(t)))


def _of_layers() -> None:
    x = jnp.ones((8, 16))

    def model(n):
        params = [(jnp.ones((16, 16)), jnp.ones(16)) for _ in range(n)]

        def loss(params, x):
            for w, b in params:
                h = jax.nn.gelu(x @ w + b)
                x = x + h / jnp.sqrt(jnp.var(h, -1, keepdims=True) + 1e-6)
            return jnp.mean(x)

        return loss, params

    def traced(transform):
        def make(n):
            loss, params = model(n)
            return lambda: jax.jit(transform(loss)).trace(params, x)

        return make

    weighed("memory of trace, layers", LAYERS, traced(lambda f: f))
    weighed("memory of grad, layers", LAYERS, traced(jax.grad))
    grown("trace, layers", LAYERS, traced(lambda f: f))
    grown("grad, layers", LAYERS, traced(jax.grad))


def _over_devices(n: int) -> None:
    """In a process that has so many devices."""
    P = jax.sharding.PartitionSpec
    mesh = jax.make_mesh((n,), ("x",))
    cut = jax.sharding.NamedSharding(mesh, P("x"))
    value = np.ones((n, 4), np.float32)
    x = sync(jax.device_put(value, cut))
    f = jax.jit(lambda v: v * 2)
    sync(f(x))

    def first(body, out):
        mapped = lambda: jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=out)
        return lambda _: lambda: jax.jit(mapped()).trace(x).lower().as_text()

    grown("device_put, devices", (n,), lambda _: lambda: sync(jax.device_put(value, cut)))
    grown("call, devices", (n,), lambda _: lambda: sync(f(x)))
    grown("read, devices", (n,), lambda _: lambda: np.asarray(f(x)))
    grown("shards, devices", (n,), lambda _: lambda: [s.index for s in f(x).addressable_shards])
    grown("trace and lower, devices", (n,), first(lambda v: v * 2, P("x")))
    grown("psum: trace and lower, devices", (n,), first(lambda v: jax.lax.psum(v, "x"), P()))
    grown("compile, devices", (n,), _compiling(x))


def _compiling(x: Any) -> Callable[[int], Work]:
    def make(_):
        nonce = time.time_ns() % 1_000_003  # a program that no cache has seen
        return lambda: jax.jit(lambda v: v * nonce).lower(x).compile()

    return make


def _of_devices() -> None:
    frontend = [sys.executable, str(Path(__file__).parent / "frontend.py"), "--impl", options.impl]
    frontend += ["--groups", "growth", "--clock", options.clock, *["--quick"][: options.quick]]
    for count in DEVICES:

        def measure(count=count):
            flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={count}"
            env = dict(os.environ, XLA_FLAGS=flags, BENCH_GROWTH_DEVICES=str(count))
            done = subprocess.run(frontend, env=env, capture_output=True, text=True, timeout=300, check=True)
            results.update(
                {row: v for row, v in json.loads(done.stdout)["results"].items() if row.startswith("growth/")}
            )

        turn()
        guard(f"growth/devices/{count}", measure)


@group
def growth():
    devices = os.environ.get("BENCH_GROWTH_DEVICES")
    if devices:
        return _over_devices(int(devices))
    limit = sys.getrecursionlimit()
    _of_operations()
    _of_leaves()
    _of_layers()
    sys.setrecursionlimit(LIMIT)
    try:
        _of_depth()
    finally:
        sys.setrecursionlimit(limit)
    _of_devices()
