"""jax.extend.core: jaxprs and primitives, for those who walk or make them."""

from minijax.ir.jaxpr import (
    ClosedJaxpr as ClosedJaxpr,
    Jaxpr as Jaxpr,
    JaxprEqn as JaxprEqn,
    Literal as Literal,
    Var as Var,
)
from minijax.ir.primitive import Primitive as Primitive
from minijax.ir.trace import Trace as Trace, jaxpr_as_fun as jaxpr_as_fun
