"""jax.experimental.layout: memory layouts of arrays."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__, {"minijax.partition.layouts": "Format Layout", "minijax.primitives.sharding": "with_layout_constraint"}
)
