"""jax.experimental.layout: the order of axes in memory."""

from minijax.base.faces import Face

_FACE = Face(
    __name__,
    (),
    {"minijax.run.array": "Format Layout"},
    missing={
        "jax.experimental.layout.{0} is not there yet: programs take the layouts that XLA chooses.": """
        with_layout_constraint
    """
    },
)
__getattr__, __dir__ = _FACE.attribute, _FACE.names
