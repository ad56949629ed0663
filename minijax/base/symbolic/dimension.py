"""Symbolic dimensions: polynomials over dimension variables and over operations on such polynomials."""

import functools
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, TypeAlias

from minijax.base import errors

GUIDE = "https://docs.jax.dev/en/latest/export/shape_poly.html"
FLOORDIV, MAX, MIN, MOD = "floordiv", "max", "min", "mod"

Dim: TypeAlias = "int | SymbolicDim"
Bounds: TypeAlias = tuple[float, float]
Operations: TypeAlias = Mapping[str, Callable[[Any, Any], Any]]
Terms: TypeAlias = "tuple[tuple[Term, int], ...]"


class Scope(Protocol):
    """The interface of the scope in which a dimension's variables are defined."""

    rules: dict["Term", tuple[int, Terms]]

    def bounds(self, d: "SymbolicDim") -> Bounds: ...
    def require_same(self, other: Any, d: "SymbolicDim", when: str) -> None: ...


class UnexpectedDimVar(Exception):
    """Raised if a dimension variable has no value."""


@functools.total_ordering
class _Ordered:
    """Compared by `key`, which begins with a size: larger expressions come after smaller ones."""

    __slots__ = ("key",)

    key: tuple

    def __eq__(self, other: object) -> bool:
        return self is other or isinstance(other, _Ordered) and self.key == other.key

    def __lt__(self, other: "_Ordered") -> bool:
        return self.key < other.key

    def __hash__(self) -> int:
        return hash(self.key)


class Factor(_Ordered):
    """A dimension variable, or an operation on dimensions."""

    __slots__ = ("name", "operands")

    def __init__(self, name: str, *operands: Dim):
        self.name, self.operands = name, operands
        keys = tuple(map(_key, operands))
        self.key = (1 + sum(size for size, _ in keys), name, keys)

    def __reduce__(self):
        return Factor, (self.name, *self.operands)

    def __str__(self) -> str:
        if not self.operands:
            return self.name
        return f"{self.name}({', '.join(text(terms_of(d)) for d in self.operands)})"


class Term(_Ordered):
    """A product of powers of factors, the largest factor first."""

    __slots__ = ("powers",)

    def __init__(self, powers: Iterable[tuple[Factor, int]] = ()):
        self.powers = tuple(sorted(powers, reverse=True))
        keys = tuple((factor.key, power) for factor, power in self.powers)
        self.key = (sum(key[0] + power for key, power in keys), keys)

    def __reduce__(self):
        return Term, (self.powers,)

    def __str__(self) -> str:
        return "*".join(f"{factor}^{power}" if power > 1 else str(factor) for factor, power in self.powers[::-1])

    def __mul__(self, other: "Term") -> "Term":
        powers = dict(self.powers)
        for factor, power in other.powers:
            powers[factor] = powers.get(factor, 0) + power
        return Term(powers.items())

    def quotient(self, other: "Term") -> "Term | None":
        """The quotient of this term and `other`; None if `other` does not divide it."""
        powers = dict(self.powers)
        for factor, power in other.powers:
            powers[factor] = powers.get(factor, 0) - power
        return None if min(powers.values(), default=0) < 0 else Term((f, n) for f, n in powers.items() if n)


ONE = Term()


def _key(d: Dim) -> tuple:
    return (1, ((ONE.key, d),)) if isinstance(d, int) else d.key


def terms_of(d: Dim) -> Terms:
    """The terms of a dimension with their coefficients, the largest first."""
    return ((ONE, d),) if isinstance(d, int) else d.terms


def text(terms: Terms) -> str:
    parts = []
    for term, k in terms:
        sign, shown, n = "-" if k < 0 else "+", str(term), abs(k)
        parts += [sign, str(n) if term is ONE or not shown else shown if n == 1 else f"{n}*{shown}"]
    return " ".join(parts[1:] if parts[0] == "+" else parts)


def total(scope: Scope, terms: Iterable[tuple[Term, int]]) -> Dim:
    """The sum of terms, rewritten by the scope's equality constraints; an int if no variable is left."""
    sums: dict[Term, int] = {}
    for term, k in terms:
        sums[term] = sums.get(term, 0) + k
    if scope.rules:
        coefficients: dict[Term, int] = {}
        for before in sums.items():
            for term, k in _rewritten(scope, *before):
                coefficients[term] = coefficients.get(term, 0) + k
        sums = coefficients
    left = tuple(sorted(((term, k) for term, k in sums.items() if k), reverse=True))
    if not left:
        return 0
    return left[0][1] if left[0][0] == ONE else SymbolicDim(left, scope)


