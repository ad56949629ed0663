"""Evaluates kernels by ordinary operations: the numbers of a step are values, and semaphores are counters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.calls.call import Inlined
from minijax.ir import context, state
from minijax.ir.jaxpr import ClosedJaxpr, Jaxpr, jaxprs_in_params
from minijax.ir.refs import AbstractRef
from minijax.ir.trace import JaxprTrace, close_over, environment, trace_to_jaxpr, values_of
from minijax.ir.types import ShapedArray
from minijax.kernels.grid import INDEX
from minijax.kernels.memory import is_semaphore

_COUNTER = np.dtype(np.int16)


class Step(NamedTuple):
    """The numbers of a step on the axes that a kernel sees, and the sizes of these axes."""

    ids: tuple[Any, ...]
    sizes: tuple[Any, ...]
    names: tuple[Any, ...] = ()


def ordinary_type(aval: Any) -> Any:
    """The type, with counters for semaphores."""
    if type(aval) is AbstractRef:
        inner = ordinary_type(aval.inner_aval)
        return aval if inner is aval.inner_aval else AbstractRef(inner, aval.memory_space)
    return ShapedArray(aval.shape, _COUNTER) if is_semaphore(getattr(aval, "dtype", None)) else aval


def evaluate(jaxpr: Jaxpr, consts: Sequence, args: Sequence, step: Step) -> list:
    """Evaluates a kernel's jaxpr under the current trace, with calls inlined."""
    env = environment(jaxpr, consts)
    env.update(zip(jaxpr.invars, args, strict=True))
    trace = state.current_trace()
    with context.within() as enter:
        for eqn in jaxpr.eqns:
            operands = values_of(eqn.invars, env)
            enter(eqn.ctx, eqn.traceback)
            env.update(zip(eqn.outvars, _results(trace, eqn, operands, step), strict=True))
    return values_of(jaxpr.outvars, env)


def _results(trace: Any, eqn: Any, operands: list, step: Step) -> list:
    primitive, params = eqn.primitive, eqn.params
    if primitive.name == "program_id":
        return [step.ids[params["axis"]]]
    if primitive.name == "num_programs":
        return [step.sizes[params["axis"]]]
    if primitive.name == "axis_index" and params["axis_name"] in step.names:
        return [step.ids[step.names.index(params["axis_name"])]]
    if isinstance(primitive, Inlined):
        body = primitive.body(params)
        return evaluate(body.jaxpr, body.consts, operands, step)
    evaluated = getattr(primitive, "evaluate_in_kernel", None)
    if evaluated is not None:
        return evaluated(operands, params, step)
    if any(map(_is_special, jaxprs_in_params(params))):
        if primitive.name not in _WITH_NUMBERS:
            raise NotImplementedError(f"pallas_call: {primitive.name} cannot be interpreted in a kernel")
        operands, params = _WITH_NUMBERS[primitive.name](operands, params, step)
    return primitive.rebind(trace, operands, params)


def _is_special(jaxpr: Jaxpr) -> bool:
    """Returns whether a jaxpr reads the numbers of the step, or has semaphores or memory of its own."""
    if any(ordinary_type(v.aval) is not v.aval for v in (*jaxpr.constvars, *jaxpr.invars)):
        return True
    return any(
        eqn.primitive.name in ("program_id", "num_programs", "axis_index")
        or hasattr(eqn.primitive, "evaluate_in_kernel")
        for eqn in jaxpr.eqns
    ) or any(map(_is_special, jaxpr.inner))


# ---- control flow whose bodies read the numbers of the step ------------------------------------------


def _numbers(step: Step) -> list:
    return [*step.ids, *step.sizes]


@state.traced_cache
def _with_numbers(closed: ClosedJaxpr, axes: int, names: tuple) -> ClosedJaxpr:
    """The jaxpr with 2 * `axes` leading inputs, the numbers of the step and the sizes of the grid."""

    def run(*args):
        step = Step(args[:axes], args[axes : 2 * axes], names)
        return evaluate(closed.jaxpr, closed.consts, args[2 * axes :], step)

    info = closed.debug_info._replace(arg_names=None)
    avals = [*[INDEX] * (2 * axes), *map(ordinary_type, closed.in_avals)]
    jaxpr, consts = trace_to_jaxpr(run, avals, info, JaxprTrace(state.thread.trace, info, False))
    return close_over(jaxpr, consts)[0]


def _scan(operands: list, params: dict, step: Step) -> tuple[list, dict]:
    numbers = _numbers(step)
    jaxpr = _with_numbers(params["jaxpr"], len(step.ids), step.names)
    return [*numbers, *operands], {**params, "jaxpr": jaxpr, "num_consts": params["num_consts"] + len(numbers)}


def _cond(operands: list, params: dict, step: Step) -> tuple[list, dict]:
    branches = tuple([_with_numbers(branch, len(step.ids), step.names) for branch in params["branches"]])
    # (index, operands) -> (index, numbers, operands)
    return [operands[0], *_numbers(step), *operands[1:]], {**params, "branches": branches}


def _while(operands: list, params: dict, step: Step) -> tuple[list, dict]:
    numbers, axes, n = _numbers(step), len(step.ids), params["cond_nconsts"]
    changed = dict(
        cond_jaxpr=_with_numbers(params["cond_jaxpr"], axes, step.names),
        cond_nconsts=n + len(numbers),
        body_jaxpr=_with_numbers(params["body_jaxpr"], axes, step.names),
        body_nconsts=params["body_nconsts"] + len(numbers),
    )
    # (predicate's constants, body's constants, carry) -> the same, with the numbers before each group of constants
    return [*numbers, *operands[:n], *numbers, *operands[n:]], {**params, **changed}


_WITH_NUMBERS = {"scan": _scan, "cond": _cond, "while": _while}
