"""Calls of functions that are registered with XLA; the order in which values are computed."""

import itertools
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from minijax.base.errors import JaxRuntimeError
from minijax.hlo.spell import physical
from minijax.ir import effects
from minijax.ir.jaxpr import NO_EFFECTS
from minijax.ir.primitive import Primitive
from minijax.ir.trace import DynamicJaxprTracer, JaxprTrace
from minijax.ir.types import Zero, typeof


class FfiEffect(effects.Effect):
    """Whatever a function that is registered with XLA does."""


for _registry in (
    effects.lowerable_effects,
    effects.control_flow_allowed_effects,
    effects.custom_derivatives_allowed_effects,
):
    _registry.add_type(FfiEffect)
_EFFECTS = frozenset({FfiEffect()})


class FfiCall(Primitive):
    """Calls the function that XLA knows as `target_name`; layouts are of the operands and results in memory."""

    name = "ffi_call"
    multiple_results = True

    def infer(self, *avals, result_avals, **params):
        return list(result_avals)

    def effects(self, *avals, has_side_effect, **params):
        return _EFFECTS if has_side_effect else NO_EFFECTS

    def lower(self, e, ins, outs, *operands, target_name, has_side_effect, input_layouts, output_layouts,
              input_output_aliases, custom_call_api_version, legacy_backend_config, attributes, **params):  # fmt: skip
        config = dict(attributes) if custom_call_api_version == 4 else legacy_backend_config
        layouts = dict(operand_layouts=input_layouts, result_layouts=output_layouts, aliases=dict(input_output_aliases))
        how = dict(api_version=custom_call_api_version, backend_config=config, has_side_effect=has_side_effect)
        return e.custom_call(target_name, operands, [*map(physical, ins)], [*map(physical, outs)], **how, **layouts)

    def jvp(self, primals, tangents, *, target_name, **params):
        if any(type(t) is not Zero for t in tangents):
            raise ValueError(f"The FFI call to `{target_name}` cannot be differentiated. Give it a custom rule.")
        outs = self.bind_all(primals, dict(target_name=target_name, **params))
        return outs, list(map(Zero.from_primal_value, outs))

    def batch(self, axis, operands, dims, *, target_name, vmap_method, **params):
        how = f"vmap_method says how; for the call of `{target_name}` it is {vmap_method}"
        raise NotImplementedError(f"vmap is only supported for the ffi_call primitive when {how}")


ffi_call_p = FfiCall()
_NO_RESULTS = dict(result_avals=(), output_layouts=(), input_output_aliases=(), attributes=(), has_side_effect=True,
                   custom_call_api_version=4, legacy_backend_config=None, vmap_method=None)  # fmt: skip


def control_dep(src: Any, dst: Any) -> tuple:
    """Has XLA compute the array `dst` after `src`. Raises ValueError in derivatives, NotImplementedError under `vmap`.

    Raises JaxRuntimeError for a cycle, here or when the program is compiled.
    """
    if type(src) is type(dst) is DynamicJaxprTracer and src._trace is dst._trace:
        _check_acyclic(src._trace, src.val, dst.val)
    layouts = tuple([tuple(reversed(range(physical(typeof(x)).ndim))) for x in (src, dst)])
    return tuple(ffi_call_p.bind(src, dst, target_name="control_dep", input_layouts=layouts, **_NO_RESULTS))


def _check_acyclic(trace: JaxprTrace, src: Any, dst: Any) -> None:
    """Refuses an order that XLA may not survive, where it is one of a single jaxpr."""
    order = defaultdict(list)
    for eqn in trace.eqns:
        if eqn.primitive is ffi_call_p and eqn.params["target_name"] == "control_dep":
            order[eqn.invars[1]].append(eqn.invars[0])
    if dst in trace.behind(src, order):
        raise JaxRuntimeError(f"control_dep: a cycle, since {src.aval} is computed after {dst.aval} already")


def schedule(ops: Sequence[Any]) -> None:
    """Has XLA compute these arrays one after the other; see `control_dep`."""
    for src, dst in itertools.pairwise(ops[i] for i in range(len(ops))):
        control_dep(src, dst)
