"""jax.experimental.shard_map: the former place of shard_map."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    {},
    deprecated={
        "jax.experimental.shard_map is deprecated in v0.8.0. Used jax.shard_map instead.": {
            "minijax.api.deprecated": "shard_map"
        }
    },
)
