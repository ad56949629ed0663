# The names of this module's table, written by tests/write_stubs.py.

from minijax.base.lazy import Deferred
from minijax.interop.backends import backend_xla_version as backend_xla_version
from minijax.interop.backends import backends as backends
from minijax.interop.backends import clear_backends as clear_backends
from minijax.interop.backends import clear_in_memory_compilation_cache as clear_in_memory_compilation_cache
from minijax.interop.backends import get_backend as get_backend
from minijax.interop.backends import get_compile_options as get_compile_options
from minijax.interop.backends import register_backend_cache as register_backend_cache
from minijax.interop.backends import register_backend_factory as register_backend_factory
from minijax.run.clients.client import default_device as get_default_device

__all__ = [
    "backend_xla_version", "backends", "clear_backends", "clear_in_memory_compilation_cache", "get_backend",
    "get_compile_options", "get_default_device", "ifrt_proxy", "register_backend_cache", "register_backend_factory"
]

ifrt_proxy: Deferred
