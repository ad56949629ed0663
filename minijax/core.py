"""jax.core: types, tracers, and evaluation of jaxprs."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    """
minijax.ir.jaxpr: Atom
minijax.ir.trace: Trace Tracer eval_jaxpr
minijax.ir.types: AbstractValue ShapedArray
minijax.base.symbolic.dimension: max_dim min_dim
minijax.interop.introspection: ParamDict Value eval_context
minijax.api.transfer: ensure_compile_time_eval
""",
    deprecated={
        "jax.core.{0} is deprecated. Use jax.extend.core.{0}.": """
minijax.ir.effects: Effect
minijax.ir.jaxpr: DebugInfo DropVar jaxprs_in_params
minijax.ir.check: check_jaxpr
minijax.interop.calls: CallPrimitive
minijax.ir.concrete: concrete_or_error
minijax.interop.introspection: Effects find_top_trace gensym get_opaque_trace_state new_jaxpr_eqn
    no_effects primal_dtype_to_tangent_dtype valid_jaxtype
""",
        "jax.core.{0} is deprecated. Use jax.errors.{0}.": {
            "minijax.base.errors": "InconclusiveDimensionOperation JaxprTypeError"
        },
        "jax.core.{0} is deprecated.": """
minijax.ir.types: abstract_token=token_type
minijax.interop.introspection: OutputType concretization_function_error is_concrete is_constant_dim is_constant_shape
    literalable_types nonempty_axis_env_DO_NOT_USE=nonempty_axis_env pytype_aval_mappings trace_ctx
    unsafe_am_i_under_a_jit_DO_NOT_USE=unsafe_am_i_under_a_jit
    unsafe_am_i_under_a_vmap_DO_NOT_USE=unsafe_am_i_under_a_vmap
    unsafe_get_axis_names_DO_NOT_USE=unsafe_get_axis_names
minijax.interop.rules: no_axis_name
minijax.interop.calls: call
""",
    },
    removed={
        "jax.core.{0} was deprecated in JAX v0.8.2 and removed in JAX v0.10.0. Use jax.extend.core.{0}.": """
        AbstractToken TraceTag call_impl mapped_aval set_current_trace subjaxprs take_current_trace unmapped_aval
    """,
        "jax.core.{0} was deprecated in JAX v0.8.2 and removed in JAX v0.10.0; use jax.typeof instead.": "get_aval",
        "jax.core.{0} was deprecated in JAX v0.8.2 and removed in JAX v0.10.0.": "traverse_jaxpr_params",
    },
)
