"""`shard_map`: runs a jaxpr on each device's part of the operands."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from math import prod
from typing import Any, NamedTuple

from minijax.base import cache, config
from minijax.base.mask import Mask
from minijax.dispatch.call import OpenCall, closed_of, forwarded, names_in, opened
from minijax.dispatch.operations import one_equation, run_closed
from minijax.dispatch.placement import ProgramOptions
from minijax.hlo.emitter import jaxpr_body, ordered_in
from minijax.hlo.writer import Region
from minijax.ir import state
from minijax.ir.jaxpr import ClosedJaxpr, DebugInfo, Jaxpr, Var
from minijax.ir.primitive import Axis, cotangents, is_linear
from minijax.ir.trace import close_over, eval_jaxpr, trace_to_jaxpr
from minijax.ir.types import ShapedArray, Zero, token_type, typeof, varying_axes
from minijax.partition.explicit import sharding_in_type
from minijax.partition.meshes import P, axes_of
from minijax.partition.shardings import NamedSharding
from minijax.primitives.collective import psum_p
from minijax.primitives.elementwise import div
from minijax.primitives.families import scalar_like
from minijax.primitives.moving import expand_dims
from minijax.primitives.structural import squeeze
from minijax.primitives.varying import ManualAxes
from minijax.primitives.zeros import nonzero_mask
from minijax.transforms.batch import batch_jaxpr_axes
from minijax.transforms.linearize import linearize_jaxpr
from minijax.transforms.partial_eval import partial_eval_jaxpr, permute_jaxpr
from minijax.transforms.partial_eval_custom import EqnParts, partial_eval_jaxpr_custom
from minijax.transforms.prune import prune_closed
from minijax.transforms.transpose import transpose_jaxpr


def inside(mesh: Any, check_vma: bool) -> AbstractContextManager:
    """The thread state in which a body is traced and transformed."""
    return state.manual_axes(mesh.shape_tuple, ManualAxes(mesh.axis_names) if check_vma else ())


def local_aval(aval: ShapedArray, spec: P, mesh: Any, check_vma: bool) -> ShapedArray:
    """The type of one device's part of a value."""
    sizes = mesh.shape
    parts = [prod(sizes[a] for a in axes_of(entry)) for entry in spec.padded(aval.ndim)]
    local = aval.update(shape=tuple([n // k for n, k in zip(aval.shape, parts, strict=True)]), sharding=None)
    if not check_vma:
        return local
    return local.varying_over(varying_names(spec, mesh))


def global_aval(aval: ShapedArray, spec: P, mesh: Any) -> ShapedArray:
    """The type of a value of which this is the type of one device's part."""
    sizes = mesh.shape
    parts = [prod(sizes[a] for a in axes_of(entry)) for entry in spec.padded(aval.ndim)]
    split = sharding_in_type(NamedSharding(mesh, spec), aval.ndim)
    whole = aval.update(shape=tuple([n * k for n, k in zip(aval.shape, parts, strict=True)]), sharding=split)
    return whole.varying_over(frozenset())


def varying_names(spec: P, mesh: Any) -> frozenset:
    """The mesh axes over which the parts of a value that lies so vary."""
    named = spec.mesh_axes
    if config.remove_size_one_mesh_axis_from_type.value:
        named = [axis for axis in named if mesh.shape[axis] > 1]
    return frozenset(named)


class ShardMap(OpenCall):
    """Calls a jaxpr on parts: operands are cut as `in_specs` say, results joined as `out_specs` say."""

    name = "shard_map"

    def infer(self, *avals, jaxpr, mesh, out_specs, **params):
        return [global_aval(a, s, mesh) for a, s in zip(jaxpr.out_avals, out_specs, strict=True)]

    def surroundings(self, params):
        return inside(params["mesh"], params["check_vma"])

    def shardings(self, params):
        return (NamedSharding(params["mesh"], P()),)

    def impl(self, *operands, **params):
        avals = tuple([typeof(x) for x in operands])
        rest = tuple([(k, v) for k, v in params.items() if k != "jaxpr"])
        how = (self.name, params["mesh"], params["out_specs"])
        return run_closed(_program(params["jaxpr"], avals, rest), operands, how, _options, self.name)

    def lower(self, e, ins, outs, *operands, jaxpr, mesh, in_specs, out_specs, **params):
        ordered = ordered_in(jaxpr)
        k, types = len(ordered), [token_type] * len(ordered)
        run = e.region(None if mesh.size > 1 else "", ordered, lambda *names: jaxpr_body(e, jaxpr, (), names))
        body = Region([*types, *jaxpr.in_avals], [*types, *jaxpr.out_avals], run)
        shardings = ([NamedSharding(mesh, s) for s in (*[P()] * k, *specs)] for specs in (in_specs, out_specs))
        operands, ins, outs = [*(e.tokens[o] for o in ordered), *operands], [*types, *ins], [*types, *outs]
        results = e.manual_computation(operands, ins, outs, *shardings, mesh, mesh.axis_names, body)
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
        """The results of a call of a jaxpr: (parameters, jaxpr, operands, specs of operands, specs of results)."""
        return self.bind_all(*self._called(*call))

    def calling(self, params, closed, operands, ins, outs):
        in_specs, out_specs = params["in_specs"], params["out_specs"]
        return self._called(params, closed, operands, [in_specs[i] for i in ins], [out_specs[i] for i in outs])

    def linearize(self, nonzeros, primals, **params):
        nonzeros, ins, outs = Mask(nonzeros), params["in_specs"], params["out_specs"]
        with self.surroundings(params):
            linearized = linearize_jaxpr(closed_of(params["jaxpr"]), nonzeros)
            parts = _with_residual_specs(linearized.primal, linearized.tangent, ins, outs, params)
        results, residuals = self._run_known(parts, primals, ins, outs, params)

        def push(*tangents):
            in_specs = [*parts.in_specs, *nonzeros.marked(ins)]
            out_specs = linearized.out_nonzeros.marked(outs)
            return self.bound(params, parts.unknown, [*residuals, *tangents], in_specs, out_specs)

        return results, linearized.out_nonzeros, push

    def _run_known(
        self, parts: "_Parts", operands: Sequence, ins: Sequence, outs: Sequence, params: dict
    ) -> tuple[list, list]:
        """The results of the known part, and the residuals."""
        values = self.bound(params, parts.known, operands, ins, [*parts.new_specs, *outs])
        k = len(parts.new_specs)
        return values[k:], parts.residuals(operands, values[:k], values[k:])

    def partial_eval(self, staging, operands, unknown_in, **params):
        unknown = Mask(unknown_in)
        known_ins, unknown_ins = unknown.partition(params["in_specs"])
        known, rest = unknown.partition(operands)
        with self.surroundings(params):
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
        with self.surroundings(params):
            pe = partial_eval_jaxpr_custom(closed_of(params["jaxpr"]), unknown, policy, (True,) * len(eqn.outvars))
            known_outs = pe.out_unknown.unmarked(params["out_specs"])
            parts = _with_residual_specs(pe.known, pe.staged, known_ins, known_outs, params)
        known_out, unknown_out = pe.out_unknown.partition(eqn.outvars)
        jaxpr = parts.known.jaxpr
        avals = [v.aval for v in jaxpr.outvars[: len(parts.new_specs)]]
        new = [Var(global_aval(a, s, params["mesh"])) for a, s in zip(avals, parts.new_specs, strict=True)]
        out_specs = (*parts.new_specs, *known_outs)
        known = eqn.replace(
            params={**params, "jaxpr": jaxpr, "in_specs": tuple(known_ins), "out_specs": out_specs},
            invars=known_in,
            outvars=[*new, *known_out],
        )
        in_specs = (*parts.in_specs, *(known_ins[i] for i in pe.input_residuals), *unknown_ins)
        residuals = [*parts.residuals(known_in, new, known_out), *(known_in[i] for i in pe.input_residuals)]
        # The staged part makes the results again, but for those that are residuals.
        passed = {known_out[i] for kind, i in parts.sources if kind == "out" and i < len(known_out)}
        remade = Mask([v not in passed for v in eqn.outvars])
        again, _ = prune_closed(parts.unknown, remade, True)
        specs = dict(in_specs=in_specs, out_specs=tuple(remade.marked(params["out_specs"])))
        invars, outvars = [*residuals, *rest], remade.marked(eqn.outvars)
        staged = eqn.replace(params={**params, **specs, "jaxpr": again.jaxpr}, invars=invars, outvars=outvars)
        return EqnParts([known], [staged], unknown_out, new, False, [*passed])

    def transpose(self, cts, *operands, **params):
        mesh, check_vma, outs = params["mesh"], params["check_vma"], params["out_specs"]
        linear, nonzero = Mask([is_linear(x) for x in operands]), nonzero_mask(cts)
        known_specs, linear_specs = linear.partition(params["in_specs"])
        ct_specs = nonzero.marked(outs)
        with self.surroundings(params):
            ct_types = [ct.aval if type(ct) is Zero else typeof(ct) for ct in cts]
            ct_avals = tuple([local_aval(a, s, mesh, check_vma) for a, s in zip(ct_types, outs, strict=True)])
            closed, nonzero_in = transpose_jaxpr(closed_of(params["jaxpr"]), linear, nonzero, False, ct_avals)
            result_specs = nonzero_in.marked(linear_specs)
            k = len(known_specs)
            # (known operands, cts) -> (cts, known operands)
            closed = permute_jaxpr(closed, (*range(k, k + sum(nonzero)), *range(k)))
            if not check_vma:
                closed = _summed(closed, tuple(result_specs), mesh)
        cts = nonzero.marked(cts)
        if not check_vma:
            cts = [_shared(ct, s, mesh) for ct, s in zip(cts, ct_specs, strict=True)]
        in_specs = [*ct_specs, *known_specs]
        results = self.bound(params, closed, [*cts, *linear.unmarked(operands)], in_specs, result_specs)
        return cotangents(operands, results, nonzero_in)

    def batch(self, axis, operands, dims, **params):
        names = () if axis.spmd_name is None else axes_of(axis.spmd_name)
        mesh, body = params["mesh"], closed_of(params["jaxpr"])
        local = Axis(axis.name, axis.size // prod(mesh.shape[n] for n in names), *axis[2:])
        more = tuple([frozenset(names if d is not None else ()) for d in dims])
        with self.surroundings(params):
            if params["check_vma"] and names:
                body = _varying_inputs(body, more)
            closed, out_dims = batch_jaxpr_axes(body, local, tuple(dims))
        ins = [_wider(s, d, names) for s, d in zip(params["in_specs"], dims, strict=True)]
        outs = [_wider(s, d, names) for s, d in zip(params["out_specs"], out_dims, strict=True)]
        return self.bound(params, closed, operands, ins, outs), list(out_dims)

    def names_axis(self, params):
        mine = params["mesh"].axis_names
        return tuple([n for n in names_in(closed_of(params["jaxpr"])) if n not in mine])


shard_map_p = ShardMap()


def _options(name: str, mesh: Any, out_specs: Sequence) -> ProgramOptions:
    return ProgramOptions(name, out_shardings=tuple([NamedSharding(mesh, s) for s in out_specs]))


@cache.weak_cache
def _program(jaxpr: Jaxpr, avals: tuple, params: tuple) -> ClosedJaxpr:
    return one_equation(shard_map_p, avals, {**dict(params), "jaxpr": jaxpr})


def _retraced(fun: Any, avals: Sequence, purpose: str) -> ClosedJaxpr:
    jaxpr, consts = trace_to_jaxpr(fun, avals, DebugInfo(purpose, "shard_map"))
    return close_over(jaxpr, consts)[0]


def _residual_spec(aval: ShapedArray, params: dict) -> P:
    """Residuals are joined along their first axis over the mesh axes that they may vary over."""
    names = params["mesh"].axis_names
    if params["check_vma"]:
        names = tuple([n for n in names if n in varying_axes(aval)])
    return P(names) if names else P()


class _Parts(NamedTuple):
    """A body in two parts, of which the second takes residuals: operands and results of the first, or new values.

    `known`: operands -> (new residuals, results). `unknown`: (residuals, other operands) -> its results.
    """

    known: ClosedJaxpr
    unknown: ClosedJaxpr
    new_specs: tuple[P, ...]  # how the new residuals lie
    in_specs: tuple[P, ...]  # how all of them do
    sources: tuple[tuple[str, int], ...]  # where each is: "in": an operand; "out": a result or, behind them, a new one

    def residuals(self, operands: Sequence, new: Sequence, results: Sequence) -> list:
        values = [*results, *new]
        return [operands[i] if kind == "in" else values[i] for kind, i in self.sources]


def _with_residual_specs(
    known: ClosedJaxpr, unknown: ClosedJaxpr, ins: Sequence[P], outs: Sequence[P], params: dict
) -> _Parts:
    """The parts of a body, (operands) -> (results, residuals) and (residuals, others) -> results, with specs."""
    n = len(outs)
    known, sources = forwarded(known, n, (True,) * n)
    sources = sources[n:]
    new_specs = tuple([_residual_spec(a, params) for a in known.out_avals[n:]])
    is_new = [kind == "out" and i >= n for kind, i in sources]
    scalars = [bool(s) and not a.shape for a, s in zip(known.out_avals[n:], new_specs, strict=True)]
    if any(scalars):
        promoted = [new and scalars[i - n] for new, (_, i) in zip(is_new, sources, strict=True)]
        known, unknown = _promote_scalar_residuals(known, unknown, (*(False,) * n, *scalars), tuple(promoted))
    # (results, new residuals) -> (new residuals, results)
    outs_order = (*range(n, n + len(new_specs)), *range(n))
    known = permute_jaxpr(known, tuple(range(len(ins))), outs_order)
    in_specs = tuple([ins[i] if kind == "in" else (*outs, *new_specs)[i] for kind, i in sources])
    return _Parts(known, unknown, new_specs, in_specs, sources)


@state.traced_cache
def _promote_scalar_residuals(
    known: ClosedJaxpr, unknown: ClosedJaxpr, leaving: tuple[bool, ...], entering: tuple[bool, ...]
) -> tuple[ClosedJaxpr, ClosedJaxpr]:
    """The parts with residuals that are scalars but differ by device as vectors of one, which a spec can join.

    The flags mark those among the results of `known`, and among the leading inputs of `unknown`.
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
def _summed(closed: ClosedJaxpr, specs: tuple, mesh: Any) -> ClosedJaxpr:
    """A transposed body whose results are summed over the mesh axes that their specs do not name."""
    rest = [tuple([n for n in mesh.axis_names if n not in s.mesh_axes]) for s in specs]
    if not any(rest):
        return closed

    def fun(*xs):
        results = eval_jaxpr(closed.jaxpr, closed.consts, *xs)
        return [
            psum_p.bind(r, axes=names, axis_index_groups=None) if names else r
            for r, names in zip(results, rest, strict=True)
        ]

    return _retraced(fun, closed.in_avals, "transpose")


def _shared(ct: Any, spec: P, mesh: Any) -> Any:
    """The part of a cotangent that one of the devices that hold the same result answers for."""
    copies = prod(size for name, size in mesh.shape_tuple if name not in spec.mesh_axes)
    return ct if copies == 1 else div(ct, scalar_like(ct, copies))


@state.traced_cache
def _varying_inputs(closed: ClosedJaxpr, more: tuple[frozenset, ...]) -> ClosedJaxpr:
    """The body, for operands that vary over more mesh axes."""
    avals = [a.varying_over(varying_axes(a) | m) for a, m in zip(closed.in_avals, more, strict=True)]
    return _retraced(lambda *xs: eval_jaxpr(closed.jaxpr, closed.consts, *xs), avals, "vmap")


def _wider(spec: P, dim: int | None, names: tuple) -> P:
    if dim is None:
        return spec
    entries = list(spec.padded(dim))
    entries.insert(dim, None if not names else names[0] if len(names) == 1 else names)
    return P(*entries)
