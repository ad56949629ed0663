"""Primitives that users define, and rules that they read or replace, under each transformation."""

import functools
import itertools

import compare
import numpy as np
import pytest
import transform_matrix
from jaxlib.mlir.dialects import stablehlo as hlo

X = np.array([0.5, -1.5, 2.0], np.float32)
Y = np.array([[1.0, 2.0, 0.5], [-1.0, 3.0, 4.0]], np.float32)


def multiply_add(jax, interpreters, extend):
    """The primitive of the guide to jax's primitives, with all its rules."""
    ad, batching, mlir = interpreters.ad, interpreters.batching, interpreters.mlir
    p = extend.core.Primitive("multiply_add")

    def prim(x, y, z):
        return p.bind(x, y, z)

    @p.def_impl
    def impl(x, y, z):
        return np.add(np.multiply(x, y), z)

    @p.def_abstract_eval
    def abstract_eval(xs, ys, zs):
        assert xs.shape == ys.shape == zs.shape
        return jax.core.ShapedArray(xs.shape, xs.dtype)

    mlir.register_lowering(p, lambda ctx, x, y, z: [hlo.AddOp(hlo.MulOp(x, y), z).result], platform="cpu")

    def value_and_jvp(primals, tangents):
        (x, y, z), (xt, yt, zt) = primals, map(ad.instantiate_zeros, tangents)
        return prim(x, y, z), prim(xt, y, prim(x, yt, zt))

    def transpose(ct, x, y, z):
        zeros = lambda v: jax.lax.full_like(v, 0)  # noqa: E731
        if not ad.is_undefined_primal(x):
            assert ad.is_undefined_primal(y)
            return None, ad.Zero(y.aval) if type(ct) is ad.Zero else prim(x, ct, zeros(x)), ct
        assert not ad.is_undefined_primal(y)
        return ad.Zero(x.aval) if type(ct) is ad.Zero else prim(ct, y, zeros(y)), None, ct

    def batch(args, axes):
        assert axes[0] == axes[1] == axes[2]
        return prim(*args), axes[0]

    ad.primitive_jvps[p] = value_and_jvp
    ad.primitive_transposes[p] = transpose
    batching.primitive_batchers[p] = batch
    return prim


def square_add(jax, interpreters, extend):
    prim = multiply_add(jax, interpreters, extend)
    return lambda a, b: prim(a, a, b)


def swapped(jax, jnp, interpreters, extend):
    """Two results, lowered by tracing a function with a parameter."""
    ad, batching, mlir = interpreters.ad, interpreters.batching, interpreters.mlir
    p = extend.core.Primitive("swapped")
    p.multiple_results = True
    fun = lambda x, y, *, scale: [y * scale, jnp.sin(x)]  # noqa: E731
    p.def_impl(fun)
    p.def_abstract_eval(lambda x, y, *, scale: [y, x])
    mlir.register_lowering(p, mlir.lower_fun(fun, multiple_results=True))

    def rule(primals, tangents, **params):
        x, y = primals
        dx, dy = tangents
        pushed = [
            ad.Zero(jax.typeof(y)) if type(dy) is ad.Zero else dy * params["scale"],
            ad.Zero(jax.typeof(x)) if type(dx) is ad.Zero else dx * jnp.cos(x),
        ]
        return p.bind(*primals, **params), pushed

    ad.primitive_jvps[p] = rule
    batching.primitive_batchers[p] = lambda args, dims, **ps: (p.bind(*args, **ps), [dims[1], dims[0]])
    return lambda x, y: p.bind(x, y, scale=3.0)


def by_jvps(second):
    def program(jax, jnp, interpreters, extend):
        """`defjvp` or `defjvp2`, vectorised as an operation that broadcasts."""
        p = extend.core.Primitive("product")
        p.def_impl(lambda x, y: jnp.multiply(x, y))
        p.def_abstract_eval(lambda x, y: jax.core.ShapedArray(np.broadcast_shapes(x.shape, y.shape), x.dtype))
        interpreters.mlir.register_lowering(p, interpreters.mlir.lower_fun(jnp.multiply, False))
        if second:
            interpreters.ad.defjvp2(p, lambda t, ans, x, y: t * y, lambda t, ans, x, y: t * ans)
        else:
            interpreters.ad.defjvp(p, lambda t, x, y: t * y, None)
        interpreters.batching.defbroadcasting(p)
        return p.bind

    return program


