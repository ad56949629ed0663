"""Solves for dimension variables, given the sizes of the arguments whose shapes contain them."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from minijax.base import errors
from minijax.base.symbolic import dimension

OPERATIONS: Mapping[str, Callable] = {**dimension.PYTHON, "max": dimension.max_dim, "min": dimension.min_dim}


_PLACE = re.compile(r"\{(\d+)\}")  # other braces, from keys in paths, are kept


class Place(NamedTuple):
    """An axis of an argument, the dimension of that axis in the argument's shape, and a text such as `x.shape[0]`."""

    argument: int
    axis: int
    dim: dimension.Dim
    name: str


class Machine(Protocol):
    """The interface of the arithmetic: on ints when a function is called, on scalars inside a program."""

    @property
    def operations(self) -> Mapping[str, Callable[[Any, Any], Any]]:
        """The implementation of each operation on dimensions, by name."""
        ...

    def size(self, place: Place) -> Any:
        """The size of the argument along that axis."""
        ...

    def require(self, relation: str, x: Any, y: Any, message: str, values: Sequence) -> None:
        """Checks `x >= y`, or `x == y`. In `message`, a number in braces refers to one of the values."""
        ...


class EagerMachine:
    """Computes eagerly on the sizes of arguments: ints, or dimensions of another scope."""

    operations = OPERATIONS

    def __init__(self, shapes: Sequence[Sequence]):
        self._shapes = shapes

    def size(self, place: Place) -> Any:
        return self._shapes[place.argument][place.axis]

    def require(self, relation: str, x: Any, y: Any, message: str, values: Sequence) -> None:
        try:
            holds = x >= y if relation == ">=" else x == y
        except errors.InconclusiveDimensionOperation:
            holds = False  # it does not hold for all values of the variables
        if not holds:
            raise ValueError(_PLACE.sub(lambda place: str(values[int(place[1])]), message))


def variables_of(shapes: Sequence[Sequence]) -> list[str]:
    """The dimension variables in shapes, sorted."""
    return sorted({v for shape in shapes for d in shape if isinstance(d, dimension.SymbolicDim) for v in d.variables()})


def solved(shapes: Sequence[Sequence], names: Sequence[str], machine: Machine) -> dict[str, Any]:
    """Solves for the dimension variables in the shapes of arguments; `names` are the arguments' names.

    Raises ValueError if they do not follow from equations that are linear in one variable. Has the machine check that
    they are positive, and that all sizes and the constraints of the scope are consistent with them.
    """
    solver = _Solver(shapes, names, machine)
    solver.solve()
    solver.check_constraints()
    return solver.values


