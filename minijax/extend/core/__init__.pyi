# The names of this module's table, written by tests/write_stubs.py.

from minijax.base.errors import InconclusiveDimensionOperation as InconclusiveDimensionOperation
from minijax.base.errors import JaxprTypeError as JaxprTypeError
from minijax.extend.core import primitives as primitives
from minijax.interop.calls import CallPrimitive as CallPrimitive
from minijax.interop.calls import call_impl as call_impl
from minijax.interop.introspection import Effects as Effects
from minijax.interop.introspection import TraceTag as TraceTag
from minijax.interop.introspection import array_types as array_types
from minijax.interop.introspection import find_top_trace as find_top_trace
from minijax.interop.introspection import gensym as gensym
from minijax.interop.introspection import get_opaque_trace_state as get_opaque_trace_state
from minijax.interop.introspection import mapped_aval as mapped_aval
from minijax.interop.introspection import new_jaxpr_eqn as new_jaxpr_eqn
from minijax.interop.introspection import no_effects as no_effects
from minijax.interop.introspection import nonempty_axis_env as nonempty_axis_env_DO_NOT_USE
from minijax.interop.introspection import primal_dtype_to_tangent_dtype as primal_dtype_to_tangent_dtype
from minijax.interop.introspection import set_current_trace as set_current_trace
from minijax.interop.introspection import take_current_trace as take_current_trace
from minijax.interop.introspection import unmapped_aval as unmapped_aval
from minijax.interop.introspection import unsafe_am_i_under_a_jit as unsafe_am_i_under_a_jit_DO_NOT_USE
from minijax.interop.introspection import unsafe_am_i_under_a_vmap as unsafe_am_i_under_a_vmap_DO_NOT_USE
from minijax.interop.introspection import unsafe_get_axis_names as unsafe_get_axis_names_DO_NOT_USE
from minijax.interop.introspection import valid_jaxtype as valid_jaxtype
from minijax.ir.check import check_jaxpr as check_jaxpr
from minijax.ir.concrete import concrete_or_error as concrete_or_error
from minijax.ir.effects import Effect as Effect
from minijax.ir.jaxpr import ClosedJaxpr as ClosedJaxpr
from minijax.ir.jaxpr import ClosedJaxpr as _ClosedJaxpr
from minijax.ir.jaxpr import DebugInfo as DebugInfo
from minijax.ir.jaxpr import DropVar as DropVar
from minijax.ir.jaxpr import Jaxpr as Jaxpr
from minijax.ir.jaxpr import JaxprEqn as JaxprEqn
from minijax.ir.jaxpr import Literal as Literal
from minijax.ir.jaxpr import Var as Var
from minijax.ir.jaxpr import jaxprs_in_params as jaxprs_in_params
from minijax.ir.jaxpr import subjaxprs as subjaxprs
from minijax.ir.primitive import Primitive as Primitive
from minijax.ir.types import AbstractToken as AbstractToken
from minijax.run.arrays.token import Token as Token
from typing import Any

__all__ = [
    "AbstractToken", "CallPrimitive", "ClosedJaxpr", "DebugInfo", "DropVar", "Effect", "Effects",
    "InconclusiveDimensionOperation", "Jaxpr", "JaxprEqn", "JaxprTypeError", "Literal", "Primitive", "Token",
    "TraceTag", "Var", "array_types", "call_impl", "check_jaxpr", "concrete_or_error", "find_top_trace", "gensym",
    "get_opaque_trace_state", "jaxpr_as_fun", "jaxprs_in_params", "mapped_aval", "new_jaxpr_eqn", "no_effects",
    "nonempty_axis_env_DO_NOT_USE", "primal_dtype_to_tangent_dtype", "primitives", "set_current_trace", "subjaxprs",
    "take_current_trace", "unmapped_aval", "unsafe_am_i_under_a_jit_DO_NOT_USE",
    "unsafe_am_i_under_a_vmap_DO_NOT_USE", "unsafe_get_axis_names_DO_NOT_USE", "valid_jaxtype"
]

def jaxpr_as_fun(closed_jaxpr: _ClosedJaxpr, *args: Any) -> list: ...
