"""Arrays that move between meshes, device orders and numbers of devices stay on devices; donated ones are given up."""

import itertools

import numpy as np
import pytest
from mesh_language import numbers, same

import minijax as jax
from minijax.run.arrays import reshard, transfer

P = jax.P


def _shardings():
    d = jax.devices()
    meshes = [
        jax.sharding.Mesh(np.array(devices).reshape(sizes), ("x", "y"))
        for devices, sizes in ((d, (4, 2)), (d[::-1], (4, 2)), (d[:4], (2, 2)), (d[4:], (4, 1)), ([d[0], d[2]], (2, 1)))
    ]
    specs = (P(), P("x"), P("y", "x"))
    laid = [jax.NamedSharding(mesh, spec) for mesh in meshes for spec in specs]
    return [*laid, jax.sharding.SingleDeviceSharding(d[1]), jax.sharding.SingleDeviceSharding(d[7])]


@pytest.mark.parametrize("is_small", [False, True])
def test_moves_that_are_not_small_copies_do_not_go_by_way_of_the_host(monkeypatch, is_small):
    value = numbers(8, 8)
    arrays = [jax.device_put(value, s) for s in _shardings()]

    def refuse(*args):
        raise AssertionError("a value went by way of the host")

    if not is_small:
        monkeypatch.setattr(transfer, "put_host", refuse)
        monkeypatch.setattr(reshard, "_SMALL", 0)
        jax.clear_caches()  # where it is remembered how such arrays are moved
    # Each kind of pair once: the whole table compiles hundreds of programs.
    pairs = [p for i, p in enumerate(itertools.product(arrays, _shardings())) if i % 7 == 0]
    for x, target in pairs:
        moved = jax.device_put(x, target)
        assert moved.sharding == target
        assert np.array_equal(moved, value)
        assert all(np.array_equal(s.data, value[s.index]) for s in moved.addressable_shards)


@pytest.mark.oracle
def test_donated_arrays_are_given_up_as_in_jax():
    same(
        """
        [(jax.device_put((p, q), on('x', mesh=back), donate=(True, False)), p.is_deleted(), q.is_deleted()) for p, q in [(put(numbers(8), 'x'), put(numbers(16), 'x'))]]
        [jax.device_put(put(numbers(8), 'x'), on('x'), donate=True)]
    """
    )


@pytest.mark.oracle
def test_values_placed_in_programs_and_by_descriptions_lie_as_in_jax():
    same(
        """
        [jax.jit(lambda x: jnp.array(x, device=s))(numbers(8)) for s in (on('y'), on(), d[1])]
        [jax.jit(lambda x: jnp.asarray(x, 'int32', device=s))(numbers(8)) for s in (on('y'), d[0])]
        jaxpr(lambda x: jnp.array(x, device=on('y')), numbers(8))
        jaxpr(lambda x: jax.device_put(x * 2, NS(explicit, P('x'))), numbers(8))
        [jnp.zeros_like(s), jnp.full_like(s, 2), lax.full_like(s, 3.), jnp.zeros_like(s, shape=(4,)), jnp.ones_like(s, device=d[1])]
        jax.jit(lambda x: lax.with_sharding_constraint(x[:7] * 2, on('x')).sum())(numbers(8))
    """,
        s=lambda s: s.SDS((8,), "float32", sharding=s.on("x")),
    )
