"""jax.custom_derivatives: functions with derivatives of their own."""

from minijax.api.custom import (
    CustomVJPPrimal as CustomVJPPrimal,
    custom_gradient as custom_gradient,
    custom_jvp as custom_jvp,
    custom_vjp as custom_vjp,
)
from minijax.api.custom_tools import (
    closure_convert as closure_convert,
    custom_vjp_primal_tree_values as custom_vjp_primal_tree_values,
    zero_from_primal as zero_from_primal,
)
from minijax.higher.custom_derivatives import (
    SymbolicZero as SymbolicZero,
    custom_jvp_call_p as custom_jvp_call_p,
    custom_vjp_call_p as custom_vjp_call_p,
)
from minijax.higher.linear_call import linear_call as linear_call
from minijax.higher.remat_opt import remat_opt_p as remat_opt_p
