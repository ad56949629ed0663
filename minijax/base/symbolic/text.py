"""Parses symbolic shapes, and constraints between symbolic expressions."""

import operator
import re
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from minijax.base.symbolic.dimension import FLOORDIV, MAX, MIN, MOD, Dim, Scope, max_dim, min_dim, operation, variable

_TOKEN = re.compile(
    r"\s*(?:(?P<name>[^\W\d]\w*)|(?P<number>\d[\d_]*(?:\.\d*)?)|(?P<sign>\.\.\.|[-+*^(),]|>=|<=|==|\S))"
)
_OPERATIONS = {MAX: max_dim, MIN: min_dim}
_COMPARISONS = ("==", ">=", "<=")
_END = ("end", "", -1)


class _Parser:
    """Parses a shape; placeholders are replaced by dimensions of `like`."""

    def __init__(self, spec: str | None, like: Sequence[Any] | None, scope: Scope):
        self.spec, self.like, self.scope = spec, like, scope
        self.source = "..." if spec is None else spec
        matches = _TOKEN.finditer(self.source.rstrip())
        self.tokens = [(str(m.lastgroup), m[m.lastgroup or 0], m.start(m.lastgroup or 0)) for m in matches]
        self.at, self.dims = 0, []

    @property
    def token(self) -> tuple[str, str, int]:
        return self.tokens[self.at] if self.at < len(self.tokens) else _END

    def fail(self, fault: str) -> NoReturn:
        position = self.token[2] if self.token is not _END else len(self.source)
        raise ValueError(
            f"syntax error in symbolic shape {self.spec!r} in dimension {len(self.dims)}: {fault}. Parsed "
            f"'{self.source[:position]}', remaining '{self.source[position:]}'."
        )

    def take(self, *expected: str) -> str | None:
        """Consumes and returns the next token if it is one of the expected ones; else returns None."""
        kind, shown, _ = self.token
        if not (kind if kind in ("name", "number") else shown) or (kind not in expected and shown not in expected):
            return None
        self.at += 1
        return shown

    def require(self, *expected: str) -> str:
        token = self.take(*expected)
        if token is None:
            self.fail(f"expecting {' or '.join(expected)} but found {self.token[1] or 'the end'}")
        return token

    def shape(self) -> tuple[Any, ...]:
        if self.take("("):
            self.shape()
            self.require(")")
        else:
            self.sizes()
        return tuple(self.dims)

    def sizes(self) -> None:
        while self.token is not _END and self.token[1] != ")":
            if self.token[1] in ("...", "_"):
                if self.placeholder():
                    return
            else:
                d = self.expression()
                if self.token is not _END and self.token[1] not in (",", ")"):
                    self.fail_rest()
                self.dims.append(self.checked(d))
            if not self.take(","):
                return

    def placeholder(self) -> bool:
        """Parses `_` or `...`, which take one or all remaining dimensions of `like`; returns True for `...`."""
        at, shown = len(self.dims), self.token[1]
        if self.like is None:
            self.fail("spec contains ... but no 'like' shape was given")
        if at > len(self.like) - (shown == "_"):
            self.fail(
                f"cannot resolve placeholder '{shown}' because we parsed {at} already and 'like' shape has only "
                f"{len(self.like)} dimensions"
            )
        for d in self.like[at:] if shown == "..." else self.like[at : at + 1]:
            if d is None:
                self.fail(f"unexpected placeholder for unknown dimension; like={self.like}")
            self.dims.append(d)
        self.at += 1
        if shown == "...":
            self.take(",")
        return shown == "..."

    def checked(self, d: Dim) -> Dim:
        at = len(self.dims)
        known = self.like[at] if self.like is not None and at < len(self.like) else None
        if type(d) is int and known is not None and known != d:
            self.fail(f"different size {d} for known dimension; like={self.like}")
        return d

    def expression(self) -> Dim:
        sign = self.take("+", "-")
        d: Any = -self.product() if sign == "-" else self.product()
        while sign := self.take("+", "-"):
            d = (operator.add if sign == "+" else operator.sub)(d, self.product())
        return d

    def product(self) -> Dim:
        d = self.power()
        while self.take("*"):
            d = d * self.power()
        return d

    def power(self) -> Dim:
        d = self.factor()
        return d ** self.number() if self.take("^") else d

    def factor(self) -> Dim:
        token = self.take("name", "number", "-")
        if token in (FLOORDIV, MAX, MIN, MOD):
            return self.call(token)
        if token == "-":
            return -self.number()
        if token is None:
            self.fail(f"expecting a name, a number or an operation but found {self.token[1] or 'the end'}")
        if token[0].isdigit():
            self.at -= 1
            return self.number()
        return variable(token, self.scope)

    def number(self) -> int:
        shown = self.require("number")
        if "." in shown:
            self.at -= 1
            self.fail(f"expecting integer, found {shown}")
        return int(shown)

    def call(self, name: str) -> Dim:
        self.require("(")
        x = self.expression()
        self.require(",")
        y = self.expression()
        self.require(")")
        return _OPERATIONS[name](x, y) if name in _OPERATIONS else operation(name, x, y, self.scope)

    def parse_all(self, part: Callable[[], Any]) -> Any:
        result = part()
        if self.token is not _END:
            self.fail_rest()
        return result

    def fail_rest(self) -> NoReturn:
        self.fail(f"expecting the end, * or + but found {self.token[1]}")


def parse_shape(spec: str | None, like: Sequence[Any] | None, scope: Scope) -> tuple[Any, ...]:
    """Parses a shape. Raises ValueError for a syntax error."""
    parser = _Parser(spec, like, scope)
    return parser.parse_all(parser.shape)


def parse_constraint(source: str, scope: Scope) -> tuple[Dim, str, Dim]:
    """Parses a constraint into left side, sign and right side. Raises ValueError for a syntax error."""
    sign = next((s for s in _COMPARISONS if s in source), None)
    if sign is None:
        raise ValueError(f"Constraint parsing error: must contain one of '==' or '>=' or '<=', but found {source!r}.")
    left, right = (_Parser(side, None, scope) for side in source.split(sign, 1))
    return left.parse_all(left.expression), sign, right.parse_all(right.expression)
