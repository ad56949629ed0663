"""The context of equations and their effects, shown: name stacks under transformations, and which effects are allowed."""

import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import lax
from minijax.ir import effects
from minijax.ir.context import JVP, NameStack, path


def test_a_transformation_is_printed_around_the_scope_that_follows_it():
    assert path(("outer", JVP, "inner", "leaf"), "sin") == "outer/jvp(inner)/leaf/sin"
    assert path((JVP,)) == "jvp()"
    assert str(NameStack(("a",)).transform("vmap").extend("b")) == "a/vmap(b)"


def test_equations_have_the_scopes_and_transformations_under_which_they_were_recorded():
    def program(x):
        with jax.named_scope("outer"):
            return jax.grad(lambda x: jnp.sin(jax.named_scope("inner")(jnp.cos)(x)))(x)

    eqns = jax.make_jaxpr(program)(1.0).eqns
    assert [(eqn.primitive.name, path(eqn.ctx.name_stack)) for eqn in eqns] == [
        ("cos", "outer/jvp(inner)"),
        ("sin", "outer/jvp(inner)"),
        ("sin", "outer/jvp()"),
        ("cos", "outer/jvp()"),
        ("mul", "outer/transpose(jvp())"),
        ("neg", "outer/transpose(jvp(inner))"),
        ("mul", "outer/transpose(jvp(inner))"),
    ]


def test_the_effects_of_a_jaxpr_are_those_of_its_equations():
    def prints(x):
        jax.debug.print("{}", x)
        return x

    assert str(jax.make_jaxpr(prints)(1.0).effects) == "frozenset({Debug})"
    assert str(jax.make_jaxpr(jax.jit(prints))(1.0).effects) == "frozenset({Debug})"
    assert jax.make_jaxpr(jnp.sin)(1.0).effects == frozenset()
    assert effects.join(frozenset(), {effects.IOEffect()}, {effects.IOEffect()}) == {effects.IOEffect()}


def test_effects_are_equal_by_class_and_those_of_named_axes_by_name():
    assert effects.IOEffect() == effects.IOEffect() != effects.OrderedIOEffect()
    assert effects.NamedAxisEffect("i") == effects.NamedAxisEffect("i") != effects.NamedAxisEffect("j")


class Unregistered(effects.Effect):
    pass


def test_an_effect_is_allowed_where_its_class_or_a_base_is_registered():
    registry = effects.EffectSet()
    registry.add_type(effects.IOEffect)
    derived = type("Derived", (effects.IOEffect,), {})()
    assert registry.filter_in([derived, Unregistered()]) == [derived]
    assert registry.filter_not_in([derived, Unregistered()]) == [Unregistered()]


def test_control_flow_refuses_an_effect_that_is_not_registered_for_it():
    from minijax.ir.primitive import Primitive

    effect_p = Primitive("unregistered")
    effect_p.def_effectful_abstract_eval(lambda aval: (aval, {Unregistered()}))
    with pytest.raises(NotImplementedError, match="Effects not supported in `scan`"):
        jax.make_jaxpr(lambda x: lax.scan(lambda c, _: (effect_p.bind(c), None), x, None, length=2))(1.0)