def linear(two):
    def program(jax, jnp, interpreters, extend):
        """`deflinear` or `deflinear2` of an elementwise operation with a parameter."""
        p = extend.core.Primitive("scaled")
        p.def_impl(lambda x, by: x * by)
        p.def_abstract_eval(lambda x, by: x)
        interpreters.mlir.register_lowering(p, interpreters.mlir.lower_fun(lambda x, by: x * by, False))
        if two:
            interpreters.ad.deflinear2(p, lambda ct, x, by: [p.bind(ct, by=by)])
        else:
            interpreters.ad.deflinear(p, lambda ct, by: [p.bind(ct, by=by)])
        interpreters.batching.defvectorized(p)
        return lambda x: jnp.sin(p.bind(x, by=2.0))

    return program


def bilinear(jax, jnp, interpreters, extend):
    p = extend.core.Primitive("times")
    p.def_impl(lambda x, y: x * y)
    p.def_abstract_eval(lambda x, y: x)
    interpreters.mlir.register_lowering(p, lambda ctx, x, y: [hlo.multiply(x, y)])
    interpreters.ad.defbilinear(p, lambda ct, x, y: p.bind(ct, y), lambda ct, x, y: p.bind(x, ct))
    interpreters.batching.defvectorized(p)
    return p.bind


def reduction(jax, jnp, interpreters, extend):
    p = extend.core.Primitive("total")
    p.def_impl(lambda x, axes: jnp.sum(x, axes))
    p.def_abstract_eval(
        lambda x, axes: jax.core.ShapedArray(tuple(d for i, d in enumerate(x.shape) if i not in axes), x.dtype)
    )
    interpreters.mlir.register_lowering(
        p, interpreters.mlir.lower_fun(lambda x, axes: jnp.sum(x, tuple(map(int, axes))), False)
    )
    interpreters.batching.defreducer(p)
    return lambda x: p.bind(x, axes=(0,))


CASES = [
    compare.Case("multiply_add", square_add, (X, X[::-1].copy())),
    compare.Case("multiply_add_scalar", square_add, (np.float32(2.0), np.float32(10.0))),
    compare.Case("swapped", swapped, (X, X + 1)),
    compare.Case("defjvp", by_jvps(False), (X, X + 1)),
    compare.Case("defjvp2", by_jvps(True), (X, X + 1)),
    compare.Case("deflinear", linear(False), (X,)),
    compare.Case("deflinear2", linear(True), (X,)),
    compare.Case("defbilinear", bilinear, (X, X + 1)),
    compare.Case("defreducer", reduction, (X,)),
]


@pytest.mark.parametrize("case", transform_matrix.matrix(CASES))
def test_a_users_primitive_under_each_transformation(case, tier):
    compare.check(case, tier)


EAGER = [
    compare.Case("multiply_add", square_add, (2.0, 10.0)),
    compare.Case(
        "grad", lambda jax, interpreters, extend: jax.grad(square_add(jax, interpreters, extend)), (2.0, 10.0)
    ),
    compare.Case(
        "jvp",
        lambda jax, interpreters, extend: (
            lambda x, y: jax.jvp(square_add(jax, interpreters, extend), (x, y), (1.0, 1.0))
        ),
        (2.0, 10.0),
    ),
    compare.Case("vmap", lambda jax, interpreters, extend: jax.vmap(square_add(jax, interpreters, extend)), (X, X)),
    compare.Case("swapped", swapped, (X, X)),
]


@pytest.mark.parametrize("case", EAGER, ids=lambda case: case.name)
def test_outside_of_jit_the_users_implementation_runs(case):
    compare.check_eager(case)


def mixed(in_axes):
    def program(jax, jnp, interpreters, extend):
        return jax.vmap(by_jvps(True)(jax, jnp, interpreters, extend), in_axes)

    return program


@pytest.mark.parametrize(
    ("in_axes", "args"),
    [((0, None), (Y, X)), ((None, 1), (X, Y.T.copy())), ((1, 0), (Y, Y.T.copy())), ((1, 0), (Y, X)),
     ((0, None), (Y, np.float32(2.0))), ((0, 0), (X, Y.T.copy())), ((1, 1), (Y, Y))],
)  # fmt: skip
def test_operands_that_broadcast_are_mapped_along_any_axes(in_axes, args):
    compare.check(compare.Case(f"defbroadcasting-{in_axes}", mixed(in_axes), args))


def test_broadcasting_helpers_insert_the_axis_at_the_given_position():
    def program(jax, interpreters):
        b = interpreters.batching
        return lambda x: (b.bdim_at_front(x, 1, 3), b.bdim_at_front(x, None, 4), b.broadcast(x, 3, 1, None))

    # jax writes the dimensions as NumPy integers.
    compare.sweep([compare.Case("helpers", program, (Y,))], jaxpr=False)


