"""Arrays of NumPy's strings of any length: put on devices and read, and refused by programs, as in jax."""

import copy
import pickle

import numpy as np
import pytest
from compare import both
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
    words=lambda s: words,
    read=lambda s: read,
    T=lambda s: STRING,
    w=lambda s: s.jax.device_put(words(3), s.d[0]),
    cut=lambda s: s.jax.device_put(words(8, 2), s.on("x", "y")),
    device_get=lambda s: s.jax.device_get,
)


def test_strings_are_put_on_devices_and_read():
    same(
        """
        read(w)
        read(jax.device_put(words(3), d[1]))
        read(jax.device_put(words(), d[0]))
        read(jax.device_put(words(2, 3), d[0]))
        read(jax.device_put(words(6)[::2], d[0]))
        read(jnp.asarray(words(3), device=d[2]))
        read(jnp.array(words(3), dtype=T, device=d[0]))
        read(cut)
        [(s.device.id, s.index, np.asarray(s.data).tolist()) for s in cut.addressable_shards]
        read(jax.device_put(w, d[1])), jax.device_put(w, d[1]).devices()
        read(jax.device_put(cut, d[1]))
        repr(w), str(w), f"{w}"
        w.nbytes, w.itemsize, w.size, len(w), w.weak_type, str(w.aval), str(jax.typeof(words(2)))
        w.tolist(), bool(jax.device_put(words(1), d[0])), jax.device_put(words(1), d[0]).item()
        device_get({"a": w, "b": 1})["a"].tolist()
        read(jax.vmap(lambda x: x)(w))
        str(jax.eval_shape(lambda x: x, words(3)))
        str(jax.make_jaxpr(lambda x: x)(w))
        read(jax.make_array_from_single_device_arrays((3,), One(d[0]), [w]))
        jax.dtypes.canonicalize_dtype(T), jnp.issubdtype(T, jnp.number), jax.dlpack.is_supported_dtype(T)
        """,
        **GIVEN,
    )


def test_programs_and_promotions_refuse_strings():
    same_errors(
        [
            ("jax.device_put(words(3))", "String arrays can only be sharded to CPU devices"),
            ("jnp.asarray(words(3), dtype=T)", "String arrays can only be sharded to CPU devices"),
            ("jnp.asarray(words(3))", ""),
            ("jnp.asarray(['a'], dtype=T)", "Currently, string arrays can only be made from NumPy arrays"),
            ("jnp.asarray('a', dtype=T)", "Currently, string arrays can only be made from NumPy arrays"),
            ("jnp.asarray(words(3), dtype=jnp.bfloat16)", "Cannot make an array with dtype bfloat16"),
            ("jnp.asarray(np.arange(2), dtype=T)", "Cannot make an array with dtype StringDType() from an object"),
            ("jnp.asarray(np.array(['a']))", ""),
            ("jax.jit(lambda x: x)(w)", "is not a valid JAX type"),
            ("jax.jit(lambda x: x)(words(3))", ""),
            ("jax.grad(lambda x: x)(w)", "is not a valid JAX type"),
            ("jax.vmap(lambda x: x + jnp.arange(3))(w)", "StringDType() is not a valid dtype"),
            ("w + 1", "is not a valid dtype for JAX type promotion"),
            ("w + w", "add does not accept dtype StringDType128"),
            ("w == w", "eq does not accept dtype StringDType128"),
            ("jnp.result_type(w, 1)", "is not a valid dtype for JAX type promotion"),
            ("jnp.where(True, w, 1)", "is not a valid dtype for JAX type promotion"),
            ("w[0]", "is not a valid JAX type"),
            ("w.reshape(3, 1)", "is not a valid JAX type"),
            ("list(w)", "is not a valid JAX type"),
            ("w.astype(jnp.float32)", "is not a valid JAX type"),
            ("jnp.arange(3).astype(T)", ""),
            ("jnp.zeros(3, T)", "is not a valid JAX type"),
            ("jax.new_ref(w)", "is not a valid JAX type"),
            ("jnp.stack([w])", "is not a valid JAX type"),
            ("jax.jvp(lambda x: x, (w,), (w,))", "do not match"),
            ("w.__dlpack__()", ""),
            ("memoryview(w)", ""),
            ("w.on_device_size_in_bytes()", ""),
            ("jax.device_put(words(0), d[0])", ""),
        ],
        **GIVEN,
    )


def test_a_random_key_does_not_promote_and_says_so():
    ours, theirs = both(lambda jax: _error(lambda: jax.random.key(0) + 1))
    assert ours is theirs is TypeError


def _error(call):
    try:
        call()
    except Exception as error:
        return type(error)


# What jax refuses or gets wrong


def test_strings_are_copied_pickled_and_held_whole_by_several_devices():
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


def test_what_was_put_does_not_change_with_the_host_s_array():
    values = words(3)
    here = minijax.device_put(values, minijax.devices()[0])
    values[0] = "changed"
    assert np.asarray(here)[0] == "a"
