"""Arrays that lie on several devices: moving, parts, reading, printing, copies, against jax."""

import copy
import pickle

import numpy as np
import pytest
from mesh_language import numbers, same

import minijax

pytestmark = pytest.mark.oracle

TYPES = "bool int8 uint16 int32 float16 bfloat16 float8_e4m3fn float32 complex64".split()


def test_values_move_as_in_jax():
    same(
        """
        [jax.device_put(a, on(*s)) for s in ((), ('y', 'x'), (None, ('x', 'y')), (('y', 'x'),), ('y',))]
        [jax.device_put(a, on('y', mesh=t)) for t in (grid((2, 4), ('x', 'y')), m4, back)]
        [jax.device_put(a, x) for x in (d[3], One(d[2]), None)]
        [jax.device_put(x, on('x')) for x in (numbers(8), jnp.ones(8), jax.device_put(numbers(8), d[5]))]
        [jax.device_put(x, on()) for x in (3, 2.5, True, 1j, np.float16(2), np.ones((0, 3), np.int8), jnp.float32(2))]
        [jax.device_put(numbers(8, 4).astype(t), on('x', 'y')) for t in types]
        [jax.device_put(put(numbers(8, 4).astype(t), 'x'), on(None, 'y')) for t in types]
        [jax.device_put(put(numbers(8).astype(t), 'x'), d[1]) for t in types]
        jax.device_put({'a': numbers(8), 'b': [numbers(4), 2]}, {'a': on('x'), 'b': on()})
        jax.device_put([numbers(8), numbers(8, 2)], on('y'))
        jax.device_put(jax.device_put(a, on('y', mesh=m4)), on('x'))
        jax.device_put(a, on('x', 'y')) is a, jax.device_put(a, may_alias=False), jnp.array(a), a.copy()
        jax.device_put(jax.random.split(jax.random.key(0), 8), on('x'))
        jax.device_put(put(np.float32(2)), on('x', mesh=back).update(spec=P()))
        jax.device_put(numbers(2, 8), on('x', mesh=grid((2,), ('x',))))
        jax.device_put(numbers(8), on('x', mesh=grid((1,), ('x',))))
        jax.device_put(put(numbers(8), 'x'), on('x', mesh=grid((1,), ('x',))))
        [jnp.zeros_like(a), jnp.full_like(a, 3.), jnp.ones_like(a), jnp.empty_like(a) * 0, lax.full_like(a, 2.)]
        [jnp.zeros_like(a, shape=(8,)), jnp.zeros_like(a, dtype=int), jnp.asarray(a), jnp.asarray(a, jnp.int32)]
        jax.jit(lambda p: jax.device_put(p, d[0]))(numbers(3))
    """,
        types=lambda s: TYPES,
    )


def test_parts_equal_jax_s():
    same(
        """
        [(s.device, s.index, s.replica_id, s.data) for s in a.addressable_shards]
        [(s.device, s.index, s.replica_id, s.data) for s in v.global_shards]
        [(s.device, s.index, s.replica_id, s.data) for s in put(numbers(8), 'y', mesh=back).addressable_shards]
        [(s.device, s.index, s.replica_id, s.data) for s in put(np.float32(2)).addressable_shards]
        [a.addressable_data(3), v.addressable_data(1), put(numbers(3)).addressable_data(2), jnp.ones(3).addressable_data(0)]
        [jax.random.key_data(s.data) for s in put(jax.random.split(jax.random.key(0), 8), 'x').addressable_shards]
        [put(numbers(8).astype(t), 'x').addressable_data(1) for t in types]
        str(a.addressable_shards[0])
        [a.is_fully_replicated, put(2.).is_fully_replicated, a.is_fully_addressable, a.committed, a.devices()]
        [a.device, a.nbytes, a.sharding.shard_shape(a.shape), len(a.global_shards), a.ndim, a.size, a.itemsize]
        a.on_device_size_in_bytes(), put(numbers(3)).on_device_size_in_bytes()
    """,
        types=lambda s: TYPES,
    )


