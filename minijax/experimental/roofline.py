"""jax.experimental.roofline: FLOPs, memory traffic and communication of a program, counted on its jaxpr.

Only operations with a rule are counted, the bodies of loops once. Peak memory is that of the live variables.
Devices are assumed to be linked as a torus with the sizes of the mesh.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import zip_longest
from math import gcd, prod
from typing import Any

import numpy as np

from minijax.api.autodiff import vjp as pullback_of
from minijax.api.jit import make_jaxpr
from minijax.api.shapes import ShapeDtypeStruct
from minijax.api.shard_map import shard_map
from minijax.base import dtypes, tree
from minijax.base.faces import listing
from minijax.higher.shard_map import shard_map_p
from minijax.ir.context import NameStack
from minijax.ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal
from minijax.ir.primitive import Primitive
from minijax.partition.meshes import PartitionSpec as P, axes_of
from minijax.partition.shardings import NamedSharding
from minijax.primitives.gather_dims import GatherScatterMode
from minijax.transforms.prune import prune_jaxpr

__all__, __dir__ = listing(
    __name__,
    """
    RooflineResult RooflineRuleContext RooflineShape register_roofline register_standard_roofline roofline
    roofline_and_grad
""",
)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class RooflineShape:
    """Describes a value: its shape and dtype.

    Example:
        >>> jax.experimental.roofline.RooflineShape(shape=(2, 3), dtype=jnp.dtype("float32")).bytes
        24
    """

    shape: tuple[int, ...]
    dtype: Any

    @classmethod
    def from_aval(cls, aval: Any) -> "RooflineShape":
        return cls(shape=tuple(getattr(aval, "shape", ())), dtype=getattr(aval, "dtype", np.dtype(np.bool_)))

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def bytes(self) -> int:
        return self.size * self.dtype.itemsize

    @classmethod
    def total_bytes(cls, avals: Iterable[Any]) -> int:
        return sum(cls.from_aval(a).bytes for a in avals)


@dataclass(frozen=True, kw_only=True)
class RooflineResult:
    """Counts FLOPs, bytes sent and hops along each mesh axis, bytes read and written in memory, and peak bytes in use.

    `unfused_*` count every operation; the others only operations that are not fused with their neighbours.

    Example:
        >>> from minijax.experimental.roofline import RooflineResult
        >>> (RooflineResult(flops=3) + RooflineResult(flops=4, hbm_bytes=8)).flops
        7
    """

    flops: int = 0
    unfused_flops: int = 0
    ici_bytes: dict[str, int] = field(default_factory=dict)
    ici_latency: dict[str, int] = field(default_factory=dict)
    hbm_bytes: int = 0
    peak_hbm_bytes: int = 0
    unfused_hbm_bytes: int = 0

    @classmethod
    def zeros(cls) -> "RooflineResult":
        return cls()

    def __add__(self, other: "RooflineResult") -> "RooflineResult":
        sums: dict[str, Any] = {name: getattr(self, name) + getattr(other, name) for name in _SUMMED}
        for name in _BY_AXIS:
            mine, theirs = getattr(self, name), getattr(other, name)
            sums[name] = {axis: mine.get(axis, 0) + theirs.get(axis, 0) for axis in (*mine, *theirs)}
        return RooflineResult(**sums, peak_hbm_bytes=max(self.peak_hbm_bytes, other.peak_hbm_bytes))

    def __mul__(self, times: int) -> "RooflineResult":
        scaled = {name: getattr(self, name) * times for name in (*_SUMMED, "peak_hbm_bytes")}
        by_axis = {name: {axis: n * times for axis, n in getattr(self, name).items()} for name in _BY_AXIS}
        return RooflineResult(**scaled, **by_axis)

    __rmul__ = __mul__


_SUMMED, _BY_AXIS = ("flops", "unfused_flops", "hbm_bytes", "unfused_hbm_bytes"), ("ici_bytes", "ici_latency")


@dataclass(frozen=True, kw_only=True)
class RooflineRuleContext:
    """Holds the context of an equation that a rule is called with."""

    name_stack: NameStack
    primitive: Primitive
    avals_in: Sequence[Any]
    avals_out: Sequence[Any]
    jaxpr_eqn_ctx: Any
    mesh: Any
    pin_lhs_in_vmem: bool
    pin_rhs_in_vmem: bool

    @property
    def moved(self) -> int:
        """The bytes of all operands and results."""
        return RooflineShape.total_bytes((*self.avals_in, *self.avals_out))


Rule = Callable[..., RooflineResult]
_rules: dict[Primitive, Rule] = {}
_BY_NAME: dict[str, Rule] = {}  # by the names of minijax's primitives


def register_roofline(prim: Primitive) -> Callable[[Rule], Rule]:
    """Registers, as a decorator, the rule of a primitive: (context, *shapes, **params) -> RooflineResult."""
    return lambda rule: _rules.setdefault(prim, rule)


def register_standard_roofline(prim: Primitive) -> None:
    """Registers a rule that counts nothing."""
    _rules[prim] = lambda ctx, *shapes, **params: RooflineResult.zeros()


# ---- rules ------------------------------------------------------------------------------------------


def _rule(names: str) -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        _BY_NAME.update(dict.fromkeys(names.split(), rule))
        return rule

    return register


def _unfused(flops: int, moved: int) -> RooflineResult:
    return RooflineResult(unfused_flops=int(flops), unfused_hbm_bytes=int(moved))


@_rule(
    "abs acos asin atan bessel_i0e bessel_i1e cbrt ceil conj cos cosh digamma erf erf_inv erfc exp expm1 floor imag "
    "integer_pow is_finite lgamma log log1p logistic neg not real round rsqrt sign sin sinh sqrt square tan "
    "add and div eq ge gt le lt max min mul ne or rem sub xor"
)
def _elementwise(ctx, *shapes, **params):
    columns = zip_longest(*[reversed(s.shape) for s in shapes], fillvalue=1)
    return _unfused(prod(map(max, columns)) if len(shapes) > 1 else shapes[0].size, ctx.moved)


@_rule("cummax cummin cumprod cumsum cumlogsumexp")
def _cumulative(ctx, x, *, axis, **params):
    return _unfused(x.shape[axis] * (2 if ctx.primitive.name == "cumlogsumexp" else 1), ctx.moved)


@_rule("reduce_sum")
def _reduce_sum(ctx, x, **params):
    return _unfused(x.size - RooflineShape.from_aval(ctx.avals_out[0]).size, ctx.moved)


@_rule("select_n")
def _select_n(ctx, which, *cases, **params):
    out = RooflineShape.from_aval(ctx.avals_out[0])
    return _unfused(out.size, which.bytes + out.bytes)


@_rule("pure_callback io_callback debug_callback")
def _callback(ctx, *shapes, **params):
    return _unfused(0, ctx.moved)


@_rule("gather")
def _gather(ctx, x, indices, *, mode, **params):
    out = RooflineShape.from_aval(ctx.avals_out[0])
    checks = 4 * indices.size + out.size if mode == GatherScatterMode.FILL_OR_DROP else 0
    return _unfused(checks, 2 * out.bytes + indices.bytes)


@_rule("scatter scatter-add scatter-max scatter-min scatter-mul scatter-sub")
def _scatter(ctx, x, indices, updates, *, update_jaxpr, **params):
    once = 0 if update_jaxpr is None else _count(_as_jaxpr(update_jaxpr), None, False, False).unfused_flops
    return _unfused(once * updates.size, 3 * updates.bytes + indices.bytes)


@_rule("dot_general")
def _dot_general(ctx, lhs, rhs, *, dimension_numbers, **params):
    contracted, out = prod(lhs.shape[i] for i in dimension_numbers[0][0]), RooflineShape.from_aval(ctx.avals_out[0])
    flops = 2 * contracted * out.size
    # The result is in the same memory as the left operand.
    moved = (lhs.bytes + out.bytes) * (not ctx.pin_lhs_in_vmem) + rhs.bytes * (not ctx.pin_rhs_in_vmem)
    return RooflineResult(flops=flops, hbm_bytes=moved, unfused_flops=flops, unfused_hbm_bytes=moved)


@_rule("conv_general_dilated")
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


@_rule("all_gather")
def _all_gather(ctx, x, *, axis_name, **params):
    return _over_links(ctx, axis_name, partial(_ring, x.bytes))


@_rule("reduce_scatter")
def _reduce_scatter(ctx, x, *, axis_name, **params):
    return _over_links(ctx, axis_name, lambda sizes: _ring(x.bytes / prod(sizes), sizes))


@_rule("psum_invariant")
def _psum(ctx, *shapes, axes, **params):
    return _over_links(ctx, axes, lambda sizes: _ring(sum(s.bytes for s in shapes) / prod(sizes), sizes, 2))


@_rule("pmax pmin")
def _scalar_collective(ctx, *shapes, axes, **params):
    return _over_links(ctx, axes, partial(_ring, sum(s.dtype.itemsize for s in shapes)))


@_rule("all_to_all")
def _all_to_all(ctx, x, *, axis_name, **params):
    def count(sizes):
        narrow = min(sizes)
        links = narrow ** (len(sizes) - 1) * (1 if narrow <= 2 else 2)  # that connect the two halves
        return int(x.bytes * prod(sizes) / 2 / links), sum(n // 2 for n in sizes)

    return _over_links(ctx, axis_name, count)


@_rule("ppermute")
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


# ---- programs ---------------------------------------------------------------------------------------


def _as_jaxpr(program: Jaxpr | ClosedJaxpr) -> Jaxpr:
    return program.jaxpr if isinstance(program, ClosedJaxpr) else program


def _bytes(atoms: Iterable[Any]) -> int:
    return RooflineShape.total_bytes(a.aval for a in atoms)


def _count(jaxpr: Jaxpr, mesh: Any, *pins: bool) -> RooflineResult:
    """The sum over the equations, and the peak memory of live variables."""
    last = {a: i for i, eqn in enumerate(jaxpr.eqns) for a in eqn.invars if type(a) is not Literal}
    kept = {a for a in jaxpr.outvars if type(a) is not Literal}
    live = peak = _bytes(v for v in (*jaxpr.constvars, *jaxpr.invars) if v in last or v in kept)
    total = RooflineResult.zeros()
    for i, eqn in enumerate(jaxpr.eqns):
        total += _count_eqn(eqn, mesh, *pins)
        # As in jax, a value that its last equation reads twice is freed twice.
        freed = [a for a in eqn.invars if type(a) is not Literal and last[a] == i and a not in kept]
        live += _bytes(v for v in eqn.outvars if v in last or v in kept) - _bytes(freed)
        peak = max(peak, live)
    return total + RooflineResult(peak_hbm_bytes=peak)


def _count_eqn(eqn: JaxprEqn, mesh: Any, *pins: bool) -> RooflineResult:
    rule = _rules.get(eqn.primitive) or _BY_NAME.get(eqn.primitive.name)
    inner = eqn.params.get("jaxpr", eqn.params.get("call_jaxpr"))
    if rule is None and isinstance(inner, Jaxpr | ClosedJaxpr):
        return _count(_as_jaxpr(inner), eqn.params.get("mesh", mesh), *pins)
    if rule is None:
        if type(eqn.primitive) is Primitive:
            _log.warning("No roofline rule for %s, skipping it", eqn.primitive)
        return RooflineResult.zeros()
    avals = [a.aval for a in eqn.invars], [v.aval for v in eqn.outvars]
    ctx = RooflineRuleContext(
        name_stack=NameStack(eqn.ctx.name_stack), primitive=eqn.primitive, avals_in=avals[0], avals_out=avals[1],
        jaxpr_eqn_ctx=eqn.ctx, mesh=mesh, pin_lhs_in_vmem=pins[0], pin_rhs_in_vmem=pins[1],
    )  # fmt: skip
    return rule(ctx, *map(RooflineShape.from_aval, avals[0]), **eqn.params)


def _as_structs(shapes: Any, mesh: Any, specs: Any) -> Any:
    if mesh is None:
        return tree.tree_map(lambda x: ShapeDtypeStruct(x.shape, x.dtype, weak_type=x.weak_type), shapes)
    leaves, treedef = tree.flatten(shapes)
    specs = tree.flatten_axes("roofline out_specs", treedef, specs)
    shardings = [NamedSharding(mesh, s) for s in specs]
    rows = zip(leaves, shardings, strict=True)
    return treedef.unflatten([ShapeDtypeStruct(x.shape, x.dtype, sharding=s) for x, s in rows])


def _program(function: Callable, args: Sequence, kwargs: dict, pruned: bool = True) -> tuple[Jaxpr, Any]:
    """The jaxpr and the results' shapes. Of a `shard_map` the body; dead code is eliminated if `pruned`."""
    closed, shapes = make_jaxpr(function, return_shape=True)(*args, **kwargs)
    mapped = [eqn.params["jaxpr"] for eqn in closed.eqns if eqn.primitive is shard_map_p]
    jaxpr = mapped[0] if mapped else closed.jaxpr
    return prune_jaxpr(jaxpr, (True,) * len(jaxpr.outvars), True)[0] if pruned else jaxpr, shapes


