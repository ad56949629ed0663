# The names of this module's table, written by tests/write_stubs.py.

from jaxlib._jax.mlir import deserialize_portable_artifact as deserialize_portable_artifact
from jaxlib._jax.mlir import hlo_to_stablehlo as hlo_to_stablehlo
from jaxlib._jax.mlir import refine_polymorphic_shapes as refine_polymorphic_shapes
from jaxlib._jax.mlir import serialize_portable_artifact as serialize_portable_artifact
from minijax.extend.mlir import dialects as dialects
from minijax.extend.mlir import ir as ir
from minijax.extend.mlir import passmanager as passmanager
from minijax.interop.lowering import lower_with_sharding_in_types as lower_with_sharding_in_types

__all__ = [
    "deserialize_portable_artifact", "dialects", "hlo_to_stablehlo", "ir", "lower_with_sharding_in_types",
    "passmanager", "refine_polymorphic_shapes", "serialize_portable_artifact"
]
