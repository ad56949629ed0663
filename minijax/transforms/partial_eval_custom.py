"""Partial evaluation with a remat policy, which decides which known values are saved and which are recomputed.

Without a policy, nothing that can be recomputed is saved: `sin(x)` is computed again from the input.

>>> parts = partial_eval_jaxpr_custom(jax.make_jaxpr(lambda x, y: jnp.sin(x) * y)(1.0, 2.0), (False, True), None)
>>> parts.known
{ lambda ; a:f32[]. let in () }
>>> parts.staged
{ lambda ; a:f32[] b:f32[]. let c:f32[] = sin a; d:f32[] = mul c b in (d,) }
>>> save = jax.checkpoint_policies.everything_saveable
>>> partial_eval_jaxpr_custom(jax.make_jaxpr(lambda x, y: jnp.sin(x) * y)(1.0, 2.0), (False, True), save).known
{ lambda ; a:f32[]. let b:f32[] = sin a in (b,) }
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.base import dtypes
from minijax.base.mask import Mask
from minijax.ir import context, state
from minijax.ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, substituted
from minijax.partition.memory import Device, Host, MemorySpace
from minijax.partition.shardings import MEMORY_KINDS
from minijax.primitives.device import ALWAYS_COPY, device_put_p
from minijax.primitives.elementwise import reduce_precision_p
from minijax.transforms.discharge import discharged
from minijax.transforms.prune import prune_jaxpr

Policy = Callable[..., Any]


class PartialEvalCustom(NamedTuple):
    """The two parts of a jaxpr: the staged part rematerializes what it reads except residuals.

    `input_residuals` are the numbers of the known inputs that the staged part reads.
    """

    known: ClosedJaxpr  # known inputs -> (known results, residuals)
    staged: ClosedJaxpr  # (residuals, input residuals, unknown inputs) -> (unknown and instantiated results)
    out_unknown: Mask
    num_residuals: int
    input_residuals: tuple[int, ...]


class EqnParts(NamedTuple):
    """The known and staged equations for one equation, its unknown results, and the values that may be residuals.

    `needs_reduce_precision`: insert reduce_precision on residuals that known equations also read. It is always inserted
    on `forwarded_results`: known results that the staged equation does not recompute.
    """

    known: Sequence[JaxprEqn]
    staged: Sequence[JaxprEqn]
    unknown_out: Sequence[Var] = ()
    residuals: Sequence[Var] = ()
    needs_reduce_precision: bool = True
    forwarded_results: Sequence[Var] = ()


class RecomputeType:
    """Returned by a policy for results that are rematerialized."""


class SaveableType:
    """Returned by a policy for results that may be saved."""


class Offloadable(NamedTuple):
    """Is returned by a policy for results that may be offloaded from the memory kind `src` to `dst`.

    Example:
        >>> jax.ad_checkpoint.Offloadable(src="device", dst="pinned_host")
        Offloadable(src='device', dst='pinned_host')
    """

    src: Any
    dst: Any


Recompute, Saveable = RecomputeType(), SaveableType()


def policy_decision(policy: Policy, eqn: JaxprEqn) -> bool | Offloadable:
    """Applies the policy to an equation. Raises TypeError if a policy cannot return what it returned."""
    try:
        answer = policy(eqn.primitive, *(v.aval for v in eqn.invars), **eqn.params)
    except TypeError as error:
        if callable(policy):
            raise
        raise TypeError(f"{error}. A policy is a function, such as jax.checkpoint_policies.dots_saveable.") from None
    if isinstance(answer, bool | Offloadable):
        return answer
    if not isinstance(answer, RecomputeType | SaveableType):
        raise TypeError(
            "Value returned by a remat policy should be a bool or `ad_checkpoint.Recompute`, "
            f"`ad_checkpoint.Saveable` or `ad_checkpoint.Offloadable(...)`. Got {answer} of type {type(answer)}."
        )
    return isinstance(answer, SaveableType)


@state.traced_cache
def partial_eval_jaxpr_custom(
    closed: ClosedJaxpr, unknown_in: tuple[bool, ...], policy: Policy | None, instantiate: tuple[bool, ...] = ()
) -> PartialEvalCustom:
    """Splits a jaxpr for unknown inputs; known values that `policy` does not save are rematerialized.

    `instantiate` marks known results that the staged part returns too.
    """
    closed = discharged(closed)
    jaxpr, unknown_in = closed.jaxpr, Mask(unknown_in)
    unknown = set(unknown_in.marked(jaxpr.invars))
    known_eqns: list[JaxprEqn] = []
    staged_eqns: list[JaxprEqn] = []
    saveable: dict[Var, bool] = {}
    for eqn in jaxpr.eqns:
        parts = partial_eval_eqn(eqn, _mask_of(eqn.invars, unknown), policy)
        known_eqns += parts.known
        staged_eqns += parts.staged
        unknown.update(parts.unknown_out)
        saveable.update(dict.fromkeys(parts.residuals, parts.needs_reduce_precision))
        saveable.update(dict.fromkeys(parts.forwarded_results, True))
    out_unknown = _mask_of(jaxpr.outvars, unknown)
    staged_outs = out_unknown | (instantiate or out_unknown)
    staged, residuals, input_residuals = _staged_part(jaxpr, staged_eqns, staged_outs, unknown_in, saveable)
    read = {a for e in known_eqns for a in e.invars if type(a) is Var}
    known_eqns, renamed = _insert_reduce_precision(
        known_eqns, [v for v in residuals if saveable[v] and v in read and not instantiate]
    )
    outs = substituted(out_unknown.unmarked(jaxpr.outvars), renamed)
    outs += substituted(residuals, renamed)
    known = _with_inputs_and_outputs(jaxpr, unknown_in.unmarked(jaxpr.invars), known_eqns, outs)
    known, _ = prune_jaxpr(known, (True,) * len(known.outvars), True)
    known = ClosedJaxpr(known, closed.consts)
    staged = closed if _is_same(staged, jaxpr) else ClosedJaxpr(staged, closed.consts)
    return PartialEvalCustom(known, staged, out_unknown, len(residuals), input_residuals)


def _is_same(one: Jaxpr, other: Jaxpr) -> bool:
    """Returns whether two jaxprs have the same variables and the same objects as equations."""
    return one.invars == other.invars and one.outvars == other.outvars and one.eqns == other.eqns


def _with_inputs_and_outputs(jaxpr: Jaxpr, invars: Sequence, eqns: Sequence, outvars: Sequence) -> Jaxpr:
    info = jaxpr.debug_info._replace(arg_names=None, result_paths=None)
    return jaxpr.replace(invars=invars, eqns=eqns, outvars=outvars, debug_info=info)


def _mask_of(atoms: Sequence, variables: set[Var]) -> Mask:
    """A mask of the atoms that are among `variables`."""
    return Mask([type(a) is not Literal and a in variables for a in atoms])


def partial_eval_eqn(eqn: JaxprEqn, unknown_in: Mask, policy: Policy | None) -> EqnParts:
    """Splits an equation, by its primitive's rule unless that returns None."""
    rule = eqn.primitive.partial_eval_custom
    primitive = eqn.primitive
    if rule is not None and (primitive.splits_known or policy is not None or any(unknown_in) or hasattr(rule, "rule")):
        parts = rule(eqn, unknown_in, policy)
        if parts is not None:
            return parts
    if not any(unknown_in):
        keep = policy is not None and policy_decision(policy, eqn)
        if isinstance(keep, Offloadable):
            return _offloaded(eqn, keep)
        return EqnParts([eqn], [], [], eqn.outvars) if keep else EqnParts([eqn], [eqn])
    if not eqn.primitive.dce_inside:
        return EqnParts([], [eqn], eqn.outvars)
    out_unknown = Mask([_depends(eqn, i, unknown_in) for i in range(len(eqn.outvars))])
    known = []
    if not all(out_unknown):
        _, small = eqn.primitive.dce(list(~out_unknown), eqn)
        known = [small] if small is not None else []
    return EqnParts(known, [eqn], out_unknown.marked(eqn.outvars))


