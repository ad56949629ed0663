"""Objects that misbehave: recursion, re-entrancy, hashes and trees that raise, odd equality, changing constants."""

import functools
import gc
import sys
import types
import warnings

import compare
import numpy as np
import pytest
from given import given
from processes import left_behind

import minijax
import minijax.numpy as jnp
from minijax import lax

X = np.arange(1, 4, dtype=np.float32)


class Boom(Exception):
    """The exception that the objects raise."""


def _same(program):
    """Equal results, or errors of equal classes, and neither side leaves anything behind."""
    left = []

    def run(jax):
        limit = sys.getrecursionlimit()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return program(jax)
            finally:
                left.extend(left_behind(limit))

    compare.same(run, raises=compare.EITHER)
    assert left == []


# Recursion


def _factorial(jax):
    @functools.partial(jax.jit, static_argnums=1)
    def f(x, n):
        return x if n == 0 else f(x * n, n - 1)

    return f(1.0, 6), str(jax.make_jaxpr(f, static_argnums=1)(1.0, 0)).count("f")


def _mutual(jax):
    @functools.partial(jax.jit, static_argnums=1)
    def even(x, n):
        return x if n == 0 else odd(x + 1, n - 1)

    @functools.partial(jax.jit, static_argnums=1)
    def odd(x, n):
        return -x if n == 0 else even(x * 2, n - 1)

    return even(1.0, 5), even(1.0, 4), odd(1.0, 5), jax.grad(even)(1.0, 5)


def _by_shape(jax):
    @jax.jit
    def total(x):
        return x[0] if x.shape[0] == 1 else x[0] + total(x[1:])

    return total(np.arange(7.0)), jax.grad(total)(np.arange(4.0))


def _endless(jax):
    @jax.jit
    def f(x):
        return f(x)

    before = sys.getrecursionlimit()
    # Ours raises the limit while it traces, and would go far.
    with pytest.raises(RecursionError):
        f(1.0)
    return sys.getrecursionlimit() == before


def _recursive_custom_rule(jax):
    @jax.custom_jvp
    def f(x):
        return jax.numpy.sin(x)

    f.defjvp(lambda primals, tangents: (f(primals[0]), jax.jvp(jax.numpy.sin, primals, tangents)[1]))
    return jax.jit(jax.grad(jax.grad(f)))(1.0), jax.hessian(f)(1.0)


RECURSION = {
    "factorial": _factorial,
    "mutual": _mutual,
    "by shape": _by_shape,
    "endless": _endless,
    "a rule that calls its function": _recursive_custom_rule,
}


@pytest.mark.oracle
@pytest.mark.parametrize("program", RECURSION.values(), ids=RECURSION)
def test_functions_may_call_themselves(program):
    _same(program)


# Re-entrancy


class Offers:
    """An object that computes its array on request."""

    def __init__(self, make):
        self.make = make

    def __jax_array__(self):
        return self.make()


REENTRANT = {
    "an array that is differentiated": lambda jax: (
        jax.numpy.ones(3) + Offers(lambda: jax.grad(lambda x: (x**2).sum())(X))
    ),
    "an array in a trace": lambda jax: jax.jit(lambda x: x + jax.numpy.sum(jax.numpy.asarray(Offers(lambda: X))))(X),
    "jit in a static argument's hash": lambda jax: jax.jit(lambda x, s: x + s.n, static_argnums=1)(
        X, _Hashing(lambda: int(jax.jit(lambda y: y + 1)(2)))
    ),
    "clear_caches in a trace": lambda jax: jax.jit(lambda x: jax.numpy.sin(x) + (jax.clear_caches() or 1))(X),
    "clear_caches in a body": lambda jax: jax.lax.scan(lambda c, a: (c + a, (jax.clear_caches(), c)[1]), 0.0, X),
    "clear_caches in a nested jit": lambda jax: jax.jit(
        lambda x: jax.jit(lambda y: jax.clear_caches() or jax.numpy.cos(y))(x) + jax.jit(jax.numpy.cos)(x)
    )(X),
    "gc in a trace": lambda jax: jax.jit(lambda x: jax.numpy.sin(x) + (gc.collect() * 0))(X),
    "lower in a trace": lambda jax: jax.jit(lambda x: x + len(jax.jit(lambda y: y + 1).lower(1.0).as_text()) * 0)(X),
    "item of a constant in jit": lambda jax: jax.jit(lambda x: x + np.asarray(CONSTANT[jax.__name__]).sum())(X),
}
CONSTANT = {"minijax": np.ones(3, np.float32), "jax": np.ones(3, np.float32)}


