# The names of this module's table, written by tests/write_stubs.py.

from minijax.api.transfer import ensure_compile_time_eval as ensure_compile_time_eval
from minijax.base.symbolic import max_dim as max_dim
from minijax.base.symbolic import min_dim as min_dim
from minijax.interop.introspection import ParamDict as ParamDict
from minijax.interop.introspection import Value as Value
from minijax.interop.introspection import eval_context as eval_context
from minijax.ir.jaxpr import Atom as Atom
from minijax.ir.trace import Trace as Trace
from minijax.ir.trace import Tracer as Tracer
from minijax.ir.trace import eval_jaxpr as eval_jaxpr
from minijax.ir.types import AbstractValue as AbstractValue
from minijax.ir.types import ShapedArray as ShapedArray

__all__ = [
    "AbstractValue", "Atom", "ParamDict", "ShapedArray", "Trace", "Tracer", "Value", "ensure_compile_time_eval",
    "eval_context", "eval_jaxpr", "max_dim", "min_dim"
]
