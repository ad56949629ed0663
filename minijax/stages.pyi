# The names of this module's table, written by tests/write_stubs.py.

from minijax.api.stages import ArgInfo as ArgInfo
from minijax.api.stages import Compiled as Compiled
from minijax.api.stages import CompilerOptions as CompilerOptions
from minijax.api.stages import Lowered as Lowered
from minijax.api.stages import Traced as Traced
from minijax.api.stages import Wrapped as Wrapped

__all__ = [
    "ArgInfo", "Compiled", "CompilerOptions", "Lowered", "Traced", "Wrapped"
]
