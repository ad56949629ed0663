"""`jit`: the primitive that calls a jaxpr."""

import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

from minijax.base import cache, config
from minijax.base.errors import JaxprTypeError
from minijax.base.mask import Mask
from minijax.calls.bodied import split_tangents
from minijax.calls.call import Call, forwarded
from minijax.dispatch.operations import run_closed
from minijax.dispatch.placement import ProgramOptions, requests
from minijax.ir import state
from minijax.ir.check import same_types
from minijax.ir.context import path
from minijax.ir.jaxpr import ClosedJaxpr, Var
from minijax.ir.primitive import Axis, cotangents, is_undefined_primal
from minijax.ir.trace import eval_jaxpr
from minijax.ir.types import Zero, hi_classes, typeof
from minijax.partition.meshes import axes_of, context_mesh
from minijax.partition.shardings import UNSPECIFIED
from minijax.primitives.sharding import with_batch_dim
from minijax.primitives.zeros import nonzero_mask
from minijax.transforms.batch import batch_jaxpr_axes
from minijax.transforms.discharge import DischargeableCall
from minijax.transforms.jvp import jvp_jaxpr
from minijax.transforms.linearize import linearize_jaxpr
from minijax.transforms.partial_eval import PartialEval, partial_eval_jaxpr, permute_jaxpr
from minijax.transforms.partial_eval_custom import EqnParts
from minijax.transforms.prune import prune_closed
from minijax.transforms.transpose import transpose_jaxpr

_disable_jit = config.option("disable_jit")


class JitOptions(NamedTuple):
    """The options of `jit`; those that name arguments are resolved by the caller."""

    keep_unused: bool = False
    inline: bool = False
    device: Any = None
    backend: str | None = None
    compiler_options: tuple[tuple[str, Any], ...] = ()
    in_shardings: Any = None
    out_shardings: Any = None
    caller: str = "jit"


def call_params(
    closed: ClosedJaxpr,
    name: str,
    donated: Sequence[bool] = (),
    keep_unused: bool = False,
    inline: bool = False,
    compiler_options: tuple = (),
    in_shardings: Sequence = (),
    out_shardings: Sequence = (),
    in_layouts: Sequence = (),
    out_layouts: Sequence = (),
) -> dict[str, Any]:
    """The parameters of a `jit` equation, under jax's names; missing shardings are unspecified."""
    n, m = len(closed.jaxpr.invars), len(closed.jaxpr.outvars)
    return dict(
        jaxpr=closed,
        in_shardings=(*in_shardings, *(UNSPECIFIED,) * (n - len(in_shardings))),
        out_shardings=(*out_shardings, *(UNSPECIFIED,) * (m - len(out_shardings))),
        in_layouts=(*in_layouts, *(None,) * (n - len(in_layouts))),
        out_layouts=(*out_layouts, *(None,) * (m - len(out_layouts))),
        donated_invars=tuple(donated) or (False,) * n,
        ctx_mesh=context_mesh(),
        name=name,
        keep_unused=keep_unused,
        inline=inline,
        compiler_options_kvs=compiler_options,
    )


