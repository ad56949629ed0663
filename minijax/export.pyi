# The names of this module's table, written by tests/write_stubs.py.

from minijax.api.export.checks import DisabledSafetyCheck as DisabledSafetyCheck
from minijax.api.export.exported import Exported as Exported
from minijax.api.export.exported import deserialize as deserialize
from minijax.api.export.exporting import SymbolicScope as SymbolicScope
from minijax.api.export.exporting import symbolic_args_specs as symbolic_args_specs
from minijax.api.export.exporting import symbolic_shape as symbolic_shape
from minijax.api.export.trees import register_namedtuple_serialization as register_namedtuple_serialization
from minijax.api.export.trees import register_pytree_node_serialization as register_pytree_node_serialization
from minijax.base.symbolic.dimension import is_symbolic_dim as is_symbolic_dim
from minijax.interop.exporting import export as export
from minijax.run.clients.client import default_backend as default_export_platform

__all__ = [
    "DisabledSafetyCheck", "Exported", "SymbolicScope", "default_export_platform", "deserialize", "export",
    "is_symbolic_dim", "maximum_supported_calling_convention_version", "minimum_supported_calling_convention_version",
    "register_namedtuple_serialization", "register_pytree_node_serialization", "symbolic_args_specs", "symbolic_shape"
]

maximum_supported_calling_convention_version: int
minimum_supported_calling_convention_version: int
