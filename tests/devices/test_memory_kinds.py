"""Values in host memory: placing them, memory spaces in types, programs, offloaded residuals, against jax."""

import importlib
from types import SimpleNamespace

import numpy as np
import pytest
from compare import canonical
from mesh_language import numbers, same, same_errors, side

pytestmark = pytest.mark.oracle

SPACES = {
    "Space": lambda s: s.jax.memory.Space,
    "Host": lambda s: s.jax.memory.Space.Host,
    "Device": lambda s: s.jax.memory.Space.Device,
    "on_pinned_host": lambda s: s.SingleDeviceSharding(s.devices[0], memory_kind="pinned_host"),
    "on_unpinned_host": lambda s: s.SingleDeviceSharding(s.devices[0], memory_kind="unpinned_host"),
    "on_device": lambda s: s.SingleDeviceSharding(s.devices[0]),
    "sharding_on_host": lambda s: (
        lambda *spec, mesh=s.mesh: s.sharding(*spec, mesh=mesh).with_memory_kind("pinned_host")
    ),
    "mesh_of_1": lambda s: s.auto_mesh((1,), ("x",)),
    "vector": lambda s: s.jnp.asarray(numbers(4)),
    "host_vector": lambda s: s.jax.device_put(numbers(4), s.jax.memory.Space.Host),
    "host_matrix": lambda s: s.jax.device_put(numbers(4, 4), s.jax.memory.Space.Host),
    "host_indices": lambda s: s.jax.device_put(np.arange(4), s.jax.memory.Space.Host),
    "host_scalar": lambda s: s.jax.device_put(np.float32(2), s.jax.memory.Space.Host),
    "sharded_host_vector": lambda s: s.jax.device_put(numbers(8), s.sharding("x").with_memory_kind("pinned_host")),
    "lower_and_run": lambda s: lambda f, *a: (s.jaxpr(f, *a), s.text(f, *a), s.jax.jit(f)(*a), s.jax.jit(f)(*a).aval),
    "device_put": lambda s: s.jax.device_put,
    "to_host": lambda s: lambda a: s.jax.device_put(a, s.jax.memory.Space.Host, src=s.jax.memory.Space.Device),
    "to_device": lambda s: lambda a: s.jax.device_put(a, s.jax.memory.Space.Device, src=s.jax.memory.Space.Host),
}


def test_memories_of_devices_and_shardings():
    same(
        [
            lambda s: (
                [(m.kind, str(m)) for m in s.devices[1].addressable_memories()],
                s.devices[1].default_memory().kind,
                repr(s.devices[1].memory("pinned_host")),
            ),
            lambda s: (
                s.on_pinned_host,
                s.on_device,
                s.on_unpinned_host,
                s.sharding_on_host("x"),
                [
                    sharding.memory_kind
                    for sharding in (s.on_pinned_host, s.on_device, s.sharding("x"), s.sharding_on_host())
                ],
            ),
            lambda s: (
                s.on_device.with_memory_kind("pinned_host") == s.on_pinned_host,
                s.on_pinned_host == s.on_device,
                hash(s.on_device) == hash(s.on_device.with_memory_kind("device")),
            ),
            lambda s: (
                s.sharding_on_host("x").with_memory_kind("device") == s.sharding("x"),
                s.sharding("x").is_equivalent_to(s.sharding_on_host("x"), 1),
            ),
            lambda s: (list(s.Space), str(s.Host), s.Space.Host is s.Host),
        ],
        **SPACES,
    )
    same_errors(
        [
            (lambda s: s.sharding().with_memory_kind("slow"), "can address the following memory kinds"),
            (lambda s: s.SingleDeviceSharding(s.devices[0], memory_kind="slow"), "Got memory kind: slow"),
        ],
        **SPACES,
    )


