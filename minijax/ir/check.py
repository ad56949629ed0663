"""Checks the invariants of jaxprs."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from minijax.base import dtypes
from minijax.base.errors import JaxprTypeError
from minijax.ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, jaxprs_in_params
from minijax.ir.show import eqn_text, names_of
from minijax.ir.types import Aval, ShapedArray, typeof


def check_jaxpr(jaxpr: Jaxpr) -> None:
    """Raises JaxprTypeError unless variables are bound once and before they are read, and have the types that the
    primitives infer. Inner jaxprs are checked too.
    """
    _check_all(jaxpr, set())


def _check_all(jaxpr: Jaxpr, seen: set[int]) -> None:
    waiting = [jaxpr]
    while waiting:
        current = waiting.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        _check_one(current)
        for eqn in current.eqns:
            manager = eqn.primitive.body_context(eqn.params)
            if type(manager) is nullcontext:
                waiting.extend(jaxprs_in_params(eqn.params))
                continue
            with manager:
                for inner in jaxprs_in_params(eqn.params):
                    _check_all(inner, seen)


def _check_one(jaxpr: Jaxpr) -> None:
    bound: set[Var] = set()
    for v in (*jaxpr.constvars, *jaxpr.invars):
        _bind(bound, v, "an input")
    for eqn in jaxpr.eqns:
        for a in eqn.invars:
            _check_atom(bound, a, eqn)
        _check_types(eqn, jaxpr)
        for v in eqn.outvars:
            _bind(bound, v, f"a result of {eqn.primitive}")
    for a in jaxpr.outvars:
        _check_atom(bound, a, None)
    missing = {e for eqn in jaxpr.eqns for e in eqn.effects} - set(jaxpr.effects)
    if missing:
        raise JaxprTypeError(f"a jaxpr lacks the effects {missing} of its equations")


def _bind(bound: set[Var], v: Var, what: str) -> None:
    if v in bound:
        raise JaxprTypeError(f"{what} of type {v.aval} is bound a second time")
    bound.add(v)


def _check_atom(bound: set[Var], a: Var | Literal, eqn: JaxprEqn | None) -> None:
    if type(a) is not Literal:
        if a not in bound:
            raise JaxprTypeError(f"a variable of type {a.aval} is read {_reader(eqn)} but not bound")
        return
    have = typeof(a.val)
    if have.shape != a.aval.shape or dtypes.narrow(have.dtype) != dtypes.narrow(a.aval.dtype):
        literal = f"the literal {a.val!r} of type {have}"
        raise JaxprTypeError(f"{literal} is used for a value of type {a.aval} {_reader(eqn)}")


def _reader(eqn: JaxprEqn | None) -> str:
    return "as an output" if eqn is None else f"by the equation {eqn}"


def _check_types(eqn: JaxprEqn, jaxpr: Jaxpr) -> None:
    try:
        _check_eqn(eqn, jaxpr)
    except JaxprTypeError as error:
        names = names_of(jaxpr)
        raise JaxprTypeError(f"{error}\n\nin equation:\n\n{eqn_text(eqn, names)}") from None


def _check_eqn(eqn: JaxprEqn, jaxpr: Jaxpr) -> None:
    avals = [a.aval for a in eqn.invars]
    if eqn.primitive.check_equation is not None:
        eqn.primitive.check_equation(avals, eqn.params)
    with eqn.context():
        inferred, effects = eqn.primitive.typed(avals, eqn.params)
    if len(inferred) != len(eqn.outvars):
        raise JaxprTypeError(f"{eqn.primitive} has {len(inferred)} results but its equation {len(eqn.outvars)}")
    for v, aval in zip(eqn.outvars, inferred, strict=True):
        # As in jax, tangents with a weak type have the strong one of their primal in calls that are inlined.
        if v.aval != aval and (v.aval.weak_type > aval.weak_type or not v.aval.is_compatible(aval)):
            raise JaxprTypeError(
                f"Value for variable {names_of(jaxpr).get(v, '_')!r} inconsistently typed as "
                f"{aval.str_short(True)} for let-binder of type {v.aval.str_short(True)}"
            )
    if effects != eqn.effects:
        raise JaxprTypeError(f"{eqn.primitive} has the effects {effects} but its equation {eqn.effects}")


def same_types(ours: Sequence[Aval], theirs: Sequence[Aval]) -> bool:
    """Returns whether types are equal, ignoring the weak types and mesh axes of arrays."""
    return [_plain(a) for a in ours] == [_plain(a) for a in theirs]


def _plain(aval: Aval) -> Any:
    return (aval.shape, aval.dtype) if type(aval) is ShapedArray else aval


def check_params(name: str, params: dict, kinds: dict[str, tuple[str, Callable[[Any], bool]]]) -> None:
    """Raises JaxprTypeError for a parameter that fails its test. `kinds`: parameter -> (description, test)."""
    for key, (kind, test) in kinds.items():
        value = params[key]
        if not test(value):
            raise JaxprTypeError(f"invalid {name} param {key} of type {type(value).__name__}, {kind} required: {value}")


def types_text(avals: Sequence[Aval]) -> str:
    return ", ".join(a.str_short() for a in avals)


def is_closed(x: Any) -> bool:
    """Returns whether `x` is a ClosedJaxpr."""
    return isinstance(x, ClosedJaxpr)


def is_count(x: Any) -> bool:
    """Returns whether `x` is a nonnegative integer."""
    return isinstance(x, int | np.integer) and int(x) >= 0
