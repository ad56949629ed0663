"""jax.extend.sharding: shardings in XLA's terms."""

from minijax.base.faces import Face

_FACE = Face(__name__, (), {"minijax.partition.shardings": "GSPMDSharding"})
__getattr__, __dir__ = _FACE.attribute, _FACE.names
