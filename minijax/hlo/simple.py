"""Recognises programs whose results on the CPU do not depend on most of XLA's optimizations, which take long."""

import math
import re

# Operations whose results do not depend on how code is made for them. Of those on floats that round, one alone is
# allowed: XLA may join two, such as a product and a sum, to one that rounds once.
_EXACT = frozenset(
    "abs and bitcast_convert broadcast_in_dim ceil clamp compare complex concatenate constant convert "
    "count_leading_zeros dynamic_slice dynamic_update_slice floor gather get_tuple_element imag iota is_finite "
    "maximum minimum negate not or pad popcnt real reduce reshape return reverse round_nearest_afz round_nearest_even "
    "scatter select shift_left shift_right_arithmetic shift_right_logical sign slice sort transpose tuple xor".split()
)  # fmt: skip
_ROUNDING = frozenset("add divide multiply remainder subtract sqrt".split())

_OF_COMPLEX = frozenset("abs divide multiply sign sqrt".split())

_LARGEST_TEXT = 16_000  # characters
_WORK = 4096  # elements of all operations' results: above it, running takes longer than compiling saves

_OPERATION = re.compile(r"\bstablehlo\.(\w+)([^\n]*)")
_FLOAT = re.compile(r"[<x](?:f\d|bf16|complex)")
_NARROW = re.compile(r"[<x](?:f8|f16|bf16)")  # compared as wider ones, in which no number of theirs is subnormal
_RESULT = re.compile(r"tensor<((?:\d+x)+)[^<>]*>\)?(?: loc.*)?$", re.MULTILINE)
_REDUCTION = re.compile(r"stablehlo\.reduce\b.*?\) -> [^\n]*", re.DOTALL)
_OTHERS = re.compile(r"\b(?:chlo|mhlo|sdy)\.|\?")
_ALONE = "mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32"


def is_simple(text: str) -> bool:
    """Returns whether XLA's optimizations of code change nothing in the results of a module, and save little time."""
    if len(text) > _LARGEST_TEXT:
        return False
    head, _, body = text.partition("\n")
    found = _OPERATION.findall(body)
    if "threefry" in body:  # its one loop has five steps
        found = [(name, rest) for name, rest in found if name != "while" or body.count("stablehlo.while") > 1]
    if (
        not all([name in _EXACT or name in _ROUNDING for name, _ in found])
        or _roundings(found) > 1
        or _may_flush(found)
        or any([_FLOAT.search(reduction) for reduction in _REDUCTION.findall(body)])  # their order could matter
    ):
        return False
    work = sum([math.prod(map(int, shape[:-1].split("x"))) for shape in _RESULT.findall(body)])
    return work <= _WORK and _ALONE in head and _OTHERS.search(body) is None


def _roundings(found: list[tuple[str, str]]) -> int:
    """How many results are rounded; of complex numbers these operations round several."""
    floats = [rest for name, rest in found if name in _ROUNDING and _FLOAT.search(rest)]
    return len(floats) + 2 * sum("complex<" in rest for name, rest in found if name in _OF_COMPLEX)


def _may_flush(found: list[tuple[str, str]]) -> bool:
    """Returns whether optimizations may treat subnormal floats otherwise: a chosen one of two compared is a maximum."""
    compared = [rest for name, rest in found if name == "compare" and _FLOAT.search(rest)]
    chosen = [rest for name, rest in found if name == "select" and _FLOAT.search(rest)]
    return bool(compared) and (bool(chosen) or _NARROW.search("".join(compared)) is not None)


# Calls of functions, operations between devices, elements of few bits, bounds of complex numbers and booleans.
_REFUSED = (
    r"clamp.*(?:complex|[x<]i1>)|custom_call @(?!lapack_)|composite|f[468]E|xu?i[24]>|<u?i[24]>|collective"
    r"|stablehlo.all_|_id\b"
)


def only_computes(text: str, returns_keys: bool) -> bool:
    """Returns whether a module has only operations that XLA for CPUs does not refuse, such as reductions of keys."""
    return re.search(_REFUSED, text) is None and not (returns_keys and "stablehlo.reduce" in text)
