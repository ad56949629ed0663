"""Arrays that are sharded over several devices: `device_put`, shards, reading, printing and copies, against jax."""

import copy
import pickle

import numpy as np
import pytest
from mesh_language import numbers, same

import minijax

pytestmark = pytest.mark.oracle

TYPES = "bool int8 uint16 int32 float16 bfloat16 float8_e4m3fn float32 complex64".split()


def test_device_put():
    same(
        [
            lambda s: [
                s.jax.device_put(s.auto_matrix, s.sharding(*spec))
                for spec in ((), ("y", "x"), (None, ("x", "y")), (("y", "x"),), ("y",))
            ],
            lambda s: [
                s.jax.device_put(s.auto_matrix, s.sharding("y", mesh=t))
                for t in (s.auto_mesh((2, 4), ("x", "y")), s.mesh_of_4, s.reversed_mesh)
            ],
            lambda s: [
                s.jax.device_put(s.auto_matrix, x) for x in (s.devices[3], s.SingleDeviceSharding(s.devices[2]), None)
            ],
            lambda s: [
                s.jax.device_put(x, s.sharding("x"))
                for x in (numbers(8), s.jnp.ones(8), s.jax.device_put(numbers(8), s.devices[5]))
            ],
            lambda s: [
                s.jax.device_put(x, s.sharding())
                for x in (3, 2.5, True, 1j, np.float16(2), np.ones((0, 3), np.int8), s.jnp.float32(2))
            ],
            lambda s: [s.jax.device_put(numbers(8, 4).astype(t), s.sharding("x", "y")) for t in TYPES],
            lambda s: [s.jax.device_put(s.shard(numbers(8, 4).astype(t), "x"), s.sharding(None, "y")) for t in TYPES],
            lambda s: [s.jax.device_put(s.shard(numbers(8).astype(t), "x"), s.devices[1]) for t in TYPES],
            lambda s: s.jax.device_put(
                {"a": numbers(8), "b": [numbers(4), 2]}, {"a": s.sharding("x"), "b": s.sharding()}
            ),
            lambda s: s.jax.device_put([numbers(8), numbers(8, 2)], s.sharding("y")),
            lambda s: s.jax.device_put(
                s.jax.device_put(s.auto_matrix, s.sharding("y", mesh=s.mesh_of_4)), s.sharding("x")
            ),
            lambda s: (
                s.jax.device_put(s.auto_matrix, s.sharding("x", "y")) is s.auto_matrix,
                s.jax.device_put(s.auto_matrix, may_alias=False),
                s.jnp.array(s.auto_matrix),
                s.auto_matrix.copy(),
            ),
            lambda s: s.jax.device_put(s.jax.random.split(s.jax.random.key(0), 8), s.sharding("x")),
            lambda s: s.jax.device_put(
                s.shard(np.float32(2)), s.sharding("x", mesh=s.reversed_mesh).update(spec=s.P())
            ),
            lambda s: s.jax.device_put(numbers(2, 8), s.sharding("x", mesh=s.auto_mesh((2,), ("x",)))),
            lambda s: s.jax.device_put(numbers(8), s.sharding("x", mesh=s.auto_mesh((1,), ("x",)))),
            lambda s: s.jax.device_put(s.shard(numbers(8), "x"), s.sharding("x", mesh=s.auto_mesh((1,), ("x",)))),
            lambda s: [
                s.jnp.zeros_like(s.auto_matrix),
                s.jnp.full_like(s.auto_matrix, 3.0),
                s.jnp.ones_like(s.auto_matrix),
                s.jnp.empty_like(s.auto_matrix) * 0,
                s.lax.full_like(s.auto_matrix, 2.0),
            ],
            lambda s: [
                s.jnp.zeros_like(s.auto_matrix, shape=(8,)),
                s.jnp.zeros_like(s.auto_matrix, dtype=int),
                s.jnp.asarray(s.auto_matrix),
                s.jnp.asarray(s.auto_matrix, s.jnp.int32),
            ],
            lambda s: s.jax.jit(lambda p: s.jax.device_put(p, s.devices[0]))(numbers(3)),
        ]
    )