class Jit(Call, DischargeableCall):
    """Calls a jaxpr, compiled as one program."""

    name = "jit"
    inherits_names = "jaxpr"

    def label(self, stack, params):
        return path((*stack, f"jit({params['name']})"))

    def record(self, trace, operands, params):
        return trace.inline(params["jaxpr"], operands) if _is_inlined(params) else None

    def check_equation(self, avals, params):
        taken = params["jaxpr"].in_avals
        if len(taken) != len(avals):
            raise JaxprTypeError(
                f"Call primitive jit with {len(avals)} operands cannot call jaxpr with {len(taken)} inputs"
            )
        for have, aval in zip(avals, taken, strict=True):
            if not same_types([have], [aval]):
                raise JaxprTypeError(f"Call primitive jit passes operand of type {have} to jaxpr expecting type {aval}")

    def typed(self, avals, params):
        jaxpr = params["jaxpr"].jaxpr
        if hi_classes:
            self._note_changes(avals, params)
        return [v.aval for v in jaxpr.outvars], jaxpr.effects

    def at_once(self, *operands, jaxpr, name, donated_invars, keep_unused, compiler_options_kvs, in_shardings,
             out_shardings, in_layouts, out_layouts, **params):  # fmt: skip
        if _disable_jit.value:
            return eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *operands)
        how = (name, donated_invars, keep_unused, compiler_options_kvs, in_shardings, out_shardings, in_layouts,
               out_layouts)  # fmt: skip
        return run_closed(jaxpr, operands, how, program_options)

    def lower(self, e, ins, outs, *operands, jaxpr, name, in_shardings, out_shardings, **params):
        return e.call_jaxpr(jaxpr, name, operands, specified(in_shardings), specified(out_shardings))

    def jaxprs(self, params):
        return (params["jaxpr"].jaxpr,)

    def shardings(self, params):
        ins, outs = params["in_shardings"], params["out_shardings"]
        if ins.count(UNSPECIFIED) == len(ins) and outs.count(UNSPECIFIED) == len(outs):
            return ()
        return [s for s in (*params["in_shardings"], *params["out_shardings"]) if s is not UNSPECIFIED]

    def calling(self, params, closed, operands, ins, outs):
        name, donated, shardings = params["name"], params["donated_invars"], params["in_shardings"]
        kept = params["keep_unused"], params["inline"], params["compiler_options_kvs"]
        if True not in donated and not any(map(specified, (shardings, params["out_shardings"]))):
            return list(operands), call_params(closed, name, (), *kept)
        in_shardings, out_shardings = (
            [UNSPECIFIED if i is None else all_shardings[i] for i in places]
            for all_shardings, places in ((shardings, ins), (params["out_shardings"], outs))
        )
        donated = [i is not None and donated[i] for i in ins]
        return list(operands), call_params(closed, name, donated, *kept, in_shardings, out_shardings)

    def parts(self, params):
        # The unknown part may read operands of the known part again, so neither may donate them.
        params = {**params, "donated_invars": (False,) * len(params["donated_invars"])}
        return params, params

    def jvp(self, primals, tangents, **params):
        nonzeros = nonzero_mask(tangents)
        call, out_nonzeros = _pushed_call(params["jaxpr"], nonzeros, _key_of(params))
        results, n = self.bind_all([*primals, *nonzeros.marked(tangents)], call), len(out_nonzeros)
        return split_tangents(results[:n], results[n:], out_nonzeros)

    def linearize(self, nonzeros, primals, **params):
        calls = _linear_calls(params["jaxpr"], Mask(nonzeros), _key_of(params))
        results = self.bind_all(primals, calls.primal)
        values, n = results, len(calls.out_nonzeros)
        if calls.sources is not None:
            at = {"in": primals, "out": results, "const": calls.consts}
            values = [at[kind][i] for kind, i in calls.sources]
        outs, residuals = values[:n], values[n:]
        return outs, calls.out_nonzeros, lambda *tangents: self.bind_all([*residuals, *tangents], calls.tangent)

    def transpose(self, cts, *operands, **params):
        linear, nonzero = Mask(map(is_undefined_primal, operands)), nonzero_mask(cts)
        avals = tuple([ct.aval if type(ct) is Zero else typeof(ct) for ct in cts])
        closed, nonzero_in = transpose_jaxpr(params["jaxpr"], linear, nonzero, False, avals)
        known, linear_ins = linear.partition(params["in_shardings"])
        shardings = [*known, *nonzero.marked(params["out_shardings"])], nonzero_in.marked(linear_ins)
        kept = params["name"], (), params["keep_unused"], params["inline"], params["compiler_options_kvs"]
        values = [*linear.unmarked(operands), *nonzero.marked(cts)]
        return cotangents(operands, self.bind_all(values, call_params(closed, *kept, *shardings)), nonzero_in)

    def batch(self, axis, operands, dims, **params):
        call, out_dims = _batched_call(params["jaxpr"], axis, tuple(dims), _key_of(params))
        return self.bind_all(operands, call), list(out_dims)

    def partial_eval(self, staging, operands, unknown_in, **params):
        closed, unknown = params["jaxpr"], Mask(unknown_in)
        pe = partial_eval_jaxpr(closed, unknown, (False,) * len(closed.outvars))
        if _is_inlined(params) and (not any(unknown) or all(pe.out_unknown)):
            return (staging if any(unknown) else state.current_trace()).process(self, operands, params)
        known_params, unknown_params = self.parts(params)
        known_ins, unknown_ins = unknown.partition(range(len(unknown)))
        known_outs, unknown_outs = pe.out_unknown.partition(range(len(pe.out_unknown)))
        known, rest = unknown.partition(operands)
        sources, params = _known_call(pe.known, known_ins, known_outs, known_params, _forwarded_constants(pe, closed))
        at = {"in": known, "out": self.bind_all(known, params), "const": closed.consts}
        values = [at[kind][i] for kind, i in sources]
        outs, residuals = values[: len(known_outs)], values[len(known_outs) :]
        if not unknown_outs and not pe.unknown.effects:
            return outs
        k = pe.num_residuals
        # (residuals, unknown operands) -> (unknown operands, residuals)
        body = permute_jaxpr(pe.unknown, (*range(k, len(pe.unknown.invars)), *range(k)))
        ins = [*unknown_ins, *(None for _ in residuals)]
        call = self.calling(unknown_params, body, [*rest, *map(staging.instantiated, residuals)], ins, unknown_outs)
        return pe.out_unknown.merge(outs, staging.process(self, *call))

    def partial_eval_custom(self, eqn, unknown_in, policy):
        parts = cast("EqnParts", super().partial_eval_custom(eqn, unknown_in, policy))
        return parts._replace(
            staged=[e.replace(params={**e.params, "jaxpr": _copied(e.params["jaxpr"])}) for e in parts.staged]
        )

    def show_params(self, eqn):
        shown = [("jaxpr", eqn.params["jaxpr"])]
        if any(eqn.params["donated_invars"]):
            shown.append(("donated_invars", eqn.params["donated_invars"]))
        if eqn.params["keep_unused"]:
            shown.append(("keep_unused", True))
        if eqn.params["ctx_mesh"] is not None:
            shown.append(("ctx_mesh", eqn.params["ctx_mesh"]))
        for name in ("in_shardings", "out_shardings"):
            if specified(eqn.params[name]):
                shown.append((name, eqn.params[name]))
        shown += [(name, eqn.params[name]) for name in ("in_layouts", "out_layouts") if any(eqn.params[name])]
        return [("name", eqn.params["name"]), *sorted(shown, key=lambda item: item[0])]


