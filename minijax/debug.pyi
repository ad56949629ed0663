# The names of this module's table, written by tests/write_stubs.py.

from collections.abc import Callable
from minijax.api.visualize import visualize_array_sharding as visualize_array_sharding
from minijax.api.visualize import visualize_sharding as visualize_sharding
from minijax.composed.callbacks.debugger import breakpoint as breakpoint
from minijax.composed.callbacks.debugging import debug_callback as callback
from minijax.composed.callbacks.debugging import debug_print as print
from minijax.composed.callbacks.debugging import inspect_array_sharding as inspect_array_sharding
from minijax.ir.effects import DebugEffect as DebugEffect
from minijax.ir.effects import OrderedDebugEffect as OrderedDebugEffect
from typing import Any

__all__ = [
    "DebugEffect", "OrderedDebugEffect", "breakpoint", "callback", "inspect_array_sharding", "log", "print",
    "visualize_array_sharding", "visualize_sharding"
]

def log(
    fmt: str | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    _use_logging: bool = True,
    **kwargs: Any,
) -> Callable[..., None] | None: ...
