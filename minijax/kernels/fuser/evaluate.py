"""`evaluate`: calls a function whose operations kernels have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minijax.api.jit import trace_function
from minijax.base import tree
from minijax.ir.trace import eval_jaxpr

# Operations that a step of a kernel cannot run on blocks alone, since their bodies run many times or not at all.
_CONTROL_FLOW = frozenset("scan while cond".split())


def evaluate(f: Callable[..., Any], *, allow_transpose: bool = True) -> Callable[..., Any]:
    """Creates a function that calls another one, whose operations must be ones that kernels have.

    Args:
      f: function of arrays.
      allow_transpose: whether it may transpose arrays.

    Returns:
      A function of the same arguments and results.

    Raises:
      NotImplementedError: if `f` has loops or branches.
      ValueError: if `f` transposes an array though it may not.

    Example:
        >>> pl.fuser.evaluate(lambda x: x.T + 1)(jnp.ones((1, 2)))
        Array([[2.],
               [2.]], dtype=float32)
    """

    def wrapped(*args, **kwargs):
        closed, out_tree = trace_function(f, args, kwargs, (), "evaluate")
        for eqn in closed.jaxpr.eqns:
            if eqn.primitive.name == "transpose" and not allow_transpose:
                raise ValueError(
                    "Transpose not allowed. Pass allow_transpose=True, or transpose outside of the function."
                )
            if eqn.primitive.name in _CONTROL_FLOW:
                raise NotImplementedError(
                    f"Primitive {eqn.primitive.name} not supported. Use it outside of `evaluate`."
                )
        return out_tree.unflatten(eval_jaxpr(closed.jaxpr, closed.consts, *tree.tree_leaves((args, kwargs))))

    return wrapped