def _boom():
    raise Boom


class _Hashing:
    def __init__(self, make):
        self.make, self.n = make, 5

    def __hash__(self):
        return self.make()

    def __eq__(self, other):
        return isinstance(other, _Hashing)


@pytest.mark.oracle
@pytest.mark.parametrize("program", REENTRANT.values(), ids=REENTRANT)
def test_tracing_may_start_anywhere(program):
    _same(program)


CONVERTED = [
    lambda x, a: x + a,
    lambda x, a: a * x,
    lambda x, a: x @ a,
    lambda x, a: x > a,
    lambda x, a: x.at[:].set(a),
    lambda jnp, a: jnp.asarray(a),
    lambda jnp, a: jnp.array([a, a]),
    lambda jnp, x, a: jnp.concatenate([x, a]),
    lambda jnp, a: jnp.reshape(a, (3, 1)),
    lambda jnp, a: jnp.full_like(a, 2),
    lambda lax, a: lax.convert_element_type(a, "int32"),
    lambda jnp, x, a: jnp.einsum("i,i", x, a),
    lambda jax, x, a: jax.jit(lambda: x + a)(),
    lambda jax, x, a: jax.vmap(lambda y: y + a)(x),
    lambda jax, a: jax.random.categorical(jax.random.key(0), a),
    lambda jnp, a: jnp.fft.fft(a),
    lambda jnp, a: jnp.isscalar(a),
    lambda jnp, a: jnp.shape(a),
    lambda jnp, a: jnp.sin(a),
    lambda jnp, x, a: jnp.add(x, a),
    lambda lax, x, a: lax.add(x, a),
    lambda jax, a: jax.jit(lambda y: y)(a),
    lambda jax, jnp, a: jax.grad(jnp.sum)(a),
    lambda jax, a: jax.vmap(lambda y: y)(a),
    lambda jax, jnp, x, a: jax.jvp(jnp.sin, (a,), (x,)),
    lambda jax, jnp, a: jax.vjp(jnp.sin, a),
    lambda jnp, x, a: jnp.where(x > 0, a, x),
    lambda jnp, a: jnp.where(a),
    lambda x, a: x[a],
    lambda jax, a: jax.jit(lambda: a)(),
    lambda lax, a: lax.scan(lambda c, y: (c, y), 0.0, a),
    lambda lax, a: lax.fori_loop(0, 1, lambda i, y: y, a),
    lambda jnp, a: jnp.cumsum(a),
    lambda jax, a: jax.device_put(a),
    lambda jax, a: jax.typeof(a),
    lambda lax, x, a: lax.select(x > 0, a, x),
    lambda lax, x, a: lax.concatenate([a, x], 0),
    lambda jnp, a: jnp.sort(a),
    lambda lax, a: lax.cond(True, lambda y: y, lambda y: y, a),
    lambda jax, jnp, a: jax.checkpoint(jnp.sin)(a),
    lambda jax, jnp, a: jax.tree.map(jnp.shape, a),
]


@pytest.mark.oracle
@pytest.mark.parametrize("call", CONVERTED)
def test_objects_with_jax_array_are_converted_where_jax_converts_them(call):
    def run(jax):
        x = jax.numpy.arange(3.0)
        return given(call, {"jax": jax, "jnp": jax.numpy, "lax": jax.lax, "x": x, "a": Offers(lambda: x * 2)})

    _same(run)


def test_errors_of_jax_array_methods_are_propagated():
    limit = sys.getrecursionlimit()
    for call in (jnp.asarray, lambda x: minijax.jit(lambda y: y + jnp.asarray(x))(X), lambda x: jnp.add(X, 1) + x):
        with pytest.raises(Boom):
            call(Offers(_boom))
        assert left_behind(limit) == []
    with pytest.raises(TypeError):
        jnp.asarray(Offers(lambda: "text"))


