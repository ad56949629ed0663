"""jax.export: programs as portable bytes."""

from minijax.base.faces import Face

_FACE = Face(
    __name__,
    (),
    """
minijax.run.client: default_export_platform=default_backend
minijax.base.symbolic: is_symbolic_dim
minijax.base.symbolic_scope: SymbolicScope symbolic_shape
minijax.api.symbolic: symbolic_args_specs
minijax.interop.introspection: maximum_supported_calling_convention_version
    minimum_supported_calling_convention_version
""",
    missing={
        "jax.export.{0} is not there yet: programs cannot be exported.": """
        DisabledSafetyCheck Exported deserialize export register_namedtuple_serialization
        register_pytree_node_serialization
    """
    },
)
__getattr__, __dir__ = _FACE.attribute, _FACE.names
