"""jax.experimental.scheduling_groups: calls with metadata for XLA."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    """
minijax.api.metadata: scheduling_group xla_metadata_call
minijax.calls.marked_calls: xla_metadata_call_p
""",
)
