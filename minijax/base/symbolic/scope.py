"""Scopes: they define the variables of symbolic dimensions and the constraints on them."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from minijax.base import source
from minijax.base.symbolic import dimension
from minijax.base.symbolic.bounds import Decision
from minijax.base.symbolic.text import parse_constraint, parse_shape


class Constraint(NamedTuple):
    """An assumption that a difference is zero (`equal`) or at least zero, and its text as the user wrote it."""

    equal: bool
    difference: dimension.SymbolicDim
    shown: str


class SymbolicScope:
    """Holds the variables of symbolic dimensions, with constraints like `"a >= 2*b"`.

    Dimensions of two scopes cannot be mixed. A constraint `term == expression` also rewrites the term.

    Example:
        >>> scope = jax.export.SymbolicScope(["a >= 2"])
        >>> (a,) = jax.export.symbolic_shape("a", scope=scope)
        >>> a >= 1
        True
    """

    def __init__(self, constraints_str: Iterable[str] = ()):
        if isinstance(constraints_str, str):
            raise ValueError(f"The symbolic constraints should be a sequence of strings. Got {constraints_str!r}")
        self.place = source.summary(source.here(), columns=True)
        self.constraints: list[Constraint] = []
        self.rules: dict[dimension.Term, tuple[int, dimension.Terms]] = {}
        self._assume_all(constraints_str)

    def _assume_all(self, constraints: Iterable[str]) -> None:
        self._texts = []
        self._clear_derived()
        for constraint in constraints:
            if not isinstance(constraint, str):
                raise ValueError(f"SymbolicScope constraint must be a string: got {constraint!r}")
            self._texts.append(constraint)
            self._assume(*parse_constraint(constraint, self), constraint)

    def __getstate__(self):
        return self.place, self._texts

    def __setstate__(self, state):
        self.place, texts = state
        self.constraints, self.rules = [], {}
        self._assume_all(texts)

    def _clear_derived(self) -> None:
        self._decision: Decision | None = None
        self._bounds: dict[dimension.SymbolicDim, dimension.Bounds] = {}

    def _assume(self, left: dimension.Dim, sign: str, right: dimension.Dim, shown: str) -> None:
        if sign == "<=":
            left, right = right, left
        equal, difference = sign == "==", left - right
        if isinstance(difference, int):
            if difference == 0 or difference > 0 and not equal:
                return
            raise ValueError(f"Unsatisfiable explicit constraint: {shown}")
        if equal:
            self._rewrite(left, right, shown)
        self.constraints.append(Constraint(equal, difference, shown))
        self._clear_derived()

    def _rewrite(self, left: dimension.Dim, right: dimension.Dim, shown: str) -> None:
        (term, k), *others = dimension.terms_of(left)
        if others or not term.powers:
            raise ValueError(
                f"Invalid equality constraint: {shown}. The left-hand-side must be of the form `term * coefficient`."
            )
        factor = term.powers[0][0]
        if k == 1 and right == 0 and len(term.powers) == 1 and factor.name == dimension.MOD:
            # A dimension that is divisible by n equals n times its quotient.
            x, n = factor.operands
            if isinstance(n, int) and term.powers[0][1] == 1:
                multiple = n * dimension.operation(dimension.FLOORDIV, x, n, self)
                self._assume(multiple, "==", x, f"{dimension.text(dimension.terms_of(multiple))} == {x}")
        if term in self.rules:
            raise NotImplementedError(f"Found multiple equality constraints with the same left-hand-side: {shown}")
        self.rules[term] = (abs(k), dimension.terms_of(right if k > 0 else -right))

    def require_same(self, other: "SymbolicScope", d: dimension.SymbolicDim, when: str) -> None:
        """Raises ValueError if `other`, the scope of `d`, is a different scope."""
        if self is not other:
            raise ValueError(
                f"Invalid mixing of symbolic scopes {when}.\nExpected {self}\nand found for '{d}' {other}\n"
                f"See {dimension.GUIDE}#user-specified-symbolic-constraints."
            )

    def bounds(self, d: dimension.SymbolicDim) -> dimension.Bounds:
        """The lower and upper bound that the decision procedure finds for a dimension."""
        known = self._bounds.get(d)
        if known is None:
            if self._decision is None:
                self._decision = Decision(self, self.constraints)
            known = self._bounds[d] = self._decision.bounds(d)
        return known

    def __str__(self) -> str:
        lines = "".join(f"\n  {c.shown}" for c in self.constraints)
        return f"SymbolicScope {id(self)} created at {self.place}{' with constraints:' + lines if lines else ''}"

    __repr__ = __str__


def symbolic_shape(
    shape_spec: str | None,
    *,
    constraints: Sequence[str] = (),
    scope: SymbolicScope | None = None,
    like: Sequence[int | None] | None = None,
) -> tuple[Any, ...]:
    """Creates symbolic dimensions from a text such as `"b, 2*c + 1"`.

    Args:
        shape_spec: The text. `_` is replaced by one dimension of `like`, and `...` by all remaining ones.
        constraints: Texts such as `"b >= 2"` and `"mod(c, 2) == 0"` that hold for the variables.
        scope: A `SymbolicScope`, in place of a new one with these constraints.
        like: A shape.

    Returns:
        A tuple of dimensions: integers and symbolic expressions.

    Raises:
        ValueError: If the text cannot be parsed.

    Example:
        >>> b, width = jax.export.symbolic_shape("b, 2*c")
        >>> b * width
        2*b*c
    """
    if not (shape_spec is None or isinstance(shape_spec, str)):
        raise ValueError(f"polymorphic shape spec should be None or a string. Found {shape_spec}.")
    if scope is None:
        scope = SymbolicScope(constraints)
    elif constraints:
        raise ValueError("Cannot specify both a `scope` and `constraints`.")
    return parse_shape(shape_spec, like, scope)
