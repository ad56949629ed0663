"""jax.ops: segment reductions."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__, {"minijax.ops.segments": "segment_max segment_min segment_prod segment_sum"}
)
