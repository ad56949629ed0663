# The names of this module's table, written by tests/write_stubs.py.

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
from minijax.api.transfer import ensure_compile_time_eval as ensure_compile_time_eval
from minijax.base.errors import InconclusiveDimensionOperation as InconclusiveDimensionOperation
from minijax.base.errors import JaxprTypeError as JaxprTypeError
from minijax.base.linear_util import WrappedFun
from minijax.base.symbolic.dimension import max_dim as max_dim
from minijax.base.symbolic.dimension import min_dim as min_dim
from minijax.interop.calls import CallPrimitive as CallPrimitive
from minijax.interop.introspection import Effects as Effects
from minijax.interop.introspection import OpaqueTraceState
from minijax.interop.introspection import OutputType as OutputType
from minijax.interop.introspection import ParamDict as ParamDict
from minijax.interop.introspection import Value as Value
from minijax.interop.introspection import eval_context as eval_context
from minijax.interop.introspection import literalable_types as literalable_types
from minijax.interop.introspection import no_effects as no_effects
from minijax.interop.introspection import pytype_aval_mappings as pytype_aval_mappings
from minijax.interop.introspection import trace_ctx as trace_ctx
from minijax.ir.atoms import Var
from minijax.ir.effects import Effect as Effect
from minijax.ir.jaxpr import Atom as Atom
from minijax.ir.jaxpr import DebugInfo as DebugInfo
from minijax.ir.jaxpr import DropVar as DropVar
from minijax.ir.jaxpr import Jaxpr
from minijax.ir.jaxpr import JaxprEqn
from minijax.ir.primitive import Primitive
from minijax.ir.trace import Trace as Trace
from minijax.ir.trace import Trace as _Trace
from minijax.ir.trace import Tracer as Tracer
from minijax.ir.trace import eval_jaxpr as eval_jaxpr
from minijax.ir.types import AbstractToken
from minijax.ir.types import AbstractValue as AbstractValue
from minijax.ir.types import AbstractValue as _AbstractValue
from minijax.ir.types import ShapedArray as ShapedArray
from typing import Any
from typing_extensions import deprecated

__all__ = [
    "AbstractValue", "Atom", "ParamDict", "ShapedArray", "Trace", "Tracer", "Value", "ensure_compile_time_eval",
    "eval_context", "eval_jaxpr", "max_dim", "min_dim"
]

@deprecated("jax.core.jaxprs_in_params is deprecated. Use jax.extend.core.jaxprs_in_params.")
def jaxprs_in_params(params: dict) -> Iterator[Jaxpr]: ...
@deprecated("jax.core.check_jaxpr is deprecated. Use jax.extend.core.check_jaxpr.")
def check_jaxpr(jaxpr: Jaxpr) -> None: ...
@deprecated("jax.core.concrete_or_error is deprecated. Use jax.extend.core.concrete_or_error.")
def concrete_or_error(force: Callable | None, val: Any, context: str = '') -> Any: ...
@deprecated("jax.core.find_top_trace is deprecated. Use jax.extend.core.find_top_trace.")
def find_top_trace(_: Any) -> _Trace: ...
@deprecated("jax.core.gensym is deprecated. Use jax.extend.core.gensym.")
def gensym() -> Callable[[_AbstractValue], Var]: ...
@deprecated("jax.core.get_opaque_trace_state is deprecated. Use jax.extend.core.get_opaque_trace_state.")
def get_opaque_trace_state(convention: str | None = None) -> OpaqueTraceState: ...
@deprecated("jax.core.new_jaxpr_eqn is deprecated. Use jax.extend.core.new_jaxpr_eqn.")
def new_jaxpr_eqn(
    invars: Sequence,
    outvars: Sequence,
    primitive: Primitive,
    params: dict,
    effects: Any,
    source_info: Any = None,
    ctx: Any = None,
) -> JaxprEqn: ...
@deprecated("jax.core.primal_dtype_to_tangent_dtype is deprecated. Use jax.extend.core.primal_dtype_to_tangent_dtype.")
def primal_dtype_to_tangent_dtype(primal_dtype: Any) -> Any: ...
@deprecated("jax.core.valid_jaxtype is deprecated. Use jax.extend.core.valid_jaxtype.")
def valid_jaxtype(x: Any) -> bool: ...
abstract_token: AbstractToken
@deprecated("jax.core.concretization_function_error is deprecated.")
def concretization_function_error(fun: Callable, suggest_astype: bool = False) -> Callable: ...
@deprecated("jax.core.is_concrete is deprecated.")
def is_concrete(x: Any) -> bool: ...
@deprecated("jax.core.is_constant_dim is deprecated.")
def is_constant_dim(d: Any) -> bool: ...
@deprecated("jax.core.is_constant_shape is deprecated.")
def is_constant_shape(s: Sequence) -> bool: ...
@deprecated("jax.core.nonempty_axis_env_DO_NOT_USE is deprecated.")
def nonempty_axis_env_DO_NOT_USE() -> bool: ...
@deprecated("jax.core.unsafe_am_i_under_a_jit_DO_NOT_USE is deprecated.")
def unsafe_am_i_under_a_jit_DO_NOT_USE() -> bool: ...
@deprecated("jax.core.unsafe_am_i_under_a_vmap_DO_NOT_USE is deprecated.")
def unsafe_am_i_under_a_vmap_DO_NOT_USE() -> bool: ...
@deprecated("jax.core.unsafe_get_axis_names_DO_NOT_USE is deprecated.")
def unsafe_get_axis_names_DO_NOT_USE() -> list: ...
no_axis_name: object
@deprecated("jax.core.call is deprecated.")
def call(*operands: Any, subfuns: Sequence[WrappedFun] = ..., **params: Any) -> list: ...
