"""Programs made by jax, copied node by node into our classes, must print as jax prints them."""

import functools
import gc
import re
import time

import numpy as np
import pytest

from minijax.ir import show
from minijax.ir.context import EMPTY
from minijax.ir.jaxpr import ClosedJaxpr, DropVar, Jaxpr, JaxprEqn, Literal, Var

try:
    import jax
    import jax.numpy as jnp
    from jax import lax
    from jax.sharding import NamedSharding, PartitionSpec
except ImportError:
    jax = None

oracle = pytest.mark.oracle


@pytest.fixture(autouse=True)
def no_users_types(monkeypatch):
    """The types and operations here are minimal replacements, without support for user-defined types."""
    monkeypatch.setattr("minijax.ir.jaxpr.hi_classes", set())


class Type:
    def __init__(self, text):
        self.text = text


F32 = Type("f32[]")


class Stand:
    """A primitive with a name, that leaves out the parameters that are None and that it lists."""

    show_eqn = as_printed = inherits_names = None

    def __init__(self, name, left_out=(), always_left_out=()):
        self.name = name
        self.left_out = left_out
        self.always_left_out = always_left_out

    def show_params(self, eqn):
        if not self.left_out and not self.always_left_out:
            return None
        shown = ((k, v) for k, v in sorted(eqn.params.items()) if k not in self.always_left_out)
        return [(k, v) for k, v in shown if k not in self.left_out or v not in (None, ())]


def _lists(x):
    return [*x] if not x or type(x[0]) is int else tuple(map(_lists, x))


class Dot(Stand):
    def show_params(self, eqn):
        shown = super().show_params(eqn)
        return [(k, _lists(v) if k == "dimension_numbers" else v) for k, v in shown]


class Jit(Stand):
    inherits_names = "jaxpr"
    plain = {"Mesh()", "False", "()", "None", "UnspecifiedValue"}

    def show_params(self, eqn):
        params = {k: v for k, v in sorted(eqn.params.items()) if k not in ("name", "inline")}
        shown = [(k, v) for k, v in params.items() if k == "jaxpr" or not self.is_plain(v)]
        return [("name", eqn.params["name"]), *shown]

    def is_plain(self, v):
        return {str(item) for item in (v if type(v) is tuple else (v,))} <= self.plain


class CustomCall(Stand):
    def show_params(self, eqn):
        name = eqn.params["call_jaxpr"].jaxpr.debug_info.func_name
        shown = {k: v for k, v in eqn.params.items() if k in ("call_jaxpr", "symbolic_zeros")}
        if eqn.params["num_consts"]:
            shown["num_consts"] = eqn.params["num_consts"]
        return [("name", name), *sorted({**shown, **eqn.params["functions"]}.items())]


class Get(Stand):
    def show_eqn(self, eqn, name):
        ref, *index = eqn.invars
        text = ",".join(map(name, index)).replace(":i32[]", "") or "..."
        return f"{name(eqn.outvars[0], True)} <- {name(ref)}[{text}]"


_accurate = "cbrt cos exp exp2 expm1 log log1p logistic rsqrt sin sqrt tan tanh".split()
PRIMITIVES = {
    **{name: Stand(name, ("accuracy",)) for name in _accurate},
    "mul": Stand("mul", ("out_dtype",)),
    "broadcast_in_dim": Stand("broadcast_in_dim", ("broadcast_dimensions",), ("shape", "sharding")),
    "convert_element_type": Stand("convert_element_type", (), ("sharding",)),
    "dot_general": Dot("dot_general", ("precision", "preferred_element_type"), ("out_sharding",)),
    "jit": Jit("jit"),
    "custom_jvp_call": CustomCall("custom_jvp_call"),
    "custom_vjp_call": CustomCall("custom_vjp_call"),
    "get": Get("get"),
}


class ReadEffect:
    def __init__(self, var):
        self.input = var


