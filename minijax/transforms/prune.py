"""Dead code elimination: drops the equations of a jaxpr whose results are not used.

Below, the second result alone is used, and with it the second input:

>>> prune_closed(jax.make_jaxpr(lambda x, y: (jnp.sin(x), jnp.cos(y)))(1.0, 2.0), (False, True))
({ lambda ; a:f32[]. let b:f32[] = cos a in (b,) }, (False, True))
"""

from collections.abc import Sequence

from minijax.base import cache
from minijax.base.mask import Mask
from minijax.ir import effects
from minijax.ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Var, jaxprs_in_params
from minijax.ir.refs import REF_EFFECT, AbstractRef


def prune_jaxpr(
    jaxpr: Jaxpr, used_outputs: tuple[bool, ...], instantiate: bool | tuple[bool, ...] = False
) -> tuple[Jaxpr, Mask]:
    """The jaxpr that computes the used outputs, and a mask of its inputs; `instantiate` keeps unused inputs.

    Returns the jaxpr itself if there is nothing to drop.
    """
    pruned, used_inputs = _prune_jaxpr(jaxpr, used_outputs, instantiate)
    return pruned or jaxpr, used_inputs


def prune_fresh(
    jaxpr: Jaxpr, used_outputs: tuple[bool, ...], instantiate: bool | tuple[bool, ...] = False
) -> tuple[Jaxpr, Mask]:
    """As `prune_jaxpr`, without a cache: for a jaxpr that is pruned only once."""
    pruned, used_inputs = _pruned(jaxpr, used_outputs, instantiate)
    return pruned or jaxpr, used_inputs


# The caches hold None for a jaxpr that does not change: holding it would keep it alive.


@cache.weak_cache
def _prune_jaxpr(jaxpr, used_outputs, instantiate):
    return _pruned(jaxpr, used_outputs, instantiate)


def _pruned(jaxpr, used_outputs, instantiate):
    keep = (instantiate,) * len(jaxpr.invars) if isinstance(instantiate, bool) else instantiate
    outvars = Mask(used_outputs).marked(jaxpr.outvars)
    live = set(outvars)  # includes literals, which are never results
    eqns = []
    for eqn in reversed(jaxpr.eqns):
        if len(eqn.outvars) == 1 and eqn.outvars[0] in live and not eqn.primitive.dce_inside:
            eqns.append(eqn)
            live.update(eqn.invars)
            continue
        used = [v in live for v in eqn.outvars]
        if not any(used) and (not eqn.effects or is_idle(eqn)) and not eqn.primitive.never_dead:
            continue
        used_in, pruned = (
            ([True] * len(eqn.invars), eqn)
            if all(used) and not eqn.primitive.dce_inside
            else eqn.primitive.dce(used, eqn)
        )
        if pruned is not None:
            eqns.append(pruned)
            live.update(Mask(used_in).marked(eqn.invars))
    eqns.reverse()
    used_inputs = Mask([v in live or k for v, k in zip(jaxpr.invars, keep, strict=True)])
    if all(used_outputs) and all(used_inputs) and eqns == jaxpr.eqns:
        return None, used_inputs
    info = jaxpr.debug_info
    arg_names, result_paths = _marked(info.arg_names, used_inputs), _marked(info.result_paths, used_outputs)
    info = info._replace(arg_names=arg_names, result_paths=result_paths)
    invars, effs = used_inputs.marked(jaxpr.invars), effects.join(*(e.effects for e in eqns if e.effects))
    return jaxpr.replace(invars=invars, outvars=outvars, eqns=eqns, effects=effs, debug_info=info), used_inputs


def is_idle(eqn: JaxprEqn) -> bool:
    """Whether an equation does nothing besides reading references."""
    primitive = eqn.primitive
    if not eqn.effects or primitive.reads_only:
        return True
    bodies = tuple(jaxprs_in_params(eqn.params)) if eqn.effects <= REF_EFFECT else ()
    return bool(bodies) and all([_is_idle(jaxpr, primitive.owns_refs) for jaxpr in bodies])


@cache.weak_cache
def _is_idle(jaxpr: Jaxpr, owns_refs: bool) -> bool:
    own = set(jaxpr.invars) if owns_refs else set()
    is_own = lambda eqn: all(type(a.aval) is not AbstractRef or a in own for a in eqn.invars)  # noqa: E731
    return all(is_idle(eqn) or (owns_refs and eqn.effects <= REF_EFFECT and is_own(eqn)) for eqn in jaxpr.eqns)


def _marked(names: Sequence | None, used: Sequence[bool]) -> tuple | None:
    if names is None or len(names) != len(used):
        return None
    return tuple(Mask(used).marked(names))


def read_variables(jaxpr: Jaxpr) -> set[Var]:
    """The variables that the equations read or the jaxpr returns."""
    read = {a for e in jaxpr.eqns for a in e.invars if type(a) is Var}
    read.update(v for v in jaxpr.outvars if type(v) is Var)
    return read


def prune_closed(
    closed: ClosedJaxpr,
    used_outputs: Sequence[bool],
    instantiate: bool | Sequence[bool] = False,
    constants: bool = True,
) -> tuple[ClosedJaxpr, Mask]:
    """As `prune_jaxpr`, and drops unused `constants`. Cached: for equal arguments it returns the same object."""
    instantiate = instantiate if isinstance(instantiate, bool) else tuple(instantiate)
    pruned, used_inputs = _prune_closed(closed, tuple(used_outputs), instantiate, constants)
    return pruned or closed, used_inputs


@cache.weak_cache
def is_read_whole(closed: ClosedJaxpr) -> bool:
    """Whether nothing of a body is dropped if all its results are used."""
    pruned, used_inputs = _prune_closed(closed, (True,) * len(closed.outvars), False, False)
    return pruned is None and all(used_inputs)


@cache.weak_cache
def _prune_closed(closed, used_outputs, instantiate, constants):
    jaxpr, used = prune_jaxpr(closed.jaxpr, used_outputs, instantiate)
    if not closed.consts or not constants:
        return (None if jaxpr is closed.jaxpr else ClosedJaxpr(jaxpr, closed.consts)), used
    read = read_variables(jaxpr)
    pairs = [(v, c) for v, c in zip(closed.jaxpr.constvars, closed.consts, strict=True) if v in read]
    if len(pairs) < len(closed.consts):
        jaxpr = jaxpr.replace(constvars=[v for v, _ in pairs])
    elif jaxpr is closed.jaxpr:
        return None, used
    return ClosedJaxpr(jaxpr, [c for _, c in pairs]), used
