"""Structures: keys that are equal for jaxprs with the same equations, whatever their variables, names and source."""

from collections.abc import Hashable
from typing import Any

from minijax.base import cache
from minijax.ir.context import EMPTY
from minijax.ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal

_UNNAMED = EMPTY[1:]
_DEPTH = 16  # of nested jaxprs: comparing deeper keys would exceed the stack


class _Incomparable(Exception):
    """Raised for a jaxpr without a structure."""


def structure_of(closed: ClosedJaxpr) -> Hashable:
    """The structure of a jaxpr; None if it has constants, effects or function parameters, or is nested too deeply."""
    try:
        structure = _closed(closed, 0)
        hash(structure)
    except (_Incomparable, TypeError):
        return None
    return structure


def _closed(closed: ClosedJaxpr, depth: int) -> tuple:
    if closed.consts:
        raise _Incomparable
    return _jaxpr(closed.jaxpr, depth)


def _jaxpr(jaxpr: Jaxpr, depth: int) -> tuple:
    if depth > _DEPTH or jaxpr.effects or jaxpr.constvars or jaxpr.is_high:
        raise _Incomparable
    numbers: dict[Any, int] = {v: i for i, v in enumerate(jaxpr.invars)}
    eqns = [_eqn(eqn, numbers, depth) for eqn in jaxpr.eqns]
    outs = [_literal(a) if type(a) is Literal else numbers[a] for a in jaxpr.outvars]
    # A function's name may be that of a function in the module.
    return jaxpr.debug_info.func_name, tuple([v.aval for v in jaxpr.invars]), tuple(outs), tuple(eqns)


def _eqn(eqn: JaxprEqn, numbers: dict[Any, int], depth: int) -> tuple:
    operands = [_literal(a) if type(a) is Literal else numbers[a] for a in eqn.invars]
    for v in eqn.outvars:
        numbers[v] = len(numbers)
    avals, context = [v.aval for v in eqn.outvars], eqn.ctx
    scope = None if context is EMPTY or context[1:] == _UNNAMED else _key(context[1:], depth)
    params = tuple([(name, _key(value, depth)) for name, value in eqn.params.items()]) if eqn.params else ()
    return eqn.primitive, tuple(operands), tuple(avals), scope, params


def _literal(literal: Literal) -> tuple:
    return literal.aval, cache.key(literal.val)


def _key(value: Any, depth: int) -> Hashable:
    if type(value) is tuple or type(value) is list:
        return type(value), *[_key(item, depth) for item in value]
    if type(value) is ClosedJaxpr:
        return ClosedJaxpr, _closed(value, depth + 1)
    if type(value) is Jaxpr:
        return Jaxpr, _jaxpr(value, depth + 1)
    if callable(value) and not isinstance(value, type):
        raise _Incomparable
    return cache.key(value)
