"""jax.experimental.roofline: FLOPs, memory traffic and communication of a program, counted on its jaxpr.

Only operations with a rule are counted, the bodies of loops once. Peak memory is that of the live variables.
Devices are assumed to be linked as a torus with the sizes of the mesh.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import prod
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
from minijax.partition.meshes import PartitionSpec as P
from minijax.partition.shardings import NamedSharding
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
    """Holds the context of an equation that a rule is called with.

    Example:
        >>> from minijax.experimental.roofline import RooflineResult, register_roofline, roofline
        >>> from minijax.extend.core import Primitive
        >>> shown_p = Primitive('shown')
        >>> _ = shown_p.def_abstract_eval(lambda x: x)
        >>> @register_roofline(shown_p)
        ... def _(ctx, x):
        ...     print(ctx.primitive, ctx.avals_in)
        ...     return RooflineResult()
        >>> _ = roofline(shown_p.bind)(jnp.ones(3))
        shown [ShapedArray(float32[3])]
    """

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
    """Registers, as a decorator, the rule of a primitive: (context, *shapes, **params) -> RooflineResult.

    Example:
        >>> from minijax.experimental.roofline import RooflineResult, register_roofline, roofline
        >>> from minijax.extend.core import Primitive
        >>> twice_p = Primitive('twice')
        >>> _ = twice_p.def_abstract_eval(lambda x: x)
        >>> @register_roofline(twice_p)
        ... def _(ctx, x):
        ...     return RooflineResult(flops=x.size)
        >>> roofline(twice_p.bind)(jnp.ones(3))[1].flops
        3
    """
    return lambda rule: _rules.setdefault(prim, rule)


def register_standard_roofline(prim: Primitive) -> None:
    """Registers a rule that counts nothing.

    Example:
        >>> from minijax.extend.core import Primitive
        >>> same_p = Primitive('same')
        >>> _ = same_p.def_abstract_eval(lambda x: x)
        >>> jax.experimental.roofline.register_standard_roofline(same_p)
        >>> jax.experimental.roofline.roofline(same_p.bind)(jnp.ones(3))[1].unfused_flops
        0
    """
    _rules[prim] = lambda ctx, *shapes, **params: RooflineResult.zeros()


def rule_of(names: str) -> Callable[[Rule], Rule]:
    """Registers, as a decorator, the rule of the primitives with these names."""

    def register(rule: Rule) -> Rule:
        _BY_NAME.update(dict.fromkeys(names.split(), rule))
        return rule

    return register


def as_jaxpr(program: Jaxpr | ClosedJaxpr) -> Jaxpr:
    return program.jaxpr if isinstance(program, ClosedJaxpr) else program


def _bytes(atoms: Iterable[Any]) -> int:
    return RooflineShape.total_bytes(a.aval for a in atoms)


def count(jaxpr: Jaxpr, mesh: Any, *pins: bool) -> RooflineResult:
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
        return count(as_jaxpr(inner), eqn.params.get("mesh", mesh), *pins)
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
        result = count(jaxpr, mesh, pin_lhs_in_vmem, pin_rhs_in_vmem)
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
        return out, forward, count(jaxprs[0], mesh, pin_lhs_in_vmem, pin_rhs_in_vmem)

    return counted
