"""jax.experimental.colocated_python: Python that runs beside devices. Raises NotImplementedError when it is used."""

from minijax.base.faces import Face

_FACE = Face(
    __name__,
    ("func", "serialization"),
    {},
    missing={
        "jax.experimental.colocated_python.{0} is not there yet: no Python runs beside devices.": """
        colocated_cpu_devices colocated_python colocated_python_class
    """
    },
)
__getattr__, __dir__ = _FACE.attribute, _FACE.names
