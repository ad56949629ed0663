"""Values of types that users define, in programs and under transformations, compared with jax."""

import hi_types
import mesh_language
import pytest
from given import given
from mesh_language import numbers

import minijax

GIVEN = {"pairs": hi_types.pairs, "boxes": hi_types.boxes, "rules": hi_types.rules, "grown": lambda s: _grown(s)}
GIVEN["double"] = lambda s: _double(s)
GIVEN["bent"] = lambda s: _bent(s)


def _double(s):
    """The pair with its first part doubled."""
    pairs = hi_types.pairs(s)
    return lambda p: pairs.make(pairs.first(p) * 2, pairs.second(p))


def _grown(s):
    """A pair after three steps that multiply its first part."""
    pairs, double = hi_types.pairs(s), _double(s)
    return lambda p: s.lax.scan(lambda c, _: (double(c), pairs.first(c)), p, None, length=3)


def _bent(s):
    """Functions of pairs with derivatives of their own: of tangents."""
    pairs = hi_types.pairs(s)
    bent = s.jax.custom_jvp(lambda p: pairs.first(p) * 3)
    bent.defjvp(lambda primals, tangents: (bent(*primals), pairs.first(*tangents) * 4))
    return bent


PROGRAMS = """
jaxpr(double, pairs.p)
jaxpr(jax.jit(double), pairs.p)
jax.jit(double)(pairs.p)
double(pairs.p)
text(double, pairs.p)
text(lambda p: 3.0, pairs.p)
text(lambda p, q: (q, p), pairs.p, pairs.Pair(numbers(2), numbers(3)))
text(jax.jit(double, donate_argnums=0), pairs.p)
jax.jit(double).lower(pairs.p).compile()(pairs.p)
jax.jit(double).lower(pairs.p).in_avals
jax.jit(double).lower(pairs.p).out_info
str(jax.jit(double).lower(pairs.p).args_info)
jax.jit(double).trace(pairs.p).lojax.jaxpr
jax.jit(double).trace(pairs.p).out_info == jax.typeof(pairs.p)
jax.jit(lambda t: {"k": double(t["a"]), "n": t["b"]})({"a": pairs.p, "b": 2.0})
jax.jit(lambda x: pairs.make(x, x + 1))(1.0)
jaxpr(lambda: pairs.first(pairs.p))
jaxpr(jax.jit(lambda x: pairs.first(pairs.p) + x), 1.0)
jaxpr(lambda p: p.swapped(), pairs.p)
jaxpr(lambda p: (p + 1, p[1], p.total), pairs.p)
jax.jit(lambda p: p.swapped())(pairs.p)
(jax.typeof(pairs.p).str_short(), jax.typeof(pairs.p).is_high, jax.make_jaxpr(double)(pairs.p).jaxpr.is_high)
(jax.make_jaxpr(jnp.sin)(1.0).is_high, jax.make_jaxpr(lambda x: pairs.first(pairs.make(x, x)))(1.0).jaxpr.is_high)
jax.eval_shape(lambda p: p, pairs.p) == jax.typeof(pairs.p)
jax.tree.leaves([pairs.p, pairs.p])
jaxpr(jax.grad(lambda p: pairs.first(p).sum() * 2 + pairs.second(p).sum()), pairs.p)
jax.grad(lambda p: pairs.first(p).sum() * 2 + pairs.second(p).sum())(pairs.p)
jax.grad(jax.jit(lambda p: pairs.first(double(p)).sum()))(pairs.p)
jax.grad(lambda x: pairs.first(pairs.make(x, x)).sum() + (pairs.second(pairs.make(x, x)) ** 2).sum())(numbers(3))
jax.grad(lambda x, p: x * pairs.second(p).sum(), 0)(2.0, pairs.p)
jax.jvp(double, (pairs.p,), (pairs.p,))
jaxpr(lambda p: jax.jvp(double, (p,), (p,)), pairs.p)
jax.vjp(double, pairs.p)[1](pairs.p)
jax.linearize(double, pairs.p)[1](pairs.p)
jaxpr(jax.grad(jax.remat(lambda p: jnp.sin(pairs.first(p)).sum())), pairs.p)
grown(pairs.p)
jax.jit(grown)(pairs.p)
lax.scan(lambda c, x: (c, double(x)), 1.0, pairs.Pair(numbers(4, 3), numbers(4)), length=4)
lax.scan(lambda c, x: (c + pairs.second(x), x), 1.0, pairs.Pair(numbers(4, 3), numbers(4)), length=4, reverse=True)
lax.cond(True, double, lambda p: p, pairs.p)
jax.jit(lambda b, p: lax.cond(b, double, lambda p: p, p))(False, pairs.p)
lax.while_loop(lambda p: pairs.first(p).sum() < 20, double, pairs.p)
jaxpr(lambda p: lax.while_loop(lambda p: pairs.first(p).sum() < 20, double, p), pairs.p)
lax.fori_loop(0, 3, lambda i, p: double(p), pairs.p)
jax.jit(lambda p: pairs.first(jax.new_ref(p)[...]))(pairs.p)
jaxpr(lambda p: pairs.first(jax.new_ref(p)[...]), pairs.p)
bent(pairs.p)
jaxpr(lambda p: bent(p), pairs.p)
jax.grad(lambda p: bent(p).sum())(pairs.p)
jax.jit(jax.grad(lambda p: bent(p).sum()))(pairs.p)
"""


