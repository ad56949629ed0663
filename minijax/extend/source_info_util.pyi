# The names of this module's table, written by tests/write_stubs.py.

from minijax.base.source import register_exclusion as register_exclusion
from minijax.interop.introspection import current as current
from minijax.interop.introspection import current_name_stack as current_name_stack
from minijax.interop.introspection import extend_name_stack as extend_name_stack
from minijax.interop.introspection import new_name_stack as new_name_stack
from minijax.interop.introspection import new_source_info as new_source_info
from minijax.interop.introspection import reset_name_stack as reset_name_stack
from minijax.interop.introspection import set_name_stack as set_name_stack
from minijax.interop.introspection import summarize as summarize
from minijax.interop.introspection import user_context as user_context
from minijax.ir.context import NameStack as NameStack
from minijax.ir.context import SourceInfo as SourceInfo

__all__ = [
    "NameStack", "SourceInfo", "current", "current_name_stack", "extend_name_stack", "new_name_stack",
    "new_source_info", "register_exclusion", "reset_name_stack", "set_name_stack", "summarize", "user_context"
]