def test_device_put_to_memories():
    same(
        [
            lambda s: [
                s.device_put(v, s.Host)
                for v in (
                    s.vector,
                    3.0,
                    True,
                    np.int8(3),
                    numbers(2, 2),
                    s.jnp.float32(2),
                    s.device_put(s.vector, s.devices[2]),
                )
            ],
            lambda s: [
                s.device_put(v, sharding)
                for v in (s.vector, s.host_vector)
                for sharding in (
                    s.Host,
                    s.Device,
                    s.on_pinned_host,
                    s.on_device,
                    s.on_unpinned_host,
                    None,
                    s.sharding_on_host("x"),
                    s.sharding("x"),
                    s.SingleDeviceSharding(s.devices[1]),
                    s.sharding_on_host(),
                )
            ],
            lambda s: [
                s.device_put(v, sharding)
                for v in (s.sharded_host_vector, s.device_put(numbers(8), s.sharding("x")))
                for sharding in (
                    s.Host,
                    s.Device,
                    s.sharding(("x", "y")),
                    s.sharding_on_host("y"),
                    s.sharding(),
                    s.on_pinned_host,
                    s.devices[3],
                )
            ],
            lambda s: (
                s.device_put({"a": s.vector, "b": 1.0}, s.Host),
                s.device_put((s.vector, s.vector), (s.Host, s.Device)),
                s.device_put(s.host_vector, may_alias=False),
                s.device_put(s.vector, s.Host, donate=True),
            ),
            lambda s: [
                s.device_put(v, sharding).aval
                for v in (s.vector, s.host_vector)
                for sharding in (s.Host, s.Device, s.on_pinned_host, s.on_unpinned_host, s.sharding_on_host("x"))
            ],
            lambda s: (
                [
                    s.jax.typeof(v).memory_space
                    for v in (
                        s.vector,
                        s.host_vector,
                        s.sharded_host_vector,
                        s.device_put(s.vector, s.on_unpinned_host),
                    )
                ],
                s.jax.typeof(s.host_vector),
                s.jax.typeof(s.host_vector) == s.jax.typeof(s.vector),
            ),
            lambda s: (
                [s.jax.typeof(s.host_vector).update(memory_space=sharding) for sharding in s.Space],
                s.jax.typeof(s.host_vector).str_short(True),
                s.jax.typeof(s.host_vector).to_tangent_aval(),
            ),
            lambda s: s.jax.core.ShapedArray((3,), s.jnp.float32, memory_space=s.Host, weak_type=True),
            lambda s: (
                s.device_put(s.jax.random.key(0), s.Host),
                s.jaxpr(lambda k: s.device_put(k, s.Host), s.jax.random.key(0)),
            ),
            lambda s: [
                s.lax.with_sharding_constraint(v, sharding)
                for v in (s.vector, s.sharded_host_vector, s.device_put(numbers(8), s.sharding("x")))
                for sharding in (s.sharding("x"), s.sharding_on_host("x"), s.sharding_on_host())
            ],
            lambda s: (
                s.host_vector.addressable_shards[0].data,
                s.sharded_host_vector.addressable_shards[1].data,
                s.host_vector.addressable_data(0),
                s.host_vector.copy(),
                s.jnp.array(s.host_vector),
                s.jnp.asarray(s.host_vector),
            ),
            lambda s: (
                repr(s.host_vector),
                str(s.host_vector),
                s.host_vector.tolist(),
                float(s.host_vector[1]),
                np.asarray(s.sharded_host_vector),
                s.host_vector.devices(),
                list(s.host_vector)[1],
                s.host_vector.format,
            ),
            lambda s: (
                s.jnp.asarray(numbers(3), device=s.on_pinned_host),
                s.jax.make_array_from_callback((4,), s.on_pinned_host, lambda i: numbers(4)[i]),
            ),
            lambda s: (
                s.jax.make_array_from_single_device_arrays((4,), s.on_pinned_host, [s.host_vector]),
                s.host_vector.to_device(s.on_device),
                s.jax.device_get(s.device_put([s.vector], s.Host)),
            ),
        ],
        **SPACES,
    )