def test_programs_of_immutable_values():
    mesh_language.same(PROGRAMS, **GIVEN)


BOXES = """
boxes.after(boxes.added)
boxes.after(jax.jit(boxes.added), calls=3)
jaxpr(boxes.added, boxes.Box(1.0))
jaxpr(jax.jit(boxes.added), boxes.Box(1.0))
text(boxes.added, boxes.Box(1.0), 2.0)
jax.eval_shape(lambda b: (b, jnp.ones(3)), boxes.Box(1.0))[0] == jax.typeof(boxes.Box(1.0))
jax.jit(lambda b: b).trace(boxes.Box(1.0)).out_info == jax.typeof(boxes.Box(1.0))
boxes.after(lambda b: jax.jit(lambda x: boxes.added(b, x))(3.0), calls=2)
boxes.after(lambda b: (lambda f: (f(), b.set(numbers(3)), f()))(jax.jit(lambda: boxes.added(b, b.get()))))
jaxpr(lambda x: boxes.added(boxes.new(x), x), 1.0)
jax.jit(lambda x: (lambda b: (boxes.added(b, x), b.get()))(boxes.new(x)))(3.0)
boxes.after(jax.jit(lambda b: b.set([b.get(), b.get()])))
boxes.after(jax.jit(lambda b: b.set(numbers(3)) or boxes.added(b)))
boxes.after(jax.jit(lambda b: jax.jit(lambda: b.set([1, 2]))() or boxes.added(b, [3])))
boxes.after(lambda b: jax.jit(boxes.added).lower(b, 2.0).compile()(b, 2.0))
boxes.after(lambda b: lax.scan(lambda c, _: (c + boxes.added(b, b.get()), None), 0.0, None, length=3))
boxes.after(jax.jit(lambda b: lax.scan(lambda c, x: (c + boxes.added(b, x), b.get()), 0.0, numbers(3))))
jaxpr(lambda b: lax.scan(lambda c, _: (boxes.added(b), None), 0.0, None, length=3), boxes.Box(1.0))
boxes.after(lambda b: lax.while_loop(lambda i: i < 3, lambda i: boxes.added(b) * 0 + i + 1, 0.0))
boxes.after(jax.jit(lambda b: lax.cond(b.get() > 0, lambda b: b.set(b.get() * 7), lambda b: None, b)))
boxes.after(lambda b: lax.cond(b.get() > 2, lambda: boxes.added(b), lambda: 1.0))
boxes.after(lambda b: jax.jvp(lambda x: boxes.added(b, lax.stop_gradient(x)) * x, (2.0,), (1.0,)))
boxes.after(lambda b: boxes.after(lambda d: jax.jvp(boxes.added, (b, 2.0), (d, 1.0))))
boxes.after(lambda b: boxes.after(lambda d: jax.jvp(jax.jit(boxes.added), (b, 2.0), (d, 1.0))))
boxes.after(lambda b: jax.grad(lambda x: boxes.added(b, lax.stop_gradient(x)) * x)(2.0))
boxes.after(jax.jit(lambda b: jax.grad(lambda x, b: boxes.added(b, lax.stop_gradient(x)) * x)(2.0, b)))
boxes.after(lambda b: jax.vmap(lambda x: x * boxes.new(2.0).get())(numbers(3)))
boxes.after(lambda b: b.set([pairs.p]) or jax.jit(lambda b: b.set([double(b.get()[0])]))(b), calls=2)
"""


