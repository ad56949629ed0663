"""`print_saved_residuals`: what reverse mode keeps of a function, and where it comes from."""

from collections.abc import Callable
from typing import Any

from minijax.base import source, tree
from minijax.higher.remat import name_p
from minijax.ir.body import Flat, argument_names, signature_of, source_of
from minijax.ir.jaxpr import DebugInfo, JaxprEqn, Literal, Var
from minijax.ir.trace import trace_to_jaxpr
from minijax.ir.types import typeof
from minijax.primitives.elementwise import reduce_precision_p
from minijax.transforms.linearize import linearize_flat


@source.boundary
def print_saved_residuals(f: Callable, *args: Any, **kwargs: Any) -> None:
    """Prints the values that the backward pass of `f` at these arguments reads, a line each.

    First those that are arguments, then constants, then results of operations with the lines that made them.
    """
    leaves, in_tree = tree.flatten((args, kwargs))
    info = DebugInfo("saved_residuals", source_of(f), argument_names(signature_of(f), in_tree, ()))

    flat = Flat(f, in_tree, lambda pair: pair)

    def residuals(*xs):
        return linearize_flat(flat, xs, None, info)[3]

    jaxpr, _ = trace_to_jaxpr(residuals, [typeof(x) for x in leaves], info)
    residual_vars = dict.fromkeys(v for v in jaxpr.outvars if type(v) is not Literal)
    lines = [(v, f"from the argument {n}") for v, n in zip(jaxpr.invars, info.arg_names, strict=True)]
    lines += [(v, "from a constant") for v in jaxpr.constvars]
    makers = {v: eqn for eqn in jaxpr.eqns for v in eqn.outvars}
    lines += [(v, _origin(eqn, makers)) for v, eqn in makers.items()]
    for v in jaxpr.outvars:
        if type(v) is Literal:
            print(v.aval.str_short(True), "from a literal")
    for v, text in lines:
        if v in residual_vars:
            print(v.aval.str_short(True), text)


def _origin(eqn: JaxprEqn, makers: dict[Var, JaxprEqn]) -> str:
    place = source.summary(eqn.traceback, columns=True)
    if eqn.primitive is reduce_precision_p and eqn.invars[0] in makers:
        # Saved values are rounded, which is no operation of the user's.
        eqn = makers[eqn.invars[0]]
        place = source.summary(eqn.traceback, columns=True)
    if eqn.primitive is name_p:
        return f"named '{eqn.params['name']}' from {place}"
    if eqn.primitive.name == "jit":
        return f"output of jitted function '{eqn.params['name']}' from {place}"
    return f"output of {eqn.primitive} from {place}"