def test_operations_keep_values_in_their_memory():
    same(
        [
            lambda s: [
                (f(s.host_vector), f(s.host_vector).aval)
                for f in (s.jnp.sin, lambda a: a + 1, lambda a: 2 - a, s.jnp.sum, lambda a: a[0], lambda a: a[1:])
            ],
            lambda s: [
                (f(s.host_matrix), f(s.host_matrix).aval)
                for f in (s.jnp.transpose, s.jnp.ravel, s.jnp.sort, s.jnp.cumsum, lambda a: a @ a, lambda a: a > 0)
            ],
            lambda s: [
                s.jaxpr(f, s.host_vector)
                for f in (
                    s.jnp.exp,
                    lambda a: a * s.jnp.float32(2),
                    lambda a: s.lax.clamp(0.0, a, 1.0),
                    s.jnp.argmax,
                    s.jnp.mean,
                )
            ],
            lambda s: [
                s.jaxpr(f, s.host_scalar)
                for f in (
                    s.jnp.sin,
                    lambda a: a + 1,
                    s.jnp.copy,
                    lambda a: s.lax.broadcast(a, (2,)),
                    lambda a: s.lax.add(a, s.vector[0]),
                )
            ],
            lambda s: [
                s.jaxpr(f, s.host_matrix)
                for f in (
                    lambda a: a.reshape(2, 8),
                    lambda a: s.lax.pad(a, 0.0, ((1, 0, 1),) * 2),
                    s.jnp.argsort,
                    lambda a: s.jnp.tile(a, 2),
                )
            ],
            lambda s: [
                s.jaxpr(f, s.host_matrix)
                for f in (
                    lambda a: s.lax.split(a, (1, 3)),
                    lambda a: s.jnp.concatenate([a, a]),
                    lambda a: s.jnp.stack([a, a]),
                )
            ],
            lambda s: [
                s.jaxpr(f, s.host_matrix)
                for f in (
                    lambda a: s.lax.top_k(a, 2),
                    lambda a: s.lax.rev(a, (0,)),
                    lambda a: a.astype(int),
                    lambda a: a.sum(0),
                )
            ],
            lambda s: [
                s.jaxpr(f, s.host_vector)
                for f in (
                    lambda a: s.lax.sort((a, s.vector)),
                    lambda a: s.lax.optimization_barrier((a, s.vector)),
                    lambda a: a[s.host_indices],
                )
            ],
            lambda s: [
                s.jaxpr(f, s.host_vector)
                for f in (
                    lambda a: a.at[0].set(1.0),
                    lambda a: a.at[s.jnp.arange(4)].add(s.vector),
                    lambda a: a.at[s.host_indices].mul(2.0),
                )
            ],
            lambda s: [
                s.jaxpr(f, s.host_vector, 1)
                for f in (lambda a, i: a[i], lambda a, i: s.lax.dynamic_update_slice(a, s.host_vector[:2], (i,)))
            ],
            lambda s: [
                s.jaxpr(f, s.host_vector)
                for f in (
                    s.jnp.fft.fft,
                    s.jnp.zeros_like,
                    lambda a: s.lax.reduce_precision(a, 8, 3),
                    s.jnp.var,
                    s.jax.nn.relu,
                )
            ],
            lambda s: [
                s.jaxpr(f, s.host_matrix)
                for f in (lambda a: s.lax.linalg.qr(a), lambda a: s.lax.linalg.triangular_solve(a, a))
            ],
            lambda s: [
                f(s.host_matrix)
                for f in (
                    s.jax.vmap(s.jnp.sum),
                    s.jax.vmap(lambda a: a * 2),
                    lambda a: s.jax.vmap(s.jnp.add, (0, None))(a, a[0]),
                )
            ],
            lambda s: (
                s.sharded_host_vector + 1,
                s.sharded_host_vector * s.sharded_host_vector,
                s.sharded_host_vector.sum(),
                s.jnp.sin(s.sharded_host_vector),
                s.sharded_host_vector.reshape(2, 4),
            ),
            lambda s: (
                s.jax.vjp(lambda a: s.jnp.sin(a) * a, s.host_vector)[1](s.host_vector),
                s.jax.jvp(s.jnp.sin, (s.host_vector,), (s.host_vector,)),
                s.jax.linearize(s.jnp.sin, s.host_vector)[1](s.host_vector),
            ),
            lambda s: s.jaxpr(lambda a: s.jax.vjp(lambda b: b[:2] * 3, a)[1](a[:2]), s.host_vector),
            lambda s: s.jaxpr(
                lambda a: s.jax.vjp(s.jax.checkpoint(lambda b: s.jnp.sin(s.jnp.sin(b))), a)[1](a), s.host_vector
            ),
            lambda s: s.jaxpr(lambda a: s.jax.vjp(s.jax.jit(lambda b: s.jnp.sin(b)), a)[1](a), s.host_vector),
            lambda s: s.jaxpr(
                lambda a: s.jax.vjp(lambda b: s.lax.cond(True, s.jnp.sin, s.jnp.cos, b), a)[1](a), s.host_vector
            ),
            lambda s: [
                f(s.host_vector)
                for f in (
                    lambda a: s.lax.scan(lambda c, b: (c, b * 2), s.vector, a),
                    lambda a: s.lax.fori_loop(0, 3, lambda i, c: c * 2, a),
                )
            ],
            lambda s: (
                s.jaxpr(lambda a: s.lax.scan(lambda c, b: (c, b * 2), a, s.host_matrix), s.host_vector),
                s.jaxpr(lambda a: s.lax.map(s.jnp.sum, a), s.host_matrix),
            ),
            lambda s: (
                s.lax.while_loop(lambda c: c.sum() < 100, lambda c: c + 2, s.host_vector),
                s.lax.cond(True, s.jnp.sin, s.jnp.cos, s.host_vector),
                s.with_custom_vjp(s.host_vector),
                s.with_custom_jvp(s.host_vector),
            ),
            lambda s: (
                [s.jax.vjp(f, s.host_vector)[1](s.host_vector) for f in (s.with_custom_jvp, s.with_custom_vjp)],
                s.jaxpr(lambda a: s.jax.vjp(s.with_custom_vjp, a)[1](a), s.host_vector),
            ),
        ],
        **SPACES,
    )


