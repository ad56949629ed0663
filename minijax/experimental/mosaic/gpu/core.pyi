# The names of this module's table, written by tests/write_stubs.py.

from collections.abc import Iterator

__all__ = [
    "artificial_shared_memory_limit"
]

def artificial_shared_memory_limit(limit: int) -> Iterator[None]: ...
