"""`jit`: the primitive that calls a jaxpr."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from minijax.base import cache, config
from minijax.base.linear_util import WrappedFun, wrap_init
from minijax.dispatch.operations import run_closed
from minijax.dispatch.placement import ProgramOptions
from minijax.ir import state
from minijax.ir.jaxpr import ClosedJaxpr, JaxprEqn, Var
from minijax.ir.primitive import Axis, Primitive, cotangents, is_linear
from minijax.ir.trace import eval_jaxpr
from minijax.ir.types import Zero, typeof
from minijax.partition.meshes import axes_of
from minijax.partition.shardings import UNSPECIFIED
from minijax.primitives.sharding import widened
from minijax.transforms.batch import batch_jaxpr_axes
from minijax.transforms.discharge import TakesRefs, discharge_jaxpr, values_of
from minijax.transforms.jvp import jvp_jaxpr
from minijax.transforms.linearize import linearize_jaxpr
from minijax.transforms.partial_eval import partial_eval_jaxpr, permute_jaxpr
from minijax.transforms.partial_eval_custom import EqnParts, Policy, partial_eval_jaxpr_custom
from minijax.transforms.prune import prune_closed
from minijax.transforms.transpose import transpose_jaxpr

_disable_jit = config.option("disable_jit")


class JitOptions(NamedTuple):
    """What `jit` was told besides the function; arguments of static ones are resolved by the caller."""

    keep_unused: bool = False
    inline: bool = False
    device: Any = None
    backend: str | None = None
    compiler_options: tuple[tuple[str, Any], ...] = ()
    in_shardings: Any = None
    out_shardings: Any = None


def call_params(
    closed: ClosedJaxpr,
    name: str,
    donated: Sequence[bool] = (),
    keep_unused: bool = False,
    inline: bool = False,
    compiler_options: tuple = (),
    in_shardings: Sequence = (),
    out_shardings: Sequence = (),
) -> dict[str, Any]:
    """The parameters of a `jit` equation, under jax's names; shardings that are missing are unspecified."""
    n, m = len(closed.jaxpr.invars), len(closed.jaxpr.outvars)
    return dict(
        jaxpr=closed,
        in_shardings=(*in_shardings, *(UNSPECIFIED,) * (n - len(in_shardings))),
        out_shardings=(*out_shardings, *(UNSPECIFIED,) * (m - len(out_shardings))),
        in_layouts=(None,) * n,
        out_layouts=(None,) * m,
        donated_invars=tuple(donated) or (False,) * n,
        ctx_mesh=None,
        name=name,
        keep_unused=keep_unused,
        inline=inline,
        compiler_options_kvs=compiler_options,
    )


