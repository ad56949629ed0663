"""Arrays that are donated, deleted, captured, copied, converted to NumPy and back, or dropped."""

import copy
import gc
import pickle
import warnings

import compare
import numpy as np
import pytest

import minijax
import minijax.numpy as jnp

DELETED = r"Array has been deleted with shape="


def table(cases):
    return pytest.mark.parametrize("program", [pytest.param(case, id=name) for name, case in cases.items()])


def same(program):
    """Both sides give equal values, or both raise the same for a deleted array."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compare.same(lambda jax: _value_or_error(jax, program))


def _value_or_error(jax, program):
    found = compare.outcome(lambda: compare.run_on(jax, program))
    if isinstance(found.error, RuntimeError):
        # Where the memory went is minijax's own sentence.
        return compare._bases(found.error), str(found.error).partition(" Its memory was freed")[0]
    if found.error:
        raise found.error
    return found.value


# Copies and conversions

KINDS = {
    "float32": lambda jnp: jnp.arange(3.0),
    "bfloat16": lambda jnp: jnp.ones((2, 3), jnp.bfloat16),
    "weak float": lambda jnp: jnp.asarray(2.0),
    "weak int": lambda jnp: jnp.asarray(3),
    "weak sum": lambda jnp: jnp.asarray(1.0) + 2,
    "bool": lambda jnp: jnp.asarray(True),
    "empty": lambda jnp: jnp.ones((0, 2)),
    "weak complex": lambda jnp: jnp.full((2,), 1j),
    "float8": lambda jnp: jnp.ones(2, jnp.float8_e4m3fn),
    "int4": lambda jnp: jnp.ones(3, jnp.int4),
    "transposed": lambda jnp: jnp.arange(6).reshape(2, 3).T,
}
WAYS = {
    "copy": lambda jax, x: copy.copy(x),
    "deepcopy": lambda jax, x: copy.deepcopy(x),
    "pickle": lambda jax, x: pickle.loads(pickle.dumps(x)),
    "old pickle": lambda jax, x: pickle.loads(pickle.dumps(x, 0)),
    "method copy": lambda jax, x: x.copy(),
    "asarray": lambda jax, x: jax.numpy.asarray(x),
    "array": lambda jax, x: jax.numpy.array(x),
    "device_put": lambda jax, x: jax.device_put(x),
    "a copy by device_put": lambda jax, x: jax.device_put(x, may_alias=False),
    "jit": lambda jax, x: jax.jit(lambda y: y)(x),
    "astype": lambda jax, x: x.astype(x.dtype),
    "clone": lambda jax, x: x.clone(),
    "numpy": lambda jax, x: np.asarray(x),
    "numpy copy": lambda jax, x: np.array(x),
    "device_get": lambda jax, x: jax.device_get(x),
    "bytes": lambda jax, x: x.tobytes(),
    "list": lambda jax, x: x.tolist(),
    "text": lambda jax, x: (str(x), repr(x)),
    "sizes": lambda jax, x: (x.nbytes, x.itemsize, x.size, x.ndim),
}


@pytest.mark.oracle
@pytest.mark.parametrize("way", WAYS)
def test_copies_and_conversions_keep_value_dtype_and_weak_type(way):
    same(lambda jax, jnp: [WAYS[way](jax, kind(jnp)) for kind in KINDS.values()])


def _nested(jax, jnp):
    x = jnp.arange(3.0)
    tree = {"a": x, "b": [x, jnp.asarray(1.0)]}
    found = copy.deepcopy(tree), pickle.loads(pickle.dumps(tree))
    x.delete()
    return found


TO_NUMPY = {
    "dlpack": lambda jnp: np.from_dlpack(jnp.arange(3.0)).tolist(),
    "dlpack bool": lambda jnp: np.from_dlpack(jnp.ones(3, bool)).tolist(),
    "dlpack bfloat16": lambda jnp: np.from_dlpack(jnp.ones(3, jnp.bfloat16)),
    "dlpack and back": lambda jnp: jnp.from_dlpack(jnp.ones(3, jnp.bfloat16)),
    "dlpack weak": lambda jnp: jnp.from_dlpack(jnp.asarray(1.0)),
    "dlpack of numpy": lambda jnp: jnp.from_dlpack(np.ones(3, np.float32)),
    "dlpack is read-only": lambda jnp: np.from_dlpack(jnp.arange(3.0)).flags.writeable,
    "asarray is read-only": lambda jnp: np.asarray(jnp.arange(3.0)).flags.writeable,
    "array is writable": lambda jnp: np.array(jnp.arange(3.0)).flags.writeable,
    "device_get is read-only": lambda jax, jnp: jax.device_get(jnp.arange(3.0)).flags.writeable,
    "__array__ by copy": lambda jnp: jnp.arange(3.0).__array__(copy=True).flags.writeable,
    "another dtype": lambda jnp: np.asarray(jnp.arange(3.0), dtype=np.float64),
    "without a copy": lambda jnp: np.asarray(jnp.arange(3.0), copy=False),
    "another dtype without a copy": lambda jnp: np.asarray(jnp.arange(3.0), dtype=np.float64, copy=False),
    "bytes": lambda jnp: bytes(jnp.arange(3)),
    "nested": _nested,
}


@pytest.mark.oracle
@table(TO_NUMPY)
def test_numpy_sees_the_values(program):
    results = [compare.outcome(lambda s=s: compare.run_on(s, program)) for s in (compare.ours(), compare.theirs())]
    assert type(results[0].error) is type(results[1].error)
    if not results[0].error:
        compare.same_value(results[0].value, results[1].value)


# Memory that is shared, and memory that is not

MADE_OF = {
    "asarray": lambda a: jnp.asarray(a),
    "array": lambda a: jnp.array(a),
    "device_put": lambda a: minijax.device_put(a),
    "jit": lambda a: minijax.jit(lambda x: x)(a),
    "captured": lambda a: minijax.jit(lambda: a + jnp.zeros(()))(),
    "added": lambda a: jnp.zeros(4096) + a,
    "scan": lambda a: minijax.lax.scan(lambda c, x: (c, x), 0.0, a)[1],
    "a tree": lambda a: minijax.device_put({"a": a})["a"],
}


@pytest.mark.parametrize("make", MADE_OF.values(), ids=MADE_OF)
def test_later_writes_to_numpy_memory_are_never_seen(make):
    memory = np.zeros(4096 + 16, np.float32)
    start = (-memory.ctypes.data % 64) // 4
    a = memory[start : start + 4096]
    x = make(a)
    a[:] = 7
    assert not np.asarray(x).any()


def test_a_captured_numpy_array_is_a_snapshot():
    a = np.ones(300, np.float32)
    f = minijax.jit(lambda x: x + a)
    first = f(1.0)
    a[0] = 9
    assert f(1.0)[0] == first[0] == 2


def test_views_survive_donation_and_deletion():
    x = jnp.arange(400.0)
    view = np.asarray(x)
    minijax.block_until_ready(minijax.jit(lambda a: a + 1, donate_argnums=0)(x))
    assert view.tolist() == list(range(400))
    y = jnp.arange(4.0)
    view = np.from_dlpack(y)
    y.delete()
    assert view.tolist() == [0, 1, 2, 3]


# Donation

DONATE = dict(donate_argnums=0)


def _then_deleted(call):
    """The result of a call with a new array, and whether it deleted the array."""

    def program(jax, jnp):
        x = jnp.arange(4.0)
        return call(jax, x), x.is_deleted()

    return program


def _other(make):
    """Whether an array that shares the buffer of a donated one is deleted too, and its values if not."""

    def program(jax, jnp):
        x = jnp.arange(4.0)
        y = make(jax, x)
        z = jax.jit(lambda a: a + 1, **DONATE)(x)
        return z, x.is_deleted(), y.is_deleted(), None if y.is_deleted() else y.tolist()

    return program


def _again(jax, jnp):
    x = jnp.ones(300)
    f = jax.jit(lambda a: a + x, **DONATE)
    return f(x), f(jnp.ones(300)), x.is_deleted()


def _captured_then(end):
    def program(jax, jnp):
        x = jnp.ones(300)
        f = jax.jit(lambda a: a + x)
        first = f(1.0)
        end(jax, x)
        return first, f(1.0), x.is_deleted()

    return program


def _tree(jax, jnp):
    tree = {"a": jnp.ones(3), "b": (jnp.zeros(2),)}
    found = jax.jit(lambda t: jax.tree.map(lambda x: x + 1, t), **DONATE)(tree)
    return found, [x.is_deleted() for x in jax.tree.leaves(tree)]


DONATED = {
    "by number": _then_deleted(lambda jax, x: jax.jit(lambda a, b: (a + 1, b), **DONATE)(x, 2.0)),
    "by name": _then_deleted(lambda jax, x: jax.jit(lambda a: a + 1, donate_argnames="a")(x)),
    "unusable": _then_deleted(lambda jax, x: jax.jit(lambda a: a[0], **DONATE)(x)),
    "unused": _then_deleted(lambda jax, x: jax.jit(lambda a, b: b + 1, **DONATE)(x, x + 1)),
    "forwarded": _then_deleted(lambda jax, x: jax.jit(lambda a: a, **DONATE)(x)),
    "numpy": _then_deleted(lambda jax, x: jax.jit(lambda a: a + 1, **DONATE)(np.arange(3.0))),
    "a scalar": _then_deleted(lambda jax, x: jax.jit(lambda a: a + 1, **DONATE)(1.0)),
    "inside jit": _then_deleted(lambda jax, x: jax.jit(lambda y: jax.jit(lambda a: a + 1, **DONATE)(y))(x)),
    "inside grad": _then_deleted(lambda jax, x: jax.grad(lambda y: jax.jit(lambda a: (a * a).sum(), **DONATE)(y))(x)),
    "inside vmap": _then_deleted(lambda jax, x: jax.vmap(lambda y: jax.jit(lambda a: a * 2, **DONATE)(y))(x)),
    "device_put": _then_deleted(lambda jax, x: jax.device_put(x, donate=True)),
    "a tree": _tree,
    "captured too": _then_deleted(lambda jax, x: jax.jit(lambda a: a + jax.numpy.tile(x, 1), **DONATE)(x)),
    "captured, twice": _again,
    "captured elsewhere": _captured_then(lambda jax, x: jax.jit(lambda a: a + 1, **DONATE)(x)),
    "captured and deleted": _captured_then(lambda jax, x: x.delete()),
    "with a copy": _other(lambda jax, x: jax.numpy.array(x)),
    "with a deep copy": _other(lambda jax, x: copy.deepcopy(x)),
    "with the same again": _other(lambda jax, x: jax.numpy.asarray(x)),
    "with a forwarded result": _other(lambda jax, x: jax.jit(lambda a: a)(x)),
    "with device_put's": _other(lambda jax, x: jax.device_put(x)),
    "with device_put's copy": _other(lambda jax, x: jax.device_put(x, may_alias=False)),
    "with a reshaped one": _other(lambda jax, x: x.reshape(4)),
    "with a ravelled one": _other(lambda jax, x: x.ravel()),
    "with scan's carry": _other(lambda jax, x: jax.lax.scan(lambda c, _: (c, None), x, None, length=2)[0]),
}


@pytest.mark.oracle
@table(DONATED)
def test_donated_arrays_are_deleted_as_in_jax(program):
    same(program)


def _twice(jax, jnp):
    x = jnp.ones(3)
    return jax.jit(lambda a, b: (a + 1, b + 1), donate_argnums=(0, 1))(x, x)


def _beside_itself(jax, jnp):
    x = jnp.ones(3)
    return jax.jit(lambda a, b: (a + 1, b + 1), **DONATE)(x, x)


@pytest.mark.oracle
@pytest.mark.parametrize("program", [_twice, _beside_itself])
def test_an_array_cannot_be_donated_and_used_in_one_call(program):
    compare.same_error(
        lambda: compare.run_on(compare.ours(), program), lambda: compare.run_on(compare.theirs(), program), ["donate"]
    )


# Deletion


def _gone(jnp, values=None):
    x = jnp.arange(3.0) if values is None else jnp.asarray(values)
    x.delete()
    return x


AFTER = {
    "arithmetic": lambda jnp: _gone(jnp) + 1,
    "numpy": lambda jnp: np.asarray(_gone(jnp)),
    "numpy, read before": lambda jnp: (lambda x: (np.asarray(x), x.delete(), np.asarray(x)))(jnp.ones(3)),
    "repr": lambda jnp: repr(_gone(jnp)),
    "str": lambda jnp: str(_gone(jnp)),
    "format": lambda jnp: f"{_gone(jnp, 1.0)}",
    "item": lambda jnp: _gone(jnp, 1.0).item(),
    "float": lambda jnp: float(_gone(jnp, 1.0)),
    "index": lambda jnp: _gone(jnp)[0],
    "iter": lambda jnp: list(_gone(jnp)),
    "==": lambda jnp: _gone(jnp) == 1,
    "shards": lambda jnp: _gone(jnp).addressable_shards,
    "devices": lambda jnp: _gone(jnp).devices(),
    "jit": lambda jax, jnp: jax.jit(lambda x: x * 2)(_gone(jnp)),
    "captured": lambda jax, jnp: (lambda x: jax.jit(lambda y: x * y)(1.0))(_gone(jnp)),
    "grad": lambda jax, jnp: jax.grad(lambda x: (x * x).sum())(_gone(jnp)),
    "vmap": lambda jax, jnp: jax.vmap(lambda x: x + 1)(_gone(jnp)),
    "device_get": lambda jax, jnp: jax.device_get(_gone(jnp)),
    "deepcopy": lambda jnp: copy.deepcopy(_gone(jnp)),
    "pickle": lambda jnp: pickle.dumps(_gone(jnp)),
    "donate again": lambda jax, jnp: jax.jit(lambda a: a + 1, **DONATE)(_gone(jnp)),
    "its type": lambda jnp: (lambda x: (x.shape, str(x.dtype), x.weak_type, x.ndim, x.nbytes, len(x)))(_gone(jnp)),
    "its sharding": lambda jax, jnp: (repr(_gone(jnp).sharding), _gone(jnp).committed, str(jax.typeof(_gone(jnp)))),
    "delete": lambda jnp: _gone(jnp).delete(),
    "zeros_like": lambda jnp: jnp.zeros_like(_gone(jnp)),
    "asarray": lambda jnp: jnp.asarray(_gone(jnp)).is_deleted(),
    "make_jaxpr": lambda jax, jnp: str(jax.make_jaxpr(lambda x: x + 1)(_gone(jnp))),
    "pulled back": lambda jax, jnp: (lambda x: (lambda f: (x.delete(), f(jnp.ones(3))))(jax.vjp(jnp.sin, x)[1]))(
        jnp.ones(3)
    ),
    "residual": lambda jax, jnp: (lambda x: (lambda f: (x.delete(), f(jnp.ones(3))))(jax.vjp(lambda a: a * a, x)[1]))(
        jnp.ones(3)
    ),
}


@pytest.mark.oracle
@table(AFTER)
def test_deleted_arrays_raise_where_those_of_jax_do(program):
    same(program)


def test_a_deleted_array_is_not_ready():
    # The real one may crash here.
    with pytest.raises(RuntimeError, match=DELETED):
        _gone(jnp).is_ready()


# Memory is given back


def _live():
    gc.collect()
    return len(minijax.live_arrays())


def test_dropped_arrays_free_their_memory():
    x = jnp.ones(3)
    step = minijax.jit(lambda x: x * 2 + 1)
    loop = minijax.jit(minijax.grad(lambda x: minijax.lax.scan(lambda c, y: (c * y, c), x, jnp.arange(3.0))[0].sum()))
    works = (
        lambda: step(x),
        lambda: loop(x),
        lambda: minijax.vmap(jnp.sin)(x),
        lambda: x.at[0].set(2)[1:],
        lambda: minijax.random.normal(minijax.random.key(0), (3,)),
        lambda: copy.deepcopy(x),
        lambda: minijax.vjp(jnp.sin, x)[1](x),
        lambda: np.asarray(x + 1),
        lambda: pickle.dumps(x + 1),
    )
    for work in works:
        work()
    before = _live()
    for _ in range(3):
        kept = [work() for work in works]
        assert kept
    del kept
    assert _live() == before


def test_jitted_functions_free_what_they_captured():
    def made():
        big = jnp.ones(1000)
        f = minijax.jit(lambda x: x + big)
        return f, f(1.0)

    made()
    before = _live()
    for _ in range(3):
        f, out = made()
    assert _live() > before
    del f, out
    assert _live() == before
