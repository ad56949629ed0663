"""jax.interpreters.partial_eval: tracing to jaxprs, and their dead code elimination."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    """
minijax.ir.trace: DynamicJaxprTracer JaxprTracer=DynamicJaxprTracer
minijax.interop.introspection: Val=Value
minijax.interop.partial_evaluation: PartialVal dce_jaxpr dce_jaxpr_consts trace_to_jaxpr_dynamic
    trace_to_jaxpr_nounits
minijax.interop.rules: dce_jaxpr_call_rule dce_jaxpr_closed_call_rule dce_rules partial_eval_jaxpr_custom_rules
""",
)
