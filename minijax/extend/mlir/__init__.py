"""jax.extend.mlir: MLIR bindings of jaxlib."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    """
jaxlib._jax.mlir: deserialize_portable_artifact hlo_to_stablehlo refine_polymorphic_shapes serialize_portable_artifact
minijax.interop.lowering: lower_with_sharding_in_types
""",
    ("dialects", "ir", "passmanager"),
)