# ---- rules that hear of the axis ---------------------------------------------------------------------


def scaled_by_axis(table):
    def program(jax, jnp, interpreters, extend):
        p = extend.core.Primitive("scaled_by_axis")
        p.def_impl(lambda x: x)
        p.def_abstract_eval(lambda x: x)
        interpreters.mlir.register_lowering(p, interpreters.mlir.lower_fun(lambda x: x, False))

        def fancy(axis, args, dims):
            return args[0] * axis.size, dims[0]

        def named(size, name, _, args, dims):
            return args[0] * size + (1.0 if name == "i" else 0.0), dims[0]

        rules = {"fancy_primitive_batchers": fancy, "axis_primitive_batchers": named}
        getattr(interpreters.batching, table)[p] = rules[table]
        return jax.vmap(lambda x: (p.bind(x), p.bind(2.0), x), axis_name="i")

    return program


@pytest.mark.parametrize("table", ["fancy_primitive_batchers", "axis_primitive_batchers"])
def test_a_rule_that_hears_of_the_axis_is_called_for_unmapped_operands_too(table):
    compare.check(compare.Case(table, scaled_by_axis(table), (X,)))
    compare.check_eager(compare.Case(table, scaled_by_axis(table), (X,)))


# ---- tables ------------------------------------------------------------------------------------------


def same(program):
    ours, theirs = compare.both(program)
    assert ours == theirs


def test_the_rules_of_built_in_primitives_can_be_called():
    def program(jax, interpreters):
        ad, lax, aval = interpreters.ad, jax.lax, jax.typeof(np.float32(1.0))
        unknown = ad.UndefinedPrimal(aval)
        return [
            ad.primitive_jvps[lax.neg_p]((np.float32(1),), (np.float32(2),)),
            ad.primitive_transposes[lax.neg_p](np.float32(3), unknown),
            ad.primitive_jvps[lax.add_p]((np.float32(1), np.float32(2)), (np.float32(3), np.float32(4))),
            ad.primitive_transposes[lax.sub_p](np.float32(3), unknown, unknown),
            ad.get_primitive_transpose(lax.neg_p)(np.float32(3), unknown),
        ]

    compare.same(program)


@pytest.mark.usefixtures("every_object")
def test_tables_tell_which_primitives_have_rules():
    def program(jax, interpreters, extend):
        ad, lax = interpreters.ad, jax.lax
        new = extend.core.Primitive("new")
        answers = [p in ad.primitive_jvps for p in (lax.sin_p, lax.floor_p, lax.scan_p, new)]
        answers += [p in ad.primitive_transposes for p in (lax.sin_p, lax.neg_p, lax.mul_p, new)]
        ad.primitive_jvps[new] = rule = lambda primals, tangents: None
        answers += [new in ad.primitive_jvps, ad.primitive_jvps[new] is rule]
        del ad.primitive_jvps[new]
        answers += [new in ad.primitive_jvps, ad.primitive_jvps.get(new), lax.sin_p in list(ad.primitive_jvps)]
        return answers

    same(program)


@pytest.mark.parametrize("table", ["primitive_jvps", "primitive_transposes"])
def test_a_missing_rule_is_a_key_error(table):
    def program(extend, interpreters):
        return lambda: getattr(interpreters.ad, table)[extend.core.Primitive("new")]

    compare.same_refusal(program)


def test_a_rule_of_a_built_in_primitive_can_be_replaced_and_put_back():
    def program(jax, interpreters):
        jvps, sin_p = interpreters.ad.primitive_jvps, jax.lax.sin_p
        before = jvps[sin_p]
        jvps[sin_p] = lambda primals, tangents, **ps: (sin_p.bind(*primals, **ps), tangents[0] * 10)
        try:
            replaced = jax.jvp(lambda x: jax.lax.sin(x), (0.0,), (1.0,))
        finally:
            jvps[sin_p] = before
        return replaced, jax.jvp(lambda x: jax.lax.sin(x), (0.0,), (1.0,))

    compare.same(program)


