"""The values of dimension variables by the shapes of arguments, and what those shapes must satisfy.

All is said in expressions over the sizes of arguments, which are variables like `args[0].shape[1]`: a call evaluates
them on ints, an exported program computes them.
"""

import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from minijax.base.symbolic import (
    FLOORDIV,
    GUIDE,
    MAX,
    MIN,
    MOD,
    PYTHON,
    Dim,
    SymbolicDim,
    linear,
    names_in,
    operation,
    variable,
)
from minijax.base.symbolic_scope import SymbolicScope

_SEE = f"See {GUIDE}#shape-assertion-errors."


class Check(NamedTuple):
    """A comparison that must hold; `message` has places for the values of `shown`."""

    sign: str  # "==" or ">="
    left: Dim
    right: Dim
    message: str
    shown: tuple[Dim, ...]


class Solution(NamedTuple):
    """Variables as expressions over the sizes of arguments, and checks in the order in which they are made.

    `sizes` says which argument and axis the name of a size stands for.
    """

    variables: dict[str, Dim]
    checks: tuple[Check, ...]
    sizes: dict[str, tuple[int, int]]

    def values(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """The values of the variables for given sizes. Raises ValueError where a check fails."""
        for sign, *sides, message, shown in self.checks:
            left, right = (evaluated(d, sizes) for d in sides)
            if not (left == right if sign == "==" else left >= right):
                raise ValueError(told(message, [evaluated(d, sizes) for d in shown]))
        return {name: evaluated(d, sizes) for name, d in self.variables.items()}


def evaluated(d: Dim, env: Mapping[str, Any]) -> Any:
    return d.evaluate(env) if isinstance(d, SymbolicDim) else d


def told(message: str, values: Sequence[Any]) -> str:
    """The message of a check with values in their places; other braces, of keys in paths, stay."""
    return re.sub(r"\{(\d+)\}", lambda place: str(values[int(place[1])]), message)


class _Equation(NamedTuple):
    dim: SymbolicDim
    size: SymbolicDim  # what it must be equal to


def solve(shapes: Sequence[Sequence[Any]], labels: Sequence[str]) -> Solution:
    """Solves for the variables in shapes of arguments, which errors call `labels`.

    Raises ValueError where that takes more than linear equations of one unknown each.
    """
    return _Solver(shapes, labels).solution()


class _Solver:
    def __init__(self, shapes: Sequence[Sequence[Any]], labels: Sequence[str]):
        self.scope = SymbolicScope()
        self.sizes: dict[str, tuple[int, int]] = {}
        self.equations: list[_Equation] = []
        for i, (shape, label) in enumerate(zip(shapes, labels, strict=True)):
            for axis, d in enumerate(shape):
                if isinstance(d, SymbolicDim):
                    self._add(d, f"{label}.shape[{axis}]", (i, axis))
        specified = [
            f"{label}.shape = {shape}"
            for label, shape in zip(labels, map(_shown_shape, shapes), strict=True)
            if shape is not None
        ]
        self.specified = f"Using the following polymorphic shapes specifications: {','.join(specified)}."
        self.variables: dict[str, Dim] = {}
        self.found_by: dict[str, _Equation] = {}
        self.checks: list[Check] = []

    def _add(self, d: SymbolicDim, name: str, place: tuple[int, int]) -> None:
        if self.equations:
            self.equations[0].dim.scope.require_same(d.scope, d, "in the shapes of arguments")
        self.sizes[name] = place
        size: Any = variable(name, self.scope)
        self.equations.append(_Equation(d, size))

    def solution(self) -> Solution:
        left, before = self.equations, None
        while left and left != before:
            before, left = left, [equation for equation in left if not self._process(equation)]
        if left:
            self._fail(left)
        for constraint in self.equations[0].dim.scope.constraints if self.equations else ():
            self._check_constraint(*constraint)
        return Solution(self.variables, tuple(self.checks), self.sizes)

    def _process(self, equation: _Equation) -> bool:
        """Checks an equation without unknowns, or solves it; whether that could be done."""
        d, size = equation
        if d.variables() <= self.variables.keys():
            value = self._substituted(d)
            self._mismatch(
                "==", size, value, "Found inconsistency between dimension size "
                f"{size} (= {{0}}) and the specification '{d}' (= {{1}}).", size, value,
            )  # fmt: skip
            return True
        (term, k), *others = [pair for pair in d.terms if not names_in(pair[0]) <= self.variables.keys()]
        name = str(term)
        if others or name not in names_in(term):
            return False
        known = tuple(pair for pair in d.terms if pair[0] != term)
        rest = self._substituted(SymbolicDim(known, d.scope)) if known else 0
        self._solve(name, k, rest, equation)
        return True

    def _solve(self, name: str, k: int, rest: Dim, equation: _Equation) -> None:
        """`k` times the variable is the size without the rest."""
        sign = -1 if k == -1 else 1
        value = linear((equation.size, sign), (rest, -sign))
        if abs(k) != 1:
            remainder = operation(MOD, value, k, self.scope)
            message = f"Division had remainder {{0}} when computing the value of '{name}'."
            self._mismatch("==", remainder, 0, message, remainder)
            value = operation(FLOORDIV, value, k, self.scope)
        self.variables[name], self.found_by[name] = value, equation
        self._mismatch(">=", value, 1, f"Expected value >= 1 for dimension variable '{name}'.")

    def _substituted(self, d: SymbolicDim) -> Dim:
        # Nothing is simplified by what is assumed of variables: sizes may be zero.
        raw = {name: functools.partial(operation, name, scope=self.scope) for name in (FLOORDIV, MAX, MIN, MOD)}
        known = dict(self.variables)
        for name in d.variables() - known.keys():
            # A variable that an equality has replaced is in no shape.
            rewritten = variable(name, d.scope)
            if isinstance(rewritten, int) or name not in rewritten.variables():
                known[name] = evaluated(rewritten, self.variables)
        return d.evaluate(known, {**PYTHON, **raw})

    def _check_constraint(self, equal: bool, difference: SymbolicDim, shown: str) -> None:
        value = self._substituted(difference)
        if isinstance(value, int) and (value == 0 or value > 0 and not equal):
            return
        relation = "equal to" if equal else "greater or equal to"
        self._mismatch(
            "==" if equal else ">=", value, 0, f"Expected '{difference}' to be {relation} 0, but found {{0}}.", value,
            what=f"symbolic shape constraint {shown}",
        )  # fmt: skip

    def _mismatch(
        self, sign: str, left: Dim, right: Dim, fault: str, *shown: Dim, what: str = "polymorphic shapes specification"
    ) -> None:
        """Adds a check whose message tells the values of `shown`, and what variables are known so far."""
        values = list(shown)
        known = "".join(f"{text}, " for text in self._known(values))
        self.checks.append(
            Check(
                sign,
                left,
                right,
                f"Input shapes do not match the {what}. {fault} {self.specified} "
                f"Obtained dimension variables: {known}. {_SEE}",
                tuple(values),
            )
        )

    def _known(self, values: list[Dim]) -> Iterator[str]:
        """The variables with where they are from; puts their values among `values`."""
        for name, value in self.variables.items():
            d, size = self.found_by[name]
            places = [_place(values, value), _place(values, size)]
            yield f"'{name}' = {{{places[0]}}} from specification '{d}' for dimension {size} (= {{{places[1]}}})"

    def _fail(self, left: Iterable[_Equation]) -> None:
        unknown = sorted({name for d, _ in left for name in d.variables()} - self.variables.keys())
        raise ValueError(
            f"Cannot solve for values of dimension variables {{{', '.join(map(repr, unknown))}}}. We can only solve "
            f"linear uni-variate constraints. {self.specified} Unprocessed specifications: "
            + ", ".join(f"'{d}' for dimension size {size}" for d, size in left)
            + f". See {GUIDE}#dimension-variables-must-be-solvable-from-the-input-shapes."
        )


def _place(values: list[Dim], d: Dim) -> int:
    if d not in values:
        values.append(d)
    return values.index(d)


def _shown_shape(shape: Sequence[Any]) -> str | None:
    return str(tuple(shape)) if any(isinstance(d, SymbolicDim) for d in shape) else None
