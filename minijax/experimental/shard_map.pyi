# The names of this module's table, written by tests/write_stubs.py.

from collections.abc import Callable
from typing import Any
from typing_extensions import deprecated

__all__ = [
]

@deprecated("jax.experimental.shard_map is deprecated in v0.8.0. Used jax.shard_map instead.")
def shard_map(f: Callable, mesh: Any, in_specs: Any, out_specs: Any, check_rep: bool = True) -> Callable: ...
