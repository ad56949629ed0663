"""Sharding rules of operations: each dimension of an operand or result has a factor. Dimensions with the same factor
are sharded over the same mesh axes.
"""

import math
import re
from collections.abc import Sequence
from typing import Any

BATCHING = "…"  # represents the leading dimensions; digits may follow

Dims = list[tuple[str, ...]]  # the factors of each dimension of a value


def _is_batching(dim: Any) -> bool:
    return isinstance(dim, str) and re.fullmatch(BATCHING + r"\d*", dim) is not None


def _check_name(name: str) -> None:
    if not name[:1].isalpha():
        raise ValueError(f"Factor names have to start with a letter, but got '{name[:1]}'")
    for character in name:
        if not (character.isalnum() or character == "_"):
            raise ValueError(f"Unknown character '{character}'")


class CompoundFactor(tuple):
    """A dimension with two or more factors, from major to minor."""

    def __new__(cls, *factors: str) -> "CompoundFactor":
        if len(factors) < 2:
            raise ValueError("A compound factor should contain at least two factors")
        for factor in factors:
            if not isinstance(factor, str):
                raise ValueError(f"Each element of CompoundFactor must be a str, but got {type(factor)}")
            if _is_batching(factor):
                raise ValueError("Ellipsis can't be used in a compound factor")
            _check_name(factor)
        return super().__new__(cls, factors)


class ArrayMapping(tuple):
    """The factors of an operand or result, one per dimension; the first may represent several (`BATCHING`)."""

    def __new__(cls, *dim_mappings: str | CompoundFactor) -> "ArrayMapping":
        for i, dim in enumerate(dim_mappings):
            if not isinstance(dim, str | CompoundFactor):
                raise ValueError(f"Each element of ArrayMapping must be a str or CompoundFactor, but got {type(dim)}")
            if _is_batching(dim):
                if i:
                    raise ValueError("Ellipsis can only be used at the beginning of a dimension")
            elif isinstance(dim, str):
                _check_name(dim)
        return super().__new__(cls, dim_mappings)


class SdyShardingRule:
    """The factors of all operands and results.

    `factor_sizes` has the sizes of factors that occur only in compound factors. Values sharded along a factor are
    summed (`reduction_factors`), gathered (`need_replication_factors`) or permuted (`permutation_factors`).
    """

    def __init__(
        self,
        operand_mappings: tuple[ArrayMapping, ...],
        result_mappings: tuple[ArrayMapping, ...],
        *,
        reduction_factors: tuple[str, ...] = (),
        need_replication_factors: tuple[str, ...] = (),
        permutation_factors: tuple[str, ...] = (),
        **factor_sizes: int,
    ):
        self.operand_mappings, self.result_mappings = operand_mappings, result_mappings
        self.factor_sizes = factor_sizes
        self.reduction_factors = reduction_factors
        self.need_replication_factors = need_replication_factors
        self.permutation_factors = permutation_factors
        dims = [dim for mapping in (*operand_mappings, *result_mappings) for dim in mapping]
        whole = {dim for dim in dims if isinstance(dim, str) and not _is_batching(dim)}
        parts = dict.fromkeys(factor for dim in dims if isinstance(dim, CompoundFactor) for factor in dim)
        for factor in factor_sizes:
            if factor in whole:
                raise ValueError(f"Factor {factor} represents a whole dimension; do not specify its size")
            if factor not in parts:
                raise ValueError(f"Factor {factor} is not used in the rule, but size is provided")
        for factor in parts:
            if factor not in whole and factor not in factor_sizes:
                raise ValueError(f"Factor {factor} is only used in compound factors; must specify its size")
        self._check_special(whole | set(parts))
        if not all(isinstance(size, int) for size in factor_sizes.values()):
            raise TypeError(f"factor_sizes must be a dict of str to int, but got {factor_sizes}")

    def _check_special(self, used: set[str]) -> None:
        seen: set[str] = set()
        for kind, factors in self.special.items():
            if not isinstance(factors, tuple):
                raise ValueError(f"{kind}_factors must be a tuple of factors")
            for factor in factors:
                if factor not in used:
                    raise ValueError(f"Factor {factor} in {kind}_factors is not used in the rule")
                if factor in seen:
                    raise ValueError(
                        f"Factor {factor} can only be in one of the reduction, need replication, or permutation "
                        "factor sets."
                    )
                seen.add(factor)

    @property
    def special(self) -> dict[str, tuple[str, ...]]:
        """The special factors by kind: the collective that values sharded along them need."""
        kinds = ("reduction", "need_replication", "permutation")
        return {kind: getattr(self, f"{kind}_factors") for kind in kinds}

    def __str__(self):
        special = "".join([f" {kind}_factors={factors}" for kind, factors in self.special.items() if factors])
        return f"SdyShardingRule({self.operand_mappings}, {self.result_mappings}, {self.factor_sizes}{special})"

    def applied(self, ins: Sequence[tuple], outs: Sequence[tuple]) -> tuple[list[Dims], list[Dims], dict[str, int]]:
        """(factors of operands, factors of results, sizes of all factors) for these shapes.

        Raises ValueError if the rule does not apply to values of these shapes.
        """
        sizes, ranks = dict[str, int](), dict[str, int]()
        sides = []
        for kind, mappings, shapes in (("operand", self.operand_mappings, ins), ("result", self.result_mappings, outs)):
            if len(mappings) != len(shapes):
                raise ValueError(
                    f"Sharding rule has {len(mappings)} {kind}s, but the operation has {len(shapes)} {kind}s"
                )
            rows = list(zip(mappings, shapes, [f"{i}th {kind}" for i in range(len(shapes))], strict=True))
            sides.append([(_dims(*row, ranks), *row[1:]) for row in rows])
        for dims, shape, _ in sides[0] + sides[1]:
            self._note_sizes(dims, shape, sizes)
        for row in sides[0] + sides[1]:
            _check_compounds(*row, sizes)
        ins_dims, outs_dims = [[dims for dims, _, _ in side] for side in sides]
        return ins_dims, outs_dims, sizes

    def _note_sizes(self, dims: Dims, shape: tuple, sizes: dict[str, int]) -> None:
        for factors, size in zip(dims, shape, strict=True):
            if len(factors) > 1:
                for factor in factors:
                    sizes.setdefault(factor, self.factor_sizes.get(factor, size))
                continue
            known = sizes.setdefault(factors[0], size)
            if known != size and factors[0].startswith(BATCHING):
                name = factors[0].removeprefix(BATCHING)
                raise ValueError(f"Batching dimension {name} corresponds to two sizes: {known} and {size}")
            sizes[factors[0]] = min(known, size)


