"""Primitives that call a function, such as `jax.core.call`: outside of jaxprs they are inlined."""

import functools
from collections.abc import Sequence
from typing import Any

from minijax.base.linear_util import WrappedFun, wrap_init
from minijax.calls.call import OpenCall, closed_of
from minijax.ir import state
from minijax.ir.jaxpr import ClosedJaxpr, DebugInfo
from minijax.ir.primitive import Primitive
from minijax.ir.trace import JaxprTrace, constants_to_inputs, eval_jaxpr, trace_to_jaxpr
from minijax.ir.types import typeof


class CallPrimitive(Primitive):
    """A call that is always inlined: binding it runs the function."""

    multiple_results = True
    call_primitive = True
    skip_canonicalization = True

    def bind(self, *operands: Any, subfuns: Sequence[WrappedFun], **params: Any) -> list:
        return call_impl(*subfuns, *operands)

    def rebind(self, trace, operands, params):
        with state.set_current_trace(trace):
            return self._run(params["call_jaxpr"], *operands)

    @staticmethod
    def _run(program, *operands):
        closed = program if isinstance(program, ClosedJaxpr) else ClosedJaxpr(program)
        return eval_jaxpr(closed.jaxpr, closed.consts, *operands)

    def get_bind_params(self, params):
        return dict(subfuns=(wrap_init(functools.partial(self._run, params["call_jaxpr"])),))


def call_impl(f: WrappedFun, *args: Any, **params: Any) -> list:
    """Runs the function."""
    return f.call_wrapped(*args)


class CoreCall(OpenCall):
    """A call of a function: recorded as an equation with a jaxpr while tracing to a jaxpr, inlined elsewhere."""

    name = "call"
    body_name = "call_jaxpr"
    call_primitive = True
    skip_canonicalization = True

    def bind(self, *operands: Any, subfuns: Sequence[WrappedFun] = (), **params: Any) -> list:
        if not subfuns:
            return super().bind(*operands, **params)
        (f,) = subfuns
        if not isinstance(state.current_trace(), JaxprTrace):
            return call_impl(f, *operands)
        info = f.debug_info or DebugInfo("call", f.__name__)
        jaxpr, consts = trace_to_jaxpr(f.call_wrapped, [typeof(x) for x in operands], info)
        return super().bind(*consts, *operands, call_jaxpr=constants_to_inputs(jaxpr))

    def lower(self, e, ins, outs, *operands, call_jaxpr):
        return e.call_jaxpr(closed_of(call_jaxpr), "core_call", operands)

    def rebind(self, trace, operands, params):
        if isinstance(trace, JaxprTrace):
            return super().rebind(trace, operands, params)
        with state.set_current_trace(trace):
            return self.at_once(*operands, **params)

    def get_bind_params(self, params):
        return dict(subfuns=(wrap_init(functools.partial(eval_jaxpr, params["call_jaxpr"], ())),))


call_p, closed_call_p = CoreCall(), CallPrimitive("closed_call")
call = call_p.bind
