"""jax.ops: reductions of segments."""

from minijax.base.faces import Face

_FACE = Face(__name__, (), {"minijax.ops.segments": "segment_max segment_min segment_prod segment_sum"})
__getattr__ = _FACE.attribute


def __dir__() -> list[str]:
    return _FACE.names()
