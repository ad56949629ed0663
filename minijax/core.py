"""jax.core: types, tracers, and running a jaxpr."""

from minijax.ir.jaxpr import (
    Atom as Atom,
    ClosedJaxpr as ClosedJaxpr,
    Jaxpr as Jaxpr,
    JaxprEqn as JaxprEqn,
    Literal as Literal,
    Var as Var,
)
from minijax.ir.trace import (
    Trace as Trace,
    Tracer as Tracer,
    eval_jaxpr as eval_jaxpr,
    jaxpr_as_fun as jaxpr_as_fun,
)
from minijax.ir.types import AbstractValue as AbstractValue, ShapedArray as ShapedArray
