"""jax.experimental: what jax calls so."""

from minijax.base.faces import Face

_FACE = Face(
    __name__,
    """
    buffer_callback checkify compilation_cache compute_on control_deps jet key_reuse ode profiler random rnn
    scheduling_groups source_mapper sparse xla_metadata
    """.split(),
    """
minijax.composed.callback: io_callback
""",
)
__getattr__, __dir__ = _FACE.attribute, _FACE.names