def test_a_primitive_without_rules_names_the_missing_rule():
    def calls(jax, extend):
        p, q = extend.core.Primitive("bare"), extend.core.Primitive("typed")
        q.def_abstract_eval(lambda x: x)
        q.def_impl(lambda x: x)
        return [
            lambda: p.bind(1.0),
            lambda: jax.make_jaxpr(p.bind)(1.0),
            lambda: jax.jit(q.bind)(1.0),
            lambda: jax.grad(q.bind)(1.0),
            lambda: jax.jvp(q.bind, (1.0,), (1.0,)),
            lambda: jax.vmap(q.bind)(X),
            lambda: jax.linear_transpose(q.bind, 1.0)(1.0),
            lambda: q.bind(None),
            lambda: q.bind([1.0]),
        ]

    phrases = [
        "Evaluation rule for 'bare' not implemented",
        "Abstract evaluation for 'bare'",
        "MLIR translation rule for primitive 'typed' not found for platform cpu",
        "Differentiation rule for 'typed'",
        "Differentiation rule for 'typed'",
        "Batching rule for 'typed'",
        "Transpose rule (for reverse-mode differentiation) for 'typed'",
        "typed",
        "at position 0",
    ]
    for ours, theirs, phrase in zip(*compare.both(calls), phrases, strict=True):
        compare.same_error(ours, theirs, phrases=[phrase])


def test_the_properties_of_a_new_primitive():
    def program(jax, extend):
        p = extend.core.Primitive("mine")
        p.def_effectful_abstract_eval(lambda x, *, n: (x, set()))
        aval, effects = p.abstract_eval(jax.typeof(X), n=2)
        return [
            repr(p),
            p.name,
            p.multiple_results,
            p.call_primitive,
            p.get_bind_params({"n": 1}),
            str(aval),
            effects,
            isinstance(jax.lax.sin_p, extend.core.Primitive),
            isinstance(extend.core.CallPrimitive("c"), extend.core.Primitive),
        ]

    same(program)


def test_an_operation_with_an_effect_is_kept_and_named():
    def program(jax, interpreters, extend):
        class Noise(extend.core.Effect):
            __hash__ = object.__hash__

            def __str__(self):
                return "Noise"

        noise = Noise()
        p = extend.core.Primitive("noisy")
        p.multiple_results = True
        p.def_effectful_abstract_eval(lambda x: ([], {noise}))

        def f(x):
            p.bind(x)
            return x

        jaxpr = jax.make_jaxpr(f)(1.0)
        return str(jaxpr), jaxpr.effects == {noise}, jaxpr.eqns[0].effects == {noise}, len(jaxpr.eqns)

    same(program)


def test_results_that_are_not_used_are_dropped_by_a_users_rule():
    def program(jax, extend, interpreters):
        pe = interpreters.partial_eval
        p = extend.core.Primitive("pair")
        p.multiple_results = True
        p.def_abstract_eval(lambda x, y: [x, y])

        def rule(used, eqn):
            kept = lambda xs: [x for x, u in zip(xs, used, strict=True) if u]  # noqa: E731
            return list(used), eqn.replace(invars=kept(eqn.invars), outvars=kept(eqn.outvars))

        pe.dce_rules[p] = rule
        jaxpr = jax.make_jaxpr(p.bind)(1.0, 2).jaxpr
        return [str(x) for x in pe.dce_jaxpr(jaxpr, [False, True])]

    same(program)


def test_undefined_primals_and_zeros_hold_no_leaves():
    def program(jax, interpreters):
        ad, aval = interpreters.ad, jax.typeof(np.float32(1.0))
        zero, unknown = ad.Zero(aval), ad.UndefinedPrimal(aval)
        leaves = jax.tree_util.tree_leaves
        back = jax.tree_util.tree_map(lambda x: x, zero)
        return [str(unknown), str(zero), leaves([unknown, zero]), type(back) is ad.Zero, back.aval == aval,
                float(zero.instantiate()), float(ad.instantiate_zeros(zero)), ad.add_tangents(zero, 3.0),
                float(ad.add_tangents(3.0, 4.0)), float(ad.zeros_like_aval(aval)),
                float(ad.add_jaxvals(1.0, 2.0))]  # fmt: skip

    same(program)


def test_apply_primitive_compiles_and_runs_an_operation():
    def program(jax, interpreters, extend):
        p = extend.core.Primitive("negated")
        p.def_impl(functools.partial(interpreters.xla.apply_primitive, p))
        p.def_abstract_eval(lambda x: x)
        interpreters.mlir.register_lowering(p, lambda ctx, x: [hlo.negate(x)])
        return p.bind(X), interpreters.xla.apply_primitive(jax.lax.neg_p, X)

    compare.same(program)


CALLS = {
    "a jaxpr": ("dce_jaxpr_call_rule", lambda closed: closed.jaxpr),
    "a closed jaxpr": ("dce_jaxpr_closed_call_rule", lambda closed: closed),
}