def test_reading_and_printing_equal_jax_s():
    same(
        """
        [repr(a[:4, 0]), str(a), repr(v[:4]), str(put(2.)), f'{put(2.5):.2f}', f'{a[0, 1]:.3f}', repr(put(np.ones((0, 2))))]
        [repr(put(jax.random.split(jax.random.key(0), 8), 'x')), str(put(jax.random.key(1)))]
        [a.tolist(), a[1, 2].item(), float(a[0, 0]), int(a[0, 3]), bool(a[0, 1] > 0), complex(v[1]), v.tobytes()]
        [np.asarray(a), np.asarray(a, dtype=np.float64), np.array(v), np.sum(a), np.add(v, 1), jax.device_get(a)]
        [np.asarray(put(numbers(8, 4).astype(t), 'x', 'y')) for t in types]
        [v[::2], v[1:7:2], v[::-2], a[::2], a[::2, 1:], a[..., ::3], a[::4, 0], a[5:1:-2], a[::9], a.at[::2].get()]
        [list(v), list(a)[1], [q.sharding for q in put(numbers(8))], len(a), v[2], v[::-1], v[np.array([1, 5])]]
        [a[2:5], a[:, 1], a[..., None], a[a > 3], a.at[1].add(2.), a.T, a.reshape(4, 16), jnp.unstack(a)[1]]
        [v.max(), v.argsort(), v.astype(int), v.mean(), v.dot(v), -v, v // 2, v ** 2, v == v, abs(v), divmod(v, 2)]
        [bool(put(2.) > 1), [0, 1, 2][put(np.int32(1))], range(put(np.int32(3))), hex(put(np.int32(17)))]
        jax.tree.map(lambda x: x * 2, {'a': v})
        [v.is_ready(), v.block_until_ready() is v, jax.block_until_ready([v, a])[0] is v, v.weak_type, put(2.).weak_type]
    """,
        types=lambda s: TYPES,
    )


def test_copies_lie_as_jax_s():
    same(
        """
        [copy.copy(a), copy.deepcopy(a), copy.deepcopy({'a': v})['a'], pickle.loads(pickle.dumps(a))]
        [copy.deepcopy(on('x')) == on('x'), hash(on('x')) == hash(on('x')), a.sharding == on('x', 'y')]
        [a.clone() if hasattr(a, 'clone') else a, jnp.copy(a)]
    """,
        copy=lambda s: copy,
        pickle=lambda s: pickle,
    )


def test_arrays_made_of_parts_equal_jax_s():
    same("""
        jax.make_array_from_single_device_arrays((8,), on('x'), [s.data for s in v.addressable_shards][::-1])
        jax.make_array_from_single_device_arrays((2,), One(d[0]), [v.addressable_data(0)])
        jax.make_array_from_single_device_arrays((8, 8), a.sharding, [s.data for s in (a + 1).addressable_shards])
        [jax.make_array_from_callback((8,), on(*s), lambda i: numbers(8)[i]) for s in ('x', 'y', ())]
        [jax.make_array_from_callback((8,), t, lambda i: v[i]) for t in (One(d[1]), on('x', mesh=back))]
        jax.make_array_from_callback((), on(), lambda i: 3.)
        jax.make_array_from_callback((8,), on('x'), lambda i: numbers(8)[i], dtype=np.float32) + 1
        np.asarray(jax.random.key_data(jax.make_array_from_callback((8,), on('x'), lambda i: jax.random.split(jax.random.key(0), 8)[i])))
        jax.make_array_from_process_local_data(on('x'), numbers(8), (8,))
        jax.make_array_from_process_local_data(on('x'), {'a': numbers(8), 'b': numbers(4, 2)})
        jax.make_array_from_process_local_data({'a': on('x'), 'b': on()}, {'a': numbers(8), 'b': numbers(4, 2)})
    """)


def test_a_layout_no_spec_can_express_is_kept():
    same(
        """
        [q, q + 1, q.sum(), q[0], np.asarray(q), jax.device_put(q, on('y', 'x')), jnp.sin(q).T]
        [q.sharding.shard_shape((2, 4)), q.sharding.is_fully_replicated, q.sharding.num_devices, q.sharding.memory_kind]
        [(s.index, s.data) for s in q.addressable_shards]
    """,
        q=lambda s: s.jax.jit(lambda p: p.reshape(2, 4))(s.put(numbers(8), "i", mesh=s.m8)),
    )


def test_copies_do_not_share_memory_and_arrays_do_not_alias_numpy():
    mesh = minijax.sharding.Mesh(np.array(minijax.devices()), ("i",))
    layout = minijax.sharding.NamedSharding(mesh, minijax.sharding.PartitionSpec("i"))
    values = numbers(8)
    x = minijax.device_put(values, layout)
    kept = minijax.numpy.array(x)
    values[:] = 0
    assert np.array_equal(x, numbers(8))
    x.delete()
    assert np.array_equal(kept, numbers(8))


@pytest.mark.parametrize("spec", [("x",), ("y", "x"), (None, ("x", "y")), ()])
def test_parts_put_together_are_the_array(spec):
    mesh = minijax.sharding.Mesh(np.array(minijax.devices()).reshape(4, 2), ("x", "y"))
    layout = minijax.sharding.NamedSharding(mesh, minijax.sharding.PartitionSpec(*spec))
    x, whole = minijax.device_put(numbers(8, 8), layout), np.zeros((8, 8), np.float32)
    for part in x.addressable_shards:
        assert part.data.devices() == {part.device}
        whole[part.index] = part.data
    assert np.array_equal(whole, numbers(8, 8))
