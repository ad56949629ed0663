"""Parts of the attention kernels for TPUs: scores, sums over blocks of keys, and derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import minijax.numpy as jnp
from minijax import lax
from minijax.kernels.memory import MemoryRef, TpuMemorySpace

MASKED = -0.7 * float(jnp.finfo(jnp.float32).max)  # a score of what is not seen: no sum of two overflows
_ROWS, _TURNED = (((1,), (1,)), ((), ())), (((0,), (0,)), ((), ()))
_PLAIN = (((1,), (0,)), ((), ()))


def dot(x: Any, y: Any, axes: Any = _PLAIN) -> Any:
    """The product of two blocks, added up in float32."""
    return lax.dot_general(x, y, axes, preferred_element_type=jnp.float32)


class Scores(NamedTuple):
    """The scores of a block of queries and keys, and the factor of derivatives by them that a bound of scores needs."""

    values: Any
    factor: Any

    @classmethod
    def of(
        cls,
        q: Any,
        k: Any,
        scale: float = 1.0,
        bias: Any = None,
        seen: Any = None,
        mask_value: float = MASKED,
        cap: float | None = None,
    ) -> Scores:
        """The scores, `mask_value` for what is not seen."""
        values, factor = dot(q, k, _ROWS), None
        if bias is not None:
            values = values + bias.astype(jnp.float32)
        if scale != 1.0:
            values = values * jnp.float32(scale)
        if cap is not None:
            share = jnp.tanh(values / cap)
            values, factor = share * cap, 1 - share * share
        if seen is not None:
            values = jnp.where(seen, values, jnp.float32(mask_value))
        return cls(values, factor)

    def shares(self, do: Any, v: Any, lse: Any, delta: Any) -> tuple[Any, Any]:
        """The shares of keys in queries, and the derivatives by their scores."""
        shares = jnp.exp(self.values - lse)
        by_scores = shares * (dot(do, v, _ROWS) - delta)
        return shares, by_scores if self.factor is None else by_scores * self.factor


class Sums(NamedTuple):
    """References of the highest scores, the sums of powers and the sums of values of a block of queries."""

    highest: Any
    total: Any
    out: Any

    @classmethod
    def scratch(cls, rows: int, size: int) -> list[MemoryRef]:
        """The scratch that they are."""
        return [TpuMemorySpace.VMEM((rows, n), jnp.float32) for n in (1, 1, size)]

    def start(self, sink: Any = None) -> None:
        """Begins with nothing, or with a score of a key without a value."""
        self.highest[...] = jnp.full(self.highest.shape, MASKED if sink is None else sink, jnp.float32)
        self.total[...] = jnp.full(self.total.shape, 0.0 if sink is None else 1.0, jnp.float32)
        self.out[...] = jnp.zeros(self.out.shape, jnp.float32)

    def add(self, scores: Scores, v: Any) -> None:
        """Adds a block of keys."""
        last = self.highest[...]
        highest = jnp.maximum(last, jnp.max(scores.values, 1, keepdims=True))
        factor, powers = jnp.exp(last - highest), jnp.exp(scores.values - highest)
        self.highest[...] = highest
        self.total[...] = self.total[...] * factor + jnp.sum(powers, 1, keepdims=True)
        self.out[...] = self.out[...] * factor + dot(powers.astype(v.dtype), v)

    def finish(self, o_ref: Any, lse_ref: Any) -> None:
        """Writes the results, and the logarithms of the sums of powers if there is a reference for them."""
        total = self.total[...]
        total = jnp.where(total == 0.0, jnp.ones_like(total), total)
        o_ref[...] = (self.out[...] / total).astype(o_ref.dtype)
        if lse_ref is not None:
            lse_ref[...] = self.highest[...] + jnp.log(total)


def add_by_keys(
    scores: Scores, q: Any, v: Any, do: Any, stats: Sequence[Any], sums: tuple[Any, Any], scale: float
) -> None:
    """Adds to the derivatives by keys and values those of a block of queries."""
    shares, by_scores = scores.shares(do, v, *stats)
    dk_ref, dv_ref = sums
    dv_ref[...] += dot(shares.astype(do.dtype), do, _TURNED)
    dk_ref[...] += dot(by_scores.astype(q.dtype), q, _TURNED) * jnp.float32(scale)


def add_by_queries(scores: Scores, k: Any, v: Any, do: Any, stats: Sequence[Any], dq_ref: Any, scale: float) -> Any:
    """Adds to the derivatives by queries those of a block of keys; returns the derivatives by their scores."""
    _, by_scores = scores.shares(do, v, *stats)
    dq_ref[...] += dot(by_scores.astype(k.dtype), k) * jnp.float32(scale)
    return by_scores
