"""jax.experimental: what jax calls so."""

from minijax.base.faces import Face

_FACE = Face(
    __name__,
    ("compilation_cache", "compute_on", "profiler", "xla_metadata"),
    """
minijax.composed.callback: io_callback
""",
)
__getattr__, __dir__ = _FACE.attribute, _FACE.names
