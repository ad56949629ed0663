"""Groups of whole programs: their trace, lowering, compilation and run, training loops, memory."""

import functools
import gc
import importlib
import json
import os
import re
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

from measure import clock, group, guard, jax, jnp, np, options, put, results, sync, timed, turn
from models import (
    chain_make,
    mlp_step_make,
    nested_grad_make,
    placed_on_paper,
    randn,
    rnn_step_make,
    spectral_radius,
    train_make,
    transformer_step_make,
    vmap_hessian_make,
)


def count_eqns(jaxpr):
    n = 0
    for e in jaxpr.eqns:
        n += 1
        for v in e.params.values():
            for w in v if isinstance(v, (tuple, list)) else (v,):
                w = getattr(w, "jaxpr", w)
                if hasattr(w, "eqns"):
                    n += count_eqns(w)
    return n


def instructions(compiled):
    """The number of instructions in the optimized HLO of a program, including those in fusions and loops."""
    return len(re.findall(r"^ +(?:ROOT )?%?[\w.-]+ = ", compiled.as_text(), re.MULTILINE))


def stage(name, make, compile_reps=2, run=True):
    """Rows for each stage of a program: traced, lowered, compiled, run."""
    repeats = 3 if options.quick else 5
    fn, args = make()
    traces, lowerings, compilations = [], [], []

    def once(i):
        nonce = float(time.time_ns() % 1_000_003 + i)  # a program that no cache has seen
        gc.collect()
        f = jax.jit(lambda *a: (fn(*a), jnp.float32(nonce)))
        turn()
        t0 = clock()
        traced = f.trace(*args)
        len(traced.jaxpr.eqns)
        t1 = clock()
        lowered = traced.lower()
        text = lowered.as_text()
        t2 = clock()
        traces.append(t1 - t0)
        lowerings.append(t2 - t1)
        if i < compile_reps:
            t2 = clock()
            compiled = lowered.compile()
            compilations.append(clock() - t2)
            return traced, text, compiled
        return traced, text, None

    def measure():
        traced, text, compiled = once(0)
        for i in range(1, repeats):
            once(i)
        count, lines = count_eqns(getattr(traced.jaxpr, "jaxpr", traced.jaxpr)), text.count("\n")
        put(
            f"{name}/trace",
            traces[1:],
            "ms",
            first=round(traces[0] * 1e3, 3),
            eqns=count,
            top_eqns=len(traced.jaxpr.eqns),
            hlo_lines=lines,
        )
        put(f"{name}/lower", lowerings[1:], "ms", first=round(lowerings[0] * 1e3, 3))
        put(f"{name}/trace_us_per_eqn", [t / max(count, 1) for t in traces[1:]], "us")
        put(f"{name}/lower_us_per_hlo_line", [t / max(lines, 1) for t in lowerings[1:]], "us")
        put(f"{name}/hlo_chars", [len(text)], "count")
        put(f"{name}/hlo_lines", [lines], "count")
        put(f"{name}/eqns", [count], "count")
        if compiled is not None:
            put(f"{name}/compile", compilations, "ms")
            put(f"{name}/hlo_instructions", [instructions(compiled)], "count")
            if run:
                timed(f"{name}/run", lambda: compiled(*args), each=True)

    guard(name, measure)


def on_paper(name, make, sizes, platform="tpu"):
    """Rows for tracing and lowering a program for devices that this machine lacks."""

    def measure():
        step, args = placed_on_paper(make, sizes)
        traces, lowerings = [], []
        for i in range(2 if options.quick else 4):
            gc.collect()
            f = jax.jit(lambda *a, i=i: (step(*a), jnp.float32(i)))
            turn()
            t0 = clock()
            traced = f.trace(*args)
            t1 = clock()
            traced.lower(lowering_platforms=(platform,)).as_text()
            traces.append(t1 - t0)
            lowerings.append(clock() - t1)
        put(f"{name}/trace", traces[1:], "ms")
        put(f"{name}/lower", lowerings[1:], "ms")

    guard(name, measure)


@group
def stages():
    stage("stages/mlp_step", mlp_step_make)
    stage("stages/transformer2_step", lambda: transformer_step_make(2))
    if not options.quick:
        stage("stages/transformer12_step", lambda: transformer_step_make(12), compile_reps=1)
    large = functools.partial(transformer_step_make, 12, batch=256)
    for data in (2,) if options.quick else (2, 32):
        on_paper(f"stages/transformer12_over_{8 * data}", large, (data, 8))
    on_paper("stages/transformer12_over_16_gpus", large, (2, 8), "cuda")
    for platform in ("tpu", "cuda"):
        on_paper(f"stages/rnn3_scan_step_{platform}", rnn_step_make, (1, 1), platform)
    stage("stages/nested_grad3", lambda: nested_grad_make(3))
    stage("stages/nested_grad5", lambda: nested_grad_make(5))
    stage("stages/rnn3_scan_step", rnn_step_make)
    stage("stages/vmap_hessian", vmap_hessian_make)


