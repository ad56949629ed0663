"""Exported programs with effects, on both sides."""

import re

import compare
import numpy as np
import pytest
from jaxlib.mlir.dialects import stablehlo as hlo

X = np.arange(3, dtype=np.float32)
pytestmark = pytest.mark.oracle


class _Side:
    """A primitive that doubles its operand, with an effect, and what is made with it."""

    def __init__(self, package):
        name = package.__name__
        load = lambda module: __import__(f"{name}.{module}", fromlist=["x"])  # noqa: E731
        effects = load("ir.effects" if name == "minijax" else "_src.effects")
        self.jax, self.jnp, self.export, self.lax = package, load("numpy"), load("export"), package.lax
        self.mlir = load("interpreters.mlir")

        class Named(effects.Effect):
            __str__ = __repr__ = lambda self: type(self).__name__
            __eq__ = lambda self, other: type(self) is type(other)  # noqa: E731
            __hash__ = lambda self: 1  # noqa: E731

        First, Second, Free = (type(name, (Named,), {}) for name in ("First", "Second", "Free"))

        class Argued(Named):
            def __init__(self, argument):
                pass

        class Unequal(Named):
            __eq__ = lambda self, other: self is other  # noqa: E731
            __hash__ = lambda self: id(self)  # noqa: E731

        ordered, free = (First, Second, Argued, Unequal), (Free,)
        for kind in (*ordered, *free):
            for registry in ("lowerable_effects", "control_flow_allowed_effects", "custom_derivatives_allowed_effects"):
                getattr(effects, registry).add_type(kind)
        for kind in ordered:
            effects.ordered_effects.add_type(kind)
        self.first, self.second, self.free, self.argued, self.unequal = First(), Second(), Free(), Argued(1), Unequal()
        self.double = load("extend.core").Primitive("double")
        self.double.def_effectful_abstract_eval(lambda aval, *, effect: (aval, {effect}))

        def lower(ctx, x, *, effect):
            if not isinstance(effect, free):
                token = hlo.after_all([ctx.tokens_in.get(effect)])
                ctx.set_tokens_out(self.mlir.TokenSet({effect: token}))
            return [hlo.add(x, x)]

        self.mlir.register_lowering(self.double, lower)

    def do(self, x, effect):
        return self.double.bind(x, effect=effect)


@pytest.fixture(scope="module")
def both():
    return [_Side(package) for package in (compare.ours(), compare.theirs())]


def mixed(s):
    inner = s.jax.jit(lambda x: s.do(x, s.second) + s.do(x, s.free))
    return lambda x: inner(x) + s.do(x, s.first) + s.do(x, s.second)


def by_platform(s):
    return lambda x: s.lax.platform_dependent(x, cpu=lambda x: s.do(x, s.first), default=lambda x: s.do(3 * x, s.first))


def _heads(text):
    """The first lines of `main` and of what it calls, without names of arguments."""
    lines = [line for line in text.splitlines() if "func.func" in line and ("@main" in line or "_wrapped" in line)]
    return [re.sub(r' loc\((#loc\d*|unknown|"[^"]*"(:\d+:\d+)?)\)', "", line) for line in lines]


@pytest.mark.parametrize(
    ("program", "options"),
    [(mixed, {}), (by_platform, dict(platforms=("tpu", "cpu"))), (mixed, dict(platforms=("cpu", "cuda")))],
)
def test_effects_go_where_the_program_goes(both, program, options):
    results = []
    for s in both:
        exported = s.export.export(s.jax.jit(program(s), donate_argnums=0), **options)(X)
        read = s.export.deserialize(exported.serialize())
        outer = s.export.export(s.jax.jit(lambda x, s=s, read=read: s.do(read.call(x), s.second)))(X)
        assert not re.search(r"return %arg\d+, ", exported.mlir_module()), "the token that comes after"
        facts = [[sorted(map(str, p.ordered_effects)), str(p.unordered_effects)] for p in (exported, read, outer)]
        again = s.export.deserialize(outer.serialize())
        values = [np.asarray(p.call(X)) for p in (exported, read, outer, again)]
        results.append([facts, _heads(exported.mlir_module()), _heads(outer.mlir_module())[:1], values])
    ours, theirs = results
    compare.same_value(ours[-1], theirs[-1])
    assert ours[:-1] == theirs[:-1]


@pytest.mark.parametrize(
    ("effect", "phrase"),
    [("argued", "must have a nullary constructor"), ("unequal", "nullary class constructor that produces an equal")],
)
def test_effects_that_cannot_be_made_again_are_refused(both, effect, phrase):
    for s in both:
        exported = s.export.export(s.jax.jit(lambda x, s=s: s.do(x, getattr(s, effect))))(X)
        with pytest.raises(NotImplementedError, match=phrase):
            exported.serialize()


def test_rules_may_be_overridden(both):
    for s in both:
        rules = ((s.lax.sin_p, lambda ctx, x, **_: [hlo.cosine(x)]),)
        for platforms in (("cpu",), ("tpu", "cpu")):
            inner = s.jax.jit(s.jnp.sin)
            f = s.jax.jit(lambda x, s=s, inner=inner: s.jnp.sin(x) + s.lax.map(inner, x))
            exported = s.export.export(f, platforms=platforms, _override_lowering_rules=rules)(X)
            np.testing.assert_allclose(exported.call(X), 2 * np.cos(X), rtol=1e-6)
            assert "stablehlo.sine" not in exported.mlir_module()
    np.testing.assert_allclose(both[0].jnp.sin(X), np.sin(X), rtol=1e-6)


def test_custom_calls_are_checked(both):
    for s in both:
        D = s.export.DisabledSafetyCheck
        call = s.export.export
        primitive = type(s.double)("calls")
        primitive.def_abstract_eval(lambda aval: aval)
        s.mlir.register_lowering(primitive, lambda ctx, x: hlo.CustomCallOp([x.type], [x], "nobodys_target").results)
        f = s.jax.jit(primitive.bind)
        with pytest.raises(
            ValueError, match="(?s)Cannot serialize code with custom calls whose targets .*nobodys_target"
        ):
            call(f)(X)
        for target in ("nobodys_target", "ALL"):
            exported = call(f, disabled_checks=[D.custom_call(target)])(X)
            assert "@nobodys_target" in exported.mlir_module()
            assert str(s.export.deserialize(exported.serialize()).disabled_safety_checks[0]) == f"custom_call:{target}"
        with pytest.raises(ValueError, match="nobodys_target"):
            call(f, disabled_checks=[D.custom_call("other"), D.platform()])(X)


def test_rules_hear_that_they_lower_for_export(both):
    for s in both:
        heard = []
        primitive = type(s.double)("hears")
        primitive.def_abstract_eval(lambda aval: aval)

        def lower(ctx, x, heard=heard):
            parameters = ctx.module_context.lowering_parameters
            heard.append((parameters.for_export, tuple(ctx.module_context.platforms)))
            return [x]

        s.mlir.register_lowering(primitive, lower)
        f = s.jax.jit(primitive.bind)
        f.lower(X)
        s.export.export(f, platforms=("tpu", "cpu"))(X)
        assert heard == [(False, ("cpu",)), (True, ("tpu", "cpu"))]
