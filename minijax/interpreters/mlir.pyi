# The names of this module's table, written by tests/write_stubs.py.

from collections.abc import Iterable
from jaxlib._jax.pytree import PyTreeRegistry
from jaxlib.mlir.ir import Value as Token
from jaxlib.mlir.ir import Value as Value
from minijax.base.lazy import Deferred
from minijax.interop.introspection import Value as MeshAxisName
from minijax.interop.lowering import AxisContext as AxisContext
from minijax.interop.lowering import ConstantHandler as ConstantHandler
from minijax.interop.lowering import LoweringParameters as LoweringParameters
from minijax.interop.lowering import LoweringResult as LoweringResult
from minijax.interop.lowering import LoweringRule as LoweringRule
from minijax.interop.lowering import LoweringRuleContext as LoweringRuleContext
from minijax.interop.lowering import ModuleContext as ModuleContext
from minijax.interop.lowering import SPMDAxisContext as SPMDAxisContext
from minijax.interop.lowering import ShapePolyLoweringState as ShapePolyLoweringState
from minijax.interop.lowering import ShardingContext as ShardingContext
from minijax.interop.lowering import TokenSet as TokenSet
from minijax.interop.lowering import aval_to_ir_type as aval_to_ir_type
from minijax.interop.lowering import aval_to_ir_types as aval_to_ir_types
from minijax.interop.lowering import core_call_lowering as core_call_lowering
from minijax.interop.lowering import dense_int_array as dense_int_array
from minijax.interop.lowering import dense_int_elements as dense_int_elements
from minijax.interop.lowering import dtype_to_ir_type as dtype_to_ir_type
from minijax.interop.lowering import emit_python_callback as emit_python_callback
from minijax.interop.lowering import i32_attr as i32_attr
from minijax.interop.lowering import i64_attr as i64_attr
from minijax.interop.lowering import ir_attribute as ir_attribute
from minijax.interop.lowering import ir_constant as ir_constant
from minijax.interop.lowering import ir_constants as ir_constants
from minijax.interop.lowering import jaxpr_subcomp as jaxpr_subcomp
from minijax.interop.lowering import lower_fun as lower_fun
from minijax.interop.lowering import lower_jaxpr_to_fun as lower_jaxpr_to_fun
from minijax.interop.lowering import lower_jaxpr_to_module as lower_jaxpr_to_module
from minijax.interop.lowering import merge_mlir_modules as merge_mlir_modules
from minijax.interop.lowering import module_to_bytecode as module_to_bytecode
from minijax.interop.lowering import module_to_string as module_to_string
from minijax.interop.lowering import register_constant_handler as register_constant_handler
from minijax.interop.lowering import register_lowering as register_lowering
from minijax.interop.lowering import shape_tensor as shape_tensor
from minijax.interop.lowering import token_type as token_type
from minijax.interop.lowering import unflatten_ir_values_like_types as unflatten_ir_values_like_types
from minijax.ir.effects import lowerable_effects as lowerable_effects
from minijax.partition.meshes import Mesh as Mesh
from minijax.run.programs.bindings import make_context as make_ir_context

__all__ = [
    "AxisContext", "ConstantHandler", "DEVICE_TO_DEVICE_TYPE", "LoweringParameters", "LoweringResult", "LoweringRule",
    "LoweringRuleContext", "Mesh", "MeshAxisName", "ModuleContext", "RECV_FROM_HOST_TYPE", "SEND_TO_HOST_TYPE",
    "SPMDAxisContext", "ShapePolyLoweringState", "ShardingContext", "Token", "TokenSet", "Value", "aval_to_ir_type",
    "aval_to_ir_types", "core_call_lowering", "dense_int_array", "dense_int_elements", "dtype_to_ir_type",
    "emit_python_callback", "flatten_ir_types", "flatten_ir_values", "i32_attr", "i64_attr", "ir", "ir_attribute",
    "ir_constant", "ir_constants", "ir_tree_registry", "jaxpr_subcomp", "lower_fun", "lower_jaxpr_to_fun",
    "lower_jaxpr_to_module", "lowerable_effects", "make_ir_context", "merge_mlir_modules", "module_to_bytecode",
    "module_to_string", "register_constant_handler", "register_lowering", "shape_tensor", "token_type",
    "unflatten_ir_values_like_types"
]

DEVICE_TO_DEVICE_TYPE: int
RECV_FROM_HOST_TYPE: int
SEND_TO_HOST_TYPE: int
def flatten_ir_types(xs: Iterable) -> list: ...
def flatten_ir_values(xs: Iterable) -> list: ...
ir: Deferred
ir_tree_registry: PyTreeRegistry