def test_operands_in_two_memories_are_refused():
    same_errors(
        [
            (lambda s: s.host_vector + s.vector, "memory_space of all inputs passed to `add` must be the same"),
            (
                lambda s: s.jaxpr(lambda a: a + s.device_put(a, s.Host), s.vector),
                "float32[4] and another operand with type: float32<host>[4]",
            ),
            (lambda s: s.jnp.dot(s.host_vector, s.vector), "memory_space"),
            (lambda s: s.host_vector[s.jnp.arange(2)], "memory_space"),
            (lambda s: s.jnp.stack([s.host_vector, s.vector]), "`stack`"),
            (lambda s: s.jnp.where(s.vector > 0, s.host_vector, s.vector), "memory_space"),
            (lambda s: s.lax.dynamic_update_slice(s.host_vector, s.vector[:2], (0,)), "memory_space"),
            (lambda s: s.jax.vjp(s.jnp.sin, s.host_vector)[1](s.vector), "expected float32<host>[4]"),
            (lambda s: s.jax.grad(lambda a: s.jnp.sin(a).sum())(s.host_vector), "expected float32<host>[]"),
            (lambda s: s.jax.linearize(s.jnp.sin, s.host_vector)[1](s.vector), "inconsistent with the original primal"),
            (lambda s: s.lax.cond(True, lambda a: s.device_put(a, s.Host), lambda a: a, s.vector), "float32<host>[4]"),
            (lambda s: s.lax.scan(lambda c, a: (s.device_put(c, s.Host), a), s.vector, s.vector), "float32<host>[4]"),
            (
                lambda s: s.lax.fori_loop(0, 3, lambda i, c: s.device_put(c, s.Device), s.host_vector),
                "float32<host>[4]",
            ),
            (
                lambda s: s.jax.jit(lambda a: a, in_shardings=s.on_device)(s.host_vector),
                "Memory kinds passed to jax.jit does not match memory kind",
            ),
            (
                lambda s: s.jax.jit(lambda a: a, in_shardings=s.on_pinned_host)(s.device_put(s.vector, s.devices[0])),
                "arg memory kind: device",
            ),
            (
                lambda s: s.jax.jit(lambda a: a).lower(s.vector).compile()(s.host_vector),
                "Required sharding: SingleDeviceSharding",
            ),
            (lambda s: s.jax.jit(lambda a: a, out_shardings=s.Host)(s.vector), "Host"),
        ],
        **SPACES,
    )


