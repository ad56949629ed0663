"""jax.extend.core: jaxprs and primitives, for code that inspects or builds them."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    """
minijax.ir.types: AbstractToken
minijax.ir.jaxpr: ClosedJaxpr DebugInfo DropVar Jaxpr JaxprEqn Literal Var jaxprs_in_params subjaxprs
minijax.ir.effects: Effect
minijax.run.arrays.token: Token
minijax.base.errors: InconclusiveDimensionOperation JaxprTypeError
minijax.ir.primitive: Primitive
minijax.ir.check: check_jaxpr
minijax.interop.calls: CallPrimitive call_impl
minijax.ir.trace: jaxpr_as_fun
minijax.ir.concrete: concrete_or_error
minijax.interop.introspection: Effects TraceTag array_types find_top_trace gensym
    get_opaque_trace_state mapped_aval new_jaxpr_eqn no_effects nonempty_axis_env_DO_NOT_USE=nonempty_axis_env
    primal_dtype_to_tangent_dtype set_current_trace take_current_trace unmapped_aval
    unsafe_am_i_under_a_jit_DO_NOT_USE=unsafe_am_i_under_a_jit
    unsafe_am_i_under_a_vmap_DO_NOT_USE=unsafe_am_i_under_a_vmap
    unsafe_get_axis_names_DO_NOT_USE=unsafe_get_axis_names valid_jaxtype
""",
    ("primitives",),
)
