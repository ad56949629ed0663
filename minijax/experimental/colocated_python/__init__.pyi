# The names of this module's table, written by tests/write_stubs.py.

from minijax.experimental.colocated_python import api as api
from minijax.experimental.colocated_python import func as func
from minijax.experimental.colocated_python import obj as obj
from minijax.experimental.colocated_python import serialization as serialization
from minijax.experimental.colocated_python.api import colocated_cpu_devices as colocated_cpu_devices
from minijax.experimental.colocated_python.api import colocated_python as colocated_python
from minijax.experimental.colocated_python.api import colocated_python_class as colocated_python_class

__all__ = [
    "api", "colocated_cpu_devices", "colocated_python", "colocated_python_class", "func", "obj", "serialization"
]
