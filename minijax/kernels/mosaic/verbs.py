"""The operations of MLIR that kernels for TPUs are made of: arith, math, vector, memref, scf and tpu."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.base import dtypes
from minijax.ir.types import ShapedArray
from minijax.kernels.text import (
    I1,
    I32,
    INDEX,
    Region as Region,
    Type,
    Value,
    Writer,
    element_of,
    number,
    scalar,
    shaped,
)

# Predicates of comparisons by name: of floats, of integers, of integers without sign.
_PREDICATES = {
    "eq": (1, 0, 0), "ne": (6, 1, 1), "lt": (4, 2, 6), "le": (5, 3, 7), "gt": (2, 4, 8), "ge": (3, 5, 9),
}  # fmt: skip
# Operations on floats, integers and integers without sign.
_BINARY = {
    "add": ("addf", "addi", "addi"), "sub": ("subf", "subi", "subi"), "mul": ("mulf", "muli", "muli"),
    "div": ("divf", "divsi", "divui"), "rem": ("remf", "remsi", "remui"), "max": ("maximumf", "maxsi", "maxui"),
    "min": ("minimumf", "minsi", "minui"), "and": ("", "andi", "andi"), "or": ("", "ori", "ori"),
    "xor": ("", "xori", "xori"),
}  # fmt: skip


class Memory(NamedTuple):
    """A reference in a kernel: the value, whose type is a memref, and what it refers to.

    Dimensions of the memref that the kernel does not see have size 1, and are marked in `hidden`.
    """

    value: Value
    space: str
    dtype: Any
    hidden: tuple[bool, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape that the kernel sees."""
        return tuple([n for n, is_hidden in zip(self.value.shape, self.hidden, strict=True) if not is_hidden])


class Key(NamedTuple):
    """A key of the core's random generator, whose words are in scalar registers."""

    words: tuple[Value, Value]

    @property
    def type(self) -> Type:
        """Raises NotImplementedError: operations of MLIR do not take keys."""
        raise NotImplementedError(
            "kernels for TPUs cannot carry a Pallas key through a loop or choose one; fold numbers into one key instead"
        )


def vector(shape: Sequence[int], dtype: Any) -> Type:
    """The type of a value of this shape: a vector, or a number if it has no axes."""
    element = element_of(dtype)
    return shaped("vector", shape, element) if len(shape) else scalar(element)


def vector_of(shape: Sequence[int], element: str) -> Type:
    """As `vector`, with the text of the element type."""
    return shaped("vector", shape, element) if len(shape) else scalar(element)


def type_of(aval: ShapedArray) -> Type:
    """The type of values of an abstract type."""
    return vector(aval.shape, aval.dtype)


def is_float(element: str) -> bool:
    """Returns whether an element type has a fraction."""
    return element[0] in "fb"


def is_unsigned(dtype: Any) -> bool:
    return bool(dtypes.issubdtype(dtype, np.unsignedinteger))


def ints(numbers: Sequence[int], kind: str = "i64") -> str:
    """The text of an attribute that is an array of integers."""
    return f"array<{kind}{': ' if len(numbers) else ''}{', '.join(map(str, numbers))}>"


def listed(items: Sequence[Any]) -> str:
    return f"[{', '.join(map(str, items))}]"


