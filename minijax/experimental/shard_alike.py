"""jax.experimental.shard_alike: gives two values the same sharding."""

from minijax.base.faces import Face

_FACE = Face(
    __name__,
    (),
    """
minijax.primitives.shard_alike: shard_alike
""",
)
__getattr__, __dir__ = _FACE.attribute, _FACE.names