def _rewritten(scope: Scope, term: Term, k: int) -> Terms:
    """`k * term` rewritten by the rule for the term, or for one of its powers; unchanged if no rule applies."""
    for part in (term, *(Term((power,)) for power in term.powers)):
        n, result = scope.rules.get(part, (0, ()))
        if n and k % n == 0 and (rest := term.quotient(part)) is not None:
            return tuple((rest * other, k // n * m) for other, m in result)
    return ((term, k),)


def as_dim(x: Any) -> "Dim | None":
    """Returns `x` as a dimension, an int or a symbolic one; None if `x` is not a dimension."""
    if type(x) is int or isinstance(x, SymbolicDim):
        return x
    try:
        return operator.index(x)
    except Exception:  # of any class: tracers and user-defined types raise their own
        return None


def _arithmetic(function: Callable[[Any, Any], Any], by_value: Callable[[Any, Any], Any]) -> tuple[Callable, Callable]:
    """The two methods of an operator: they call `function` on two dimensions, and `by_value` on anything else."""

    def forward(self: "SymbolicDim", other: Any) -> Any:
        d = as_dim(other)
        return by_value(self.dimension_as_value(), other) if d is None else function(self, d)

    def backward(self: "SymbolicDim", other: Any) -> Any:
        d = as_dim(other)
        return by_value(other, self.dimension_as_value()) if d is None else function(d, self)

    return forward, backward


def _scope(*ds: Dim, when: str) -> Scope:
    first, *others = [d for d in ds if isinstance(d, SymbolicDim)]
    for d in others:
        if d.scope is not first.scope:
            first.scope.require_same(d.scope, d, when)
    return first.scope


def linear(*scaled: tuple[Dim, int], when: str = "for linear combination") -> Dim:
    """The sum of dimensions multiplied by ints; at least one dimension is symbolic."""
    scope = _scope(*(d for d, _ in scaled), when=when)
    return total(scope, ((term, k * n) for d, n in scaled for term, k in terms_of(d)))


def add(x: Dim, y: Dim) -> Dim:
    return linear((x, 1), (y, 1))


def sub(x: Dim, y: Dim) -> Dim:
    return linear((x, 1), (y, -1))


def mul(x: Dim, y: Dim) -> Dim:
    if isinstance(y, int):
        return linear((x, y))
    if isinstance(x, int):
        return linear((y, x))
    scope = _scope(x, y, when="for operation mul")
    return total(scope, ((s * t, k * n) for s, k in x.terms for t, n in y.terms))


def operation(name: str, x: Dim, y: Dim, scope: Scope) -> Dim:
    """The operation `name` on two dimensions, unevaluated."""
    return total(scope, ((Term(((Factor(name, x, y), 1),)), 1),))


# The order of terms does not guarantee that each step of a long division leaves a smaller remainder.
_MOST_STEPS = 100


def _long_division(x: Dim, y: Dim) -> tuple[Dim, Dim] | None:
    """Quotient and remainder by long division; None if the division leaves a remainder that contains variables."""
    (divisor, n), *_ = terms_of(y)
    quotient: Dim = 0
    steps = 0
    while not isinstance(x, int):
        (term, k), *_ = x.terms
        rest = term.quotient(divisor)
        if rest is None or k % n or steps == _MOST_STEPS:
            return None
        part = total(x.scope, ((rest, k // n),))
        x, steps = x - part * y, steps + 1
        quotient = quotient + part
    if isinstance(y, int):
        return quotient + x // y, x % y
    return (quotient, 0) if x == 0 else None


def div_mod(x: Dim, y: Dim, name: str = "divmod") -> tuple[Dim, Dim]:
    if isinstance(y, int) and y == 0:
        raise ZeroDivisionError("integer division or modulo by zero")
    scope = _scope(x, y, when=f"for operation {name}")
    return _long_division(x, y) or (operation(FLOORDIV, x, y, scope), operation(MOD, x, y, scope))


def floordiv(x: Dim, y: Dim) -> Dim:
    return div_mod(x, y, FLOORDIV)[0]


def mod(x: Dim, y: Dim) -> Dim:
    return div_mod(x, y, MOD)[1]


def _at_least(x: Dim, y: Dim, shown: str) -> bool:
    """Returns whether x >= y for all values of the variables; raises an error if that depends on them."""
    scope = _scope(x, y, when=f"when comparing {shown}")
    difference = sub(x, y)
    if isinstance(difference, int):
        return difference >= 0
    low, high = scope.bounds(difference)
    if low < 0 <= high:
        raise inconclusive(f"Symbolic dimension comparison {shown} is inconclusive.", scope)
    return low >= 0


def inconclusive(message: str, scope: Any = None) -> errors.InconclusiveDimensionOperation:
    """The error for a comparison whose result depends on the values of the variables."""
    if scope is not None and scope.constraints:
        message += f"\nUsing symbolic scope {scope}"
    return errors.InconclusiveDimensionOperation(
        f"{message}\nThe answer would have to be one Python value, whatever values the symbolic dimensions have.\n"
        f"See {GUIDE}#comparison-of-symbolic-dimensions-is-partially-supported."
    )


def _comparison(sign: str, function: Callable[[Any, Any, str], bool]) -> Callable[[Any, Any], Any]:
    by_value = {">=": operator.ge, ">": operator.gt, "<=": operator.le, "<": operator.lt}[sign]

    def compare(self: "SymbolicDim", other: Any) -> Any:
        d = as_dim(other)
        if d is None:
            return by_value(self.dimension_as_value(), other)
        return function(self, d, f"'{self}' {sign} '{d}'")

    return compare


class SymbolicDim:
    """A dimension whose size is an expression over dimension variables, which are integers of at least 1."""

    __slots__ = ("_hash", "key", "scope", "terms")
    __array_priority__ = 1000  # NumPy defers to the operators of this class

    def __init__(self, terms: Terms, scope: Any):
        self.terms, self.scope = terms, scope
        self.key = (sum(1 + abs(k) * term.key[0] for term, k in terms), tuple((term.key, k) for term, k in terms))
        self._hash = hash((self.key, id(scope)))

    def __reduce__(self):
        return SymbolicDim, (self.terms, self.scope)

    def __str__(self) -> str:
        return text(self.terms)

    __repr__ = __str__

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, SymbolicDim) or self.scope is not other.scope:
            return False
        return self.key == other.key or bool(self.scope.rules) and isinstance(d := sub(self, other), int) and d == 0

    __add__, __radd__ = _arithmetic(add, operator.add)
    __sub__, __rsub__ = _arithmetic(sub, operator.sub)
    __mul__, __rmul__ = _arithmetic(mul, operator.mul)
    __floordiv__, __rfloordiv__ = _arithmetic(floordiv, operator.floordiv)
    __mod__, __rmod__ = _arithmetic(mod, operator.mod)
    __divmod__, __rdivmod__ = _arithmetic(div_mod, divmod)

    __ge__ = _comparison(">=", _at_least)
    __le__ = _comparison("<=", lambda x, y, shown: _at_least(y, x, shown))
    __gt__ = _comparison(">", lambda x, y, shown: not _at_least(y, x, shown))
    __lt__ = _comparison("<", lambda x, y, shown: not _at_least(x, y, shown))

    def __neg__(self) -> Dim:
        return linear((self, -1))

    def __truediv__(self, other: Any) -> Any:
        return self.dimension_as_value() / other

    def __rtruediv__(self, other: Any) -> Any:
        return other / self.dimension_as_value()

    def __pow__(self, power: Any, modulo: Any = None) -> Any:
        if modulo is not None:
            raise NotImplementedError("pow of a symbolic dimension takes no modulo.")
        if isinstance(power, SymbolicDim):
            return self.dimension_as_value() ** power
        n = as_dim(power)
        if n is None or n < 0:
            kind = "non-integer" if n is None else "negative"
            raise ValueError(f"Symbolic dimension cannot be raised to {kind} powers: '{self}' ** '{power}'")
        square = self ** (n // 2) if n > 1 else 1
        return square * square * (self if n % 2 else 1)

    def __rpow__(self, base: Any) -> Any:
        return base ** self.dimension_as_value()

    def __int__(self) -> int:
        raise inconclusive(f"Symbolic dimension '{self}' used in a context that requires a constant")

    def dimension_as_value(self) -> Any:
        """The dimension as an integer array, whose value is known only when the program runs."""
        return type(self).as_value(self)

    __jax_array__ = dimension_as_value

    @staticmethod
    def as_value(d: "SymbolicDim") -> Any:
        """Replaced by the primitive that converts a dimension to an array."""
        raise NotImplementedError(f"The symbolic dimension '{d}' has no value: it is used outside of jax.export.")

    def variables(self) -> set[str]:
        """The names of the variables that the dimension depends on."""
        return set[str]().union(*(names_in(term) for term, _ in self.terms))

    def evaluate(
        self, env: Mapping[str, Any], operations: "Mapping[str, Callable[[Any, Any], Any]] | None" = None
    ) -> Any:
        """The value if variables have the values in `env`: ints, dimensions, or other values that `operations` accepts.

        Either operand of an operation may be an int.
        """
        operations = operations or PYTHON
        parts = [_term_value(term, k, env, operations) for term, k in self.terms]
        return functools.reduce(operations["add"], parts)


def names_in(term: Term) -> set[str]:
    """The names of the variables that a term depends on."""
    factors = [factor for factor, _ in term.powers]
    names = {factor.name for factor in factors if not factor.operands}
    inner = (names_in(t) for factor in factors for d in factor.operands for t, _ in terms_of(d))
    return names.union(*inner)


def _term_value(term: Term, k: int, env: Mapping[str, Any], operations: Operations) -> Any:
    factors = [_factor_value(factor, env, operations) for factor, n in term.powers[::-1] for _ in range(n)]
    if k != 1 or not factors:
        factors.append(k)
    return functools.reduce(operations["mul"], factors)


def _factor_value(factor: Factor, env: Mapping[str, Any], operations: Operations) -> Any:
    if factor.operands:
        values = [d if isinstance(d, int) else d.evaluate(env, operations) for d in factor.operands]
        return operations[factor.name](*values)
    if factor.name not in env:
        raise UnexpectedDimVar(
            f"Encountered dimension variable '{factor.name}' that is not appearing in the shapes of the function "
            f"arguments.\nThe dimension variables that appear there are {sorted(env)}.\n"
            f"See {GUIDE}#dimension-variables-must-be-solvable-from-the-input-shapes."
        )
    return env[factor.name]


def variable(name: str, scope: Scope) -> Dim:
    """The dimension that consists of one variable."""
    return total(scope, ((Term(((Factor(name), 1),)), 1),))


def is_int(d: Any) -> bool:
    """True if a dimension is a known int while a program is traced."""
    return not isinstance(d, SymbolicDim)


def is_dim(d: Any) -> bool:
    """True for a dimension: an int, or a symbolic one."""
    return type(d) is int or isinstance(d, SymbolicDim)


def is_symbolic_dim(p: Any) -> bool:
    """Returns whether a dimension is an expression over variables rather than a number.

    Example:
        >>> (a,) = jax.export.symbolic_shape("a")
        >>> jax.export.is_symbolic_dim(a + 1), jax.export.is_symbolic_dim(3)
        (True, False)
    """
    return isinstance(p, SymbolicDim)


def _dim_argument(d: Any, argument: str, function: str) -> Dim:
    if type(d) is int or isinstance(d, SymbolicDim):
        return d
    if hasattr(d, "_error_repr"):
        raise errors.ConcretizationTypeError(d, f"argument `{argument}` of `core.{function}`")
    return operator.index(d)


def max_dim(d1: Any, d2: Any) -> Dim:
    """The greater of two dimensions; a symbolic `max` if the comparison is inconclusive."""
    x, y = _dim_argument(d1, "d1", "max_dim"), _dim_argument(d2, "d2", "max_dim")
    return max(x, y) if isinstance(x, int) and isinstance(y, int) else _extreme(MAX, x, y, x, y)


def min_dim(d1: Any, d2: Any) -> Dim:
    """The smaller of two dimensions; a symbolic `min` if the comparison is inconclusive."""
    x, y = _dim_argument(d1, "d1", "min_dim"), _dim_argument(d2, "d2", "min_dim")
    return min(x, y) if isinstance(x, int) and isinstance(y, int) else _extreme(MIN, x, y, y, x)


def _extreme(name: str, x: Dim, y: Dim, if_first_greater: Dim, if_second_greater: Dim) -> Dim:
    difference = sub(x, y)
    scope = _scope(x, y, when="for linear combination")
    low, high = (difference, difference) if isinstance(difference, int) else scope.bounds(difference)
    if low >= 0:
        return if_first_greater
    return if_second_greater if high <= 0 else operation(name, x, y, scope)


# The operations on ints and on dimensions.
PYTHON: Operations = {
    "add": operator.add,
    "mul": operator.mul,
    FLOORDIV: operator.floordiv,
    MOD: operator.mod,
    MAX: max_dim,
    MIN: min_dim,
}
