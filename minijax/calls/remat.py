"""`checkpoint`: discards intermediate values in the forward pass and recomputes them in the backward pass."""

from collections.abc import Sequence
from itertools import repeat
from typing import Any

from minijax.base import monitoring, source, tree
from minijax.base.mask import Mask
from minijax.calls.call import OpenCall, Places, closed_of
from minijax.ir import context, effects, state
from minijax.ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Var
from minijax.ir.primitive import cotangents, is_undefined_primal
from minijax.ir.refs import is_ref
from minijax.ir.rules import no_reverse_mode_error
from minijax.ir.trace import eval_jaxpr, trace_to_jaxpr
from minijax.primitives.convert import Copy
from minijax.primitives.elementwise import reduce_precision_p
from minijax.primitives.zeros import nonzero_mask
from minijax.transforms.batch import batch_jaxpr
from minijax.transforms.discharge import DischargeableCall
from minijax.transforms.jvp import jvp_jaxpr
from minijax.transforms.partial_eval import partial_eval_jaxpr
from minijax.transforms.partial_eval_custom import PartialEvalCustom, partial_eval_jaxpr_custom
from minijax.transforms.transpose import transpose_jaxpr


class Remat(OpenCall, DischargeableCall):
    """A jaxpr whose intermediate values are recomputed in the backward pass, unless `policy` saves them."""

    name = "remat2"

    def infer(self, *avals, jaxpr, prevent_cse, differentiated, policy):
        return jaxpr.out_avals

    def lower(self, e, ins, outs, *operands, jaxpr, prevent_cse, differentiated, policy):
        apart = Mask(
            [bool(p) for p in prevent_cse] if isinstance(prevent_cse, tuple) else [prevent_cse] * len(operands)
        )
        if differentiated and any(apart):
            kept, types = apart.marked(operands), apart.marked(ins)
            kept = e.optimization_barrier(kept, types)
            if e.explicit is not None:
                kept = e.constrained_by_type(kept, types)
            operands = apart.merge(apart.unmarked(operands), kept)
        return e.inlined(jaxpr, [], operands, "checkpoint")

    def _bind(self, closed: ClosedJaxpr, operands: Sequence, params: dict, ins: Places) -> list:
        return self.bind_all(*self.calling(params, closed, operands, ins, ()))

    def calling(self, params, closed, operands, ins, outs):
        operands, params = super().calling(params, closed, operands, ins, outs)
        flags = params["prevent_cse"]
        if isinstance(flags, tuple):  # new operands, tangents and cotangents are kept apart
            own = [i is None or i in ins[:n] or flags[i] for n, i in enumerate(ins)]
            params["prevent_cse"] = (*(False,) * (len(operands) - len(own)), *own)
        return operands, params

    def _on_values(self, operands, params):
        refs = [x for x in operands if is_ref(x)]
        if len(set(refs)) < len(refs):  # separate values of one reference would lose the order of its writes
            return eval_jaxpr(params["jaxpr"], [], *operands)
        return super()._on_values(operands, params)

    def linearize(self, nonzeros, primals, **params):
        closed = closed_of(params["jaxpr"])
        pushed, out_nonzeros = jvp_jaxpr(closed, tuple(nonzeros), (False,) * len(closed.outvars))
        _recomputable(params["jaxpr"])
        unknown = (False,) * len(primals) + (True,) * sum(nonzeros)
        parts = partial_eval_jaxpr_custom(pushed, unknown, params["policy"])
        log_residuals(parts, pushed.in_avals)
        results = eval_jaxpr(parts.known.jaxpr, parts.known.consts, *primals)
        n, known = len(out_nonzeros), parts.out_unknown.count(False)
        if any(parts.out_unknown[:n]):
            raise no_reverse_mode_error(self)
        # A result that is linear in the tangents and does not depend on them is zero.
        out_nonzeros = out_nonzeros.merge(repeat(False), parts.out_unknown[n:])
        residuals = [*results[known:], *(primals[i] for i in parts.input_residuals)]
        ins = [*repeat(None, len(results) - known), *parts.input_residuals, *repeat(None, sum(nonzeros))]

        def push(*tangents):
            with context.extended_name_stack(*context.current_context().name_stack):  # as jax's profiles name it
                return self._bind(parts.staged, [*residuals, *tangents], {**params, "differentiated": True}, ins)

        return results[:n], out_nonzeros, push

    def transpose(self, cts, *operands, **params):
        linear, nonzero = Mask([is_undefined_primal(x) for x in operands]), nonzero_mask(cts)
        closed, nonzero_in = _transposed(closed_of(params["jaxpr"]), linear, nonzero)
        cts = nonzero.marked(cts)
        ins = [*linear.unmarked(range(len(linear))), *repeat(None, len(cts))]
        results = self._bind(closed, [*linear.unmarked(operands), *cts], params, ins)
        return cotangents(operands, results, nonzero_in)

    def partial_eval(self, staging, operands, unknown_in, **params):
        parts = partial_eval_jaxpr_custom(_recomputable(params["jaxpr"]), tuple(unknown_in), params["policy"])
        known, rest = Mask(unknown_in).partition(operands)
        known_ins, unknown_ins = Mask(unknown_in).partition(range(len(operands)))
        log_residuals(parts, Mask(unknown_in).unmarked(params["jaxpr"].in_avals))
        results = eval_jaxpr(parts.known.jaxpr, parts.known.consts, *known)
        n = len(results) - parts.num_residuals
        staged_in = [*results[n:], *(known[i] for i in parts.input_residuals), *rest]
        ins = [*repeat(None, parts.num_residuals), *(known_ins[i] for i in parts.input_residuals), *unknown_ins]
        call = self.calling(self.parts(params)[1], parts.staged, staged_in, ins, ())
        return parts.out_unknown.merge(results[:n], staging.process(self, *call))

    def batch(self, axis, operands, dims, **params):
        closed, out_batched = batch_jaxpr(closed_of(params["jaxpr"]), axis, tuple(dims))
        return self._bind(closed, operands, params, range(len(operands))), [0 if b else None for b in out_batched]

    def parts(self, params):
        return params, {**params, "differentiated": True}