class Copier:
    """Copies jax's jaxprs; the same object in, the same object out."""

    def __init__(self):
        self.made = {}

    def once(self, original, make):
        if id(original) not in self.made:
            self.made[id(original)] = (make(), original)
        return self.made[id(original)][0]

    def atom(self, v):
        if type(v).__name__ == "Literal":
            kinds = [k for k in (bool, int, float, complex) if isinstance(v.val, k)]
            return Literal(kinds[0](v.val) if kinds else v.val, Type(v.aval.str_short(short_dtypes=True)))
        kind = DropVar if type(v).__name__ == "DropVar" else Var
        return self.once(v, lambda: kind(Type(v.aval.str_short(short_dtypes=True))))

    def value(self, v):
        if type(v).__name__ == "ClosedJaxpr":
            return self.once(v, lambda: ClosedJaxpr(self.jaxpr(v.jaxpr), v.consts))
        if type(v).__name__ == "Jaxpr":
            return self.jaxpr(v)
        if hasattr(v, "_fields"):
            return type(v)(*map(self.value, v))
        return tuple(map(self.value, v)) if type(v) is tuple else v

    def eqn(self, e):
        params = {k: self.value(v) for k, v in e.params.items()}
        if e.primitive.name == "custom_jvp_call":
            params["functions"] = {"jvp": re.search(r"jvp=(\S+)", str(e))[1]}
        if e.primitive.name == "custom_vjp_call":
            params["functions"] = {k: re.search(rf"{k}=(\S+)", str(e))[1] for k in ("fwd", "bwd")}
        names = tuple(filter(None, str(e.source_info.name_stack).split("/")))
        prim = PRIMITIVES.get(e.primitive.name) or Stand(e.primitive.name)
        return JaxprEqn(
            [*map(self.atom, e.invars)],
            [*map(self.atom, e.outvars)],
            prim,
            params,
            e.effects,
            None,
            EMPTY._replace(name_stack=names),
        )

    def effect(self, e):
        return ReadEffect(self.atom(e.input)) if type(e).__name__ == "ReadEffect" else e

    def jaxpr(self, j):
        j = getattr(j, "jaxpr", j)
        return self.once(
            j,
            lambda: Jaxpr(
                [*map(self.atom, j.constvars)],
                [*map(self.atom, j.invars)],
                [*map(self.atom, j.outvars)],
                [*map(self.eqn, j.eqns)],
                [*map(self.effect, j.effects)],
                j.debug_info,
            ),
        )


def rename(f, name):
    f = functools.partial(f)
    f.__name__ = name
    return f


def sins(n):
    def body(x):
        for _ in range(n):
            x = lax.sin(x)
        return x

    return body


def call(f, *xs):
    return jax.jit(f)(*xs)


def customised():
    @jax.custom_jvp
    def f(x):
        return jnp.sin(x)

    f.defjvp(lambda p, t: (f(*p), t[0] * 2))

    @jax.custom_vjp
    def g(x):
        return f(x)

    g.defvjp(lambda x: (g(x), x), lambda r, t: (t * r,))
    return g


def shared(n=1):
    f = jax.jit(lambda x: sins(n)(x) + 1)
    return lambda x: f(f(x))


def nobody_reads(x):
    lax.cos(x), call(lambda y: lax.cos(y) + 1, x)
    return lax.sin(x)


def shared_with_dead():
    f = jax.jit(nobody_reads)
    return lambda x: f(f(x))


def nested_shared(x):
    f = jax.jit(lambda y: call(sins(11), y) + 1)
    return f(f(x))


def many_names(x):
    def jaxpr(x):
        return sins(11)(x)

    def jaxpr1(x):
        return sins(11)(x)

    return call(jaxpr, x), call(jaxpr, x * jnp.ones(2)), call(jaxpr1, x), call(jaxpr, x * jnp.ones(4))


def breadth_first(x):
    a = jax.jit(rename(lambda x: sins(12)(x), "a"))
    loop = lax.scan(lambda c, _: (call(sins(11), c), None), x, None, length=2)
    return call(sins(11), x), loop, call(lambda x: call(lambda y: a(y) * 2, x), x), a(x)


def same_operand_named_underscore(x):
    def f(a):
        s = jnp.sin(a)
        return s, call(lambda p, q: p * q + p, s, s)

    return call(f, x)[1]


def dropped_twice(x):
    return call(lambda a: (lambda s: (s, s, a))(jnp.sin(a)), x)[1]


def checkpointed(x):
    return jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)))(x).sum()


