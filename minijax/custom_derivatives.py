"""jax.custom_derivatives: functions with custom derivative rules."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    """
minijax.api.custom: CustomVJPPrimal closure_convert custom_gradient custom_jvp custom_vjp
    custom_vjp_primal_tree_values zero_from_primal
minijax.calls.custom_derivatives: SymbolicZero custom_jvp_call_p custom_vjp_call_p remat_opt_p
minijax.calls.linear_call: linear_call
""",
)