@group
def chains():
    stage("chains/op_1000", lambda: chain_make(1000))
    stage("chains/jnp_1000", lambda: chain_make(1000, "jnp"), compile_reps=0)  # XLA CPU needs ~40 s for it
    stage("chains/jnp_100", lambda: chain_make(100, "jnp"))
    stage("chains/idx_1000", lambda: chain_make(1000, "idx"))

    def grad_make():
        f, a = chain_make(1000)
        return jax.grad(lambda *b: f(*b).sum()), a

    stage("chains/grad_op_1000", grad_make)

    def vmap_make():
        f, (x, y) = chain_make(1000)
        return jax.vmap(f, (0, None)), (jnp.ones((4, 16)), y)

    stage("chains/vmap_op_1000", vmap_make)

    def big():
        f, a = chain_make(10000)
        T, L = [], []
        for _ in range(2 if options.quick else 3):
            g = jax.jit(lambda *b: f(*b))
            gc.collect()
            turn()
            t0 = clock()
            tr = g.trace(*a)
            len(tr.jaxpr.eqns)
            t1 = clock()
            lo = tr.lower()
            lo.as_text()
            t2 = clock()
            T.append(t1 - t0)
            L.append(t2 - t1)
        put("chains/op_10000/trace", T, "ms")
        put("chains/op_10000/lower", L, "ms")
        if not options.quick:
            t0 = clock()
            lo.compile()
            put("chains/op_10000/compile", [clock() - t0], "ms")

    guard("chains/op_10000/trace", big)

    def deep():  # nested jit calls: recursion and inner caches
        f = lambda x: x + 1
        for _ in range(60):
            f = jax.jit(functools.partial(lambda g, x: g(x) * 1.5, f))
        timed("chains/nested_jit_60_first", lambda: jax.jit(lambda x: f(x))(1.0), unit="ms")

    guard("chains/nested_jit_60_first", deep)

    def consts():  # 32 MiB captured constant
        big = jnp.ones((8 << 20,), jnp.float32)
        sync(big)
        T = []
        for _ in range(2):
            f = jax.jit(lambda x: (big * x)[0])
            turn()
            t = clock()
            sync(f(1.0))
            T.append(clock() - t)
        put("chains/captured_const_32MiB_first_call", T, "ms")

    guard("chains/captured_const_32MiB_first_call", consts)


@group
def seed():
    key = jax.random.PRNGKey(0)
    jrandn = jax.jit(randn, static_argnums=(1, 2))
    timed("seed/randn_100x100", lambda: randn(key, (100, 100))[1], each=True)
    timed("seed/jit_randn_100x100", lambda: jrandn(key, (100, 100))[1], each=True)
    up = lambda n: jnp.sum(jnp.arange(n))
    jup = jax.jit(up, static_argnums=(0,))
    timed("seed/sum_arange_50000", lambda: up(50000), each=True)
    timed("seed/jit_sum_arange_50000", lambda: jup(50000), each=True)
    _, batch = randn(key, (128, 3, 3))
    loop = lambda b: list(map(spectral_radius, b))
    jl = jax.jit(loop)
    vm = jax.vmap(spectral_radius)
    jv = jax.jit(vm)
    timed("seed/specrad_loop_128", lambda: loop(batch), each=True, unit="ms")
    timed("seed/specrad_jit_loop_128", lambda: jl(batch), each=True, unit="ms")
    timed("seed/specrad_vmap_128", lambda: vm(batch), each=True, unit="ms")
    timed("seed/specrad_jit_vmap_128", lambda: jv(batch), each=True, unit="ms")
    timed("seed/specrad_grad", lambda: jax.grad(spectral_radius)(batch[0]), each=True, unit="ms")
    edges = randn(key, (15, 3))[1]
    timed("seed/norm_python_loop_15", lambda: sum(jnp.linalg.norm(e) for e in edges), each=True)
    timed("seed/norm_batched_15", lambda: jnp.sum(jnp.linalg.norm(edges, axis=-1)), each=True)
    nb = np.asarray(batch)
    timed("seed/ref_numpy_specrad_128", lambda: np.max(np.abs(np.linalg.eigvals(nb)), -1), unit="ms")
    rng = np.random.default_rng(0)
    timed("seed/ref_numpy_normal_100x100", lambda: rng.normal(size=(100, 100)))


