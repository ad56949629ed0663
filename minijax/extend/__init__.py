"""jax.extend: what libraries that extend JAX use."""

from minijax.base.faces import Face

_FACE = Face(
    __name__,
    """
    backend core linear_util lowering mlir random sharding source_info_util
""".split(),
    {},
)
__getattr__, __dir__ = _FACE.attribute, _FACE.names
