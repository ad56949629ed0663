"""The checker: what must hold of every jaxpr."""

from contextlib import nullcontext

from minijax.base import dtypes
from minijax.base.errors import JaxprTypeError
from minijax.ir.jaxpr import Jaxpr, JaxprEqn, Literal, Var, jaxprs_in_params
from minijax.ir.types import typeof


def check_jaxpr(jaxpr: Jaxpr) -> None:
    """Raises JaxprTypeError unless variables are bound once and before they are read, and types are those
    that the primitives infer; inner jaxprs are checked too.
    """
    _check_all(jaxpr, set())


def _check_all(jaxpr: Jaxpr, seen: set[int]) -> None:
    waiting = [jaxpr]
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        _check_one(one)
        for eqn in one.eqns:
            around = eqn.primitive.surroundings(eqn.params)
            if type(around) is nullcontext:
                waiting.extend(jaxprs_in_params(eqn.params))
                continue
            with around:
                for inner in jaxprs_in_params(eqn.params):
                    _check_all(inner, seen)


def _check_one(jaxpr: Jaxpr) -> None:
    bound: set[Var] = set()
    for v in (*jaxpr.constvars, *jaxpr.invars):
        _bind(bound, v, "an input")
    for eqn in jaxpr.eqns:
        for a in eqn.invars:
            _check_atom(bound, a, eqn)
        _check_types(eqn)
        for v in eqn.outvars:
            _bind(bound, v, f"a result of {eqn.primitive}")
    for a in jaxpr.outvars:
        _check_atom(bound, a, None)
    missing = {e for eqn in jaxpr.eqns for e in eqn.effects} - set(jaxpr.effects)
    if missing:
        raise JaxprTypeError(f"a jaxpr does not name the effects {missing} of its equations")


def _bind(bound: set[Var], v: Var, what: str) -> None:
    if v in bound:
        raise JaxprTypeError(f"{what} of type {v.aval} is bound a second time")
    bound.add(v)


def _check_atom(bound: set[Var], a: Var | Literal, eqn: JaxprEqn | None) -> None:
    where = "as an output" if eqn is None else f"by the equation {eqn}"
    if type(a) is not Literal:
        if a not in bound:
            raise JaxprTypeError(f"a variable of type {a.aval} is read {where} but not bound")
        return
    have = typeof(a.val)
    if have.shape != a.aval.shape or dtypes.narrow(have.dtype) != dtypes.narrow(a.aval.dtype):
        raise JaxprTypeError(f"the literal {a.val!r} of type {have} stands for a value of type {a.aval} {where}")


def _check_types(eqn: JaxprEqn) -> None:
    inferred, effects = eqn.primitive.typed([a.aval for a in eqn.invars], eqn.params)
    have = [v.aval for v in eqn.outvars]
    if have != list(inferred):
        raise JaxprTypeError(f"{eqn.primitive} infers the types {list(inferred)} but its equation has {have}: {eqn}")
    if effects != eqn.effects:
        raise JaxprTypeError(f"{eqn.primitive} has the effects {effects} but its equation {eqn.effects}")