def roofline(
    f: Callable,
    mesh: Any = None,
    in_specs: Any = None,
    out_specs: Any = None,
    *,
    pin_lhs_in_vmem: bool = False,
    pin_rhs_in_vmem: bool = False,
    vjp: bool = False,
    print_jaxpr: bool = False,
) -> Callable[..., tuple[Any, RooflineResult]]:
    """Returns a function (arrays or ShapeDtypeStructs) -> (results of `f` as ShapeDtypeStructs, RooflineResult).

    With a `mesh`, `f` is the body of a `shard_map`, and the counts are per device. With `vjp`, `f` is followed by
    its pullback, for cotangents of dtype bfloat16.

    Example:
        >>> shapes, result = jax.experimental.roofline.roofline(jnp.dot)(jnp.ones((4, 8)), jnp.ones((8, 2)))
        >>> result.flops
        128
    """
    specs = (P() if in_specs is None else in_specs), (P() if out_specs is None else out_specs)

    def counted(*args, **kwargs):
        function = f
        if mesh is not None:
            function = shard_map(f, mesh=mesh, in_specs=specs[0], out_specs=specs[1])
        both = partial(_backwards, function) if vjp else function
        jaxpr, shapes = _program(both, args, kwargs, not vjp)
        if print_jaxpr:
            print(jaxpr)
        result = _count(jaxpr, mesh, pin_lhs_in_vmem, pin_rhs_in_vmem)
        return _as_structs(shapes, mesh, specs[0] if vjp else specs[1]), result

    return counted


