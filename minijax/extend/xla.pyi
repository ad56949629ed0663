# The names of this module's table, written by tests/write_stubs.py.

from minijax.run.watching.hlo_transforms import PipelineStage as PipelineStage
from minijax.run.watching.hlo_transforms import clear_hlo_module_transformation as clear_hlo_module_transformation
from minijax.run.watching.hlo_transforms import register_hlo_module_transformation as register_hlo_module_transformation

__all__ = [
    "PipelineStage", "clear_hlo_module_transformation", "register_hlo_module_transformation"
]