def test_device_put_to_memories_in_programs():
    same(
        [
            lambda s: [
                s.lower_and_run(lambda a, sharding=sharding: s.device_put(a * 2, sharding), s.vector)
                for sharding in (s.Host, s.Device, s.on_pinned_host, s.on_device, s.on_unpinned_host, s.devices[0])
            ],
            lambda s: [
                s.lower_and_run(lambda a, sharding=sharding: s.device_put(a, sharding) * 2, s.host_vector)
                for sharding in (s.Host, s.Device, s.on_pinned_host, s.on_device, s.on_unpinned_host, None)
            ],
            lambda s: [
                s.lower_and_run(f, s.host_vector)
                for f in (lambda a: a, lambda a: a * 2, lambda a: s.device_put(s.device_put(a, s.Device) * 2, s.Host))
            ],
            lambda s: (
                s.lower_and_run(lambda a: s.device_put(s.device_put(a * 2, s.Host), s.Device), s.vector),
                s.lower_and_run(lambda a: a * 2, s.device_put(s.vector, s.on_unpinned_host)),
                s.lower_and_run(lambda a: s.device_put(s.jnp.zeros(4), s.Host), s.vector),
            ),
            lambda s: [
                s.text(lambda a, b: (s.device_put(a, s.Device) + b, b * 2, a * 2), s.host_vector, s.vector),
                s.jax.jit(lambda a, b: (s.device_put(a, s.Device) + b, b * 2, a * 2))(s.host_vector, s.vector),
            ],
            lambda s: [
                (s.text(f, s.host_vector), f(s.host_vector))
                for f in [
                    s.jax.jit(lambda a: a * 2, out_shardings=sharding) for sharding in (s.on_pinned_host, s.on_device)
                ]
            ],
            lambda s: [
                (s.text(f, s.vector), f(s.vector))
                for f in [
                    s.jax.jit(lambda a: (a * 2, a), out_shardings=sharding)
                    for sharding in ((s.on_pinned_host, None), (s.on_pinned_host, s.on_device))
                ]
            ],
            lambda s: [
                (s.text(f, s.host_vector, s.vector), f(s.host_vector, s.vector))
                for f in [s.jax.jit(lambda a, b: (a * 2, b), in_shardings=(s.on_pinned_host, s.on_device))]
            ],
            lambda s: [
                s.lower_and_run(lambda a, sharding=sharding: s.device_put(a * 2, sharding), s.vector)
                for sharding in (s.sharding_on_host("x"), s.sharding_on_host("x", mesh=s.mesh_of_1))
            ],
            lambda s: (
                [
                    s.text(lambda a, sharding=sharding: s.device_put(a, sharding) * 2, s.sharded_host_vector)
                    for sharding in (s.Device, s.Host, s.sharding("x"))
                ],
                [
                    s.jax.jit(lambda a, sharding=sharding: s.device_put(a, sharding) * 2)(s.sharded_host_vector)
                    for sharding in (s.Device, s.Host)
                ],
            ),
            lambda s: [
                (s.text(f, s.device_put(numbers(8), s.sharding("x"))), f(s.device_put(numbers(8), s.sharding("x"))))
                for f in [s.jax.jit(lambda a: a * 2, out_shardings=s.sharding_on_host("x"))]
            ],
            lambda s: [
                (
                    s.text(f, s.sharded_host_vector, s.device_put(s.vector, s.sharding())),
                    f(s.sharded_host_vector, s.device_put(s.vector, s.sharding())),
                )
                for f in [s.jax.jit(lambda a, b: (a, b * 2), in_shardings=(s.sharding_on_host("x"), s.sharding()))]
            ],
            lambda s: (
                s.jax.jit(s.jax.jit(lambda a: s.device_put(a, s.Host)))(s.vector),
                s.text(s.jax.jit(lambda a: s.jax.jit(lambda b: s.device_put(b, s.Host))(a)), s.vector),
            ),
            lambda s: [
                s.jax.jit(f)(s.vector)
                for f in (
                    s.jax.vmap(lambda a: s.device_put(a, s.Host)),
                    lambda a: s.lax.scan(lambda c, b: (c, s.device_put(b, s.Host)), 0.0, a),
                )
            ],
            lambda s: (
                s.jaxpr(lambda a: s.lax.scan(lambda c, b: (c, s.device_put(b, s.Device) * 2), 0.0, a), s.host_vector),
                s.jax.jit(lambda a: s.lax.scan(lambda c, b: (c, s.device_put(b, s.Device) * 2), 0.0, a))(s.host_vector),
            ),
            lambda s: (
                s.jaxpr(lambda a: s.lax.cond(True, s.to_host, s.to_host, a), s.vector),
                s.jax.jit(lambda a: s.lax.cond(a[0] > 0, s.to_host, s.to_host, a))(s.vector),
            ),
            lambda s: (
                s.jax.jit(lambda a: a * 2, donate_argnums=0)(s.device_put(s.vector, s.Host)),
                s.text(s.jax.jit(lambda a: a * 2, donate_argnums=0), s.host_vector),
            ),
            lambda s: (
                [
                    s.jax.jit(lambda a: a * 2)(v)
                    for v in (
                        s.vector,
                        s.host_vector,
                        s.vector,
                        s.sharded_host_vector,
                        s.host_vector,
                        s.device_put(s.vector, s.on_unpinned_host),
                    )
                ],
                s.jax.jit(lambda *, k: k * 2)(k=s.host_vector),
            ),
            lambda s: s.jax.jit(
                lambda a: s.jax.shard_map(
                    lambda b: s.device_put(b * 2, s.Host), mesh=s.mesh_of_8, in_specs=s.P("i"), out_specs=s.P("i")
                )(a)
            )(s.jnp.arange(8.0)),
            lambda s: s.jaxpr(
                lambda a: s.jax.shard_map(lambda b: b * 2, mesh=s.mesh, in_specs=s.P("x"), out_specs=s.P("x"))(a),
                s.sharded_host_vector,
            ),
            lambda s: (
                s.jax.jit(lambda a: s.device_put(np.arange(1000.0), s.Host))(s.vector),
                s.jax.jit(lambda a: s.device_put(s.host_vector, s.Device) + a)(s.vector),
                s.jaxpr(lambda a: s.device_put(s.host_vector, s.Device) + a, s.vector),
            ),
            lambda s: (
                s.jaxpr(lambda a: s.device_put((a, a), (s.Host, s.Space.Any)), s.vector),
                s.jaxpr(lambda a: s.device_put(a, s.Host, donate=True), s.vector),
            ),
        ],
        **SPACES,
    )


