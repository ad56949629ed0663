"""Eager calls that run as one program each, which is looked up by the arguments."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

from minijax.base import config, dtypes, errors, source, tree
from minijax.base.thread import thread
from minijax.dispatch import key_reuse
from minijax.dispatch.executable import executable_for
from minijax.dispatch.operands import plain_key, raise_if_donated
from minijax.dispatch.operations import programs
from minijax.dispatch.placement import ProgramOptions
from minijax.dispatch.replay import replayed
from minijax.ir.jaxpr import ClosedJaxpr, DebugInfo, Jaxpr, JaxprEqn, Var
from minijax.ir.trace import DynamicJaxprTracer, trace_to_jaxpr
from minijax.run.arrays.array import ArrayImpl, array_types
from minijax.run.clients import guards
from minijax.run.watching import watch

P = ParamSpec("P")
R = TypeVar("R")
_disable_jit = config.option("disable_jit")


def fused(data: int = 1, whole: bool = False) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorator: an eager call runs one program if the function only moves, indexes or compares data.

    With `whole` it runs one program for any computation; the function must then call a single jitted function. The
    first `data` arguments are arrays or sequences of arrays, the others plain values and tuples of them. Other calls
    run operation by operation, as do calls that warn, raise or return an argument.
    """

    def wrap(function: Callable) -> Callable:
        recall, epoch = programs.get, config.epoch

        @functools.wraps(function)
        def call(*args, **kwargs):
            try:
                options, since = thread.ready
                if since is not epoch[0]:
                    if thread.trace is not None:
                        return _traced_call(function, args, kwargs, data)
                    options = config.make_ready()
                if data and not kwargs and len(args) == 1 and type(args[0]) is ArrayImpl:
                    arrays: Sequence = args
                    key = (options, function, args[0]._sig)
                    run = recall(key)
                else:
                    arrays = []
                    try:
                        key = (options, function, *_key(args, kwargs, data, arrays))
                        run = recall(key)
                    except (KeyError, TypeError, AttributeError):
                        run = _DIRECT
                is_new = run is None
                if is_new:
                    run = programs.once(key, _program, function, args, kwargs, data, arrays, whole)
                if run is _DIRECT:
                    return function(*args, **kwargs)
                try:
                    return run([x._raw for x in arrays])
                except RuntimeError as error:
                    if not is_new:
                        raise_if_donated(error, arrays)
                    raise
            except Exception as error:
                source.hide_frames(error)
                raise

        return call

    return wrap


def _traced_call(function: Callable, args: tuple, kwargs: dict, data: int) -> Any:
    """Calls the function under a trace; a repeated call on tracers copies the equations of an earlier one."""
    if data == 1 and args and type(args[0]) is DynamicJaxprTracer:
        try:
            key = tuple([function, *map(_plain, args[1:]), *[(name, _plain(x)) for name, x in kwargs.items()]])
        except (KeyError, TypeError):
            return function(*args, **kwargs)
        return replayed(key, args[:1], lambda x: function(x, *args[1:], **kwargs))
    return function(*args, **kwargs)


def _plain(x: Any) -> Any:
    return x if type(x) is int else plain_key(x)


_DIRECT: Any = object()  # in place of a program: call the function itself


def _key(args: tuple, kwargs: dict, data: int, arrays: list) -> list:
    """The key of a call; appends its data to `arrays`.

    Raises KeyError, TypeError or AttributeError for a call without such a key.
    """
    parts: list[Any] = []
    for x in args[:data]:
        if type(x) in array_types:
            arrays.append(x)
            parts.append(x._sig)
        elif type(x) is list or type(x) is tuple:
            arrays += x
            parts.append((type(x), *[y._sig for y in x]))
        else:
            raise TypeError
    for x in args[data:]:
        parts.append(x if type(x) is int else plain_key(x))
    for name, x in kwargs.items():
        parts += (name, plain_key(x))
    return parts


def _program(function: Callable, args: tuple, kwargs: dict, data: int, arrays: Sequence, whole: bool) -> Any:
    """Compiles the function to a program of the raw arrays; `_DIRECT` if it must be called itself."""
    is_watched = guards.is_guarded() or watch.is_on() or key_reuse.is_on()
    if is_watched or whole and _disable_jit.value or any(x._sig.device is None for x in arrays):
        return _DIRECT
    try:
        with errors.warnings_raised():
            closed, out_tree = _traced(function, args, kwargs, data, arrays)
    except Exception:
        return _DIRECT  # the direct call raises or warns again, for the user
    if closed.consts or not (whole or _is_movement(closed.jaxpr)):
        return _DIRECT
    # A single operation gets the same program as when it is called by itself.
    name = closed.eqns[0].primitive.name if len(closed.eqns) == 1 else function.__name__
    executable = executable_for(closed, ProgramOptions(name, counts_unread=True), arrays)
    return getattr(executable.tree_caller(arrays, out_tree), "program", _DIRECT)


def _traced(function: Callable, args: tuple, kwargs: dict, data: int, arrays: Sequence) -> tuple[ClosedJaxpr, Any]:
    """The jaxpr of a call as a function of `arrays`, the data among its arguments, and the tree of its result."""
    out_trees: list[Any] = []

    def flat(*tracers):
        rest = iter(tracers)
        values = [next(rest) if type(x) in array_types else type(x)([next(rest) for _ in x]) for x in args[:data]]
        leaves, out_tree = tree.flatten(function(*values, *args[data:], **kwargs))
        out_trees.append(out_tree)
        return leaves

    avals = [x._sig.aval for x in arrays]
    return ClosedJaxpr(*trace_to_jaxpr(flat, avals, DebugInfo("jit", function.__name__))), out_trees[0]


def _is_movement(jaxpr: Jaxpr) -> bool:
    """Returns whether the jaxpr computes all results, and one program gives the same bits as one per operation."""
    inputs = set(jaxpr.invars)
    if jaxpr.effects or any(type(v) is not Var or v in inputs for v in jaxpr.outvars):
        return False
    computing = [eqn for eqn in jaxpr.eqns if not eqn.primitive.moves_data and _is_inexact(eqn)]
    return len(jaxpr.eqns) == 1 or len(computing) < 2 and not any("jaxpr" in eqn.params for eqn in computing)


def _is_inexact(eqn: JaxprEqn) -> bool:
    return any(dtypes.is_inexact(v.aval.dtype) for v in (*eqn.invars, *eqn.outvars))
