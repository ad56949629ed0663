"""jax.test_util: derivatives checked against central differences."""

from minijax.api.derivative_checks import check_grads as check_grads, check_jvp as check_jvp, check_vjp as check_vjp