def test_stages_and_shapes_have_memory_kinds():
    same(
        [
            lambda s: (
                s.jax.jit(lambda a: s.device_put(a, s.Host)).lower(s.vector).compile().output_shardings,
                s.jax.jit(lambda a: s.device_put(a, s.Host)).lower(s.vector).compile()(s.vector),
            ),
            lambda s: (
                [
                    s.jax.jit(lambda a: a * 2).lower(v).compile().input_shardings
                    for v in (s.host_vector, s.sharded_host_vector)
                ],
                s.jax.jit(lambda a: a * 2).lower(s.host_vector).compile()(s.host_vector),
            ),
            lambda s: (
                s.jax.jit(lambda a: a * 2)
                .lower(s.ShapeDtypeStruct((8,), s.jnp.float32, sharding=s.sharding_on_host("x")))
                .compile()(s.sharded_host_vector),
                s.ShapeDtypeStruct((4,), s.jnp.float32, sharding=s.on_pinned_host),
            ),
            lambda s: (
                s.jaxpr(
                    lambda a: s.device_put(a, s.Device),
                    s.ShapeDtypeStruct((8,), s.jnp.float32, sharding=s.sharding_on_host("x")),
                ),
                s.jax.eval_shape(lambda a: s.device_put(a, s.Host), s.vector),
            ),
            lambda s: (
                s.jax.eval_shape(lambda a: a, s.host_vector),
                s.jax.jit(lambda a: a).trace(s.host_vector).out_info,
                s.jax.jit(lambda a: a * 2, in_shardings=s.on_pinned_host)(numbers(4)),
            ),
            lambda s: s.jax.eval_shape(lambda a: a, s.ShapeDtypeStruct((4,), s.jnp.float32, sharding=s.on_pinned_host)),
        ],
        **SPACES,
    )


def test_derivatives_of_transfers_between_memories():
    same(
        [
            lambda s: (
                s.jaxpr(lambda a: s.jax.jvp(lambda b: s.device_put(b * 2, s.Host), (a,), (a,)), s.vector),
                s.jax.jvp(lambda b: s.device_put(b * 2, s.Host), (s.vector,), (s.vector,)),
            ),
            lambda s: (
                s.jaxpr(s.jax.grad(lambda a: s.to_device(s.to_host(a * 2)).sum()), s.vector),
                s.jax.grad(lambda a: s.to_device(s.to_host(a * 2)).sum())(s.vector),
            ),
            lambda s: (
                s.jaxpr(s.jax.grad(lambda a: s.device_put(s.jnp.sin(a).sum(), s.Device)), s.host_vector),
                s.jax.grad(lambda a: s.device_put(s.jnp.sin(a).sum(), s.Device))(s.host_vector),
            ),
            lambda s: (
                s.jaxpr(s.jax.grad(lambda a: s.jnp.sin(s.device_put(a, s.Device)).sum()), s.host_vector),
                s.jax.jit(s.jax.grad(lambda a: s.jnp.sin(s.device_put(a, s.Device)).sum()))(s.host_vector),
            ),
            lambda s: s.jaxpr(
                s.jax.grad(
                    lambda a: s.device_put(
                        s.device_put(a, s.on_pinned_host, src=s.on_device), s.on_device, src=s.on_pinned_host
                    ).sum()
                ),
                s.vector,
            ),
            lambda s: (
                s.jax.hessian(lambda a: s.to_device(s.to_host(a**3)).sum())(s.vector),
                s.jax.grad(lambda a: s.device_put(s.device_put(s.jnp.sin(a), s.Host), s.Device).sum())(s.vector),
            ),
            lambda s: (
                s.jaxpr(s.jax.vmap(lambda a: s.to_host(a) * 2), s.vector),
                s.jaxpr(s.jax.grad(lambda a: s.device_put(s.jnp.sin(a), s.Device).sum()), s.vector),
            ),
        ],
        **SPACES,
    )


def test_gradients_transfer_cotangents_to_the_memory_of_the_primal():
    import minijax as jax  # jax raises here, of a cotangent in the wrong memory

    def f(x):
        space = jax.memory.Space
        return jax.device_put(jax.device_put(jax.numpy.sin(x), space.Host), space.Device).sum()

    for gradient in (jax.grad(f), jax.jit(jax.grad(f)), jax.jit(jax.vmap(jax.grad(lambda x: f(x[None]))))):
        found = gradient(numbers(4))
        assert found.sharding.memory_kind == "device"
        np.testing.assert_allclose(found, np.cos(numbers(4)), rtol=1e-6)


