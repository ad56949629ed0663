"""`shard_map`: runs a jaxpr on the shards of the operands."""

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple, cast

from minijax.base import cache, config
from minijax.base.mask import Mask
from minijax.calls.bodied import Binder, Bodied, Residuals, Role, names_in
from minijax.calls.call import OpenCall, closed_of, forwarded, opened
from minijax.dispatch.operations import one_equation, run_closed
from minijax.dispatch.placement import ProgramOptions, requests
from minijax.hlo.emitter import jaxpr_body, ordered_in
from minijax.hlo.writer import Region
from minijax.ir import state
from minijax.ir.hitypes import HiPspec
from minijax.ir.jaxpr import ClosedJaxpr, DebugInfo, Jaxpr
from minijax.ir.primitive import cotangents, is_undefined_primal
from minijax.ir.refs import AbstractRef
from minijax.ir.trace import close_over, eval_jaxpr, trace_to_jaxpr
from minijax.ir.types import NOT_MANUAL, ManualAxisType, ShapedArray, Zero, token_type, typeof, varying_axes
from minijax.partition.explicit import batched_spec, count_of, joined_entry, restrict, sharding_in_type, typed_sharding
from minijax.partition.meshes import AbstractMesh, AxisType, Mesh, P, axes_of, context_mesh, use_abstract_mesh
from minijax.partition.shardings import NamedSharding
from minijax.primitives.collective import psum_p
from minijax.primitives.elementwise import div
from minijax.primitives.families import scalar_like
from minijax.primitives.moving import expand_dims
from minijax.primitives.structural import squeeze
from minijax.primitives.varying import ManualAxes
from minijax.primitives.zeros import nonzero_mask
from minijax.run.arrays.array import ArrayImpl
from minijax.transforms.batch import batch_jaxpr_axes
from minijax.transforms.discharge import DischargeableCall
from minijax.transforms.lower_types import flat, lower_hi_jaxpr, lower_values, raise_values
from minijax.transforms.partial_eval import permute_jaxpr
from minijax.transforms.transpose import transpose_jaxpr