# Static arguments


class Raising:
    """Raises in the methods that are named."""

    def __init__(self, *where):
        self.where = where

    def __hash__(self):
        if "hash" in self.where:
            raise Boom
        return 1

    def __eq__(self, other):
        if "eq" in self.where:
            raise Boom
        return self is other


class NeverEqual:
    def __hash__(self):
        return 1

    def __eq__(self, other):
        return False


class AlwaysEqual:
    def __init__(self, n):
        self.n = n

    def __hash__(self):
        return 1

    def __eq__(self, other):
        return True


class ArrayEqual:
    """Answers a comparison with an array, which has no truth value."""

    def __hash__(self):
        return 1

    def __eq__(self, other):
        return np.ones(2) == 1


def _static(*values, **options):
    def program(jax):
        f = jax.jit(lambda s, x: x + 1, static_argnums=0)
        return [f(v() if isinstance(v, type) else v, X) for v in values]

    return program


def _counted(*values):
    """How often a function is traced for static values."""

    def program(jax):
        traced = []
        f = jax.jit(lambda s, x: traced.append(1) or x, static_argnums=0)
        for v in values:
            f(v, X)
        return len(traced)

    return program


STATICS = {
    "a list": _static([1]),
    "a dict": _static({}),
    "a set": _static({1}),
    "numpy": _static(X),
    "a tuple with a list": _static((1, [2])),
    "an array": lambda jax: jax.jit(lambda s, x: x, static_argnums=0)(jax.numpy.ones(2), X),
    "by name": lambda jax: jax.jit(lambda x, s: x, static_argnames="s")(X, s=[1]),
    "a hash that raises": _static(Raising("hash")),
    "an equality that raises": _static(Raising("eq"), Raising("eq")),
    "an equality of arrays": _static(ArrayEqual, ArrayEqual),
    "never equal": _static(NeverEqual, NeverEqual, NeverEqual()),
    "nothing": _static(None, None),
    "functions": _static(len, print, _boom),
    "types": _static(int, float),
    "a slice": _static(slice(1)),
    "a bound method": _static([].append),
    "nan": _static(float("nan")),
    "always equal": _counted(AlwaysEqual(1), AlwaysEqual(2), AlwaysEqual(1)),
    "two equal strings": _counted("ab", "".join(["a", "b"])),
    "a partial": _static(functools.partial(_boom)),
    "a namespace": _static(types.SimpleNamespace(a=1)),
}


@pytest.mark.oracle
@pytest.mark.parametrize("name", STATICS)
def test_static_arguments_of_any_kind(name):
    _same(STATICS[name])


def test_static_values_that_are_equal_and_not_the_same_are_kept_apart():
    f = minijax.jit(lambda s: jnp.asarray(s), static_argnums=0)
    for v in (1, 1.0, True, 1, 1.0):
        assert f(v).dtype == jnp.asarray(v).dtype
    signs = [np.signbit(f(v)) for v in (0.0, -0.0, 0.0)]
    assert signs == [False, True, False]


# Functions


class Callable_:
    """Callable, without a hash."""

    __hash__ = None

    def __eq__(self, other):
        return True

    def __call__(self, x):
        return x + 1


class RaisingCallable(Raising):
    def __call__(self, x):
        return x + 1


class Slotted:
    """Callable, and takes no weak reference."""

    __slots__ = ()

    def __call__(self, x):
        return x + 1


def _bodies(jax, f):
    return (
        jax.jit(f)(X),
        jax.vmap(f)(X),
        jax.grad(lambda x: f(x).sum())(X),
        jax.lax.fori_loop(0, 2, lambda i, c: f(c), X),
        jax.lax.cond(True, f, f, X),
        jax.lax.map(f, X),
        jax.eval_shape(f, X).shape,
        jax.checkpoint(f)(X),
    )


