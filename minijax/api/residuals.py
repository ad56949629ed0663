"""`print_saved_residuals`: lists the residuals of reverse mode, and where they come from."""

from collections.abc import Callable
from typing import Any

from minijax.base import source, tree
from minijax.calls.print_saved_residuals import origin
from minijax.ir.body import Flat, argument_names, signature_of, source_of
from minijax.ir.jaxpr import DebugInfo, Literal
from minijax.ir.trace import trace_to_jaxpr
from minijax.ir.types import typeof
from minijax.transforms.linearize import linearize_flat


@source.boundary
def print_saved_residuals(f: Callable, *args: Any, **kwargs: Any) -> None:
    """Prints the residuals of the backward pass of `f` at these arguments, one a line.

    Constants come first, then arguments, then results of operations with their source lines.
    """
    leaves, in_tree = tree.flatten((args, kwargs))
    info = DebugInfo("saved_residuals", source_of(f), argument_names(signature_of(f), in_tree, ()))

    flat = Flat(f, in_tree, lambda pair: pair)

    def residuals(*xs):
        return linearize_flat(flat, xs, None, info)[3]

    jaxpr, _ = trace_to_jaxpr(residuals, [typeof(x) for x in leaves], info)
    residual_vars = dict.fromkeys(v for v in jaxpr.outvars if type(v) is not Literal)
    lines = [(v, "from a constant") for v in jaxpr.constvars]
    lines += [(v, f"from the argument {n}") for v, n in zip(jaxpr.invars, info.arg_names, strict=True)]
    makers = {v: eqn for eqn in jaxpr.eqns for v in eqn.outvars}
    lines += [(v, origin(eqn, makers)) for v, eqn in makers.items()]
    for v in jaxpr.outvars:
        if type(v) is Literal:
            print(v.aval.str_short(True), "from a literal")
    for v, text in lines:
        if v in residual_vars:
            print(v.aval.str_short(True), text)