def test_programs_of_values_that_change():
    mesh_language.same(BOXES, **GIVEN)


RULES = """
rules.vjp(3.0)
jaxpr(rules.vjp, 3.0)
jaxpr(lambda x: rules.vjp(x, n=2), 3.0)
jax.jit(rules.vjp)(numbers(3))
text(rules.vjp, numbers(3))
jax.jvp(rules.jvp, (3.0,), (1.0,))
jax.jit(lambda x: jax.jvp(rules.jvp, (x,), (1.0,)))(3.0)
jax.grad(rules.vjp)(3.0)
jaxpr(jax.grad(rules.vjp), 3.0)
jax.grad(rules.vjp, (0, 1))(3.0, 4.0)
jax.grad(rules.sums)(3.0, 4.0)
jax.grad(jax.jit(rules.sums), (0, 1))(3.0, 4.0)
jax.linearize(rules.lin, 3.0)[1](2.0)
jax.grad(jax.remat(rules.jvp))(3.0)
jax.vmap(rules.batch)(numbers(3))
jax.vmap(rules.dims)(numbers(3))
jax.vmap(rules.dims, 1, 1)(numbers(2, 3))
jax.vmap(jax.vmap(rules.dims))(numbers(2, 3))
jax.grad(lambda x: jax.vmap(rules.dims)(x).sum())(numbers(3))
jax.vmap(jax.grad(rules.dims))(numbers(3))
jax.jvp(jax.vmap(rules.dims), (numbers(3),), (numbers(3),))
jax.jvp(jax.vmap(rules.dims, 1, 1), (numbers(2, 3),), (numbers(2, 3),))
jax.grad(lambda x, y: jax.vmap(rules.dims, (1, None), 1)(x, y).sum(), (0, 1))(numbers(2, 3), numbers(2))
jax.grad(lambda x: lax.scan(lambda c, _: (rules.vjp(c), None), x, None, length=2)[0])(1.5)
jax.jit(jax.grad(lambda x: lax.cond(x > 0, rules.vjp, lambda x: x, x)))(1.5)
rules.square()(1.0) + rules.square(check=lambda self, *types: None)(2.0)
"""


def test_operations_with_rules():
    mesh_language.same(RULES, **GIVEN)


ERRORS = [
    ("jax.jvp(rules.vjp, (3.0,), (1.0,))", "for jvp support, subclass"),
    ("jax.grad(rules.square())(3.0)", "for grad support, subclass"),
    ("jax.vmap(rules.vjp)(numbers(3))", "must implement `batch` or `batch_dim_rule`"),
    ("rules.square(vjp_bwd=1, vjp_bwd_retval=2)(1.0)", "should not override both `vjp_bwd` and `vjp_bwd_retval`"),
    ("jax.vmap(lambda p: p)(pairs.p)", "which implies that its rank should be at least 1, but is only 0 (its shape is ())"),
    ("jax.vmap(lambda x: pairs.make(x, x))(numbers(3))", "Batching rule for 'make' not implemented"),
    ("jnp.sin(pairs.p)", "sin requires ndarray or scalar arguments, got"),
    ("jaxpr(lambda p: p - 1, pairs.p)", "has no attribute '_sub'"),
    ("jaxpr(lambda p: p.shape, pairs.p)", "has no attribute shape"),
    ("boxes.after(lambda b: lax.while_loop(lambda i: i < 3, lambda i: (b.set([b.get()]), i + 1)[1], 0))",
     "type-changing mutations not allowed in while_loop body"),
    ("boxes.after(lambda b: lax.scan(lambda c, x: (c, None), 0.0, (b, numbers(3))))", "scan got value with no leading axis to scan over: "),
    ("boxes.after(lambda b: lax.scan(lambda c, x: (c, None), 0.0, b, length=3))", "scan got value with no leading axis to scan over: "),
    ("jax.experimental.cur_qdd(1.0)", "has no attribute 'cur_qdd'"),
    ("jax.experimental.hijax.HiType().lo_ty()", "must override"),
    ("jax.experimental.hijax.MutableHiType().lo_ty()", "mutable hitypes should use lo_ty_qdd instead"),
]  # fmt: skip