FUNCTIONS = {
    "with a hash that raises": lambda jax: _bodies(jax, RaisingCallable("hash")),
    "with an equality that raises": lambda jax: [_bodies(jax, RaisingCallable("eq")) for _ in range(2)],
    "a partial": lambda jax: _bodies(jax, functools.partial(jax.numpy.add, 1)),
    "a partial of a list": lambda jax: _bodies(jax, functools.partial(lambda some, x: x + len(some), [1])),
    "a bound method": lambda jax: _bodies(jax, Slotted().__call__),
    "a builtin": lambda jax: _bodies(jax, abs),
    "a class": lambda jax: jax.jit(lambda x: types.SimpleNamespace)(X),
    "a generator": lambda jax: jax.jit(_generator)(X),
    "one that returns a generator": lambda jax: jax.jit(lambda x: (y for y in [x]))(X),
    "a coroutine": lambda jax: jax.jit(_coroutine)(X),
    "a generator consumed inside": lambda jax: jax.jit(lambda x: sum(y * 2 for y in _generator(x)))(X),
    "a generator that outlives its trace": lambda jax: _late(jax),
    "a static method": lambda jax: jax.jit(staticmethod(abs))(X),
    "a class method": lambda jax: jax.jit(_Methods.of_class)(X),
    "a property's": lambda jax: _Methods().jitted(jax)(X),
    "nothing": lambda jax: jax.jit(None)(X),
    "a number": lambda jax: jax.jit(3)(X),
    "map's": lambda jax: jax.jit(lambda x: list(map(lambda y: y * 2, x)))(X),
    "an iterator as an argument": lambda jax: jax.jit(lambda x: x)(iter([1, 2])),
    "print": lambda jax: jax.jit(lambda x: print(end="") or x)(X),
}


def _generator(x):
    yield x
    yield x + 1


async def _coroutine(x):
    return x


def _late(jax):
    kept = []

    @jax.jit
    def f(x):
        kept.append(_generator(x))
        return next(kept[0])

    f(X)
    return next(kept[0])


class _Methods:
    @classmethod
    def of_class(cls, x):
        return x + 1

    def jitted(self, jax):
        return jax.jit(lambda x: x + (self is not None))


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore:coroutine")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_any_kind(name):
    _same(FUNCTIONS[name])
    if "coroutine" in name:
        gc.collect()  # which warns of it, here and not in another test


@pytest.mark.parametrize("f", [Callable_(), Slotted()], ids=["no hash", "no weak references"])
def test_functions_that_cannot_be_remembered_work(f):
    # jax refuses them.
    for result in _bodies(minijax, f)[:2]:
        assert result.tolist() == [2, 3, 4]
    jitted = minijax.jit(f)
    assert jitted(X).tolist() == [2, 3, 4] and jitted._cache_size() == 1 == (jitted(X), jitted._cache_size())[1]


# Trees


def _node(jax, flatten=None, unflatten=None):
    class Node:
        def __init__(self, x):
            self.x = x

    jax.tree_util.register_pytree_node(
        Node, flatten or (lambda n: ((n.x,), None)), unflatten or (lambda aux, children: Node(*children))
    )
    return Node


class RaisingAux(Raising):
    pass


def _called_twice(f, node):
    return f(node(X)), f(node(X))


