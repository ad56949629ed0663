"""`shard_map`: runs a jaxpr on the shards of the operands."""

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple, cast

from minijax.base import cache, config
from minijax.base.mask import Mask
from minijax.calls.call import OpenCall, closed_of, forwarded, names_in, opened
from minijax.dispatch.operations import one_equation, run_closed
from minijax.dispatch.placement import ProgramOptions, requests
from minijax.hlo.emitter import jaxpr_body, ordered_in
from minijax.hlo.writer import Region
from minijax.ir import state
from minijax.ir.hitypes import HiPspec
from minijax.ir.jaxpr import ClosedJaxpr, DebugInfo, Jaxpr, Var
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
from minijax.transforms.discharge import DischargeableCall, dereferenced, discharge_jaxpr
from minijax.transforms.linearize import linearize_jaxpr
from minijax.transforms.lower_types import flat, lower_hi_jaxpr, lower_values, raise_values
from minijax.transforms.partial_eval import partial_eval_jaxpr, permute_jaxpr
from minijax.transforms.partial_eval_custom import EqnParts, partial_eval_jaxpr_custom
from minijax.transforms.prune import prune_closed
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
        if aval._sharding is not None:
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
        if aval._sharding is None:
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


class ShardMap(DischargeableCall, OpenCall):
    """Calls a jaxpr on shards: operands are sharded by `in_specs`, results concatenated by `out_specs`."""

    name = "shard_map"

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

    def bound(self, *call: Any) -> list:
        """The results of a call: (parameters, jaxpr, operands, specs of operands, specs of results) -> results."""
        return self.bind_all(*self._called(*call))

    def calling(self, params, closed, operands, ins, outs):
        in_specs, out_specs = params["in_specs"], params["out_specs"]
        return self._called(params, closed, operands, [in_specs[i] for i in ins], [out_specs[i] for i in outs])

    def discharge(self, operands, refs, **params):
        outs, n = params["out_specs"], len(params["out_specs"])
        rows = zip(params["jaxpr"].in_avals, params["in_specs"], strict=True)
        last = [spec for aval, spec in rows if type(aval) is AbstractRef]
        with self.body_context(params):
            closed = discharge_jaxpr(closed_of(params["jaxpr"]))
        call = self._called(params, closed, dereferenced(operands), params["in_specs"], [*outs, *last])
        return *call, lambda results: (results[:n], results[n:])

    def to_lo(self, operands, params):
        with self.body_context(params):
            low = lower_hi_jaxpr(closed_of(params["jaxpr"]))
        if low.last_types:
            raise NotImplementedError("shard_map: values that change in place cannot be captured or passed")
        types = [typeof(x) for x in operands]
        ins, outs = map(_lo_specs, (params["in_specs"], params["out_specs"]))
        results = self.bound(params, low.closed, flat(lower_values(types, operands)), ins, outs)
        return raise_values(self.infer(*types, **params), results)

    def linearize(self, nonzeros, primals, **params):
        nonzeros, ins, outs = Mask(nonzeros), params["in_specs"], params["out_specs"]
        with self.body_context(params):
            linearized = linearize_jaxpr(closed_of(params["jaxpr"]), nonzeros)
            parts = _with_residual_specs(linearized.primal, linearized.tangent, ins, outs, params)
        results, residuals = self._run_known(parts, primals, ins, outs, params)

        def push(*tangents):
            in_specs = [*parts.in_specs, *nonzeros.marked(ins)]
            out_specs = linearized.out_nonzeros.marked(outs)
            return self.bound(params, parts.unknown, [*residuals, *tangents], in_specs, out_specs)

        return results, linearized.out_nonzeros, push

    def _run_known(
        self, parts: "SplitBody", operands: Sequence, ins: Sequence, outs: Sequence, params: dict
    ) -> tuple[list, list]:
        """The results of the known part, and the residuals."""
        values = self.bound(params, parts.known, operands, ins, [*parts.new_specs, *outs])
        k = len(parts.new_specs)
        return values[k:], parts.residuals(operands, values[:k], values[k:])

    def partial_eval(self, staging, operands, unknown_in, **params):
        unknown = Mask(unknown_in)
        known_ins, unknown_ins = unknown.partition(params["in_specs"])
        known, rest = unknown.partition(operands)
        with self.body_context(params):
            pe = partial_eval_jaxpr(closed_of(params["jaxpr"]), unknown, (False,) * len(params["out_specs"]))
            known_outs, unknown_outs = pe.out_unknown.partition(params["out_specs"])
            parts = _with_residual_specs(pe.known, pe.unknown, known_ins, known_outs, params)
        results, residuals = self._run_known(parts, known, known_ins, known_outs, params)
        in_specs = [*parts.in_specs, *unknown_ins]
        call = self._called(params, parts.unknown, [*residuals, *rest], in_specs, unknown_outs)
        return pe.out_unknown.merge(results, staging.process(self, *call))

    def partial_eval_custom(self, eqn, unknown_in, policy):
        params, unknown = eqn.params, Mask(unknown_in)
        known_ins, unknown_ins = unknown.partition(params["in_specs"])
        known_in, rest = unknown.partition(eqn.invars)
        with self.body_context(params):
            pe = partial_eval_jaxpr_custom(closed_of(params["jaxpr"]), unknown, policy, (True,) * len(eqn.outvars))
            known_outs = pe.out_unknown.unmarked(params["out_specs"])
            parts = _with_residual_specs(pe.known, pe.staged, known_ins, known_outs, params)
        known_out, unknown_out = pe.out_unknown.partition(eqn.outvars)
        jaxpr = parts.known.jaxpr
        avals = [v.aval for v in jaxpr.outvars[: len(parts.new_specs)]]
        region = region_of(params)
        new = [Var(region.global_aval(a, s)) for a, s in zip(avals, parts.new_specs, strict=True)]
        out_specs = (*parts.new_specs, *known_outs)
        known = eqn.replace(
            params={**params, "jaxpr": jaxpr, "in_specs": tuple(known_ins), "out_specs": out_specs},
            invars=known_in,
            outvars=[*new, *known_out],
        )
        in_specs = (*parts.in_specs, *(known_ins[i] for i in pe.input_residuals), *unknown_ins)
        residuals = [*parts.residuals(known_in, new, known_out), *(known_in[i] for i in pe.input_residuals)]
        # The staged part computes the results again, except those that are residuals.
        forwarded_results = {known_out[i] for kind, i in parts.sources if kind == "out" and i < len(known_out)}
        recomputed = Mask([v not in forwarded_results for v in eqn.outvars])
        again, _ = prune_closed(parts.unknown, recomputed, True)
        specs = dict(in_specs=in_specs, out_specs=tuple(recomputed.marked(params["out_specs"])))
        invars, outvars = [*residuals, *rest], recomputed.marked(eqn.outvars)
        staged = eqn.replace(params={**params, **specs, "jaxpr": again.jaxpr}, invars=invars, outvars=outvars)
        return EqnParts([known], [staged], unknown_out, new, False, [*forwarded_results])

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
        results = self.bound(params, closed, [*cts, *linear.unmarked(operands)], in_specs, result_specs)
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
        return self.bound(params, closed, operands, ins, outs), list(out_dims)

    def names_axis(self, params):
        mine = params["newly_manual_axes"]
        return tuple([n for n in names_in(closed_of(params["jaxpr"])) if n not in mine])


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


