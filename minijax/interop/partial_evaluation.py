"""Partial evaluation of functions with known and unknown arguments, and dead code elimination of jaxprs."""

from collections.abc import Sequence
from typing import Any

from minijax.base.linear_util import WrappedFun
from minijax.base.mask import Mask
from minijax.ir import context, state
from minijax.ir.jaxpr import DebugInfo, Jaxpr
from minijax.ir.trace import DynamicJaxprTracer, JaxprTrace, trace_to_jaxpr
from minijax.ir.types import AbstractValue, typeof
from minijax.transforms.linearize import RuleTrace, prune_residuals
from minijax.transforms.prune import prune_jaxpr, read_variables


class PartialVal(tuple):
    """A known value, `(None, value)`, or the type of an unknown one, `(aval, None)`."""

    __slots__ = ()

    @classmethod
    def known(cls, const: Any) -> "PartialVal":
        return cls((None, const))

    @classmethod
    def unknown(cls, aval: AbstractValue) -> "PartialVal":
        return cls((aval, None))

    def is_known(self) -> bool:
        return self[0] is None

    def get_known(self) -> Any:
        return self[1] if self.is_known() else None

    def get_aval(self) -> AbstractValue:
        return typeof(self[1]) if self.is_known() else self[0]


def _info_of(fun: WrappedFun) -> DebugInfo:
    return fun.debug_info if isinstance(fun.debug_info, DebugInfo) else DebugInfo("jit", fun.__name__)


def trace_to_jaxpr_nounits(
    fun: WrappedFun, pvals: Sequence[PartialVal], instantiate: bool | Sequence[bool] = False
) -> tuple:
    """Evaluates the operations with known operands, and records the rest in a jaxpr.

    Returns the jaxpr of the unknown results, all results as `PartialVal`s, and the jaxpr's constants.
    `instantiate` selects known results that become results of the jaxpr too.
    """
    parent = state.current_trace()
    recorder = JaxprTrace(parent, _info_of(fun)._replace(arg_names=None, result_paths=None))
    args = [v.get_known() if v.is_known() else recorder.new_arg(v.get_aval()) for v in pvals]
    results = list(context.run_under(RuleTrace(parent, recorder), fun.call_wrapped, *args))
    instantiate = [instantiate] * len(results) if isinstance(instantiate, bool) else instantiate
    unknown = Mask([type(x) is DynamicJaxprTracer and x._trace is recorder for x in results]) | instantiate
    jaxpr, consts = recorder.to_jaxpr(unknown.marked(results))
    recorder.finish()
    values = [
        PartialVal.unknown(typeof(x)) if late else PartialVal.known(x) for x, late in zip(results, unknown, strict=True)
    ]
    jaxpr, consts = prune_residuals(jaxpr, consts)
    return jaxpr, values, consts


def trace_to_jaxpr_dynamic(
    fun: WrappedFun,
    in_avals: Sequence[AbstractValue],
    *,
    keep_inputs: list[bool] | None = None,
    lower: bool = False,
    auto_dce: bool = False,
) -> tuple[Jaxpr, list[AbstractValue], list]:
    """Traces a flat function: (jaxpr, types of the results, constants)."""
    jaxpr, consts = trace_to_jaxpr(fun.call_wrapped, in_avals, _info_of(fun))
    if auto_dce:
        jaxpr, _ = prune_jaxpr(jaxpr, (True,) * len(jaxpr.outvars), True)
    if keep_inputs is not None:
        jaxpr = jaxpr.replace(invars=Mask(keep_inputs).marked(jaxpr.invars))
    return jaxpr, jaxpr.out_avals, consts


def dce_jaxpr(
    jaxpr: Jaxpr, used_outputs: bool | Sequence[bool], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[bool]]:
    """Returns the jaxpr of the used outputs, and which inputs it has; `instantiate` keeps unused ones."""
    used = (used_outputs,) * len(jaxpr.outvars) if isinstance(used_outputs, bool) else tuple(used_outputs)
    keep = instantiate if isinstance(instantiate, bool) else tuple(instantiate)
    pruned, used_inputs = prune_jaxpr(jaxpr, used, keep)
    return pruned, list(used_inputs)


def dce_jaxpr_consts(jaxpr: Jaxpr, used_outputs: Sequence[bool], instantiate: bool | Sequence[bool] = False) -> tuple:
    """Like `dce_jaxpr`, but also drops unused constants: (jaxpr, which constants are used, which inputs)."""
    pruned, used_inputs = dce_jaxpr(jaxpr, used_outputs, instantiate)
    read = read_variables(pruned)
    used_consts = [v in read for v in jaxpr.constvars]
    return pruned.replace(constvars=Mask(used_consts).marked(jaxpr.constvars)), used_consts, used_inputs
