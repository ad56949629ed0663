"""Arrays of NumPy's variable-length strings: placed on devices and read, and refused by programs, as in jax."""

import copy
import pickle

import compare
import numpy as np
import pytest
from mesh_language import same, same_errors

import minijax

pytestmark = pytest.mark.oracle
STRING = np.dtypes.StringDType()
LONG = "longer than what NumPy keeps in place, and with an é"


def words(*shape):
    values = ["a", LONG, "", "tail", "b", "cc", "ddd", "e" * 100]
    return np.resize(np.array(values, STRING), shape)


def read(x):
    return x.dtype.name, x.shape, np.asarray(x).tolist(), repr(np.asarray(x).dtype), np.asarray(x).flags.writeable


GIVEN = dict(
    strings=lambda s: s.jax.device_put(words(3), s.devices[0]),
    sharded_strings=lambda s: s.jax.device_put(words(8, 2), s.sharding("x", "y")),
)


def test_strings_are_put_on_devices_and_read():
    same(
        [
            lambda s: read(s.strings),
            lambda s: read(s.jax.device_put(words(3), s.devices[1])),
            lambda s: read(s.jax.device_put(words(), s.devices[0])),
            lambda s: read(s.jax.device_put(words(2, 3), s.devices[0])),
            lambda s: read(s.jax.device_put(words(6)[::2], s.devices[0])),
            lambda s: read(s.jnp.asarray(words(3), device=s.devices[2])),
            lambda s: read(s.jnp.array(words(3), dtype=STRING, device=s.devices[0])),
            lambda s: read(s.sharded_strings),
            lambda s: [
                (shard.device.id, shard.index, np.asarray(shard.data).tolist())
                for shard in s.sharded_strings.addressable_shards
            ],
            lambda s: (
                read(s.jax.device_put(s.strings, s.devices[1])),
                s.jax.device_put(s.strings, s.devices[1]).devices(),
            ),
            lambda s: read(s.jax.device_put(s.sharded_strings, s.devices[1])),
            lambda s: ((repr(s.strings), str(s.strings), f"{s.strings}")),
            lambda s: (
                s.strings.nbytes,
                s.strings.itemsize,
                s.strings.size,
                len(s.strings),
                s.strings.weak_type,
                str(s.strings.aval),
                str(s.jax.typeof(words(2))),
            ),
            lambda s: (
                s.strings.tolist(),
                bool(s.jax.device_put(words(1), s.devices[0])),
                s.jax.device_put(words(1), s.devices[0]).item(),
            ),
            lambda s: s.jax.device_get({"a": s.strings, "b": 1})["a"].tolist(),
            lambda s: read(s.jax.vmap(lambda x: x)(s.strings)),
            lambda s: str(s.jax.eval_shape(lambda x: x, words(3))),
            lambda s: str(s.jax.make_jaxpr(lambda x: x)(s.strings)),
            lambda s: read(
                s.jax.make_array_from_single_device_arrays((3,), s.SingleDeviceSharding(s.devices[0]), [s.strings])
            ),
            lambda s: (
                s.jax.dtypes.canonicalize_dtype(STRING),
                s.jnp.issubdtype(STRING, s.jnp.number),
                s.jax.dlpack.is_supported_dtype(STRING),
            ),
        ],
        **GIVEN,
    )


