"""jax.interpreters.xla: eager evaluation of primitives."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    """
minijax.dispatch.operations: apply_primitive
minijax.interop.introspection: canonicalize_dtype_handlers
jaxlib._jax: Backend=Client
""",
)