class Jit(TakesRefs):
    """Calls a jaxpr, compiled as one program."""

    name = "jit"
    multiple_results = True
    dce_inside = True
    unites = False
    names_alike = "jaxpr"
    inlinable = True

    def label(self, params):
        return f"jit({params['name']})"

    def typed(self, avals, params):
        jaxpr = params["jaxpr"].jaxpr
        return [v.aval for v in jaxpr.outvars], jaxpr.effects

    def impl(self, *operands, jaxpr, name, donated_invars, keep_unused, compiler_options_kvs, in_shardings,
             out_shardings, **params):  # fmt: skip
        if _disable_jit.value:
            return eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *operands)
        how = (name, donated_invars, keep_unused, compiler_options_kvs, in_shardings, out_shardings)
        return run_closed(jaxpr, operands, how, _program_options)

    def lower(self, e, ins, outs, *operands, jaxpr, name, in_shardings, out_shardings, **params):
        return e.call_jaxpr(jaxpr, name, operands, specified(in_shardings), specified(out_shardings))

    def shardings(self, params):
        return [s for s in (*params["in_shardings"], *params["out_shardings"]) if s is not UNSPECIFIED]

    def _rebuilt(
        self,
        params: dict,
        closed: ClosedJaxpr,
        donated: Sequence[bool] = (),
        in_shardings: Sequence = (),
        out_shardings: Sequence = (),
    ) -> dict:
        return call_params(closed, params["name"], donated, params["keep_unused"], params["inline"],
                           params["compiler_options_kvs"], in_shardings, out_shardings)  # fmt: skip

    def discharge(self, operands, refs, **params):
        closed, n = params["jaxpr"], len(params["jaxpr"].outvars)
        made = self._rebuilt(
            params, discharge_jaxpr(closed), params["donated_invars"], params["in_shardings"], params["out_shardings"]
        )
        return values_of(operands), made, lambda results: (results[:n], results[n:])

    def jvp(self, primals, tangents, **params):
        nonzeros = tuple(type(t) is not Zero for t in tangents)
        closed, out_nonzeros = jvp_jaxpr(params["jaxpr"], nonzeros, (False,) * len(params["jaxpr"].outvars))
        donated = params["donated_invars"]
        operands = [*primals, *(t for t in tangents if type(t) is not Zero)]
        flags = (*donated, *chosen(donated, nonzeros))
        ins, outs = params["in_shardings"], params["out_shardings"]
        results = self.bind_all(
            operands,
            self._rebuilt(params, closed, flags, (*ins, *chosen(ins, nonzeros)), (*outs, *chosen(outs, out_nonzeros))),
        )
        n = len(out_nonzeros)
        return split_tangents(results[:n], results[n:], out_nonzeros)

    def linearize(self, nonzeros, primals, **params):
        parts = _linear_calls(params["jaxpr"], tuple(nonzeros), *_how(params))
        results = self.bind_all(primals, parts.primal)
        values = [primals[i] if kind == "in" else results[i] for kind, i in parts.sources]
        n = len(parts.out_nonzeros)
        outs, residuals = values[:n], values[n:]
        return (outs, parts.out_nonzeros, lambda *tangents: self.bind_all([*residuals, *tangents], parts.tangent))

    def transpose(self, cts, *operands, **params):
        linear = tuple(map(is_linear, operands))
        nonzero = tuple(type(ct) is not Zero for ct in cts)
        avals = tuple([ct.aval if type(ct) is Zero else typeof(ct) for ct in cts])
        closed, found = transpose_jaxpr(params["jaxpr"], linear, nonzero, False, avals)
        known = [x for x in operands if not is_linear(x)]
        ins = params["in_shardings"]
        results = self.bind_all(
            [*known, *(ct for ct in cts if type(ct) is not Zero)],
            self._rebuilt(
                params,
                closed,
                (),
                (*chosen(ins, [not lin for lin in linear]), *chosen(params["out_shardings"], nonzero)),
                chosen(chosen(ins, linear), found),
            ),
        )
        return cotangents(operands, results, found)

    def batch(self, axis, operands, dims, **params):
        batched, out_dims = _batched_call(params["jaxpr"], axis, tuple(dims), *_how(params))
        return self.bind_all(operands, batched), list(out_dims)

    def partial_eval(self, staging, operands, unknown_in, **params):
        closed = params["jaxpr"]
        parts = partial_eval_jaxpr(closed, tuple(unknown_in), (False,) * len(closed.outvars))
        n = len(parts.out_unknown) - sum(parts.out_unknown)
        known_out, wanted = [not unknown for unknown in parts.out_unknown], params["out_shardings"]
        primal, sources = forwarded(parts.known, n, _held(chosen(wanted, known_out)))
        known = [x for x, unknown in zip(operands, unknown_in, strict=True) if not unknown]
        ins = params["in_shardings"]
        results = self.bind_all(
            known,
            self._rebuilt(
                params,
                primal,
                (),
                chosen(ins, [not unknown for unknown in unknown_in]),
                _of_results(chosen(wanted, known_out), sources),
            ),
        )
        values = [known[i] if kind == "in" else results[i] for kind, i in sources]
        outs, residuals = values[:n], values[n:]
        k = parts.num_residuals
        # (residuals, unknown operands) -> (unknown operands, residuals)
        body = permute_jaxpr(parts.unknown, (*range(k, len(parts.unknown.invars)), *range(k)))
        rest_in = [x for x, unknown in zip(operands, unknown_in, strict=True) if unknown]
        unknown_outs = iter(
            staging.process(
                self,
                [*rest_in, *residuals],
                self._rebuilt(params, body, (), chosen(ins, unknown_in), chosen(wanted, parts.out_unknown)),
            )
        )
        rest = iter(outs)
        return [next(unknown_outs) if unknown else next(rest) for unknown in parts.out_unknown]

    def names_axis(self, params):
        return names_in(params["jaxpr"])

    def dce(self, used, eqn):
        closed, used_inputs = prune_closed(eqn.params["jaxpr"], used)
        params = eqn.params
        if closed is params["jaxpr"]:
            return list(used_inputs), eqn
        donated = chosen(params["donated_invars"], used_inputs)
        new = eqn.replace(
            params=self._rebuilt(
                params,
                closed,
                donated,
                chosen(params["in_shardings"], used_inputs),
                chosen(params["out_shardings"], used),
            ),
            effects=closed.effects,
            invars=[v for v, u in zip(eqn.invars, used_inputs, strict=True) if u],
            outvars=[v for v, u in zip(eqn.outvars, used, strict=True) if u],
        )
        return list(used_inputs), new

    def partial_eval_custom(self, eqn, unknown_in, policy):
        ins, outs = eqn.params["in_shardings"], eqn.params["out_shardings"]

        def rebuilt(closed, staged, out_unknown):
            mine = chosen(ins, [u is staged for u in unknown_in])
            if staged:
                mine = (*(UNSPECIFIED,) * (len(closed.in_avals) - len(mine)), *mine)
            wanted = chosen(outs, out_unknown if staged else [not u for u in out_unknown])
            return self._rebuilt(eqn.params, closed, (), mine, wanted)

        return partial_eval_custom_call(eqn, eqn.params["jaxpr"], unknown_in, policy, rebuilt)

    def show_params(self, eqn):
        shown = [("jaxpr", eqn.params["jaxpr"])]
        if any(eqn.params["donated_invars"]):
            shown.append(("donated_invars", eqn.params["donated_invars"]))
        if eqn.params["keep_unused"]:
            shown.append(("keep_unused", True))
        for name in ("in_shardings", "out_shardings"):
            if specified(eqn.params[name]):
                shown.append((name, eqn.params[name]))
        return [("name", eqn.params["name"]), *sorted(shown, key=lambda item: item[0])]


