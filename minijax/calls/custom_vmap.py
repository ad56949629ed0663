"""The primitive of functions with a user-defined batching rule."""

from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any

import numpy as np

from minijax.base import tree
from minijax.base.mask import Mask
from minijax.calls.bodied import split_tangents
from minijax.calls.call import Inlined
from minijax.ir.jaxpr import JaxprEqn
from minijax.ir.primitive import Axis
from minijax.ir.rules import no_reverse_mode_error
from minijax.ir.types import Zero, typeof
from minijax.primitives import moving
from minijax.primitives.counting import iota
from minijax.primitives.dynamic_slice import dynamic_index_in_dim
from minijax.primitives.zeros import instantiate
from minijax.transforms.batch import batch_flat
from minijax.transforms.jvp import jvp_flat, jvp_jaxpr

# (axis size, mask of operands with a leading batch axis, operands) -> (results, mask of batched results)
FlatRule = Callable[[int, Sequence[bool], Sequence], tuple[list, list[bool]]]


class CustomVmapCall(Inlined):
    """Calls a jaxpr with a user-defined batching rule. `rule`: the function that equations print, the flat rule."""

    name = "custom_vmap_call"
    body_name = "call"

    def batch(self, axis, operands, dims, *, call, in_tree, out_tree, rule):
        flags = [d is not None for d in dims]
        in_front = [moving.axis_to_front(x, d, axis) if f else x for x, d, f in zip(operands, dims, flags, strict=True)]
        results, batched = rule[1](axis.size, flags, in_front)
        for x, is_batched in zip(results, batched, strict=True):
            if is_batched and not typeof(x).shape:
                raise IndexError(
                    f"custom_vmap: the rule marks a result without axes as batched, of type {typeof(x).str_short()}"
                )
        return results, [0 if b else None for b in batched]

    def jvp(self, primals, tangents, *, call, in_tree, out_tree, rule):
        has_tangent = Mask(t.aval.dtype.names is None if type(t) is Zero else True for t in tangents)
        numeric_out = tuple(a.to_tangent_aval().dtype.names is None for a in call.out_avals)
        pushed, out_has_tangent = jvp_jaxpr(call, has_tangent, numeric_out)
        params = dict(in_tree=_with_tangents(in_tree, has_tangent), out_tree=_with_tangents(out_tree, out_has_tangent))
        params["rule"] = _jvp_rule(rule[1], has_tangent, out_has_tangent, [a.ndim for a in pushed.out_avals])
        results = self.bind(*primals, *map(instantiate, has_tangent.marked(tangents)), call=pushed, **params)
        return split_tangents(results[: len(out_has_tangent)], results[len(out_has_tangent) :], out_has_tangent)

    def linearize(self, nonzeros, primals, *, call, **params):
        numeric = tuple(typeof(x).to_tangent_aval().dtype.names is None for x in primals)
        jvp_jaxpr(call, numeric, (False,) * len(call.out_avals))  # its errors come first
        if call.out_avals:
            raise no_reverse_mode_error(self)
        return [], Mask(), lambda *tangents: []

    def show_params(self, eqn: JaxprEqn):
        p = eqn.params
        return [*((n, p[n]) for n in ("call", "in_tree", "out_tree")), ("rule", p["rule"][0])]


custom_vmap_call_p = CustomVmapCall()


def _with_tangents(treedef: Any, has_tangent: Mask) -> Any:
    """The structure of (values, tangents), with None in place of float0 tangents."""
    return tree.tree_structure((treedef.unflatten(has_tangent), treedef.unflatten([m or None for m in has_tangent])))


def _jvp_rule(
    rule: FlatRule, has_tangent: Mask, out_has_tangent: Mask, ranks: Sequence[int]
) -> tuple[Callable, FlatRule]:
    """The batching rule of the derivative: the derivative of the rule.

    The rule gets an argument as batched if both its primal and its tangent are. If only one of the two is, the
    derivative is mapped over it.
    """

    def jvp_of_rule_rule(size, flags, operands):
        n = len(has_tangent)
        primals, primal_flags = operands[:n], Mask(flags[:n])
        tangents = has_tangent.merge([Zero.from_primal_value(x) for x in has_tangent.unmarked(primals)], operands[n:])
        # An argument without a tangent has the batching of its primal.
        all_tangent_flags = has_tangent.merge(has_tangent.unmarked(primal_flags), flags[n:])
        both = [f and t for f, t in zip(primal_flags, all_tangent_flags, strict=True)]
        batched: list[bool] = []

        def run(*primals):
            results, batched[:] = rule(size, both, primals)
            return results

        def push(*values):
            results, pushed = jvp_flat(run, values[:n], values[n:])
            return [*results, *map(instantiate, out_has_tangent.marked(pushed))]

        tangent_flags = has_tangent.merge(repeat(False), flags[n:])
        mixed = [f and not b for f, b in zip((*primal_flags, *tangent_flags), (*both, *both), strict=True)]
        if not any(mixed):
            return push(*primals, *tangents), [*batched, *out_has_tangent.marked(batched)]

        def push_one(i, *values):
            results = push(*values)
            pairs = zip(results, ranks, strict=True)
            return [dynamic_index_in_dim(x, i, keepdims=False) if typeof(x).ndim > n else x for x, n in pairs]

        values, dims = [iota(np.dtype(np.int32), size), *primals, *tangents], [0, *(0 if f else None for f in mixed)]
        results, out_dims = batch_flat(push_one, Axis(None, size), values, dims)
        results = [x if d is None else moving.move_axis(x, d, 0) for x, d in zip(results, out_dims, strict=True)]
        return results, [d is not None for d in out_dims]

    # As jax prints it.
    jvp_of_rule_rule.__qualname__ = "custom_vmap_jvp.<locals>.jvp_of_rule_rule"
    return jvp_of_rule_rule, jvp_of_rule_rule


def flatten_batching_rule(rule: Callable, name: str, in_tree: Any, out_tree: Any) -> tuple[Callable, FlatRule]:
    """The user's rule, (axis size, trees of flags, *arguments) -> (result, tree of flags), and its flat form."""

    def flat(size, flags, operands):
        captured, in_batched = in_tree.unflatten(flags)
        if any(captured):
            raise AssertionError(
                f"custom_vmap: the function {name} captures a batched value; batched values must be its arguments"
            )
        out, out_batched = rule(size, list(in_batched), *in_tree.unflatten(operands)[1])
        leaves, result_tree = tree.flatten(out)
        batched, spec = tree.flatten(out_batched)
        if result_tree != spec:
            raise ValueError(
                "structure of output value and output batching specification returned by custom vmap rule "
                f"({getattr(rule, '__name__', rule)}) do not match.\nOutput values: {result_tree}\n"
                f"Batching spec: {spec}"
            )
        if result_tree != out_tree:
            raise ValueError(
                f"structure of output returned by custom vmap rule ({getattr(rule, '__name__', rule)}) does "
                "not match that of original custom-vmapped function.\n"
                f"Original output: {out_tree}\nRule output: {result_tree}"
            )
        return leaves, batched

    return rule, flat
