"""Runs jaxprs and single operations eagerly, each as a cached program."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from minijax.base import cache, config, errors, monitoring
from minijax.dispatch import key_reuse
from minijax.dispatch.executable import Executable, Programs, executable_for
from minijax.dispatch.operands import operand, operands_of, raise_if_donated
from minijax.dispatch.placement import ProgramOptions
from minijax.ir import context, effects, state
from minijax.ir.binding import programs_in
from minijax.ir.jaxpr import ClosedJaxpr, DebugInfo, Jaxpr, JaxprEqn, Var
from minijax.ir.refs import is_ref, passed_ref
from minijax.ir.trace import EvalTrace, Tracer, escaped_message, eval_jaxpr, forbid_tracing, trace_to_jaxpr
from minijax.ir.types import hi_classes
from minijax.run.arrays.array import ArrayImpl
from minijax.run.watching import watch
from minijax.transforms.lower_types import is_hi_operation

programs = Programs(1 << 15)  # of operations and of fused functions


@cache.weak_cache
def _programs_of(owner: Any) -> Programs:
    """The programs of a jaxpr (or function), and of operations with it as a parameter; they die with it."""
    return Programs(256)


def run_closed(
    closed: ClosedJaxpr,
    operands: Sequence,
    how: tuple,
    options_of: Callable[..., ProgramOptions] = ProgramOptions,
    operation: str = "",
) -> list[ArrayImpl]:
    """Runs a jaxpr; compiles it, with the options of `how`, once for each combination of operand signatures.

    `operation`: the primitive that the jaxpr consists of, if it is one.
    """
    arrays, sigs = operands_of(operands)
    key = (config.state(), *how, *sigs)
    store = _programs_of(closed)
    run = store.get(key)
    if run is None:
        run = store.once(key, _compile_closed, closed, arrays, options_of(*how), operation)
    return run(arrays)


def _compile_closed(closed: ClosedJaxpr, arrays: Sequence, options: ProgramOptions, operation: str) -> Callable:
    run = _to_list(executable_for(closed, options, arrays), arrays)
    run = key_reuse.watched(run, closed, operation or "jit-compiled function")
    if operation:
        return watch.named(run, operation)
    return watch.explained(run, lambda arrays: eval_jaxpr(closed.jaxpr, closed.consts, *arrays))


def _to_list(executable: Executable, arrays: Sequence) -> Callable[[Sequence[ArrayImpl]], list]:
    """A closure specialised to these signatures that returns the list of all results."""
    if len(executable.outs) != 1:
        return executable.caller(arrays, list)
    run = executable.caller(arrays)
    return lambda arrays: [run(arrays)]


class _OfArrays(NamedTuple):
    """In place of a program of raw arrays: a function of arrays."""

    call: Callable[[Sequence[ArrayImpl]], list]


def _results(run: Any, operands: Sequence[ArrayImpl]) -> list:
    """The results of a program of raw arrays, or of a function of arrays."""
    if type(run) is _OfArrays:
        return run.call(operands)
    results = run([x._raw for x in operands])
    return results if type(results) is list else [results]


# ---- single operations ------------------------------------------------------------------------------


def one_equation(primitive: Any, avals: Sequence, params: dict) -> ClosedJaxpr:
    """The closed jaxpr of a single operation."""
    invars: list[Any] = [Var(a) for a in avals]
    out_avals, effs = primitive.typed(avals, params)
    outvars = [Var(a) for a in out_avals]
    eqn = JaxprEqn(invars, outvars, primitive, params, effs, None, context.EMPTY)
    return ClosedJaxpr(Jaxpr([], invars, outvars, [eqn], effects.join(effs), DebugInfo("jit", primitive.name)))


def _placed(primitive: Any, operands: Sequence) -> list:
    """The operands as arrays. Raises ValueError for a reference."""
    for x in operands:
        if is_ref(x):
            raise ValueError(passed_ref(x.aval, f"a primitive: {primitive.name}"))
    return [operand(x) for x in operands]


def evaluate(primitive: Any, operands: Sequence, params: dict, compiled: bool = False) -> list:
    """Runs one operation eagerly; with `compiled`, always as a program."""
    if (
        hi_classes
        and primitive.to_lo is not None
        and not primitive.is_hi
        and is_hi_operation(primitive, operands, params)
    ):
        return primitive.to_lo(operands, params)
    if primitive.at_once is not None and not compiled:
        for x in operands:
            if isinstance(x, Tracer):
                raise errors.UnexpectedTracerError(escaped_message(x))
        if primitive.name in key_reuse.RUN_WITHOUT_PROGRAM and key_reuse.is_on():
            operands = list(map(operand, operands))
            run = lambda operands: primitive.at_once(*operands, **params)  # noqa: E731
            closed = one_equation(primitive, [x._sig.aval for x in operands], params)
            return key_reuse.watched(run, closed, primitive.name)(operands)
        return primitive.at_once(*operands, **params)
    for x in operands:
        if type(x) is not ArrayImpl:
            operands = _placed(primitive, operands)
            break
    if params:
        # The key includes the names, since rules bind the same parameters in different orders.
        values = cache.key(tuple(params.values()))
        key = (config.state(), primitive, *params, values, *[x._sig for x in operands])
    else:
        key = (config.state(), primitive, *[x._sig for x in operands])
    run = programs.get(key)
    try:
        return _first_run(primitive, operands, params, key) if run is None else _results(run, operands)
    except RuntimeError as error:
        if run is not None:
            raise_if_donated(error, operands)
        raise


def apply_primitive(prim: Any, *args: Any, **params: Any) -> Any:
    """Compiles and runs one operation, even if it has its own way to run eagerly."""
    results = evaluate(prim, args, params, compiled=True)
    return results if prim.multiple_results else results[0]


def _first_run(primitive: Any, operands: Sequence, params: dict, key: tuple) -> list:
    store, owner = programs, next(programs_in(params.values()), None)
    if owner is not None:
        values = cache.key(_without_owner(owner, tuple(params.values())))
        store, key = _programs_of(owner), (key[0], primitive, *params, values, *[x._sig for x in operands])
    return _results(store.once(key, _compile_operation, primitive, operands, params), operands)


def _without_owner(owner: Any, values: tuple) -> tuple:
    return tuple([None if v is owner else _without_owner(owner, v) if isinstance(v, tuple) else v for v in values])


def _compile_operation(primitive: Any, arrays: Sequence, params: dict) -> Any:
    """The operation as a program of raw arrays or, where that is not enough, a function of arrays."""
    forbid_tracing(primitive.name)
    with state.set_current_trace(None):
        with monitoring.timed(monitoring.TRACING, primitive.name):
            closed = one_equation(primitive, [x._sig.aval for x in arrays], params)
        options = ProgramOptions(primitive.name, keep_unused=True)
        executable = executable_for(closed, options, arrays, lift=primitive.lift is not None)
        if not key_reuse.is_on() and not watch.is_on():
            program = getattr(executable.caller(arrays, None if len(executable.outs) == 1 else list), "program", None)
            if program is not None:
                return program
        run = key_reuse.watched(_to_list(executable, arrays), closed, primitive.name)
        return _OfArrays(watch.named(run, primitive.name))


def compile_function(fun: Callable, arrays: Sequence[ArrayImpl], name: str) -> Callable[[Sequence], Any]:
    """Compiles a flat function of one result for arrays with these signatures."""
    jaxpr, consts = trace_to_jaxpr(fun, [x._sig.aval for x in arrays], DebugInfo("jit", name))
    executable = executable_for(ClosedJaxpr(jaxpr, consts), ProgramOptions(name, keep_unused=True), arrays)
    return watch.named(executable.caller(arrays), name)


EvalTrace.process, EvalTrace.compute = staticmethod(evaluate), functools.partial(evaluate, compiled=True)
