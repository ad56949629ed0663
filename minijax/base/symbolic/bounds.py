"""Bounds of the values of symbolic dimensions, computed by elimination of terms.

A term is eliminated from an expression by adding a multiple of a constraint in which it is the largest term. The
bounds of the result, which has smaller terms only, bound the expression.
"""

import itertools
import math
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

from minijax.base.symbolic import dimension as symbolic
from minijax.base.symbolic.dimension import (
    ONE,
    Bounds,
    Dim,
    Factor,
    SymbolicDim,
    Term,
    Terms,
    inconclusive,
    operation,
    terms_of,
)

INF = math.inf
# Each constraint on a term leads to another sum, so their number is exponential in the number of terms.
_MOST_SUMS = 2000


class Decision:
    """The constraints of a scope, those derived from them in one step, and the ranges of terms."""

    def __init__(self, scope: Any, constraints: Iterable[Any] = ()):
        self.scope = scope
        self.limits: dict[Term, Bounds] = {}
        self.learned: set[Term] = set()
        self.mixed: dict[Term, dict[tuple[bool, Terms], None]] = {}
        self.ranges: dict[Terms, Bounds] = {}  # until a constraint is added
        for constraint in constraints:
            self.learn(constraint.difference)
            self.assume(constraint.equal, constraint.difference)

    def bounds(self, d: Dim) -> Bounds:
        """The bounds of `d`; the constraints implied by its terms are added to a copy of this decision."""
        known = Decision(self.scope)
        known.limits, known.mixed = dict(self.limits), {term: dict(found) for term, found in self.mixed.items()}
        known.learned = set(self.learned)
        known.learn(d)
        return known.range(terms_of(d))

    def range(self, terms: Terms) -> Bounds:
        """The bounds of a sum: those of its terms without constant and common factor, scaled and shifted."""
        *others, (last, constant) = terms or ((ONE, 0),)
        if last != ONE:
            others, constant = terms, 0
        if not others:
            return constant, constant
        factor = math.gcd(*[k for _, k in others]) * (1 if others[0][1] > 0 else -1)
        reduced = tuple([(term, k // factor) for term, k in others])
        found = self.ranges.get(reduced)
        if found is None:
            if len(self.ranges) >= _MOST_SUMS:
                return -INF, INF
            found = self.ranges[reduced] = self._eliminated(reduced)
        low, high = found if factor > 0 else found[::-1]
        return factor * low + constant, factor * high + constant

    def _eliminated(self, terms: Terms) -> Bounds:
        (first, k), *_ = terms
        low, high = -INF, INF
        for equal, others, n, m in self.eliminating(first, k):
            # m * terms == rest - n * others, where `others` is at least zero, or equal to zero.
            least, greatest = self.range(_sum(terms, m, others, n))
            if m > 0:
                high = min(high, _floor(greatest, m))
                low = max(low, _ceil(least, m)) if equal else low
            else:
                low = max(low, _ceil(greatest, m))
                high = min(high, _floor(least, m)) if equal else high
        for least, greatest in self._cases(terms):
            low, high = max(low, least), min(high, greatest)
        return low, high

    def _cases(self, terms: Terms) -> Iterator[Bounds]:
        """If the first term is max(a, b) or min(a, b), yields the union of the bounds of both cases."""
        (first, k), *rest = terms
        (factor, power), *others = first.powers
        if not others and power == 1 and factor.name in (symbolic.MAX, symbolic.MIN) and factor.operands:
            yield _hull(bound for d in factor.operands for bound in self.range(_sum(tuple(rest), 1, terms_of(d), k)))

    def eliminating(self, term: Term, k: int, smaller: bool = True) -> Iterator[tuple[bool, Terms, int, int]]:
        """Yields constraints that eliminate `k * term`, with the factors of the constraint and of the expression.

        With `smaller`, yields only those whose other terms are smaller.
        """
        if term == ONE:
            return
        low, high = self.limits.get(term, (-INF, INF))
        known: list[tuple[bool, Terms]] = []
        if low > -INF:
            known.append((low == high, ((term, 1), (ONE, -int(low)))))
        if high < INF and low != high:
            known.append((False, ((term, -1), (ONE, int(high)))))
        leading = (term,) if smaller else self.mixed
        known += itertools.chain.from_iterable(self.mixed.get(t, ()) for t in leading)
        for equal, terms in known:
            n = next((n for t, n in terms if t == term), 0)
            if n:
                yield equal, terms, abs(k), -n if k > 0 else n

    def assume(self, equal: bool, d: Dim) -> None:
        """Adds the constraint `d >= 0`, or `d == 0`, and those that follow from it and one known constraint."""
        terms = terms_of(d)
        combined = [
            (equal and known, terms_of(symbolic.total(self.scope, _sum(terms, m, others, n))))
            for term, k in terms
            for known, others, n, m in self.eliminating(term, k, smaller=False)
            if m > 0 or equal
        ]
        self.add(equal, terms)
        for both, found in combined:
            self.add(both, found)

    def add(self, equal: bool, terms: Terms) -> None:
        """Stores a constraint: as a range if it has one term, else under its largest term."""
        self.ranges.clear()
        (first, k), *others = terms
        if first == ONE:
            if k < 0 or equal and k:
                self._fail(equal, terms)
            return
        if others and others[0][0] != ONE:
            self.mixed.setdefault(first, {})[equal, terms] = None
            return
        value = -others[0][1] if others else 0
        low, high = self.limits.get(first, (-INF, INF))
        if k > 0 or equal:
            low = max(low, _ceil(value, k))
        if k < 0 or equal:
            high = min(high, _floor(value, k))
        if low > high:
            self._fail(equal, terms)
        self.limits[first] = low, high

    def learn(self, d: Dim) -> None:
        """Adds the constraints implied by the variables and the operations in `d`."""
        for term, _ in terms_of(d):
            if term == ONE or term in self.learned:
                continue
            self.learned.add(term)
            result = symbolic.total(self.scope, ((term, 1),))
            (factor, power), *others = term.powers
            if not others and power == 1:
                self._learn_factor(factor, result)
                continue
            bounds = 1, 1
            for factor, power in term.powers:
                alone = symbolic.total(self.scope, ((Term(((factor, 1),)), 1),))
                self.learn(SymbolicDim(((Term(((factor, 1),)), 1),), self.scope))
                one = self.range(terms_of(alone))
                for _ in range(power):
                    bounds = _hull(_times(x, y) for x in bounds for y in one)
            self._within(result, bounds)

    def _within(self, d: Dim, bounds: Bounds) -> None:
        low, high = bounds
        if low > -INF:
            self._assume_if(False, d - int(low))
        if high < INF:
            self._assume_if(False, int(high) - d)

    def _assume_if(self, equal: bool, d: Dim) -> None:
        if not isinstance(d, int):
            self.assume(equal, d)
        elif d < 0 or equal and d:
            self._fail(equal, terms_of(d))

    def _fail(self, equal: bool, terms: Terms) -> NoReturn:
        sign = "==" if equal else ">="
        raise ValueError(f"Unsatisfiable constraint: {symbolic.text(terms)} {sign} 0, which follows in {self.scope}")

    def _learn_factor(self, factor: Factor, result: Dim) -> None:
        if not factor.operands:
            self._within(result, (1, INF))
            return
        for d in factor.operands:
            self.learn(d)
        ranges = [self.range(terms_of(d)) for d in factor.operands]
        self._within(result, self._operation_bounds(factor, *ranges))
        for equal, d in self._relations(factor, ranges[1], result):
            self._assume_if(equal, d)

    def _operation_bounds(self, factor: Factor, x: Bounds, y: Bounds) -> Bounds:
        match factor.name:
            case symbolic.MAX:
                return max(x[0], y[0]), max(x[1], y[1])
            case symbolic.MIN:
                return min(x[0], y[0]), min(x[1], y[1])
            case symbolic.FLOORDIV:
                if y[0] <= 0 <= y[1]:
                    raise inconclusive(f"Possible division by 0 in division by {factor.operands[1]}", self.scope)
                return _hull(_quotient(a, b) for a in x for b in y)
        if y[0] > 0:
            return 0, y[1] - 1
        return (y[0] + 1, 0) if y[1] < 0 else (-INF, INF)

    def _relations(self, factor: Factor, divisor: Bounds, result: Dim) -> Iterator[tuple[bool, Dim]]:
        """Yields constraints (is equality, expression) between the result of an operation and its operands."""
        x, y = factor.operands
        match factor.name:
            case symbolic.MAX:
                yield from ((False, result - x), (False, result - y))
            case symbolic.MIN:
                yield from ((False, x - result), (False, y - result))
            case symbolic.MOD:
                if divisor[0] > 0:
                    yield False, y - 1 - result
                elif divisor[1] < 0:
                    yield False, result - y - 1
            case symbolic.FLOORDIV if divisor[0] > 0:
                rest = operation(symbolic.MOD, x, y, self.scope)
                self.learn(rest)
                yield True, x - y * result - rest


def _sum(terms: Terms, k: int, others: Terms, n: int) -> Terms:
    sums: dict[Term, int] = {}
    for t, m in itertools.chain(((t, m * k) for t, m in terms), ((t, m * n) for t, m in others)):
        sums[t] = sums.get(t, 0) + m
    return tuple(sorted(((t, m) for t, m in sums.items() if m), reverse=True))


def _floor(x: float, n: int) -> float:
    return x // n if isinstance(x, int) else x * n


def _ceil(x: float, n: int) -> float:
    return -(-x // n) if isinstance(x, int) else x * n


def _times(x: float, y: float) -> float:
    return 0 if x == 0 or y == 0 else x * y


def _hull(values: Iterable[float]) -> Bounds:
    found = list(values)
    return min(found), max(found)


def _quotient(x: float, y: float) -> float:
    if abs(y) == INF:
        return 0 if x == 0 or (x > 0) == (y > 0) else -1
    return x * y if abs(x) == INF else x // y
