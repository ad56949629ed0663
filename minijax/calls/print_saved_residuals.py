"""Describes and logs the residuals that a checkpointed function saves."""

from collections.abc import Sequence
from typing import Any

from minijax.base import monitoring, source
from minijax.ir.jaxpr import JaxprEqn, Var
from minijax.primitives.elementwise import reduce_precision_p
from minijax.transforms.partial_eval_custom import PartialEvalCustom


def origin(eqn: JaxprEqn, makers: dict[Var, JaxprEqn]) -> str:
    """Describes the operation that computed a saved value, and its source line. `makers`: equations by result."""
    place = source.summary(eqn.traceback, columns=True)
    if eqn.primitive is reduce_precision_p and eqn.invars[0] in makers:
        # Saved values are rounded by an operation that is not the user's.
        eqn = makers[eqn.invars[0]]
        place = source.summary(eqn.traceback, columns=True)
    if eqn.primitive.name == "name":
        return f"named '{eqn.params['name']}' from {place}"
    if eqn.primitive.name == "jit":
        return f"output of jitted function '{eqn.params['name']}' from {place}"
    return f"output of {eqn.primitive} from {place}"


def log_residuals(parts: PartialEvalCustom, known: Sequence[Any]) -> None:
    """Logs the residuals of a checkpointed function of inputs `known`, as warning if `jax_log_checkpoint_residuals`."""
    if not monitoring.logs_saved_values():
        return
    jaxpr = parts.known.jaxpr
    makers = {v: eqn for eqn in jaxpr.eqns for v in eqn.outvars}
    computed = jaxpr.outvars[len(jaxpr.outvars) - parts.num_residuals :]
    inputs = [f"  {known[i].str_short()}\n" for i in parts.input_residuals]
    saved = [f"  {v.aval.str_short()} from {origin(makers[v], makers)}\n" for v in computed if v in makers]
    messages = ["saving inputs with shapes:\n" + "".join(inputs)] if inputs else []
    messages += ["saving these intermediates:\n" + "".join(saved)] if saved else []
    monitoring.log_saved_values("remat-decorated function " + "and ".join(messages))