def test_refused_calls():
    mesh_language.same_errors(ERRORS, **GIVEN)


# jax fails in these.
BEYOND = [
    lambda jax, pairs, grown: jax.grad(lambda p: pairs.first(grown(p)[0]).sum())(pairs.p),
    lambda jax, jnp, pairs: jax.grad(jax.remat(lambda p: jnp.sin(pairs.first(p)).sum()))(pairs.p),
    lambda jax, pairs: jax.jit(lambda x: pairs.first(pairs.p) + x)(1.0),
    lambda jax, boxes: boxes.after(lambda b: jax.remat(boxes.added)(b)),
    lambda jax, pairs, double: jax.remat(double)(pairs.p).a,
]


def test_programs_that_only_minijax_accepts():
    s = mesh_language.side("minijax")
    names = {**vars(s), **{name: GIVEN[name](s) for name in ("pairs", "boxes", "grown", "double")}}
    grown, cosines, sums, boxed, doubled = [given(call, names) for call in BEYOND]
    assert grown.a.tolist() == [8, 8, 8] and grown.b.tolist() == [0, 0]
    assert s.np.allclose(cosines.a, s.np.cos([0, 1, 2])) and sums.tolist() == [1, 2, 3] and boxed == ([2.0], 3.0)
    assert doubled.tolist() == [0, 2, 4]


def test_nests_where_users_types_exist():
    s = mesh_language.side("minijax")
    pairs, nested = GIVEN["pairs"](s), GIVEN["double"](s)
    for _ in range(200):
        nested = s.jax.jit(lambda p, f=nested: f(p))
    assert s.jax.make_jaxpr(nested)(pairs.p).jaxpr.is_high
    assert nested(pairs.p).a.tolist() == (pairs.p.a * 2).tolist()
    nested = lambda x: x  # noqa: E731
    for _ in range(200):
        nested = s.jax.jit(lambda x, f=nested: f(x) + 1)
    assert nested(3.0) == 203.0 and s.jax.grad(nested)(3.0) == 1.0


GIVEN["swap"] = lambda s: _swap(s)
GIVEN["cut"] = lambda s: hi_types.pairs(s).make(
    s.jax.device_put(numbers(8), s.P("x")), s.jax.device_put(numbers(3), s.P())
)


def _swap(s):
    """The parts of a pair swapped, by devices that have a part of the first each."""
    spec = hi_types.pairs(s).PairSpec
    ins, outs = spec((s.P("x"), s.P())), spec((s.P(), s.P("x")))
    return s.jax.jit(s.jax.shard_map(lambda p: p.swapped(), in_specs=ins, out_specs=outs))


def test_pairs_are_sharded_over_meshes():
    mesh_language.same("swap(cut)", "explicit", **GIVEN)
    s = mesh_language.side("minijax")
    with s.jax.set_mesh(s.explicit):  # jax adds up cotangents of other types here
        swap, cut = _swap(s), GIVEN["cut"](s)
        (back,) = s.jax.vjp(swap, cut)[1](swap(cut))
    assert [back.a.tolist(), back.b.tolist()] == [cut.a.tolist(), cut.b.tolist()]


def test_attributes_that_tracers_lack_keep_their_messages():
    hi_types.pairs(mesh_language.side("minijax"))
    with pytest.raises(AttributeError, match="'sharding' attribute is not available on traced array"):
        minijax.jit(lambda x: x.sharding)(1.0)
    with pytest.raises(AttributeError, match="object has no attribute 'nosuch'"):
        minijax.jit(lambda x: x.nosuch)(1.0)
    with pytest.raises(AttributeError, match="object has no attribute '__name__'"):
        minijax.jit(lambda x: x.__name__)(1.0)
