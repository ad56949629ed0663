"""Operations that call a function: `jax.core.call` and its kin, whose operations take their place."""

import functools
from collections.abc import Sequence
from typing import Any

from minijax.base.linear_util import WrappedFun, wrap_init
from minijax.ir import state
from minijax.ir.jaxpr import ClosedJaxpr
from minijax.ir.primitive import Primitive
from minijax.ir.trace import eval_jaxpr


class CallPrimitive(Primitive):
    """A call whose operations take its place: to bind it is to run the function."""

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
    """Runs the function: all that a call does."""
    return f.call_wrapped(*args)


call_p, closed_call_p = CallPrimitive("call"), CallPrimitive("closed_call")
call = call_p.bind
