"""Turns constants into operands, so that programs that differ only in constants share an executable.

XLA folds neighbouring constants, which changes the rounding: `x * a * b` becomes `x * (a * b)`. Therefore only
constants without such neighbours are lifted.
"""

from collections.abc import Iterable, Sequence
from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from minijax.base import dtypes
from minijax.ir.context import EMPTY
from minijax.ir.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, substituted
from minijax.ir.primitive import Folding
from minijax.ir.types import AbstractValue, ShapedArray

_PRODUCTS = (Folding.PRODUCT, Folding.QUOTIENT)
_CHOICES = (Folding.CHOICE, Folding.SELECTION)
_SCALING = (Folding.SUM, Folding.PRODUCT)
_SUMLESS = (*_PRODUCTS, *_CHOICES, Folding.EXACT)
_LARGEST = 32
_SPECIAL = (-1, 0, 1)  # XLA simplifies operations with these constants


class Lifted(NamedTuple):
    """A jaxpr, and the values of the new variables that replace constants in it."""

    closed: ClosedJaxpr
    values: dict[Var, Any]


def lift_constants(closed: ClosedJaxpr, exactly: bool) -> Lifted:
    """Replaces the constants that may be operands by variables, which become constvars.

    If `exactly`, constants are kept whose value reaches both a product and a sum: the compiler may contract the two to
    a fused multiply-add with a single rounding, and whether it does may depend on the constant.
    """
    lifted = _lift(closed, (False,) * len(closed.invars), exactly)
    jaxpr, consts = lifted.closed.jaxpr, lifted.closed.consts
    opened = jaxpr.replace(constvars=[*jaxpr.constvars, *lifted.values])
    return Lifted(ClosedJaxpr(opened, [*consts, *lifted.values.values()]), lifted.values)


def _lift(closed: ClosedJaxpr, fixed: Sequence[bool], exactly: bool) -> Lifted:
    """Inputs that are `fixed` count as constants; the new variables are left free in the jaxpr."""
    if not _has_constants(closed):
        return Lifted(closed, {})
    flat = _without_moved_literals(inlined(closed))
    lifter = _Lifter(flat, fixed, exactly)
    eqns = [lifter.rewritten(eqn) for eqn in flat.eqns]
    if not lifter.lifted:
        return Lifted(closed, {})
    pairs = zip(flat.constvars, flat.consts, strict=True)
    left = [(v, c) for v, c in pairs if v not in lifter.lifted]
    jaxpr = flat.jaxpr.replace(constvars=[v for v, _ in left], eqns=eqns)
    return Lifted(ClosedJaxpr(jaxpr, [c for _, c in left]), lifter.lifted)


