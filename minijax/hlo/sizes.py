"""Symbolic dimensions in modules: expressions of dimension variables, computed as scalars at run time."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np

from minijax.base.symbolic.solver import Place
from minijax.hlo import spell
from minijax.hlo.spell import type_of, types_of
from minijax.hlo.writer import FLAG, INDEX, Names, Writer
from minijax.ir.types import Aval, Name, ShapedArray


def has_sizes(aval: Aval) -> bool:
    """Returns whether a dimension of this type is symbolic: its size is known only at run time."""
    return "?" in type_of(aval)


def has_symbolic_sizes(text: str) -> bool:
    """Returns whether a module reads sizes of values at run time: it has symbolic dimensions."""
    return "stablehlo.get_dimension_size" in text


def are_known(sizes: Sequence) -> bool:
    """Returns whether all sizes are ints."""
    return all(isinstance(d, int | np.integer) for d in sizes)


_BINARY = {"add": "add", "mul": "multiply", "max": "maximum", "min": "minimum"}


class Expression(Protocol):
    """A size as an expression of dimension variables."""

    def evaluate(self, env: Mapping[str, Any], operations: Mapping[str, Callable[[Any, Any], Any]]) -> Any: ...


Size = int | Name | Expression  # a Name is that of a scalar


class Sizes(Writer):
    """Sizes as scalars and as arrays, computed from the dimension variables among the module's globals."""

    @property
    def operations(self) -> dict[str, Callable[[Any, Any], Any]]:
        """The operations for `Expression.evaluate`, which emit code."""
        binary = {name: partial(self._with, operation) for name, operation in _BINARY.items()}
        return {**binary, "floordiv": self._floordiv, "mod": self._mod}

    def list_type(self, count: int) -> ShapedArray:
        """The type of an array of `count` sizes."""
        return ShapedArray((count,), self.size_type.dtype)

    def size(self, size: Size) -> Name:
        """A size as a scalar."""
        if isinstance(size, str):
            return size
        if isinstance(size, int | np.integer):
            return self.constant(int(size), self.size_type)
        return size.evaluate(self.globals, self.operations)

    def _with(self, operation: str, x: Size, y: Size) -> Name:
        return self.binary(operation, self.size(x), self.size(y), self.size_type)

    def _floordiv(self, x: Size, y: Size) -> Name:
        x, y, is_above = self._truncated_division(x, y)
        quotient = self._with("divide", x, y)
        return self._select(is_above, self._with("subtract", quotient, 1), quotient)

    def _mod(self, x: Size, y: Size) -> Name:
        x, y, is_above = self._truncated_division(x, y)
        remainder = self._with("remainder", x, y)
        return self._select(is_above, self._with("add", remainder, y), remainder)

    def _truncated_division(self, x: Size, y: Size) -> tuple[Name, Name, Name]:
        """The scalars, and a flag: XLA's quotient, which is rounded toward zero, exceeds the floor."""
        x, y, aval = self.size(x), self.size(y), self.size_type
        remainder = self.binary("remainder", x, y, aval)
        signs = [self.unary("sign", v, aval) for v in (remainder, y)]
        return x, y, self.binary("and", self._not_equal(remainder, self.size(0)), self._not_equal(*signs), FLAG)

    def _not_equal(self, x: Name, y: Name) -> Name:
        return self.result(f"stablehlo.compare NE, {x}, {y}, SIGNED", (self.size_type, self.size_type), FLAG)

    def _select(self, flag: Name, x: Name, y: Name) -> Name:
        return self.assign(f"stablehlo.select {flag}, {x}, {y} : {type_of(FLAG)}, {type_of(self.size_type)}")

    def size_list(self, sizes: Sequence) -> Name:
        """Sizes as a one-dimensional array."""
        kind, whole = self.size_type, self.list_type(len(sizes))
        if are_known(sizes):
            return self.constant(np.array([int(d) for d in sizes], kind.dtype), whole)
        one = ShapedArray((1,), kind.dtype)
        parts = [self.map_to("reshape", self.size(d), kind, one) for d in sizes]
        if len(parts) == 1:
            return parts[0]
        return self.result(f"stablehlo.concatenate {', '.join(parts)}, dim = 0", [one] * len(parts), whole)

    def size_as(self, size: Size, aval: ShapedArray) -> Name:
        """A size as a scalar of any dtype."""
        if isinstance(size, int | np.integer):
            return self.constant(int(size), aval)
        name = self.size(size)
        return name if aval.dtype == self.size_type.dtype else self.map_to("convert", name, self.size_type, aval)

    def sizes_as(self, sizes: Sequence[Size], aval: ShapedArray) -> Name:
        """Sizes as a one-dimensional array of any dtype."""
        if are_known(sizes):
            return self.constant(np.asarray(sizes, aval.dtype), aval)
        have, listed = self.list_type(len(sizes)), self.size_list(sizes)
        return listed if have.dtype == aval.dtype else self.map_to("convert", listed, have, aval)

    def size_pairs(self, pairs: Sequence[Sequence]) -> tuple[Name, ShapedArray]:
        """Pairs of sizes as a two-dimensional array, and its type."""
        flat, out = self.list_type(2 * len(pairs)), ShapedArray((len(pairs), 2), self.size_type.dtype)
        return self.map_to("reshape", self.size_list([d for pair in pairs for d in pair]), flat, out), out

    def resized(self, x: Name, aval: Aval, out: Aval) -> Name:
        """Converts a value to a type in which more, or fewer, sizes are static."""
        return x if type_of(aval) == type_of(out) else self.map_to("convert", x, aval, out)

    def size_of_axis(self, x: Name, aval: ShapedArray, axis: int) -> Name:
        """The size of an axis."""
        size = self.map_to("get_dimension_size", x, aval, INDEX, f", dim = {axis}")
        return size if self.size_type is INDEX else self.map_to("convert", size, INDEX, self.size_type)

    def assert_size(self, relation: str, x: Size, y: Size, message: str, values: Sequence[Size]) -> None:
        """Aborts the program with `message` unless `x >= y`, or `x == y`; `{0}`, … in the message refer to `values`."""
        kind, direction = self.size_type, {">=": "GE", "==": "EQ"}[relation]
        text = f"stablehlo.compare {direction}, {self.size(x)}, {self.size(y)}, SIGNED"
        flag = self.result(text, (kind, kind), FLAG)
        names = ", ".join([flag, *map(self.size, values)])
        how = {"api_version": "2 : i32", "error_message": spell.string(message), "has_side_effect": "true"}
        types = types_of([FLAG, *[kind] * len(values)])
        self.line(f"stablehlo.custom_call @shape_assertion({names}) {spell.dictionary(how)} : ({types}) -> ()")

    def sized(
        self, text: str, operands: Names, ins: Sequence[Aval], lists: Sequence[Sequence], out: Aval, attrs: str = ""
    ) -> Name:
        """An operation `text` on operands and arrays of sizes, followed by attributes."""
        names, types = [*operands, *map(self.size_list, lists)], [self.list_type(len(s)) for s in lists]
        return self.result(f"stablehlo.{text} {', '.join(names)}{attrs}", (*ins, *types), out)


class SizesOfArguments:
    """Emits computations on the sizes of a function's arguments."""

    def __init__(self, e: Sizes, names: Names, avals: Sequence[ShapedArray]):
        self._e, self._names, self._avals = e, names, avals
        self._sizes: dict[tuple[int, int], Name] = {}
        self.operations: Mapping[str, Callable[[Any, Any], Any]] = e.operations

    def size(self, place: Place) -> Name:
        at, axis = place.argument, place.axis
        if (at, axis) not in self._sizes:
            self._sizes[at, axis] = self._e.size_of_axis(self._names[at], self._avals[at], axis)
        return self._sizes[at, axis]

    def require(self, relation: str, x: Size, y: Size, message: str, values: Sequence[Size]) -> None:
        self._e.assert_size(relation, x, y, message, values)