def literals(x):
    i, h, b, c, f8, i4 = (x.astype(t) for t in (int, "float16", "bfloat16", complex, "float8_e5m2", "int4"))
    more = x + jnp.inf, x - jnp.nan, x * -0.0, x + 1e-10, x * 123456789.0, x * np.float32(0.1), (x > 0) & True
    return i + 3, h * np.float16(0.1), b + 0.1, c * (1 + 2j), f8 * 1.5, i4 + 1, more, 0.1, 1e-10, True, 1j


def reads(r):
    return call(lambda r: r[...] + r[0], r)


def sharded(x):
    mesh = jax.make_mesh((2, 2), ("x", "y"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    f = jax.shard_map(lambda x: x * 2, mesh=mesh, in_specs=PartitionSpec(), out_specs=PartitionSpec())
    placed = jax.jit(lambda a: a * 2, out_shardings=NamedSharding(mesh, PartitionSpec()))(f(x))
    return lax.with_sharding_constraint(placed, NamedSharding(mesh, PartitionSpec("x")))


def effects(x):
    jax.debug.callback(print, x)
    return call(lambda x: jnp.sin(x) * 2, x)


def scoped(x):
    with jax.named_scope("outer"), jax.named_scope("inner"):
        y = jnp.sin(x)
    effects(x)
    return call(lambda x: jnp.cos(x) + y, x)


def concatenated(count, *shape):
    return lambda: jnp.concatenate([jnp.zeros(shape)] * count)


ONE, X, M, I2 = 1.0, np.ones(4, "f4"), np.ones((3, 3), "f4"), np.array([1, 2])
PROGRAMS = {
    "nothing happens": (lambda x: x, ONE),
    "no results": (lambda x: (), ONE),
    "no operands": (lambda: lax.iota(np.int32, 3),),
    "results that are literals": (lambda x, y: (x, y, 1.0, 2, True), ONE, ONE),
    "literals": (literals, X),
    "jit shares letters": (lambda x, y: call(lambda a, b: (jnp.sin(a) * b, b), x, y), X, X),
    "jit with one operand twice": (lambda x: call(lambda a, b: jnp.sin(a) * b, x, x), X),
    "jit with a literal": (lambda x: call(lambda a, b: jnp.sin(a) * b, x, 2.0), X),
    "jit with one result twice": (lambda x: call(lambda a: (lambda s: (s, s))(jnp.sin(a)), x), X),
    "jit returning its operands": (lambda x, y: call(lambda a, b: (b, a), x, y), X, X),
    "jit with a dropped result": (lambda x: call(lambda a: (jnp.sin(a), jnp.cos(a)), x)[0], X),
    "jit with all results dropped": (lambda x: (call(lambda a: (jnp.sin(a), jnp.cos(a)), x), x)[1], X),
    "results that nobody reads": (lambda x: (nobody_reads(x), call(nobody_reads, x)), X),
    "results that nobody reads in front": (lambda x: shared_with_dead()(x), X),
    "jit with a literal result": (lambda x, y: call(lambda a, b: (1.0, a * b, a), x, y)[1], X, X),
    "a dropped result that is read inside": (same_operand_named_underscore, X),
    "a result dropped and kept": (dropped_twice, X),
    "jits in jits": (lambda x: call(jax.jit(jax.jit(lambda y: y * 2)), x), X),
    "jit of two orders": (lambda x, y: (call(lax.sub, x, y), call(lax.sub, y, x)), X, X),
    "jit with constants": (jax and jax.jit(lambda x: x + np.arange(4.0)), X),
    "jit with donation": (lambda x: jax.jit(jnp.negative, donate_argnums=0, keep_unused=True)(x), X),
    "where": (lambda x: jnp.where(x > 0, jnp.where(x > 1, x, 0), jnp.where(x > 2, x, 0.0)), X),
    "constants": (lambda x: x + np.arange(4.0), X),
    "shared": (lambda x: shared()(x), X),
    "shared and long": (lambda x: shared(12)(x), X),
    "shared holding long": (nested_shared, ONE),
    "ten equations stay": (lambda x: call(sins(10), x), ONE),
    "eleven equations go in front": (lambda x: call(sins(11), x), ONE),
    "names in front that clash": (many_names, ONE),
    "names in front breadth first": (breadth_first, ONE),
    "a name like a letter": (lambda x: call(rename(sins(11), "c"), x), ONE),
    "scan": (lambda x: lax.scan(lambda c, a: (c + a, c * a), 0.0, x), X),
    "scan twice": (lambda x: [lax.scan(sins_step, x, None, length=n) for n in (2, 3)], ONE),
    "while": (lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1]), (0, x)), X),
    "cond": (lambda x: lax.cond(x > 0, jnp.sin, jnp.cos, x), ONE),
    "cond with one branch twice": (lambda x: lax.cond(x > 0, jnp.sin, jnp.sin, x), ONE),
    "cond with long branches": (lambda x: lax.cond(x > 0, sins(11), sins(12), x), ONE),
    "switch": (lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, lambda x: x], x), 1, X),
    "custom rules": (lambda x: customised()(x), X),
    "custom rules under jit": (lambda x: call(customised(), x), X),
    "checkpoint": (checkpointed, X),
    "checkpoint under grad": (lambda x: jax.grad(checkpointed)(x), X),
    "scan under grad": (lambda x: jax.grad(lambda y: lax.scan(sins_step, y, X)[0])(x), ONE),
    "jit under vmap and grad": (lambda x: jax.vmap(jax.grad(jax.jit(lambda a: jnp.sin(a) * a)))(x), X),
    "dot": (lambda m: lax.dot(m, m, precision="highest") @ m, M),
    "gather": (lambda m, i: (m[i], m[i[0]], m.at[i].set(0.0), m.at[i].add(1.0)), M, I2),
    "convolution": (lambda m: lax.conv(m, m, (1, 1), "SAME"), np.ones((1, 1, 3, 3), "f4")),
    "sort": (lambda m: (jnp.sort(m), lax.sort((m, m), num_keys=2), jnp.argmax(m, 0)), M),
    "keys": (lambda k: jax.random.normal(jax.random.wrap_key_data(k), (3,)), np.zeros(2, np.uint32)),
    "many operands": (lambda *xs: sum(xs), *[M] * 60),
    "three-letter names": (lambda x: sins(800)(x), ONE),
    "no equations on many lines": (lambda *xs: xs, *[ONE] * 40),
    "operands over several lines": (concatenated(70, 3, 3),),
    "state": (lambda: reads(jax.new_ref(X)),),
    "a function among the parameters": (lambda x: jax.pure_callback(lambda x: x, x, x), X),
    "jaxprs in a named tuple": (jax and jnp.linalg.inv, M),
    "meshes and sharding": (sharded, X),
    "effects": (effects, X),
}


