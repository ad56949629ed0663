"""jax.experimental.colocated_python.serialization: the type of lists of devices, which libraries ask for."""

from minijax.base.faces import Face

_FACE = Face(
    __name__,
    (),
    """
minijax.run.client: DeviceList
""",
)
__getattr__, __dir__ = _FACE.attribute, _FACE.names
