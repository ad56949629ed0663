"""jax.interpreters.mlir: lowering rules."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    """
minijax.interop.lowering: AxisContext ConstantHandler DEVICE_TO_DEVICE_TYPE LoweringParameters LoweringResult
    LoweringRule LoweringRuleContext ModuleContext RECV_FROM_HOST_TYPE SEND_TO_HOST_TYPE SPMDAxisContext
    ShapePolyLoweringState ShardingContext TokenSet aval_to_ir_type aval_to_ir_types core_call_lowering
    dense_int_array dense_int_elements dtype_to_ir_type emit_python_callback flatten_ir_types
    flatten_ir_values i32_attr i64_attr ir ir_attribute ir_constant ir_constants ir_tree_registry jaxpr_subcomp
    lower_fun lower_jaxpr_to_fun
    lower_jaxpr_to_module merge_mlir_modules module_to_bytecode module_to_string register_constant_handler
    register_lowering shape_tensor token_type unflatten_ir_values_like_types
minijax.interop.introspection: MeshAxisName=Value
minijax.run.programs.bindings: make_ir_context=make_context
minijax.ir.effects: lowerable_effects
minijax.partition.meshes: Mesh
jaxlib.mlir.ir: Value Token=Value
""",
)
