"""A program with typical uses of the API: type checkers report nothing."""

import functools
from typing import Any, NamedTuple, reveal_type

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax import lax, random
from minijax.sharding import Mesh, NamedSharding, PartitionSpec as P
from minijax.typing import ArrayLike, DTypeLike

Params = dict[str, jax.Array]


class Batch(NamedTuple):
    inputs: jax.Array
    labels: jax.Array


class AdamState(NamedTuple):
    step: jax.Array
    mean: Params
    variance: Params


# ---- a training loop --------------------------------------------------------------------------------


def init_params(key: jax.Array, sizes: list[int], dtype: DTypeLike = jnp.float32) -> Params:
    params: Params = {}
    for i, (n, m) in enumerate(zip(sizes[:-1], sizes[1:], strict=True)):
        key, sub = random.split(key)
        params[f"w{i}"] = random.normal(sub, (n, m), dtype) / jnp.sqrt(n)
        params[f"b{i}"] = jnp.zeros((m,), dtype=dtype)
    return params


def predict(params: Params, x: jax.Array, *, depth: int = 2) -> jax.Array:
    for i in range(depth):
        x = x @ params[f"w{i}"] + params[f"b{i}"]
        if i + 1 < depth:
            x = jax.nn.relu(x)
    return x


def loss(params: Params, batch: Batch) -> tuple[jax.Array, jax.Array]:
    logits = predict(params, batch.inputs)
    picked = jnp.take_along_axis(jax.nn.log_softmax(logits, axis=-1), batch.labels[:, None], axis=1)
    accuracy = (logits.argmax(axis=-1) == batch.labels).mean()
    return -picked.mean(), accuracy


def adam_init(params: Params) -> AdamState:
    zeros = functools.partial(jax.tree.map, jnp.zeros_like, params)
    return AdamState(jnp.zeros((), jnp.int32), zeros(), zeros())


def adam(params: Params, grads: Params, state: AdamState, rate: float = 1e-3) -> tuple[Params, AdamState]:
    step = state.step + 1
    mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state.mean, grads)
    variance = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g**2, state.variance, grads)
    scale = jnp.sqrt(1 - 0.999**step) / (1 - 0.9**step)
    params = jax.tree_util.tree_map(lambda p, m, v: p - rate * scale * m / (jnp.sqrt(v) + 1e-8), params, mean, variance)
    return params, AdamState(step, mean, variance)


@functools.partial(jax.jit, donate_argnums=(0, 1))
def train_step(params: Params, state: AdamState, batch: Batch) -> tuple[Params, AdamState, jax.Array]:
    (value, accuracy), grads = jax.value_and_grad(loss, has_aux=True)(params, batch)
    params, state = adam(params, grads, state)
    return params, state, jnp.stack([value, accuracy])


def train(steps: int = 3) -> float:
    key = random.key(0)
    params = init_params(key, [4, 16, 3])
    state = adam_init(params)
    for i in range(steps):
        inputs = random.uniform(random.fold_in(key, i), (8, 4), minval=-1.0, maxval=1.0)
        labels = random.randint(key, (8,), 0, 3)
        params, state, metrics = train_step(params, state, Batch(inputs, labels))
        print(i, float(metrics[0]), metrics.tolist())
    grads, aux = jax.grad(loss, has_aux=True)(params, Batch(inputs, labels))
    return float(optax_free_norm(grads)) + aux.item()


def optax_free_norm(tree: Any) -> jax.Array:
    return jnp.sqrt(sum((jnp.vdot(x, x) for x in jax.tree.leaves(tree)), start=jnp.float32(0)))


# ---- control flow, derivatives, batches -------------------------------------------------------------