def sins_step(c, a):
    return jnp.sin(c) * (1.0 if a is None else a), None


def copied(closed):
    return Copier().jaxpr(closed.jaxpr)


@oracle
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_prints_as_in_jax(name):
    f, *args = PROGRAMS[name]
    closed = jax.make_jaxpr(f)(*args)
    assert show.jaxpr_text(copied(closed)) == str(closed)


@oracle
@pytest.mark.parametrize("name", [n for n in PROGRAMS if n != "effects"])
def test_a_program_prints_without_types_as_in_jax(name):
    f, *args = PROGRAMS[name]
    closed = jax.make_jaxpr(f)(*args)
    options = {"print_shapes": False, "print_effects": "state" not in name}
    assert show.jaxpr_text(copied(closed), **options) == closed.pretty_print(**options)


ALONE = ["where", "scan", "custom rules under jit", "shared and long", "jit with a dropped result"]


@oracle
@pytest.mark.parametrize("name", ALONE)
def test_each_equation_prints_alone_as_in_jax(name):
    f, *args = PROGRAMS[name]
    closed = jax.make_jaxpr(f)(*args)
    for theirs, ours in zip(closed.eqns, copied(closed).eqns, strict=True):
        assert show.eqn_text(ours) == str(theirs)


@oracle
@pytest.mark.parametrize("name", ["where", "gather", "shared and long", "dot"])
def test_without_rules_all_parameters_are_printed_as_in_jax(name):
    f, *args = PROGRAMS[name]
    closed = jax.make_jaxpr(f)(*args)
    options = {"custom_pp_eqn_rules": False}
    assert show.jaxpr_text(copied(closed), **options) == closed.pretty_print(**options)