jit_p = Jit()


@cache.weak_cache
def _copied(closed: ClosedJaxpr) -> ClosedJaxpr:
    """A jaxpr of its own for a staged call: jaxprs that are one object are printed once, and jax's are two."""
    return closed.replace(jaxpr=closed.jaxpr.replace())


def _is_inlined(params: dict) -> bool:
    return params["inline"] and not (hi_classes and params["jaxpr"].is_high)


def specified(shardings: Sequence) -> tuple:
    """The shardings with None for those that are unspecified; () if all are."""
    if shardings.count(UNSPECIFIED) == len(shardings):
        return ()
    return tuple([None if s is UNSPECIFIED else s for s in shardings])


def program_options(
    name: str,
    donated: Sequence[bool],
    keep_unused: bool,
    compiler_options: tuple,
    ins: Sequence,
    outs: Sequence,
    in_layouts: Sequence = (),
    out_layouts: Sequence = (),
) -> ProgramOptions:
    """The options of a program from the parameters of a `jit` equation."""
    in_requests, out_requests = requests(ins, in_layouts, donated), requests(outs, out_layouts)
    return ProgramOptions(name, in_requests, out_requests, keep_unused, compiler_options=compiler_options)


def _batched_shardings(shardings: Sequence, axis: Axis, dims: Sequence) -> list:
    """The shardings of batched values."""
    names = () if axis.spmd_name is None else axes_of(axis.spmd_name)
    return [
        s if s is UNSPECIFIED or d is None else with_batch_dim(s, d, names, None)
        for s, d in zip(shardings, dims, strict=True)
    ]


_KEY_PARAMS = "name donated_invars keep_unused inline compiler_options_kvs in_shardings out_shardings".split()


_key_of: Callable[[dict], tuple] = operator.itemgetter(*_KEY_PARAMS)
"""The parameters of a call without its jaxpr, as a cache key: entries must not keep the jaxpr alive."""


