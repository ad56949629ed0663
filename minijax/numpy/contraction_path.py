"""The description that `einsum_path` gives of a path: its steps, and their costs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal

Names = tuple[str, ...]  # those of each operand's axes


# Of a step: positions of operands, the names it sums over, the equation, the operands left, the kind of product.
_Step = tuple[tuple[int, ...], frozenset[str], str, Names | None, str | bool]


class PathInfo:
    """A path of contractions with its costs, which is printed as a table.

    Its attributes are those of opt_einsum's class, which jax returns: `eq`, `path`, `naive_cost`, `opt_cost`,
    `speedup`, `largest_intermediate`, `scale_list`, `size_list`, `size_dict`, `contraction_list` and others.
    """

    def __init__(self, inputs: Names, output: str, sizes: Mapping[str, int], shapes: Sequence, path: Sequence):
        self.input_subscripts, self.output_subscript = ",".join(inputs), output
        self.eq = f"{self.input_subscripts}->{output}"
        self.indices = frozenset().union(*inputs)
        self.size_dict = dict(sizes)
        self.shapes = [tuple(sizes[name] for name in names) for names in inputs]
        self.path = path
        summed = sum(len(set(names)) for names in inputs) > len(self.indices)
        self.naive_cost = Decimal(self._operations(self.indices, summed, len(inputs)))
        self.contraction_list: list[_Step] = []
        self.scale_list: list[int] = []
        self.size_list: list[int] = []
        self.opt_cost = Decimal(self._follow(list(inputs), list(shapes)))
        self.speedup = self.naive_cost / max(self.opt_cost, Decimal(1))
        self.largest_intermediate = Decimal(max(self.size_list, default=1))

    def _size(self, names: Iterable[str]) -> int:
        return math.prod(self.size_dict[name] for name in names)

    def _operations(self, names: Iterable[str], summed: bool, count: int) -> int:
        return self._size(names) * (max(1, count - 1) + summed)

    def _follow(self, terms: list[str], shapes: list[tuple[int, ...]]) -> int:
        """Records the steps of the path, and returns how many operations they have."""
        operations = 0
        for number, step in enumerate(self.path):
            positions = tuple(sorted(step, reverse=True))
            own = [terms.pop(i) for i in positions]
            own_shapes = [shapes.pop(i) for i in positions]
            names = frozenset().union(*own)
            left = names & frozenset(self.output_subscript).union(*terms)
            operations += self._operations(names, left != names, len(own))
            self.scale_list.append(len(names))
            self.size_list.append(self._size(left))
            result = (
                self.output_subscript if number == len(self.path) - 1 else "".join(sorted(left, key="".join(own).find))
            )
            product = _product(own, own_shapes, left, names - left)
            terms.append(result)
            shapes.append(tuple(max(_length(own, own_shapes, name)) for name in result))
            remaining = tuple(terms) if len(terms) <= 20 else None
            equation = f"{','.join(own)}->{result}"
            self.contraction_list.append((positions, names - left, equation, remaining, product))
        return operations

    def __repr__(self) -> str:
        lines = [
            f"  Complete contraction:  {self.eq}",
            f"         Naive scaling:  {len(self.indices)}",
            f"     Optimized scaling:  {max(self.scale_list, default=0)}",
            f"      Naive FLOP count:  {self.naive_cost:.3e}",
            f"  Optimized FLOP count:  {self.opt_cost:.3e}",
            f"   Theoretical speedup:  {self.speedup:.3e}",
            f"  Largest intermediate:  {self.largest_intermediate:.3e} elements",
            "-" * 80,
            f"{'scaling':>6} {'BLAS':>11} {'current':>22} {'remaining':>37}",
            "-" * 80,
        ]
        for scale, (_, _, equation, remaining, product) in zip(self.scale_list, self.contraction_list, strict=True):
            rest = "..." if remaining is None else f"{','.join(remaining)}->{self.output_subscript}"
            width = max(0, 56 - max(22, len(equation)))
            lines.append(f"{scale:>4} {product:>14} {equation:>22}    {rest:>{width}}")
        return "\n".join(lines)


def _length(terms: Sequence[str], shapes: Sequence[tuple[int, ...]], name: str) -> list[int]:
    return [shape[term.find(name)] for term, shape in zip(terms, shapes, strict=True) if name in term]


def _product(terms: Sequence[str], shapes: Sequence, left: frozenset[str], removed: frozenset[str]) -> str | bool:
    """The name of the product of two operands in libraries of linear algebra, or False."""
    if len(terms) != 2:
        return False
    one, other = terms
    for name in set(one + other):
        counts = one.count(name), other.count(name)
        if max(counts) > 1 or (sum(counts) == 2) == (name in left):
            return False
    if any(len(set(_length(terms, shapes, name))) > 1 for name in removed):
        return False
    if not removed:
        return "OUTER/EINSUM"
    if set(one) == set(other):
        return "DOT" if one == other else "DOT/EINSUM"
    n = len(removed)
    ends = {one[-n:], one[:n]} & {other[-n:], other[:n]}
    if ends:
        return "GEMM"
    return "GEMV/EINSUM" if removed in (set(one), set(other)) else "TDOT"
