"""jax.distributed: programs of several processes."""

from minijax.base.faces import Face

_FACE = Face(
    __name__,
    (),
    {"minijax.api.processes": "is_initialized shutdown"},
    missing={"jax.distributed.{0} is not there yet: programs run in one process.": "initialize"},
)
__getattr__, __dir__ = _FACE.attribute, _FACE.names
