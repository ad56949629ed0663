"""`jit` as users call it: static, donated and captured values, and when it traces again."""

import collections
import functools
import threading
import warnings

import compare
import numpy as np
import pytest

import minijax
from minijax.base import dtypes
from minijax.run.programs.compile import compile_count

Point = collections.namedtuple("Point", "x y")


def traced_times(jit, *calls, **options):
    """How often a jitted function is traced by calls of it, each a tuple of arguments."""
    seen = []

    def f(*args, **kwargs):
        seen.append(args)
        return args[0]

    g = jit(f, **options)
    counts = []
    for args in calls:
        g(*args)
        counts.append(len(seen))
    return counts


def warned(call):
    """The warnings of a call, as (class, first words)."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    return [(w.category.__name__, str(w.message)[:36]) for w in found]


def jaxpr(jax, f, *args, **options):
    return str(jax.make_jaxpr(f, **options)(*args))


def _registered(jax, jnp):
    class Pair:
        def __init__(self, a, b):
            self.a, self.b = a, b

    jax.tree_util.register_pytree_node(Pair, lambda p: ((p.a, p.b), "aux"), lambda _, kids: Pair(*kids))
    out = jax.jit(lambda p: Pair(p.b, p.a + 1))(Pair(1, jnp.ones(2)))
    return out.a, out.b


def _method(jax, jnp):
    class Scale:
        def __init__(self, k):
            self.k = k

        @functools.partial(jax.jit, static_argnums=0)
        def __call__(self, x):
            return self.k * x

        @jax.jit
        def _unused(self, x):
            return x

        @staticmethod
        @jax.jit
        def double(x):
            return 2 * x

    return Scale(3)(jnp.arange(2)), Scale(2).double(1.5), Scale.double(2)


def _method_of_registered(jax, jnp):
    @jax.tree_util.register_pytree_node_class
    class Model:
        def __init__(self, w):
            self.w = w

        def tree_flatten(self):
            return (self.w,), None

        @classmethod
        def tree_unflatten(cls, _, kids):
            return cls(*kids)

        @jax.jit
        def apply(self, x):
            return self.w * x

    return Model(jnp.arange(3.0)).apply(2), Model.apply(Model(1.0), jnp.ones(2))


def _decorators(jax, jnp):
    @jax.jit
    def f(x):
        """doc"""
        return x

    @jax.jit(static_argnums=1)
    def g(x, n):
        return x * n

    @functools.partial(jax.jit, static_argnames="n")
    def h(x, *, n=3):
        return [x] * n

    return f(1), f.__name__, f.__doc__, f.__wrapped__(2), g(jnp.ones(2), 3), h(1.0), h(1.0, n=1)


def _partial(jax, jnp):
    f = functools.partial(lambda a, b, c=1: (a, b * c), 5, c=jnp.ones(2))
    return jax.jit(f)(3), jax.jit(f)(3, c=2), jaxpr(jax, jax.jit(functools.partial(jnp.add, 1)), 2.0)


def _snapshot(jax, jnp):
    held = np.arange(3)
    f = jax.jit(lambda x: x + held)
    first = f(1)
    held[:] = 7
    return first, f(1)


def _default_is_a_leaf(jax, jnp):
    return jax.jit(lambda x, y=2: x + y)(1), jax.jit(lambda x, y=2.0: x + y)(jnp.ones(2, jnp.bfloat16))


def _clear(jax, jnp):
    seen = []
    f = jax.jit(lambda x: (seen.append(1), x)[1])
    f(1), f(2)
    f.clear_cache()
    f(1)
    return len(seen), f._cache_size()


def _x64(jax, jnp):
    seen = []
    f = jax.jit(lambda x: (seen.append(1), x * 2)[1])
    first = f(1.5)
    with jax.enable_x64(True):
        second = f(1.5)
    return first, second, f(2.5), len(seen)


def _cache_sizes(jax, jnp):
    f = jax.jit(lambda x: x + 1)
    sizes = []
    for x in (1, 2, 1.0, np.float32(1), jnp.float32(1), jnp.ones(2), np.ones(2, np.float32), True):
        f(x)
        sizes.append(f._cache_size())
    return sizes[0], sizes[1]


def _disable(jax, jnp):
    seen = []

    @jax.jit
    def f(x):
        seen.append(type(x).__name__)
        return x + 1 if x > 0 else x

    with jax.disable_jit():
        first = f(1), f(np.float32(-2)), jax.jit(lambda x: 7)(1)
    return first, seen


def _donate(jax, jnp):
    x, y = jnp.arange(4.0), jnp.ones(4)
    out = jax.jit(lambda x, y: x + y, donate_argnums=0)(x, y)
    return out, x.is_deleted(), y.is_deleted()


def _donate_names(jax, jnp):
    x, y = jnp.arange(4.0), jnp.ones(4)
    f = jax.jit(lambda x, *, y: x + y, donate_argnames=("y",))
    return f(x, y=y), x.is_deleted(), y.is_deleted()


def _donate_tree(jax, jnp):
    t = {"a": jnp.arange(4.0), "b": (jnp.ones(3), jnp.zeros(4))}
    f = jax.jit(lambda k, t: jax.tree_util.tree_map(lambda x: x * k, t), donate_argnums=1)
    return f(2, t), [x.is_deleted() for x in jax.tree_util.tree_leaves(t)]


def _donate_negative(jax, jnp):
    f = jax.jit(lambda x, y: x + y, donate_argnums=-1)
    return str(f.lower(1, 2).args_info), str(f.lower(1, y=2).args_info)


def _donate_by_keyword(jax, jnp):
    x = jnp.arange(4.0)
    out = jax.jit(lambda x: x + 1, donate_argnums=0)(x=x)
    return out, x.is_deleted()


def _donate_unusable(jax, jnp):
    x, y = jnp.arange(4.0), jnp.arange(4)
    f = jax.jit(lambda x, y: (x[:2] * 2, y + 1), donate_argnums=(0, 1))
    return warned(lambda: f(x, y)), x.is_deleted(), y.is_deleted()


def _donate_in_jaxpr(jax, jnp):
    f = jax.jit(lambda x, y: x + y, donate_argnums=1, keep_unused=True)
    g = jax.jit(lambda x, y: x, keep_unused=True, inline=False)
    return jaxpr(jax, f, 1.0, 2.0), jaxpr(jax, g, 1.0, 2.0)


def _inline(jax, jnp):
    f = jax.jit(lambda x: jnp.sin(x) * 2, inline=True)
    return (jaxpr(jax, lambda x: f(x) + f(x), 1.0), jaxpr(jax, jax.grad(f), 1.0), jaxpr(jax, jax.vmap(f), np.ones(2)))


def _closure(jax, jnp):
    def f(x):
        y = jnp.sin(x)
        inner = jax.jit(lambda z: z * y + x)
        return inner(2.0) + inner(x)

    return (jaxpr(jax, f, 1.0), jaxpr(jax, jax.grad(f), 1.0), jax.grad(f)(0.5), jax.vmap(jax.jit(f))(jnp.arange(3.0)))


def _nested(jax, jnp):
    @jax.jit
    def inner(x):
        return jnp.sin(x)

    return compare.canonical(jax.jit(lambda x: inner(x) + inner(inner(x))).lower(1.0).as_text())


def _on_device(jax, jnp):
    device = jax.devices()[2]
    x = jax.device_put(jnp.arange(3.0), device)
    out = jax.jit(lambda x: x + 1)(x)
    return out, out.devices() == {device}, out.committed, jax.jit(lambda: jnp.ones(2))().committed


def _backend(jax, jnp):
    made = []
    return warned(lambda: made.append(jax.jit(lambda x: x + 1, backend="cpu"))), made[0](1.0)


def _device(jax, jnp):
    made = []
    said = warned(lambda: made.append(jax.jit(lambda x: x + 1, device=jax.devices()[1])))
    out = made[0](1.0)
    return said, out, [d.id for d in out.devices()], out.committed


def _no_backend(jax, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return jax.jit(lambda x: x, **options)(1)


def _default_device(jax, jnp):
    device = jax.devices()[1]
    f = jax.jit(lambda x: x + 1)
    first = f(1.0)
    with jax.default_device(device):
        second = f(1.0)
    return [d.id for d in first.devices()], [d.id for d in second.devices()], second.committed


def _many_kinds(jax, jnp):
    f = jax.jit(lambda *xs: xs)
    return f(1, 2.0, True, 1j, np.int8(3), np.float16(2), np.ones(2), jnp.arange(3), np.bool_(True), None, ())


VALUES = {
    "results of every tree": lambda jax, jnp: jax.jit(lambda x: {"a": (x, None), "b": [x + 1, ()]})(1.0),
    "named tuples": lambda jax, jnp: tuple(jax.jit(lambda p: Point(p.y, p.x * 2))(Point(1, jnp.ones(2)))),
    "None as argument and result": lambda jax, jnp: jax.jit(lambda x, y: (None, y))(None, 3),
    "no argument": lambda jax, jnp: (jax.jit(lambda: 3)(), jax.jit(lambda: jnp.ones(2))(), jax.jit(lambda: ())()),
    "a registered node": _registered,
    "inputs, literals and duplicates": lambda jax, jnp: jax.jit(lambda x, y: (y, x, y, 3, 2.5, True, x))(
        1, jnp.ones(2)
    ),
    "every kind of leaf": _many_kinds,
    "methods": _method,
    "methods of registered classes": _method_of_registered,
    "decorators": _decorators,
    "partial": _partial,
    "keyword arguments": lambda jax, jnp: jax.jit(lambda a, *b, c=1, **d: (a, b, c, d))(1, 2, 3, c=4, e=5, f=None),
    "defaults are not arguments": _default_is_a_leaf,
    "numpy arrays captured are snapshots": _snapshot,
    "static argnums": lambda jax, jnp: jax.jit(lambda x, n: [x] * n, static_argnums=1)(1.0, 2),
    "negative static argnums": lambda jax, jnp: jax.jit(lambda x, n: [x] * n, static_argnums=-1)(1.0, 2),
    "static argnums by keyword": lambda jax, jnp: jax.jit(lambda x, n: [x] * n, static_argnums=1)(1.0, n=2),
    "static argnames by position": lambda jax, jnp: jax.jit(lambda x, n: [x] * n, static_argnames="n")(1.0, 2),
    "static argnames of keyword-only": lambda jax, jnp: jax.jit(lambda x, *, n: [x] * n, static_argnames=["n"])(1, n=2),
    "static in the middle": lambda jax, jnp: jax.jit(lambda f, x, g, y: (f(x), g(y)), static_argnums=(0, 2))(
        jnp.sin, 1.0, abs, -2
    ),
    "static strings and None": lambda jax, jnp: jax.jit(lambda x, m: x if m is None else x + len(m), static_argnums=1)(
        1, "abc"
    ),
    "static of varargs": lambda jax, jnp: jax.jit(lambda *xs: xs[1] * xs[0], static_argnums=1)(2.0, 3),
    "static default": lambda jax, jnp: jax.jit(lambda x, n=2: [x] * n, static_argnames="n")(1.0),
    "static in kwargs": lambda jax, jnp: jax.jit(lambda x, **kw: [x] * kw["n"], static_argnames="n")(1.0, n=2),
    "traces once a kind": lambda jax: traced_times(
        jax.jit, (1,), (2,), (1.0,), (np.float32(1),), (np.ones(2),), ([1, 2],), ((1, 2),), (True,), (1,)
    ),
    "statics retrace": lambda jax: traced_times(
        jax.jit, (1, 2), (1, 2), (1, 3), (1, 2.0), (1, True), (1, 1), (1, 0.0), (1, 2), static_argnums=1
    ),
    "weak types retrace": lambda jax, jnp: traced_times(
        jax.jit, (1.0,), (jnp.asarray(1.0),), (jnp.float32(1),), (2.0,)
    ),
    "clear_cache": _clear,
    "the x64 flag retraces": _x64,
    "cache sizes": _cache_sizes,
    "disable_jit": _disable,
    "donation": _donate,
    "donation by name": _donate_names,
    "donation of a tree": _donate_tree,
    "donation by keyword": _donate_by_keyword,
    "unusable donation warns": _donate_unusable,
    "negative donation is ignored": _donate_negative,
    "donation in jaxprs": _donate_in_jaxpr,
    "inline": _inline,
    "closures over tracers": _closure,
    "nested jits share a function": _nested,
    "results stay on the device": _on_device,
    "the default device": _default_device,
    "a backend": _backend,
    "a device": _device,
    "compiler options": lambda jax, jnp: jax.jit(lambda x: x + 1, compiler_options={"xla_cpu_enable_fast_math": True})(
        jnp.ones(3)
    ),
    "keep_unused": lambda jax: [
        jax.jit(lambda x, y: x, keep_unused=k).lower(1.0, 2).as_text().count("%arg") for k in (False, True)
    ],
    "large constants": lambda jax, jnp: jax.jit(lambda x: x + np.arange(500.0))(jnp.ones(())),
    "its text": lambda jax, jnp: repr(jax.jit(abs)),
    "eval_shape": lambda jax, jnp: str(jax.jit(lambda x, n: {"a": x * n}, static_argnums=1).eval_shape(jnp.ones(2), 3)),
}


def _donate_twice(jax, jnp):
    x = jnp.arange(4.0)
    return jax.jit(lambda x, y: (x + 1, y + 2), donate_argnums=(0, 1))(x, x)


def _two_devices(jax, jnp):
    x, y = (jax.device_put(jnp.ones(2), d) for d in jax.devices()[:2])
    return jax.jit(lambda x, y: x + y)(x, y)


def _leak(jax, jnp):
    held = []
    jax.jit(lambda x: held.append(x))(1)
    return held[0] + 1


def _generator(jax, jnp):
    def f(x):
        yield x

    return jax.jit(f)


class Unhashable:
    __hash__ = None


ERRORS = {
    "unhashable static": (
        lambda jax: jax.jit(lambda x, n: x, static_argnums=1)(1, [2]),
        "Non-hashable static arguments",
    ),
    "unhashable static by name": (
        lambda jax: jax.jit(lambda x, n: x, static_argnames="n")(1, n={}),
        "Non-hashable static arguments",
    ),
    "unhashable object": (
        lambda jax: jax.jit(lambda x, n: x, static_argnums=1)(1, Unhashable()),
        "Non-hashable static arguments",
    ),
    "array as static": (
        lambda jax, jnp: jax.jit(lambda x, n: x, static_argnums=1)(1, jnp.ones(2)),
        "Non-hashable static arguments",
    ),
    "no value": (lambda jax: jax.jit(lambda x: x)("a string"), "Error interpreting argument to", "abstract array"),
    "no value inside": (
        lambda jax: jax.jit(lambda x: x)({"a": [1, object()]}),
        "Error interpreting argument to",
        "path x['a'][1]",
    ),
    "result no value": (lambda jax: jax.jit(lambda x: "text")(1), "not a valid JAX type"),
    "result no value inside": (lambda jax: jax.jit(lambda x: {"a": x, "b": ["text"]})(1), "['b'][0]"),
    "not callable": (lambda jax: jax.jit(3), "Expected a callable value, got 3"),
    "generator": (_generator, "got a generator function"),
    "static out of range": (
        lambda jax: jax.jit(lambda x: x, static_argnums=2),
        "static_argnums",
        "only accepts 1 positional arguments",
    ),
    "static negative out of range": (lambda jax: jax.jit(lambda x: x, static_argnums=-2), "static_argnums"),
    "static unknown name": (
        lambda jax: jax.jit(lambda x: x, static_argnames="y"),
        "invalid argnames",
        "static_argnames",
    ),
    "donate unknown name": (
        lambda jax: jax.jit(lambda x: x, donate_argnames="y"),
        "invalid argnames",
        "donate_argnames",
    ),
    "donate out of range": (lambda jax: jax.jit(lambda x: x, donate_argnums=1), "donate_argnums"),
    "static and donated": (lambda jax: jax.jit(lambda x, y: x, static_argnums=0, donate_argnums=0), "cannot intersect"),
    "static nums no ints": (lambda jax: jax.jit(lambda x: x, static_argnums="a"), "int"),
    "static names no strings": (lambda jax: jax.jit(lambda x: x, static_argnames=[1]), "str"),
    "missing argument": (lambda jax: jax.jit(lambda x, y: x)(1), "missing 1 required positional argument: 'y'"),
    "too many arguments": (lambda jax: jax.jit(lambda x: x)(1, 2), "takes 1 positional argument but 2 were given"),
    "unexpected keyword": (lambda jax: jax.jit(lambda x: x)(1, z=2), "unexpected keyword argument 'z'"),
    "too few for static": (lambda jax: jax.jit(lambda x, y: x, static_argnums=1)(1), "missing"),
    "tracer as static": (
        lambda jax: jax.jit(lambda x: jax.jit(lambda n: n, static_argnums=0)(x))(1),
        "Non-hashable static arguments",
    ),
    "bool of a tracer": (
        lambda jax: jax.jit(lambda x: 1 if x > 0 else 2)(1),
        "Attempted boolean conversion of traced array with shape bool[]",
        "x",
    ),
    "int of a tracer": (lambda jax: jax.jit(lambda x: int(x))(1), "traced array with shape int32[]"),
    "index of a tracer": (lambda jax: jax.jit(lambda x: range(x))(1), "traced array with shape int32[]"),
    "numpy of a tracer": (
        lambda jax: jax.jit(lambda x: np.asarray(x))(1),
        "numpy.ndarray conversion",
        "traced array with shape int32[]",
    ),
    "escaped tracer": (_leak, "unexpected tracer"),
    "donated twice": (_donate_twice, "onate"),
    "two devices": (_two_devices, "Received incompatible devices for jitted computation"),
    "error inside": (lambda jax: jax.jit(lambda x: {}["key"])(1), "key"),
    "shapes inside": (lambda jax, jnp: jax.jit(lambda x: x + jnp.ones(3))(np.ones(2)), "(2,)", "(3,)"),
    "unknown compiler option": (
        lambda jax: jax.jit(lambda x: x, compiler_options={"no_such_option": True})(1),
        "no_such_option",
    ),
    "unknown backend": (lambda jax: _no_backend(jax, backend="no_such_backend"), "no_such_backend"),
    "device and backend": (
        lambda jax: _no_backend(jax, backend="cpu", device=jax.devices()[0]),
        "can't specify both a device and a backend",
    ),
    "integer overflow": lambda jax: jax.jit(lambda x: x)(2**40),
}


@pytest.mark.oracle
@pytest.mark.parametrize("name", VALUES)
def test_jit_gives_the_results_of_jax(name):
    compare.same(VALUES[name])


@pytest.mark.oracle
@pytest.mark.parametrize("name", ERRORS)
def test_jit_raises_as_in_jax(name):
    program, *phrases = entry if isinstance(entry := ERRORS[name], tuple) else (entry,)
    compare.same_error(
        lambda: compare.run_on(compare.ours(), program), lambda: compare.run_on(compare.theirs(), program), phrases
    )


def test_wrapping_a_function_again_neither_traces_nor_compiles():
    seen = []

    def f(x):
        seen.append(x)
        return x * 31.0

    minijax.jit(f)(1.0)
    before = compile_count()
    for _ in range(3):
        minijax.jit(f)(2.0)
    assert len(seen) == 1
    assert compile_count() == before
    minijax.jit(f, keep_unused=True)(1.0)
    assert len(seen) == 1


def test_a_fresh_lambda_with_the_same_program_is_not_compiled_again():
    jits = [minijax.jit(lambda x: x * 37.0 - 1.0) for _ in range(2)]
    jits[0](1.0)
    before = compile_count()
    assert float(jits[1](2.0)) == 73.0
    assert compile_count() == before


def test_a_mutated_capture_is_read_again_only_by_a_new_trace():
    held = {"k": 2.0}
    f = minijax.jit(lambda x: x * held["k"])
    f(1.0)
    held["k"] = 3.0
    assert float(f(1.0)) == 2.0
    f.clear_cache()
    assert float(f(1.0)) == 3.0


def test_a_trace_of_the_same_types_is_made_anew_under_another_flag():
    f = minijax.jit(lambda x: x * minijax.numpy.arange(2.0).sum())
    x = minijax.numpy.ones(2, "float32")
    narrow = f.trace(x)
    with minijax.enable_x64(True):
        wide = f.trace(x)
    assert [a.dtype.name for a in narrow.jaxpr.out_avals] == ["float32"]
    assert [a.dtype.name for a in wide.jaxpr.out_avals] == ["float64"]


def _kept_apart(jax, jnp):
    f = jax.jit(lambda x, n: x * n, static_argnums=1)
    named = jax.jit(lambda x, *, n=2: x * n, static_argnames="n")
    x = jnp.arange(3)
    return [[f(x, n) for n in (1, 1.0, True, 1)], [named(x, n=n) for n in (1, 1.0, True)] + [named(x), named(x, n=2)]]


def _kinds_of_arguments(jax, jnp):
    f = jax.jit(lambda x, y=None: x * 2 if y is None else x + y)
    x, n = jnp.arange(3.0), np.arange(3.0, dtype=np.float32)
    calls = [(x,), (1,), (1.0,), (True,), (n,), (np.float32(2),), (np.int64(3),), (x, None), (x, 1), (2.0, n)]
    return [f(*args) for args in calls], [f(x, y=y) for y in (x, 1, n, None)], f(y=x, x=n), f(x=1, y=2)


def _trees_and_arrays(jax, jnp):
    f = jax.jit(lambda p: jax.tree_util.tree_map(lambda v: v + 1, p))
    x = jnp.arange(2)
    return [f(p) for p in (x, [x, 1], {"a": (x,)}, x, 2, (), None, [x], x)]


def _named_by_order(jax, jnp):
    f = jax.jit(lambda a, b, c: (a - b) * c)
    x, y = jnp.asarray(5.0), jnp.asarray(3.0)
    return f(a=x, b=y, c=2), f(b=y, c=2, a=x), f(c=x, b=x, a=y), f(x, c=y, b=x)


REPEATED = {
    "static values that are equal and differ": _kept_apart,
    "kinds of arguments": _kinds_of_arguments,
    "trees and arrays": _trees_and_arrays,
    "keywords in any order": _named_by_order,
}


@pytest.mark.oracle
@pytest.mark.parametrize("name", REPEATED)
def test_repeated_calls_give_the_results_of_jax(name):
    compare.same(lambda jax, jnp: (REPEATED[name](jax, jnp), REPEATED[name](jax, jnp)))


def test_static_values_that_print_differently_have_programs_of_their_own():
    text = []
    f = minijax.jit(lambda x, s: text.append(str(s)) or x + len(text), static_argnums=1)
    values = [(0,), (False,), (0.0,), ((0,),), ((False,),), 0.0, -0.0, 0, False, "0", None]
    for _ in range(2):
        assert [int(f(0, v)) for v in values] == list(range(1, 12))
    assert text == list(map(str, values))


def test_scalars_host_values_and_arrays_of_a_type_share_a_trace():
    assert traced_times(minijax.jit, (1.0,), (2.0,), (minijax.numpy.asarray(3.0),)) == [1, 1, 1]
    host = np.ones(3, np.float32)
    assert traced_times(minijax.jit, (host,), (host * 2,), (minijax.numpy.asarray(host),)) == [1, 1, 1]


def test_a_remembered_call_sees_the_configuration_of_its_thread():
    seen = []

    @minijax.jit
    def f(x):
        seen.append(1)
        return x + 1

    x = minijax.numpy.arange(3)
    f(x), f(x)
    with minijax.disable_jit():
        f(x)
    assert len(seen) == 2
    with minijax.default_matmul_precision("highest"):
        f(x), f(x)
    assert len(seen) == 3
    f(x)
    assert len(seen) == 3


def test_donated_arguments_are_deleted_by_each_call():
    f = minijax.jit(lambda x, y: (x + y, x * 2), donate_argnums=0)
    y = minijax.numpy.ones(3)
    for _ in range(3):
        x = minijax.numpy.arange(3.0)
        assert f(x, y)[0].tolist() == [1, 2, 3]
        assert x.is_deleted() and not y.is_deleted()


def test_numpy_arguments_are_taken_as_they_are_at_each_call():
    def program(jax, jnp):
        f, g = jax.jit(lambda x: x + 1), jax.jit(lambda x, n: x * n, static_argnums=1)
        base = np.arange(12, dtype=np.float32)
        made = [base, base[::2], base[::-1], base.reshape(3, 4).T, base.astype(np.int8), base[:0],
                base.astype(np.float64), base[3], base.reshape(3, 4)[:, 1:]]  # fmt: skip
        results = [[f(x) for x in made] for _ in range(4)]
        results += [g(x, n) for _ in range(3) for x in made for n in (2, 3)]
        with jax.enable_x64(True):
            results += [f(made[6]) for _ in range(3)]
        results += [f(made[6])]
        base[:] = 7  # the result keeps the old values
        # Calls with keywords are other calls.
        one, x = jax.jit(lambda x, *, z=2: x * z), np.ones(3, np.float32)
        two = jax.jit(lambda x, n=2: x * n, static_argnames="n")
        for h, options in (one, {"z": 5}), (two, {"n": 5}):
            results += [h(x, **options) for _ in range(3)] + [h(x) for _ in range(3)] + [h(x, **options)]
        return results

    compare.same(program)


@pytest.mark.parametrize("size", [1, 64, 4096, 1 << 14])
def test_a_numpy_argument_may_be_changed_while_the_program_runs(size):
    long = minijax.lax.fori_loop
    f = minijax.jit(lambda x: x * long(0, 300, lambda i, c: c @ c * 0 + 1, minijax.numpy.ones((60, 60)))[0, 0])
    memory = np.zeros(size * 4 + 64, np.uint8)
    start = -memory.ctypes.data % 64  # where jax would not copy
    x = memory[start : start + size * 4].view(np.float32)
    for value in range(1, 6):
        x[:] = value
        found = f(x)
        x[:] = -1
        assert found[-1] == value


@pytest.mark.parametrize("x64", [False, True])
def test_numpy_arguments_of_every_dtype_equal_arrays(x64):
    with minijax.enable_x64(x64):
        for dtype in dict.fromkeys(map(minijax.dtypes.canonicalize_dtype, dtypes.BY_NAME.values())):
            if dtype.name in ("int1", "uint1", "float6_e2m3fn", "float6_e3m2fn"):
                continue  # XLA has no programs of these
            f, x = minijax.jit(lambda x: x), (np.arange(6).reshape(2, 3) % 2).astype(dtype)
            want = f(minijax.numpy.asarray(x))
            for _ in range(4):
                found = f(x)
                assert found.aval == want.aval, dtype
                assert np.asarray(found).tobytes() == np.asarray(want).tobytes(), dtype


def test_a_numpy_argument_s_results_are_arrays_like_others():
    f, x = minijax.jit(lambda x: x + 1), np.ones((2, 3), np.float32)
    for _ in range(4):
        found = f(x)
        assert found.aval == f(minijax.numpy.asarray(x)).aval and not found.committed
        assert type(found) is type(f(minijax.numpy.asarray(x))) and found.weak_type is False
        assert minijax.grad(lambda y: f(y).sum())(x).tolist() == [[1] * 3] * 2


def test_transfer_guards_watch_numpy_arguments_that_were_seen_before(caplog):
    f, x = minijax.jit(lambda x: x + 1), np.ones(3, np.float32)
    for _ in range(3):
        f(x)
    with minijax.transfer_guard("disallow"), pytest.raises(Exception, match="Disallowed host-to-device"):
        f(x)
    assert f(x).tolist() == [2, 2, 2]
    with minijax.transfer_guard("log"):
        for count in range(1, 5):
            f(x)
            assert len([r for r in caplog.records if "transfer" in r.getMessage()]) == count


def test_numbers_and_arrays_alternate():
    def program(jax, jnp):
        f, g = jax.jit(lambda x, y: x * y), jax.jit(lambda x, y=1, *, z=2: x * y + z)
        x, y = jnp.arange(3.0), jnp.arange(3)
        numbers = (2, 2.0, True, 1j, -0.0, 0.0, np.float32(3), np.arange(3), y, x, 2, y)
        return [(f(x, n), g(x, n), g(x, z=n), g(n, n, z=n), f(n, x)) for _ in range(2) for n in numbers]

    compare.same(program)
    f = minijax.jit(lambda x, y: x + y)
    for _ in range(2):
        with pytest.raises(OverflowError):
            f(minijax.numpy.arange(3), 1 << 40)


LONE = (1, True, 0, False, 0.0, -0.0, 1.0, "1", None, (1,), (True,))


def test_a_single_static_argument_is_distinguished_from_equal_values_of_other_types():
    f = minijax.jit(lambda x: minijax.numpy.array([repr(x) == repr(y) for y in LONE]), static_argnums=0)
    for _ in range(3):
        assert [np.flatnonzero(f(x)).tolist() for x in LONE] == [[i] for i in range(len(LONE))]


def test_calls_of_arrays_are_found_anew_when_options_or_traces_change():
    traced = []
    f = minijax.jit(lambda x: (traced.append(0), x)[1] * 2)
    g = minijax.jit(lambda x, y: (traced.append(0), x)[1] * y)
    x = minijax.numpy.ones(3)

    def count():
        before = len(traced)
        f(x), g(x, x)
        return len(traced) - before

    assert [count(), count()] == [2, 0]
    option = "jax_default_matmul_precision"
    changed = threading.Thread(target=lambda: minijax.config.update(option, "highest"))
    changed.start(), changed.join()
    try:
        assert [count(), count()] == [2, 0]
    finally:
        minijax.config.update(option, None)
    assert [count(), count()] == [0, 0]
    with minijax.default_matmul_precision("high"):
        assert [count(), count()] == [2, 0]
    assert [count(), count()] == [0, 0]

    def program(y):
        for way in (minijax.ensure_compile_time_eval, minijax.core.eval_context):
            with way():
                assert [count(), count()] == [0, 0] and isinstance(f(x), minijax.Array)
        return f(x) + g(x, x) + y

    assert str(minijax.make_jaxpr(program)(x)).count("jit[") == 2
    assert [count(), count()] == [0, 0]

    def recorded(y):
        with minijax.extend.core.take_current_trace() as trace:
            assert [count(), count()] == [0, 0]
            with minijax.extend.core.set_current_trace(trace):
                return f(x) + g(x, x)

    assert str(minijax.make_jaxpr(recorded)(x)).count("jit[") == 2
    with pytest.raises(ZeroDivisionError):
        minijax.jit(lambda y: f(y) / (1 // 0))(x)
    assert count() == 0 and minijax.vmap(f)(x[None]).shape == (1, 3)


@pytest.mark.oracle
def test_attributes_of_a_function_are_those_of_the_jitted_one():
    def attributes(jax):
        def f(x):
            return x

        f.attr = 7
        g = functools.partial(f)
        g.other = 8
        jitted = jax.jit(f)
        f.attr = 9
        return [jitted.attr, jax.jit(jitted).attr, jax.jit(g).other, jax.pmap(f).attr, "f" in jitted.__name__]

    assert attributes(minijax) == attributes(pytest.importorskip("jax")) == [7, 7, 8, 9, True]


def test_attributes_of_a_callable_do_not_hide_those_of_jit():
    def f(x):
        return x

    f.flatten = f.lower = f.options = None
    jitted = minijax.jit(f)
    assert jitted(3.0) == 3.0 and "main" in jitted.lower(3.0).as_text()