TREES = {
    "flatten raises": lambda jax: jax.jit(lambda n: n.x)(_node(jax, flatten=lambda n: _boom())(X)),
    "flatten of the result raises": lambda jax: jax.jit(_node(jax, flatten=lambda n: _boom()))(X),
    "unflatten raises": lambda jax: jax.jit(lambda n: 1)(_node(jax, unflatten=lambda aux, c: _boom())(X)),
    "unflatten of the result raises": lambda jax: jax.jit(_node(jax, unflatten=lambda aux, c: _boom()))(X),
    "flatten gives no pair": lambda jax: jax.jit(lambda n: n.x)(_node(jax, flatten=lambda n: 3)(X)),
    "aux has no hash": lambda jax: jax.jit(lambda n: n.x)(_node(jax, flatten=lambda n: ((n.x,), [1]))(X)),
    "aux's hash raises": lambda jax: jax.jit(lambda n: n.x)(
        _node(jax, flatten=lambda n: ((n.x,), RaisingAux("hash")))(X)
    ),
    "aux's equality raises": lambda jax: _called_twice(
        jax.jit(lambda n: n.x), _node(jax, flatten=lambda n: ((n.x,), RaisingAux("eq")))
    ),
    "flatten traces": lambda jax: jax.jit(lambda n: n.x)(
        _node(jax, flatten=lambda n: ((jax.jit(lambda y: y * 2)(n.x),), None))(X)
    ),
    "unflatten traces": lambda jax: jax.jit(lambda n: n * 1)(
        _node(jax, unflatten=lambda aux, c: jax.numpy.sin(c[0]))(X)
    ),
    "keys of two kinds": lambda jax: jax.jit(lambda t: t)({1: X, "a": X}),
    "scan's carry changes its tree": lambda jax: jax.lax.scan(lambda c, x: ((c, c), x), 1.0, X),
    "cond's trees differ": lambda jax: jax.lax.cond(True, lambda: (1, 2), lambda: [1, 2]),
    "no leaves": lambda jax: jax.jit(lambda t: t)(((), [], {}, None)),
    "result is no value": lambda jax: jax.jit(lambda x: {"a": object()})(X),
    "result is a string": lambda jax: jax.jit(lambda x: "text")(X),
}


@pytest.mark.oracle
@pytest.mark.parametrize("name", TREES)
def test_trees_of_any_kind(name):
    _same(TREES[name])


@pytest.mark.oracle
def test_classes_that_check_their_leaves_may_be_arguments_and_results():
    def program(jax):
        def checked(aux, children):
            if not all(hasattr(c, "shape") for c in children):
                raise TypeError("not arrays")
            return node(children)

        node = _node(jax, flatten=lambda n: (tuple(n.x), None), unflatten=checked)
        f = jax.jit(lambda n, *rest, k: node([n.x[0] + 1, n.x[1] * k.x[0]]))
        result = f(node([X, X]), k=node([X]))
        looped = jax.lax.fori_loop(0, 2, lambda i, n: node([n.x[0] + 1]), node([X]))
        scanned, _ = jax.lax.scan(lambda n, a: (node([n.x[0] + a]), a), node([X]), X)
        chosen = jax.lax.cond(True, lambda n: node([n.x[0]]), lambda n: n, node([X]))
        return (result.x, looped.x, scanned.x, chosen.x, len(str(jax.make_jaxpr(f)(node([X, X]), k=node([X])))) > 0)

    _same(program)


# Constants that change


def test_captured_numpy_arrays_are_snapshots_wherever_they_are_captured():
    wraps = {
        "jit": lambda f: minijax.jit(f),
        "jit of grad": lambda f: minijax.jit(minijax.grad(lambda x: f(x).sum())),
        "jit of jit": lambda f: minijax.jit(minijax.jit(f)),
        "jit of scan": lambda f: minijax.jit(lambda x: lax.scan(lambda c, a: (f(c), a), x, X)[0]),
        "jit of cond": lambda f: minijax.jit(lambda x: lax.cond(x.sum() > 0, f, f, x)),
        "jit of vmap": lambda f: minijax.jit(minijax.vmap(f)),
        "compiled": lambda f: minijax.jit(f).lower(X).compile(),
        "jit of checkpoint": lambda f: minijax.jit(minijax.checkpoint(f)),
    }
    for size in (1, 3000):
        for name, wrap in wraps.items():
            a = np.ones(size, np.float32)
            g = wrap(lambda x, a=a: x * jnp.sum(jnp.asarray(a)) + a[0])
            first = np.asarray(g(X)).tolist()
            a[:] = 7
            assert np.asarray(g(X)).tolist() == first, (name, size)


def test_linear_functions_keep_their_captured_values():
    a = np.ones(300, np.float32)
    linear = minijax.linearize(lambda x: x * a, jnp.ones(300))[1]
    pull = minijax.vjp(lambda x: x * a, jnp.ones(300))[1]
    first = linear(jnp.ones(300)), pull(jnp.ones(300))[0]
    a[:] = 7
    assert (linear(jnp.ones(300)) == first[0]).all() and (pull(jnp.ones(300))[0] == first[1]).all()
    closed = minijax.make_jaxpr(lambda x: x * a)(jnp.ones(300))
    a[:] = 9
    assert (minijax.extend.core.jaxpr_as_fun(closed)(jnp.ones(300))[0] == 7).all()


