"""The checker accepts what is traced and rejects what is broken."""

import pytest

import minijax
import minijax.numpy as jnp
from minijax.base import config
from minijax.ir.check import JaxprTypeError, check_jaxpr
from minijax.ir.jaxpr import Literal, Var


def _jaxpr():
    return minijax.make_jaxpr(lambda x: jnp.where(x > 0, jnp.sin(x), x) + 1.0)(jnp.ones(3)).jaxpr


def test_a_traced_jaxpr_passes():
    check_jaxpr(_jaxpr())


def _other_type(jaxpr):
    eqn = jaxpr.eqns[-1]
    return jaxpr.replace(eqns=[*jaxpr.eqns[:-1], eqn.replace(outvars=[Var(jaxpr.eqns[0].outvars[0].aval)])])


def _unbound(jaxpr):
    return jaxpr.replace(eqns=jaxpr.eqns[1:])


def _twice(jaxpr):
    return jaxpr.replace(eqns=[*jaxpr.eqns, jaxpr.eqns[0]])


def _wrong_literal(jaxpr):
    eqn = jaxpr.eqns[0]
    bad = Literal(1, eqn.invars[1].aval)
    return jaxpr.replace(eqns=[eqn.replace(invars=[eqn.invars[0], bad]), *jaxpr.eqns[1:]])


def _unbound_output(jaxpr):
    return jaxpr.replace(outvars=[Var(jaxpr.invars[0].aval)])


def _unnamed_effect(jaxpr):
    eqn = jaxpr.eqns[0].replace(effects=frozenset({"an effect"}))
    return jaxpr.replace(eqns=[eqn, *jaxpr.eqns[1:]])


@pytest.mark.parametrize("spoil", [_other_type, _unbound, _twice, _wrong_literal, _unbound_output, _unnamed_effect])
def test_a_broken_jaxpr_is_rejected(spoil):
    with pytest.raises(JaxprTypeError):
        check_jaxpr(spoil(_jaxpr()))


def test_checks_run_on_every_trace_when_they_are_enabled(monkeypatch):
    checked = []
    monkeypatch.setattr("minijax.ir.trace.check_jaxpr", checked.append)
    minijax.make_jaxpr(lambda x: jnp.sin(x))(1.0)
    assert not checked
    with config.option("enable_checks")(True):
        minijax.make_jaxpr(lambda x: jnp.sin(x))(1.0)
    assert checked