class _Solver:
    """The equations that are not solved yet, and the variables that are."""

    def __init__(self, shapes: Sequence[Sequence], names: Sequence[str], machine: Machine):
        self.machine, self.values = machine, {}
        self._obtained: list[tuple[str, Place]] = []
        self._left = [
            Place(i, axis, d, f"{name}.shape[{axis}]")
            for i, (shape, name) in enumerate(zip(shapes, names, strict=True))
            for axis, d in enumerate(shape)
            if isinstance(d, dimension.SymbolicDim)
        ]
        rows = zip(shapes, names, strict=True)
        self._shown = ",".join([f"{n}.shape = {_shape_text(s)}" for s, n in rows if any(map(_is_symbolic, s))])
        self._scope = self._left[0].dim.scope if self._left else None

    def solve(self) -> None:
        while self._left:
            before, self._left = self._left, []
            self._left = [place for place in before if not self._solve(place)]
            if len(self._left) == len(before):
                raise self._unsolved()

    def _solve(self, place: Place) -> bool:
        """Solves or checks an equation; returns False if it cannot be solved for exactly one unknown variable."""
        unknown = place.dim.variables() - self.values.keys()
        if not unknown:
            self._check_consistent(place)
            return True
        if len(unknown) > 1:
            return False
        (name,) = unknown
        split = _linear(place.dim, name)
        if split is None:
            return False
        self._assign(name, place, *split)
        return True

    def _assign(self, name: str, place: Place, coefficient: int, rest: dimension.Dim) -> None:
        operations, size = self.machine.operations, self.machine.size(place)
        scaled = size if rest == 0 else operations["add"](size, self._value(-rest))
        if coefficient < 0:
            scaled = operations["mul"](scaled, -1)
        divisor, value = abs(coefficient), scaled
        if divisor != 1:
            value, over = operations["floordiv"](scaled, divisor), operations["mod"](scaled, divisor)
            self._require("==", over, 0, f"Division had remainder {{0}} when computing the value of '{name}'.", over)
        self.values[name] = value
        self._obtained.append((name, place))
        self._require(">=", value, 1, f"Expected value >= 1 for dimension variable '{name}'.")

    def _check_consistent(self, place: Place) -> None:
        size, value = self.machine.size(place), self._value(place.dim)
        told = (
            f"Found inconsistency between dimension size {place.name} (= {{0}}) and the specification "
            f"'{place.dim}' (= {{1}})."
        )
        self._require("==", size, value, told, size, value)

    def check_constraints(self) -> None:
        for equal, difference, shown in self._scope.constraints if self._scope is not None else ():
            value, relation = self._value(difference), "equal" if equal else "greater or equal"
            if isinstance(value, int) and value == 0:
                continue
            told = f"Expected '{difference}' to be {relation} to 0, but found {{0}}. "
            which = f"symbolic shape constraint {shown}"
            self._require("==" if equal else ">=", value, 0, told, value, which=which)

    def _value(self, d: dimension.Dim) -> Any:
        if not isinstance(d, dimension.SymbolicDim):
            return d
        values = dict(self.values)
        for name in d.variables() - values.keys():
            # A variable that an equality constraint has replaced does not appear in any shape.
            replaced = dimension.variable(name, d.scope)
            if not isinstance(replaced, dimension.SymbolicDim) or name not in replaced.variables():
                values[name] = self._value(replaced)
        return d.evaluate(values, self.machine.operations)

    def _require(self, relation, x, y, told, *values, which="polymorphic shapes specification"):
        numbers, rows = len(values), []
        for name, place in self._obtained:
            rows.append(
                f"'{name}' = {{{numbers}}} from specification '{place.dim}' for dimension {place.name} "
                f"(= {{{numbers + 1}}})"
            )
            values, numbers = (*values, self.values[name], self.machine.size(place)), numbers + 2
        message = (
            f"Input shapes do not match the {which}. {told} {self._using()} Obtained dimension variables: "
            f"{''.join(f'{row}, ' for row in rows)}. Please see {dimension.GUIDE}#shape-assertion-errors for more "
            "details."
        )
        self.machine.require(relation, x, y, message, values)

    def _using(self) -> str:
        return f"Using the following polymorphic shapes specifications: {self._shown}."

    def _unsolved(self) -> ValueError:
        unknown = {v for place in self._left for v in place.dim.variables()} - self.values.keys()
        left = ", ".join([f"'{place.dim}' for dimension size {place.name}" for place in self._left])
        return ValueError(
            f"Cannot solve for values of dimension variables {unknown}. We can only solve linear uni-variate "
            f"constraints. {self._using()} Unprocessed specifications: {left}. See "
            f"{dimension.GUIDE}#dimension-variables-must-be-solvable-from-the-input-shapes."
        )


def _is_symbolic(d: Any) -> bool:
    return isinstance(d, dimension.SymbolicDim)


def _shape_text(shape: Sequence) -> str:
    return f"({', '.join(map(str, shape))}{',' * (len(shape) == 1)})"


def _linear(d: dimension.SymbolicDim, name: str) -> tuple[int, dimension.Dim] | None:
    """The coefficient of a variable and the sum of the other terms; None if these contain the variable too."""
    alone, coefficient, rest = dimension.Term(((dimension.Factor(name), 1),)), 0, []
    for term, k in dimension.terms_of(d):
        if term == alone:
            coefficient = k
        elif name in dimension.names_in(term):
            return None
        else:
            rest.append((term, k))
    if not rest:
        return coefficient, 0
    return coefficient, d - coefficient * dimension.SymbolicDim(((alone, 1),), d.scope)