def _dims(mapping: Sequence, shape: tuple, where: str, ranks: dict[str, int]) -> Dims:
    """The factors of each dimension; a leading ellipsis is expanded to one factor per dimension."""
    leading = mapping[:1] if mapping and _is_batching(mapping[0]) else ()
    rest, count = mapping[len(leading) :], len(shape) - len(mapping) + len(leading)
    if count < 0 or count and not leading:
        raise ValueError(f"Sharding rule {where} has rank {len(rest)}, but the operation {where} has rank {len(shape)}")
    for name in leading:
        known = ranks.setdefault(name, count)
        if known != count:
            raise ValueError(f"Ellipsis represents different number of leading dimensions {known} and {count}")
    batch = [(f"{name}_{i}",) for name in leading for i in range(count)]
    return [*batch, *[dim if isinstance(dim, CompoundFactor) else (dim,) for dim in rest]]


def _check_compounds(dims: Dims, shape: tuple, where: str, sizes: dict[str, int]) -> None:
    names = [factor for factors in dims for factor in factors]
    if len(set(names)) < len(names):
        raise ValueError(f"Sharding rule {where}: cannot reuse factors for the same tensor value, got {names}")
    for factors, size in zip(dims, shape, strict=True):
        product = math.prod(sizes[factor] for factor in factors)
        if len(factors) > 1 and product != size:
            raise ValueError(
                f"{where} actual size {size} doesn't match the size {product} derived from the compound factors "
                f"{tuple(factors)}"
            )
        if len(factors) > 1 and any(sizes[factor] == 1 for factor in factors):
            raise ValueError(f"{where}: dim mapping can't have a factor of size 1 if there are multiple factors")


# ---- rules as strings -------------------------------------------------------------------------------


def parse_rule(rule: str, **how: Any) -> SdyShardingRule:
    """Parses a rule such as `... i (j k), k -> ... j`.

    Raises TypeError if `rule` is not a string, ValueError if it is malformed.
    """
    if not isinstance(rule, str):
        raise TypeError(f"rule must be a str, but got {type(rule)}")
    sides = rule.split("->")
    if len(sides) != 2:
        raise ValueError(f"There is no -> in rule: '{rule}'")
    if rule.count("(") != rule.count(")"):
        raise ValueError(f"Brackets are not balanced in rule: '{rule}'")
    if BATCHING in rule:
        raise ValueError(f"Unknown character '{BATCHING}'")
    operands, results = [tuple([_mapping(value) for value in side.split(",")]) for side in sides]
    return SdyShardingRule(operands, results, **how)


def _mapping(text: str) -> ArrayMapping:
    dims: list[Any] = []
    inner: list[str] | None = None
    for token in re.findall(r"\.+\d*|[()]|[^\s().]+", text):
        if token == "(":
            if inner is not None:
                raise ValueError("Compound factors should be one level, nested brackets are not allowed")
            inner = []
        elif token == ")":
            dims.append(_compound(inner))
            inner = None
        elif inner is not None:
            inner.append(_ellipsis(token, True) if token[0] == "." else token)
        else:
            dims.append(_ellipsis(token, bool(dims)) if token[0] == "." else token)
    if inner is not None:
        raise ValueError(f"Brackets are not balanced in '{text}'")
    return ArrayMapping(*dims)


def _compound(factors: list[str] | None) -> CompoundFactor:
    if factors is None:
        raise ValueError("Brackets are not balanced")
    if len(factors) < 2:
        raise ValueError("Brackets should contain at least two factors")
    return CompoundFactor(*factors)


def _ellipsis(token: str, inside: bool) -> str:
    if not re.fullmatch(r"\.\.\.\d*", token):
        raise ValueError("Character '.' must be used inside ellipsis '...'")
    if inside:
        raise ValueError("Ellipsis can only be used at the beginning of a dimension")
    return BATCHING + (token[3:] or "0")
