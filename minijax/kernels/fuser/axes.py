"""Which axis of the result each axis of an operand is: one table, which blocks follow in both directions."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import TypeAlias

from minijax.ir.jaxpr import JaxprEqn
from minijax.primitives.families import SameShape


class Axis(enum.Enum):
    """An axis of an operand that the result does not have as it is."""

    WHOLE = "a block has all of it"
    REDUCED = "a block has all of it, and the result has none"
    ALONG = "the operation works along it, so blocks of operand and result have all of it"
    GONE = "it has one element, and the result lacks it"


Place: TypeAlias = int | Axis
Rule: TypeAlias = Callable[[JaxprEqn], "list[list[Place]]"]


def axes_of(eqn: JaxprEqn) -> list[list[Place]] | None:
    """For each operand, the places of its axes in the result. None: blocks of this operation do not follow axes."""
    rule = _elementwise if isinstance(eqn.primitive, SameShape) else AXES.get(eqn.primitive.name)
    return None if rule is None else rule(eqn)


def _shapes(eqn: JaxprEqn) -> list[tuple[int, ...]]:
    return [a.aval.shape for a in eqn.invars]


def _elementwise(eqn: JaxprEqn) -> list[list[Place]]:
    return [list(range(len(shape))) for shape in _shapes(eqn)]


def _broadcast(eqn: JaxprEqn) -> list[list[Place]]:
    return [list(eqn.params["broadcast_dimensions"])]


def _transposed(eqn: JaxprEqn) -> list[list[Place]]:
    order = eqn.params["permutation"]
    return [[order.index(axis) for axis in range(len(order))]]


def _without(shape: Sequence[int], axes: Sequence[int], place: Axis) -> list[Place]:
    kept = iter(range(len(shape)))
    return [place if axis in axes else next(kept) for axis in range(len(shape))]


def _squeezed(eqn: JaxprEqn) -> list[list[Place]]:
    return [_without(_shapes(eqn)[0], eqn.params["dimensions"], Axis.GONE)]


def _reduced(eqn: JaxprEqn) -> list[list[Place]]:
    return [_without(shape, eqn.params["axes"], Axis.REDUCED) for shape in _shapes(eqn)]


def _along(*names: str) -> Rule:
    """The rule of an operation that works along the axes that a parameter names."""

    def rule(eqn):
        axes = next(eqn.params[name] for name in names if name in eqn.params)
        axes = (axes,) if isinstance(axes, int) else axes
        return [[Axis.ALONG if a in axes else a for a in range(len(shape))] for shape in _shapes(eqn)]

    return rule


def _product(eqn: JaxprEqn) -> list[list[Place]]:
    contracted, batch = eqn.params["dimension_numbers"]
    (left, right), first = _shapes(eqn)[:2], len(batch[0])
    found = []
    for shape, mine, shared in zip((left, right), contracted, batch, strict=True):
        places: list[Place] = [Axis.WHOLE] * len(shape)
        for place, axis in enumerate(shared):
            places[axis] = place
        for axis in range(len(shape)):
            if axis not in mine and axis not in shared:
                places[axis], first = first, first + 1
        found.append(places)
    return found


# name of a primitive -> the places of its operands' axes
AXES: dict[str, Rule] = {
    "broadcast_in_dim": _broadcast,
    "transpose": _transposed,
    "squeeze": _squeezed,
    "dot_general": _product,
    "sort": _along("dimension"),
    "iota": lambda eqn: [],
    **dict.fromkeys("convert_element_type select_n clamp copy reduce_precision stop_gradient".split(), _elementwise),
    **dict.fromkeys("bitcast_convert_type optimization_barrier".split(), _elementwise),
    **dict.fromkeys([f"reduce_{name}" for name in "sum max min prod and or xor".split()], _reduced),
    **dict.fromkeys("argmax argmin".split(), _reduced),
    **dict.fromkeys("cumsum cumprod cummax cummin cumlogsumexp".split(), _along("axis")),
}
