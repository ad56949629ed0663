"""Divisions of integer constants: MLIR folds them before XLA sees them, and ends the process if a divisor is 0."""

import re
from collections.abc import Mapping

_DIVISION = re.compile(
    r"^( *)(%\w+) = stablehlo\.(divide|remainder) (%[\w#]+), (%[\w#]+) : (tensor<(?:\d+x)*u?i\d+>)((?: loc.*)?)$",
    re.MULTILINE,
)
_FUNCTION = re.compile(r"^  func\.func .*?^  }", re.MULTILINE | re.DOTALL)
_DEFINED = re.compile(r"^ *(%\w+)(?::\d+)? = (.*)$", re.MULTILINE)
_NAME = re.compile(r"%\w+")
_SPREAD = re.compile(r"stablehlo\.broadcast_in_dim (%\w+), ")
_WITHOUT_ZERO = re.compile(r"stablehlo\.constant dense<\[*-?[1-9]\d*(?:[][, ]+-?[1-9]\d*)*\]*> : ")

Values = Mapping[str, str]  # name -> the operation that computes it


def with_kept_divisions(text: str) -> str:
    """A module in which MLIR folds no integer division whose divisor may be 0: a barrier hides a constant operand.

    XLA then divides when the program runs, where the quotient by 0 is -1.
    """
    if "stablehlo.divide" not in text and "stablehlo.remainder" not in text or not _DIVISION.search(text):
        return text
    return _FUNCTION.sub(lambda function: _with_barriers(function[0]), text)


def _with_barriers(function: str) -> str:
    if not _DIVISION.search(function):
        return function
    values = dict(_DEFINED.findall(function))

    def kept(division: re.Match) -> str:
        indent, name, operation, x, y, kind, place = division.groups()
        if _is_without_zero(y, values) or not (_is_constant(y, values) or _is_constant(x, values)):
            return division[0]
        hidden = f"%operand_{name[1:]}"
        shown = y if _is_constant(y, values) else x
        barrier = f"{indent}{hidden} = stablehlo.optimization_barrier {shown} : {kind}{place}"
        operands = ", ".join([hidden if operand is shown else operand for operand in (x, y)])
        return f"{barrier}\n{indent}{name} = stablehlo.{operation} {operands} : {kind}{place}"

    return _DIVISION.sub(kept, function)


def _is_without_zero(name: str, values: Values) -> bool:
    """Returns whether a value is a constant, or one that is broadcast, without an element 0."""
    value = values.get(name, "")
    spread = _SPREAD.match(value)
    return _WITHOUT_ZERO.match(values.get(spread[1], "") if spread else value) is not None


def _is_constant(name: str, values: Values) -> bool:
    """Returns whether a value is computed from constants alone. Arguments of functions and regions are not."""
    pending, seen = [name.partition("#")[0]], set[str]()
    while pending:
        value = values.get(name := pending.pop())
        if value is None:
            return False
        seen.add(name)
        pending += [operand for operand in _NAME.findall(value) if operand not in seen]
    return True
