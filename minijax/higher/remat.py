"""`checkpoint`: forget intermediate values going forward, compute them again going back."""

from collections.abc import Sequence
from itertools import repeat
from typing import Any

from minijax.base import cache, tree
from minijax.base.mask import Mask
from minijax.dispatch.call import names_in, partial_eval_custom_call, split_tangents
from minijax.hlo.emitter import jaxpr_body
from minijax.ir import state
from minijax.ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn
from minijax.ir.primitive import cotangents, is_linear
from minijax.ir.refs import is_ref
from minijax.ir.trace import constants_to_inputs, eval_jaxpr, trace_to_jaxpr
from minijax.primitives.convert import Copy
from minijax.primitives.zeros import nonzero_mask
from minijax.transforms.batch import batch_jaxpr
from minijax.transforms.discharge import TakesRefs, discharge_jaxpr, values_of
from minijax.transforms.jvp import jvp_jaxpr
from minijax.transforms.partial_eval import partial_eval_jaxpr
from minijax.transforms.partial_eval_custom import EqnParts, partial_eval_jaxpr_custom
from minijax.transforms.prune import prune_jaxpr
from minijax.transforms.transpose import transpose_jaxpr


@cache.weak_cache
def closed_of(jaxpr: Jaxpr) -> ClosedJaxpr:
    """The jaxpr, which has no constants, as a closed one; the same each time."""
    return ClosedJaxpr(jaxpr, [])


def opened(closed: ClosedJaxpr) -> tuple[Jaxpr, list]:
    """The jaxpr with its constants as leading inputs, and those constants."""
    return _opened(closed.jaxpr), closed.consts


@cache.weak_cache
def _opened(jaxpr: Jaxpr) -> Jaxpr:
    return constants_to_inputs(jaxpr)


class Remat(TakesRefs):
    """A jaxpr whose intermediate values are not kept for the backward pass but as `policy` says."""

    name = "remat2"
    multiple_results = True
    dce_inside = True
    unites = False

    def infer(self, *avals, jaxpr, **params):
        return jaxpr.out_avals

    def effects(self, *avals, jaxpr, **params):
        return jaxpr.effects

    def impl(self, *operands, jaxpr, **params):
        return eval_jaxpr(jaxpr, [], *operands)

    def lower(self, e, ins, outs, *operands, jaxpr, prevent_cse, differentiated, policy):
        if differentiated and (prevent_cse if isinstance(prevent_cse, bool) else any(prevent_cse)):
            operands = e.optimization_barrier(operands, ins)
        return jaxpr_body(e, jaxpr, [], operands)

    def _bind(self, closed: ClosedJaxpr, operands: Sequence, params: dict) -> list:
        jaxpr, consts = opened(closed)
        return self.bind_all([*consts, *operands], {**params, "jaxpr": jaxpr})

    def _on_values(self, operands, params):
        refs = [x for x in operands if is_ref(x)]
        if len(set(refs)) < len(refs):  # whose values could not tell what was written first
            return eval_jaxpr(params["jaxpr"], [], *operands)
        return super()._on_values(operands, params)

    def discharge(self, operands, refs, *, jaxpr, **params):
        n, (body, consts) = len(jaxpr.outvars), opened(discharge_jaxpr(closed_of(jaxpr)))
        flat = [*consts, *values_of(operands)]
        return flat, {**params, "jaxpr": body}, lambda results: (results[:n], results[n:])

    def jvp(self, primals, tangents, **params):
        nonzeros = nonzero_mask(tangents)
        closed = closed_of(params["jaxpr"])
        pushed, out_nonzeros = jvp_jaxpr(closed, nonzeros, (False,) * len(closed.outvars))
        results = self._bind(pushed, [*primals, *nonzeros.marked(tangents)], params)
        n = len(out_nonzeros)
        return split_tangents(results[:n], results[n:], out_nonzeros)

    def linearize(self, nonzeros, primals, **params):
        closed = closed_of(params["jaxpr"])
        pushed, out_nonzeros = jvp_jaxpr(closed, tuple(nonzeros), (False,) * len(closed.outvars))
        unknown = (False,) * len(primals) + (True,) * sum(nonzeros)
        parts = partial_eval_jaxpr_custom(pushed, unknown, params["policy"])
        results = eval_jaxpr(parts.known.jaxpr, parts.known.consts, *primals)
        n, known = len(out_nonzeros), parts.out_unknown.count(False)
        # What is linear in the tangents and does not depend on them is zero.
        out_nonzeros = out_nonzeros.merge(repeat(False), parts.out_unknown[n:])
        residuals = [*results[known:], *(primals[i] for i in parts.input_residuals)]

        def push(*tangents):
            return self._bind(parts.staged, [*residuals, *tangents], {**params, "differentiated": True})

        return results[:n], out_nonzeros, push

    def transpose(self, cts, *operands, **params):
        linear, nonzero = Mask([is_linear(x) for x in operands]), nonzero_mask(cts)
        closed, nonzero_in = _transposed(closed_of(params["jaxpr"]), linear, nonzero)
        results = self._bind(closed, [*linear.unmarked(operands), *nonzero.marked(cts)], params)
        return cotangents(operands, results, nonzero_in)

    def partial_eval(self, staging, operands, unknown_in, **params):
        parts = partial_eval_jaxpr_custom(closed_of(params["jaxpr"]), tuple(unknown_in), params["policy"])
        known, rest = Mask(unknown_in).partition(operands)
        results = eval_jaxpr(parts.known.jaxpr, parts.known.consts, *known)
        n = len(results) - parts.num_residuals
        jaxpr, consts = opened(parts.staged)
        staged_in = [*consts, *results[n:], *(known[i] for i in parts.input_residuals), *rest]
        unknown_outs = staging.process(self, staged_in, {**params, "jaxpr": jaxpr, "differentiated": True})
        return parts.out_unknown.merge(results[:n], unknown_outs)

    def batch(self, axis, operands, dims, **params):
        closed, out_batched = batch_jaxpr(closed_of(params["jaxpr"]), axis, tuple(dims))
        return self._bind(closed, operands, params), [0 if b else None for b in out_batched]

    def partial_eval_custom(self, eqn: JaxprEqn, unknown_in: Sequence[bool], policy: Any) -> EqnParts:
        def rebuilt(closed: ClosedJaxpr, staged: bool, out_unknown: Sequence[bool]) -> dict:
            return {**eqn.params, "jaxpr": closed.jaxpr, "differentiated": staged or eqn.params["differentiated"]}

        return partial_eval_custom_call(eqn, closed_of(eqn.params["jaxpr"]), unknown_in, policy, rebuilt)

    def names_axis(self, params):
        return names_in(closed_of(params["jaxpr"]))

    def dce(self, used, eqn: JaxprEqn):
        jaxpr, used_in = prune_jaxpr(eqn.params["jaxpr"], tuple(used))
        new = eqn.replace(
            params={**eqn.params, "jaxpr": jaxpr},
            effects=jaxpr.effects,
            invars=used_in.marked(eqn.invars),
            outvars=Mask(used).marked(eqn.outvars),
        )
        return list(used_in), new


