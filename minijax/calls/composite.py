"""`composite`: named operations that a compiler may recognize, decomposed into others if it does not."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.base import source, tree
from minijax.base.errors import UnexpectedTracerError
from minijax.base.util import ByKey
from minijax.calls.bodied import names_in
from minijax.calls.call import Inlined
from minijax.ir.body import trace_body
from minijax.ir.trace import Tracer, checked_values
from minijax.ir.types import typed_value, typeof


class HashableArray(ByKey):
    """A NumPy array as an attribute: equal ones have the same type and bits."""

    __slots__ = ("val",)

    def __init__(self, val: np.ndarray):
        self.val = val.copy()
        self.identify(val.shape, val.dtype, val.tobytes())

    def __repr__(self):
        return f"HashableArray({self.val!r})"


class Composite(Inlined):
    """A call of `jaxpr` as an operation of StableHLO called `name`."""

    name = "composite"
    auto_pvary = True

    def lower(self, e, ins, outs, *operands, name, jaxpr, attributes, version):
        attributes_by_name = {
            key: tree.tree_unflatten(treedef, [x.val if type(x) is HashableArray else x for x in leaves])
            for key, leaves, treedef in attributes
        }
        return e.composite(name, e.private(jaxpr, name), operands, ins, outs, attributes_by_name, version)

    def jvp(self, primals, tangents, **params):
        raise ValueError("JVP rule for composite not implemented. You can use `jax.custom_jvp` to add support.")

    def names_axis(self, params):
        return names_in(params["jaxpr"].jaxpr)


composite_p = Composite()


def composite(decomposition: Callable, name: str, version: int = 0) -> Callable:
    """Wraps `decomposition` in a function that is lowered to `stablehlo.composite`.

    Keyword arguments of a call are attributes of the operation. It has no derivatives; add a custom one.
    Raises UnexpectedTracerError if `decomposition` closes over a tracer, or an attribute is one.

    Example:
        >>> norm = jax.lax.composite(lambda x: jnp.sqrt(jnp.sum(x * x)), name="my.norm")
        >>> norm(jnp.array([3.0, 4.0]))
        Array(5., dtype=float32)
        >>> 'stablehlo.composite "my.norm"' in jax.jit(norm).lower(jnp.ones(2)).as_text()
        True
    """

    @functools.wraps(decomposition)
    @source.boundary
    def decorated(*args: Any, **kwargs: Any) -> Any:
        leaves, treedef = tree.flatten(args)
        fun = functools.wraps(decomposition)(lambda *xs: decomposition(*xs, **kwargs))
        leaves = list(map(typed_value, checked_values(leaves)))
        body = trace_body(fun, [typeof(x) for x in leaves], treedef, "composite")
        attributes = tuple((key, *_flat(value)) for key, value in kwargs.items())
        _check_known(name, "a constant", body.captured)
        _check_known(name, "an attribute", [x for _, given, _ in attributes for x in given])
        results = composite_p.bind(
            *body.captured, *leaves, name=name, jaxpr=body.closed, attributes=attributes, version=version
        )
        return body.out_tree.unflatten(results)

    return decorated


def _check_known(name: str, kind: str, values: Sequence) -> None:
    for x in values:
        if isinstance(x, Tracer):
            raise UnexpectedTracerError(
                f"Found a JAX Tracer as {kind} in the decomposition for the composite op {name!r}: {x}. "
                "Give it to the function as an argument."
            )


def _flat(value: Any) -> tuple:
    leaves, treedef = tree.flatten(value)
    return tuple([HashableArray(x) if isinstance(x, np.ndarray) else x for x in leaves]), treedef