def _known_call(
    closed: ClosedJaxpr, ins: Sequence[int], outs: Sequence[int], params: dict, consts: Sequence
) -> tuple[tuple, dict]:
    """The sources of results and residuals of a body, operands -> (results, residuals), and its call's parameters.

    The call does not return residuals that are among `consts`.
    """
    is_specified = tuple([params["out_shardings"][i] is not UNSPECIFIED for i in outs])
    closed, given = _without_constants(closed, len(outs), consts) if consts else (closed, [])
    closed, sources = forwarded(closed, len(outs), is_specified)
    own = [i for i, (kind, _) in zip(outs, sources, strict=False) if kind == "out"]
    if given:
        residuals = iter(sources[len(outs) :])
        sources = *sources[: len(outs)], *(next(residuals) if i is None else ("const", i) for i in given)
    return sources, jit_p.calling(params, closed, (), ins, own)[1]


def _without_constants(closed: ClosedJaxpr, count: int, consts: Sequence) -> tuple[ClosedJaxpr, list[int | None]]:
    """A jaxpr without those results after the first `count` that are among `consts`, and the places of all in `consts`.

    The places are an empty list if no result is a constant.
    """
    at = {id(c): i for i, c in enumerate(consts)}
    places = {v: at[id(c)] for v, c in zip(closed.constvars, closed.consts, strict=True) if id(c) in at}
    given = [places.get(v) if type(v) is Var else None for v in closed.jaxpr.outvars[count:]]
    if given.count(None) == len(given):
        return closed, []
    left = [True] * count + [i is None for i in given]
    return prune_closed(closed, tuple(left), True)[0], given


def _forwarded_constants(parts: PartialEval, closed: ClosedJaxpr) -> Sequence:
    """The constants of a body whose known part need not return them: as in jax none, unless it forwards an operand."""
    if not closed.consts or not parts.num_residuals:
        return ()
    operands, outvars = set(parts.known.jaxpr.invars), parts.known.jaxpr.outvars
    return closed.consts if any(v in operands for v in outvars[-parts.num_residuals :] if type(v) is Var) else ()


class _LinearCalls(NamedTuple):
    """The parameters of the two equations of a linearized call, and the sources of results and residuals.

    `sources` is None if these are the results of the first equation in their order. Residuals that are constants of the
    body are operands of the second equation and no results of the first.
    """

    primal: dict[str, Any]
    sources: tuple | None
    tangent: dict[str, Any]
    out_nonzeros: Mask
    consts: list


@state.traced_cache
def _linear_calls(closed: ClosedJaxpr, nonzeros: Mask, how: tuple) -> _LinearCalls:
    params, parts = dict(zip(_KEY_PARAMS, how, strict=True)), linearize_jaxpr(closed, nonzeros, closes=False)
    every, outs = range(len(nonzeros)), range(len(parts.out_nonzeros))
    sources, call = _known_call(parts.primal, every, outs, params, closed.consts)
    ins = [*(None for _ in sources[len(outs) :]), *nonzeros.marked(every)]
    pushed = jit_p.parts(params)[1], parts.tangent, (), ins, parts.out_nonzeros.marked(outs)
    in_order = tuple([("out", i) for i in range(len(call["jaxpr"].jaxpr.outvars))])
    ordered = None if tuple(sources) == in_order else sources
    return _LinearCalls(call, ordered, jit_p.calling(*pushed)[1], parts.out_nonzeros, closed.consts)


@state.traced_cache
def _pushed_call(closed: ClosedJaxpr, nonzeros: Mask, how: tuple) -> tuple[dict[str, Any], Mask]:
    pushed, out_nonzeros = jvp_jaxpr(closed, nonzeros, (False,) * len(closed.outvars))
    every, results = range(len(nonzeros)), range(len(out_nonzeros))
    ins, outs = [*every, *nonzeros.marked(every)], [*results, *out_nonzeros.marked(results)]
    return jit_p.calling(dict(zip(_KEY_PARAMS, how, strict=True)), pushed, (), ins, outs)[1], out_nonzeros


@state.traced_cache
def _batched_call(closed: ClosedJaxpr, axis: Axis, dims: tuple, how: tuple) -> tuple[dict[str, Any], tuple]:
    batched, out_dims = batch_jaxpr_axes(closed, axis, dims)
    shardings = _batched_shardings(how[-2], axis, dims), _batched_shardings(how[-1], axis, out_dims)
    name, donated, keep_unused, inline, options, *_ = how
    return call_params(batched, name, donated, keep_unused, inline, options, *shardings), out_dims
