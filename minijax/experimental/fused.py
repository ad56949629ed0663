"""jax.experimental.fused: calls that XLA fuses, with operands in any memory."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    """
minijax.api.metadata: fused
minijax.calls.marked_calls: fused_p=fused_call_p
""",
)
