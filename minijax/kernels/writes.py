"""Which references a kernel reads and writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from minijax.base import cache, tree
from minijax.calls.call import Inlined
from minijax.ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Var
from minijax.ir.refs import AbstractRef


@cache.weak_cache
def written(jaxpr: Jaxpr) -> frozenset[int]:
    """The numbers of the references that the jaxpr may write, among its constants and then its inputs."""
    variables = {v: i for i, v in enumerate((*jaxpr.constvars, *jaxpr.invars))}
    found: set[int] = set()
    for eqn in jaxpr.eqns:
        found.update(variables[v] for v in written_by(eqn) if v in variables)
    return frozenset(found)


def written_by(eqn: JaxprEqn) -> Iterator[Var]:
    """The references among the operands that the equation may write."""
    if eqn.primitive.reads_only:
        return
    bodies = list(bodies_of(eqn))
    if eqn.primitive.name in ("dma_start", "dma_wait"):
        _source, *changed = eqn.params["tree"].unflatten(eqn.invars)
        yield from (v for v in tree.tree_leaves(changed) if type(v) is Var and type(v.aval) is AbstractRef)
    elif not bodies:
        yield from (v for v in eqn.invars if type(v) is Var and type(v.aval) is AbstractRef)
    for body, operands in bodies:
        changed = written(body)
        yield from (v for i, v in enumerate(operands) if i in changed and type(v) is Var)


def bodies_of(eqn: JaxprEqn) -> Iterator[tuple[Jaxpr, Sequence]]:
    """The jaxprs that the equation runs, each with the operands that are its constants and inputs."""
    params, invars = eqn.params, eqn.invars
    name = eqn.primitive.name
    if name == "scan":
        yield _open(params["jaxpr"]), invars
    elif name == "cond":
        for branch in params["branches"]:
            yield _open(branch), invars[1:]
    elif name == "while":
        n, m = params["cond_nconsts"], params["body_nconsts"]
        yield _open(params["cond_jaxpr"]), [*invars[:n], *invars[n + m :]]
        yield _open(params["body_jaxpr"]), invars[n:]
    elif name == "run_scoped":
        yield _open(params["jaxpr"]), invars
    elif isinstance(eqn.primitive, Inlined):
        yield _open(eqn.primitive.body(params)), invars


def _open(jaxpr: Jaxpr | ClosedJaxpr) -> Jaxpr:
    return jaxpr.jaxpr if isinstance(jaxpr, ClosedJaxpr) else jaxpr
