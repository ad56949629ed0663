"""Estimates the cost of a function from its jaxpr."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from minijax.api.jit import make_jaxpr
from minijax.base.dtypes import itemsize_bits
from minijax.dispatch.jit import Jit
from minijax.ir.jaxpr import Jaxpr, JaxprEqn
from minijax.kernels.blocks import CostEstimate

_ONE_FLOP = frozenset("add sub mul div max min neg floor ceil round and or xor not".split())
_TRANSCENDENTAL = frozenset("exp log sin cos tan tanh sqrt logistic asin acos atan sinh cosh".split())


def estimate_cost(fun: Callable, *args: Any, **kwargs: Any) -> CostEstimate:
    """Returns the cost of a function, for `cost_estimate` of `pl.pallas_call`.

    Operations, products and transcendental functions of the function and of the jitted functions that it calls are
    counted; loops and branches are not. Bytes are those of arguments and results.

    Args:
      fun: function of arrays.
      *args: positional arguments, arrays or `jax.ShapeDtypeStruct`s.
      **kwargs: keyword arguments.

    Returns:
      A `pl.CostEstimate`.

    Example:
        >>> x = jax.ShapeDtypeStruct((8, 16), jnp.float32)
        >>> pl.estimate_cost(lambda x: x * jnp.exp(x), x)
        CostEstimate(flops=128, transcendentals=128, bytes_accessed=1024, remote_bytes_transferred=0)
    """
    jaxpr = make_jaxpr(fun)(*args, **kwargs).jaxpr
    flops, transcendentals = _count(jaxpr)
    moved = sum(a.size * itemsize_bits(a.dtype) // 8 for a in (*jaxpr.in_avals, *jaxpr.out_avals))
    return CostEstimate(flops, transcendentals, moved)


def _count(jaxpr: Jaxpr) -> tuple[int, int]:
    """The numbers of operations on floats and of transcendental functions."""
    counts = [_count_eqn(eqn) for eqn in jaxpr.eqns]
    return sum(flops for flops, _ in counts), sum(t for _, t in counts)


def _count_eqn(eqn: JaxprEqn) -> tuple[int, int]:
    name = eqn.primitive.name
    if isinstance(eqn.primitive, Jit):
        return _count(eqn.params["jaxpr"].jaxpr)
    if not eqn.outvars:
        return 0, 0
    size = eqn.outvars[0].aval.size
    if name in _ONE_FLOP:
        return size, 0
    if name in _TRANSCENDENTAL:
        return 0, size
    if name == "integer_pow":  # squarings, and a product for each bit that is set
        exponent = abs(eqn.params["y"])
        return size * (exponent.bit_length() - 1 + exponent.bit_count() if exponent > 1 else 0), 0
    if name == "dot_general":
        (contracted, _), _ = eqn.params["dimension_numbers"]
        return 2 * size * prod(eqn.invars[0].aval.shape[axis] for axis in contracted), 0
    return 0, 0
