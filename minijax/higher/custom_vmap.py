"""The operation of functions whose batching rule the user gives."""

from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any

from minijax.base import tree
from minijax.base.mask import Mask
from minijax.dispatch.call import Inlined, split_tangents
from minijax.higher.remat_opt import no_reverse_mode
from minijax.ir.jaxpr import JaxprEqn
from minijax.ir.primitive import Axis
from minijax.ir.types import Zero, typeof
from minijax.primitives import moving
from minijax.primitives.zeros import instantiate
from minijax.transforms.batch import batch_flat, place
from minijax.transforms.jvp import jvp_flat, jvp_jaxpr

# Axis size, which operands have a leading batch axis, operands -> results, which of them have one.
FlatRule = Callable[[int, Sequence[bool], Sequence], tuple[list, list[bool]]]


class CustomVmapCall(Inlined):
    """Calls a jaxpr whose batching is `rule`: what equations print of it, and the flat rule."""

    name = "custom_vmap_call"
    body_name = "call"

    def batch(self, axis, operands, dims, *, call, in_tree, out_tree, rule):
        flags = [d is not None for d in dims]
        moved = [
            moving.axis_to_front(x, d, axis.size) if f else x for x, d, f in zip(operands, dims, flags, strict=True)
        ]
        results, batched = rule[1](axis.size, flags, moved)
        for x, is_batched in zip(results, batched, strict=True):
            if is_batched and not typeof(x).shape:
                raise IndexError(
                    f"custom_vmap: the rule calls a result batched that has no axis, of type {typeof(x).str_short()}"
                )
        return results, [0 if b else None for b in batched]

    def jvp(self, primals, tangents, *, call, in_tree, out_tree, rule):
        moves = Mask(t.aval.dtype.names is None if type(t) is Zero else True for t in tangents)
        has_numbers = tuple(a.to_tangent_aval().dtype.names is None for a in call.out_avals)
        pushed, out_moves = jvp_jaxpr(call, moves, has_numbers)
        params = dict(in_tree=_with_tangents(in_tree, moves), out_tree=_with_tangents(out_tree, out_moves))
        params["rule"] = _jvp_rule(rule[1], moves, out_moves)
        results = self.bind(*primals, *map(instantiate, moves.marked(tangents)), call=pushed, **params)
        return split_tangents(results[: len(out_moves)], results[len(out_moves) :], out_moves)

    def linearize(self, nonzeros, primals, **params):
        raise no_reverse_mode(self)

    def show_params(self, eqn: JaxprEqn):
        p = eqn.params
        return [*((n, p[n]) for n in ("call", "in_tree", "out_tree")), ("rule", p["rule"][0])]


custom_vmap_call_p = CustomVmapCall()


def _with_tangents(treedef: Any, moves: Mask) -> Any:
    """The tree of a value and its tangents, None where they are no numbers."""
    return tree.tree_structure((treedef.unflatten(moves), treedef.unflatten([m or None for m in moves])))


def _jvp_rule(rule: FlatRule, moves: Mask, out_moves: Mask) -> tuple[Callable, FlatRule]:
    """The batching rule of the derivative: the derivative of the rule."""

    def jvp_of_rule_rule(size, flags, operands):
        n = len(moves)
        primals, primal_flags = operands[:n], flags[:n]
        tangents = moves.merge([Zero.from_primal_value(x) for x in moves.unmarked(primals)], operands[n:])
        tangent_flags = moves.merge(repeat(False), flags[n:])
        either = Mask(primal_flags) | tangent_flags
        both = Mask([p and (t or not m) for p, t, m in zip(primal_flags, tangent_flags, moves, strict=True)])
        batched: list[bool] = []

        def pushed(flags, primals, tangents):
            def run(*primals):
                results, batched[:] = rule(size, flags, primals)
                return results

            results, tangents = jvp_flat(run, primals, tangents)
            return [*results, *map(instantiate, out_moves.marked(tangents))]

        # Where no value is batched with its tangent, the rule sees none batched, and vmap does the rest.
        def one(*xs):
            return pushed(both, xs[:n], moves.merge(moves.unmarked(tangents), xs[n:]))

        if any(either) and not any(both):
            axis, dims = Axis(None, size), [0 if f else None for f in flags]
            results, out_dims = batch_flat(one, axis, operands, dims)
            if not any(batched):
                rows = zip(results, out_dims, strict=True)
                return [place(x, d, None if d is None else 0, axis) for x, d in rows], [d is not None for d in out_dims]

        def broadcast(xs, flags):
            missing = (e and not f and type(x) is not Zero for x, f, e in zip(xs, flags, either, strict=True))
            return [moving.broadcast_axis(x, size, 0) if add else x for x, add in zip(xs, missing, strict=True)]

        results = pushed(either, broadcast(primals, primal_flags), broadcast(tangents, tangent_flags))
        return results, [*batched, *out_moves.marked(batched)]

    # As jax prints it.
    jvp_of_rule_rule.__qualname__ = "custom_vmap_jvp.<locals>.jvp_of_rule_rule"
    return jvp_of_rule_rule, jvp_of_rule_rule


def user_rule(rule: Callable, name: str, in_tree: Any, out_tree: Any) -> tuple[Callable, FlatRule]:
    """A rule as the user wrote it, (axis size, trees of flags, *arguments) -> (result, tree of flags)."""

    def flat(size, flags, operands):
        captured, in_batched = in_tree.unflatten(flags)
        if any(captured):
            raise AssertionError(
                f"custom_vmap: the function {name} captures a value that is batched; such values must be its arguments"
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
