"""jax.export: functions, lowered and serialized."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    """
minijax.run.clients.client: default_export_platform=default_backend
minijax.base.symbolic.dimension: is_symbolic_dim
minijax.api.export.exporting: SymbolicScope symbolic_args_specs symbolic_shape
minijax.interop.exporting: export
minijax.api.export.versions: maximum_supported_calling_convention_version minimum_supported_calling_convention_version
minijax.api.export.checks: DisabledSafetyCheck
minijax.api.export.exported: Exported deserialize
minijax.api.export.trees: register_namedtuple_serialization register_pytree_node_serialization
""",
)