class Verbs(Writer):
    """Writes single operations."""

    def one(self, name: str, operands: Sequence[Value], result: Type, **attributes: str) -> Value:
        """Writes an operation with one result."""
        return self.op(name, operands, [result], attributes)[0]

    def grouped(
        self, name: str, groups: Sequence[Sequence[Value | None]], results: Sequence[Type] = (), **attributes: str
    ) -> list[Value]:
        """Writes an operation whose operands come in groups, from which None is left out."""
        given = [[x for x in group if x is not None] for group in groups]
        sizes = ints([len(group) for group in given], "i32")
        operands = [x for group in given for x in group]
        return self.op(name, operands, results, dict(attributes, operandSegmentSizes=sizes))

    # ---- constants -------------------------------------------------------------------------------------

    def constant(self, value: Any, dtype: Any) -> Value:
        """A number."""
        kind = scalar(element_of(dtype))
        text = number(value, dtype)
        return self.one("arith.constant", (), kind, value=text if kind == I1 else f"{text} : {kind.text}")

    def index(self, value: int) -> Value:
        """A number of type `index`."""
        return self.one("arith.constant", (), INDEX, value=f"{value} : index")

    def i32(self, value: int) -> Value:
        return self.constant(value, np.int32)

    def dense(self, value: Any, shape: Sequence[int], dtype: Any) -> Value:
        """A vector of equal numbers as one constant; a number if it has no axes."""
        if not len(shape):
            return self.constant(value, dtype)
        kind = vector(shape, dtype)
        return self.one("arith.constant", (), kind, value=f"dense<{number(value, dtype)}> : {kind.text}")

    def fill(self, value: Any, shape: Sequence[int], dtype: Any) -> Value:
        """A vector of equal numbers as a number that is broadcast."""
        return self.broadcast(self.constant(value, dtype), shape)

    # ---- arithmetic ------------------------------------------------------------------------------------

    def binary(self, name: str, x: Value, y: Value, unsigned: bool = False) -> Value:
        """An operation of `_BINARY` on operands of one type."""
        kinds = _BINARY[name]
        return self.one(f"arith.{kinds[0 if is_float(x.element) else 1 + unsigned]}", [x, y], x.type)

    def compare(self, name: str, x: Value, y: Value, unsigned: bool = False) -> Value:
        """A comparison of operands of one type, `eq`, `ne`, `lt`, ..."""
        floats, signed, without = _PREDICATES[name]
        result = vector_of(x.shape, "i1")
        if is_float(x.element):
            return self.one("arith.cmpf", [x, y], result, predicate=f"{floats} : i64")
        return self.one("arith.cmpi", [x, y], result, predicate=f"{without if unsigned else signed} : i64")

    def select(self, condition: Value, yes: Value, no: Value) -> Value:
        return self.one("arith.select", [condition, yes, no], yes.type)

    def math(self, name: str, *operands: Value) -> Value:
        """An operation of the dialect `math` on operands of one type."""
        return self.one(f"math.{name}", operands, operands[0].type)

    def cast(self, name: str, x: Value, element: str) -> Value:
        """An operation of the dialect `arith` that changes the element type."""
        return self.one(f"arith.{name}", [x], vector_of(x.shape, element))

    def bitcast(self, x: Value, shape: Sequence[int], element: str) -> Value:
        return self.one("tpu.bitcast" if x.shape else "arith.bitcast", [x], vector_of(shape, element))

    def negated(self, x: Value) -> Value:
        """The opposite of each flag."""
        return self.binary("xor", x, self.dense(True, x.shape, np.bool_))

    # ---- shapes ----------------------------------------------------------------------------------------

    def broadcast(self, x: Value, shape: Sequence[int]) -> Value:
        """Broadcasts a number, or axes of size 1; nothing if the shape is the same."""
        if tuple(shape) == x.shape:
            return x
        return self.one("vector.broadcast", [x], vector_of(shape, x.element))

    def shape_cast(self, x: Value, shape: Sequence[int]) -> Value:
        return self.one("vector.shape_cast", [x], vector_of(shape, x.element))

    def reshape(self, x: Value, shape: Sequence[int]) -> Value:
        """`shape_cast`, or what takes its place where one side is a number."""
        if not len(shape):
            return self.extract(x) if x.shape else x
        return self.shape_cast(x, shape) if x.shape else self.broadcast(x, shape)

    def extract(self, x: Value) -> Value:
        """The only element of a vector."""
        return self.element(x, [0] * len(x.shape))

    def element(self, x: Value, position: Sequence[int]) -> Value:
        return self.one("vector.extract", [x], scalar(x.element), static_position=ints(position))

    def slice(self, x: Value, starts: Sequence[int], sizes: Sequence[int]) -> Value:
        attributes = dict(offsets=listed(starts), sizes=listed(sizes), strides=listed([1] * len(sizes)))
        return self.one("vector.extract_strided_slice", [x], vector_of(sizes, x.element), **attributes)

    def concatenate(self, parts: Sequence[Value], axis: int) -> Value:
        if len(parts) == 1:
            return parts[0]
        sizes = list(parts[0].shape)
        sizes[axis] = sum(x.shape[axis] for x in parts)
        return self.one("tpu.concatenate", parts, vector_of(sizes, parts[0].element), dimension=f"{axis} : i32")

    def reduce(self, kind: str, x: Value, axes: Sequence[int], identity: Any, dtype: Any) -> Value:
        shape = [n for i, n in enumerate(x.shape) if i not in axes]
        start = self.dense(identity, shape, dtype)
        attributes = dict(kind=f"#vector.kind<{kind}>", reduction_dims=ints(axes))
        return self.one("vector.multi_reduction", [x, start], start.type, **attributes)

    # ---- memory ----------------------------------------------------------------------------------------

    def as_index(self, x: Any) -> Value:
        """An index of memory from an int or a value."""
        return self.one("arith.index_cast", [x], INDEX) if isinstance(x, Value) else self.index(int(x))

    def as_i32(self, x: Any) -> Value:
        return x if isinstance(x, Value) else self.i32(int(x))

    def memory_slice(self, x: Memory, starts: Sequence[Value], sizes: Sequence[int | Value]) -> Value:
        """The part of a memory of known sizes, or of sizes that are values."""
        free = [n for n in sizes if isinstance(n, Value)]
        kind = memref([None if isinstance(n, Value) else n for n in sizes], x.value.element, x.space)
        return self.grouped("tpu.memref_slice", [[x.value], starts, free], [kind])[0]

    def memory_of_its_own(self, kind: Type) -> Value:
        """Memory that lives as long as the region in which it is made."""
        return self.grouped("memref.alloca", [[], []], [kind])[0]

    def vector_store(
        self, ref: Value, indices: Sequence[Value], x: Value, mask: Value | None, add: bool = False
    ) -> None:
        """Stores, or adds, a vector from indices on, where a mask is set."""
        flags = dict(add=str(add).lower(), strides=ints([], "i32"))
        self.grouped("tpu.vector_store", [[x], [ref], indices, [mask]], **flags)

    # ---- control ---------------------------------------------------------------------------------------

    def branch(self, condition: Value, results: Sequence[Type], yes: Callable, no: Callable) -> list[Value]:
        """`scf.if`: `yes()` and `no()` write the branches and return their results."""
        regions = [Region((), build, "scf.yield") for build in (yes, no)]
        return self.op("scf.if", [condition], results, None, regions)

    def loop(
        self, start: Value, stop: Value, step: Value, carry: Sequence[Value], body: Callable, notes: str = ""
    ) -> list[Value]:
        """`scf.for`: `body(number, *carry)` writes a step and returns its results."""
        types = [x.type for x in carry]
        steps = Region([I32, *types], body, "scf.yield")
        return self.op("scf.for", [start, stop, step, *carry], types, None, [steps], notes)


def memref(shape: Sequence[int | None], element: str, space: str) -> Type:
    """The type of a reference to memory, where None is a size that the kernel computes."""
    return shaped("memref", shape, element, f"#tpu.memory_space<{space}>")