def cumulative(xs: jax.Array) -> tuple[jax.Array, jax.Array]:
    def body(carry: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        carry = carry + x
        return carry, carry * 2

    last, all_of_them = lax.scan(body, jnp.zeros(()), xs, length=xs.shape[0], unroll=2)
    total, _ = lax.scan(lambda c, x: (c + x, x), 0.0, xs)
    last = lax.while_loop(lambda v: v < 3, lambda v: v + jnp.ones(()), 0.0) + last + total - total - 3
    last = lax.fori_loop(0, 3, lambda i, v: v + i, last)
    last = lax.while_loop(lambda v: v < 10, lambda v: v + 1, last)
    return lax.cond(last > 3, lambda v: v, lambda v: -v, last), all_of_them


@jax.custom_vjp
def clipped(x: jax.Array, bound: float) -> jax.Array:
    return x


def clipped_fwd(x: jax.Array, bound: float) -> tuple[jax.Array, float]:
    return x, bound


def clipped_bwd(bound: float, g: jax.Array) -> tuple[jax.Array, None]:
    return jnp.clip(g, -bound, bound), None


clipped.defvjp(clipped_fwd, clipped_bwd)


@jax.custom_jvp
def softer(x: jax.Array) -> jax.Array:
    return jnp.log1p(jnp.exp(x))


@softer.defjvp
def softer_jvp(primals: tuple[jax.Array], tangents: tuple[jax.Array]) -> tuple[jax.Array, jax.Array]:
    (x,), (t,) = primals, tangents
    return softer(x), jax.nn.sigmoid(x) * t


@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def power(x: jax.Array, n: int) -> jax.Array:
    return x**n


@power.defjvp
def power_jvp(n: int, primals: tuple[jax.Array], tangents: tuple[jax.Array]) -> tuple[jax.Array, jax.Array]:
    return power(primals[0], n), n * primals[0] ** (n - 1) * tangents[0]


def derivatives(x: jax.Array) -> jax.Array:
    value, pullback = jax.vjp(jnp.sin, x)
    (back,) = pullback(jnp.ones_like(value))
    out, tangent = jax.jvp(softer, (x,), (jnp.ones_like(x),))
    jacobian = jax.jacfwd(jnp.tanh)(x) + jax.jacrev(jnp.tanh)(x)
    hessian = jax.hessian(lambda y: (y**3).sum())(x)
    saved = jax.checkpoint(predict, static_argnames="depth")
    policy = jax.checkpoint_policies.dots_saveable
    again = jax.remat(jnp.cos, policy=policy)(x)
    per_example = jax.vmap(jax.grad(lambda w, row: jnp.dot(w, row)), in_axes=(None, 0))(x, jnp.outer(x, x))
    del saved
    return back + tangent + out + jacobian.sum(0) + hessian.sum(axis=1) + per_example.mean(axis=0) + again


# ---- arrays -----------------------------------------------------------------------------------------


def arrays(x: ArrayLike) -> jax.Array:
    a = jnp.asarray(x, dtype=jnp.float32).reshape(2, -1)
    a = a.at[0].set(1.0).at[..., 1].add(a[..., 0], mode="drop")
    rows, columns = a.shape
    b = jnp.einsum("ij,kj->ik", a, a, precision="highest")
    c = jnp.where(b > 0, b, jnp.nan).T
    c = jnp.concatenate([c, jnp.full((1, 2), jnp.inf)], axis=0)
    u, s, vt = jnp.linalg.svd(c[:2], full_matrices=False)
    norm = jnp.linalg.norm(c, ord=2, axis=(0, 1), keepdims=True)
    picked = c[jnp.arange(2), np.array([0, 1])].astype("float32")
    picked = 2 - picked / 3 + 2**picked - (1 / picked) % 2
    flags = (picked < 1) & ~(picked > 2) | (picked != 0)
    total = jnp.sum(a, axis=0, dtype=jnp.float32, keepdims=True, where=a > 0, initial=0.0)
    total += a.sum(axis=(0, 1)) + a.mean(0) + a.std() + jnp.max(a, axis=-1)[0] + jnp.add(1, 2) + jnp.maximum(a, 0).sum()
    ordered = jnp.sort(jnp.ravel(total)), jnp.argsort(total, axis=-1), jnp.linspace(0, 1, 5), jnp.eye(3, dtype=int)
    print(rows * columns, u.ndim, s.size, vt.dtype, norm.nbytes, flags.any(), [o.shape for o in ordered])
    for row in a:
        print(len(row), int(row[0]), bool(row[0] > 0), np.asarray(row), f"{row[0]:.2f}")
    return lax.dynamic_slice(total, (0, 0), (1, 2)) + jax.scipy.special.logsumexp(a) + jnp.fft.fft(a).real[:1, :2]


def places(x: jax.Array) -> jax.Array:
    mesh = jax.make_mesh((1,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    sharding = NamedSharding(mesh, P("x", None))
    x = jax.device_put(x, sharding)

    @functools.partial(jax.shard_map, mesh=mesh, in_specs=P("x", None), out_specs=P())
    def total(part: jax.Array) -> jax.Array:
        return lax.psum(part.sum(), "x")

    other = jax.shard_map(lambda part: part * 2, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))
    print(x.sharding, x.devices(), x.addressable_shards[0].data, Mesh(np.array(jax.devices()[:1]), ("a",)).shape)
    return jax.lax.with_sharding_constraint(other(x), sharding) + total(x)


@jax.jit(static_argnums=1)
def scaled(x: jax.Array, n: int, *, shift: float = 0.0) -> jax.Array:
    return x * n + shift


def stages(x: jax.Array) -> None:
    lowered = scaled.lower(x, 2, shift=1.0)
    print(
        lowered.as_text()[:10],
        lowered.compile().cost_analysis(),
        jax.make_jaxpr(jnp.sin)(x),
        jax.eval_shape(jnp.sin, x),
    )
    scaled.clear_cache()
    spec = jax.ShapeDtypeStruct((3,), jnp.float32)
    print(spec.shape, jax.tree.structure({"a": x}), jax.default_backend(), jax.jit(jnp.sin).trace(spec).jaxpr)
    with jax.debug_nans(True), jax.default_matmul_precision("highest"), jax.named_scope("block"):
        jax.block_until_ready(jax.device_get(jnp.sin(x)))
    jax.config.update("jax_enable_x64", False)
    jax.debug.print("x = {x}", x=x)


if __name__ == "__main__":
    print(
        train(), cumulative(jnp.arange(3.0)), derivatives(jnp.arange(3.0)), arrays(np.ones(6)), places(jnp.ones((2, 2)))
    )
    print(jax.grad(clipped)(jnp.ones(()), 0.5), power(jnp.ones(2), 2), scaled(jnp.ones(2), 3))
    stages(jnp.ones(3))
    reveal_type(jnp.ones(3) + 1)
    reveal_type(jax.jit(predict))