def partial_eval_custom_call(
    eqn: JaxprEqn,
    jaxpr: ClosedJaxpr,
    unknown_in: Sequence[bool],
    policy: Policy | None,
    rebuilt: Callable[[ClosedJaxpr, bool, Sequence[bool]], dict],
) -> EqnParts:
    """The parts of an equation that calls a jaxpr.

    `rebuilt(jaxpr, staged, out_unknown)` gives the parameters of a part.
    """
    parts = partial_eval_jaxpr_custom(jaxpr, tuple(unknown_in), policy, (True,) * len(eqn.outvars))
    known_in = [v for v, u in zip(eqn.invars, unknown_in, strict=True) if not u]
    known_out = [v for v, u in zip(eqn.outvars, parts.out_unknown, strict=True) if not u]
    inputs = {v: i for i, v in enumerate(parts.known.jaxpr.invars)}
    outvars = parts.known.jaxpr.outvars
    found = dict(zip(outvars, known_out, strict=False))
    fresh, residuals = [], []
    for v in outvars[len(known_out) :]:
        if v not in inputs and v not in found:
            found[v] = Var(v.aval)
            fresh.append(v)
        residuals.append(known_in[inputs[v]] if v in inputs else found[v])
    primal = parts.known.jaxpr.replace(outvars=[*outvars[: len(known_out)], *fresh])
    staged_in = [*residuals, *(known_in[i] for i in parts.input_residuals)]
    staged_in += [v for v, u in zip(eqn.invars, unknown_in, strict=True) if u]
    saved = [found[v] for v in fresh]
    known_params = rebuilt(ClosedJaxpr(primal, parts.known.consts), False, parts.out_unknown)
    known = eqn.replace(params=known_params, invars=known_in, outvars=[*known_out, *saved])
    staged = eqn.replace(params=rebuilt(parts.staged, True, parts.out_unknown), invars=staged_in)
    unknown = [v for v, u in zip(eqn.outvars, parts.out_unknown, strict=True) if u]
    return EqnParts([known], [staged], unknown, saved, False)


class CallPrimitive(Primitive):
    """A call whose operations take its place: to bind it is to run the function."""

    multiple_results = True
    call_primitive = True
    skip_canonicalization = True

    def bind(self, *operands: Any, subfuns: Sequence[WrappedFun], **params: Any) -> list:
        return call_impl(*subfuns, *operands)

    def rebind(self, trace, operands, params):
        with state.set_current_trace(trace):
            return self._run(params["call_jaxpr"], *operands)

    @staticmethod
    def _run(program, *operands):
        closed = program if isinstance(program, ClosedJaxpr) else ClosedJaxpr(program)
        return eval_jaxpr(closed.jaxpr, closed.consts, *operands)

    def get_bind_params(self, params):
        return dict(subfuns=(wrap_init(functools.partial(self._run, params["call_jaxpr"])),))


def call_impl(f: WrappedFun, *args: Any, **params: Any) -> list:
    """What a call does: runs the function."""
    return f.call_wrapped(*args)


jit_p = Jit()
call_p, closed_call_p = CallPrimitive("call"), CallPrimitive("closed_call")
call = call_p.bind


def split_tangents(results: Sequence, tangents: Sequence, nonzeros: Sequence[bool]) -> tuple[list, list]:
    """Results and their tangents, with `Zero` where there is none."""
    rest = iter(tangents)
    return list(results), [
        next(rest) if nz else Zero(typeof(r).to_tangent_aval()) for r, nz in zip(results, nonzeros, strict=True)
    ]


