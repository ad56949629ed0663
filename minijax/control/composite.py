"""`composite`: operations with a name, which compilers may know, and a meaning in terms of others."""

import functools
from collections.abc import Callable
from typing import Any

from minijax.base import source, tree
from minijax.control.call import names_in
from minijax.control.cond import trace_body
from minijax.ir.primitive import Primitive
from minijax.ir.types import typeof


class Composite(Primitive):
    """What `jaxpr` computes, as an operation of StableHLO called `name`."""

    name = "composite"
    multiple_results = True

    def infer(self, *avals, jaxpr, **params):
        return jaxpr.out_avals

    def effects(self, *avals, jaxpr, **params):
        return jaxpr.effects

    def lower(self, e, ins, outs, *operands, name, jaxpr, attributes, version):
        found = {key: tree.tree_unflatten(treedef, leaves) for key, leaves, treedef in attributes}
        return e.composite(name, e.private(jaxpr, name), operands, ins, outs, found, version)

    def jvp(self, primals, tangents, **params):
        raise ValueError(
            "JVP rule for composite not implemented. You can use `jax.custom_jvp` to add support."
        )

    def names_axis(self, params):
        return names_in(params["jaxpr"])


composite_p = Composite()


def composite(decomposition: Callable, name: str, version: int = 0) -> Callable:
    """A function that computes what `decomposition` does, lowered to `stablehlo.composite`.

    Keyword arguments of a call are attributes of the operation. It has no derivatives; give it a custom one.
    """

    @functools.wraps(decomposition)
    @source.boundary
    def decorated(*args: Any, **kwargs: Any) -> Any:
        leaves, treedef = tree.flatten(args)
        fun = functools.wraps(decomposition)(lambda *xs: decomposition(*xs, **kwargs))
        body = trace_body(fun, [typeof(x) for x in leaves], treedef, "composite")
        attributes = tuple((key, *_flat(value)) for key, value in kwargs.items())
        results = composite_p.bind(*body.captured, *leaves, name=name, jaxpr=body.closed,
                                   attributes=attributes, version=version)  # fmt: skip
        return body.out_tree.unflatten(results)

    return decorated


def _flat(value: Any) -> tuple:
    leaves, treedef = tree.flatten(value)
    return tuple(leaves), treedef
