"""Helpers for custom derivative rules: `closure_convert`, zero tangents, and trees of `CustomVJPPrimal`."""

from collections.abc import Callable
from typing import Any

import numpy as np

from minijax.api.custom import CustomVJPPrimal
from minijax.api.shapes import abstract
from minijax.base import dtypes, source, tree as trees
from minijax.base.mask import Mask
from minijax.calls.custom_derivatives import symbolic
from minijax.ir.body import Flat, as_consts, source_of, trace_flat
from minijax.ir.jaxpr import DebugInfo
from minijax.ir.trace import Tracer, eval_jaxpr
from minijax.ir.types import Zero
from minijax.primitives.zeros import instantiate
from minijax.transforms.batch import BatchTracer


def custom_vjp_primal_tree_values(tree: Any) -> Any:
    """Returns the values in a tree of `CustomVJPPrimal`. Raises TypeError for any other leaf."""
    return trees.tree_map(_value, tree, is_leaf=lambda x: type(x) is CustomVJPPrimal)


def _value(leaf: Any) -> Any:
    if type(leaf) is not CustomVJPPrimal:
        raise TypeError(f"custom_vjp_primal_tree_values: unexpected leaf type {type(leaf)}")
    return leaf.value


def zero_from_primal(val: Any, symbolic_zeros: bool = False) -> Any:
    """Returns the zero tangents of a tree of values, arrays or `SymbolicZero`s; those of integers have dtype float0."""
    made = symbolic if symbolic_zeros else instantiate
    return trees.tree_map(lambda x: made(Zero.from_primal_value(x)), val)


@source.boundary
def closure_convert(fun: Callable, *example_args: Any) -> tuple[Callable, list[Any]]:
    """Hoists the values that a function closes over and that may be differentiated: functions become free of tracers.

    Of the arguments only types and tree are used. The returned function raises TypeError for another tree.
    """
    if not callable(fun):
        raise TypeError(f"closure_convert: expected a callable, got {fun!r}")
    leaves, in_tree = trees.flatten(example_args)
    info = DebugInfo("closure_convert", source_of(fun))
    body = trace_flat(Flat(fun, in_tree), [abstract(x) for x in leaves], info, as_consts)
    perturbed = Mask(map(_may_be_perturbed, body.closed.consts))
    fixed, hoisted = perturbed.partition(body.closed.consts)

    def converted_fun(*args_and_consts):
        n = len(args_and_consts) - len(hoisted)
        args, args_tree = trees.flatten(args_and_consts[:n])
        if args_tree != in_tree:
            raise TypeError(
                "The inputs to the closure produced by closure_convert must have the same Pytree structure as the "
                f"example arguments. Expected {in_tree}, but got {args_tree}"
            )
        consts = perturbed.merge(fixed, args_and_consts[n:])
        return body.out_tree.unflatten(eval_jaxpr(body.jaxpr, consts, *args))

    return converted_fun, hoisted


def _may_be_perturbed(x: Any) -> bool:
    """Returns whether a captured value may be perturbed by a differentiation that is running."""
    while type(x) is BatchTracer:
        x = x.val
    return isinstance(x, Tracer) and dtypes.issubdtype(x.aval.dtype, np.inexact)
