"""jax.experimental.colocated_python.serialization: the type of device lists, which libraries import."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(__name__, "minijax.run.clients.client: DeviceList")
