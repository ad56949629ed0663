"""Tracing to a jaxpr and evaluating one, shown: literals, constants, captured tracers, and the life of tracers."""

from inspect import cleandoc

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.ir.trace import as_literal, close_over, eval_jaxpr, last_uses, trace_to_jaxpr

ROW = np.arange(3, dtype=np.float32)


def test_scalars_are_literals_and_arrays_are_constants():
    closed = jax.make_jaxpr(lambda x: x * 2.0 + ROW)(np.float32(1))
    assert str(closed) == cleandoc("""
        { lambda a:f32[3]; b:f32[]. let
            c:f32[] = mul b 2.0:f32[]
            d:f32[3] = add c a
          in (d,) }
    """)
    assert closed.consts[0].tolist() == ROW.tolist()
    assert as_literal(ROW, jax.typeof(ROW)) is None


def test_a_jaxpr_is_evaluated_and_can_be_traced_again():
    closed = jax.make_jaxpr(lambda x: jnp.sin(x) * x)(1.0)
    assert eval_jaxpr(closed.jaxpr, closed.consts, 0.0) == [0]
    again = jax.make_jaxpr(lambda x: eval_jaxpr(closed.jaxpr, closed.consts, x)[0])(1.0)
    assert str(again) == str(closed)


def test_values_are_dropped_after_their_last_use():
    jaxpr = jax.make_jaxpr(lambda x: jnp.cos(jnp.sin(x)) * x)(1.0).jaxpr
    (x,), (sin, cos, mul) = jaxpr.invars, [eqn.outvars[0] for eqn in jaxpr.eqns]
    assert {i: set(variables) for i, variables in last_uses(jaxpr).items()} == {1: {sin}, 2: {x, cos}}
    assert jaxpr.outvars == [mul]


def test_captured_tracers_become_leading_inputs_and_captured_arrays_stay_constants():
    found = []

    def outer(y):
        info = jax.make_jaxpr(lambda x: x)(1.0).debug_info
        jaxpr, consts = trace_to_jaxpr(lambda x: [x * y + ROW], [jax.typeof(1.0)], info)
        found.append((*close_over(jaxpr, consts), y))
        return y

    jax.make_jaxpr(outer)(1.0)
    ((closed, captured, y),) = found
    assert captured[0] is y and len(captured) == 1
    assert closed.consts[0].tolist() == ROW.tolist() and len(closed.jaxpr.invars) == 2


def test_a_tracer_cannot_be_used_after_its_trace():
    kept = []
    jax.make_jaxpr(lambda x: kept.append(x) or x)(1.0)
    with pytest.raises(jax.errors.UnexpectedTracerError):
        jax.make_jaxpr(lambda x: x + kept[0])(1.0)


def test_no_operation_runs_while_a_function_is_traced():
    jaxpr = jax.make_jaxpr(lambda x: jnp.ones(3) * x)(np.float32(1)).jaxpr
    assert [eqn.primitive.name for eqn in jaxpr.eqns] == ["broadcast_in_dim", "mul"]
    with jax.ensure_compile_time_eval():
        assert jnp.ones(3).tolist() == [1, 1, 1]
