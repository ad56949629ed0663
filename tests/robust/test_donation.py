"""Arrays that are donated or deleted, in every combination: jax's answers, and jax's errors for the rest."""

import copy
import io
import pickle
import re
import warnings

import compare
import numpy as np
import pytest

import minijax
import minijax.numpy as jnp

pytestmark = pytest.mark.oracle
DONATE = dict(donate_argnums=0)


def _donated(jax, values):
    x = jax.numpy.asarray(values, np.float32)
    jax.jit(lambda a: a + 1, **DONATE)(x)
    assert x.is_deleted()
    return x


def _text(jax, f, *args):
    return len(jax.jit(f).lower(*args).as_text()) > 0


# Uses of an array after a call

USES = {
    "+": lambda jax, x: x + 1,
    "+ from numpy": lambda jax, x: np.ones(4, np.float32) + x,
    "numpy's function": lambda jax, x: np.sin(x),
    "jit": lambda jax, x: jax.jit(lambda a: a * 2)(x),
    "jit, unused": lambda jax, x: jax.jit(lambda a: 1)(x),
    "jit, forwarded": lambda jax, x: jax.jit(lambda a: a)(x),
    "jit, beside another": lambda jax, x: jax.jit(lambda a, b: (a, b + 1))(x, 1.0),
    "jit, static": lambda jax, x: jax.jit(lambda a, b: a, static_argnums=1)(1.0, x),
    "jit, in a tree": lambda jax, x: jax.jit(lambda t: t["a"][0] + 1)({"a": [x]}),
    "donated again": lambda jax, x: jax.jit(lambda a: a + 1, **DONATE)(x),
    "donated again, unused": lambda jax, x: jax.jit(lambda a: 1, **DONATE)(x),
    "donated again, unusable": lambda jax, x: jax.jit(lambda a: a.sum(), **DONATE)(x),
    "captured": lambda jax, x: jax.jit(lambda a: a + x)(1.0),
    "captured by vmap": lambda jax, x: jax.vmap(lambda a: a + x)(np.ones(2)),
    "captured by make_jaxpr": lambda jax, x: str(jax.make_jaxpr(lambda a: a + x)(1.0)),
    "captured by lower": lambda jax, x: _text(jax, lambda a: a + x, 1.0),
    "compiled": lambda jax, x: jax.jit(lambda a: a + 1).lower(np.ones(4, np.float32)).compile()(x),
    "[0]": lambda jax, x: x[0],
    "[1:]": lambda jax, x: x[1:],
    "[array]": lambda jax, x: x[jax.numpy.array([0, 1])],
    "[mask]": lambda jax, x: x[np.array([True, False, True, True])],
    "as an index": lambda jax, x: jax.numpy.ones(4)[x.astype(int)],
    ".at.set": lambda jax, x: x.at[0].set(1),
    ".at.get": lambda jax, x: x.at[0].get(),
    "print": lambda jax, x: print(x, file=io.StringIO()),
    "repr": lambda jax, x: repr(x),
    "format": lambda jax, x: f"{x}",
    "asarray": lambda jax, x: np.asarray(x),
    "array": lambda jax, x: np.array(x),
    "from_dlpack": lambda jax, x: np.from_dlpack(x),
    "device_put": lambda jax, x: jax.device_put(x).is_deleted(),
    "device_put to its device": lambda jax, x: jax.device_put(x, jax.devices()[0]),
    "device_put elsewhere": lambda jax, x: jax.device_put(x, jax.devices()[-1]),
    "device_put, a copy": lambda jax, x: jax.device_put(x, may_alias=False),
    "device_put, donated": lambda jax, x: jax.device_put(x, jax.devices()[-1], donate=True),
    "device_get": lambda jax, x: jax.device_get(x),
    "copy": lambda jax, x: x.copy(),
    "copy.copy": lambda jax, x: copy.copy(x),
    "deepcopy": lambda jax, x: copy.deepcopy(x),
    "pickle": lambda jax, x: pickle.dumps(x),
    "jnp.array": lambda jax, x: jax.numpy.array(x),
    "jnp.asarray": lambda jax, x: jax.numpy.asarray(x).is_deleted(),
    "jnp.copy": lambda jax, x: jax.numpy.copy(x),
    "list": lambda jax, x: list(x),
    "next": lambda jax, x: next(iter(x)),
    "reversed": lambda jax, x: list(reversed(x)),
    "unpacking": lambda jax, x: (lambda a, b, c, d: 0)(*x),
    "in": lambda jax, x: 1.0 in x,
    "==": lambda jax, x: x == x,
    "!=": lambda jax, x: x != 1,
    "<": lambda jax, x: x < 2,
    "bool": lambda jax, x: bool(x),
    "float": lambda jax, x: float(x),
    "item": lambda jax, x: x.item(0),
    "tolist": lambda jax, x: x.tolist(),
    "any": lambda jax, x: x.any(),
    "array_equal": lambda jax, x: jax.numpy.array_equal(x, x),
    "its type": lambda jax, x: (x.shape, str(x.dtype), x.ndim, x.size, len(x), x.weak_type, str(jax.typeof(x))),
    "jnp's view of its type": lambda jax, x: (jax.numpy.shape(x), str(jax.numpy.result_type(x, 1))),
    "eval_shape": lambda jax, x: str(jax.eval_shape(lambda a: a, x)),
    "make_jaxpr": lambda jax, x: str(jax.make_jaxpr(lambda a: a + 1)(x)),
    "lower": lambda jax, x: _text(jax, lambda a: a + 1, x),
    "zeros_like": lambda jax, x: jax.numpy.zeros_like(x),
    "full_like": lambda jax, x: jax.numpy.full_like(x, 2),
    "block": lambda jax, x: x.block_until_ready(),
    "jax.block": lambda jax, x: jax.block_until_ready(x),
    "grad": lambda jax, x: jax.grad(lambda a: a.sum())(x),
    "jvp": lambda jax, x: jax.jvp(jax.numpy.sin, (x,), (x,)),
    "linearize": lambda jax, x: jax.linearize(jax.numpy.sin, x)[0],
    "vmap": lambda jax, x: jax.vmap(lambda a: a + 1)(x),
    "checkpoint": lambda jax, x: jax.checkpoint(jax.numpy.sin)(x),
    "scan": lambda jax, x: jax.lax.scan(lambda c, a: (c + a, c), 0.0, x),
    "cond's predicate": lambda jax, x: jax.lax.cond(x[0] > 0, lambda: 1, lambda: 2),
    "while": lambda jax, x: jax.lax.while_loop(lambda a: a.sum() < 9, lambda a: a * 2, x),
    "stack": lambda jax, x: jax.numpy.stack([x, jax.numpy.ones(4)]),
    "reshape": lambda jax, x: x.reshape(2, 2),
    "astype": lambda jax, x: x.astype(int),
    "where": lambda jax, x: jax.numpy.where(x > 1, x, 0),
    "@": lambda jax, x: x @ x,
    "sum": lambda jax, x: x.sum(),
    "sort": lambda jax, x: jax.numpy.sort(x),
    "permutation": lambda jax, x: jax.random.permutation(jax.random.key(0), x),
    "shards": lambda jax, x: x.addressable_shards,
    "one shard": lambda jax, x: x.addressable_data(0),
    "devices": lambda jax, x: x.devices(),
    "its sharding": lambda jax, x: str(x.sharding),
    "a tree's shapes": lambda jax, x: jax.tree.map(lambda a: a.shape, [x]),
    "live_arrays": lambda jax, x: any(a is x for a in jax.live_arrays()),
    "delete": lambda jax, x: x.delete(),
}