def _offloaded(eqn: JaxprEqn, places: Offloadable) -> EqnParts:
    """Splits an equation whose results are offloaded to another memory and fetched back."""

    def put(x: Var, y: Var, kind: Any) -> JaxprEqn:
        params = dict(copy_semantics=(ALWAYS_COPY,), devices=(_space_of_kind(kind),), srcs=(None,))
        return JaxprEqn([x], [y], device_put_p, params, frozenset(), None, context.EMPTY)

    saved = [Var(v.aval.in_space(_space_of_kind(places.dst))) for v in eqn.outvars]
    offload = [put(v, s, places.dst) for v, s in zip(eqn.outvars, saved, strict=True)]
    fetch = [put(s, v, places.src) for v, s in zip(eqn.outvars, saved, strict=True)]
    return EqnParts([eqn, *offload], fetch, [], saved, False)


def _space_of_kind(kind: Any) -> MemorySpace:
    return Host if kind == MEMORY_KINDS[Host] else Device


def _depends(eqn: JaxprEqn, result: int, unknown_in: Mask) -> bool:
    """Returns whether a result depends on an unknown operand."""
    used_in, _ = eqn.primitive.dce([i == result for i in range(len(eqn.outvars))], eqn)
    return any(unknown_in.marked(used_in))


def _staged_part(
    jaxpr: Jaxpr, eqns: Sequence[JaxprEqn], outs: Mask, unknown_in: Mask, saveable: dict[Var, bool]
) -> tuple[Jaxpr, list[Var], tuple[int, ...]]:
    """The staged jaxpr without dead equations, its residuals in order of use, and the numbers of known inputs read."""
    known_inputs, unknown_inputs = unknown_in.partition(jaxpr.invars)
    candidates = [v for v in saveable if v not in unknown_inputs]
    full = _with_inputs_and_outputs(
        jaxpr, [*candidates, *known_inputs, *unknown_inputs], eqns, outs.marked(jaxpr.outvars)
    )
    n, m = len(candidates), len(candidates) + len(known_inputs)
    keep = (False,) * m + (True,) * len(unknown_inputs)
    staged, used = prune_jaxpr(full, (True,) * len(full.outvars), keep)
    order = {v: i for i, v in reversed(list(enumerate(a for e in staged.eqns for a in e.invars if type(a) is Var)))}
    residuals = [v for v, u in zip(candidates, used, strict=False) if u]
    residuals.sort(key=lambda v: order.get(v, len(order)))
    staged = staged.replace(invars=[*residuals, *staged.invars[len(residuals) :]])
    return staged, residuals, tuple([i for i, u in enumerate(used[n:m]) if u])


def _insert_reduce_precision(
    eqns: Sequence[JaxprEqn], residuals: Sequence[Var]
) -> tuple[list[JaxprEqn], dict[Var, Var]]:
    """Inserts reduce_precision on float residuals: XLA must not keep more bits of them for the known equations.

    Returns the equations, and new names of the residuals.
    """
    floats = {v for v in residuals if dtypes.issubdtype(v.aval.dtype, np.floating)}
    renamed: dict[Var, Var] = {}
    result: list[JaxprEqn] = []
    for eqn in eqns:
        if renamed:
            eqn = eqn.replace(invars=substituted(eqn.invars, renamed))
        result.append(eqn)
        for v in eqn.outvars:
            if v in floats:
                info = dtypes.finfo(v.aval.dtype)
                renamed[v] = Var(v.aval)
                params = dict(exponent_bits=int(info.nexp), mantissa_bits=int(info.nmant))
                result.append(
                    JaxprEqn([v], [renamed[v]], reduce_precision_p, params, frozenset(), eqn.traceback, eqn.ctx)
                )
    return result, renamed
