"""Divisions of integer constants: MLIR folds them before XLA sees them, and ends the process if a divisor is 0."""

import re
from collections.abc import Mapping

_DIVISION = re.compile(
    r"^( *)(%\w+) = stablehlo\.(divide|remainder) (%[\w#]+), (%[\w#]+) : (tensor<(?:\d+x)*(u?)i(\d+)>)((?: loc.*)?)$",
    re.MULTILINE,
)
_FUNCTION = re.compile(r"^  func\.func .*?^  }", re.MULTILINE | re.DOTALL)
_DEFINED = re.compile(r"^ *(%\w+)(?::\d+)? = (.*)$", re.MULTILINE)
_NAME = re.compile(r"%\w+")
_INTEGER = re.compile(r"u?i\d+>$")
_SPREAD = re.compile(r"stablehlo\.broadcast_in_dim (%\w+), ")
_WITHOUT_ZERO = re.compile(r"stablehlo\.constant dense<\[*-?[1-9]\d*(?:[][, ]+-?[1-9]\d*)*\]*> : ")

Values = Mapping[str, str]  # name -> the operation that computes it


def with_guarded_divisions(text: str) -> str:
    """A module that divides a constant integer by 1 where the divisor is 0, and then selects XLA's result.

    XLA's quotient by 0 is -1, all bits of an unsigned number; the remainder is the dividend.
    """
    if "stablehlo.divide" not in text and "stablehlo.remainder" not in text or not _DIVISION.search(text):
        return text
    return _FUNCTION.sub(lambda function: _guarded(function[0]), text)


def _guarded(function: str) -> str:
    if not _DIVISION.search(function):
        return function
    values = dict(_DEFINED.findall(function))

    def guarded(division: re.Match) -> str:
        indent, name, operation, x, y, kind, unsigned, bits, place = division.groups()
        if _is_without_zero(y, values) or not _is_constant(x, values):
            return division[0]
        flags, own = _INTEGER.sub("i1>", kind), name[1:]
        every = (1 << int(bits)) - 1 if unsigned else -1
        lines = [
            f"%zero_{own} = stablehlo.constant dense<0> : {kind}",
            f"%one_{own} = stablehlo.constant dense<1> : {kind}",
            f"%every_{own} = stablehlo.constant dense<{every}> : {kind}",
            f"%is_zero_{own} = stablehlo.compare EQ, {y}, %zero_{own} : ({kind}, {kind}) -> {flags}",
            f"%divisor_{own} = stablehlo.select %is_zero_{own}, %one_{own}, {y} : {flags}, {kind}",
            f"%found_{own} = stablehlo.{operation} {x}, %divisor_{own} : {kind}",
            f"{name} = stablehlo.select %is_zero_{own}, {x if operation == 'remainder' else f'%every_{own}'}, "
            f"%found_{own} : {flags}, {kind}",
        ]
        return "\n".join([f"{indent}{line}{place}" for line in lines])

    return _DIVISION.sub(guarded, function)


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
