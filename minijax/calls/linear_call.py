"""`linear_call`: a linear function with a user-defined transpose."""

from collections.abc import Callable, Sequence
from typing import Any

from minijax.base import source, tree
from minijax.calls.call import Inlined
from minijax.ir.body import Body, Flat, source_of, trace_flat
from minijax.ir.jaxpr import DebugInfo
from minijax.ir.primitive import is_undefined_primal
from minijax.ir.types import Zero, typeof
from minijax.primitives.zeros import instantiate


class LinearCall(Inlined):
    """Calls `callee`, a jaxpr of (captured values, residuals, linear operands).

    `transpose_thunk()` returns the jaxpr of its transpose and the values that this captures.
    """

    name = "linear_call"
    body_name = "callee"

    def jvp(self, primals, tangents, **params):
        n = params["num_callee_consts"] + params["num_res"]
        if not all(type(t) is Zero for t in tangents[:n]):
            raise AssertionError(
                "linear_call: the function is differentiated with respect to its residuals or to values that "
                "it captures, but it is only known to be linear in its other operands."
            )
        pushed = [*primals[:n], *map(instantiate, tangents[n:])]
        return self.bind(*primals, **params), self.bind(*pushed, **params)

    def transpose(self, cts, *operands, callee, num_callee_consts, num_res, transpose_thunk):
        n = num_callee_consts + num_res
        captured, residuals = operands[:num_callee_consts], operands[num_callee_consts:n]
        back, consts = transpose_thunk()

        def again():
            return callee, captured

        again.__qualname__ = "_linear_call_transpose_rule.<locals>.new_transpose_thunk"  # as jax prints it
        params = dict(callee=back, num_callee_consts=len(consts), num_res=num_res, transpose_thunk=again)
        linear_cts = self.bind(*consts, *residuals, *map(instantiate, cts), **params)
        pairs = zip(operands[n:], linear_cts, strict=True)
        return [None] * n + [ct if is_undefined_primal(x) else None for x, ct in pairs]


linear_call_p = LinearCall()


@source.boundary
def linear_call(fun: Callable, fun_transpose: Callable, residual_args: Any, linear_args: Any) -> Any:
    """Calls `fun(residual_args, linear_args)`, which is linear in the second argument.

    `fun_transpose(residual_args, ct)` is its transpose.

    Raises AssertionError if differentiated with respect to the residuals.

    Example:
        >>> divide = lambda residual, x: x / residual
        >>> f = lambda x: jax.custom_derivatives.linear_call(divide, divide, 2.0, x)
        >>> f(6.0), jax.linear_transpose(f, 1.0)(6.0)
        (Array(3., dtype=float32, weak_type=True), (Array(3., dtype=float32, weak_type=True),))
    """
    for f in (fun, fun_transpose):
        if not callable(f):
            raise TypeError(f"linear_call: the function and its transpose must be callable, got {f!r}")
    residuals, residual_tree = tree.flatten(residual_args)
    linear, linear_tree = tree.flatten(linear_args)
    avals = [typeof(x) for x in linear]
    residual_avals = [typeof(x) for x in residuals]
    callee, consts, out_tree = _traced(fun, (residual_tree, linear_tree), [*residual_avals, *avals])

    transposed: list[tuple] = []

    def thunk():
        if transposed:
            return transposed[0]
        cts = [a.to_ct_aval() for a in callee.out_avals]
        back, captured, back_tree = _traced(fun_transpose, (residual_tree, out_tree), [*residual_avals, *cts])
        if back_tree != linear_tree:
            raise TypeError(
                "linear_call: transpose output pytree structure must match that of linear inputs, got output "
                f"structure {back_tree} and input structure {linear_tree}."
            )
        for a, ct in zip(avals, back.out_avals, strict=True):
            if a.shape != ct.shape:
                raise ValueError(
                    f"linear_call: Expected cotangent type {a.to_ct_aval().str_short()} but got "
                    f"{ct.str_short()} from the transpose"
                )
        transposed.append((back, captured))
        return transposed[0]

    thunk.__qualname__ = "_memoize.<locals>.memoized"  # as jax prints it
    params = dict(callee=callee, num_callee_consts=len(consts), num_res=len(residuals), transpose_thunk=thunk)
    return out_tree.unflatten(linear_call_p.bind(*consts, *residuals, *linear, **params))


def _traced(fun: Callable, trees: tuple, avals: Sequence) -> Body:
    flat = Flat(fun, tree.treedef_tuple(trees))
    return trace_flat(flat, avals, DebugInfo("linear_call", source_of(fun)))
