"""Control flow of simulated kernels, and the scopes of their memories."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.ir.jaxpr import Jaxpr, JaxprEqn
from minijax.kernels.memory import is_semaphore
from minijax.kernels.simulator.machine import Core
from minijax.kernels.simulator.memories import Semaphores, is_main
from minijax.kernels.simulator.plans import Builder, Step


def _call(b: Builder, eqn: JaxprEqn) -> Step:
    plan = b.plan(eqn.primitive.body(eqn.params))
    ins, outs = [b.number(a) for a in eqn.invars], [b.number(v) for v in eqn.outvars]

    def step(core, values):
        results = yield from plan.run(core, [values[i] for i in ins])
        _assign(values, outs, results)

    return step


def _assign(values: list, numbers: Sequence[int], results: Sequence[Any]) -> None:
    for i, x in zip(numbers, results, strict=True):
        values[i] = x


def _cond(b: Builder, eqn: JaxprEqn) -> Step:
    plans = [b.plan(branch) for branch in eqn.params["branches"]]
    which, *ins = [b.number(a) for a in eqn.invars]
    outs = [b.number(v) for v in eqn.outvars]
    is_empty = [not p.steps and not outs for p in plans]
    last = len(plans) - 1

    def step(core, values):
        i = min(max(int(values[which]), 0), last)
        return None if is_empty[i] else run(plans[i], core, values)

    def run(plan, core, values):
        results = yield from plan.run(core, [values[i] for i in ins])
        _assign(values, outs, results)

    return step


def _while(b: Builder, eqn: JaxprEqn) -> Step:
    n, m = eqn.params["cond_nconsts"], eqn.params["body_nconsts"]
    test, body = b.plan(eqn.params["cond_jaxpr"]), b.plan(eqn.params["body_jaxpr"])
    ins, outs = [b.number(a) for a in eqn.invars], [b.number(v) for v in eqn.outvars]

    def step(core, values):
        given = [values[i] for i in ins]
        of_test, of_body, carry = given[:n], given[n : n + m], given[n + m :]
        while True:
            (goes_on,) = yield from test.run(core, [*of_test, *carry])
            if not goes_on:
                break
            carry = yield from body.run(core, [*of_body, *carry])
        _assign(values, outs, carry)

    return step


def _scan(b: Builder, eqn: JaxprEqn) -> Step:
    params = eqn.params
    n, m, length = params["num_consts"], params["num_consts"] + params["num_carry"], params["length"]
    body, count = b.plan(params["jaxpr"]), params["num_carry"]
    ins, outs = [b.number(a) for a in eqn.invars], [b.number(v) for v in eqn.outvars]
    order = range(length)[::-1] if params["reverse"] else range(length)
    stacked = [v.aval for v in eqn.outvars[count:]]

    def step(core, values):
        given = [values[i] for i in ins]
        consts, carry, xs = given[:n], given[n:m], given[m:]
        ys = [np.empty(a.shape, a.dtype) for a in stacked]
        for i in order:
            results = yield from body.run(core, [*consts, *carry, *[x[i] for x in xs]])
            carry = results[:count]
            for y, row in zip(ys, results[count:], strict=True):
                y[i] = row
        _assign(values, outs, [*carry, *ys])

    return step


# ---- scopes ------------------------------------------------------------------------------------------


def memory_names(jaxpr: Jaxpr, variables: Sequence[Any], word: str) -> list[str]:
    """The names of references in messages: those of the function's arguments, where they are known."""
    names = jaxpr.debug_info.arg_names
    if names is not None and len(names) == len(variables):
        return [str(n) or f"{word} {i}" for i, n in enumerate(names)]
    return [f"{word} {i}" for i in range(len(variables))]


def allocate(core: Core, name: Any, ref: Any, label: str) -> Any:
    """Memory of a core, or of its device if the cores share it."""
    aval, space, machine = ref.inner_aval, ref.memory_space, core.machine
    if is_semaphore(aval.dtype):
        return machine.allocation(name).at(core.place, lambda: Semaphores(aval.shape, label, core.place))
    place = (core.device, None if is_main(space) else core.number)
    make = lambda: machine.buffer(aval.shape, aval.dtype, space, label, place)  # noqa: E731
    return machine.allocation(name).at(place, make)


def _run_scoped(b: Builder, eqn: JaxprEqn) -> Step:
    jaxpr: Jaxpr = eqn.params["jaxpr"]
    refs = [v.aval for v in jaxpr.invars]
    for ref in refs:
        if is_main(ref.memory_space) and not b.options.allow_hbm_allocation_in_run_scoped:
            raise ValueError(
                "Cannot allocate HBM in `run_scoped`. Give the kernel an operand in HBM, or set "
                "allow_hbm_allocation_in_run_scoped of InterpretParams."
            )
    plan, labels = b.plan(jaxpr), memory_names(jaxpr, jaxpr.invars, "scoped memory")
    ins, outs = [b.number(a) for a in eqn.invars], [b.number(v) for v in eqn.outvars]

    def step(core, values):
        site = core.visit(id(eqn))
        memories = [allocate(core, (site, i), r, labels[i]) for i, r in enumerate(refs)]
        results = yield from plan.run(core, [*[values[i] for i in ins], *memories])
        for memory in memories:
            _release(core, memory)
        _assign(values, outs, results)

    return step


def _release(core: Core, memory: Any) -> None:
    """Ends the use of memory by a core; what cores share ends when the last one leaves it."""
    if memory.place[1] is None:
        memory.allocation.users += 1
        memory.freed = memory.allocation.users == core.machine.num_cores
        return
    memory.freed = True


FLOW: dict[str, Callable[[Builder, JaxprEqn], Step]] = {
    "call": _call,
    "cond": _cond,
    "while": _while,
    "scan": _scan,
    "run_scoped": _run_scoped,
}
