# The names of this module's table, written by tests/write_stubs.py.

from minijax.api.custom import CustomVJPPrimal as CustomVJPPrimal
from minijax.api.custom import closure_convert as closure_convert
from minijax.api.custom import custom_gradient as custom_gradient
from minijax.api.custom import custom_jvp as custom_jvp
from minijax.api.custom import custom_vjp as custom_vjp
from minijax.api.custom import custom_vjp_primal_tree_values as custom_vjp_primal_tree_values
from minijax.api.custom import zero_from_primal as zero_from_primal
from minijax.calls.custom_derivatives import SymbolicZero as SymbolicZero
from minijax.calls.custom_derivatives import custom_jvp_call_p as custom_jvp_call_p
from minijax.calls.custom_derivatives import custom_vjp_call_p as custom_vjp_call_p
from minijax.calls.custom_derivatives import remat_opt_p as remat_opt_p
from minijax.calls.linear_call import linear_call as linear_call

__all__ = [
    "CustomVJPPrimal", "SymbolicZero", "closure_convert", "custom_gradient", "custom_jvp", "custom_jvp_call_p",
    "custom_vjp", "custom_vjp_call_p", "custom_vjp_primal_tree_values", "linear_call", "remat_opt_p",
    "zero_from_primal"
]