def test_shards_equal_jax_s():
    same(
        [
            lambda s: [
                (shard.device, shard.index, shard.replica_id, shard.data) for shard in s.auto_matrix.addressable_shards
            ],
            lambda s: [
                (shard.device, shard.index, shard.replica_id, shard.data) for shard in s.auto_vector.global_shards
            ],
            lambda s: [
                (shard.device, shard.index, shard.replica_id, shard.data)
                for shard in s.shard(numbers(8), "y", mesh=s.reversed_mesh).addressable_shards
            ],
            lambda s: [
                (shard.device, shard.index, shard.replica_id, shard.data)
                for shard in s.shard(np.float32(2)).addressable_shards
            ],
            lambda s: [
                s.auto_matrix.addressable_data(3),
                s.auto_vector.addressable_data(1),
                s.shard(numbers(3)).addressable_data(2),
                s.jnp.ones(3).addressable_data(0),
            ],
            lambda s: [
                s.jax.random.key_data(shard.data)
                for shard in s.shard(s.jax.random.split(s.jax.random.key(0), 8), "x").addressable_shards
            ],
            lambda s: [s.shard(numbers(8).astype(t), "x").addressable_data(1) for t in TYPES],
            lambda s: str(s.auto_matrix.addressable_shards[0]),
            lambda s: [
                s.auto_matrix.is_fully_replicated,
                s.shard(2.0).is_fully_replicated,
                s.auto_matrix.is_fully_addressable,
                s.auto_matrix.committed,
                s.auto_matrix.devices(),
            ],
            lambda s: [
                s.auto_matrix.device,
                s.auto_matrix.nbytes,
                s.auto_matrix.sharding.shard_shape(s.auto_matrix.shape),
                len(s.auto_matrix.global_shards),
                s.auto_matrix.ndim,
                s.auto_matrix.size,
                s.auto_matrix.itemsize,
            ],
            lambda s: (s.auto_matrix.on_device_size_in_bytes(), s.shard(numbers(3)).on_device_size_in_bytes()),
        ]
    )


def test_reading_and_printing_equal_jax_s():
    same(
        [
            lambda s: [
                repr(s.auto_matrix[:4, 0]),
                str(s.auto_matrix),
                repr(s.auto_vector[:4]),
                str(s.shard(2.0)),
                f"{s.shard(2.5):.2f}",
                f"{s.auto_matrix[0, 1]:.3f}",
                repr(s.shard(np.ones((0, 2)))),
            ],
            lambda s: [
                repr(s.shard(s.jax.random.split(s.jax.random.key(0), 8), "x")),
                str(s.shard(s.jax.random.key(1))),
            ],
            lambda s: [
                s.auto_matrix.tolist(),
                s.auto_matrix[1, 2].item(),
                float(s.auto_matrix[0, 0]),
                int(s.auto_matrix[0, 3]),
                bool(s.auto_matrix[0, 1] > 0),
                complex(s.auto_vector[1]),
                s.auto_vector.tobytes(),
            ],
            lambda s: [
                np.asarray(s.auto_matrix),
                np.asarray(s.auto_matrix, dtype=np.float64),
                np.array(s.auto_vector),
                np.sum(s.auto_matrix),
                np.add(s.auto_vector, 1),
                s.jax.device_get(s.auto_matrix),
            ],
            lambda s: [np.asarray(s.shard(numbers(8, 4).astype(t), "x", "y")) for t in TYPES],
            lambda s: [
                s.auto_vector[::2],
                s.auto_vector[1:7:2],
                s.auto_vector[::-2],
                s.auto_matrix[::2],
                s.auto_matrix[::2, 1:],
                s.auto_matrix[..., ::3],
                s.auto_matrix[::4, 0],
                s.auto_matrix[5:1:-2],
                s.auto_matrix[::9],
                s.auto_matrix.at[::2].get(),
            ],
            lambda s: [
                list(s.auto_vector),
                list(s.auto_matrix)[1],
                [q.sharding for q in s.shard(numbers(8))],
                len(s.auto_matrix),
                s.auto_vector[2],
                s.auto_vector[::-1],
                s.auto_vector[np.array([1, 5])],
            ],
            lambda s: [
                s.auto_matrix[2:5],
                s.auto_matrix[:, 1],
                s.auto_matrix[..., None],
                s.auto_matrix[s.auto_matrix > 3],
                s.auto_matrix.at[1].add(2.0),
                s.auto_matrix.T,
                s.auto_matrix.reshape(4, 16),
                s.jnp.unstack(s.auto_matrix)[1],
            ],
            lambda s: [
                s.auto_vector.max(),
                s.auto_vector.argsort(),
                s.auto_vector.astype(int),
                s.auto_vector.mean(),
                s.auto_vector.dot(s.auto_vector),
                -s.auto_vector,
                s.auto_vector // 2,
                s.auto_vector**2,
                s.auto_vector == s.auto_vector,
                abs(s.auto_vector),
                divmod(s.auto_vector, 2),
            ],
            lambda s: [
                bool(s.shard(2.0) > 1),
                [0, 1, 2][s.shard(np.int32(1))],
                range(s.shard(np.int32(3))),
                hex(s.shard(np.int32(17))),
            ],
            lambda s: s.jax.tree.map(lambda x: x * 2, {"a": s.auto_vector}),
            lambda s: [
                s.auto_vector.is_ready(),
                s.auto_vector.block_until_ready() is s.auto_vector,
                s.jax.block_until_ready([s.auto_vector, s.auto_matrix])[0] is s.auto_vector,
                s.auto_vector.weak_type,
                s.shard(2.0).weak_type,
            ],
        ]
    )