def _backwards(function: Callable, *args: Any, **kwargs: Any) -> tuple:
    out, pullback = pullback_of(partial(function, **kwargs), *args)
    return pullback(tree.tree_map(_bfloat16_ones, out))


def _bfloat16_ones(x: Any) -> Any:
    return np.ones(x.shape, dtypes.BY_NAME["bfloat16"])


def roofline_and_grad(
    f: Callable,
    mesh: Any,
    in_specs: Any,
    out_specs: Any,
    *,
    pin_lhs_in_vmem: bool = False,
    pin_rhs_in_vmem: bool = False,
    print_jaxpr: bool = False,
) -> Callable[..., tuple[Any, RooflineResult, RooflineResult]]:
    """Returns `roofline` with a third result for the pullback, with residuals and cotangents of dtype bfloat16.

    Example:
        >>> f = jax.experimental.roofline.roofline_and_grad(jnp.sin, jax.make_mesh((1,), ("i",)), jax.P(), jax.P())
        >>> _, forward, backward = f(jax.ShapeDtypeStruct((4,), jnp.float32))
        >>> forward.unfused_flops, backward.unfused_flops
        (4, 4)
    """
    pins = dict(pin_lhs_in_vmem=pin_lhs_in_vmem, pin_rhs_in_vmem=pin_rhs_in_vmem)

    def counted(*args):
        out, forward = roofline(f, mesh, in_specs, out_specs, print_jaxpr=print_jaxpr, **pins)(*args)
        mapped, jaxprs = shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs), []

        def backwards(*halves):
            primal, pullback = pullback_of(mapped, *halves)
            jaxprs.append(_program(pullback, [tree.tree_map(_bfloat16_ones, primal)], {})[0])
            return primal

        make_jaxpr(backwards)(*tree.tree_map(_bfloat16_ones, args))
        return out, forward, _count(jaxprs[0], mesh, pin_lhs_in_vmem, pin_rhs_in_vmem)

    return counted