def _offloaded(s):
    """Functions whose residuals are saved, offloaded to the host, or computed again."""
    jax, jnp = s.jax, s.jnp
    name = importlib.import_module(f"{jax.__name__}.ad_checkpoint").checkpoint_name
    policies = jax.checkpoint_policies
    offloadable = importlib.import_module(f"{jax.__name__}.ad_checkpoint").Offloadable("device", "pinned_host")

    def named(x):
        return jnp.sin(name(jnp.sin(name(jnp.sin(x), "kept")), "away"))

    def dots(x):
        w = jnp.sin(jnp.arange(16.0).reshape(4, 4))
        return jnp.sin(jnp.sin(x @ w) @ w)

    def policy(kept=("kept",), away=("away",), src="device", dst="pinned_host"):
        return policies.save_and_offload_only_these_names(
            names_which_can_be_saved=kept, names_which_can_be_offloaded=away, offload_src=src, offload_dst=dst
        )

    def total(f=named, rule=None, **more):
        inner = jax.checkpoint(f, policy=policy() if rule is None else rule, **more)
        return lambda x: inner(x).sum()

    def looped(f, rule=None):
        inner = f if rule is None else jax.checkpoint(f, policy=rule)
        return lambda x: s.lax.scan(lambda c, _: (inner(c), None), x, None, length=3)[0]

    products = policies.offload_dot_with_no_batch_dims("device", "pinned_host")
    return SimpleNamespace(**locals())


def test_residuals_are_offloaded():
    same(
        [
            lambda s: (
                s.jaxpr(s.jax.grad(s.offloaded.total()), s.vector),
                s.jax.grad(s.offloaded.total())(s.vector),
                s.text(s.jax.grad(s.offloaded.total()), s.vector),
                s.jax.jit(s.jax.grad(s.offloaded.total()))(s.vector),
            ),
            lambda s: (
                s.jaxpr(s.jax.grad(s.offloaded.total(s.offloaded.dots, s.offloaded.products)), s.vector),
                s.jax.jit(s.jax.grad(s.offloaded.total(s.offloaded.dots, s.offloaded.products)))(s.vector),
            ),
            lambda s: (
                s.text(s.jax.grad(s.offloaded.total(s.offloaded.dots, s.offloaded.products)), s.vector),
                s.jaxpr(
                    s.jax.grad(s.offloaded.total(s.offloaded.dots, s.offloaded.products, prevent_cse=False)), s.vector
                ),
            ),
            lambda s: [
                s.jaxpr(s.jax.grad(s.offloaded.total(rule=s.offloaded.policy((), ("away", "kept"), a, b))), s.vector)
                for a, b in (("device", "device"), ("device", "unpinned_host"), (s.Device, s.Host), ("a", "b"))
            ],
            lambda s: (
                s.jaxpr(s.jax.vmap(s.jax.grad(s.offloaded.total())), numbers(2, 4)),
                s.jax.jit(s.jax.vmap(s.jax.grad(s.offloaded.total())))(numbers(2, 4)),
            ),
            lambda s: s.jaxpr(s.jax.grad(lambda a: s.jax.vmap(s.offloaded.total())(a).sum()), numbers(2, 4)),
            lambda s: (
                s.jaxpr(lambda a: s.jax.linearize(s.offloaded.total(), a)[1](a), s.vector),
                s.jaxpr(lambda a: s.jax.vjp(s.offloaded.total(), a)[0], s.vector),
            ),
            lambda s: (
                s.jaxpr(lambda a: s.jax.jvp(s.offloaded.total(), (a,), (a,)), s.vector),
                s.jax.jvp(s.offloaded.total(), (s.vector,), (s.vector,)),
            ),
            lambda s: (
                s.jaxpr(
                    s.jax.grad(lambda a: s.offloaded.looped(s.offloaded.named, s.offloaded.policy())(a).sum()), s.vector
                ),
                s.jax.jit(s.jax.grad(lambda a: s.offloaded.looped(s.offloaded.named, s.offloaded.policy())(a).sum()))(
                    s.vector
                ),
            ),
            lambda s: (
                s.text(
                    s.jax.grad(lambda a: s.offloaded.looped(s.offloaded.named, s.offloaded.policy())(a).sum()), s.vector
                ),
                s.text(
                    s.jax.grad(lambda a: s.offloaded.looped(s.offloaded.dots, s.offloaded.products)(a).sum()), s.vector
                ),
            ),
            lambda s: (
                s.jax.grad(s.offloaded.total(s.offloaded.looped(s.offloaded.named)))(s.vector),
                s.jax.jit(s.jax.grad(s.offloaded.total(s.offloaded.looped(s.offloaded.named))))(s.vector),
            ),
            lambda s: s.jaxpr(
                s.jax.grad(
                    s.offloaded.total(lambda a: s.jax.checkpoint(s.offloaded.named, policy=s.offloaded.policy())(a) * 2)
                ),
                s.vector,
            ),
            lambda s: s.jaxpr(
                s.jax.grad(
                    s.offloaded.total(
                        lambda a: s.jax.checkpoint(s.offloaded.named, policy=s.offloaded.policy())(a) * 2,
                        s.offloaded.policies.nothing_saveable,
                    )
                ),
                s.vector,
            ),
            lambda s: (
                s.jaxpr(s.jax.grad(s.offloaded.total(rule=lambda *_, **__: s.offloaded.offloadable)), s.vector),
                s.text(s.jax.grad(s.offloaded.total(s.jax.jit(s.offloaded.named))), s.vector),
            ),
            lambda s: (
                s.jax.grad(s.offloaded.total(s.jax.jit(s.offloaded.named)))(s.vector),
                s.text(s.jax.grad(s.offloaded.total(lambda a: s.offloaded.named(a[0]) + a[1])), numbers(2, 4)),
            ),
            lambda s: (
                s.jax.jit(s.jax.grad(s.offloaded.total()))(s.device_put(numbers(8), s.sharding("x"))),
                s.text(s.jax.grad(s.offloaded.total()), s.device_put(numbers(8), s.sharding("x"))),
            ),
            lambda s: s.jax.jit(
                s.jax.grad(
                    lambda a: s.jax.shard_map(
                        s.jax.checkpoint(s.offloaded.named, policy=s.offloaded.policy()),
                        mesh=s.mesh,
                        in_specs=s.P("x"),
                        out_specs=s.P("x"),
                    )(a).sum()
                )
            )(numbers(8)),
        ],
        offloaded=_offloaded,
        **SPACES,
    )