def test_eager_functions_see_the_present_value():
    a = np.ones(300, np.float32)
    run = lambda: lax.scan(lambda c, x: (c + a.sum() * x, None), 0.0, X)[0]  # noqa: E731
    first = run()
    a[:] = 2
    assert run() == 2 * first


def test_a_result_does_not_change_with_the_argument():
    for size in (3, 5000):
        a = np.ones(size, np.float32)
        results = [minijax.jit(lambda x: x)(a), minijax.jit(lambda x: (x, x + 0))(a)[1], jnp.asarray(a) + 0]
        a[:] = 7
        assert all((r == 1).all() for r in results)


# Functions of a tree `p` of numbers and of others, `q` of positive ones, that has `__jax_array__`.
OF_TREES = [
    lambda nn, p: (
        nn.softplus(p),
        nn.silu(p),
        nn.mish(p),
        nn.elu(p),
        nn.leaky_relu(p),
        nn.selu(p),
        nn.hard_tanh(p),
        nn.hard_swish(p),
        nn.relu(p),
    ),
    lambda jnp, p: (
        jnp.where(p.v > 0, 0.0, p),
        jnp.where(p.v > 0, p, 1.0),
        jnp.clip(p, 0, 1),
        jnp.maximum(p, 0),
        jnp.add(p, 1),
        jnp.sin(p),
    ),
    lambda jnp, p: (
        jnp.cumsum(p),
        jnp.cumprod(p),
        jnp.array_equal(p, p),
        jnp.hsplit(p, [2]),
        jnp.split(p, [2]),
        jnp.sort(p),
        jnp.take(p, 0),
    ),
    lambda jnp, p: (
        jnp.sum(p),
        jnp.var(p),
        jnp.dot(p, p),
        jnp.einsum("i,i", p, p),
        jnp.stack([p, p]),
        jnp.reshape(p, (1, 5)),
        jnp.linalg.norm(p),
    ),
    lambda random, key, p, q: (
        random.gamma(key, q),
        random.poisson(key, q),
        random.beta(key, q, 1.0),
        random.bernoulli(key, q),
        random.choice(key, p),
    ),
    lambda jnp, random, key, p, q: (
        random.multivariate_normal(key, q, jnp.eye(2)),
        random.uniform(key, (5,), minval=p, maxval=4.0),
        random.categorical(key, p),
    ),
    lambda jax, jnp, nn, p: (
        jax.image.resize(p, (3,), "linear"),
        jax.scipy.special.erf(p),
        nn.logsumexp(p),
        jnp.interp(p, p.v, p),
    ),
    lambda jax, jnp, lax, nn, p: (
        lax.stop_gradient(p).v,
        jax.jit(lambda p: jnp.where(p.v > 0, p, nn.elu(p)))(p),
        jax.vmap(nn.softplus)(p),
    ),
    lambda jax, jnp, nn, p: jax.grad(lambda p: jnp.sum(nn.softplus(p) * jnp.where(p.v > 0, p, 1.0)))(p).v,
]


@pytest.mark.oracle
@pytest.mark.parametrize("calls", OF_TREES)
def test_functions_of_the_library_take_trees_that_offer_an_array(calls):
    def program(jax, jnp, lax, nn, random):
        class Parameter:
            def __init__(self, v):
                self.v = v

            def __jax_array__(self):
                return self.v

            shape = property(lambda self: self.v.shape)
            dtype = property(lambda self: self.v.dtype)
            ndim = property(lambda self: self.v.ndim)

        jax.tree_util.register_pytree_node(Parameter, lambda x: ((x.v,), None), lambda _, leaves: Parameter(*leaves))
        values = dict(jax=jax, jnp=jnp, lax=lax, nn=nn, random=random, key=random.key(0))
        return given(calls, values | dict(p=Parameter(jnp.arange(-2.0, 3.0)), q=Parameter(jnp.full(2, 0.5))))

    compare.same(program)
