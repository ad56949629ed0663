"""Prints StableHLO types, literals, attributes and symbols."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from minijax.base import dtypes
from minijax.base.cache import BoundedDict
from minijax.base.errors import JaxRuntimeError
from minijax.ir.types import AbstractToken, Aval, ShapedArray

_ELEMENTS = {"bool": "i1", "float0": "i1", "c64": "complex<f32>", "c128": "complex<f64>"}  # by the dtype's short name
_element_of: dict[Any, str] = {"tf32": "tf32"}  # a precision of products, not a dtype


def element(dtype: Any) -> str:
    """The element type of a dtype: `f32`, `ui8`, `f8E4M3FN`."""
    text = _element_of.get(dtype)
    if text is None:
        text = _element_of[dtype] = _print_element(np.dtype(dtype))
    return text


def _print_element(dtype: np.dtype) -> str:
    dtypes.check_for_programs(dtype)
    if dtype != dtypes.float0 and dtype.name not in dtypes.BY_NAME:
        raise TypeError(f"no StableHLO element type for dtype {dtype}")
    name = dtypes.short_name(dtype)
    if name[0] == "u":
        return f"ui{name[1:]}"
    family, _, variant = name.partition("_")
    return _ELEMENTS.get(name) or f"{family}{variant.upper()}"


def suffix_of(aval: Aval) -> tuple[int, ...]:
    """The trailing dimensions that an extended dtype has in memory; () for any other."""
    return getattr(aval.dtype, "physical_suffix", ())


def physical(aval: ShapedArray) -> ShapedArray:
    """The physical type of an array: that of its physical dtype, with the suffix dimensions."""
    dtype: Any = getattr(aval, "dtype", None)  # tokens have none
    if not hasattr(dtype, "physical_dtype"):
        return aval
    return ShapedArray(aval.shape + tuple(dtype.physical_suffix), np.dtype(dtype.physical_dtype))


def type_of(aval: Aval) -> str:
    """Prints the type of a value, `tensor<3xf32>`; cached on array types."""
    try:
        text = aval._hlo
    except AttributeError:
        if isinstance(aval, AbstractToken):
            return "!stablehlo.token"
        raise TypeError(f"values of type {aval} cannot be lowered to StableHLO") from None
    if text is None:
        real = physical(aval)
        sizes = "".join(f"{d if type(d) is int else '?'}x" for d in real.shape)
        text = f"tensor<{sizes}{element(real.dtype)}>"
        _check_bytes(real, text)
        object.__setattr__(aval, "_hlo", text)
    return text


# XLA ends the process if a number of bytes overflows 64 bits, also of an intermediate array with wider elements.
_MOST_BYTES = 2**56


def _check_bytes(aval: ShapedArray, text: str) -> None:
    # XLA multiplies sizes in any order: a size of 0 does not prevent the overflow.
    bytes_ = math.prod([d for d in aval.shape if type(d) is int and d]) * aval.dtype.itemsize
    if bytes_ > _MOST_BYTES:
        raise JaxRuntimeError(f"RESOURCE_EXHAUSTED: Out of memory: {bytes_} bytes for an array of type {text}.")


def types_of(avals: Sequence[Aval]) -> str:
    """Operand types separated by commas."""
    return ", ".join([type_of(a) for a in avals])


def results_of(avals: Sequence[Aval]) -> str:
    """Result types: bare if there is one, else in parentheses."""
    return type_of(avals[0]) if len(avals) == 1 else f"({types_of(avals)})"


class _IntLists(dict):
    """Maps tuples of ints to `[0, 1]`, each printed once."""

    def __missing__(self, items):
        if len(self) >= 4096:
            self.clear()
        text = self[items] = f"[{', '.join(map(str, items))}]"
        return text


int_list = _IntLists().__getitem__


def int_array(items: Sequence[int]) -> str:
    """`array<i64: 1, 2>`, the form in generic operations."""
    return f"array<i64: {', '.join(map(str, items))}>" if len(items) else "array<i64>"


def int_matrix(rows: Any) -> str:
    """Pairs or groups as `dense<[[0, 1]]> : tensor<1x2xi64>`."""
    return dense(np.asarray(rows, np.int64))


def int_pairs(pairs: Any) -> str:
    """As `int_matrix`, for a possibly empty sequence of pairs."""
    return int_matrix(np.asarray(pairs, np.int64).reshape(-1, 2))


# ---- literals -----------------------------------------------------------------------------------------

_PRINTED_BYTES = 32
_DIGITS = {"float64": 17, "float32": 9, "float16": 5, "bfloat16": 4}
_scalars = BoundedDict(1 << 14)


def constant(value: Any, aval: ShapedArray) -> tuple[str, str]:
    """The stem of a constant's name in MLIR (`c`, `cst`), and the printed value with its type."""
    cls = type(value)
    if cls is int or cls is bool or (cls is float and value):
        key = (value, aval)
    elif cls is float or cls is complex:
        key = (repr(value), aval)  # keeps 0.0 and -0.0 apart
    else:
        value = np.asarray(value)
        if value.ndim:
            return _constant(value, aval)
        key = (value.tobytes(), value.dtype, aval)
    spelled = _scalars.get(key)
    if spelled is None:
        spelled = _scalars[key] = _constant(value, aval)
    return spelled


