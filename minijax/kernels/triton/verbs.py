"""The operations of Triton's modules: one method an operation, on values with their dtypes."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.base import dtypes
from minijax.hlo import spell
from minijax.kernels.text import Region, Type, Value, Writer, element_of, number, scalar, shaped

I32, I64, BOOL, I8, F32 = map(np.dtype, (np.int32, np.int64, np.bool_, np.int8, np.float32))

# By the kind of the dtype: floats, signed integers, unsigned integers and booleans.
_ARITHMETIC = {
    "add": ("arith.addf", "arith.addi", "arith.addi"),
    "sub": ("arith.subf", "arith.subi", "arith.subi"),
    "mul": ("arith.mulf", "arith.muli", "arith.muli"),
    "div": ("arith.divf", "arith.divsi", "arith.divui"),
    "rem": ("arith.remf", "arith.remsi", "arith.remui"),
    "max": ("arith.maxnumf", "arith.maxsi", "arith.maxui"),
    "min": ("arith.minnumf", "arith.minsi", "arith.minui"),
}
_PREDICATES = {"eq": (1, 0, 0), "ne": (13, 1, 1), "lt": (4, 2, 6), "le": (5, 3, 7), "gt": (2, 4, 8), "ge": (3, 5, 9)}
_UNORDERED = 14
ATOMICS = {"and": 1, "or": 2, "xor": 3, "add": 4, "fadd": 5, "max": 6, "min": 7, "umax": 8, "umin": 9, "xchg": 10}
CACHES = {None: 1, ".ca": 2, ".cg": 3}
EVICTIONS = {None: 1, "evict_normal": 1, "evict_first": 2, "evict_last": 3}
PRECISIONS = {"tf32": 0, "tf32x3": 1, "ieee": 2}


class Number(NamedTuple):
    """A literal in a kernel. Each use of it writes a constant of its own."""

    value: Any
    dtype: Any

    shape = ()


def kind(dtype: Any) -> int:
    """0 for floats, 1 for signed integers, 2 for unsigned integers and booleans."""
    if dtypes.issubdtype(dtype, np.floating):
        return 0
    return 1 if dtypes.issubdtype(dtype, np.signedinteger) else 2


def bits(dtype: Any) -> int:
    """The number of bits of an element in a value."""
    if dtype == np.bool_:
        return 1
    return 8 * np.dtype(dtype).itemsize if kind(dtype) == 0 else dtypes.iinfo(dtype).bits


def tile(shape: Sequence[int], element: str) -> Type:
    """The type of a scalar, or of a tensor."""
    return shaped("tensor", shape, element) if len(shape) else scalar(element)


def attribute(value: int | str) -> str:
    """A string, or an integer of 32 bits, as an attribute."""
    return spell.string(value) if isinstance(value, str) else f"{value} : i32"


class Tiles(Writer):
    """Writes operations on tiles: scalars, and tensors whose sizes are powers of two."""

    def make(
        self, op: str, operands: Sequence[Value], shape: Sequence[int], dtype: Any,
        attributes: Mapping[str, str] | None = None, regions: Sequence[Region] = (), element: str = "",
    ) -> Value:  # fmt: skip
        """Writes an operation with one result, of the dtype's element type if `element` is not given."""
        types = [tile(shape, element or element_of(dtype))]
        return self.op(op, operands, types, attributes, regions)[0]._replace(dtype=np.dtype(dtype))

    def like(self, op: str, x: Value, *others: Value, attributes: Mapping[str, str] | None = None) -> Value:
        """Writes an operation whose result has the type of its first operand."""
        return self.make(op, [x, *others], x.shape, x.dtype, attributes, element=x.element)

    def region(self, values: Sequence[Value], build: Callable[..., Iterable[Value]], end: str) -> Region:
        """A region whose arguments have the types and dtypes of `values`."""
        named = lambda *args: build(*[a._replace(dtype=x.dtype) for a, x in zip(args, values, strict=True)])  # noqa: E731
        return Region([x.type for x in values], named, end)

    def several(
        self, op: str, operands: Sequence[Value], like: Sequence[Any], attributes: Mapping[str, str] | None = None
    ) -> list[Value]:
        """Writes an operation whose results have the shapes and dtypes of `like`."""
        results = self.op(op, operands, [tile(a.shape, element_of(a.dtype)) for a in like], attributes)
        return [r._replace(dtype=a.dtype) for r, a in zip(results, like, strict=True)]

    # ---- constants and shapes ------------------------------------------------------------------------

    def constant(self, value: Any, dtype: Any) -> Value:
        """A scalar constant."""
        text = number(value, dtype)
        typed = text if dtype == np.bool_ else f"{text} : {element_of(dtype)}"
        return self.make("arith.constant", [], (), dtype, {"value": typed})

    def full(self, value: Any, dtype: Any, shape: Sequence[int]) -> Value:
        """A constant of a shape."""
        return self.splat(self.constant(value, dtype), shape)

    def full_like(self, value: Any, x: Value) -> Value:
        return self.full(value, x.dtype, x.shape)

    def tile(self, x: Value | Number, shape: Sequence[int] | None = None) -> Value:
        """An operand as a value, of a shape if one is given."""
        value = self.constant(x.value, x.dtype) if isinstance(x, Number) else x
        return value if shape is None else self.broadcast(value, shape)

    def splat(self, x: Value, shape: Sequence[int]) -> Value:
        """A scalar in all elements of a shape."""
        return self.make("tt.splat", [x], shape, x.dtype, element=x.element) if len(shape) else x

    def broadcast(self, x: Value, shape: Sequence[int]) -> Value:
        """A scalar, or a tensor with axes of size 1, in a shape."""
        if tuple(shape) == x.shape:
            return x
        if not x.shape:
            return self.splat(x, shape)
        if len(x.shape) != len(shape) or any(n not in (1, m) for n, m in zip(x.shape, shape, strict=True)):
            raise ValueError(f"Cannot broadcast from {[*x.shape]} to {[*shape]}")
        return self.make("tt.broadcast", [x], shape, x.dtype, element=x.element)

    def expand(self, x: Value, axis: int) -> Value:
        """With a new axis of size 1."""
        shape = (*x.shape[:axis], 1, *x.shape[axis:])
        if not x.shape:
            return self.splat(x, shape)
        return self.make("tt.expand_dims", [x], shape, x.dtype, {"axis": attribute(axis)})

    def reshape(self, x: Value, shape: Sequence[int]) -> Value:
        """Any value in another shape of its size."""
        if tuple(shape) == x.shape:
            return x
        if not x.shape:
            return self.splat(x, shape)
        if len(shape):
            return self.make("tt.reshape", [x], shape, x.dtype)
        return self.reduce_axes(x, range(len(x.shape)), "add")

    def transpose(self, x: Value, order: Sequence[int]) -> Value:
        if list(order) == list(range(len(x.shape))):
            return x
        text = f"array<i32: {', '.join(map(str, order))}>"
        return self.make("tt.trans", [x], [x.shape[i] for i in order], x.dtype, {"order": text})

    def join(self, x: Value, y: Value) -> Value:
        """Both on a new last axis."""
        return self.make("tt.join", [x, y], (*x.shape, 2), x.dtype)

    def halves(self, x: Value) -> list[Value]:
        """The two parts of a last axis of size 2."""
        type_ = tile(x.shape[:-1], x.element)
        return [part._replace(dtype=x.dtype) for part in self.op("tt.split", [x], [type_, type_])]

    def arange(self, start: int, end: int) -> Value:
        """The numbers from `start` to `end` as int32."""
        return self.make("tt.make_range", [], (end - start,), I32, {"start": attribute(start), "end": attribute(end)})

    # ---- arithmetic ----------------------------------------------------------------------------------

    def arith(self, name: str, x: Value, y: Value) -> Value:
        """`add`, `sub`, `mul`, `div`, `rem`, `max` or `min` of two values of one type."""
        return self.like(_ARITHMETIC[name][kind(x.dtype)], x, y)

    def compare(self, name: str, x: Value, y: Value) -> Value:
        """`eq`, `ne`, `lt`, `le`, `gt` or `ge`."""
        group = kind(x.dtype)
        return self._compared("arith.cmpi" if group else "arith.cmpf", x, y, _PREDICATES[name][group])

    def unordered(self, x: Value) -> Value:
        """Where a float is NaN."""
        return self._compared("arith.cmpf", x, x, _UNORDERED)

    def _compared(self, op, x, y, predicate):
        return self.make(op, [x, y], x.shape, BOOL, {"predicate": f"{predicate} : i64"})

    def select(self, where: Value, x: Value, y: Value) -> Value:
        """`x` where it is true, else `y`."""
        return self.make("arith.select", [where, x, y], x.shape, x.dtype)

    def neg(self, x: Value) -> Value:
        return self.arith("sub", self.full_like(0, x), x)

    def invert(self, x: Value) -> Value:
        """The bits inverted; for booleans, not."""
        return self.like("arith.xori", x, self.full_like(True if x.dtype == np.bool_ else _ones(x.dtype), x))

    def extern(self, symbol: str, operands: Sequence[Value], dtype: Any, library: str = "") -> Value:
        """A function of the device's library, or of another one."""
        attributes = {"libname": attribute(library), "libpath": '""', "pure": "true", "symbol": attribute(symbol)}
        return self.make("tt.extern_elementwise", operands, operands[0].shape, dtype, attributes)

    # ---- conversion ----------------------------------------------------------------------------------

    def bitcast(self, x: Value, dtype: Any) -> Value:
        return self.make("tt.bitcast", [x], x.shape, dtype)

    def cast(self, x: Value, dtype: Any) -> Value:
        """Converted to a dtype; floats beyond the range of an integer become its limits."""
        dtype, source = np.dtype(dtype), x.dtype
        if source == dtype:
            return x
        if kind(source) == 0:
            return self._from_float(x, dtype)
        if dtype == np.bool_:
            return self.compare("ne", x, self.full_like(0, x))
        if kind(dtype) == 0:
            wide = F32 if bits(dtype) == 8 else dtype
            op = "arith.sitofp" if kind(source) == 1 else "arith.uitofp"
            return self.cast(self.make(op, [x], x.shape, wide), dtype)
        if bits(source) == bits(dtype):
            return x._replace(dtype=dtype)
        if bits(source) > bits(dtype):
            return self.make("arith.trunci", [x], x.shape, dtype)
        return self.make("arith.extsi" if kind(source) == 1 else "arith.extui", [x], x.shape, dtype)

    def _from_float(self, x, dtype):
        source, is_float = x.dtype, kind(dtype) == 0
        if bits(source) == 16 and dtype != F32 or bits(source) == 8 and (bits(dtype) == 8 or not is_float):
            # Narrow floats are converted to and from float32 only.
            return self.cast(self.cast(x, F32), dtype)
        if is_float and 8 in (bits(source), bits(dtype)):
            rounding = {"rounding": attribute(1)} if bits(source) > bits(dtype) else None
            return self.make("tt.fp_to_fp", [x], x.shape, dtype, rounding)
        if is_float:
            return self.make("arith.truncf" if bits(source) > bits(dtype) else "arith.extf", [x], x.shape, dtype)
        if dtype == np.bool_:
            return self.compare("ne", x, self.full_like(0, x))
        limits = dtypes.iinfo(dtype)
        x = self.like("arith.minimumf", x, self.full_like(limits.max, x))
        x = self.like("arith.maximumf", x, self.full_like(limits.min, x))
        return self.make("arith.fptosi" if kind(dtype) == 1 else "arith.fptoui", [x], x.shape, dtype)

    # ---- reductions ----------------------------------------------------------------------------------

    def reduce(self, xs: Sequence[Value], axis: int, combine: Callable[..., Sequence[Value]]) -> list[Value]:
        """Reduces values together along an axis; `combine` gets two elements of each, the first ones first."""
        shape = (*xs[0].shape[:axis], *xs[0].shape[axis + 1 :])
        region = self._combiner(xs, combine, "tt.reduce.return")
        types = [tile(shape, x.element) for x in xs]
        results = self.op("tt.reduce", xs, types, {"axis": attribute(axis)}, [region])
        return [r._replace(dtype=x.dtype) for r, x in zip(results, xs, strict=True)]

    def _combiner(self, xs, combine, end):
        elements = [x._replace(type=scalar(x.element)) for x in xs]
        return self.region(elements * 2, combine, end)

    def reduce_axes(self, x: Value, axes: Iterable[int], name: str) -> Value:
        """Reduces by an operation along axes, from the last to the first."""
        order = sorted(axes, reverse=True)
        for i, axis in enumerate(order):
            if i and x.dtype != np.bool_:  # as jax, which keeps two reductions apart
                x = self.neg(self.neg(x))
            (x,) = self.reduce([x], axis, lambda a, b: [self.combine(name, a, b)])
        return x

    def combine(self, name: str, x: Value, y: Value) -> Value:
        """An operation of reductions: one of `arith`, or `and`, `or`, `xor`."""
        return self.arith(name, x, y) if name in _ARITHMETIC else self.like(f"arith.{name}i", x, y)

    def scan(self, x: Value, axis: int, is_reverse: bool, combine: Callable[..., Sequence[Value]]) -> Value:
        """Reductions of all first parts of an axis, or of all last parts."""
        attributes = {"axis": attribute(axis), "reverse": "true" if is_reverse else "false"}
        return self.make("tt.scan", [x], x.shape, x.dtype, attributes, [self._combiner([x], combine, "tt.scan.return")])

    def dot(self, x: Value, y: Value, accumulated: Value, precision: str = "ieee") -> Value:
        attributes = {"inputPrecision": attribute(PRECISIONS[precision]), "maxNumImpreciseAcc": attribute(0)}
        return self.make("tt.dot", [x, y, accumulated], accumulated.shape, accumulated.dtype, attributes)

    def gather(self, x: Value, indices: Value, axis: int) -> Value:
        """The elements at indices along an axis."""
        return self.make("tt.gather", [x, indices], indices.shape, x.dtype, {"axis": attribute(axis)})

    # ---- memory --------------------------------------------------------------------------------------

    def pointers(self, base: Value, offsets: Value) -> Value:
        """The addresses of elements at offsets from a pointer."""
        return self.like("tt.addptr", self.splat(base, offsets.shape), offsets)

    def pointers_to(self, pointers: Value, dtype: Any) -> Value:
        """The same addresses, of elements of another dtype."""
        return self.make("tt.bitcast", [pointers], pointers.shape, dtype, element=pointer_to(dtype))

    def load(
        self, pointers: Value, mask: Value | None = None, other: Value | None = None,
        cache: str | None = None, evict: str | None = None, is_volatile: bool = False,
    ) -> Value:  # fmt: skip
        operands = [pointers, *[x for x in (mask, other) if x is not None]]
        attributes = {
            "operandSegmentSizes": f"array<i32: 1, {int(mask is not None)}, {int(other is not None)}>",
            "cache": attribute(CACHES[cache]),
            "evict": attribute(EVICTIONS[evict]),
            "isVolatile": "true" if is_volatile else "false",
        }
        return self.make("tt.load", operands, pointers.shape, pointers.dtype, attributes)

    def store(self, pointers: Value, value: Value, mask: Value | None = None, evict: str | None = None) -> None:
        operands = [pointers, value, *([] if mask is None else [mask])]
        self.op("tt.store", operands, (), {"cache": attribute(CACHES[None]), "evict": attribute(EVICTIONS[evict])})

    def atomic(self, name: str, pointers: Value, value: Value, mask: Value | None = None) -> Value:
        """Changes elements in memory, and returns the old ones."""
        operands = [pointers, value, *([] if mask is None else [mask])]
        return self.make(
            "tt.atomic_rmw", operands, value.shape, value.dtype, {"atomic_rmw_op": attribute(ATOMICS[name]), **_ORDER}
        )

    def compare_and_swap(self, pointer: Value, expected: Value, value: Value) -> Value:
        return self.make("tt.atomic_cas", [pointer, expected, value], value.shape, value.dtype, _ORDER)

    # ---- programs ------------------------------------------------------------------------------------

    def program_id(self, axis: int) -> Value:
        return self.make("tt.get_program_id", [], (), I32, {"axis": attribute(axis)})

    def loop(self, start: Value, stop: Value, step: Value, carry: Sequence[Value], body: Callable) -> list[Value]:
        """A loop over numbers: `body` gets the number and the carry, and returns the new carry."""
        region = self.region([start, *carry], body, "scf.yield")
        results = self.op("scf.for", [start, stop, step, *carry], [x.type for x in carry], None, [region])
        return _typed(results, carry)

    def repeat(self, carry: Sequence[Value], test: Callable, body: Callable) -> list[Value]:
        """A loop while a condition holds."""
        regions = [self.region(carry, test, "scf.condition"), self.region(carry, body, "scf.yield")]
        return _typed(self.op("scf.while", carry, [x.type for x in carry], None, regions), carry)

    def branch(self, condition: Value, yes: Callable, no: Callable, like: Sequence[tuple]) -> list[Value]:
        """The results of one of two functions without arguments, of (shape, dtype) each."""
        types = [tile(shape, element_of(dtype)) for shape, dtype in like]
        regions = [Region((), f, "scf.yield") for f in (yes, no)]
        results = self.op("scf.if", [condition], types, None, regions)
        return [r._replace(dtype=dtype) for r, (_, dtype) in zip(results, like, strict=True)]


_ORDER = {"sem": attribute(4), "scope": attribute(1)}  # acquire and release, among all threads of the GPU


def pointer_to(dtype: Any) -> str:
    """The type of a pointer to elements of a dtype; two of four bits share a byte."""
    return f"!tt.ptr<{element_of(I8 if bits(dtype) == 4 else dtype)}>"


def _typed(results: Sequence[Value], values: Sequence[Value]) -> list[Value]:
    return [r._replace(dtype=x.dtype) for r, x in zip(results, values, strict=True)]


def _ones(dtype: Any) -> int:
    """All bits set."""
    return -1 if kind(dtype) == 1 else dtypes.iinfo(dtype).max