# jax has several errors for this, some of them ValueErrors of its runtime, depending on what ran before.
GONE = re.compile("Array has been deleted|deleted or donated")


def _same(program):
    """Both sides give equal values or raise the same error with the same message."""

    def run(jax):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _ended(lambda: program(jax))

    compare.same(run)


def _ended(call):
    """The result of a call, or the classes and first sentence of its error; all errors of lost arrays are one."""
    result = compare.outcome(call)
    if result.error is None:
        return result.value
    words = str(result.error)
    return "gone" if GONE.search(words) else (*compare._bases(result.error), words.partition(". ")[0])


@pytest.mark.parametrize("use", USES)
def test_every_use_of_a_donated_array_raises_that_it_was_donated(use):
    _same(lambda jax: USES[use](jax, _donated(jax, [0, 1, 2, 3])))


# Who is deleted by a call


def _spread(jax, *spec):
    sharding = jax.sharding.NamedSharding(jax.sharding.Mesh(np.array(jax.devices()), ("i",)), jax.P(*spec))
    x = jax.numpy.arange(16)
    out = jax.jit(lambda a: a * 2, in_shardings=sharding, **DONATE)(x)
    return str(out.sharding.is_fully_replicated), np.asarray(out), x.is_deleted()


def _tried(f):
    try:
        return f()
    except Exception as error:
        gone = GONE.search(str(error))
        return "gone" if gone else [kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins"]


def _call(f, donated, *chosen, n=4):
    """The results of a jitted call, and which of two arrays are deleted; `chosen` are their places in the call."""

    def program(jax):
        pair = jax.numpy.ones(n), jax.numpy.zeros(n)
        g = jax.jit(f if callable(f) else None, donate_argnums=donated)
        return _tried(lambda: g(*[pair[i] for i in chosen])), [x.is_deleted() for x in pair]

    return program


def _inside(outer):
    """An outer transformation around a jitted function that donates."""

    def program(jax):
        x = jax.numpy.arange(4.0)
        inner = jax.jit(lambda a: jax.numpy.sin(a) * 2, **DONATE)
        return outer(jax, inner, x), x.is_deleted()

    return program


def _captured(make, end, call):
    """Calls a function that captured an array, ends the array, and calls again."""

    def program(jax):
        x = jax.numpy.ones(500)
        f = make(jax, x)
        first = call(jax, f)
        end(jax, x)
        return first, _tried(lambda: call(jax, f)), x.is_deleted()

    return program


ENDS = {"deleted": lambda jax, x: x.delete(), "donated": lambda jax, x: jax.jit(lambda a: a + 1, **DONATE)(x)}
CAPTURED = {
    "jit": (lambda jax, x: jax.jit(lambda a: a + x), lambda jax, f: f(1.0)),
    "jit, retraced": (lambda jax, x: (jax.jit(lambda a: a + x), iter((1.0, 1))), lambda jax, f: f[0](next(f[1]))),
    "inner jit": (lambda jax, x: jax.jit(lambda a: a + x), lambda jax, f: jax.jit(lambda b: f(b))(1.0)),
    "vmap of jit": (lambda jax, x: jax.jit(lambda a: (a + x).sum()), lambda jax, f: jax.vmap(f)(np.ones(2))),
    "grad": (lambda jax, x: lambda a: (a * x).sum(), lambda jax, f: jax.grad(f)(1.0)),
    "jit of grad": (lambda jax, x: jax.jit(jax.grad(lambda a: (a * x).sum())), lambda jax, f: f(1.0)),
    "scan": (
        lambda jax, x: lambda c, a: (c + x.sum() * a, c),
        lambda jax, f: jax.lax.scan(f, 0.0, np.ones(3, np.float32)),
    ),
    "scan in jit": (
        lambda jax, x: jax.jit(lambda y: jax.lax.scan(lambda c, a: (c + x.sum() * a, c), 0.0, y)),
        lambda jax, f: f(np.ones(3, np.float32)),
    ),
    "compiled": (lambda jax, x: jax.jit(lambda a: a + x).lower(1.0).compile(), lambda jax, f: f(1.0)),
    "vjp": (lambda jax, x: jax.vjp(lambda a: a * a, x)[1], lambda jax, f: f(jax.numpy.ones(500))),
    "linearize": (lambda jax, x: jax.linearize(lambda a: a * a, x)[1], lambda jax, f: f(jax.numpy.ones(500))),
}

CALLS = {
    "twice": _call(lambda a, b: (a + 1, b + 2), (0, 1), 0, 0),
    "and not": _call(lambda a, b: (a + 1, b + 2), 0, 0, 0),
    "not and": _call(lambda a, b: (a + 1, b + 2), 1, 0, 0),
    "and unused": _call(lambda a, b: a + 1, 0, 0, 0),
    "unused and used": _call(lambda a, b: b + 1, 0, 0, 0),
    "twice, one unused": _call(lambda a, b: b + 1, (0, 1), 0, 0),
    "twice, unusable": _call(lambda a, b: (a + b).sum(), (0, 1), 0, 0),
    "unusable and not": _call(lambda a, b: (a + b).sum(), 0, 0, 0),
    "two for one result": _call(lambda a, b: a + b, (0, 1), 0, 1),
    "two for two results": _call(lambda a, b: (a + b, a - b), (0, 1), 0, 1),
    "the second alone": _call(lambda a, b: a + b, 1, 0, 1),
    "forwarded": _call(lambda a: (a, a + 1), 0, 0),
    "forwarded twice": _call(lambda a: (a, a), 0, 0),
    "for another shape": _call(lambda a: a.reshape(2, 2), 0, 0),
    "for another dtype": _call(lambda a: a.astype(int), 0, 0),
    "for a narrower dtype": _call(lambda a: a.astype("int16"), 0, 0),
    "for a part": _call(lambda a: a[:2], 0, 0),
    "for nothing": _call(lambda a: (), 0, 0),
    "empty": _call(lambda a: a + 1, 0, 0, n=0),
    "with an error": _call(lambda a: a @ a[:2], 0, 0),
    "in a tree, twice": lambda jax: (
        lambda x: (_tried(lambda: jax.jit(lambda t: [a + 1 for a in t], **DONATE)([x, x])), x.is_deleted())
    )(jax.numpy.ones(3)),
    "captured too": lambda jax: (lambda x: (jax.jit(lambda a: a + x, **DONATE)(x), x.is_deleted()))(jax.numpy.ones(3)),
    "captured too, large": lambda jax: (lambda x: (jax.jit(lambda a: a + x, **DONATE)(x), x.is_deleted()))(
        jax.numpy.ones(500)
    ),
    "numpy": lambda jax: (lambda a: (jax.jit(lambda b: b + 1, **DONATE)(a), a))(np.arange(4, dtype=np.float32)),
    "scalars": lambda jax: jax.jit(lambda a, b, c: (a + 1, b + 1, c + 1), donate_argnums=(0, 1, 2))(
        1, 2.0, np.float32(3)
    ),
    "a scalar again and again": lambda jax: [jax.jit(lambda a: a + 1, **DONATE)(1.5) + 1.5 for _ in range(3)],
    "in a loop": lambda jax: (lambda f: f(f(f(f(jax.numpy.arange(4.0))))))(jax.jit(lambda a: a + 1, **DONATE)),
    "by keyword": lambda jax: (lambda x: (jax.jit(lambda *, a: a + 1, donate_argnames="a")(a=x), x.is_deleted()))(
        jax.numpy.ones(3)
    ),
    "by number, as a keyword": lambda jax: (lambda x: (jax.jit(lambda a: a + 1, **DONATE)(a=x), x.is_deleted()))(
        jax.numpy.ones(3)
    ),
    "by a negative number": lambda jax: (
        lambda x: (jax.jit(lambda a, b: a + b, donate_argnums=-1)(1.0, x), x.is_deleted())
    )(jax.numpy.ones(3)),
    "compiled": lambda jax: (lambda x: (jax.jit(lambda a: a + 1, **DONATE).lower(x).compile()(x), x.is_deleted()))(
        jax.numpy.ones(3)
    ),
    "compiled, twice": lambda jax: (
        lambda x: _tried(lambda: jax.jit(lambda a, b: (a + 1, b), donate_argnums=(0, 1)).lower(x, x).compile()(x, x))
    )(jax.numpy.ones(3)),
    "elsewhere": lambda jax: (lambda x: (jax.jit(lambda a: a + 1, **DONATE)(x), x.is_deleted()))(
        jax.device_put(jax.numpy.ones(3), jax.devices()[-1])
    ),
    "int4": lambda jax: (lambda x: (jax.jit(lambda a: a + a, **DONATE)(x), x.is_deleted()))(
        jax.numpy.ones(4, jax.numpy.int4)
    ),
    "without jit": lambda jax: (lambda x: (jax.disable_jit()(jax.jit(lambda a: a + 1, **DONATE))(x), x.is_deleted()))(
        jax.numpy.ones(3)
    ),
    "a key": lambda jax: (
        lambda k: (
            jax.random.key_data(jax.jit(lambda a: jax.random.split(a)[0], **DONATE)(k)),
            _tried(lambda: jax.random.key_data(k) + 0),
        )
    )(jax.random.key(0)),
    "device_put to where it is": lambda jax: (
        lambda x: (jax.device_put(x, jax.devices()[0], donate=True), x.is_deleted())
    )(jax.numpy.ones(3)),
    "spread over devices, whole": lambda jax: _spread(jax),
    "spread over devices, cut": lambda jax: _spread(jax, "i"),
    "deleted twice": lambda jax: (lambda x: (x.delete(), x.delete(), x.is_deleted()))(jax.numpy.ones(3)),
    "deleted after a call": lambda jax: (lambda x: (jax.jit(lambda a: a + 1)(x), x.delete())[0])(jax.numpy.ones(3)),
    "a forwarded result deleted": lambda jax: (
        lambda x: (lambda y: (y.delete(), x.is_deleted(), y.is_deleted()))(jax.jit(lambda a: a)(x))
    )(jax.numpy.ones(3)),
    "a forwarded result donated": lambda jax: (
        lambda x: (lambda y: (jax.jit(lambda a: a + 1, **DONATE)(y), x.is_deleted(), y.is_deleted()))(
            jax.jit(lambda a: a)(x)
        )
    )(jax.numpy.ones(3)),
    "inside jit": _inside(lambda jax, g, x: jax.jit(lambda y: (g(y), y * 2))(x)),
    "inside jit, twice": _inside(lambda jax, g, x: jax.jit(lambda y: (g(y), g(y)))(x)),
    "inside jit, captured": _inside(lambda jax, g, x: jax.jit(lambda y: g(x) + y)(1.0)),
    "under grad": _inside(lambda jax, g, x: jax.grad(lambda y: g(y).sum())(x)),
    "under vjp": _inside(lambda jax, g, x: jax.vjp(g, x)[1](jax.numpy.ones(4))),
    "under jvp": _inside(lambda jax, g, x: jax.jvp(g, (x,), (jax.numpy.ones(4),))),
    "under linearize": _inside(lambda jax, g, x: jax.linearize(g, x)[0]),
    "under vmap": _inside(lambda jax, g, x: jax.vmap(g)(x)),
    "under scan": _inside(lambda jax, g, x: jax.lax.scan(lambda c, _: (g(c), None), x, None, length=3)[0]),
    **{
        f"captured by {name}, {end}": _captured(make, ENDS[end], call)
        for name, (make, call) in CAPTURED.items()
        for end in ENDS
    },
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_delete_the_arrays_that_those_of_jax_delete(name):
    _same(CALLS[name])


# How donation is passed to XLA

BODIES = {
    "sum": lambda a: a.sum(),
    "int": lambda a: a.astype(int),
    "int16": lambda a: a.astype("int16"),
    "compared": lambda a: a == 0,
    "reshaped": lambda a: (a.reshape(-1, 1), a.sum()),
    "two": lambda a: (a.astype("bfloat16"), a + 1),
    "itself": lambda a: a,
    "none": lambda a: (),
    "tiled": lambda a: a[None] + a[:, None],
}


def _parameters(jax, f, dtype):
    x, y = jax.numpy.ones(4, dtype), jax.numpy.zeros(4, dtype)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        g = jax.jit(lambda a, b: f(a + b), donate_argnums=(0, 1))
        text = g.lower(x, y).as_text()
        g(x, y)
    head = re.search(r"@main\(([^)]*)\)", text).group(1)
    return head, x.is_deleted(), y.is_deleted(), [str(w.message).split("\n")[0] for w in caught]


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_arguments_are_marked_as_jax_marks_them(body, dtype):
    compare.same(lambda jax: _parameters(jax, BODIES[body], dtype))


# Where jax crashes or forgets


def test_a_view_survives_donation_of_its_array():
    def program(jax, jnp):
        seen = []
        for dtype in (np.float32, jnp.bfloat16, np.int8):
            x = jnp.ones(400, dtype)
            view = np.asarray(x)
            y = jax.jit(lambda a: a + a, **DONATE)(x)
            seen.append((x.is_deleted(), float(y[0]), bool((view == 1).all())))
        return seen

    assert compare.same(program) == [(False, 2.0, True)] * 3  # XLA copies memory that is in use


def test_donation_inside_checkpoint_keeps_the_residuals():
    # jax deletes the argument and then reads it.
    x = jnp.arange(4.0)
    g = minijax.jit(jnp.sin, **DONATE)
    slope = minijax.grad(lambda y: minijax.checkpoint(g)(y).sum())(x)
    assert np.allclose(slope, np.cos(np.arange(4)), atol=1e-6) and not x.is_deleted()


def test_device_put_that_donates_gives_a_good_array_on_each_device():
    for device in (None, *minijax.devices()):
        x = jnp.arange(4.0)
        y = minijax.device_put(x, device, donate=True)
        assert y.tolist() == [0, 1, 2, 3]
        if x.is_deleted():
            with pytest.raises(RuntimeError, match="Array has been deleted"):
                x + 1


def test_a_deleted_argument_of_a_compiled_program_that_donates_is_named():
    x = jnp.arange(4.0)
    compiled = minijax.jit(lambda a: a + 1, **DONATE).lower(x).compile()
    assert compiled(x).tolist() == [1, 2, 3, 4]
    with pytest.raises(RuntimeError, match=r"Array has been deleted with shape=float32\[4\]"):
        compiled(x)
    assert compiled(jnp.ones(4)).tolist() == [2] * 4
