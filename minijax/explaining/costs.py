"""Counts the operations and bytes of equations, by simple rules, and measures their times."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from typing import Any

from minijax.api.jit import jit
from minijax.api.transfer import block_until_ready
from minijax.base.dtypes import itemsize_bits
from minijax.dispatch.jit import Jit
from minijax.higher.cond import Cond
from minijax.higher.scan import Scan
from minijax.ir.jaxpr import ClosedJaxpr, JaxprEqn, Literal, jaxprs_in_params
from minijax.primitives.conv import ConvGeneralDilated
from minijax.primitives.convert import ConvertElementType
from minijax.primitives.dot import DotGeneral
from minijax.primitives.families import SameShape
from minijax.primitives.moving import ReduceSum
from minijax.primitives.reduce import AxisReduction
from minijax.primitives.zeros import AddAny

_RUNS = 5


def flops_of(eqn: JaxprEqn) -> int | None:
    """The arithmetic operations of an equation: those of its body, once a step of a scan, and of the dearest branch.

    None for operations that the rules do not know. A body that runs an unknown number of times is counted once.
    """
    primitive, params = eqn.primitive, eqn.params
    bodies = list(jaxprs_in_params(params))
    if bodies:
        return _of_bodies(eqn, [sum(flops_of(e) or 0 for e in body.eqns) for body in bodies])
    if primitive.moves_data:
        return 0
    out = math.prod(eqn.outvars[0].aval.shape) if eqn.outvars else 0
    shapes = [a.aval.shape for a in eqn.invars]
    if isinstance(primitive, DotGeneral):
        (contracted, _), _ = params["dimension_numbers"]
        return 2 * out * math.prod(shapes[0][i] for i in contracted)
    if isinstance(primitive, ConvGeneralDilated):
        kernel = params["dimension_numbers"].rhs_spec
        return 2 * out * (math.prod(shapes[1]) // max(shapes[1][kernel[0]], 1))
    if isinstance(primitive, AxisReduction | ReduceSum):
        return math.prod(shapes[0]) if shapes else 0
    return out if isinstance(primitive, SameShape | AddAny | ConvertElementType) else None


def _of_bodies(eqn: JaxprEqn, costs: list[int]) -> int:
    if isinstance(eqn.primitive, Cond):
        return max(costs)
    return sum(costs) * (eqn.params["length"] if isinstance(eqn.primitive, Scan) else 1)


def bytes_of(eqn: JaxprEqn) -> int:
    """The bytes of an equation's operands and results, as if it ran alone."""
    atoms = [a for a in eqn.invars if not isinstance(a, Literal)]
    return sum(nbytes(a.aval) for a in [*dict.fromkeys(atoms), *eqn.outvars])


def nbytes(aval: Any) -> int:
    """The bytes of a value; 0 for a type that has none of its own."""
    dtype = getattr(aval, "dtype", None)
    if dtype is None:
        return 0
    return int(math.prod(aval.shape)) * itemsize_bits(getattr(dtype, "physical_dtype", dtype)) // 8


def times_of(closed: ClosedJaxpr, values: Sequence[Any]) -> Iterator[tuple[JaxprEqn, float]]:
    """Yields the seconds of each equation, compiled and run alone, the best of five; also in jitted calls."""
    env = dict(zip(closed.jaxpr.constvars, closed.consts, strict=True))
    env.update(zip(closed.jaxpr.invars, values, strict=True))
    for eqn in closed.jaxpr.eqns:
        operands = [a.val if isinstance(a, Literal) else env[a] for a in eqn.invars]
        run = jit(lambda *xs, eqn=eqn: eqn.primitive.bind_all(xs, eqn.params))
        results, best = block_until_ready(run(*operands)), math.inf
        for _ in range(_RUNS):
            start = time.perf_counter()
            block_until_ready(run(*operands))
            best = min(best, time.perf_counter() - start)
        yield eqn, best
        if isinstance(eqn.primitive, Jit):
            yield from times_of(eqn.params["jaxpr"], operands)
        env.update(zip(eqn.outvars, results, strict=True))