class SplitBody(NamedTuple):
    """A known and an unknown body. A residual is an operand or result of the known one, or an extra result.

    `known`: operands -> (new residuals, results). `unknown`: (residuals, other operands) -> its results.
    """

    known: ClosedJaxpr
    unknown: ClosedJaxpr
    new_specs: tuple[P, ...]  # of the new residuals
    in_specs: tuple[P, ...]  # of all residuals
    sources: tuple[tuple[str, int], ...]  # of each: "in": an operand; "out": a result, or after them a new one

    def residuals(self, operands: Sequence, new: Sequence, results: Sequence) -> list:
        values = [*results, *new]
        return [operands[i] if kind == "in" else values[i] for kind, i in self.sources]


def _with_residual_specs(
    known: ClosedJaxpr, unknown: ClosedJaxpr, ins: Sequence[P], outs: Sequence[P], params: dict
) -> SplitBody:
    """Adds specs to the parts of a body, operands -> (results, residuals) and (residuals, others) -> results."""
    n = len(outs)
    known, sources = forwarded(known, n, (True,) * n)
    sources = sources[n:]
    new_specs = tuple([region_of(params).residual_spec(a) for a in known.out_avals[n:]])
    is_new = [kind == "out" and i >= n for kind, i in sources]
    scalars = [not (a.is_high or a.shape) for a in known.out_avals[n:]]
    if any(scalars):
        promoted = [new and scalars[i - n] for new, (_, i) in zip(is_new, sources, strict=True)]
        known, unknown = _promote_scalar_residuals(known, unknown, (*(False,) * n, *scalars), tuple(promoted))
    # (results, new residuals) -> (new residuals, results)
    outs_order = (*range(n, n + len(new_specs)), *range(n))
    known = permute_jaxpr(known, tuple(range(len(ins))), outs_order)
    in_specs = tuple([ins[i] if kind == "in" else (*outs, *new_specs)[i] for kind, i in sources])
    return SplitBody(known, unknown, new_specs, in_specs, sources)


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
