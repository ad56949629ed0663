"""jax.extend.lowering: the context that lowering rules get."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    """
minijax.interop.lowering: JaxIrContext LoweringRuleContext upstream_dialects
""",
)