@oracle
@pytest.mark.parametrize("length", [*range(1, 60, 3), *range(60, 100)])
def test_lines_break_where_jax_breaks_them(length):
    def f(x, y):
        inner = rename(lambda a, b: (a + b, a), "n" * length)
        return call(inner, x, y), call(lambda a: a * 2, jnp.concatenate([x] * length))

    closed = jax.make_jaxpr(f)(X, X)
    ours = copied(closed)
    for options in ({}, {"print_shapes": False}):
        assert show.jaxpr_text(ours, **options) == closed.pretty_print(**options)


@oracle
def test_name_stacks_are_printed_to_the_right_as_in_jax():
    closed = jax.make_jaxpr(scoped)(X)
    short = jax.make_jaxpr(lambda x: jnp.sin(x) * 2)(ONE)
    for program in (closed, short):
        assert show.jaxpr_text(copied(program), name_stack=True) == program.pretty_print(name_stack=True)


@oracle
def test_effects_are_printed_as_in_jax():
    closed = jax.make_jaxpr(lambda x: effects(x))(X)
    assert show.jaxpr_text(copied(closed), print_effects=True) == closed.pretty_print(print_effects=True)
    state = jax.make_jaxpr(lambda r: (r[...],))(jax.new_ref(X))
    assert show.jaxpr_text(copied(state), print_effects=True) == state.pretty_print(print_effects=True)


def unary(name, operand, result, **params):
    return JaxprEqn([operand], [result], Stand(name), params, frozenset(), None, EMPTY)


def test_sources_are_printed_to_the_right(monkeypatch):
    monkeypatch.setattr(show.source, "summary", lambda info, **_: "prog.py:3:1 (f)")
    x, y = Var(F32), Var(F32)
    text = show.jaxpr_text(Jaxpr([], [x], [y], [unary("sin", x, y)]), source_info=True, name_stack=True)
    first = "{ lambda ; a:f32[]. let b:f32[] = sin a in (b,) }"
    assert text == f"{first} # prog.py:3:1 (f)\n{' ' * len(first)} # []"


def test_an_equation_may_show_itself():
    class Swap(Stand):
        def show_eqn(self, eqn, name):
            return f"{name(eqn.outvars[0], True)} <- {name(eqn.invars[0])}"

    x, y = Var(F32), Var(F32)
    eqn = JaxprEqn([x], [y], Swap("swap"), {"tree": 1}, frozenset(), None, EMPTY)
    assert show.eqn_text(eqn) == "a:f32[] <- b"
    text = show.jaxpr_text(Jaxpr([], [x], [y], [eqn]), print_shapes=False)
    assert text == "{ lambda ; a. let b <- a in (b,) }"


def test_sets_print_in_order_and_addresses_are_hidden():
    x, y = Var(F32), Var(F32)
    eqn = unary("p", x, y, axes=frozenset("zyx"), empty=frozenset(), f=[object()], jaxprs=())
    assert show.eqn_text(eqn).splitlines()[1:5] == [
        "  axes=frozenset({'x', 'y', 'z'})",
        "  empty=frozenset({})",
        "  f=[<object object at 0xXXXXXXXXXXXX>]",
        "  jaxprs=()",
    ]


def chain(n):
    vs = [Var(F32) for _ in range(n + 1)]
    return Jaxpr([], vs[:1], vs[-1:], [unary("sin", a, b) for a, b in zip(vs, vs[1:], strict=False)])


def test_deep_programs_print():
    jaxpr = chain(1)
    for _ in range(1000):
        x, y = Var(F32), Var(F32)
        params = {"name": "f", "jaxpr": ClosedJaxpr(jaxpr)}
        jaxpr = Jaxpr([], [x], [y], [JaxprEqn([x], [y], Jit("jit"), params, frozenset(), None, EMPTY)])
    text = show.jaxpr_text(jaxpr)
    assert text.count("jit[") == 1000 and text.count("b:f32[] = sin a") == 1


def test_the_time_to_print_grows_with_the_length():
    def seconds(n):
        jaxpr = chain(n)
        gc.collect()
        start = time.process_time()
        assert show.jaxpr_text(jaxpr).count("\n") == n + 1
        return time.process_time() - start

    small = seconds(4_000)
    assert seconds(40_000) < 40 * small + 1
