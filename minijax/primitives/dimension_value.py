"""Symbolic dimensions as arrays, whose values are known when the program runs."""

from typing import Any

from minijax.base import dtypes
from minijax.base.symbolic.dimension import SymbolicDim
from minijax.ir import state
from minijax.ir.primitive import Primitive
from minijax.ir.trace import EvalTrace
from minijax.ir.types import ShapedArray, SymbolKind, symbol_kinds


class DimAsValue(Primitive):
    """The value of a symbolic dimension."""

    name = "dim_as_value"

    def infer(self, *, dim):
        return [_type_of_value(dim)]

    def lower(self, e, ins, outs, *, dim):
        return [e.size_as(dim, outs[0])]


def _type_of_value(_: SymbolicDim) -> ShapedArray:
    return ShapedArray((), dtypes.scalar_dtype(int), True)


dim_as_value_p = DimAsValue()


def dimension_as_value(d: Any) -> Any:
    """Returns a symbolic dimension as a weakly typed scalar; an int is returned unchanged."""
    if not isinstance(d, SymbolicDim):
        return d
    if isinstance(state.current_trace(), EvalTrace):
        raise NotImplementedError(f"The symbolic dimension '{d}' has no value: it is used outside of jax.export.")
    return dim_as_value_p.bind(dim=d)


SymbolicDim.as_value = staticmethod(dimension_as_value)
symbol_kinds[SymbolicDim] = SymbolKind(_type_of_value, lambda d: (dim_as_value_p, {"dim": d}))
