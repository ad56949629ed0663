# The names of this module's table, written by tests/write_stubs.py.

from minijax.api.transfer import from_dlpack as from_dlpack
from minijax.api.transfer import is_supported_dtype as is_supported_dtype

__all__ = [
    "from_dlpack", "is_supported_dtype"
]