def steps_per_s(name, f, st, randn, reshape=None, each=False):
    n = 150 if options.quick else 500
    key = jax.random.PRNGKey(0)
    vals = []

    def step(i, key, st):
        key, b = randn(key, (64, 2, 2), complex)
        if reshape:
            b = b.reshape(reshape + b.shape[1:])
        return (key,) + tuple(f(i, st, b))

    t = clock()
    key, st, loss = step(0, key, st)
    sync(loss)
    first = clock() - t
    for _ in range(3):
        turn()
        t = clock()
        for i in range(n):
            key, st, loss = step(i, key, st)
            if each:
                sync(loss)
        sync(loss)
        vals.append(n / (clock() - t))
    put(name, vals, "1/s", final_loss=float(loss))
    put(name + "_first_step", [first], "ms")


def notebook(row, file, count):
    """Steps of a program in notebooks/, after it has run for one."""
    path = Path(__file__).parents[1] / "notebooks" / file
    sys.modules["matplotlib"], sys.argv = None, [str(path), "--steps", "1"]  # no picture
    names = {"__name__": "__main__"}
    exec(compile(re.sub(r"\bminijax\b", options.impl, path.read_text()), path, "exec"), names)
    step, state, data, key = (names[name] for name in ("step", "state", "training", "key"))
    rates = []
    for first in range(0, 6 * count, count):
        turn()
        start = clock()
        for i in range(first, first + count):
            state, loss = step(i, state, data, key)
        sync(loss)
        rates.append(count / (clock() - start))
    put(row, rates, "1/s", final_loss=float(loss))


@group
def train():
    def go():
        tr, st, randn = train_make()
        steps_per_s("train/specrad_mlp", jax.jit(tr), st, randn)

    guard("train/specrad_mlp", go)

    def with_stax():
        stax = importlib.import_module(options.impl + ".example_libraries.stax")
        optimizers = importlib.import_module(options.impl + ".example_libraries.optimizers")
        init, net = stax.serial(
            stax.Dense(64), stax.Relu, stax.Dense(64), stax.Relu, stax.Dense(64), stax.Relu, stax.Dense(1)
        )
        _, p = init(jax.random.PRNGKey(0), (4,))
        model = jax.vmap(lambda p, x: net(p, x.ravel()), (None, 0))
        oi, up, gp = optimizers.adam(3e-4)
        vm = jax.vmap(spectral_radius)

        def f(i, st, b):
            value, g = jax.value_and_grad(lambda p, b: jnp.mean(jnp.abs(model(p, b) - vm(b))))(gp(st), b)
            return up(i, jax.tree_util.tree_map(jnp.conj, g), st), value

        steps_per_s("train/specrad_stax", jax.jit(f), oi(p), train_make()[2])

    guard("train/specrad_stax", with_stax)

    def mlp():
        step, (p, x, y) = mlp_step_make()
        f = jax.jit(step, donate_argnums=0)
        n = 300
        vals = []
        p, loss = f(p, x, y)
        sync(loss)
        for _ in range(3):
            turn()
            t = clock()
            for _ in range(n):
                p, loss = f(p, x, y)
            sync(loss)
            vals.append(n / (clock() - t))
        put("train/mlp_64_128_128_10_b32", vals, "1/s")

    guard("train/mlp_64_128_128_10_b32", mlp)

    def adam_eager():  # un-jitted step: what a beginner runs first
        step, a = mlp_step_make()
        timed("train/mlp_step_eager_unjitted", lambda: step(*a)[1], each=True, unit="ms")

    guard("train/mlp_step_eager_unjitted", adam_eager)
    for name, count in {"text_lstm": 8, "digits": 40}.items():
        guard(f"train/{name}", lambda: notebook(f"train/{name}", f"{name}.py", count))


