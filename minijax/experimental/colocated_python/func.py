"""jax.experimental.colocated_python.func: functions that run beside devices."""

from minijax.base.faces import Face

_FACE = Face(
    __name__,
    (),
    {},
    missing={
        "jax.experimental.colocated_python.{0} is not there yet: no Python runs beside devices.": """
        FunctionInfo Specialization make_callable
    """
    },
)
__getattr__, __dir__ = _FACE.attribute, _FACE.names