def _recomputable(jaxpr: Jaxpr) -> ClosedJaxpr:
    """The closed jaxpr. Raises NotImplementedError if it has effects that must not be repeated."""
    banned = effects.remat_allowed_effects.filter_not_in(jaxpr.effects)
    if banned:
        raise NotImplementedError(f"Effects not supported in partial-eval of `checkpoint`/`remat`: {banned}")
    return closed_of(jaxpr)


@state.traced_cache
def _transposed(closed: ClosedJaxpr, linear: Mask, nonzero: Mask) -> tuple[ClosedJaxpr, Mask]:
    """The jaxpr (nonlinear operands, nonzero cotangents) -> nonzero cotangents of linear operands, and their mask.

    It recomputes the nonlinear part first.
    """
    parts = partial_eval_jaxpr(closed, linear, (False,) * len(closed.outvars))
    linear_in = (False,) * parts.num_residuals + (True,) * sum(linear)
    backwards, nonzero_in = transpose_jaxpr(parts.unknown, linear_in, tuple(parts.out_unknown.marked(nonzero)))
    known_avals = linear.unmarked(closed.in_avals)
    ct_avals = [a.to_ct_aval() for a in nonzero.marked(closed.out_avals)]

    def run(*args):
        with context.extended_name_stack("rematted_computation"):
            results = eval_jaxpr(parts.known.jaxpr, parts.known.consts, *args[: len(known_avals)])
        residuals = results[len(results) - parts.num_residuals :]
        return eval_jaxpr(backwards.jaxpr, backwards.consts, *residuals, *args[len(known_avals) :])

    info = closed.debug_info._replace(arg_names=None, result_paths=None)
    jaxpr, consts = trace_to_jaxpr(run, [*known_avals, *ct_avals], info)
    return ClosedJaxpr(jaxpr, consts), nonzero_in


class Name(Copy):
    """The identity. Names a value for the policies of `checkpoint`."""

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
    """Names the leaves of `x` for the policies of `jax.checkpoint`, such as `save_only_these_names`.

    Example:
        >>> def f(x):
        ...     return jnp.sin(jax.ad_checkpoint.checkpoint_name(jnp.sin(x), "inner"))
        >>> policy = jax.checkpoint_policies.save_only_these_names("inner")
        >>> float(jax.grad(jax.checkpoint(f, policy=policy))(0.0))
        1.0
    """
    return tree.tree_map(lambda leaf: name_p.bind(leaf, name=name), x)


def origin(eqn: JaxprEqn, makers: dict[Var, JaxprEqn]) -> str:
    """Describes the operation that computed a saved value, and its source line. `makers`: equations by result."""
    place = source.summary(eqn.traceback, columns=True)
    if eqn.primitive is reduce_precision_p and eqn.invars[0] in makers:
        # Saved values are rounded by an operation that is not the user's.
        eqn = makers[eqn.invars[0]]
        place = source.summary(eqn.traceback, columns=True)
    if eqn.primitive.name == "name":
        return f"named '{eqn.params['name']}' from {place}"
    if eqn.primitive.name == "jit":
        return f"output of jitted function '{eqn.params['name']}' from {place}"
    return f"output of {eqn.primitive} from {place}"


def log_residuals(parts: PartialEvalCustom, known: Sequence[Any]) -> None:
    """Logs the residuals of a checkpointed function of inputs `known`, as warning if `jax_log_checkpoint_residuals`."""
    if not monitoring.logs_saved_values():
        return
    jaxpr = parts.known.jaxpr
    makers = {v: eqn for eqn in jaxpr.eqns for v in eqn.outvars}
    computed = jaxpr.outvars[len(jaxpr.outvars) - parts.num_residuals :]
    inputs = [f"  {known[i].str_short()}\n" for i in parts.input_residuals]
    saved = [f"  {v.aval.str_short()} from {origin(makers[v], makers)}\n" for v in computed if v in makers]
    messages = ["saving inputs with shapes:\n" + "".join(inputs)] if inputs else []
    messages += ["saving these intermediates:\n" + "".join(saved)] if saved else []
    monitoring.log_saved_values("remat-decorated function " + "and ".join(messages))
