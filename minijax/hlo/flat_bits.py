"""Random bits of matrices as those of vectors: XLA for CPUs compiles them in a quarter of the time.

XLA unrolls loops over short last axes, and threefry has twenty rounds. The counts are computed before its loop, and the
bits are read after it, so results do not depend on the shape within.
"""

import math
import re

_FUNCTION = re.compile(r"^  func\.func private @(threefry2x32\w*|closed_call\w*)\(.*?^  }", re.MULTILINE | re.DOTALL)
_OF_MATRICES = re.compile(
    r"  func\.func private @threefry2x32\w*\(%arg0: tensor<ui32>, %arg1: tensor<ui32>, "
    r"%arg2: (tensor<((?:\d+x){2,})ui32>), %arg3: \1\) -> \(\1, \1\) {\n"
)
_RETURNED = re.compile(r"^(\S+), (\S+) : ")
_CALLED = re.compile(r"call @(\w+)\(")
# Lines that compute each element from those at the same place.
_ELEMENTWISE = re.compile(
    r"= stablehlo\.(?:add|or|xor|shift_left|shift_right_logical|while)\b|stablehlo\.broadcast_in_dim %\w+, dims = \[\]"
    r"|= func\.call @|^\s*(?:stablehlo\.)?return\b|^  func\.func "
)


def with_flat_bits(text: str) -> str:
    """A module for one device whose threefry functions reshape their counts to vectors, and their bits back."""
    if "func private @threefry2x32" not in text:
        return text
    functions = {match.group(1): match.group(0) for match in _FUNCTION.finditer(text)}
    for function in functions.values():
        matrices = _OF_MATRICES.match(function)
        if matrices is None:
            continue
        shaped, sizes = matrices.groups()
        called = _CALLED.findall(function)
        bodies = [functions.get(name, "") for name in called]
        is_called_once = all([text.count(f"@{name}(") == 2 for name in called])
        if is_called_once and all([_is_elementwise(body, shaped) for body in (function, *bodies)]):
            flat = f"tensor<{math.prod(map(int, sizes[:-1].split('x')))}xui32>"
            text = text.replace(function, _reshaping(function, shaped, flat))
            for body in bodies:
                text = text.replace(body, body.replace(shaped, flat))
    return text


def _is_elementwise(function: str, shaped: str) -> bool:
    """Returns whether a function computes elements of this type from those at the same place."""
    lines = [line for line in function.split("\n") if shaped in line]
    return bool(lines) and all([_ELEMENTWISE.search(line) for line in lines])


def _reshaping(function: str, shaped: str, flat: str) -> str:
    """A threefry function of this type that computes with vectors."""
    header, _, rest = function.partition("\n")
    body, returned, end = rest.replace("%arg2", "%counts0").replace("%arg3", "%counts1").rpartition("    return ")
    first, second = _RETURNED.findall(end)[0]
    return (
        f"{header}\n"
        f"    %counts0 = stablehlo.reshape %arg2 : ({shaped}) -> {flat}\n"
        f"    %counts1 = stablehlo.reshape %arg3 : ({shaped}) -> {flat}\n"
        f"{body.replace(shaped, flat)}"
        f"    %bits0 = stablehlo.reshape {first} : ({flat}) -> {shaped}\n"
        f"    %bits1 = stablehlo.reshape {second} : ({flat}) -> {shaped}\n"
        f"{returned}{_RETURNED.sub('%bits0, %bits1 : ', end)}"
    )
