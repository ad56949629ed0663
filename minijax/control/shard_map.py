"""`shard_map`: runs a jaxpr on each device's part of the operands."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from math import prod
from typing import Any, NamedTuple

from minijax.base import cache, config
from minijax.control.checkpoint import closed_of, opened
from minijax.dispatch.call import chosen, forwarded, names_in, split_tangents
from minijax.dispatch.operations import one_equation, run_closed
from minijax.dispatch.placement import ProgramOptions
from minijax.hlo.emitter import jaxpr_body
from minijax.hlo.writer import Region
from minijax.ir import state
from minijax.ir.jaxpr import ClosedJaxpr, DebugInfo, Jaxpr, Var
from minijax.ir.meshes import P, axes_of
from minijax.ir.primitive import Axis, Primitive, cotangents, is_linear
from minijax.ir.shardings import NamedSharding
from minijax.ir.trace import close_over, eval_jaxpr, trace_to_jaxpr
from minijax.ir.types import ShapedArray, Zero, typeof, varying_axes
from minijax.ops.collective import psum_p
from minijax.ops.elementwise import div
from minijax.ops.families import literal
from minijax.ops.moving import expand_dims
from minijax.ops.shape import squeeze
from minijax.transforms.batch import batch_jaxpr
from minijax.transforms.hoist import hoist_jaxpr, reordered
from minijax.transforms.jvp import jvp_jaxpr
from minijax.transforms.linearize import linearize_jaxpr
from minijax.transforms.prune import prune_jaxpr
from minijax.transforms.split import EqnParts, split_jaxpr
from minijax.transforms.transpose import transpose_jaxpr


def inside(mesh: Any, check_vma: bool) -> AbstractContextManager:
    """The thread state in which a body is traced and transformed."""
    return state.manual_axes(mesh.shape_tuple, check_vma)


def local_aval(aval: ShapedArray, spec: P, mesh: Any, check_vma: bool) -> ShapedArray:
    """The type of one device's part of a value."""
    sizes = mesh.shape
    parts = [prod(sizes[a] for a in axes_of(entry)) for entry in spec.padded(aval.ndim)]
    local = aval.update(shape=tuple([n // k for n, k in zip(aval.shape, parts, strict=True)]))
    if not check_vma:
        return local
    return local.varying_over(varying_names(spec, mesh))


def global_aval(aval: ShapedArray, spec: P, mesh: Any) -> ShapedArray:
    """The type of a value of which this is the type of one device's part."""
    sizes = mesh.shape
    parts = [prod(sizes[a] for a in axes_of(entry)) for entry in spec.padded(aval.ndim)]
    whole = aval.update(shape=tuple([n * k for n, k in zip(aval.shape, parts, strict=True)]))
    return whole.varying_over(frozenset())


def named_in(spec: P) -> tuple:
    """The mesh axes that a spec names."""
    return tuple([axis for entry in spec for axis in axes_of(entry)])


def varying_names(spec: P, mesh: Any) -> frozenset:
    """The mesh axes over which the parts of a value that lies so vary."""
    named = named_in(spec)
    if config.remove_size_one_mesh_axis_from_type.value:
        named = [axis for axis in named if mesh.shape[axis] > 1]
    return frozenset(named)


class ShardMap(Primitive):
    """Calls a jaxpr on parts: operands are cut as `in_specs` say, results joined as `out_specs` say."""

    name = "shard_map"
    multiple_results = True
    dce_inside = True
    unites = False

    def infer(self, *avals, jaxpr, mesh, out_specs, **params):
        return [global_aval(a, s, mesh) for a, s in zip(jaxpr.out_avals, out_specs, strict=True)]

    def effects(self, *avals, jaxpr, **params):
        return jaxpr.effects

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
        body = Region(jaxpr.in_avals, jaxpr.out_avals, lambda *names: jaxpr_body(e, jaxpr, (), names))
        return e.manual_computation(
            operands,
            ins,
            outs,
            [NamedSharding(mesh, s) for s in in_specs],
            [NamedSharding(mesh, s) for s in out_specs],
            mesh,
            mesh.axis_names,
            body,
        )

    def _called(
        self, params: dict, jaxpr: Jaxpr | ClosedJaxpr, operands: Sequence, ins: Sequence, outs: Sequence
    ) -> tuple[list, dict]:
        consts: list = []
        if isinstance(jaxpr, ClosedJaxpr):
            jaxpr, consts = opened(jaxpr)
        specs = (*(P(),) * len(consts), *ins)
        return [*consts, *operands], {**params, "jaxpr": jaxpr, "in_specs": specs, "out_specs": tuple(outs)}

    def _bound(self, *call):
        return self.bind_all(*self._called(*call))

    def jvp(self, primals, tangents, **params):
        nonzeros = tuple(type(t) is not Zero for t in tangents)
        body, ins, outs = closed_of(params["jaxpr"]), params["in_specs"], params["out_specs"]
        with self.surroundings(params):
            closed, out_nonzeros = jvp_jaxpr(body, nonzeros, (False,) * len(outs))
        operands = [*primals, *(t for t in tangents if type(t) is not Zero)]
        results = self._bound(
            params, closed, operands, (*ins, *chosen(ins, nonzeros)), (*outs, *chosen(outs, out_nonzeros))
        )
        n = len(out_nonzeros)
        return split_tangents(results[:n], results[n:], out_nonzeros)

    def linearize(self, nonzeros, primals, **params):
        ins, outs = params["in_specs"], params["out_specs"]
        with self.surroundings(params):
            split = linearize_jaxpr(closed_of(params["jaxpr"]), tuple(nonzeros))
            halves = _halved(split.primal, split.tangent, ins, outs, params)
        results = self._bound(params, halves.early, primals, ins, (*halves.specs, *outs))
        k = len(halves.specs)
        saved = halves.saved(primals, results[:k], results[k:])

        def push(*tangents):
            laid = (*halves.saved_specs, *chosen(ins, nonzeros))
            return self._bound(params, halves.late, [*saved, *tangents], laid, chosen(outs, split.out_nonzeros))

        return results[k:], split.out_nonzeros, push

    def hoist(self, late, operands, is_late, **params):
        at_once = [not wait for wait in is_late]
        ins = chosen(params["in_specs"], at_once)
        with self.surroundings(params):
            parts = hoist_jaxpr(closed_of(params["jaxpr"]), tuple(is_late), (False,) * len(params["out_specs"]))
            outs = chosen(params["out_specs"], [not wait for wait in parts.out_late])
            halves = _halved(parts.early, parts.late, ins, outs, params)
        known = chosen(operands, at_once)
        results = self._bound(params, halves.early, known, ins, (*halves.specs, *outs))
        k = len(halves.specs)
        waiting = [*halves.saved(known, results[:k], results[k:]), *chosen(operands, is_late)]
        laid = (*halves.saved_specs, *chosen(params["in_specs"], is_late))
        late_outs = iter(
            late.process(
                self, *self._called(params, halves.late, waiting, laid, chosen(params["out_specs"], parts.out_late))
            )
        )
        rest = iter(results[k:])
        return [next(late_outs) if wait else next(rest) for wait in parts.out_late]

    def split(self, eqn, unknown_in, policy):
        params, at_once = eqn.params, [not u for u in unknown_in]
        ins = chosen(params["in_specs"], at_once)
        with self.surroundings(params):
            parts = split_jaxpr(closed_of(params["jaxpr"]), tuple(unknown_in), policy, (True,) * len(eqn.outvars))
            outs = chosen(params["out_specs"], [not u for u in parts.out_unknown])
            halves = _halved(parts.known, parts.late, ins, outs, params)
        known_in = chosen(eqn.invars, at_once)
        known_out = chosen(eqn.outvars, [not u for u in parts.out_unknown])
        early = halves.early.jaxpr
        fresh = [Var(global_aval(v.aval, s, params["mesh"])) for v, s in zip(early.outvars, halves.specs, strict=False)]
        waiting = [*halves.saved(known_in, fresh, known_out), *[known_in[i] for i in parts.needed]]
        laid = (*halves.saved_specs, *[ins[i] for i in parts.needed], *chosen(params["in_specs"], unknown_in))
        first = eqn.replace(
            params={**params, "jaxpr": early, "in_specs": ins, "out_specs": (*halves.specs, *outs)},
            invars=list(known_in),
            outvars=[*fresh, *known_out],
        )
        second = eqn.replace(
            params={**params, "jaxpr": halves.late.jaxpr, "in_specs": laid},
            invars=[*waiting, *chosen(eqn.invars, unknown_in)],
        )
        return EqnParts([first], [second], chosen(eqn.outvars, parts.out_unknown), fresh, False)

    def transpose(self, cts, *operands, **params):
        ins, outs = params["in_specs"], params["out_specs"]
        linear = tuple(map(is_linear, operands))
        nonzero = tuple(type(ct) is not Zero for ct in cts)
        body = closed_of(params["jaxpr"])
        ct_specs, known_specs = chosen(outs, nonzero), chosen(ins, [not lin for lin in linear])
        result_specs = chosen(ins, linear)
        with self.surroundings(params):
            ct_types = [ct.aval if type(ct) is Zero else typeof(ct) for ct in cts]
            ct_avals = tuple(
                [local_aval(a, s, params["mesh"], params["check_vma"]) for a, s in zip(ct_types, outs, strict=True)]
            )
            closed, found = transpose_jaxpr(body, linear, nonzero, False, ct_avals)
            result_specs = chosen(result_specs, found)
            k = len(known_specs)
            order = (*range(k, k + sum(nonzero)), *range(k))
            closed = reordered(closed, order)
            if not params["check_vma"]:
                closed = _summed(closed, result_specs, params["mesh"])
        given = [ct for ct in cts if type(ct) is not Zero]
        if not params["check_vma"]:
            given = [_shared(ct, s, params["mesh"]) for ct, s in zip(given, ct_specs, strict=True)]
        known = [x for x in operands if not is_linear(x)]
        results = self._bound(params, closed, [*given, *known], (*ct_specs, *known_specs), result_specs)
        return cotangents(operands, results, found)

    def batch(self, axis, operands, dims, **params):
        names = () if axis.spmd_name is None else axes_of(axis.spmd_name)
        mesh, body = params["mesh"], closed_of(params["jaxpr"])
        local = Axis(axis.name, axis.size // prod(mesh.shape[n] for n in names), *axis[2:])
        more = tuple([frozenset(names if d is not None else ()) for d in dims])
        with self.surroundings(params):
            if params["check_vma"] and names:
                body = _varying_inputs(body, more)
            closed, out_dims = batch_jaxpr(body, local, tuple(dims), (None,) * len(params["out_specs"]))
        ins = [_wider(s, d, names) for s, d in zip(params["in_specs"], dims, strict=True)]
        outs = [_wider(s, d, names) for s, d in zip(params["out_specs"], out_dims, strict=True)]
        return self._bound(params, closed, operands, ins, outs), list(out_dims)

    def names_axis(self, params):
        mine = params["mesh"].axis_names
        return tuple([n for n in names_in(closed_of(params["jaxpr"])) if n not in mine])

    def dce(self, used, eqn):
        jaxpr, used_inputs = prune_jaxpr(eqn.params["jaxpr"], tuple(used))
        params = {
            **eqn.params,
            "jaxpr": jaxpr,
            "in_specs": chosen(eqn.params["in_specs"], used_inputs),
            "out_specs": chosen(eqn.params["out_specs"], used),
        }
        new = eqn.replace(
            params=params,
            effects=jaxpr.effects,
            invars=list(chosen(eqn.invars, used_inputs)),
            outvars=list(chosen(eqn.outvars, used)),
        )
        return list(used_inputs), new


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


class _Halves(NamedTuple):
    """A body in two: `early` gives the residuals, laid out as `specs` say, then its results; `late` takes
    what was saved, which are the operands, residuals and results that `sources` name.
    """

    early: ClosedJaxpr
    late: ClosedJaxpr
    specs: tuple[P, ...]
    sources: tuple[tuple[str, int], ...]
    saved_specs: tuple[P, ...]

    def saved(self, operands: Sequence, residuals: Sequence, results: Sequence) -> list:
        found = [*results, *residuals]
        return [operands[i] if kind == "in" else found[i] for kind, i in self.sources]


def _halved(early: ClosedJaxpr, late: ClosedJaxpr, ins: Sequence, outs: Sequence, params: dict) -> _Halves:
    n = len(outs)
    early, sources = forwarded(early, n, (True,) * n)
    specs = tuple([_residual_spec(a, params) for a in early.out_avals[n:]])
    lifted, late = _lifting_scalars(early, late, n, tuple(sources), specs)
    k = len(specs)
    lifted = reordered(lifted, tuple(range(len(ins))), (*range(n, n + k), *range(n)))
    saved_specs = tuple([ins[i] if kind == "in" else (*outs, *specs)[i] for kind, i in sources[n:]])
    return _Halves(lifted, late, specs, tuple(sources[n:]), saved_specs)


@state.traced_cache
def _lifting_scalars(
    primal: ClosedJaxpr, tangent: ClosedJaxpr, n: int, sources: tuple, specs: tuple
) -> tuple[ClosedJaxpr, ClosedJaxpr]:
    """The two halves of a linearized body; residuals that are scalars and differ leave it as vectors."""
    lifted = [bool(s) and not a.shape for a, s in zip(primal.out_avals[n:], specs, strict=True)]
    if not any(lifted):
        return primal, tangent

    def forward(*xs):
        results = eval_jaxpr(primal.jaxpr, primal.consts, *xs)
        return results[:n] + [expand_dims(r, (0,)) if up else r for r, up in zip(results[n:], lifted, strict=True)]

    waiting = [kind == "out" and i >= n and lifted[i - n] for kind, i in sources[n:]]

    def push(*xs):
        down = [squeeze(x, (0,)) if up else x for x, up in zip(xs, waiting, strict=False)]
        return eval_jaxpr(tangent.jaxpr, tangent.consts, *down, *xs[len(waiting) :])

    avals = list(tangent.in_avals)
    for i, up in enumerate(waiting):
        if up:
            avals[i] = avals[i].update(shape=(1,))
    return _retraced(forward, primal.in_avals, "linearize"), _retraced(push, avals, "linearize")


@state.traced_cache
def _summed(closed: ClosedJaxpr, specs: tuple, mesh: Any) -> ClosedJaxpr:
    """A transposed body whose results are summed over the mesh axes that their specs do not name."""
    rest = [tuple([n for n in mesh.axis_names if n not in named_in(s)]) for s in specs]
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
    copies = prod(size for name, size in mesh.shape_tuple if name not in named_in(spec))
    return ct if copies == 1 else div(ct, literal(ct, copies))


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