def chosen(values: Sequence, mask: Sequence[bool]) -> tuple:
    """The values where the mask is true."""
    return tuple([v for v, take in zip(values, mask, strict=True) if take])


def specified(shardings: Sequence) -> tuple:
    """The shardings with None for those that are unspecified; () if all are."""
    if all(s is UNSPECIFIED for s in shardings):
        return ()
    return tuple([None if s is UNSPECIFIED else s for s in shardings])


def _program_options(name, donated, keep_unused, compiler_options, in_shardings, out_shardings):
    return ProgramOptions(
        name,
        donated if any(donated) else (),
        keep_unused,
        None,
        compiler_options,
        specified(in_shardings),
        specified(out_shardings),
    )


def _held(shardings: Sequence) -> tuple[bool, ...]:
    """Which results the call itself must make, for it lays them out."""
    return tuple([s is not UNSPECIFIED for s in shardings])


def _of_results(shardings: Sequence, sources: Sequence) -> list:
    """The shardings of the results that `forwarded` left."""
    return [s for s, (kind, _) in zip(shardings, sources, strict=False) if kind == "out"]


def _widened(shardings: Sequence, axis: Axis, dims: Sequence) -> list:
    """The shardings of batched values."""
    names = () if axis.spmd_name is None else axes_of(axis.spmd_name)
    return [
        s if s is UNSPECIFIED or d is None else widened(s, d, names, None) for s, d in zip(shardings, dims, strict=True)
    ]


@state.traced_cache
def forwarded(primal: ClosedJaxpr, results: int, held: tuple[bool, ...]) -> tuple[ClosedJaxpr, tuple]:
    """The jaxpr without outputs that are its inputs or repeat earlier ones, and where each one is to be
    found.

    Of the first `results` outputs, which are the function's own, only those that are inputs go, and not
    the ones that are `held`.
    """
    inputs = {v: i for i, v in enumerate(primal.jaxpr.invars)}
    kept: list[Any] = []
    at: dict[Any, int] = {}
    sources = []
    for n, v in enumerate(primal.jaxpr.outvars):
        if type(v) is Var and v in inputs and not (n < results and held[n]):
            sources.append(("in", inputs[v]))
        elif n >= results and v in at:
            sources.append(("out", at[v]))
        else:
            sources.append(("out", len(kept)))
            if type(v) is Var:
                at.setdefault(v, len(kept))
            kept.append(v)
    return ClosedJaxpr(primal.jaxpr.replace(outvars=kept), primal.consts), tuple(sources)


def _how(params: dict) -> tuple:
    """The parameters of a call, besides its jaxpr, in the order of `call_params`."""
    return (
        params["name"],
        params["donated_invars"],
        params["keep_unused"],
        params["inline"],
        params["compiler_options_kvs"],
        params["in_shardings"],
        params["out_shardings"],
    )


@state.traced_cache
def _batched_call(closed, axis, dims, *how) -> tuple[dict[str, Any], tuple]:
    batched, out_dims = batch_jaxpr_axes(closed, axis, dims)
    name, donated, keep_unused, inline, compiler_options, ins, outs = how
    shardings = _widened(ins, axis, dims), _widened(outs, axis, out_dims)
    return call_params(batched, name, donated, keep_unused, inline, compiler_options, *shardings), out_dims


class _LinearCalls(NamedTuple):
    """The parameters of the two equations that a call becomes, and where the values are to be found."""

    primal: dict[str, Any]
    sources: tuple
    tangent: dict[str, Any]
    out_nonzeros: tuple[bool, ...]


@state.traced_cache
def _linear_calls(closed, nonzeros, name, donated, keep_unused, inline, compiler_options, ins, wanted) -> _LinearCalls:
    split = linearize_jaxpr(closed, nonzeros)
    n = len(split.out_nonzeros)
    primal, sources = forwarded(split.primal, n, _held(wanted))
    how = keep_unused, inline, compiler_options
    tangents = chosen(ins, nonzeros)
    rest = (UNSPECIFIED,) * (len(split.tangent.invars) - len(tangents))
    return _LinearCalls(
        call_params(primal, name, donated, *how, ins, _of_results(wanted, sources)),
        sources,
        call_params(split.tangent, name, (), *how, (*rest, *tangents), chosen(wanted, split.out_nonzeros)),
        split.out_nonzeros,
    )


@cache.weak_cache
def names_in(closed: ClosedJaxpr) -> tuple:
    """The axis names that the equations of a jaxpr speak of."""
    found: dict[Any, None] = {}
    for eqn in closed.jaxpr.eqns:
        found.update(dict.fromkeys(eqn.primitive.names_axis(eqn.params)))
    return tuple(found)
