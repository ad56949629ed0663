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
        cut=lambda s: s.jax.device_put(values(name), s.on("x", "y")),
        last=lambda s: s.jax.device_put(values(name), s.on(None, None, ("x", "y"))),
        whole=lambda s: s.jax.device_put(values(name), s.on()),
        backwards=lambda s: s.jax.device_put(values(name), ordered(s, (2, 0, 1), s.on("x"))),
        floats=lambda s: lambda x: x.astype(np.float32).tolist(),
        parts=lambda s: lambda x: [
            (shard.device.id, shard.index, shard.data.dtype.name, np.asarray(shard.data).astype(np.float32).tolist())
            for shard in x.addressable_shards
        ],
    )  # fmt: skip


@pytest.mark.parametrize("name", NARROW)
def test_parts_of_packed_elements_are_read(name):
    same(
        """
        floats(np.asarray(cut)), cut.dtype
        floats(np.asarray(last))
        floats(np.asarray(whole))
        floats(np.asarray(backwards))
        parts(cut)
        parts(last)
        parts(whole)
        parts(backwards)
        repr(cut), str(whole)
        floats(np.asarray(jax.device_put(cut, d[1])))
        floats(np.asarray(jax.device_put(last, on("y"))))
        floats(np.asarray(jax.device_put(whole, on("y", mesh=m4))))
        floats(np.asarray(jax.make_array_from_callback((4, 2, 8), on("x"), lambda index: values[index])))
        floats(np.asarray(jax.jit(lambda x: x.transpose(1, 0, 2), out_shardings=on("y", "x"))(cut)))
        [floats(np.asarray(x)) for x in cut]
        """,
        **given(name),
    )


@pytest.mark.parametrize("name", ["int4", "float4_e2m1fn"])  # of two bits XLA ends the process, in jax too
def test_packed_elements_over_devices_are_indexed(name):
    same("cut[1, 0, 3].item(), floats(np.asarray(cut[1, :, 2:5])), [floats(np.asarray(x)) for x in cut]", **given(name))


# Layouts


def saved(save, x):
    file = io.BytesIO()
    save(file, x)
    return file.getvalue()


LAID = dict(
    saved=lambda s: saved,
    laid=lambda s: (
        lambda name, order, where=None: s.jax.device_put(
            values(name if name == "int4" else "uint4").astype(getattr(s.jnp, name)),
            ordered(s, order, where or s.One(s.d[0])),
        )
    ),
)


@pytest.mark.parametrize("name", ["float32", "bfloat16", "int4", "bool"])
def test_arrays_of_any_layout_are_printed_indexed_and_saved_as_they_lie(name):
    same(
        f"""
        [np.asarray(laid('{name}', order)).strides for order in [(0, 1, 2), (2, 1, 0), (1, 2, 0)]]
        [saved(np.save, laid('{name}', order)) for order in [(0, 1, 2), (2, 1, 0), (1, 2, 0)]]
        saved(jnp.save, laid('{name}', (2, 1, 0)))
        saved(np.save, laid('{name}', (2, 1, 0), on('x')))
        [repr(laid('{name}', order)) for order in [(2, 1, 0), (2, 0, 1)]]
        repr(laid('{name}', (1, 0, 2), on('x', 'y')))
        [laid('{name}', order)[1, 0, 3:5].tolist() for order in [(2, 1, 0), (1, 2, 0)]]
        [laid('{name}', order).tolist() for order in [(2, 1, 0), (1, 2, 0)]]
        laid('{name}', (2, 1, 0)).tobytes(), laid('{name}', (2, 1, 0))[3, 1, 2].item()
        np.asarray(laid('{name}', (2, 1, 0))).flags.writeable, np.asarray(laid('{name}', (2, 1, 0))).flags.f_contiguous
        """,
        **LAID,
    )


def test_a_view_of_an_array_keeps_its_memory_alive():
    s = side("minijax")
    x = minijax.device_put(np.arange(6.0, dtype=np.float32).reshape(2, 3), ordered(s, (1, 0), s.One(s.d[0])))
    view = np.asarray(x)
    x.delete()
    assert view.tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.skipif(not hasattr(ml_dtypes, "int1"), reason="ml_dtypes has no int1")
def test_single_bits_over_several_devices_are_refused():
    # jax ends the process.
    sharding = minijax.NamedSharding(minijax.make_mesh((8,), ("i",)), minijax.P("i"))
    with pytest.raises(minijax.errors.JaxRuntimeError, match="int1 on several devices"):
        minijax.device_put(np.zeros(8, ml_dtypes.int1), sharding)