def _constant(value, aval):
    real = physical(aval)
    kind = element(real.dtype)
    value = np.zeros(real.shape, bool) if kind == "i1" and real.dtype != bool else np.asarray(value, real.dtype)
    if value.shape != real.shape:
        value = np.broadcast_to(value, real.shape)
    return "c" if "i" in kind else "cst", f"{_elements(value)} : {type_of(aval)}"


def dense(value: np.ndarray) -> str:
    """A NumPy array as a typed elements attribute."""
    sizes = "".join(f"{d}x" for d in value.shape)
    return f"{_elements(value)} : tensor<{sizes}{element(value.dtype)}>"


def _elements(value: np.ndarray) -> str:
    if value.size == 0:
        return "dense<>"
    value = np.ascontiguousarray(value)
    raw = value.reshape(-1).view(np.uint8).reshape(value.size, -1)
    if (raw == raw[0]).all():
        return f"dense<{scalar(value.reshape(-1)[0])}>"
    if value.nbytes <= _PRINTED_BYTES:
        return f"dense<{_nested(value)}>"
    if value.dtype.name in ("int4", "uint4", "int2", "uint2"):
        value = value.astype(np.int8)
    return f'dense<"0x{value.tobytes().hex().upper()}">'


def _nested(value):
    return f"[{', '.join(map(_nested, value))}]" if value.ndim else scalar(value[()])


def scalar(value: np.generic) -> str:
    """One element: `1`, `true`, `1.500000e+00`, `0x7FC00000`, `(1.000000e+00,0.000000e+00)`."""
    kind = element(value.dtype)
    if kind == "i1":
        return "true" if value else "false"
    if kind[0] in "iu":
        return str(int(value))
    if kind[0] == "c":
        return f"({_float(value.real)},{_float(value.imag)})"
    return _float(value)


def _float(value: np.generic) -> str:
    """Prints a float as MLIR does: with six digits if exact, else with as many as determine it, else its bits."""
    number = float(value)
    if number - number != 0:
        return _bits(value)
    if abs(number) < 512 and number * 16 == int(number * 16):  # common values with too few digits to be rounded
        mantissa, exponent = f"{number:.5e}".split("e")
        if float(text := f"{mantissa}0e{exponent}") == number:
            return text
    sign = "-" if number < 0 else ""
    digits, exponent = _decimal(abs(number), 6)
    text = f"{sign}{digits[0]}.{digits[1:]:0<6}e{exponent + len(digits) - 1:+03d}"
    if np.asarray(float(text)).astype(value.dtype).tobytes() == value.tobytes():
        return text
    text = _long(*_decimal(abs(number), precision := _DIGITS.get(value.dtype.name, 17)), precision)
    return sign + text if "." in text else _bits(value)


