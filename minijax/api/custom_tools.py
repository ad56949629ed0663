"""What custom derivatives may need: `closure_convert`, and the zeros and trees that rules are given."""

from collections.abc import Callable
from typing import Any

import numpy as np

from minijax.api.custom import CustomVJPPrimal
from minijax.base import dtypes, source, tree as trees
from minijax.control.custom import symbolic
from minijax.ir.body import source_of
from minijax.ir.jaxpr import DebugInfo
from minijax.ir.trace import Tracer, eval_jaxpr, trace_to_jaxpr
from minijax.ir.types import Zero, typeof
from minijax.ops.zeros import instantiate
from minijax.transforms.batch import BatchTracer


def custom_vjp_primal_tree_values(tree: Any) -> Any:
    """The values in a tree of `CustomVJPPrimal`; raises TypeError for another leaf."""
    return trees.tree_map(_value, tree, is_leaf=lambda x: type(x) is CustomVJPPrimal)


def _value(leaf: Any) -> Any:
    if type(leaf) is not CustomVJPPrimal:
        raise TypeError(f"custom_vjp_primal_tree_values: unexpected leaf type {type(leaf)}")
    return leaf.value


def zero_from_primal(val: Any, symbolic_zeros: bool = False) -> Any:
    """The zero tangent of a value, as an array or as a `SymbolicZero`; of integers it is of float0."""
    zero = Zero(typeof(val).to_tangent_aval())
    return symbolic(zero) if symbolic_zeros else instantiate(zero)


@source.boundary
def closure_convert(fun: Callable, *example_args: Any) -> tuple[Callable, list[Any]]:
    """A function (*args, *consts) that captures nothing of `fun` that derivatives may be taken by, and the
    consts.

    The arguments tell types and a tree; the function made raises TypeError for another tree.
    """
    if not callable(fun):
        raise TypeError(f"closure_convert: expected a callable, got {fun!r}")
    leaves, in_tree = trees.flatten(example_args)
    out_trees = []

    def flat(*xs):
        results, out_tree = trees.flatten(fun(*in_tree.unflatten(xs)))
        out_trees.append(out_tree)
        return results

    info = DebugInfo("closure_convert", source_of(fun))
    jaxpr, consts = trace_to_jaxpr(flat, [typeof(x) for x in leaves], info)
    hoisted = [_may_move(c) for c in consts]

    def converted_fun(*args_and_consts):
        n = len(args_and_consts) - sum(hoisted)
        args, given = trees.flatten(args_and_consts[:n])
        if given != in_tree:
            raise TypeError(
                "closure_convert: the inputs must have the same Pytree structure as the example arguments. "
                f"Expected {in_tree}, but got {given}"
            )
        moved = iter(args_and_consts[n:])
        values = [next(moved) if h else c for c, h in zip(consts, hoisted, strict=True)]
        return out_trees[-1].unflatten(eval_jaxpr(jaxpr, values, *args))

    return converted_fun, [c for c, h in zip(consts, hoisted, strict=True) if h]


def _may_move(x: Any) -> bool:
    """Whether a derivative may be taken by a captured value."""
    while type(x) is BatchTracer:
        x = x.val
    return isinstance(x, Tracer) and dtypes.issubdtype(x.aval.dtype, np.inexact)
