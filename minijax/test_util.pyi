# The names of this module's table, written by tests/write_stubs.py.

from minijax.api.derivative_checks import check_grads as check_grads
from minijax.api.derivative_checks import check_jvp as check_jvp
from minijax.api.derivative_checks import check_vjp as check_vjp

__all__ = [
    "check_grads", "check_jvp", "check_vjp"
]
