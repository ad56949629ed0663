"""jax.test_util: derivatives checked against central differences."""

from minijax.base.faces import Face

_FACE = Face(
    __name__,
    (),
    """
minijax.api.derivative_checks: check_grads check_jvp check_vjp
""",
)
__getattr__, __dir__ = _FACE.attribute, _FACE.names