class ManualRegion(NamedTuple):
    """The mesh of a body, the axes of it that are manual there, and whether varying axes are checked."""

    mesh: Any
    axes: frozenset
    check_vma: bool

    @property
    def names(self) -> tuple:
        """The axes in the order of the mesh."""
        return tuple([n for n in self.mesh.axis_names if n in self.axes])

    @property
    def inner_mesh(self) -> AbstractMesh:
        """The context mesh of bodies."""
        return _with_manual(self.mesh.abstract_mesh, self.names)

    @property
    def own_names(self) -> list:
        """The axes without those over which `vmap` shards values: `vmap` itself adds these to specs."""
        mapped = {n for *_, spmd, _ in state.thread.axes for n in axes_of(spmd)}
        return [n for n in self.names if n not in mapped]

    def rest(self, spec: P) -> tuple:
        """The axes that a spec does not name."""
        return tuple([n for n in self.own_names if n not in spec.mesh_axes])

    def local_aval(self, aval: Any, spec: P) -> Any:
        """The type of a shard of a value."""
        if type(aval) is AbstractRef:
            return AbstractRef(self.local_aval(aval.inner_aval, spec))
        if aval.is_high:
            return aval.shard(self.mesh, self.axes, self.check_vma, spec)
        sharding = None
        if aval.has_mesh:
            sharding = typed_sharding(self.inner_mesh, restrict(aval.entries, self.inner_mesh.explicit_axes))
        counts = self._shard_counts(aval, spec)
        local = aval.update(shape=tuple([n // k for n, k in zip(aval.shape, counts, strict=True)]), sharding=sharding)
        kind = NOT_MANUAL
        if self.check_vma:
            own = varying_names(spec, self.mesh), spec.unreduced, spec.reduced
            kind = ManualAxisType.of(a | b for a, b in zip(aval.manual_axis_type.sets, own, strict=True))
        return local.update(manual_axis_type=kind)

    def global_aval(self, aval: Any, spec: P) -> ShapedArray:
        """The global type of a value with this per-device type."""
        if aval.is_high:
            return aval.unshard(self.mesh, self.check_vma, spec)
        sharding = sharding_in_type(NamedSharding(self.mesh, self.global_spec(aval, spec)), aval.ndim)
        counts = self._shard_counts(aval, spec)
        shape = tuple([n * k for n, k in zip(aval.shape, counts, strict=True)])
        kind = ManualAxisType.of(axes - self.axes for axes in aval.manual_axis_type.sets)
        return aval.update(shape=shape, sharding=sharding).update(manual_axis_type=kind)

    def _shard_counts(self, aval: ShapedArray, spec: P) -> list[int]:
        """The number of shards along each array axis."""
        return [count_of(self.mesh, entry) for entry in spec.padded(aval.ndim)]

    def global_spec(self, aval: ShapedArray, spec: P) -> P:
        """The global spec of a value with this per-device type: it includes the axes that are not manual."""
        if not aval.has_mesh:
            return spec
        rows = zip(spec.padded(aval.ndim), aval.entries, strict=True)
        return spec.update(partitions=[joined_entry(manual, entry) for manual, entry in rows])

    def residual_spec(self, aval: Any) -> P:
        """The spec of a residual: its first axis is sharded over the mesh axes over which it may vary."""
        if aval.is_high:
            return aval.nospec(self.mesh, self.check_vma, self.names)
        varying, unreduced, reduced = aval.manual_axis_type.sets
        names = tuple([n for n in self.own_names if n in varying or not self.check_vma])
        return P(*[names] if names else (), unreduced=unreduced & self.axes, reduced=reduced & self.axes)


class inside:
    """The thread state in which a body is traced and transformed."""

    __slots__ = ("_axes", "_mesh")

    def __init__(self, region: ManualRegion):
        sizes, names = region.mesh.shape, region.names
        outer = [n for n in region.mesh.axis_names if n in state.thread.manual or n in names]
        self._axes = state.manual_axes([(n, sizes[n]) for n in names], ManualAxes(outer) if region.check_vma else ())
        self._mesh = use_abstract_mesh(region.inner_mesh)

    def __enter__(self) -> None:
        self._axes.__enter__()
        self._mesh.__enter__()

    def __exit__(self, *exception: object) -> None:
        self._mesh.__exit__(*exception)
        self._axes.__exit__(*exception)


@cache.cache(maxsize=256)
def _with_manual(mesh: AbstractMesh, names: tuple) -> AbstractMesh:
    return mesh.update_axis_types(dict.fromkeys(names, AxisType.Manual))


def varying_names(spec: P, mesh: Any) -> frozenset:
    """The mesh axes over which the shards of a value with this spec vary."""
    named = spec.mesh_axes
    if config.remove_size_one_mesh_axis_from_type.value:
        named = [axis for axis in named if mesh.shape[axis] > 1]
    return frozenset(named)


def region_of(params: dict) -> ManualRegion:
    """The mesh and manual axes of a call's body."""
    return ManualRegion(params["mesh"], params["newly_manual_axes"], params["check_vma"])


class ShardMap(OpenCall, DischargeableCall):
    """Calls a jaxpr on shards: operands are sharded by `in_specs`, results concatenated by `out_specs`."""

    name = "shard_map"
    prunes_known = False
    residual_role = Role.RESULT

    def infer(self, *avals, jaxpr, out_specs, **params):
        region = region_of(params)
        return [region.global_aval(a, s) for a, s in zip(jaxpr.out_avals, out_specs, strict=True)]

    def body_context(self, params):
        return inside(region_of(params))

    def shardings(self, params):
        return (NamedSharding(params["mesh"], P()),)

    def at_once(self, *operands, **params):
        avals = tuple([typeof(x) for x in operands])
        rest = tuple([(k, v) for k, v in params.items() if k != "jaxpr"])
        region, rows = region_of(params), zip(params["jaxpr"].out_avals, params["out_specs"], strict=True)
        out_specs = tuple([region.global_spec(a, s) for a, s in rows])
        how = (self.name, devices_of(params["mesh"], operands), out_specs)
        return run_closed(_program(params["jaxpr"], avals, rest), operands, how, _options, self.name)

    def lower(self, e, ins, outs, *operands, jaxpr, mesh, in_specs, out_specs, **params):
        ordered, region = ordered_in(jaxpr), ManualRegion(mesh, params["newly_manual_axes"], params["check_vma"])
        k, types = len(ordered), [token_type] * len(ordered)
        e.mesh = e.mesh or mesh
        run = e.region(None if mesh.size > 1 else "", ordered, lambda *names: jaxpr_body(e, jaxpr, (), names))
        body = Region([*types, *jaxpr.in_avals], [*types, *jaxpr.out_avals], run)
        specs = ([*[P()] * k, *specs] for specs in (in_specs, out_specs))
        operands, ins, outs = [*(e.tokens[o] for o in ordered), *operands], [*types, *ins], [*types, *outs]
        results = e.manual_computation(operands, ins, outs, *specs, region.inner_mesh, region.names, body)
        e.tokens.update(zip(ordered, results, strict=False))
        return results[k:]

    def _called(
        self, params: dict, jaxpr: Jaxpr | ClosedJaxpr, operands: Sequence, ins: Sequence, outs: Sequence
    ) -> tuple[list, dict]:
        consts: list = []
        if isinstance(jaxpr, ClosedJaxpr):
            jaxpr, consts = opened(jaxpr)
        specs = (*(P(),) * len(consts), *ins)
        return [*consts, *operands], {**params, "jaxpr": jaxpr, "in_specs": specs, "out_specs": tuple(outs)}

    def bind_sharded(self, *call: Any) -> list:
        """The results of a call: (parameters, jaxpr, operands, specs of operands, specs of results) -> results."""
        return self.bind_all(*self._called(*call))

    def bodies(self, params):
        return (closed_of(params["jaxpr"]),)

    def binders(self, params):
        sides = (Role.CONST, params["in_specs"]), (Role.RESULT, params["out_specs"])
        return tuple([[Binder(role, i, spec) for i, spec in enumerate(specs)] for role, specs in sides])

    def call_of(self, params, bodies, operands, ins, outs):
        return self._called(params, bodies[0], operands, [b.spec for b in ins], [b.spec for b in outs])

    linearize, partial_eval = Bodied.linearize, Bodied.partial_eval

    def to_lo(self, operands, params):
        with self.body_context(params):
            low = lower_hi_jaxpr(closed_of(params["jaxpr"]))
        if low.last_types:
            raise NotImplementedError("shard_map: values that change in place cannot be captured or passed")
        types = [typeof(x) for x in operands]
        ins, outs = map(_lo_specs, (params["in_specs"], params["out_specs"]))
        results = self.bind_sharded(params, low.closed, flat(lower_values(types, operands)), ins, outs)
        return raise_values(self.infer(*types, **params), results)

    def residuals(self, params, known, others, ins, outs):
        n, (other,) = len(outs), others
        closed, sources = forwarded(known[0], n, (True,) * n)
        sources, added = sources[n:], closed.out_avals[n:]
        new = [Binder(Role.CONST, None, region_of(params).residual_spec(a)) for a in added]
        scalars = [not (a.is_high or a.shape) for a in added]
        if any(scalars):
            promoted = [kind == "out" and i >= n and scalars[i - n] for kind, i in sources]
            closed, other = _promote_scalar_residuals(closed, other, (*(False,) * n, *scalars), tuple(promoted))
        results = [*outs, *new]
        leading = [Binder(Role.CONST, None, (ins if kind == "in" else results)[i].spec) for kind, i in sources]
        return Residuals([closed], [other], new, sources, leading)

    def transpose(self, cts, *operands, **params):
        region, outs = region_of(params), params["out_specs"]
        linear, nonzero = Mask([is_undefined_primal(x) for x in operands]), nonzero_mask(cts)
        known_specs, linear_specs = linear.partition(params["in_specs"])
        ct_specs = list(map(_cotangent_spec, nonzero.marked(outs)))
        with self.body_context(params):
            ct_types = [ct.aval if type(ct) is Zero else typeof(ct) for ct in cts]
            rows = zip(ct_types, map(_cotangent_spec, outs), strict=True)
            ct_avals = tuple([region.local_aval(a, s) for a, s in rows])
            closed, nonzero_in = transpose_jaxpr(closed_of(params["jaxpr"]), linear, nonzero, False, ct_avals)
            result_specs = list(map(_cotangent_spec, nonzero_in.marked(linear_specs)))
            k = len(known_specs)
            # (known operands, cts) -> (cts, known operands)
            closed = permute_jaxpr(closed, (*range(k, k + sum(nonzero)), *range(k)))
            if not region.check_vma:
                rests = [[n for n in region.rest(s) if n not in s.unreduced] for s in result_specs]
                closed = _sum_results(closed, tuple(map(tuple, rests)))
        cts = nonzero.marked(cts)
        if not region.check_vma:
            cts = [_divide_by_copies(ct, region.rest(s), region.mesh) for ct, s in zip(cts, ct_specs, strict=True)]
        in_specs = [*ct_specs, *known_specs]
        results = self.bind_sharded(params, closed, [*cts, *linear.unmarked(operands)], in_specs, result_specs)
        return cotangents(operands, results, nonzero_in)

    def batch(self, axis, operands, dims, **params):
        region, body = region_of(params), closed_of(params["jaxpr"])
        mapped = *axes_of(axis.spmd_name), *axes_of(axis.explicit_mesh_axis)
        names, others = ([n for n in mapped if (n in region.axes) is is_manual] for is_manual in (True, False))
        _check_unused("in_specs", names, params["in_specs"])
        local = axis._replace(size=axis.size // prod(region.mesh.shape[n] for n in names), spmd_name=None)
        if axis.explicit_mesh_axis is None:
            local = local._replace(spmd_name=tuple(others) or None)
        else:
            local = local._replace(explicit_mesh_axis=joined_entry(*others), mesh=region.inner_mesh)
        more = tuple([frozenset(names if d is not None else ()) for d in dims])
        with self.body_context(params):
            if region.check_vma and names:
                body = _varying_inputs(body, more)
            closed, out_dims = batch_jaxpr_axes(body, local, tuple(dims))
        ins = _batched_specs(params["in_specs"], dims, names)
        _check_unused("out_specs", names, params["out_specs"])
        outs = _batched_specs(params["out_specs"], out_dims, names)
        return self.bind_sharded(params, closed, operands, ins, outs), list(out_dims)

    def names_axis(self, params):
        mine = params["newly_manual_axes"]
        return tuple([n for n in names_in(params["jaxpr"]) if n not in mine])


shard_map_p = ShardMap()
ShapedArray.shard = (  # pyright: ignore[reportAttributeAccessIssue]
    lambda self, mesh, axes, check_vma, spec: ManualRegion(mesh, axes, check_vma).local_aval(self, spec)
)
ShapedArray.unshard = (  # pyright: ignore[reportAttributeAccessIssue]
    lambda self, mesh, check_vma, spec: ManualRegion(mesh, frozenset(mesh.axis_names), check_vma).global_aval(
        self, spec
    )
)


def _lo_specs(specs: Sequence) -> list[P]:
    """The specs of the lo values of values with these specs."""
    return flat([s.to_lo() if isinstance(s, HiPspec) else [s] for s in specs])


def devices_of(mesh: Any, operands: Sequence) -> Mesh:
    """The mesh, or for an abstract one the context mesh, or else the mesh of the operands.

    Raises ValueError if no concrete mesh is found.
    """
    if isinstance(mesh, Mesh):
        return mesh
    concrete = context_mesh()
    if concrete is None:
        shardings = [x.sharding for x in operands if isinstance(x, ArrayImpl)]
        shardings = [s for s in shardings if isinstance(s, NamedSharding)]
        if not shardings:
            raise ValueError(
                "Please pass `jax.Array`s with a `NamedSharding` as input to `shard_map` when passing `AbstractMesh` "
                f"to the mesh argument. The mesh is {mesh}, and none is set"
            )
        others = [s.mesh for s in shardings if not s.mesh.has_axes_of(mesh)]
        if others:
            raise ValueError(
                f"Mesh shape of the input {others} does not match the mesh shape passed to shard_map: {mesh}"
            )
        concrete = shardings[0].mesh
    return Mesh(cast("Any", concrete).devices, mesh.axis_names, mesh.axis_types)


def _options(name: str, mesh: Any, out_specs: Sequence) -> ProgramOptions:
    return ProgramOptions(name, outs=requests([NamedSharding(mesh, s) for s in out_specs]))


@cache.weak_cache
def _program(jaxpr: Jaxpr, avals: tuple, params: tuple) -> ClosedJaxpr:
    return one_equation(shard_map_p, avals, {**dict(params), "jaxpr": jaxpr})


def _retraced(fun: Any, avals: Sequence, purpose: str) -> ClosedJaxpr:
    jaxpr, consts = trace_to_jaxpr(fun, avals, DebugInfo(purpose, "shard_map"))
    return close_over(jaxpr, consts)[0]


@state.traced_cache
def _promote_scalar_residuals(
    known: ClosedJaxpr, unknown: ClosedJaxpr, leaving: tuple[bool, ...], entering: tuple[bool, ...]
) -> tuple[ClosedJaxpr, ClosedJaxpr]:
    """Expands scalar residuals to vectors of size one, since a spec cannot concatenate scalars.

    The flags mark them among the results of `known`, and among the leading inputs of `unknown`.
    """

    def run_known(*xs):
        results = eval_jaxpr(known.jaxpr, known.consts, *xs)
        return [expand_dims(r, (0,)) if up else r for r, up in zip(results, leaving, strict=True)]

    def run_unknown(*xs):
        down = [squeeze(x, (0,)) if up else x for x, up in zip(xs, entering, strict=False)]
        return eval_jaxpr(unknown.jaxpr, unknown.consts, *down, *xs[len(entering) :])

    avals = list(unknown.in_avals)
    for i, up in enumerate(entering):
        if up:
            avals[i] = avals[i].update(shape=(1,))
    return _retraced(run_known, known.in_avals, "linearize"), _retraced(run_unknown, avals, "linearize")


@state.traced_cache
def _sum_results(closed: ClosedJaxpr, rest: tuple) -> ClosedJaxpr:
    """Sums the results of a transposed body over the mesh axes that their specs do not name."""
    if not any(rest):
        return closed

    def fun(*xs):
        results = eval_jaxpr(closed.jaxpr, closed.consts, *xs)
        return [
            psum_p.bind(r, axes=names, axis_index_groups=None) if names else r
            for r, names in zip(results, rest, strict=True)
        ]

    return _retraced(fun, closed.in_avals, "transpose")


def _divide_by_copies(ct: Any, rest: tuple, mesh: Any) -> Any:
    """Divides a cotangent by the number of devices that hold the same replicated result."""
    copies = prod(mesh.shape[name] for name in rest)
    return ct if copies == 1 else div(ct, scalar_like(ct, copies))


@state.traced_cache
def _varying_inputs(closed: ClosedJaxpr, more: tuple[frozenset, ...]) -> ClosedJaxpr:
    """Retraces the body for operands that vary over more mesh axes."""
    avals = [a.varying_over(varying_axes(a) | m) for a, m in zip(closed.in_avals, more, strict=True)]
    return _retraced(lambda *xs: eval_jaxpr(closed.jaxpr, closed.consts, *xs), avals, "vmap")


def _batched_specs(specs: Sequence[P], dims: Sequence[int | None], names: Sequence) -> list[P]:
    entry = joined_entry(*names)
    return [s if d is None else batched_spec(s, d, entry) for s, d in zip(specs, dims, strict=True)]


def _cotangent_spec(spec: P) -> P:
    """The spec of cotangents of values with this spec: `unreduced` and `reduced` are exchanged."""
    if isinstance(spec, HiPspec):
        return spec.to_ct_spec()
    return spec.update(unreduced=spec.reduced, reduced=spec.unreduced)


def _check_unused(what: str, names: Sequence, specs: Sequence[P]) -> None:
    """Raises ValueError if a spec names mesh axes over which `vmap` shards values."""
    if not config.disable_vmap_shmap_error.value and any(n in spec.mesh_axes for spec in specs for n in names):
        raise ValueError(f"vmap spmd_axis_name cannot appear in shard_map {what}: {tuple(names)}, {tuple(specs)}")
