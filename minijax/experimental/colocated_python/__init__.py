"""jax.experimental.colocated_python: Python functions that run on the hosts of devices."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    "minijax.experimental.colocated_python.api: colocated_cpu_devices colocated_python colocated_python_class",
    ("api", "func", "obj", "serialization"),
)