def _decimal(number: float, precision: int) -> tuple[str, int]:
    """The digits, at most `precision`, and the power of ten of the last one, as LLVM's APFloat::toString computes them.

    It drops an estimated number of digits before it rounds: sometimes no digit is left to round by.
    """
    numerator, denominator = number.as_integer_ratio()
    exponent = 1 - denominator.bit_length()
    significand = numerator * 5**-exponent
    excess = significand.bit_length() - (precision * 196 + 58) // 59
    removable = max(excess, 0) * 59 // 196
    digits = str(significand // 10**removable)
    rounded = digits[:precision]
    if digits[precision : precision + 1] >= "5":
        rounded = str(int(rounded) + 1)
    exponent += removable + max(len(digits) - precision, 0)
    shown = rounded.rstrip("0") or "0"
    return shown, exponent + len(rounded) - len(shown)


def _long(digits: str, exponent: int, precision: int) -> str:
    """`1234.5`, `0.0012345`, or `1.2345E-5` if there would be more than three zeros; no point if it is an integer."""
    whole = len(digits) + exponent
    if exponent > 3 or whole < -2 or (exponent > 0 and whole > precision):
        return f"{digits[0]}.{digits[1:] or 0}E{whole - 1:+d}"
    if exponent >= 0:
        return digits + "0" * exponent
    return f"{digits[:whole]}.{digits[whole:]}" if whole > 0 else f"0.{'0' * -whole}{digits}"


def _bits(value):
    return f"0x{int.from_bytes(value.tobytes(), 'little'):0{2 * value.dtype.itemsize}X}"


# ---- attributes and symbols ---------------------------------------------------------------------------

TYPED_CONFIG = "mhlo.backend_config"  # the attributes of a call of a target with the typed FFI


def string(text: str | bytes) -> str:
    """A quoted string; bytes that are not printable ASCII are escaped."""
    if isinstance(text, bytes):
        raw = text.replace(b"\\", b"\\\\")
    else:
        plain = text.replace("\\", "\\\\")
        if plain.isascii() and plain.isprintable() and '"' not in plain:
            return f'"{plain}"'
        raw = plain.encode()
    return '"' + "".join(chr(b) if 32 <= b < 127 and b != 34 else f"\\{b:02X}" for b in raw) + '"'


def attribute(value: Any) -> str:
    """A Python or NumPy value as an attribute: `5 : i64`, `true`, `"s"`, `[...]`, `{k = ...}`."""
    match value:
        case bool() | np.bool_():
            return "true" if bool(value) else "false"
        case str() | bytes():
            return string(value)
        case int():
            return f"{int(value)} : i64"
        case np.ndarray():
            return dense(value)
        case np.dtype():
            return element(value)
        case np.generic():
            return f"{scalar(value)} : {element(value.dtype)}"
        case float():
            return f"{scalar(np.float64(value))} : f64"
        case Mapping():
            return dictionary({name: attribute(item) for name, item in value.items()})
        case Sequence():
            return f"[{', '.join(map(attribute, value))}]"
        case None:
            return "unit"
    if hasattr(value, "dtype"):
        return dense(np.asarray(value))
    raise TypeError(f"cannot make a StableHLO attribute from {value!r} of type {type(value)}")


def dictionary(texts: Mapping[str, str]) -> str:
    """Printed attributes by name as `{a = 1 : i64, b = true}`, sorted by name."""
    return "{" + ", ".join(f"{_key(name)} = {texts[name]}" for name in sorted(texts)) + "}"


_UNATTRIBUTED = re.compile(r".*(\{|\):|\})$|\s*(%\S+ = stablehlo\.constant |stablehlo\.return\b)")
_FRONTEND = re.compile(r"mhlo\.frontend_attributes = \{((?:[^\"{}]|\"(?:[^\"\\]|\\.)*\")*)\}")
_PAIR = re.compile(r"(\"(?:[^\"\\]|\\.)*\"|[^\s=,]+) = (\"(?:[^\"\\]|\\.)*\")")


def with_frontend(line: str, attrs: Mapping[str, str], constants: bool = False) -> str:
    """Adds frontend attributes to the line of an operation; it keeps those that it already has.

    Lines that cannot have attributes are unchanged, as are constants unless `constants` is set.
    """
    new = {_key(name): string(value) for name, value in attrs.items()}
    if present := _FRONTEND.search(line):
        return line[: present.start()] + _frontend(new | dict(_PAIR.findall(present[1]))) + line[present.end() :]
    text = _frontend(new)
    if line.endswith(" cond {"):
        return f"{line.removesuffix(' cond {')} attributes {{{text}}} cond {{"
    if constants and " = stablehlo.constant dense<" in line:
        return line.replace(" = stablehlo.constant ", f" = stablehlo.constant {{{text}}} ", 1)
    if _UNATTRIBUTED.match(line):
        return line
    head, _, types = line.rpartition(" : ")
    return f"{head[:-1]}, {text}}} : {types}" if head[-1] == "}" else f"{head} {{{text}}} : {types}"


def _frontend(spelled):
    pairs = sorted(spelled.items(), key=lambda item: item[0].strip('"'))
    return f"mhlo.frontend_attributes = {{{', '.join(f'{name} = {value}' for name, value in pairs)}}}"


def accuracy_attribute(mode: str, **tolerance: float) -> str:
    """The attribute `result_accuracy`, printed after the operand; tolerances of 0 are omitted."""
    parts = [f"{name} = {v if name == 'ulps' else f'{float(v):.17e}'}" for name, v in tolerance.items() if v]
    parts.append(f"mode = #stablehlo.result_accuracy_mode<{mode}>")
    return f" {{result_accuracy = #stablehlo.result_accuracy<{', '.join(parts)}>}}"


_BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_$.]*")


def _key(name):
    return name if _BARE.fullmatch(name) else string(name)


def symbol(name: str) -> str:
    """`@name`, quoted if necessary."""
    return "@" + _key(name)


def module_name(name: str) -> str:
    """The name of a module, which XLA shows: characters outside words become `_`."""
    return re.sub(r"[^\w.-]", "_", name).rstrip("_") or "_"


_COMPARISONS = {"f": "FLOAT", "b": "FLOAT", "c": "FLOAT", "i": "SIGNED", "u": "UNSIGNED"}


def comparison_of(dtype: Any) -> str:
    """The comparison type of a dtype: FLOAT, SIGNED or UNSIGNED."""
    kind = element(dtype)
    return "UNSIGNED" if kind == "i1" else _COMPARISONS[kind[0]]


def layout(minor_to_major: Sequence[int]) -> str:
    """A layout of a custom call: `dense<[1, 0]> : tensor<2xindex>`."""
    rank = len(minor_to_major)
    items = "" if not rank else str(minor_to_major[0]) if rank == 1 else int_list(tuple(minor_to_major))
    return f"dense<{items}> : tensor<{rank}xindex>"
