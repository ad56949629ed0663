# The names of this module's table, written by tests/write_stubs.py.

from minijax.composed.callbacks.callback import buffer_callback as buffer_callback
from typing import Any

__all__ = [
    "Buffer", "ExecutionContext", "ExecutionStage", "buffer_callback"
]

Buffer: Any
ExecutionContext: Any
ExecutionStage: Any
