"""Transfers between meshes, device orders and numbers of devices stay on the devices; donated arrays are deleted."""

import itertools

import numpy as np
import pytest
from mesh_language import numbers, same

import minijax as jax
from minijax.run import reshard, transfer

P = jax.P


def _shardings():
    d = jax.devices()
    meshes = [
        jax.sharding.Mesh(np.array(devices).reshape(sizes), ("x", "y"))
        for devices, sizes in ((d, (4, 2)), (d[::-1], (4, 2)), (d[:4], (2, 2)), (d[4:], (4, 1)), ([d[0], d[2]], (2, 1)))
    ]
    specs = (P(), P("x"), P("y", "x"))
    sharded = [jax.NamedSharding(mesh, spec) for mesh in meshes for spec in specs]
    return [*sharded, jax.sharding.SingleDeviceSharding(d[1]), jax.sharding.SingleDeviceSharding(d[7])]


@pytest.mark.parametrize("is_small", [False, True])
def test_large_transfers_do_not_pass_through_the_host(monkeypatch, is_small):
    value = numbers(8, 8)
    arrays = [jax.device_put(value, s) for s in _shardings()]

    def refuse(*args):
        raise AssertionError("a value went by way of the host")

    if not is_small:
        monkeypatch.setattr(transfer, "put_host", refuse)
        monkeypatch.setattr(reshard, "_SMALL", 0)
        jax.clear_caches()  # the cached ways of transferring such arrays
    # Each kind of pair once: the whole table compiles hundreds of programs.
    pairs = [p for i, p in enumerate(itertools.product(arrays, _shardings())) if i % 7 == 0]
    for x, target in pairs:
        moved = jax.device_put(x, target)
        assert moved.sharding == target
        assert np.array_equal(moved, value)
        assert all(np.array_equal(s.data, value[s.index]) for s in moved.addressable_shards)


@pytest.mark.oracle
def test_donated_arrays_are_deleted_as_in_jax():
    same(
        [
            lambda s: [
                (
                    s.jax.device_put((p, q), s.sharding("x", mesh=s.reversed_mesh), donate=(True, False)),
                    p.is_deleted(),
                    q.is_deleted(),
                )
                for p, q in [(s.shard(numbers(8), "x"), s.shard(numbers(16), "x"))]
            ],
            lambda s: [s.jax.device_put(s.shard(numbers(8), "x"), s.sharding("x"), donate=True)],
        ]
    )


@pytest.mark.oracle
def test_device_arguments_in_programs_shard_as_in_jax():
    same(
        [
            lambda s: [
                s.jax.jit(lambda x, sharding=sharding: s.jnp.array(x, device=sharding))(numbers(8))
                for sharding in (s.sharding("y"), s.sharding(), s.devices[1])
            ],
            lambda s: [
                s.jax.jit(lambda x, sharding=sharding: s.jnp.asarray(x, "int32", device=sharding))(numbers(8))
                for sharding in (s.sharding("y"), s.devices[0])
            ],
            lambda s: s.jaxpr(lambda x: s.jnp.array(x, device=s.sharding("y")), numbers(8)),
            lambda s: s.jaxpr(
                lambda x: s.jax.device_put(x * 2, s.NamedSharding(s.explicit_mesh, s.P("x"))), numbers(8)
            ),
            lambda s: [
                s.jnp.zeros_like(s.struct),
                s.jnp.full_like(s.struct, 2),
                s.lax.full_like(s.struct, 3.0),
                s.jnp.zeros_like(s.struct, shape=(4,)),
                s.jnp.ones_like(s.struct, device=s.devices[1]),
            ],
            lambda s: s.jax.jit(lambda x: s.lax.with_sharding_constraint(x[:7] * 2, s.sharding("x")).sum())(numbers(8)),
        ],
        struct=lambda s: s.ShapeDtypeStruct((8,), "float32", sharding=s.sharding("x")),
    )
