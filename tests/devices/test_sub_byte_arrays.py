"""Elements of less than a byte over several devices, and arrays of any layout: read, printed, indexed, saved."""

import importlib
import io

import ml_dtypes
import numpy as np
import pytest
from mesh_language import same, side

import minijax

pytestmark = pytest.mark.oracle

NARROW = ["int4", "uint4", "int2", "uint2", "float4_e2m1fn"]


def values(name):
    return (np.random.RandomState(3).randint(0, 4, (4, 2, 8)) % (2 if name == "int2" else 4)).astype(
        getattr(ml_dtypes, name)
    )


def ordered(s, axes, sharding):
    layout = importlib.import_module(f"{s.jax.__name__}.experimental.layout")
    return layout.Format(layout.Layout(axes), sharding)


def given(name):
    return dict(
        values=lambda s: values(name),
        sharded=lambda s: s.jax.device_put(values(name), s.sharding("x", "y")),
        sharded_last_axis=lambda s: s.jax.device_put(values(name), s.sharding(None, None, ("x", "y"))),
        replicated=lambda s: s.jax.device_put(values(name), s.sharding()),
        reordered=lambda s: s.jax.device_put(values(name), ordered(s, (2, 0, 1), s.sharding("x"))),
        floats=lambda s: lambda x: x.astype(np.float32).tolist(),
        shards=lambda s: (
            lambda x: [
                (
                    shard.device.id,
                    shard.index,
                    shard.data.dtype.name,
                    np.asarray(shard.data).astype(np.float32).tolist(),
                )
                for shard in x.addressable_shards
            ]
        ),
    )


@pytest.mark.parametrize("name", NARROW)
def test_shards_of_sub_byte_elements_are_read(name):
    same(
        [
            lambda s: (s.floats(np.asarray(s.sharded)), s.sharded.dtype),
            lambda s: s.floats(np.asarray(s.sharded_last_axis)),
            lambda s: s.floats(np.asarray(s.replicated)),
            lambda s: s.floats(np.asarray(s.reordered)),
            lambda s: s.shards(s.sharded),
            lambda s: s.shards(s.sharded_last_axis),
            lambda s: s.shards(s.replicated),
            lambda s: s.shards(s.reordered),
            lambda s: (repr(s.sharded), str(s.replicated)),
            lambda s: s.floats(np.asarray(s.jax.device_put(s.sharded, s.devices[1]))),
            lambda s: s.floats(np.asarray(s.jax.device_put(s.sharded_last_axis, s.sharding("y")))),
            lambda s: s.floats(np.asarray(s.jax.device_put(s.replicated, s.sharding("y", mesh=s.mesh_of_4)))),
            lambda s: s.floats(
                np.asarray(s.jax.make_array_from_callback((4, 2, 8), s.sharding("x"), lambda index: s.values[index]))
            ),
            lambda s: s.floats(
                np.asarray(s.jax.jit(lambda x: x.transpose(1, 0, 2), out_shardings=s.sharding("y", "x"))(s.sharded))
            ),
            lambda s: [s.floats(np.asarray(x)) for x in s.sharded],
        ],
        **given(name),
    )


@pytest.mark.parametrize("name", ["int4", "float4_e2m1fn"])  # with two bits XLA ends the process, in jax too
def test_sub_byte_elements_over_devices_are_indexed(name):
    same(
        [
            lambda s: (
                s.sharded[1, 0, 3].item(),
                s.floats(np.asarray(s.sharded[1, :, 2:5])),
                [s.floats(np.asarray(x)) for x in s.sharded],
            )
        ],
        **given(name),
    )


def saved(save, x):
    file = io.BytesIO()
    save(file, x)
    return file.getvalue()


IN_LAYOUT = dict(
    in_layout=lambda s: (
        lambda name, order, where=None: s.jax.device_put(
            values(name if name == "int4" else "uint4").astype(getattr(s.jnp, name)),
            ordered(s, order, where or s.SingleDeviceSharding(s.devices[0])),
        )
    )
)


@pytest.mark.parametrize("name", ["float32", "bfloat16", "int4", "bool"])
def test_arrays_of_any_layout_are_printed_indexed_and_saved(name):
    same(
        [
            lambda s: [np.asarray(s.in_layout(name, order)).strides for order in [(0, 1, 2), (2, 1, 0), (1, 2, 0)]],
            lambda s: [saved(np.save, s.in_layout(name, order)) for order in [(0, 1, 2), (2, 1, 0), (1, 2, 0)]],
            lambda s: saved(s.jnp.save, s.in_layout(name, (2, 1, 0))),
            lambda s: saved(np.save, s.in_layout(name, (2, 1, 0), s.sharding("x"))),
            lambda s: [repr(s.in_layout(name, order)) for order in [(2, 1, 0), (2, 0, 1)]],
            lambda s: repr(s.in_layout(name, (1, 0, 2), s.sharding("x", "y"))),
            lambda s: [s.in_layout(name, order)[1, 0, 3:5].tolist() for order in [(2, 1, 0), (1, 2, 0)]],
            lambda s: [s.in_layout(name, order).tolist() for order in [(2, 1, 0), (1, 2, 0)]],
            lambda s: (s.in_layout(name, (2, 1, 0)).tobytes(), s.in_layout(name, (2, 1, 0))[3, 1, 2].item()),
            lambda s: (
                np.asarray(s.in_layout(name, (2, 1, 0))).flags.writeable,
                np.asarray(s.in_layout(name, (2, 1, 0))).flags.f_contiguous,
            ),
        ],
        **IN_LAYOUT,
    )


def test_a_view_of_an_array_keeps_its_memory_alive():
    s = side("minijax")
    x = minijax.device_put(
        np.arange(6.0, dtype=np.float32).reshape(2, 3), ordered(s, (1, 0), s.SingleDeviceSharding(s.devices[0]))
    )
    view = np.asarray(x)
    x.delete()
    assert view.tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.skipif(not hasattr(ml_dtypes, "int1"), reason="ml_dtypes has no int1")
def test_single_bits_over_several_devices_are_refused():
    # jax ends the process.
    sharding = minijax.NamedSharding(minijax.make_mesh((8,), ("i",)), minijax.P("i"))
    with pytest.raises(minijax.errors.JaxRuntimeError, match="int1 on several devices"):
        minijax.device_put(np.zeros(8, ml_dtypes.int1), sharding)
