"""jax.experimental.pjit: the former name of jit with shardings."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    {},
    deprecated={
        "jax.experimental.pjit.{0} has been deprecated. Please use `jax.jit` instead.": {
            "minijax.api.deprecated": "pjit"
        }
    },
)
