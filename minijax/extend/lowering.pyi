# The names of this module's table, written by tests/write_stubs.py.

from minijax.interop.contexts import JaxIrContext as JaxIrContext
from minijax.interop.lowering import LoweringRuleContext as LoweringRuleContext
from typing import Any

__all__ = [
    "JaxIrContext", "LoweringRuleContext", "upstream_dialects"
]

upstream_dialects: Any
