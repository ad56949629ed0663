"""jax.extend.source_info_util: where operations come from."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    """
minijax.ir.context: NameStack SourceInfo
minijax.base.source: register_exclusion
minijax.interop.introspection: current current_name_stack extend_name_stack new_name_stack new_source_info
    reset_name_stack set_name_stack summarize user_context
""",
)
