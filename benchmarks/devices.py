"""What a device reaches: products, training steps, collectives and copies, with their operations and bytes.

Sizes are those of a large accelerator; with `--quick`, and on CPUs, small ones.
"""

import functools
import importlib

import models
from measure import group, guard, jax, jnp, np, options, put, sync, timed

P, NamedSharding = jax.sharding.PartitionSpec, jax.sharding.NamedSharding


def of_function(row, function, *arguments, **notes):
    """The time of a jitted call that waits for its results, with the operations that the compiler counts by default."""

    def measure():
        jitted = jax.jit(function)
        known = notes
        if not known.keys() & {"flops", "bytes", "sent"}:
            costs = jitted.lower(*arguments).compile().cost_analysis() or {}
            known = notes | dict(flops=costs.get("flops", 0.0))
        timed(f"device/{row}", lambda: jitted(*arguments), each=True, **known)

    guard(f"device/{row}", measure)


def placed(x, *spec):
    """The array, sharded over all devices."""
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("x",))
    return jax.device_put(x, NamedSharding(mesh, P(*spec)))


@group
def device():
    small = options.quick or jax.default_backend() == "cpu"
    put("device/count", [len(jax.devices())], "count", kind=jax.devices()[0].device_kind)
    _products(512 if small else 8192)
    _memory(1 << 20 if small else 1 << 28)
    _steps(small)
    if len(jax.devices()) > 1:
        _collectives(1 << 16 if small else 1 << 26)
    stats = jax.devices()[0].memory_stats()
    if stats:
        put("device/peak_memory", [stats["peak_bytes_in_use"]], "B")


def _products(n):
    for dtype in ("float32", "bfloat16", "float8_e4m3fn"):
        x = jnp.ones((n, n), dtype)
        product = functools.partial(jnp.matmul, preferred_element_type="float32" if dtype == "float32" else "bfloat16")
        of_function(f"product_{dtype}", product, x, x, flops=2.0 * n**3, dtype=dtype)


def _memory(count):
    x = jnp.ones(count, "float32")
    of_function("add_one", lambda x: x + 1, x, bytes=8.0 * count)
    of_function("sum", jnp.sum, x, bytes=4.0 * count)
    four, double = jnp.ones(4), jax.jit(lambda y: y + y)
    timed("device/eager_add_4", lambda: four + four)
    timed("device/dispatch_jit", lambda: double(four))
    host = np.ones(count // 4, np.float32)
    timed("device/host_to_device", lambda: jax.device_put(host), each=True, bytes=4.0 * host.size)
    # An array keeps its copy on the host, so each must be a new one.
    fresh = jax.jit(lambda x: x[: count // 4] + 1)
    timed("device/device_to_host", lambda: np.asarray(fresh(x)), bytes=4.0 * host.size)


def _steps(small):
    of_function("mlp_step", *_flat(models.mlp_step_make()))
    sizes = dict(L=2) if small else dict(L=12, D=1024, H=16, V=32_000, T=1024, batch=8)
    for dtype in ("float32", "bfloat16"):
        step, (p, *rest) = models.transformer_step_make(**sizes)
        p = jax.tree_util.tree_map(lambda x, dtype=dtype: x.astype(dtype), p)
        of_function(f"transformer_step_{dtype}", step, p, *rest, dtype=dtype)
    of_function("feed_forward_fp8", *_flat(fp8_make(64 if small else 4096)), dtype="float8_e4m3fn")
    of_function("convolution_step", *_flat(convolution_make(1 if small else 256)))
    of_function("scan_step", *_flat(models.rnn_step_make(**({} if small else dict(T=512, H=1024)))))
    of_function("shard_map_step", *_flat(shard_map_make(64 if small else 4096)))


def _flat(made):
    function, arguments = made
    return function, *arguments


def fp8_make(width):
    """A step of two layers whose products are in float8, with the scales of their operands."""

    def scaled(x):
        scale = jnp.max(jnp.abs(x)).astype("float32") / 448 + 1e-12
        return (x / scale).astype("float8_e4m3fn"), scale

    @jax.custom_vjp
    def product(x, w):
        (x, a), (w, b) = scaled(x), scaled(w)
        return (jnp.matmul(x, w, preferred_element_type="float32") * a * b).astype("bfloat16")

    def backward(kept, g):
        x, w = kept
        return product(g, w.T), product(x.T, g)

    product.defvjp(lambda x, w: (product(x, w), (x, w)), backward)

    def loss(ws, x):
        up, down = ws
        return jnp.mean(product(jax.nn.gelu(product(x, up)), down).astype("float32") ** 2)

    def step(ws, x):
        return jax.tree_util.tree_map(lambda w, g: w - 0.01 * g, ws, jax.grad(loss)(ws, x))

    ws = jnp.full((width, 4 * width), 0.01, "bfloat16"), jnp.full((4 * width, width), 0.01, "bfloat16")
    return step, (ws, jnp.ones((width, width), "bfloat16"))


def convolution_make(batch):
    """A step of six convolutions of images of 32 × 32."""
    sizes = [3, 64, 64, 128, 128, 256, 256]
    ws = [jnp.full((3, 3, a, b), 0.01, "bfloat16") for a, b in zip(sizes, sizes[1:], strict=False)]

    def loss(ws, x):
        for i, w in enumerate(ws):
            strides = (2, 2) if i % 2 else (1, 1)
            x = jax.lax.conv_general_dilated(x, w, strides, "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
            x = jax.nn.relu(x)
        return jnp.mean(x.astype("float32") ** 2)

    def step(ws, x):
        return [w - 0.01 * g for w, g in zip(ws, jax.grad(loss)(ws, x), strict=True)]

    return step, (ws, jnp.ones((batch, 32, 32, 3), "bfloat16"))


def shard_map_make(width):
    """A data-parallel step over all devices, whose gradients are summed in a shard_map."""
    count = len(jax.devices())
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("x",))
    specs = dict(mesh=mesh, in_specs=(P(), P("x")), out_specs=P())

    @functools.partial(jax.shard_map, **specs)
    def step(w, x):
        # The gradient of a replicated value is the sum over the devices.
        return w - 0.01 / count * jax.grad(lambda w: jnp.mean(jnp.tanh(x @ w).astype("float32") ** 2))(w)

    return step, (placed(jnp.ones((width, width), "bfloat16")), placed(jnp.ones((count * 256, width), "bfloat16"), "x"))


def _collectives(count):
    """Bytes are those that a device sends, if the devices form a ring."""
    devices = len(jax.devices())
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("x",))
    x = placed(jnp.ones(count * devices, "float32"), "x")
    ring = [(i, (i + 1) % devices) for i in range(devices)]
    part, share = 4.0 * count, (devices - 1) / devices
    lax = importlib.import_module(f"{options.impl}.lax")
    for name, body, out, sent in (
        ("psum", lambda x: lax.psum(x, "x"), P(), 2 * part * share),
        ("all_gather", lambda x: lax.all_gather(x, "x", tiled=True).sum(keepdims=True), P("x"), part * (devices - 1)),
        ("psum_scatter", lambda x: lax.psum_scatter(x, "x", tiled=True), P("x"), part * share),
        ("all_to_all", lambda x: lax.all_to_all(x, "x", 0, 0, tiled=True), P("x"), part * share),
        ("ppermute", lambda x: lax.ppermute(x, "x", ring), P("x"), part),
    ):
        mapped = jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=out)
        of_function(name, mapped, x, sent=sent)
    sync(x)
