"""jax.custom_derivatives: functions with derivatives of their own."""

from minijax.api.custom import (
    CustomVJPPrimal as CustomVJPPrimal,
    custom_gradient as custom_gradient,
    custom_jvp as custom_jvp,
    custom_vjp as custom_vjp,
)
from minijax.control.custom import (
    SymbolicZero as SymbolicZero,
    custom_jvp_call_p as custom_jvp_call_p,
    custom_vjp_call_p as custom_vjp_call_p,
)