def test_programs_and_promotions_refuse_strings():
    same_errors(
        [
            (lambda s: s.jax.device_put(words(3)), "String arrays can only be sharded to CPU devices"),
            (lambda s: s.jnp.asarray(words(3), dtype=STRING), "String arrays can only be sharded to CPU devices"),
            (lambda s: s.jnp.asarray(words(3)), ""),
            (
                lambda s: s.jnp.asarray(["a"], dtype=STRING),
                "Currently, string arrays can only be made from NumPy arrays",
            ),
            (lambda s: s.jnp.asarray("a", dtype=STRING), "Currently, string arrays can only be made from NumPy arrays"),
            (lambda s: s.jnp.asarray(words(3), dtype=s.jnp.bfloat16), "Cannot make an array with dtype bfloat16"),
            (
                lambda s: s.jnp.asarray(np.arange(2), dtype=STRING),
                "Cannot make an array with dtype StringDType() from an object",
            ),
            (lambda s: s.jnp.asarray(np.array(["a"])), ""),
            (lambda s: s.jax.jit(lambda x: x)(s.strings), "is not a valid JAX type"),
            (lambda s: s.jax.jit(lambda x: x)(words(3)), ""),
            (lambda s: s.jax.grad(lambda x: x)(s.strings), "is not a valid JAX type"),
            (lambda s: s.jax.vmap(lambda x: x + s.jnp.arange(3))(s.strings), "StringDType() is not a valid dtype"),
            (lambda s: s.strings + 1, "is not a valid dtype for JAX type promotion"),
            (lambda s: s.strings + s.strings, "add does not accept dtype StringDType128"),
            (lambda s: s.strings == s.strings, "eq does not accept dtype StringDType128"),
            (lambda s: s.jnp.result_type(s.strings, 1), "is not a valid dtype for JAX type promotion"),
            (lambda s: s.jnp.where(True, s.strings, 1), "is not a valid dtype for JAX type promotion"),
            (lambda s: s.strings[0], "is not a valid JAX type"),
            (lambda s: s.strings.reshape(3, 1), "is not a valid JAX type"),
            (lambda s: list(s.strings), "is not a valid JAX type"),
            (lambda s: s.strings.astype(s.jnp.float32), "is not a valid JAX type"),
            (lambda s: s.jnp.arange(3).astype(STRING), ""),
            (lambda s: s.jnp.zeros(3, STRING), "is not a valid JAX type"),
            (lambda s: s.jax.new_ref(s.strings), "is not a valid JAX type"),
            (lambda s: s.jnp.stack([s.strings]), "is not a valid JAX type"),
            (lambda s: s.jax.jvp(lambda x: x, (s.strings,), (s.strings,)), "do not match"),
            (lambda s: s.strings.__dlpack__(), ""),
            (lambda s: memoryview(s.strings), ""),
            (lambda s: s.strings.on_device_size_in_bytes(), ""),
            (lambda s: s.jax.device_put(words(0), s.devices[0]), ""),
        ],
        **GIVEN,
    )


def test_a_random_key_does_not_promote():
    assert compare.same(lambda jax: compare.ended(lambda: jax.random.key(0) + 1)) == "raised TypeError []"


# What jax refuses or gets wrong


def test_strings_are_copied_pickled_and_replicated():
    devices = minijax.devices()
    here = minijax.device_put(words(3), devices[0])
    replicated = minijax.NamedSharding(minijax.make_mesh((8,), ("i",)), minijax.P())
    whole = minijax.device_put(here, replicated)
    copies = [copy.copy(here), copy.deepcopy(here), here.clone(), pickle.loads(pickle.dumps(here)), whole]
    copies += [shard.data for shard in whole.addressable_shards]
    copies += [minijax.make_array_from_callback((3,), replicated, lambda index: here)]
    assert all(read(x) == read(here) for x in copies)


def test_deleted_strings_cannot_be_read():
    here = minijax.device_put(words(3), minijax.devices()[0])
    here.delete()
    with pytest.raises(RuntimeError, match="Array has been deleted"):
        np.asarray(here)


def test_strings_with_missing_ones_are_refused():
    # jaxlib ends the process.
    with pytest.raises(TypeError, match="is not a valid JAX array type"):
        minijax.device_put(np.array(["a", None], np.dtypes.StringDType(na_object=None)), minijax.devices()[0])


def test_device_arrays_do_not_alias_the_host_array():
    values = words(3)
    here = minijax.device_put(values, minijax.devices()[0])
    values[0] = "changed"
    assert np.asarray(here)[0] == "a"