@pytest.mark.parametrize(("rule", "held"), CALLS.values(), ids=CALLS)
def test_results_of_users_calls_that_are_not_used_are_dropped(rule, held):
    def program(jax, jnp, interpreters, extend):
        pe, p = interpreters.partial_eval, extend.core.Primitive("called")
        p.multiple_results = True
        p.def_abstract_eval(
            lambda *avals, call_jaxpr: [v.aval for v in getattr(call_jaxpr, "jaxpr", call_jaxpr).outvars]
        )
        dce = pe.dce_rules[p] = getattr(pe, rule)
        closed = jax.make_jaxpr(lambda x, y: (jnp.sin(x), x * y, y + 1.0))(1.0, 2.0)
        whole = jax.make_jaxpr(lambda x, y: p.bind(x, y, call_jaxpr=held(closed)))(1.0, 2.0).jaxpr
        wanted = itertools.product((False, True), repeat=3)
        unused = dce([False] * 3, whole.eqns[0])
        return [str(pe.dce_jaxpr(whole, list(used))) for used in wanted], unused

    same(program)


def splitting(way):
    """A differentiated checkpoint around a primitive whose rule selects its saved residuals."""

    def program(jax, jnp, interpreters, extend):
        p, told = extend.core.Primitive("wave"), []
        p.def_abstract_eval(lambda x: x)
        p.def_impl(jnp.sin)
        interpreters.mlir.register_lowering(p, interpreters.mlir.lower_fun(jnp.sin, False))
        interpreters.ad.defjvp(p, lambda t, x: t * jnp.cos(x))
        rules = interpreters.partial_eval.partial_eval_jaxpr_custom_rules

        def rule(saveable, unknown, there, eqn):
            told.append((callable(saveable), unknown, there, str(eqn.primitive)))
            if any(unknown):
                return None, eqn, [True], [True], []
            return (eqn, None, [False], [False], []) if way == "saved" else (eqn, eqn, [False], [True], [])

        rules[p] = rule
        f = jax.checkpoint(lambda x: jnp.cos(p.bind(x * x)))
        grad = jax.grad(lambda x: f(x) * 2.0)
        return str(jax.make_jaxpr(grad)(1.0)), grad(1.0), told, p in rules, rules[p] is rule

    return program


@pytest.mark.parametrize("way", ["saved", "again"])
def test_a_users_rule_selects_what_a_checkpoint_saves(way):
    compare.same(splitting(way))


def test_rules_of_checkpoints_can_be_read_and_removed():
    def program(jax, jnp, interpreters, extend):
        rules = interpreters.partial_eval.partial_eval_jaxpr_custom_rules
        p = extend.core.Primitive("wave")
        had = [q in rules for q in (jax.lax.sin_p, jax.lax.scan_p, jax.lax.cond_p, p)]
        rules[p] = lambda saveable, unknown, there, eqn: None
        del rules[p]
        eqn = jax.make_jaxpr(jax.jit(lambda x, y: (jnp.sin(x), y * 2.0)))(1.0, 2.0).eqns[0]
        known, late, unknown, there, saved = rules[eqn.primitive](
            lambda *_, **__: True, [False, True], [True, True], eqn
        )
        return had, p in rules, list(map(bool, unknown)), str(known.primitive), str(late.primitive)

    same(program)


@pytest.mark.parametrize("multiple", [False, True])
@pytest.mark.parametrize(
    "run",
    [
        lambda jax, f: jax.jit(f)(X),
        lambda jax, f: jax.jit(jax.vmap(f))(X),
        lambda jax, f: jax.lax.scan(lambda c, _: (f(c), None), X, None, length=2),
        lambda jax, f: jax.lax.cond(True, f, lambda x: x, X),
        lambda jax, f: jax.vmap(jax.jit(f))(X),
        lambda jax, f: jax.make_jaxpr(f)(X),
        lambda jax, f: jax.eval_shape(f, X),
    ],
)
def test_rules_of_types_run_once(run, multiple):
    def program(jax, extend):
        count = itertools.count()

        def rule(x):
            next(count)
            return [x] if multiple else x

        p = extend.core.Primitive("counted")
        p.multiple_results = multiple
        p.def_abstract_eval(rule)

        def batched(args, dims):
            return p.bind(*args), dims if multiple else dims[0]

        jax.interpreters.batching.primitive_batchers[p] = batched
        lowering = jax.interpreters.mlir.lower_fun(lambda x: [2 * x] if multiple else 2 * x, multiple_results=multiple)
        jax.interpreters.mlir.register_lowering(p, lowering)
        run(jax, lambda x: p.bind(x)[0] if multiple else p.bind(x))
        return next(count)

    compare.same(program)