def test_copies_have_jax_s_shardings():
    same(
        [
            lambda s: [
                copy.copy(s.auto_matrix),
                copy.deepcopy(s.auto_matrix),
                copy.deepcopy({"a": s.auto_vector})["a"],
                pickle.loads(pickle.dumps(s.auto_matrix)),
            ],
            lambda s: [
                copy.deepcopy(s.sharding("x")) == s.sharding("x"),
                hash(s.sharding("x")) == hash(s.sharding("x")),
                s.auto_matrix.sharding == s.sharding("x", "y"),
            ],
            lambda s: [
                s.auto_matrix.clone() if hasattr(s.auto_matrix, "clone") else s.auto_matrix,
                s.jnp.copy(s.auto_matrix),
            ],
        ]
    )


def test_arrays_made_from_shards_equal_jax_s():
    same(
        [
            lambda s: s.jax.make_array_from_single_device_arrays(
                (8,), s.sharding("x"), [shard.data for shard in s.auto_vector.addressable_shards][::-1]
            ),
            lambda s: s.jax.make_array_from_single_device_arrays(
                (2,), s.SingleDeviceSharding(s.devices[0]), [s.auto_vector.addressable_data(0)]
            ),
            lambda s: s.jax.make_array_from_single_device_arrays(
                (8, 8), s.auto_matrix.sharding, [shard.data for shard in (s.auto_matrix + 1).addressable_shards]
            ),
            lambda s: [
                s.jax.make_array_from_callback((8,), s.sharding(*spec), lambda i: numbers(8)[i])
                for spec in ("x", "y", ())
            ],
            lambda s: [
                s.jax.make_array_from_callback((8,), t, lambda i: s.auto_vector[i])
                for t in (s.SingleDeviceSharding(s.devices[1]), s.sharding("x", mesh=s.reversed_mesh))
            ],
            lambda s: s.jax.make_array_from_callback((), s.sharding(), lambda i: 3.0),
            lambda s: (
                s.jax.make_array_from_callback((8,), s.sharding("x"), lambda i: numbers(8)[i], dtype=np.float32) + 1
            ),
            lambda s: np.asarray(
                s.jax.random.key_data(
                    s.jax.make_array_from_callback(
                        (8,), s.sharding("x"), lambda i: s.jax.random.split(s.jax.random.key(0), 8)[i]
                    )
                )
            ),
            lambda s: s.jax.make_array_from_process_local_data(s.sharding("x"), numbers(8), (8,)),
            lambda s: s.jax.make_array_from_process_local_data(s.sharding("x"), {"a": numbers(8), "b": numbers(4, 2)}),
            lambda s: s.jax.make_array_from_process_local_data(
                {"a": s.sharding("x"), "b": s.sharding()}, {"a": numbers(8), "b": numbers(4, 2)}
            ),
        ]
    )


def test_a_sharding_that_no_spec_expresses_is_kept():
    same(
        [
            lambda s: [
                s.without_spec,
                s.without_spec + 1,
                s.without_spec.sum(),
                s.without_spec[0],
                np.asarray(s.without_spec),
                s.jax.device_put(s.without_spec, s.sharding("y", "x")),
                s.jnp.sin(s.without_spec).T,
            ],
            lambda s: [
                s.without_spec.sharding.shard_shape((2, 4)),
                s.without_spec.sharding.is_fully_replicated,
                s.without_spec.sharding.num_devices,
                s.without_spec.sharding.memory_kind,
            ],
            lambda s: [(shard.index, shard.data) for shard in s.without_spec.addressable_shards],
        ],
        without_spec=lambda s: s.jax.jit(lambda p: p.reshape(2, 4))(s.shard(numbers(8), "i", mesh=s.mesh_of_8)),
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
def test_shards_together_are_the_array(spec):
    mesh = minijax.sharding.Mesh(np.array(minijax.devices()).reshape(4, 2), ("x", "y"))
    layout = minijax.sharding.NamedSharding(mesh, minijax.sharding.PartitionSpec(*spec))
    x, whole = minijax.device_put(numbers(8, 8), layout), np.zeros((8, 8), np.float32)
    for part in x.addressable_shards:
        assert part.data.devices() == {part.device}
        whole[part.index] = part.data
    assert np.array_equal(whole, numbers(8, 8))
