"""Runs modules of Triton with NumPy, step by step: what the kernels of a GPU would compute."""

import importlib
import itertools
import operator
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

ELEMENTS = {
    "i1": np.bool_, "i4": np.int8, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "f16": np.float16, "f32": np.float32, "f64": np.float64, "bf16": ml_dtypes.bfloat16,
    "f8E5M2": ml_dtypes.float8_e5m2, "f8E4M3FN": ml_dtypes.float8_e4m3fn,
}  # fmt: skip


class Pointer(NamedTuple):
    """Addresses: bytes of an array in memory, the dtype of the elements, and which ones."""

    memory: np.ndarray
    dtype: Any
    at: np.ndarray


def _type(text: str) -> tuple[tuple[int, ...], str]:
    """The shape and the element type of a type."""
    if not text.startswith("tensor<"):
        return (), text
    *sizes, element = text[7:-1].split("x", text.count("x") if "!tt.ptr" not in text else text.split("!")[0].count("x"))
    return tuple(map(int, sizes)), element


def _element(text: str) -> Any:
    return np.dtype(ELEMENTS[text])


_FUNCTIONS = {
    "fabs": np.abs, "rsqrt": lambda x: 1 / np.sqrt(x), "pow": np.power, "powi": lambda x, y: np.power(x, y.astype(x.dtype)),
    "acos": np.arccos, "asin": np.arcsin, "atan": np.arctan, "acosh": np.arccosh, "asinh": np.arcsinh,
    "atanh": np.arctanh, "atan2": np.arctan2, "rint": np.round, "round": lambda x: np.trunc(x + np.copysign(0.5, x)),
}  # fmt: skip
_COMPARE = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]
_FLOATS = {1: "eq", 2: "gt", 3: "ge", 4: "lt", 5: "le", 13: "ne"}
_PLAIN = {
    "addf": np.add, "subf": np.subtract, "mulf": np.multiply, "divf": np.divide, "remf": np.fmod, "addi": np.add,
    "subi": np.subtract, "muli": np.multiply, "maxnumf": np.fmax, "minnumf": np.fmin, "maximumf": np.maximum,
    "minimumf": np.minimum, "maxsi": np.maximum, "minsi": np.minimum, "andi": np.bitwise_and, "ori": np.bitwise_or,
    "xori": np.bitwise_xor, "shli": np.left_shift, "shrsi": np.right_shift, "select": np.where,
    "divsi": lambda x, y: (np.abs(x) // np.abs(y) * np.sign(x) * np.sign(y)).astype(x.dtype), "remsi": np.fmod,
}  # fmt: skip
_UNSIGNED = {
    "divui": np.floor_divide,
    "remui": np.remainder,
    "shrui": np.right_shift,
    "maxui": np.maximum,
    "minui": np.minimum,
}


def _unsigned(x: np.ndarray) -> np.ndarray:
    return x if x.dtype == np.bool_ else x.view(f"u{x.dtype.itemsize}")


class Machine:
    """Runs the function of a module for one step of the grid after the other."""

    def __init__(self, text: str):
        self.ir = importlib.import_module("jaxlib.mlir.ir")
        extensions = importlib.import_module("jaxlib.mlir._mlir_libs")
        context, registry = self.ir.Context(), self.ir.DialectRegistry()
        extensions._jax_mlir_ext.register_dialects(registry)
        context.append_dialect_registry(registry)
        importlib.import_module("jaxlib.mlir._mlir_libs._triton_ext").register_dialect(context)
        context.load_all_available_dialects()
        with context, self.ir.Location.unknown():
            self.module = self.ir.Module.parse(text)
        (self.function,) = self.module.body.operations
        self.printed: list = []

    def run(self, arrays: Sequence[np.ndarray], sizes: Sequence[int] = (1, 1, 1)) -> list[np.ndarray]:
        """The arrays after all steps."""
        arrays = [np.array(a) for a in arrays]
        block = self.function.operation.regions[0].blocks[0]
        memory = [_packed(a) for a in arrays]
        with np.errstate(all="ignore"):
            for ids in itertools.product(*map(range, sizes)):
                self.ids = ids
                values = {}
                for argument, bytes_ in zip(block.arguments, memory, strict=True):
                    dtype = _element(re.search(r"<(\w+)>", str(argument.type))[1])
                    values[argument] = Pointer(bytes_, dtype, np.zeros((), np.int64))
                self._block(block, values)
        return [_unpacked(m, a) for m, a in zip(memory, arrays, strict=True)]

    def _block(self, block: Any, values: dict) -> list:
        for op in block.operations:
            operation = op.operation
            operands = [values[x] for x in operation.operands]
            name = operation.name
            if name in ("scf.yield", "tt.reduce.return", "tt.scan.return", "scf.condition", "tt.return"):
                return operands
            results = self._operation(name, operation, operands, values)
            for result, value in zip(operation.results, results, strict=True):
                values[result] = self._checked(result, value)
        return []

    def _checked(self, result, value):
        shape, element = _type(str(result.type))
        if isinstance(value, Pointer):
            return value._replace(at=np.broadcast_to(value.at, shape))
        value = np.asarray(value)
        dtype = _element(element)
        if element == "i4":
            value = ((value.astype(np.int8) & 15) ^ 8) - 8
        assert value.shape == shape, (str(result.owner), value.shape)
        assert value.dtype == dtype, (str(result.owner), value.dtype)
        return value

    def _operation(self, name, op, operands, values):
        dialect, _, short = name.partition(".")
        method = getattr(self, f"_{dialect}_{short.replace('.', '_')}", None)
        if method is not None:
            results = method(op, operands, values)
            return results if isinstance(results, list) else [results]
        if dialect == "arith" and short in _PLAIN:
            return [_PLAIN[short](*operands).astype(self._dtype(op))]
        if dialect == "arith" and short in _UNSIGNED:
            x, y = map(_unsigned, operands)
            return [np.asarray(_UNSIGNED[short](x, y)).astype(x.dtype).view(operands[0].dtype)]
        if dialect == "math":
            return [
                _function(short.removesuffix("f") if short in ("absf", "powf") else short)(*operands).astype(
                    self._dtype(op)
                )
            ]
        raise NotImplementedError(name)

    def _dtype(self, op):
        return _element(_type(str(op.results[0].type))[1])

    def _number(self, op, name):
        return self.ir.IntegerAttr(op.attributes[name]).value

    # ---- arith ----

    def _arith_constant(self, op, operands, values):
        attr, dtype = op.attributes["value"], self._dtype(op)
        if dtype == np.bool_:
            return np.array(str(attr) == "true" or str(attr) == "1 : i1")
        number = (
            self.ir.FloatAttr(attr).value if isinstance(attr, self.ir.FloatAttr) else self.ir.IntegerAttr(attr).value
        )
        return np.array(number).astype(dtype)

    def _arith_cmpi(self, op, operands, values):
        which = self._number(op, "predicate")
        x, y = map(_unsigned, operands) if which > 5 else operands
        return np.asarray(_COMPARE[which - 4 if which > 5 else which](x, y))

    def _arith_cmpf(self, op, operands, values):
        which, (x, y) = self._number(op, "predicate"), operands
        return np.asarray(np.isnan(x) | np.isnan(y) if which == 14 else getattr(operator, _FLOATS[which])(x, y))

    def _arith_extui(self, op, operands, values):
        return np.asarray(
            _unsigned(operands[0]) & 15 if "i4" in str(op.operands[0].type) else _unsigned(operands[0])
        ).astype(self._dtype(op))

    def _convert(self, op, operands, values):
        return operands[0].astype(self._dtype(op))

    _arith_extsi = _arith_trunci = _arith_extf = _arith_truncf = _arith_sitofp = _arith_fptosi = _tt_fp_to_fp = _convert

    def _arith_uitofp(self, op, operands, values):
        return _unsigned(operands[0]).astype(self._dtype(op))

    def _arith_fptoui(self, op, operands, values):
        dtype = self._dtype(op)
        return operands[0].astype(f"u{dtype.itemsize}").view(dtype)

    def _math_absi(self, op, operands, values):
        return np.abs(operands[0])

    # ---- shapes ----

    def _shape(self, op, i=0):
        return _type(str(op.results[i].type))[0]

    def _tt_splat(self, op, operands, values):
        x = operands[0]
        return (
            x._replace(at=np.broadcast_to(x.at, self._shape(op)))
            if isinstance(x, Pointer)
            else np.broadcast_to(x, self._shape(op))
        )

    _tt_broadcast = _tt_splat

    def _tt_reshape(self, op, operands, values):
        return operands[0].reshape(self._shape(op))

    _tt_expand_dims = _tt_reshape

    def _tt_trans(self, op, operands, values):
        order = [int(n) for n in re.findall(r"\d+", str(op.attributes["order"]).split(":")[1])]
        return operands[0].transpose(order)

    def _tt_join(self, op, operands, values):
        return np.stack(operands, -1)

    def _tt_split(self, op, operands, values):
        return [operands[0][..., 0], operands[0][..., 1]]

    def _tt_make_range(self, op, operands, values):
        return np.arange(self._number(op, "start"), self._number(op, "end"), dtype=np.int32)

    def _tt_gather(self, op, operands, values):
        return np.take_along_axis(operands[0], operands[1].astype(np.int64), self._number(op, "axis"))

    # ---- computing ----

    def _tt_get_program_id(self, op, operands, values):
        return np.array(self.ids[self._number(op, "axis")], np.int32)

    def _tt_extern_elementwise(self, op, operands, values):
        symbol = self.ir.StringAttr(op.attributes["symbol"]).value
        dtype = self._dtype(op)
        if symbol in ("__nv_popc", "__nv_popcll", "__nv_clz", "__nv_clzll"):
            x, width = _unsigned(operands[0]), 8 * operands[0].dtype.itemsize
            digits = np.vectorize(lambda n: f"{int(n):0{width}b}", otypes=[object])(x)
            count = (lambda s: s.count("1")) if "popc" in symbol else (lambda s: len(s) - len(s.lstrip("0")))
            return np.vectorize(count, otypes=[np.int64])(digits).astype(dtype)
        name = symbol.removeprefix("__nv_")
        name = name[:-1] if dtype == np.float32 and name.endswith("f") and name != "erf" else name
        return _function({"abs": "abs", "llabs": "abs"}.get(name, name))(*operands).astype(dtype)

    def _tt_bitcast(self, op, operands, values):
        x = operands[0]
        if isinstance(x, Pointer):
            return x._replace(dtype=_element(re.search(r"ptr<(\w+)>", str(op.results[0].type))[1]))
        return x.view(self._dtype(op))

    def _tt_dot(self, op, operands, values):
        x, y, total = operands
        return (total + np.matmul(x.astype(total.dtype), y.astype(total.dtype))).astype(total.dtype)

    def _tt_reduce(self, op, operands, values):
        axis = self._number(op, "axis")
        parts = [np.moveaxis(x, axis, 0) for x in operands]
        total = [p[0] for p in parts]
        for i in range(1, parts[0].shape[0]):
            total = self._combined(op, values, total, [p[i] for p in parts])
        return total

    def _tt_scan(self, op, operands, values):
        axis, is_reverse = self._number(op, "axis"), "true" in str(op.attributes["reverse"])
        (part,) = [np.moveaxis(x, axis, 0) for x in operands]
        part = part[::-1] if is_reverse else part
        found = [part[0]]
        for x in part[1:]:
            found += self._combined(op, values, [found[-1]], [x])
        return np.moveaxis(np.stack(found[::-1] if is_reverse else found), 0, axis)

    def _combined(self, op, values, first, second):
        """Applies the body of a reduction to all elements, one by one."""
        block = op.regions[0].blocks[0]
        out = [np.empty_like(x) for x in first]
        for at in np.ndindex(first[0].shape):
            inner = dict(values)
            inner.update(zip(block.arguments, [np.asarray(x[at]) for x in (*first, *second)], strict=True))
            for result, x in zip(out, self._block(block, inner), strict=True):
                result[at] = x
        return out

    # ---- memory ----

    def _tt_addptr(self, op, operands, values):
        pointer, offsets = operands
        return pointer._replace(at=pointer.at + offsets)

    def _elements(self, pointer):
        return pointer.memory.view(pointer.dtype)

    def _tt_load(self, op, operands, values):
        pointer, *rest = operands
        memory = self._elements(pointer)
        if not rest:
            assert ((0 <= pointer.at) & (pointer.at < memory.size)).all(), "a load outside of the array"
            return memory[pointer.at]
        mask = rest[0]
        assert ((0 <= pointer.at) & (pointer.at < memory.size))[mask].all(), "a load outside of the array"
        other = rest[1] if len(rest) > 1 else np.zeros(pointer.at.shape, memory.dtype)
        return np.where(mask, memory[np.where(mask, pointer.at, 0)], other)

    def _tt_store(self, op, operands, values):
        pointer, value, *mask = operands
        memory, chosen = self._elements(pointer), mask[0] if mask else np.ones(pointer.at.shape, bool)
        assert ((0 <= pointer.at) & (pointer.at < memory.size))[chosen].all(), "a store outside of the array"
        memory[pointer.at[chosen]] = value[chosen]
        return []

    def _tt_atomic_rmw(self, op, operands, values):
        pointer, value, *mask = operands
        memory, kind = self._elements(pointer), self._number(op, "atomic_rmw_op")
        old = np.zeros_like(value)
        combine: Callable = {
            1: np.bitwise_and,
            2: np.bitwise_or,
            3: np.bitwise_xor,
            4: np.add,
            5: np.add,
            6: np.maximum,
            7: np.minimum,
        }.get(kind, lambda x, y: y)
        for at in np.ndindex(value.shape):
            if not mask or mask[0][at]:
                place = int(pointer.at[at])
                old[at] = memory[place]
                x, y = (
                    (_unsigned(np.asarray(v)) for v in (memory[place], value[at]))
                    if kind in (8, 9)
                    else (memory[place], value[at])
                )
                new = np.maximum(x, y) if kind == 8 else np.minimum(x, y) if kind == 9 else combine(x, y)
                memory[place] = np.asarray(new).view(memory.dtype)
        return old

    def _tt_atomic_cas(self, op, operands, values):
        pointer, expected, value = operands
        memory, place = self._elements(pointer), int(pointer.at)
        old = np.asarray(memory[place])
        if old == expected:
            memory[place] = value
        return old.copy()

    # ---- control ----

    def _scf_for(self, op, operands, values):
        start, stop, step, *carry = operands
        block = op.regions[0].blocks[0]
        for i in range(int(start), int(stop), int(step)):
            carry = self._block(
                block, values | dict(zip(block.arguments, [start.dtype.type(i)[()].reshape(()), *carry], strict=True))
            )
        return list(carry)

    def _scf_while(self, op, operands, values):
        test, body = (r.blocks[0] for r in op.regions)
        carry = operands
        while True:
            holds, *carry = self._block(test, values | dict(zip(test.arguments, carry, strict=True)))
            if not holds:
                return carry
            carry = self._block(body, values | dict(zip(body.arguments, carry, strict=True)))

    def _scf_if(self, op, operands, values):
        region = op.regions[0 if operands[0] else 1]
        return self._block(region.blocks[0], dict(values))

    def _tt_print(self, op, operands, values):
        self.printed.append(operands)
        return []

    def _gpu_barrier(self, op, operands, values):
        return []


def _function(name: str) -> Callable:
    if name in _FUNCTIONS:
        return _FUNCTIONS[name]
    if hasattr(np, name):
        return getattr(np, name)
    special = importlib.import_module("scipy.special")
    return getattr(special, {"lgamma": "gammaln"}.get(name, name))


def _packed(a: np.ndarray) -> np.ndarray:
    """The bytes of an array; elements of four bits are two a byte."""
    if a.dtype in (ml_dtypes.int4, ml_dtypes.uint4):
        nibbles = a.astype(np.int8).reshape(-1).view(np.uint8) & 15
        return (nibbles[::2] | nibbles[1::2] << 4).astype(np.uint8)
    return np.ascontiguousarray(a).reshape(-1).view(np.uint8).copy()


def _unpacked(memory: np.ndarray, like: np.ndarray) -> np.ndarray:
    if like.dtype in (ml_dtypes.int4, ml_dtypes.uint4):
        nibbles = np.stack([memory & 15, memory >> 4], -1).reshape(like.shape)
        signed = (nibbles.astype(np.int8) ^ 8) - 8 if like.dtype == ml_dtypes.int4 else nibbles
        return signed.astype(like.dtype)
    return memory.view(like.dtype).reshape(like.shape)
