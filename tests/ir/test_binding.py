"""A primitive of a user's, shown: what `bind` does with its rules, and the errors where a rule is missing."""

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.ir.primitive import Primitive


@pytest.fixture
def twice_p():
    primitive = Primitive("twice")
    primitive.calls = []

    @primitive.def_abstract_eval
    def infer(aval):
        primitive.calls.append("typed")
        return aval

    @primitive.def_impl
    def evaluate(x):
        primitive.calls.append("evaluated")
        return x * 2

    return primitive


def test_bind_evaluates_values_and_records_tracers(twice_p):
    assert twice_p.bind(jnp.float32(3)) == 6
    assert twice_p.calls == ["evaluated"]
    closed = jax.make_jaxpr(lambda x: twice_p.bind(twice_p.bind(x)))(1.0)
    assert str(closed) == "{ lambda ; a:f32[]. let b:f32[] = twice a; c:f32[] = twice b in (c,) }"
    # The second equation has the types and parameters of the first.
    assert twice_p.calls == ["evaluated", "typed"]


def test_types_are_inferred_once_for_equal_operands_and_parameters(twice_p):
    twice_p.def_abstract_eval(lambda aval, factor: twice_p.calls.append(factor) or aval)
    aval = jax.typeof(np.float32(1))
    for factor in (2, 2, 3):
        assert twice_p.typed([aval], {"factor": factor}) == ([aval], frozenset())
    assert twice_p.calls == [2, 3]


def test_a_missing_rule_is_named(twice_p):
    with pytest.raises(NotImplementedError, match="MLIR translation rule for primitive 'twice' not found"):
        jax.jit(twice_p.bind)(1.0)
    with pytest.raises(NotImplementedError, match="Differentiation rule for 'twice' not implemented"):
        jax.grad(twice_p.bind)(1.0)
    with pytest.raises(NotImplementedError, match="Batching rule for 'twice' not implemented"):
        jax.vmap(twice_p.bind)(jnp.ones(2))


def test_an_operand_that_is_not_a_value_is_named_by_its_position(twice_p):
    with pytest.raises(TypeError, match="passed to twice at position 0"):
        twice_p.bind("a")


def test_a_typing_rule_returns_a_list_if_there_are_multiple_results():
    pair_p = Primitive("pair")
    pair_p.multiple_results = True
    pair_p.def_abstract_eval(lambda aval: aval)
    with pytest.raises(ValueError, match="should return a tuple or a list if and only if"):
        jax.make_jaxpr(pair_p.bind)(1.0)
    pair_p.def_abstract_eval(lambda aval: (aval, aval))
    closed = jax.make_jaxpr(pair_p.bind)(1.0)
    assert str(closed) == "{ lambda ; a:f32[]. let b:f32[] c:f32[] = pair a in (b, c) }"
