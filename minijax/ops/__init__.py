"""jax.ops: reductions of segments. First-order operations live in the modules of this room."""

from minijax.base.faces import Face

_FACE = Face(__name__, (), {"minijax.numpy.segments": "segment_max segment_min segment_prod segment_sum"})
__getattr__ = _FACE.attribute


def __dir__() -> list[str]:
    return _FACE.names()