@group
def pmap():
    kid = os.environ.get("BENCH_PMAP_CHILD")
    if not kid:  # children with virtual CPU devices

        def go(mode, name, limit, count=2):
            env = dict(os.environ, BENCH_PMAP_CHILD=mode)
            env["XLA_FLAGS"] = env.get("XLA_FLAGS", "") + f" --xla_force_host_platform_device_count={count}"
            cmd = [
                sys.executable,
                str(Path(__file__).parent / "frontend.py"),
                "--impl",
                options.impl,
                "--groups",
                "pmap",
            ] + (["--quick"] if options.quick else [])

            def run():
                o = subprocess.run(cmd, env=env, capture_output=True, text=True, timeout=limit)
                if o.returncode:
                    e = [x for x in o.stderr.split("\n") if "Termination timeout" in x or "Error" in x]
                    raise RuntimeError(f"exit {o.returncode}: " + (e[-1] if e else o.stderr)[-120:])
                found = json.loads(o.stdout)["results"]
                results.update({row: v for row, v in found.items() if row.startswith("pmap")})

            guard(name, run)

        go("sync", "pmap/child", 300)
        go("8", "pmap/child_8dev", 300, 8)
        # A loop that never blocks between steps: on few cores it may deadlock and abort.
        go("async", "pmap/specrad_mlp_2dev_async_loop", 300)
        return
    if kid == "async":
        tr, st, randn = train_make()
        f = jax.pmap(functools.partial(tr, axis="batch"), "batch", in_axes=(None, None, 0), out_axes=(None, None))
        return steps_per_s("pmap/specrad_mlp_2dev_async_loop", f, st, randn, (2, 32))
    n = 8 if kid == "8" else 2

    def trivial():
        x = jnp.arange(float(n)).reshape(n, 1)
        f = jax.pmap(lambda v: v + 1)
        x = f(x)
        timed(f"pmap/trivial_{n}dev", lambda: f(x))

    guard(f"pmap/trivial_{n}dev", trivial)
    guard(f"pmap/jit_named_sharding_{n}dev", lambda: sharded_calls(n))
    if kid == "8":
        return

    def go():
        tr, st, randn = train_make()
        f = jax.pmap(functools.partial(tr, axis="batch"), "batch", in_axes=(None, None, 0), out_axes=(None, None))
        steps_per_s("pmap/specrad_mlp_2dev_sync_loop", f, st, randn, (n, 64 // n), each=True)

    guard("pmap/specrad_mlp_2dev", go)


def sharded_calls(n):
    sharding = jax.sharding
    P, auto = sharding.PartitionSpec, sharding.AxisType.Auto
    mesh, explicit = jax.make_mesh((n,), ("b",), axis_types=(auto,)), jax.make_mesh((n,), ("b",))
    cut, whole = sharding.NamedSharding(mesh, P("b")), sharding.NamedSharding(mesh, P())
    value = np.ones((8, 4), np.float32)
    x, typed = jax.device_put(value, cut), jax.device_put(value, sharding.NamedSharding(explicit, P("b")))
    f, g = jax.jit(lambda v: v * 2), jax.jit(lambda v: v * 2)
    each = jax.jit(jax.shard_map(lambda v: v * 2, mesh=mesh, in_specs=P("b"), out_specs=P("b")))
    total = jax.jit(jax.shard_map(lambda v: jax.lax.psum(v, "b"), mesh=mesh, in_specs=P("b"), out_specs=P()))
    timed(f"pmap/jit_named_sharding_{n}dev", lambda: f(x))
    timed(f"pmap/jit_explicit_sharding_{n}dev", lambda: g(typed))
    timed(f"pmap/jit_shard_map_{n}dev", lambda: each(x))
    timed(f"pmap/jit_shard_map_psum_{n}dev", lambda: total(x), each=True)
    timed(f"pmap/device_put_to_mesh_{n}dev", lambda: jax.device_put(value, cut))
    timed(f"pmap/reshard_{n}dev", lambda: jax.device_put(x, whole), each=True)
    timed(f"pmap/read_sharded_{n}dev", lambda: np.asarray(f(x)))
    timed(f"pmap/read_parts_{n}dev", lambda: [np.asarray(s.data) for s in f(x).addressable_shards])


@group
def memory():
    def rss():
        return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def trace_bytes():
        f, a = chain_make(3000)
        jax.make_jaxpr(lambda *b: f(*b))(*a)
        gc.collect()
        tracemalloc.start()
        j = jax.make_jaxpr(lambda *b: f(*b))(*a)
        gc.collect()
        cur, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        n = max(len(j.jaxpr.eqns), 1)
        put("memory/retained_bytes_per_eqn", [cur / n], "bytes")
        put("memory/peak_bytes_per_eqn", [peak / n], "bytes")

    guard("memory/retained_bytes_per_eqn", trace_bytes)

    def cache_growth():
        x = jnp.ones(4)
        for _ in range(5):
            sync(jax.jit(lambda a: a + 1)(x))
        gc.collect()
        r0 = rss()
        n = 60
        for _ in range(n):
            sync(jax.jit(lambda a: jnp.sin(a) + 1)(x))
        gc.collect()
        put("memory/rss_per_dropped_jit", [(rss() - r0) / n], "bytes")
        fs = [jax.jit(lambda a, k=k: jnp.sin(a) + k) for k in range(n)]
        gc.collect()
        r0 = rss()
        for f in fs:
            sync(f(x))
        gc.collect()
        put("memory/rss_per_live_jit", [(rss() - r0) / n], "bytes")

    guard("memory/rss_per_dropped_jit", cache_growth)