def test_saved_residuals_print_their_memory(capsys):
    found = []
    for package in ("minijax", "jax"):
        s = side(package)
        o = _offloaded(s)
        importlib.import_module(f"{package}.ad_checkpoint").print_saved_residuals(o.total(), numbers(4))
        found.append([line.split(" from ")[0] for line in capsys.readouterr().out.splitlines()])
    assert found[0] == found[1]


def test_programs_that_name_memories_annotate_every_placement():
    # The type of an argument that `in_shardings` puts in host memory does not tell so.
    def text(s):
        argument = s.ShapeDtypeStruct((8,), "float32")
        lowered = lambda f, options: s.jax.jit(f, **options).trace(argument).lower(lowering_platforms=("tpu",))  # noqa: E731
        return lambda f, **options: canonical(lowered(f, options).as_text())

    same(
        [
            lambda s: s.tpu_text(lambda a: s.device_put(a, s.Device) * 2, in_shardings=s.sharding_on_host("x")),
            lambda s: s.tpu_text(lambda a: s.device_put(a, s.sharding("x")) * 2, in_shardings=s.sharding_on_host("x")),
            lambda s: s.tpu_text(lambda a: s.device_put(a, s.Device) * 2, out_shardings=s.sharding_on_host("x")),
            lambda s: s.tpu_text(lambda a: s.device_put(s.device_put(a, s.Device) * 2, s.Host)),
            lambda s: s.tpu_text(lambda a: s.device_put(s.device_put(a, None) * 2, s.Host)),
            lambda s: s.tpu_text(lambda a: s.device_put(a, s.Device) * 2),
        ],
        **SPACES,
        tpu_text=text,
    )


def test_results_over_explicit_meshes_are_in_the_memory_of_their_type():
    same(
        [
            lambda s: s.kinds(lambda a: s.device_put(a * 2, s.Host)),
            lambda s: s.kinds(lambda a: (a, s.device_put(a, s.sharding_on_host("x", mesh=s.explicit)))),
        ],
        **SPACES,
        explicit=lambda s: s.jax.make_mesh((4, 2), ("x", "y"), axis_types=(s.jax.sharding.AxisType.Explicit,) * 2),
        kinds=lambda s: (
            lambda f: [
                sharding.memory_kind
                for sharding in s.jax.tree.leaves(
                    s.jax.jit(f)
                    .lower(s.ShapeDtypeStruct((8,), "float32", sharding=s.sharding("x", mesh=s.explicit)))
                    .compile()
                    .output_shardings
                )
            ]
        ),
    )
