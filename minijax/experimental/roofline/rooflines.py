"""jax.experimental.roofline.rooflines: the rules of primitives, which count their work on shapes."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import zip_longest
from math import gcd, prod
from typing import Any

import numpy as np

from minijax.base.faces import listing
from minijax.experimental.roofline.roofline import (
    RooflineResult,
    RooflineRuleContext,
    RooflineShape,
    as_jaxpr,
    count,
    rule_of,
)
from minijax.partition.meshes import axes_of
from minijax.primitives.gather_dims import GatherScatterMode

__all__, __dir__ = listing(__name__, "")


def _unfused(flops: int, moved: int) -> RooflineResult:
    return RooflineResult(unfused_flops=int(flops), unfused_hbm_bytes=int(moved))


@rule_of(
    "abs acos asin atan bessel_i0e bessel_i1e cbrt ceil conj cos cosh digamma erf erf_inv erfc exp expm1 floor imag "
    "integer_pow is_finite lgamma log log1p logistic neg not real round rsqrt sign sin sinh sqrt square tan "
    "add and div eq ge gt le lt max min mul ne or rem sub xor"
)
def _elementwise(ctx, *shapes, **params):
    columns = zip_longest(*[reversed(s.shape) for s in shapes], fillvalue=1)
    return _unfused(prod(map(max, columns)) if len(shapes) > 1 else shapes[0].size, ctx.moved)


@rule_of("cummax cummin cumprod cumsum cumlogsumexp")
def _cumulative(ctx, x, *, axis, **params):
    return _unfused(x.shape[axis] * (2 if ctx.primitive.name == "cumlogsumexp" else 1), ctx.moved)


@rule_of("reduce_sum")
def _reduce_sum(ctx, x, **params):
    return _unfused(x.size - RooflineShape.from_aval(ctx.avals_out[0]).size, ctx.moved)


@rule_of("select_n")
def _select_n(ctx, which, *cases, **params):
    out = RooflineShape.from_aval(ctx.avals_out[0])
    return _unfused(out.size, which.bytes + out.bytes)


@rule_of("pure_callback io_callback debug_callback")
def _callback(ctx, *shapes, **params):
    return _unfused(0, ctx.moved)


@rule_of("gather")
def _gather(ctx, x, indices, *, mode, **params):
    out = RooflineShape.from_aval(ctx.avals_out[0])
    checks = 4 * indices.size + out.size if mode == GatherScatterMode.FILL_OR_DROP else 0
    return _unfused(checks, 2 * out.bytes + indices.bytes)


@rule_of("scatter scatter-add scatter-max scatter-min scatter-mul scatter-sub")
def _scatter(ctx, x, indices, updates, *, update_jaxpr, **params):
    once = 0 if update_jaxpr is None else count(as_jaxpr(update_jaxpr), None, False, False).unfused_flops
    return _unfused(once * updates.size, 3 * updates.bytes + indices.bytes)


@rule_of("dot_general")
def _dot_general(ctx, lhs, rhs, *, dimension_numbers, **params):
    contracted, out = prod(lhs.shape[i] for i in dimension_numbers[0][0]), RooflineShape.from_aval(ctx.avals_out[0])
    flops = 2 * contracted * out.size
    # The result is in the same memory as the left operand.
    moved = (lhs.bytes + out.bytes) * (not ctx.pin_lhs_in_vmem) + rhs.bytes * (not ctx.pin_rhs_in_vmem)
    return RooflineResult(flops=flops, hbm_bytes=moved, unfused_flops=flops, unfused_hbm_bytes=moved)


@rule_of("conv_general_dilated")
def _conv(ctx, lhs, rhs, *, dimension_numbers, batch_group_count, **params):
    numbers, out = dimension_numbers, RooflineShape.from_aval(ctx.avals_out[0])
    rows = zip(numbers.lhs_spec[2:], numbers.rhs_spec[2:], numbers.out_spec[2:], strict=True)
    how = zip(*(params[name] for name in ("window_strides", "padding", "lhs_dilation", "rhs_dilation")), strict=True)
    pairs = [_overlaps(lhs.shape[i], rhs.shape[k], out.shape[o], *w) for (i, k, o), w in zip(rows, how, strict=True)]
    features = rhs.shape[numbers.rhs_spec[0]] * rhs.shape[numbers.rhs_spec[1]]
    return _unfused(2 * prod(pairs) * features * lhs.shape[numbers.lhs_spec[0]] // batch_group_count, ctx.moved)


def _overlaps(size: int, taps: int, outs: int, stride: int, padding: Sequence[int], dilation: int, step: int) -> int:
    """The number of pairs of an output and a kernel position that read an input element, along one axis."""
    start = np.arange(outs, dtype=np.int64) * stride - padding[0]
    # If start + step * k is a multiple of `dilation` for any k, it is for each k equal to `first` modulo `period`.
    common = gcd(step, dilation)
    period = dilation // common
    first = (-start // common) % period * pow(step // common, -1, period) % period
    low = np.maximum(-(start // step), 0)
    high = np.minimum(((size - 1) * dilation - start) // step, taps - 1)
    count = (high - first) // period - (low - 1 - first) // period
    return int(np.where(start % common == 0, np.maximum(count, 0), 0).sum())


def _over_links(ctx: RooflineRuleContext, names: Any, count: Callable[[list[int]], tuple[int, int]]) -> RooflineResult:
    """`count(axis sizes)` as the bytes and hops of each of these axes; zero if there is one device along them."""
    axes = axes_of(names)
    sizes = [ctx.mesh.shape[n] for n in axes]
    sent, hops = count(sizes) if prod(sizes) > 1 else (0, 0)
    return RooflineResult(ici_bytes=dict.fromkeys(axes, sent), ici_latency=dict.fromkeys(axes, hops))


def _ring(part: float, sizes: list[int], rounds: int = 1) -> tuple[int, int]:
    """The bytes and hops of simultaneous rings along all axes; `part` is the bytes that a device holds."""
    return rounds * int(part / len(sizes)) * (prod(sizes) - 1), rounds * len(sizes) * max(sizes)


@rule_of("all_gather")
def _all_gather(ctx, x, *, axis_name, **params):
    return _over_links(ctx, axis_name, partial(_ring, x.bytes))


@rule_of("reduce_scatter")
def _reduce_scatter(ctx, x, *, axis_name, **params):
    return _over_links(ctx, axis_name, lambda sizes: _ring(x.bytes / prod(sizes), sizes))


@rule_of("psum_invariant")
def _psum(ctx, *shapes, axes, **params):
    return _over_links(ctx, axes, lambda sizes: _ring(sum(s.bytes for s in shapes) / prod(sizes), sizes, 2))


@rule_of("pmax pmin")
def _scalar_collective(ctx, *shapes, axes, **params):
    return _over_links(ctx, axes, partial(_ring, sum(s.dtype.itemsize for s in shapes)))


@rule_of("all_to_all")
def _all_to_all(ctx, x, *, axis_name, **params):
    def count(sizes):
        narrow = min(sizes)
        links = narrow ** (len(sizes) - 1) * (1 if narrow <= 2 else 2)  # that connect the two halves
        return int(x.bytes * prod(sizes) / 2 / links), sum(n // 2 for n in sizes)

    return _over_links(ctx, axis_name, count)


@rule_of("ppermute")
def _ppermute(ctx, x, *, axis_name, perm, **params):
    def count(sizes):
        routes = [list(_route(*pair, sizes)) for pair in perm]
        used = Counter(link for route in routes for link in route)
        return x.bytes * max(used.values(), default=0), max(map(len, routes), default=0)

    return _over_links(ctx, axis_name, count)


def _route(source: int, target: int, sizes: list[int]) -> Iterable[tuple]:
    """The links from one device to another: along one axis after the other, in the shorter direction."""
    at, to = (list(map(int, np.unravel_index(i, sizes))) for i in (source, target))
    for axis, size in enumerate(sizes):
        forward = (to[axis] - at[axis]) % size
        step = 1 if forward <= size - forward else -1
        while at[axis] != to[axis]:
            before, at[axis] = tuple(at), (at[axis] + step) % size
            yield axis, *sorted((before, tuple(at)))
