"""jax.test_util: checks derivatives against central differences."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(__name__, "minijax.api.derivative_checks: check_grads check_jvp check_vjp")