def _without_moved_literals(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Replaces literals that are operands of data movement by constvars."""
    consts = dict(zip(closed.constvars, closed.consts, strict=True))
    eqns = []
    for eqn in closed.eqns:
        a = eqn.invars[0] if eqn.primitive.folding is Folding.MOVE else None
        if type(a) is Literal:
            v = Var(a.aval)
            consts[v] = np.asarray(a.val, a.aval.dtype)
            eqn = eqn.replace(invars=[v])
        eqns.append(eqn)
    return ClosedJaxpr(closed.jaxpr.replace(eqns=eqns, constvars=list(consts)), list(consts.values()))


class _Lifter:
    """The constants of one jaxpr, and how XLA may fold them."""

    def __init__(self, closed: ClosedJaxpr, fixed: Sequence[bool], exactly: bool):
        self.exactly = exactly
        self.lifted: dict[Var, Any] = {}
        self.roots: dict[Var, Atom] = {}  # for results of data movement: the value that was moved
        self.folders: dict[Var, list[JaxprEqn]] = {}  # the equations with foldable constants that produce a value
        self.producers: dict[Atom, JaxprEqn] = {}
        self.consts = dict(zip(closed.constvars, closed.consts, strict=True))
        self.fixed = {v for v, f in zip(closed.invars, fixed, strict=True) if f}
        self.chained: set[int] = set()
        for eqn in closed.eqns:
            self._follow(eqn)
            self._note_sum_of_product(eqn)
        self.free = self._find_free(closed.jaxpr)

    def root(self, a: Atom) -> Atom:
        return a if type(a) is Literal else self.roots.get(a, a)

    def is_constant(self, a: Atom) -> bool:
        r = self.root(a)
        return type(r) is Literal or r in self.consts or r in self.fixed

    def _follow(self, eqn: JaxprEqn) -> None:
        """Records the origins of the results, and marks equations whose constants XLA may fold with each other."""
        folding = eqn.primitive.folding
        before = [e for a in eqn.invars if type(a) is Var for e in self.folders.get(a, ())]
        if folding is Folding.MOVE:
            self.roots[eqn.outvars[0]], self.folders[eqn.outvars[0]] = self.root(eqn.invars[0]), before
        elif folding is Folding.SELECTION:
            self.folders[eqn.outvars[0]] = [*before, eqn] if any(map(self.is_constant, eqn.invars)) else before
        elif self._folds(eqn):
            near = [e for e in before if self.exactly or not _is_other_kind(e.primitive.folding, folding)]
            self.chained.update(id(e) for e in (*near, eqn) if near)
            self.folders.update((v, [eqn]) for v in eqn.outvars)

    def _folds(self, eqn: JaxprEqn) -> bool:
        """Returns whether XLA may move a constant into, or out of, the operation."""
        folding = eqn.primitive.folding
        if folding is Folding.SUM or folding in _PRODUCTS:
            return any(map(self.is_constant, eqn.invars)) or folding is Folding.PRODUCT and self._broadcasts(eqn)
        return eqn.primitive.has_own_constants(eqn.params)

    def _broadcasts(self, eqn: JaxprEqn) -> bool:
        """Returns whether an operand is smaller than the result: XLA moves scaling to the smaller operand."""
        size = eqn.outvars[0].aval.size
        return any(a.aval.size < size or self.root(a).aval.size < size for a in eqn.invars)

    def _note_sum_of_product(self, eqn: JaxprEqn) -> None:
        """Marks pairs that may be contracted: a sum, and the product (or operation ending with one) that it reads."""
        self.producers.update(dict.fromkeys(eqn.outvars, eqn))
        folding = eqn.primitive.folding
        if not self.exactly or folding is Folding.MOVE or folding in _SUMLESS:
            return
        for a in eqn.invars:
            maker = None if self.is_constant(a) else self.producers.get(self.root(a))
            if maker is not None and (folding is Folding.SUM or maker.primitive.folding is not Folding.SUM):
                self.chained |= {id(maker), id(eqn)}

    def _find_free(self, jaxpr: Jaxpr) -> set[Var]:
        """The constvars that may be lifted at each of their uses."""
        bound = {self.root(v) for v in jaxpr.outvars if type(v) is Var}
        for eqn in jaxpr.eqns:
            if eqn.primitive.folding is not Folding.MOVE and not self._permits_lifting(eqn):
                bound.update(r for r in map(self.root, eqn.invars) if type(r) is Var)
        return {v for v, c in self.consts.items() if v not in bound and _is_small(v.aval) and _is_plain(c)}

    def _permits_lifting(self, eqn: JaxprEqn) -> bool:
        """Returns whether the result has the same bits if the equation's constants are operands."""
        folding = eqn.primitive.folding
        constant = list(map(self.is_constant, eqn.invars))
        if all(constant) or folding not in _CHOICES and (folding not in _SCALING or sum(constant) != 1):
            return False
        return not dtypes.is_inexact(eqn.outvars[0].aval.dtype) or id(eqn) not in self.chained

    def rewritten(self, eqn: JaxprEqn) -> JaxprEqn:
        """The equation, with variables in place of the lifted constants."""
        if eqn.primitive.lift is not None:
            return eqn.primitive.lift(eqn, list(map(self.is_constant, eqn.invars)), self.lift_inside)
        for a in eqn.invars:
            root = self.root(a)
            if isinstance(root, Var) and root in self.free:
                self.lifted[root] = self.consts[root]
        if not any(type(a) is Literal for a in eqn.invars) or not self._permits_lifting(eqn):
            return eqn
        return eqn.replace(list(map(self._lifted_literal, eqn.invars)))

    def _lifted_literal(self, a: Atom) -> Atom:
        if type(a) is Literal and _is_plain(a.val):
            return self.variable(np.asarray(a.val, a.aval.dtype), a.aval)
        return a

    def variable(self, value: Any, aval: AbstractValue) -> Var:
        new = Var(aval)
        self.lifted[new] = value
        return new

    def lift_inside(self, closed: ClosedJaxpr, fixed: Sequence[bool]) -> tuple[ClosedJaxpr, list[Var]]:
        """(nested jaxpr, which inputs are constants) -> (jaxpr with lifted constants as leading inputs, operands)"""
        lifted = _lift(closed, fixed, self.exactly)
        if not lifted.values:
            return closed, []
        jaxpr = lifted.closed.jaxpr
        info = jaxpr.debug_info._replace(arg_names=None)
        opened = jaxpr.replace(invars=[*lifted.values, *jaxpr.invars], debug_info=info)
        passed = [self.variable(c, v.aval) for v, c in lifted.values.items()]
        return ClosedJaxpr(opened, lifted.closed.consts), passed


def _is_other_kind(a: Folding, b: Folding) -> bool:
    """Returns whether one is a sum and the other a product, between which XLA does not move constants."""
    return a is Folding.SUM and b in _PRODUCTS or a in _PRODUCTS and b is Folding.SUM


def _is_small(aval: AbstractValue) -> bool:
    if type(aval) is not ShapedArray or dtypes.is_extended(aval.dtype):
        return False
    return aval.dtype.kind in "fiu" and aval.size * aval.dtype.itemsize <= _LARGEST


def _is_plain(value: Any) -> bool:
    """Returns whether no element is a number that XLA treats specially."""
    value = np.asarray(value)
    elements = value.ravel().tolist() if value.dtype.kind in "fiu" else [0]
    return all(isfinite(v) and v not in _SPECIAL for v in elements)


def _has_constants(closed: ClosedJaxpr) -> bool:
    """Returns whether there is a constant whose value, at least, permits lifting."""
    return bool(closed.consts) or any(
        any(type(a) is Literal and _is_plain(a.val) for a in eqn.invars)
        if eqn.primitive.lift is None and eqn.primitive.record is None
        else True
        for eqn in closed.eqns
    )


def inlined(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Inlines the calls of nested jitted functions."""
    if not any(map(_is_call, closed.eqns)):
        return closed
    consts = dict(zip(closed.constvars, closed.consts, strict=True))
    eqns: list[JaxprEqn] = []
    names: dict[Var, Atom] = {}
    _inline(closed.eqns, names, eqns, consts)
    outvars = substituted(closed.outvars, names)
    jaxpr = closed.jaxpr.replace(eqns=eqns, outvars=outvars, constvars=list(consts))
    return ClosedJaxpr(jaxpr, list(consts.values()))


def _is_call(eqn: JaxprEqn) -> bool:
    return eqn.primitive.record is not None and eqn.ctx[1:] == EMPTY[1:]


def _inline(eqns: Sequence[JaxprEqn], names: dict, done: list, consts: dict) -> None:
    for eqn in eqns:
        invars = substituted(eqn.invars, names)
        if not _is_call(eqn):
            outvars = [names.setdefault(v, Var(v.aval)) for v in eqn.outvars]
            done.append(eqn.replace(invars=invars, outvars=outvars))
            continue
        inner = eqn.params["jaxpr"]
        own = dict(zip(inner.invars, invars, strict=True))
        for v, c in zip(inner.constvars, inner.consts, strict=True):
            own[v] = Var(v.aval)
            consts[own[v]] = c
        _inline(inner.eqns, own, done, consts)
        names.update(zip(eqn.outvars, substituted(inner.outvars, own), strict=True))


# ---- large constants ----------------------------------------------------------------------------------


def folded_constants(closed: ClosedJaxpr) -> set[Var]:
    """The constvars whose values XLA computes with when it compiles: arguments in their place would round otherwise.

    XLA divides by a constant by multiplying by its reciprocal, joins the constants of neighbouring products or sums,
    and evaluates operations on constants alone, also those of a loop's body on what the loop captures.
    """
    flat = inlined(closed)
    return _Folded(flat, flat.constvars).found.intersection(closed.constvars)


class _Folded:
    """Of the variables `known`, all constants, those that XLA folds: `found`."""

    def __init__(self, closed: ClosedJaxpr, known: Iterable[Var]):
        self.found: set[Var] = set()
        self.origins: dict[Atom, set[Var]] = {v: {v} for v in known}  # of known values: what they are computed from
        self.joined: dict[Atom, tuple[Folding, set[Var]]] = {}  # of sums and products: their constants
        for eqn in closed.eqns:
            self._follow(eqn)

    def _follow(self, eqn: JaxprEqn) -> None:
        is_known = [type(a) is Literal or a in self.origins for a in eqn.invars]
        together = set().union(*[self.origins.get(a, ()) for a in eqn.invars if type(a) is Var])
        folding = eqn.primitive.folding
        if all(is_known):
            self.origins.update((v, together) for v in eqn.outvars)
            self.found |= set() if folding is Folding.MOVE else together
        elif not together:
            return
        elif folding is Folding.QUOTIENT:
            self.found |= together if is_known[1] else set()
        elif folding in _SCALING:
            self._join(eqn, together)
        elif eqn.primitive.lift is not None:
            eqn.primitive.lift(eqn, is_known, lambda body, fixed: self._look_inside(body, fixed, together))

    def _join(self, eqn: JaxprEqn, together: set[Var]) -> None:
        """Notes a sum or product with a constant, which XLA joins with those of the sums or products that it reads."""
        folding = eqn.primitive.folding
        for a in eqn.invars:
            kind, others = self.joined.get(a, (None, set())) if type(a) is Var else (None, set())
            self.found |= together | others if kind is folding else set()
        self.joined[eqn.outvars[0]] = folding, together

    def _look_inside(self, body: ClosedJaxpr, fixed: Sequence[bool], together: set[Var]) -> tuple[ClosedJaxpr, list]:
        flat = inlined(body)
        own = [v for v, is_fixed in zip(flat.invars, fixed, strict=True) if is_fixed]
        self.found |= together if _Folded(flat, [*flat.constvars, *own]).found.intersection(own) else set()
        return body, []