@state.traced_cache
def _transposed(closed: ClosedJaxpr, linear: Mask, nonzero: Mask) -> tuple[ClosedJaxpr, Mask]:
    """The jaxpr (nonlinear operands, nonzero cotangents) -> nonzero cotangents of linear operands, and which those are.

    It computes what is not linear first.
    """
    parts = partial_eval_jaxpr(closed, linear, (False,) * len(closed.outvars))
    linear_in = (False,) * parts.num_residuals + (True,) * sum(linear)
    backwards, nonzero_in = transpose_jaxpr(parts.unknown, linear_in, tuple(parts.out_unknown.marked(nonzero)))
    known_avals = linear.unmarked(closed.in_avals)
    ct_avals = [a.to_ct_aval() for a in nonzero.marked(closed.out_avals)]

    def run(*args):
        results = eval_jaxpr(parts.known.jaxpr, parts.known.consts, *args[: len(known_avals)])
        residuals = results[len(results) - parts.num_residuals :]
        return eval_jaxpr(backwards.jaxpr, backwards.consts, *residuals, *args[len(known_avals) :])

    info = closed.debug_info._replace(arg_names=None, result_paths=None)
    jaxpr, consts = trace_to_jaxpr(run, [*known_avals, *ct_avals], info)
    pruned, _ = prune_jaxpr(jaxpr, (True,) * len(jaxpr.outvars), True)
    return ClosedJaxpr(pruned, consts), nonzero_in


class Name(Copy):
    """The value itself, under a name that policies can speak of."""

    def infer(self, x, *, name):
        return [x]

    def lower(self, e, ins, outs, x, *, name):
        return [x]

    def jvp(self, primals, tangents, *, name):
        return self.bind_all(primals, dict(name=name)), list(tangents)

    def transposed(self, ct, aval, *, name):
        return ct

    def batch(self, axis, operands, dims, *, name):
        return self.bind_all(operands, dict(name=name)), dims


remat_p = Remat()
name_p = Name("name")


def checkpoint_name(x: Any, name: str) -> Any:
    """The leaves of `x`, named for the policies of `checkpoint`."""
    return tree.tree_map(lambda leaf: name_p.bind(leaf, name=name), x)
