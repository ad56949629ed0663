"""jax.extend: the interface for libraries that extend JAX."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    {},
    """
    backend core linear_util lowering mlir random sharding source_info_util xla
""".split(),
    later=("ifrt_programs", "pallas"),
    removed={"module 'jax.extend' has no attribute '{0}'; use jax.ffi.": "ffi"},
)
