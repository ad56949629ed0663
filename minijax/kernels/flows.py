"""Which inputs the references and results of a kernel depend on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minijax.ir.jaxpr import Jaxpr, JaxprEqn, Literal, Var
from minijax.ir.refs import AbstractRef
from minijax.kernels.writes import bodies_of, written_by

Sources = frozenset[int]
_NOTHING: Sources = frozenset()


def sources_of_results(jaxpr: Jaxpr, first: int, count: int) -> list[Sources]:
    """For each reference from number `first`, the inputs that its value depends on after all steps of a grid."""
    state = [frozenset({i}) for i in range(len(jaxpr.invars))]
    while True:
        after, _ = _run(jaxpr, state)
        # A step may read the value that an earlier step left in a reference.
        joined = [a | b for a, b in zip(state, after, strict=True)]
        if joined == state:
            return [s - {i} for i, s in enumerate(state)][first : first + count]
        state = joined


def _run(jaxpr: Jaxpr, inputs: Sequence[Sources]) -> tuple[list[Sources], list[Sources]]:
    """The sources of constants and inputs, and those of results, after the jaxpr ran."""
    env: dict[Any, Sources] = dict(zip((*jaxpr.constvars, *jaxpr.invars), inputs, strict=True))
    get = lambda a: _NOTHING if type(a) is Literal else env.get(a, _NOTHING)  # noqa: E731
    for eqn in jaxpr.eqns:
        bodies = list(bodies_of(eqn))
        if bodies:
            _run_bodies(eqn, bodies, env, get)
            continue
        read = _NOTHING.union(*map(get, eqn.invars))
        for v in (*eqn.outvars, *written_by(eqn)):
            env[v] = env.get(v, _NOTHING) | read
    return [env[v] for v in (*jaxpr.constvars, *jaxpr.invars)], list(map(get, jaxpr.outvars))


def _run_bodies(eqn: JaxprEqn, bodies: Sequence, env: dict, get: Any) -> None:
    """Lets an equation with bodies run until nothing changes: loops pass on their carry."""
    chosen = get(eqn.invars[0]) if eqn.primitive.name == "cond" else _NOTHING
    carried = [_NOTHING] * len(eqn.outvars)
    while True:
        before = (dict(env), list(carried))
        for body, operands in bodies:
            padding = len(body.constvars) + len(body.invars) - len(operands)
            own = [get(a) for a in operands] + [_NOTHING] * padding  # a scope's new references come last
            after, outs = _run(body, _with_carry(eqn, own, carried))
            for a, sources in zip(operands, after, strict=False):
                if type(a) is Var and type(a.aval) is AbstractRef:
                    env[a] = get(a) | sources | (chosen if sources != get(a) else _NOTHING)
            if len(outs) == len(carried):
                carried = [c | o | chosen for c, o in zip(carried, outs, strict=True)]
        if before == (env, carried):
            break
    env.update(zip(eqn.outvars, carried, strict=True))


def _with_carry(eqn: JaxprEqn, inputs: list[Sources], carried: Sequence[Sources]) -> list[Sources]:
    """The inputs of a loop's body, with what earlier iterations left in its carry."""
    if eqn.primitive.name == "scan":
        first, count = eqn.params["num_consts"], eqn.params["num_carry"]
    elif eqn.primitive.name == "while":
        first, count = len(inputs) - len(carried), len(carried)
    else:
        return inputs
    joined = [a | b for a, b in zip(inputs[first : first + count], carried, strict=False)]
    return [*inputs[:first], *joined, *inputs[first + count :]]
